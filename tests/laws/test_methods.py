"""Laws of methods of inference: one record whoever made it, bounds that are bounds, parts that make the whole."""

from dataclasses import fields
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.makers.methods import MAKERS, SUM, N, noisy, regressor, rows

from vff import GPRegressor, Matern32
from vff.inference import METHODS, Fit, FitTask, Method, Spec, choose
from vff.inference.methods.collapsed import Collapsed
from vff.likelihoods import Gaussian, Poisson
from vff.moments import PreparedRows

every_method = pytest.mark.parametrize("method", METHODS, ids=[method.name for method in METHODS])
HELD: dict[str, Any] = {"optimizer": None, "kernel": Matern32(0, variance=1.0, lengthscale=0.3)}


@cache
def fitted(name: str) -> GPRegressor:
    X, f = rows()
    return MAKERS[name].make().fit(X, MAKERS[name].targets(f))


def test_every_method_has_a_maker():
    assert [method.name for method in METHODS] == list(MAKERS)


@every_method
def test_all_of_the_record_is_filled(method: Method):
    model = fitted(method.name)
    fit = model.fit_
    assert fit.method == method.name
    assert fit.samples is not None or not method.samples
    assert (fit.memory is not None) == (method.needs == "visits")
    assert fit.from_sums == (method.needs == "sums")
    for own in fields(Fit):
        if own.name not in ("samples", "memory", "engine", "doubt"):
            assert getattr(fit, own.name) is not None, own.name
    assert None not in fit.likelihood.values.values()
    assert fit.likelihood == model.likelihood_
    assert fit.n > 0
    assert len(fit.history) >= 1
    assert [term.name for term in fit.terms] == [term.name for term in model.rows_.terms]
    assert all(term.variance > 0.0 and 0.0 <= term.edf <= 60.0 for term in fit.terms)
    assert np.isfinite(fit.target.scale)
    assert np.all(np.diff(fit.bounds) >= -1e-9 * abs(fit.elbo))


@every_method
def test_the_function_is_found(method: Method):
    """As well as the posterior says, give or take."""
    X, f = rows()
    mean, variance = fitted(method.name).predict_f(X)
    assert np.corrcoef(mean, f)[0, 1] > (0.9 if len(fitted(method.name).fit_.terms) > 1 else 0.7)
    assert np.all(variance > 0.0)


@every_method
def test_the_bound_rises_with_the_harmonics_and_stays_below_the_upper_one(method: Method):
    if method.samples:
        pytest.skip("draws have no bound of their own")
    X, f = rows()
    case = MAKERS[method.name]
    bounds = [case.make(**HELD, noise_variance=0.1, frequencies=M).fit(X, case.targets(f)) for M in (2, 4, 8)]
    assert all(fewer.elbo_ < more.elbo_ + 1e-6 for fewer, more in pairwise(bounds))
    for model in bounds:
        assert not model.evidence_upper_bound_ < model.elbo_


@every_method
def test_parts_are_the_whole(method: Method):
    """Where rows can be added: within the tolerance of learning, and from the last optimum, which is nearer."""
    spec = Spec(Gaussian() if method.needs == "sums" else Poisson(), method.inference, growing=True)
    if method.accepts(spec) is not None or method.samples:
        pytest.skip("takes no more rows")
    (X, f), case = rows(), MAKERS[method.name]
    y, whole, parts = case.targets(f), fitted(method.name), case.make()
    for some in (slice(0, 100), slice(100, 180), slice(180, N)):
        parts.partial_fit(X[some], y[some])
    (mean, variance), (expected, spread) = parts.predict_f(X), whole.predict_f(X)
    loose = 0.25 if method.needs == "visits" else 1e-3  # rows that are gone are remembered by factors of one moment
    assert np.all(np.abs(mean - expected) < loose * np.sqrt(spread))
    np.testing.assert_allclose(variance, spread, rtol=2.0 * loose)


@pytest.mark.parametrize("frequencies", [8, "auto"])
def test_partial_fit_begins_where_the_last_fit_ended(frequencies):
    """Nearly all rows were seen: there is little left to learn."""
    X, f = rows()
    y, make = noisy(f), regressor(frequencies=frequencies)
    whole = make().fit(X, y)
    parts = make().partial_fit(X[: N - 12], y[: N - 12]).partial_fit(X[N - 12 :], y[N - 12 :])
    assert parts.elbo_ == pytest.approx(whole.elbo_, abs=0.05)
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=5e-3)
    assert evaluations(parts) < evaluations(whole)


