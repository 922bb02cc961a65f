"""What holds for every registered likelihood: the density, its expectations, a new y, parameters, units, files, names.

A file that registers a kind of its own imports these tests and says which cases they run over, by a
``pytest_generate_tests`` of its own.
"""

import ast
import itertools
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import expit
from tests.makers.likelihoods import MAKERS, Case, cases

from vff import likelihoods as lk
from vff.likelihoods import NAMES
from vff.likelihoods.rules import rule
from vff.storage import Codec, FileError

MEANS, VARIANCES = np.array([-1.0, 0.3, 1.2]), np.array([0.0, 0.2, 1.5])
LEVELS = np.array([0.025, 0.3, 0.5, 0.9])


def over(metafunc: pytest.Metafunc, every: list[Case]) -> None:
    """Run a law over these cases: ``case``, or ``distinct`` without twins."""
    for argument in ("case", "distinct"):
        if argument in metafunc.fixturenames:
            some = [own for own in every if argument == "case" or not own.twin]
            metafunc.parametrize(argument, some, ids=[own.name for own in some])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    over(metafunc, cases())


def test_every_kind_has_a_maker() -> None:
    assert {kind.__name__ for kind in lk.LIKELIHOODS} <= set(MAKERS)
    assert all(type(case.likelihood).__name__ == kind for kind, own in MAKERS.items() for case in own)


# --- the density ---------------------------------------------------------------------------------------------------


def test_log_density_is_that_of_scipy(case: Case) -> None:
    y, f, extra = case.rows()
    value = case.likelihood.expected(case.likelihood.psi, y, extra, f, np.zeros_like(f)).value
    assert value.dtype == np.float64
    np.testing.assert_allclose(value, case.logpdf(y, f, extra), rtol=2e-12, atol=2e-13)


def test_density_sums_to_one(distinct: Case) -> None:
    likelihood, (low, high) = distinct.likelihood, distinct.likelihood.support
    f, e = np.array([0.4]), distinct.rows(1)[2]
    psi = likelihood.psi

    def p(y: np.ndarray) -> np.ndarray:
        one = np.ones_like(y)
        return np.exp(likelihood.expected(psi, y, e * one, f * one, 0 * one).value)

    if likelihood.discrete:
        top = e[0] if likelihood.column and np.isinf(high) and likelihood.column_role() == "trials" else min(high, 400)
        assert p(np.arange(low, top + 1)).sum() == pytest.approx(1.0, abs=1e-12)
        return
    # the trapezoidal rule in t, with y = F(sinh t), F the map of the real line onto the support
    t = np.linspace(-7, 7, 8001)
    z, slope = np.sinh(t), np.cosh(t)
    if (low, high) == (0.0, 1.0):
        y, slope = expit(z), slope * expit(z) * expit(-z)
    elif low == 0.0:
        y, slope = np.exp(np.clip(z, -300, 300)), slope * np.exp(np.clip(z, -300, 300))
    else:
        y = z * 10
        slope = slope * 10
    inside = (y > low) & (y < high)
    assert np.sum(p(y[inside]) * slope[inside]) * (t[1] - t[0]) == pytest.approx(1.0, abs=1e-6)


@settings(max_examples=15, deadline=None)
@given(f=st.floats(-600, 600), variance=st.sampled_from([0.0, 1e-20, 0.3, 30.0]))
def test_extremes_stay_finite(case: Case, f: float, variance: float) -> None:
    y, _, extra = case.rows()
    answer = case.likelihood.expected(case.likelihood.psi, y, extra, np.full_like(y, f), np.full_like(y, variance))
    assert all(np.isfinite(part).all() for part in answer)


