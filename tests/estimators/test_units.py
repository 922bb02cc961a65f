"""Units, order and repetition do not matter: of y, of every column, of rows and of columns, to 1e-6."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from vff import Categorical, GPRegressor, Matern12, Matern32, Matern52, Matern92
from vff.kernels import Sum

TOLERANCE = 1e-6
QUICK = (Phase.explicit, Phase.generate)  # a smaller example of a rounding error tells no more
SCALES = st.sampled_from([1e-6, -1e-3, 0.7, 1.0, 3.0, -50.0, 1e6])
ENGINES = ("nufft", "dense")
KINDS = (Matern32, Matern52, Matern12, Categorical)


class Example(NamedTuple):
    """A small table and a kernel for it."""

    X: np.ndarray
    y: np.ndarray
    kernel: Sum


@st.composite
def examples(draw) -> Example:
    N, columns = draw(st.integers(20, 80)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    kinds = [draw(st.sampled_from(KINDS)) for _ in range(columns)]
    X = rng.uniform(-1, 1, (N, columns)).round(draw(st.sampled_from([1, 12])))
    for c, kind in enumerate(kinds):
        if kind is Categorical:
            X[:, c] = rng.integers(0, 4, N)
    y = np.sin(3 * X[:, 0]) + 0.5 * X[:, -1] ** 2 + 0.4 * rng.normal(size=N)
    return Example(X, y, Sum(tuple(kind(c) for c, kind in enumerate(kinds))))


def _leaves(model: GPRegressor):
    return getattr(model.kernel_, "terms", (model.kernel_,))


def _agree(base: GPRegressor, other: GPRegressor, X, moved, y_scale=1.0, y_shift=0.0, jacobian=0.0) -> None:
    """Predictions, deviations, effects and bound agree to 1e-6 of the spread of y (of the bound)."""
    mean, std = base.predict(X, return_std=True)
    got_mean, got_std = other.predict(moved, return_std=True)
    size = base.target_.scale
    np.testing.assert_allclose((got_mean - y_shift) / y_scale, mean, atol=TOLERANCE * size, rtol=0)
    np.testing.assert_allclose(got_std / abs(y_scale), std, rtol=TOLERANCE)
    assert other.elbo_ + jacobian == pytest.approx(base.elbo_, abs=TOLERANCE * max(1.0, abs(base.elbo_)))
    assert other.noise_variance_ / y_scale**2 == pytest.approx(base.noise_variance_, rel=TOLERANCE)
    before, after = base.effects(X), other.effects(moved)
    np.testing.assert_allclose(after.mean / y_scale, before.mean, atol=TOLERANCE * size, rtol=0)
    np.testing.assert_allclose(after.std / abs(y_scale), before.std, atol=TOLERANCE * size, rtol=0)


@given(examples(), SCALES, st.sampled_from([0.0, -3.0, 1e3, 1e6]))
@settings(max_examples=10, phases=QUICK)
def test_units_of_y(example, scale, shift):
    """Offsets are in units of the scale: y itself holds no more than float64 resolves."""
    X, y, kernel = example
    base = GPRegressor(kernel, frequencies=8).fit(X, y)
    other = GPRegressor(kernel, frequencies=8).fit(X, scale * (y + shift))
    _agree(base, other, X, X, scale, scale * shift, len(y) * np.log(abs(scale)))


@given(
    examples(), st.lists(SCALES, min_size=4, max_size=4), st.lists(st.sampled_from([0.0, -3.0, 1e3, 1e6]), min_size=4)
)
@settings(max_examples=10, phases=QUICK)
def test_units_of_every_column(example, scales, shifts):
    X, y, kernel = example
    numbers = np.array([not isinstance(term, Categorical) for term in kernel.terms])
    # with an offset of 1e6 units the column itself is rounded, to 1e-10 of its range; the table is the rounded one
    moved = np.where(numbers, np.array(scales[: len(numbers)]) * (X + np.array(shifts[: len(numbers)])), X)
    base = GPRegressor(kernel, frequencies=8).fit(X, y)
    other = GPRegressor(kernel, frequencies=8).fit(moved, y)
    _agree(base, other, X, moved)
    for before, after, scale in zip(_leaves(base), _leaves(other), scales, strict=False):
        if not isinstance(before, Categorical):
            assert after.lengthscale == pytest.approx(abs(scale) * before.lengthscale, rel=1e-5)


@given(examples(), st.randoms(use_true_random=False))
@settings(max_examples=10, phases=QUICK)
def test_order_of_rows_and_columns(example, random):
    X, y, kernel = example
    rows, columns = list(range(len(X))), list(range(X.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    base = GPRegressor(kernel, frequencies=8).fit(X, y)
    by_rows = GPRegressor(kernel, frequencies=8).fit(X[rows], y[rows])
    _agree(base, by_rows, X, X)
    moved = Sum(tuple(type(kernel.terms[old])(new) for new, old in enumerate(columns)))
    by_columns = GPRegressor(moved, frequencies=8).fit(X[:, columns], y)
    mean, std = base.predict(X, return_std=True)
    got_mean, got_std = by_columns.predict(X[:, columns], return_std=True)
    np.testing.assert_allclose(got_mean, mean, atol=TOLERANCE * std.max())
    np.testing.assert_allclose(got_std, std, rtol=TOLERANCE)
    np.testing.assert_allclose(by_columns.effects(X[:, columns]).mean, base.effects(X).mean[:, columns], atol=1e-6)
    assert by_columns.elbo_ == pytest.approx(base.elbo_, abs=TOLERANCE * max(1.0, abs(base.elbo_)))


@given(examples(), st.integers(0, 10**6))
@settings(max_examples=10, phases=QUICK)
def test_integer_weights_are_repeated_rows(example, seed):
    X, y, kernel = example
    counts = np.random.default_rng(seed).integers(0, 4, len(y))
    counts[:2] = 1
    # the same domains, whichever rows are left out
    numbers = {c: (-1.0, 1.0) for c, term in enumerate(kernel.terms) if not isinstance(term, Categorical)}
    # learning from sums that differ in rounding may take another path among several optima, so it is left out here
    options = {"frequencies": 8, "domain": numbers, "optimizer": None, "noise_variance": 0.1}
    weighted = GPRegressor(kernel, **options).fit(X, y, sample_weight=counts)
    repeated = GPRegressor(kernel, **options).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    _agree(repeated, weighted, X[counts > 0], X[counts > 0])


def test_integer_weights_are_repeated_rows_for_what_is_learnt_too():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 2)).round(1)
    y, counts = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=80), rng.integers(1, 4, 80)
    weighted = GPRegressor().fit(X, y, sample_weight=counts)
    repeated = GPRegressor().fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert weighted.elbo_ == pytest.approx(repeated.elbo_, abs=1e-4)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-4)


@pytest.mark.parametrize("optimizer", ["lbfgs", None])
def test_frequencies_that_grow_do_not_depend_on_units_either(optimizer):
    rng = np.random.default_rng(2)
    X = rng.uniform(0, 1, (300, 2))
    y = np.sin(9 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=300)
    base = GPRegressor(optimizer=optimizer).fit(X, y)
    other = GPRegressor(optimizer=optimizer).fit(1e6 + 1e3 * X, 1e8 - 1e5 * y)
    _agree(base, other, X, 1e6 + 1e3 * X, -1e5, 1e8, 300 * np.log(1e5))
    assert other.frequencies_ == base.frequencies_


def _wave(n=150):
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 10, (n, 1))
    return x, np.sin(x[:, 0]) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("engine", ["nufft", "dense", "table"])
@pytest.mark.parametrize("kind", [Matern12, Matern32, Matern52, Matern92])
def test_units_of_y_over_eighteen_decades_with_every_engine(kind, engine):
    """Sums of weights and of targets do not see one another's units."""
    x, y = _wave()
    y = y - 0.3
    options = {"frequencies": 40, "engine": engine}
    base = GPRegressor(kind(0), **options).fit(x, y)
    for scale in (1e-8, 1e4, 1e8, 1e10):
        other = GPRegressor(kind(0), **options).fit(x, scale * y)
        _agree(base, other, x, x, y_scale=scale, jacobian=y.size * np.log(scale))


