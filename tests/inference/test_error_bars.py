"""The bound of rows with error bars against dense algebra, and its slopes against differences."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from vff.basis import Codes, ColumnBasis, Interval, LevelBasis
from vff.factors.interval.factor import MaternFactor
from vff.factors.levels.factor import LevelFactor
from vff.features import ColumnPrior
from vff.inference import SumModel, Term
from vff.moments import (
    ColumnRequest,
    MomentRequest,
    NoisySums,
    RowBlock,
    distinct_values_for,
    plan_pass,
    run_noisy_pass,
    summarise_column,
)

LEVELS, M = ("a", "b", "c"), 6
THETA = np.log([0.8, 0.5, 0.4, 0.09])
"""Variance and lengthscale of the Matérn, variance of the levels, noise."""
TOLERANCE = 1e-7  # nats; 1e-8 of it is what the bound allows for rounding


def rows(n=90, seed=0):
    rng = np.random.default_rng(seed)
    columns = [rng.uniform(-1.0, 1.0, n), rng.integers(0, 3, n).astype(float)]
    errors = np.exp(rng.normal(-1.0, 1.2, n))
    y = np.sin(3.0 * columns[0]) + 0.4 * columns[1] + errors * rng.normal(size=n)
    return columns, y, rng.integers(1, 4, n).astype(float), errors**2


def model(columns, y, w, variances, intercept=4.0):
    bases = (ColumnRequest(Interval(-1.0, 1.0), ColumnBasis(M, 3)), ColumnRequest(Codes(), LevelBasis(LEVELS)))
    request, source = MomentRequest.of_columns(bases), RowBlock(y.size, lambda c, rows: columns[c][rows], y, w)
    found = [summarise_column(y.size, lambda rows, x=x: x[rows]) for x in columns]
    plan = plan_pass(y.size, request, distinct_values_for("auto", request, found, source))
    sums, _ = run_noisy_pass(plan, source, variances)
    terms = Term((MaternFactor(1),)), Term((LevelFactor(),))
    return SumModel(terms, replace(sums, nodes={}), intercept=intercept, noisy=NoisySums(sums))


def dense(columns, y, w, variances, theta, intercept):
    """The collapsed bound of rows that are written out as often as they count, by n x n matrices."""
    x, g, y, v = (np.repeat(own, w.astype(int)) for own in (*columns, y, variances))
    variance, lengthscale, of_levels, noise = np.exp(theta)
    prior = ColumnPrior(ColumnBasis(M, 3), 1, np.sqrt(3.0) / lengthscale)
    phi = prior.transform.forward(ColumnBasis(M, 3).evaluate(x).T).T
    Q = variance * phi @ np.linalg.solve(prior.matrix().to_dense(), phi.T)
    Q += of_levels * (g[:, None] == g) + (intercept or 0.0)
    missed = variance + of_levels + (intercept or 0.0) - np.diagonal(Q)
    D = v + noise
    return multivariate_normal(np.zeros(y.size), Q + np.diag(D)).logpdf(y) - 0.5 * np.sum(missed / D)


@pytest.mark.parametrize("intercept", [None, 4.0])
@pytest.mark.parametrize("noise", [1e-6, 0.01, 0.09, 3.0])
def test_the_bound_is_that_of_dense_algebra(noise, intercept):
    data, theta = rows(), THETA.copy()
    theta[-1] = np.log(noise)
    found = model(*data, intercept).at(theta)
    assert found.elbo == pytest.approx(dense(*data, theta, intercept), abs=TOLERANCE)
    assert found.upper_bound() > found.elbo


def test_error_bars_of_zero_beside_noise():
    columns, y, w, variances = rows()
    data = columns, y, w, np.where(np.arange(y.size) % 5 == 0, 0.0, variances)
    assert model(*data).at(THETA).elbo == pytest.approx(dense(*data, THETA, 4.0), abs=TOLERANCE)


@pytest.mark.parametrize("intercept", [None, 4.0])
@pytest.mark.parametrize("kind", ["cotangents", "gap_cotangents"])
def test_slopes_are_those_of_differences(kind, intercept):
    own, value = model(*rows(), intercept), {"cotangents": "elbo", "gap_cotangents": "bound_gap"}[kind]
    slopes = own.pull_back(THETA, getattr(own.at(THETA), kind))
    for place, step in enumerate(1e-5 * np.eye(THETA.size)):
        ahead, behind = (getattr(own.at(THETA + sign * step), value) for sign in (1.0, -1.0))
        assert slopes[place] == pytest.approx((ahead - behind) / 2e-5, rel=1e-6, abs=1e-6)


def test_terms_by_themselves_and_with_fewer_harmonics():
    columns, y, w, variances = rows()
    own = model(columns, y, w, variances)
    fewer = own.restricted(((3,), (None,)))
    assert fewer.at(THETA).elbo < own.at(THETA).elbo
    assert fewer.bound_gap_by_term(fewer.at(THETA), THETA)[1] == pytest.approx(0.0, abs=1e-9)
    theta = THETA[[0, 1, 3]]
    alone = own.alone(0)
    zero = THETA.copy()
    zero[2] = np.log(1e-14)
    assert alone.at(theta).elbo == pytest.approx(dense(columns, y, w, variances, zero, 4.0), abs=1e-6)


def test_no_noise_at_all_beside_the_error_bars():
    data, theta = rows(), THETA.copy()
    weighed = model(*data).weighed(0.0)
    theta[-1] = 0.0  # beside weights, the noise is one
    zero = THETA.copy()
    zero[-1] = -745.0
    assert weighed.at(theta).elbo == pytest.approx(dense(*data, zero, 4.0), abs=TOLERANCE)
