"""Residuals of sites, terms that are summed apart, and gains on sums alone, against their definitions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from vff import GPRegressor, Matern32
from vff.estimators.candidates import Candidate, FittedRows, candidates_of
from vff.inference import Observed, PartialSum, SumModel, WorkingSites, standardised
from vff.moments import MomentRequest, RowBlock, distinct_values_for, plan_pass, run_pass, summarise_columns

NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.uniform(-1, 1, 150) for name in NAMES})
    f = np.sin(3 * X.a) + X.b * X.c
    return X.assign(
        y=5.0 + 2.0 * f + 0.4 * rng.normal(size=150), count=rng.poisson(np.exp(f)), w=rng.uniform(0.5, 2, 150)
    )


def fitted(rows: pd.DataFrame, target: str, likelihood: str) -> tuple[GPRegressor, FittedRows]:
    model = GPRegressor(likelihood=likelihood, frequencies=3, hyperparameters="maximise").fit(
        rows[list(NAMES)], rows[target], rows.w
    )
    again = model._rows_again(rows[list(NAMES)], rows[target], rows.w)
    return model, FittedRows(model.fit_, model.statistics_, again.source, again.reader, "auto")


def test_residuals_with_gaussian_noise_are_those_of_the_prediction(rows):
    model, _ = fitted(rows, "y", "gaussian")
    x, scale = rows[list(NAMES)].to_numpy(), model.target_.scale
    observed = Observed(rows.y.to_numpy(), np.ones(len(rows)), rows.w.to_numpy())
    sites, totals = WorkingSites.of(model.fit_, residual=True)(observed, model.posterior_.rows(x))
    noise = model.noise_variance_ / scale**2
    np.testing.assert_allclose(sites.precision, rows.w / noise)
    np.testing.assert_allclose(sites.pull, rows.w * (rows.y - model.predict(x_frame(rows))) / scale / noise, atol=1e-8)
    assert totals[0] == pytest.approx(rows.w.sum())


def x_frame(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[list(NAMES)]


def test_residuals_of_counts_are_what_the_likelihood_pulls(rows):
    """E[g] = y - E exp f and -E[h] = E exp f, with E exp f = exp(m + v / 2)."""
    model, _ = fitted(rows, "count", "poisson")
    observed = Observed(rows["count"].to_numpy(float), np.ones(len(rows)), rows.w.to_numpy())
    x = x_frame(rows).to_numpy()
    mean, variance = model.predict_f(x_frame(rows))
    expected = np.exp(mean + 0.5 * variance)
    left, _ = WorkingSites.of(model.fit_, residual=True)(observed, model.posterior_.rows(x))
    np.testing.assert_allclose(left.precision, rows.w * expected, rtol=1e-6)
    np.testing.assert_allclose(left.pull, rows.w * (rows["count"] - expected), atol=1e-6)
    whole, _ = WorkingSites.of(model.fit_, residual=False)(observed, model.posterior_.rows(x))
    f = (mean - model.target_.mean) / model.target_.scale
    np.testing.assert_allclose(whole.pull, left.pull + left.precision * f, atol=1e-6)
    # an offset is added to f before the likelihood sees it
    lifted = replace(observed, offset=rows.a.to_numpy())
    left, _ = WorkingSites.of(model.fit_, residual=True)(lifted, model.posterior_.rows(x))
    np.testing.assert_allclose(left.pull, rows.w * (rows["count"] - expected * np.exp(rows.a)), atol=1e-6)


def test_terms_apart_are_summed_as_they_are_together(rows):
    _, again = fitted(rows, "y", "gaussian")
    pairs = [own.request for own in candidates_of(again.rows)]
    request, columns = again.with_terms(pairs), [rows[name].to_numpy() for name in NAMES]
    block = RowBlock(len(rows), lambda c, some: columns[c][some], rows.y.to_numpy(), rows.w.to_numpy())
    values = distinct_values_for("auto", request, summarise_columns(block, range(3)), block)
    together, _ = run_pass(plan_pass(block.n, request, values), block)
    apart, _ = run_pass(plan_pass(block.n, request, values, apart=(3, 5)), block)
    assert apart.blocks == {}
    for s in (3, 5):
        np.testing.assert_allclose(apart.grams[s], together.grams[s], atol=1e-9)
        np.testing.assert_allclose(apart.projects[s], together.projects[s], atol=1e-9)


def beside(again: FittedRows, pair: Candidate) -> PartialSum:
    """The terms of a fit at its hyperparameters, and a product that may join."""
    sums = standardised(again.summed([pair.request]).moments, (), again.fit.target)[0]
    whole = SumModel((*(term.inner for term in again.rows.terms), pair.inner), sums, intercept=100.0)
    theta = again.fit.history[-1].optimum.theta
    return PartialSum.of(whole, range(3), theta, np.ones(theta.size, bool))


def test_what_is_expected_on_sums_is_what_the_residuals_of_rows_say(rows):
    _, again = fitted(rows, "y", "gaussian")
    (pair,) = (own for own in candidates_of(again.rows) if own.columns == ("b", "c"))
    (by_rows,), by_sums = again.gains([pair]), beside(again, pair).expected(3)
    assert by_sums.nats == pytest.approx(by_rows.nats, abs=1e-3)
    assert by_sums.values == pytest.approx(by_rows.values, rel=1e-2)


def test_a_term_that_joins_raises_the_bound_as_a_fit_would(rows):
    model, again = fitted(rows, "y", "gaussian")
    (pair,) = (own for own in candidates_of(again.rows) if own.columns == ("b", "c"))
    alone = beside(again, pair)
    jacobian = rows.w.sum() * np.log(model.target_.scale)
    assert alone.elbo - jacobian == pytest.approx(model.elbo_, abs=1e-6)
    more = alone.joined(3, alone.expected(3).values)
    basis = pair.request.bases[0]
    kernel = Matern32("a") + Matern32("b") + Matern32("c") + Matern32("b") * Matern32("c")
    harmonics = {**dict.fromkeys(NAMES, 3), "b * c": basis.detail}
    edges = {"b * c": pair.left.inner.factors[0].edges(basis)}
    written = GPRegressor(kernel, frequencies=harmonics, edges=edges, hyperparameters="maximise").fit(
        x_frame(rows), rows.y, rows.w
    )
    assert more.elbo - alone.elbo == pytest.approx(written.elbo_ - model.elbo_, abs=0.1)
    assert MomentRequest(more.model.moments.request.terms).size == written.fit_.posterior.request.size