@pytest.mark.parametrize("kernel", [Matern52(0), Matern92(0), Matern52(0) + Matern52(0)])
def test_one_wild_target_leaves_the_sums_of_the_others(kernel):
    x, y = _wave()
    y[7] = 1e8
    models = [GPRegressor(kernel, engine=engine).fit(x, y) for engine in ("nufft", "dense")]
    assert models[0].elbo_ == pytest.approx(models[1].elbo_, rel=1e-9)


@pytest.mark.parametrize("weight", [1e3, 1e6, 1e9])
def test_large_weights(weight):
    """Many copies of every row: small edge functions keep their own relative errors, and every engine the same sums."""
    x, y = _wave()
    kernel, w = Matern52(0, variance=1.0, lengthscale=1.0), np.full(y.size, weight)
    held = {"noise_variance": 0.01 * weight, "optimizer": None, "frequencies": 40}
    nufft, dense = (GPRegressor(kernel, engine=engine, **held).fit(x, y, sample_weight=w) for engine in ENGINES)
    assert nufft.elbo_ == pytest.approx(dense.elbo_, rel=1e-10)
    grid = np.linspace(0, 10, 50)[:, None]
    np.testing.assert_allclose(nufft.predict_f(grid), dense.predict_f(grid), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("weight", [1e6, 1e12, 1e15])
def test_large_weights_are_learnt_from(weight, engine):
    """So many copies of every row leave nothing to noise: the fit goes through them, as far as float64 lets it."""
    x = np.linspace(0, 10, 25)[:, None]
    y = np.sin(x[:, 0])
    model = GPRegressor(Matern52(0), engine=engine).fit(x, y, sample_weight=np.full(25, weight))
    np.testing.assert_allclose(model.predict(x), y, atol=0.01)
    assert np.isfinite(model.elbo_)


@pytest.mark.parametrize(("unit", "advice"), [(1e-150, "smaller"), (1e150, "larger")])
def test_targets_whose_square_float64_does_not_hold_are_refused(unit, advice):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(30, 1))
    with pytest.raises(ValueError, match=f"its square leaves float64; measure it in {advice} units"):
        GPRegressor(frequencies=3).fit(X, unit * np.sin(6 * X[:, 0]))


@pytest.mark.parametrize("likelihood", ["gaussian", "student-t"])
@pytest.mark.parametrize("offset", [1e6, -1e10])
def test_quantiles_of_targets_far_from_zero(likelihood, offset):
    """They are resolved beside the mean, not beside zero."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(100, 1))
    y = np.sin(6 * X[:, 0]) + 0.5 * rng.normal(size=100)
    levels = (0.025, 0.5, 0.975)
    near, far = (GPRegressor(frequencies=5, likelihood=likelihood).fit(X, y + shift) for shift in (0.0, offset))
    np.testing.assert_allclose(far.predict_quantiles(X, levels) - offset, near.predict_quantiles(X, levels), atol=2e-3)