def test_a_term_that_came_to_nothing_is_tried_again_when_more_rows_come():
    X, f = rows()
    y = noisy(f)
    few = np.flatnonzero(X[:, 1] != 1)[:40]  # without the level that differs
    model = regressor()().partial_fit(X[few], y[few])
    assert not model.fit_.terms[1].active
    model.partial_fit(X, y)
    assert model.fit_.terms[1].active


def evaluations(model: GPRegressor) -> int:
    return sum(milestone.optimum.evaluations for milestone in model.fit_.history)


def test_natural_gradients_under_gaussian_noise_end_in_the_closed_form():
    X, f = rows()
    y, how = noisy(f), {"frequencies": 6, "optimizer": None}
    kernel = Matern32(0, variance=1.0, lengthscale=0.3)
    closed = GPRegressor(kernel, noise_variance=0.1, **how).fit(X, y)
    climbed = GPRegressor(kernel, likelihood=Gaussian(0.1), **how).fit(X, y)
    assert (closed.fit_.method, climbed.fit_.method) == ("collapsed", "natural")
    assert climbed.elbo_ == pytest.approx(closed.elbo_, rel=1e-8)
    for ours, theirs in zip(climbed.predict_f(X), closed.predict_f(X), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("sampled", "optimal"), [("collapsed chains", "collapsed"), ("integrated", "collapsed")])
def test_chains_are_around_the_optimum(sampled, optimal):
    X, _ = rows()
    (mean, _), (expected, variance) = fitted(sampled).predict_f(X), fitted(optimal).predict_f(X)
    assert np.all(np.abs(mean - expected) < 1.0 * np.sqrt(variance))
    assert np.median(np.abs(mean - expected) / np.sqrt(variance)) < 0.2


def test_the_first_that_takes_it_is_chosen_and_what_nobody_takes_is_refused_with_a_reason():
    for method in METHODS:
        likelihood = Gaussian() if method.needs == "sums" else Poisson()
        covariance = "kronecker" if method.name == "structured" else "full"
        how = {"hyperparameters": "integrate"} if method.name.startswith("integrated") else {}
        assert choose(METHODS, Spec(likelihood, method.inference, covariance, **how)) is method
    with pytest.raises(ValueError, match="averages full covariances"):
        choose(METHODS, Spec(Poisson(), covariance="kronecker", hyperparameters="integrate"))
    with pytest.raises(ValueError, match="is for likelihoods that are not Gaussian"):
        choose(METHODS, Spec(Gaussian(), covariance="kronecker"))
    with pytest.raises(ValueError, match="without a covariance"):
        choose(METHODS, Spec(Poisson(), "mcmc", "kronecker"))
    with pytest.raises(ValueError, match="no method of inference"):
        choose(METHODS, Spec(Poisson(), "telepathy"))


class Twice(Collapsed):
    """A method of one's own: what sums say, said louder."""

    name = "twice"
    inference = "twice"

    def fit(self, task: FitTask) -> Fit:
        task.progress("twice")
        return super().fit(task)


def test_a_method_of_ones_own_is_asked_for_by_its_word():
    X, f = rows()
    with pytest.raises(ValueError, match="inference must be one of 'variational', 'mcmc'; got 'twice'"):
        GPRegressor(SUM, inference="twice").fit(X, noisy(f))
    with METHODS.registered(Twice(), first=True):
        model = GPRegressor(SUM, inference="twice", frequencies=8, domain={0: (0.0, 1.0)}).fit(X, noisy(f))
    np.testing.assert_array_equal(model.predict(X), fitted("collapsed").predict(X))


@every_method
def test_effects_are_measured_from_the_average_over_the_rows(method: Method):
    X, _ = rows()
    posterior = fitted(method.name).posterior_
    x = X[:, : len(posterior.request.columns)]
    features = np.concatenate([term.features(x) for term in posterior.terms], axis=1)
    np.testing.assert_allclose(posterior.centre, features.mean(axis=0), atol=1e-9)


def test_averages_of_features_cost_no_walk_over_the_rows(monkeypatch):
    """Rows are counted when they are first asked anyway."""
    walks: list[PreparedRows] = []
    chunks = PreparedRows.chunks
    monkeypatch.setattr(PreparedRows, "chunks", lambda prepared: (walks.append(prepared), chunks(prepared))[1])
    X, f = rows()
    model = MAKERS["natural"].make().fit(X, MAKERS["natural"].targets(f))
    assert len(walks) == model.fit_.visits + 1  # and the first guess