def test_conditional_moments_and_cdf_are_those_of_the_density(case: Case) -> None:
    likelihood, (_, _, extra) = case.likelihood, case.rows()
    f, e = np.array([0.4]), extra[:1]
    low, high = likelihood.support
    if likelihood.discrete:
        grid = np.arange(low, min(high, 400) + 1)
        mass = np.exp(case.logpdf(grid, f, e))
        mass, total = np.nan_to_num(mass), np.cumsum(np.nan_to_num(mass))
        np.testing.assert_allclose(likelihood.cdf(grid, f, e), total, atol=1e-12)
        np.testing.assert_allclose(likelihood.conditional_mean(f, e), mass @ grid, rtol=1e-10)
        variance = mass @ (grid - mass @ grid) ** 2
        np.testing.assert_allclose(likelihood.conditional_variance(f, e), variance, rtol=1e-9)
        return
    density = lambda y: float(np.exp(case.logpdf(np.array([y]), f, e))[0])  # noqa: E731
    np.testing.assert_allclose(
        likelihood.cdf(np.array(0.7), f, e), integrate.quad(density, low, 0.7, epsabs=1e-12)[0], rtol=1e-8
    )
    if not case.moments:
        assert np.isinf(likelihood.conditional_variance(f, e)).all()
        return
    mean = integrate.quad(lambda y: y * density(y), low, high)[0]
    variance = integrate.quad(lambda y: (y - mean) ** 2 * density(y), low, high)[0]
    np.testing.assert_allclose(likelihood.conditional_mean(f, e), mean, rtol=1e-6)
    np.testing.assert_allclose(likelihood.conditional_variance(f, e), variance, rtol=1e-6)


def test_samples_follow_the_cdf(case: Case) -> None:
    likelihood, (_, _, extra) = case.likelihood, case.rows()
    f, e = np.full(20_000, 0.3), np.full(20_000, extra[0])
    y = likelihood.sample(f, e, np.random.default_rng(0))
    likelihood.check(y, e)
    low, high = likelihood.support
    assert np.all((y >= low) & (y <= high))
    assert not likelihood.discrete or np.all(y == np.floor(y))
    for point in np.quantile(y, [0.2, 0.5, 0.8]):
        assert abs(np.mean(y <= point) - likelihood.cdf(point, f[0], e[0])) < 0.015


def test_traits_are_true(case: Case) -> None:
    likelihood, (y, _, extra) = case.likelihood, case.rows()
    f = np.linspace(-5, 5, 41)
    means = likelihood.conditional_mean(f[:, None], extra)
    assert np.all(np.diff(means, axis=0) >= 0.0)
    table = case.logpdf(y, f[:, None], extra)
    wide = np.linspace(-12, 12, 241)
    y_, f_, extra_ = (part.ravel() for part in np.broadcast_arrays(y, wide[:, None], extra))
    bent = likelihood.expected(likelihood.psi, y_, extra_, f_, np.zeros_like(f_)).curvature
    if likelihood.log_concave:  # the second derivative in f is never positive
        assert bent.max() <= 1e-12
    else:  # and it is claimed wherever it is true; of functions of a user's nothing is known
        assert bent.max() > 0.0 or not case.stored
    if likelihood.affine:  # log p less its value at one f is y A(f) + extra B(f)
        design, change = np.stack([y, extra], axis=1), (table - table[20]).T
        left = change - design @ np.linalg.lstsq(design, change, rcond=None)[0]
        assert np.abs(left).max() < 1e-9
    assert likelihood.binary == (set(np.unique(y)) <= {0.0, 1.0})
    assert not likelihood.conjugate  # all values are held
    assert likelihood.scale_name == "y" or not likelihood.standardised


# --- expectations --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variance", [0.02, 0.6])
def test_slope_and_curvature_are_derivatives(case: Case, variance: float) -> None:
    likelihood, (y, f, extra) = case.likelihood, case.rows()
    v, step = np.full_like(f, variance), 1e-4 * np.sqrt(variance)

    def at(mean: np.ndarray, variance: np.ndarray) -> lk.Expected:
        return likelihood.expected(likelihood.psi, y, extra, mean, variance)

    here, up, down = at(f, v), at(f + step, v), at(f - step, v)
    np.testing.assert_allclose(here.slope, (up.value - down.value) / (2 * step), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(here.curvature, (up.slope - down.slope) / (2 * step), rtol=1e-5, atol=1e-6)
    wide, narrow = at(f, v * 1.001), at(f, v * 0.999)
    np.testing.assert_allclose(here.curvature, (wide.value - narrow.value) / (0.001 * v), rtol=1e-4, atol=1e-5)


def test_expectation_is_that_of_the_density(distinct: Case) -> None:
    likelihood, (y, f, extra) = distinct.likelihood, distinct.rows(6)
    value = likelihood.expected(likelihood.psi, y, extra, f, np.full_like(f, 0.5)).value
    z = np.linspace(-8, 8, 2001)
    weights = stats.norm.pdf(z) / stats.norm.pdf(z).sum()
    truth = distinct.logpdf(y[:, None], f[:, None] + np.sqrt(0.5) * z, extra[:, None]) @ weights
    np.testing.assert_allclose(value, truth, rtol=1e-7, atol=1e-8)


def test_closed_forms_are_what_quadrature_finds(case: Case) -> None:
    likelihood, (y, f, extra) = case.likelihood, case.rows()
    if not likelihood.closed_form:
        pytest.skip("quadrature is all there is")
    nodes, weights = rule(128)
    every = (np.repeat(part, 128) for part in (y, extra))
    at = likelihood.expected(
        likelihood.psi, *every, (f[:, None] + np.sqrt(0.5) * nodes).ravel(), np.zeros(len(y) * 128)
    )
    for exact, each in zip(likelihood.expected(likelihood.psi, y, extra, f, np.full_like(f, 0.5)), at, strict=True):
        np.testing.assert_allclose(exact, each.reshape(-1, 128) @ weights, rtol=1e-9, atol=1e-11)


def test_parameter_derivatives(distinct: Case) -> None:
    likelihood, (y, f, extra) = distinct.likelihood, distinct.rows()
    w, v, psi, step = np.linspace(0, 2, len(y)), np.full_like(f, 0.3), likelihood.psi, 1e-4

    def at(psi: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        return lk.parameter_derivatives(likelihood, psi, y, extra, w, f, v)

    value, gradient, hessian = at(psi)
    assert value == pytest.approx(w @ likelihood.expected(psi, y, extra, f, v).value, rel=1e-12)
    for k in range(len(psi)):
        move = step * np.eye(len(psi))[k]
        up, down = at(psi + move), at(psi - move)
        assert gradient[k] == pytest.approx((up[0] - down[0]) / (2 * step), rel=1e-5, abs=1e-5)
        np.testing.assert_allclose(hessian[k], (up[1] - down[1]) / (2 * step), rtol=1e-4, atol=1e-4)


def test_row_modes_are_maxima(distinct: Case) -> None:
    likelihood, (y, _, extra) = distinct.likelihood, distinct.rows()
    for centre, spread in ((0.0, 1.0), (-4.0, 3.0)):
        mode, slope, curvature = lk.row_modes(likelihood, likelihood.psi, y, extra, centre, spread)
        np.testing.assert_allclose(slope, (mode - centre) / spread**2, atol=1e-6)
        there = likelihood.expected(likelihood.psi, y, extra, mode, np.zeros_like(mode))
        np.testing.assert_allclose(slope, there.slope, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(curvature, there.curvature, rtol=1e-9, atol=1e-9)


def test_best_constant_is_a_maximum(case: Case) -> None:
    y, _, extra = case.rows()
    w = np.linspace(0.5, 1.5, len(y))

    def total(f: float) -> float:
        return float(w @ case.logpdf(y, np.full_like(y, f), extra))

    best = lk.best_constant(case.likelihood, case.likelihood.psi, y, extra, w)
    assert total(best) >= max(total(best + step) for step in (-1, -0.1, -1e-3, 1e-3, 0.1, 1)) - 1e-9


# --- a new y -------------------------------------------------------------------------------------------------------


def grid(mean: float, variance: float) -> tuple[np.ndarray, np.ndarray]:
    """f and weights, very fine."""
    z = np.linspace(-9, 9, 4001)
    return mean + np.sqrt(variance) * z, stats.norm.pdf(z) / stats.norm.pdf(z).sum()


@pytest.mark.parametrize("variance", [1e-6, 0.5, 9.0])
def test_log_predictive_is_the_integral(distinct: Case, variance: float) -> None:
    likelihood, (y, f, extra) = distinct.likelihood, distinct.rows(3)
    sd = np.sqrt(variance)
    answer = likelihood.predictive(f, np.full_like(f, variance), extra).log_density(y)
    for n in range(len(y)):
        point = [part[n : n + 1] for part in (y, extra)]

        def inside(z: float, n: int = n, point: list[np.ndarray] = point) -> float:
            with np.errstate(divide="ignore"):  # SciPy's probabilities of zero
                value = distinct.logpdf(point[0], f[n] + sd * z, point[1])[0]
            return float(np.exp(value - z * z / 2)) / np.sqrt(2 * np.pi)

        breaks = np.linspace(-8, 8, 9)
        total = sum(integrate.quad(inside, *pair, epsrel=1e-11)[0] for pair in itertools.pairwise(breaks))
        assert answer[n] == pytest.approx(np.log(total), abs=1e-8)


def test_moments(case: Case) -> None:
    likelihood, extra = case.likelihood, case.rows(3)[2]
    new = likelihood.predictive(MEANS, VARIANCES, extra)
    mean, variance = new.moments()
    np.testing.assert_allclose(new.mean(), mean, rtol=1e-14)
    if not case.moments:
        return
    for n in range(3):
        f, weights = grid(MEANS[n], VARIANCES[n])
        centre = likelihood.conditional_mean(f, extra[n])
        first = weights @ centre
        second = weights @ (likelihood.conditional_variance(f, extra[n]) + (centre - first) ** 2)
        np.testing.assert_allclose([mean[n], variance[n]], [first, second], rtol=1e-8)


def test_quantiles_intervals_and_cdf(case: Case) -> None:
    likelihood, extra = case.likelihood, case.rows(3)[2]
    new = likelihood.predictive(MEANS, VARIANCES, extra)
    answer = new.quantiles(LEVELS)
    np.testing.assert_array_equal(np.stack(new.interval(0.9)), new.quantiles(np.array([0.05, 0.95])).T)
    for n in range(3):
        f, weights = grid(MEANS[n], VARIANCES[n])
        for quantile, level in zip(answer[n], LEVELS, strict=True):
            here = weights @ likelihood.cdf(quantile, f, extra[n])
            assert new.cdf(np.full(3, quantile))[n] == pytest.approx(here, abs=1e-7)
            if likelihood.discrete:
                assert quantile == np.floor(quantile)
                below = weights @ likelihood.cdf(quantile - 1, f, extra[n])
                assert below < level + 1e-9
                assert here >= level - 1e-9
            else:
                step = 1e-6 * abs(quantile)
                assert weights @ likelihood.cdf(quantile - step, f, extra[n]) <= level
                assert weights @ likelihood.cdf(quantile + step, f, extra[n]) >= level


def test_draws_of_f_answer_as_their_distribution_does(case: Case) -> None:
    likelihood, extra = case.likelihood, case.rows(3)[2]
    f = MEANS[:, None] + np.sqrt(VARIANCES)[:, None] * stats.norm.ppf((np.arange(2000) + 0.5) / 2000)
    drawn, exact = lk.Mixture([likelihood] * 2000, f, extra), likelihood.predictive(MEANS, VARIANCES, extra)
    np.testing.assert_allclose(drawn.mean(), exact.mean(), rtol=0.01, atol=1e-3)
    y = likelihood.sample(MEANS, extra, np.random.default_rng(5))
    np.testing.assert_allclose(drawn.log_density(y), exact.log_density(y), atol=0.02)
    ends = drawn.interval(0.8)
    reached = [exact.cdf(end) for end in ends]
    if not likelihood.discrete:
        np.testing.assert_allclose(reached, np.outer([0.1, 0.9], np.ones(3)), atol=0.01)
    if case.moments:
        y = drawn.sample(np.random.default_rng(6))
        sd = np.sqrt(exact.moments()[1] / 2000)
        assert np.all(np.abs(y.mean(axis=1) - exact.mean()) < 5 * sd + 1e-9)


# --- parameters, units, files, names -------------------------------------------------------------------------------


def test_parameters_go_out_and_come_back(case: Case) -> None:
    likelihood, (y, _, extra) = case.likelihood, case.rows()
    assert len(likelihood.parameters) == len(likelihood.psi) == len(likelihood.free)
    np.testing.assert_allclose(likelihood.start(y, extra, np.ones_like(y)), likelihood.psi)
    again = likelihood.with_values(likelihood.psi)
    for key, value in likelihood.values.items():
        np.testing.assert_allclose(again.values[key], value)
    assert hash(likelihood.form) == hash(likelihood.form.form)
    assert again.form == likelihood.form


def test_what_is_not_given_is_learnt(case: Case) -> None:
    if case.learnt is None:
        assert not case.likelihood.free.any() or not case.stored
        return
    assert not case.likelihood.free.any()
    y, _, extra = case.rows(50)
    own = case.learnt.sized(y)
    assert own.free.all()
    assert own.conjugate == own.normal
    with pytest.raises(ValueError, match="has no value of"):
        own.psi  # noqa: B018
    psi = case.learnt.start(y, extra, np.ones(50))
    assert np.isfinite(psi).all()
    fitted = case.learnt.with_values(psi)
    np.testing.assert_allclose(fitted.psi, psi)
    assert fitted.form == own.form


def test_a_row_of_weight_two_starts_as_two_rows(case: Case) -> None:
    own = case.learnt or case.likelihood
    y, _, extra = case.rows(39)

    def asked(y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.array([*own.start(y, extra, w), *own.location(y, extra, w)])

    twice = (np.concatenate([part, part]) for part in (y, extra, np.ones(39)))
    np.testing.assert_allclose(asked(y, extra, np.full(39, 2.0)), asked(*twice), rtol=1e-12)


def test_units(case: Case) -> None:
    """p(s y | s f) of the likelihood in other units is p(y | f) / s, where f is in units of y."""
    likelihood, (y, f, extra) = case.likelihood, case.rows()
    np.testing.assert_allclose(likelihood.in_units(3.0).in_units(1 / 3).psi, likelihood.psi, atol=1e-14)
    if not likelihood.standardised:
        assert likelihood.in_units(3.0) == likelihood
        return
    other, zero = likelihood.in_units(3.0), np.zeros_like(f)
    moved = 3 * extra if likelihood.known_errors else extra  # error bars are in units of y, too
    there = other.expected(other.psi, 3 * y, moved, 3 * f, zero).value
    np.testing.assert_allclose(there, case.logpdf(y, f, extra) - np.log(3.0), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(other.cdf(3 * y, 3 * f, moved), likelihood.cdf(y, f, extra), rtol=1e-11)


def test_rows_that_cannot_be_are_refused(case: Case) -> None:
    assert case.refused or any(one.refused for one in MAKERS[type(case.likelihood).__name__])
    for y, extra, sentence in case.refused:
        with pytest.raises(ValueError, match=sentence):
            case.likelihood.check(np.array(y, dtype=float), np.array(extra, dtype=float))


def test_files_hold_it(case: Case) -> None:
    codec = Codec("vff")
    if not case.stored:
        with pytest.raises((FileError, TypeError, ValueError)):
            codec.encode(case.likelihood, lk.AbstractLikelihood)
        return
    assert pickle.loads(pickle.dumps(case.likelihood)) == case.likelihood
    for own in filter(None, (case.likelihood, case.learnt)):
        assert codec.decode(codec.encode(own, lk.AbstractLikelihood), lk.AbstractLikelihood) == own


def test_names_lead_to_it(case: Case) -> None:
    kind = type(case.likelihood)
    for name in NAMES[kind.__name__]:
        if name in lk.likelihood_names():
            assert type(lk.by_name(name)) is kind
            assert lk.by_name(name).form == kind.named(name).form
        else:
            with pytest.raises(ValueError, match=f"A {name} likelihood needs the column of {kind.column_role()}"):
                lk.by_name(name)
    assert lk.by_name(case.likelihood) is case.likelihood


def test_nobody_asks_which_likelihood_it_is() -> None:
    """Outside their own room kinds are unknown: it is their traits that are asked for."""
    source = Path(lk.__file__).parents[1]
    kinds = {kind.__name__ for kind in lk.LIKELIHOODS} | {"AbstractLikelihood"}
    found = [
        f"{path.relative_to(source)}:{node.lineno}"
        for path in sorted(source.rglob("*.py"))
        if path.parent != source / "likelihoods" and path.parent != source / "priors"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass")
        for name in ast.walk(node.args[1])
        if getattr(name, "id", getattr(name, "attr", "")) in kinds
    ]
    assert found == []
