"""Products of columns as users meet them: the exact process, levels, pieces, units, names, searches and errors."""

import pickle
import re
import warnings
from ast import literal_eval
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import vff.estimators.options as options_module
import vff.inference.learning.solver as solvers_module
from vff import Categorical, ExtrapolationWarning, GPRegressor, Matern12, Matern32, Matern52, parse_kernel
from vff.baselines import ExactGP
from vff.kernels.grammar import write_kernel

NOISE = 0.3
A, B = Matern32("a", variance=1.5, lengthscale=4.0), Matern52("b", variance=1.2, lengthscale=3.0)
A2, G = Matern52("a", variance=0.8, lengthscale=6.0), Categorical("g", variance=0.7)
KERNELS = {
    "product": A * B,
    "levels": G * A,
    "mains and product": A2 + B + A * B,
    "mixed": G + A * G + B,
    "turned": B * A + G,
}
OPTIONS = {"frequencies": 6, "domain": {"a": (0.0, 10.0), "b": (1.0, 8.0)}}


def _frame(N: int = 150, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.uniform(0, 10, N), "b": rng.uniform(1, 8, N), "g": rng.choice(list("xyz"), N)})
    f = 20 + 1.5 * np.sin(frame["a"]) * frame["b"] / 4 + (frame["g"] == "y") * frame["a"] / 5
    return frame, f.to_numpy() + np.sqrt(NOISE) * rng.normal(size=N)


def _fixed(kernel, **options) -> GPRegressor:
    own = {"domain": {c: place for c, place in OPTIONS["domain"].items() if f"'{c}'" in repr(kernel)}}
    return GPRegressor(kernel, noise_variance=NOISE, optimizer=None, **{**OPTIONS, **own, **options})


def _same(left: GPRegressor, right: GPRegressor, frame: pd.DataFrame, rtol: float = 1e-8) -> None:
    assert left.elbo_ == pytest.approx(right.elbo_, rel=rtol)
    for one, other in zip(left.predict_f(frame), right.predict_f(frame), strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol)


@pytest.fixture
def _beyond_is_fine():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        yield


@pytest.mark.usefixtures("_beyond_is_fine")
@pytest.mark.parametrize("name", KERNELS)
def test_posterior_closes_on_the_exact_process(name):
    """Inside, outside in one column, and outside in both. A mean is off by at most sqrt(2 gap) deviations."""
    kernel, (frame, y) = KERNELS[name], _frame()
    y = y - 20.0
    new, _ = _frame(60, 5)
    new.loc[:14, "a"] += 8.0
    new.loc[10:24, "b"] -= 6.0
    exact = ExactGP(kernel, noise_variance=NOISE, optimizer=None, normalize_y=False).fit(frame, y)
    model = _fixed(kernel, frequencies=12, normalize_y=False).fit(frame, y)
    gap = exact.log_marginal_likelihood_ - model.elbo_
    assert -1e-6 <= gap < 0.2
    assert exact.log_marginal_likelihood_ <= model.evidence_upper_bound_ + 1e-6
    mean, variance = exact.predict_f(new)
    for got, spread in (model.predict_f(new), model.predict_f(new, full_covariance=True)):
        spread = spread if spread.ndim == 1 else np.diagonal(spread)
        assert np.all(np.abs(got - mean) <= np.sqrt(2 * gap * variance) + 1e-6)
        np.testing.assert_allclose(spread, variance, rtol=2.5 * np.sqrt(gap) + 1e-6)


def _is_only_the_constant(model, mean, variance, prior, frame, y) -> None:
    """Of such rows the constant alone is known, beside the prior of the terms.

    It is known by generalised least squares under the covariance of a model without one, whose bound falls off as a
    parabola in what is taken away from y; and its own prior is N(mean of y, (10 std of y)^2).
    """
    constant, target = model.posterior_.intercept, model.target_
    level, spread = target.mean + target.scale * constant.mean, target.scale**2 * constant.variance
    np.testing.assert_allclose(mean, level, rtol=1e-12)
    np.testing.assert_allclose(variance, prior + spread, rtol=1e-9)
    without, step = clone(model).set_params(normalize_y=False), 5.0
    at, up, down = (without.fit(frame, y - y.mean() - shift).elbo_ for shift in (0.0, step, -step))
    expected = 1.0 / ((2.0 * at - up - down) / step**2 + 1.0 / (10.0 * y.std()) ** 2)
    assert spread == pytest.approx(expected, rel=1e-9)
    assert level == pytest.approx(y.mean() + expected * (up - down) / (2.0 * step), rel=1e-10)


def test_far_away_the_prior_returns_column_by_column():
    frame, y = _frame()
    model = _fixed(A * B).fit(frame, y)
    far = pd.DataFrame({"a": [500.0, 5.0, 500.0], "b": [4.0, -500.0, 500.0], "g": "x"})
    with pytest.warns(ExtrapolationWarning) as caught:
        mean, variance = model.predict_f(far)
    assert [str(one.message)[:10] for one in caught] == ["2 of 3 rows"[:10]] * 2
    _is_only_the_constant(model, mean, variance, 1.5 * 1.2, frame, y)


def test_smooths_of_levels_share_hyperparameters_and_nothing_else():
    """Categorical * Matern32 is one process per level."""
    frame, y = _frame()
    model = _fixed(G * A, frequencies=30, normalize_y=False).fit(frame, y)
    alone = Matern32("a", variance=1.5 * 0.7, lengthscale=4.0)
    total = 0.0
    for level, rows in frame.groupby("g"):
        one = _fixed(alone, frequencies=30, normalize_y=False)
        one.fit(rows, y[rows.index])
        total += one.elbo_
        for got, expected in zip(model.predict_f(rows), one.predict_f(rows), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-7, err_msg=str(level))
    assert model.elbo_ == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("kernel", [G * A, A * G, G * A * B], ids=["first", "last", "of three"])
def test_a_level_never_seen_has_the_prior(kernel):
    frame, y = _frame()
    model = _fixed(kernel, frequencies=3).fit(frame, y)
    with pytest.warns(ExtrapolationWarning, match=r"5 of 5 rows hold a level of column 'g' that the fit has not seen"):
        mean, variance = model.predict_f(frame[:5].assign(g="new"))
    expected = 1.5 * 0.7 * (1.2 if "b" in repr(kernel) else 1.0)
    _is_only_the_constant(model, mean, variance, expected, frame, y)


@pytest.mark.parametrize("name", ["product", "mixed", "mains and product"])
def test_pieces_and_merged_models_are_the_fit_of_all_rows(name):
    kernel, (frame, y) = KERNELS[name], _frame(200)
    whole, parts = _fixed(kernel).fit(frame, y), _fixed(kernel)
    for rows in np.split(np.arange(200), [20, 90]):
        parts.partial_fit(frame.iloc[rows], y[rows])
    _same(parts, whole, frame)
    left, right = _fixed(kernel).fit(frame[:70], y[:70]), _fixed(kernel).fit(frame[70:], y[70:])
    _same(left.merge(right), whole, frame)
    np.testing.assert_allclose(left.effects(frame).std, whole.effects(frame).std, rtol=1e-6)


def test_learning_from_pieces_is_learning_from_all():
    frame, y = _frame(200)
    kernel, parts = Matern32("a") * Matern32("b") + Categorical("g"), None
    whole = GPRegressor(kernel, **OPTIONS).fit(frame, y)
    parts = GPRegressor(kernel, **OPTIONS).partial_fit(frame[:60], y[:60]).partial_fit(frame[60:], y[60:])
    _same(parts, whole, frame, 1e-6)


def test_weights_are_repeated_rows():
    frame, y = _frame(80)
    w = np.random.default_rng(1).integers(0, 4, 80)
    one = _fixed(KERNELS["mixed"]).fit(frame, y, sample_weight=w)
    other = _fixed(KERNELS["mixed"]).fit(frame.loc[frame.index.repeat(w)], np.repeat(y, w))
    _same(one, other, frame)


def test_order_and_brackets_do_not_matter():
    frame, y = _frame()
    _same(_fixed(A * B).fit(frame, y), _fixed(B * A).fit(frame, y), frame)
    _same(_fixed(A * B + G).fit(frame, y), _fixed(G + B * A).fit(frame, y), frame)
    _same(_fixed((A2 + G) * B).fit(frame, y), _fixed(A2 * B + G * B).fit(frame, y), frame)


def test_learnt_products_do_not_depend_on_the_order():
    frame, y = _frame()
    left = GPRegressor(Matern32("a") * Matern52("b"), **OPTIONS).fit(frame, y)
    right = GPRegressor(Matern52("b") * Matern32("a"), **OPTIONS).fit(frame, y)
    assert left.elbo_ == pytest.approx(right.elbo_, abs=1e-4)
    np.testing.assert_allclose(left.predict(frame), right.predict(frame), atol=1e-3)


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_read_from_text_is_the_kernel(name):
    frame, y = _frame()
    kernel = KERNELS[name]
    model = _fixed(parse_kernel(write_kernel(kernel))).fit(frame, y)
    _same(model, _fixed(kernel).fit(frame, y), frame, 1e-12)
    again = _fixed(model.kernel_).fit(frame, y)
    _same(again, model, frame, 1e-10)


def test_units_do_not_matter():
    frame, y = _frame()
    one = _fixed(A2 + A * B).fit(frame, y)
    kernel = Matern52("a", variance=80.0, lengthscale=0.006) + Matern32("a", variance=150.0, lengthscale=0.004) * (
        Matern52("b", variance=1.2, lengthscale=300.0)
    )
    moved = frame.assign(a=1e-3 * frame["a"] + 2.0, b=-100.0 * frame["b"])
    other = GPRegressor(
        kernel,
        noise_variance=100.0 * NOISE,
        optimizer=None,
        frequencies=6,
        domain={"a": (2.0, 2.01), "b": (-800.0, -100.0)},
    ).fit(moved, 10.0 * y - 3.0)
    assert other.elbo_ + 150 * np.log(10.0) == pytest.approx(one.elbo_, rel=1e-8)
    mean, variance = one.predict_f(frame)
    got, spread = other.predict_f(moved)
    np.testing.assert_allclose((got + 3.0) / 10.0, mean, rtol=1e-7)
    np.testing.assert_allclose(spread / 100.0, variance, rtol=1e-6)


@pytest.mark.parametrize("engine", ["dense", "nufft", "table", "auto"])
def test_engines_agree(engine):
    frame, y = _frame()
    frame = frame.round({"a": 0, "b": 0})
    for kernel in (KERNELS["mains and product"], G * A * B):
        expected = _fixed(kernel, frequencies=3, engine="dense").fit(frame, y)
        _same(_fixed(kernel, frequencies=3, engine=engine).fit(frame, y), expected, frame)


def test_a_full_lattice_is_summed_as_a_grid():
    X = np.array(list(product(np.linspace(0, 1, 12), np.linspace(3, 5, 9))))
    y = np.sin(5 * X[:, 0]) * X[:, 1]
    kernel = Matern32(0, variance=1.0, lengthscale=0.5) * Matern32(1, lengthscale=1.0)
    models = [
        GPRegressor(kernel, noise_variance=0.01, optimizer=None, frequencies=4, engine=engine).fit(X, y)
        for engine in ("grid", "dense")
    ]
    assert "grid" in models[0].engine_reason_
    assert models[0].elbo_ == pytest.approx(models[1].elbo_, rel=1e-9)


def test_options_speak_of_products_and_of_columns():
    frame, y = _frame()
    model = _fixed(A2 + A * B, frequencies={"a": 9, "a * b": (4, 3)}, edges={"a * b": 1}).fit(frame, y)
    assert model.frequencies_ == {"a": 9, "a * b": (4, 3)}
    assert model.edges_ == {"a": 4, "a * b": (1, 1)}
    assert model.domain_ == OPTIONS["domain"]
    assert _fixed(A2 + A * B, frequencies={"a": 5, "b": 3}).fit(frame, y).frequencies_ == {"a": 5, "a * b": (8, 3)}
    assert _fixed(A * B, frequencies={"a * b": 3}).fit(frame, y).frequencies_ == {"a * b": (3, 3)}


def test_clone_pickle_and_parameters():
    frame, y = _frame()
    model = GPRegressor(A * B + G, **OPTIONS)
    assert repr(clone(model)) == repr(model)
    assert model.get_params()["kernel__b__lengthscale"] == 3.0
    assert clone(model).set_params(kernel__a__lengthscale=2.5).kernel.terms[0].factors[0].lengthscale == 2.5
    model.fit(frame, y)
    again = pickle.loads(pickle.dumps(model))
    for got, expected in zip(again.predict_f(frame), model.predict_f(frame), strict=True):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(again.effects(frame).std, model.effects(frame).std)


@pytest.mark.usefixtures("_beyond_is_fine")
def test_a_search_reaches_the_factors():
    frame, y = _frame(120)
    search = GridSearchCV(_fixed(A * B, frequencies=4), {"kernel__a__lengthscale": [0.01, 4.0]}, cv=3).fit(frame, y)
    assert search.best_params_ == {"kernel__a__lengthscale": 4.0}


@pytest.mark.parametrize("name", ["product", "mains and product", "mixed"])
def test_effects_sum_to_the_function(name):
    frame, y = _frame()
    model = _fixed(KERNELS[name]).fit(frame, y)
    effects, (mean, _) = model.effects(frame), model.predict_f(frame)
    assert effects.names == tuple(term.name for term in model.rows_.terms)
    np.testing.assert_allclose(effects.mean.sum(1), mean - mean.mean(), atol=1e-8)
    np.testing.assert_allclose(effects.mean.mean(0), 0.0, atol=1e-8)
    assert np.all(effects.std > 0.0)


@pytest.mark.usefixtures("_beyond_is_fine")
def test_slopes_of_a_sum_with_products():
    """Along a column that a main effect and two products share, against differences; inside and outside."""
    frame, y = _frame()
    model = _fixed(A2 + A * B + A * G).fit(frame, y)
    new, h = frame[:12].copy(), 1e-4
    new.loc[:3, "b"] += 7.0
    new.loc[4:5, "a"] += 11.0
    for column in ("a", "b"):
        mean, variance = model.predict_derivative(new, column)
        pair = pd.concat([new.assign(**{column: new[column] - h}), new.assign(**{column: new[column] + h})])
        around, joint = model.predict_f(pair, full_covariance=True)
        np.testing.assert_allclose(mean, (around[12:] - around[:12]) / (2 * h), rtol=1e-3, atol=1e-3)
        spread = np.diagonal(joint[:12, :12] + joint[12:, 12:] - 2 * joint[:12, 12:]) / (4 * h**2)
        np.testing.assert_allclose(variance, spread, rtol=5e-2)


def test_a_product_is_found_in_data_made_of_one():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (600, 2))
    f = np.sin(4 * X[:, 0]) * np.cos(3 * X[:, 1])
    y = f + 0.2 * rng.normal(size=600)
    model = GPRegressor(Matern32(0) * Matern32(1)).fit(X, y)
    mains = GPRegressor(Matern32(0) + Matern32(1)).fit(X, y)
    assert model.elbo_ > mains.elbo_ + 100.0
    assert np.sqrt(np.mean((model.predict(X) - f) ** 2)) < 0.08
    assert model.noise_variance_ == pytest.approx(0.04, rel=0.2)
    assert model.solver_ == "direct"
    assert model.elbo_error_ == 0.0


def test_the_solver_without_a_factor_through_the_front_door(monkeypatch):
    frame, y = _frame(400)
    kernel = A * B
    direct = _fixed(kernel, frequencies=10).fit(frame, y)
    monkeypatch.setattr(solvers_module, "LARGEST_DIRECT", 300)
    model, again = (_fixed(kernel, frequencies=10).fit(frame, y) for _ in range(2))
    assert (direct.solver_, model.solver_) == ("direct", "iterative")
    assert abs(model.elbo_ - direct.elbo_) <= model.elbo_error_ + 1e-6
    assert model.elbo_ == again.elbo_
    np.testing.assert_allclose(model.predict(frame), direct.predict(frame), rtol=1e-6)
    np.testing.assert_allclose(model.predict_f(frame)[1], direct.predict_f(frame)[1], rtol=0.01)
    np.testing.assert_allclose(model.effects(frame).std, direct.effects(frame).std, rtol=0.01)
    draws = model.sample_f(frame[:5], 3000, random_state=0)
    np.testing.assert_allclose(draws.mean(1), direct.predict(frame[:5]), atol=0.1)
    learnt = GPRegressor(kernel, frequencies=9, domain=OPTIONS["domain"]).fit(frame, y)
    monkeypatch.undo()
    expected = GPRegressor(kernel, frequencies=9, domain=OPTIONS["domain"]).fit(frame, y)
    assert learnt.solver_ == "iterative"
    assert learnt.elbo_ == pytest.approx(expected.elbo_, abs=1.0 + learnt.elbo_error_)
    np.testing.assert_allclose(learnt.predict(frame), expected.predict(frame), atol=0.1)


BAD = {
    "one column by name and index": (lambda: _fixed(A * Matern32(0)), "uses column 'a' of X twice.*leave one"),
    "one column twice": (lambda: _fixed(A * Matern12("a")), "one factor per column was expected"),
    "an unknown product": (
        lambda: _fixed(A * B, frequencies={"a * c": 3}),
        "frequencies names column 'a \\* c', which the kernel does not use; it uses 'a', 'a \\* b', 'b', 'b \\* a'",
    ),
    "odd harmonics of a product": (
        lambda: _fixed(A * B, frequencies={"a * b": (3, 0)}),
        "frequencies for column 'b' must be 'auto' or a positive integer, got 0",
    ),
    "harmonics of three in a product of two": (
        lambda: _fixed(A * B, frequencies={"a * b": (3, 4, 5)}),
        "one value or 2, one for each column; got \\(3, 4, 5\\)",
    ),
    "no lattice": (lambda: _fixed(A * B, engine="grid"), "every combination of their values exactly once.*'auto'"),
    "beyond the domain": (
        lambda: _fixed(A * B, domain={"a": (0.0, 5.0)}),
        "beyond the domain \\[0, 5\\].*widen",
    ),
    "far too many features": (
        lambda: _fixed(A * B * G, frequencies=20_000),
        "features.*need .*GiB where .*GiB are installed",
    ),
}


@pytest.mark.parametrize("case", BAD, ids=str)
def test_sentence(case):
    frame, y = _frame(60)
    make, pattern = BAD[case]
    with pytest.raises((ValueError, TypeError), match=f"(?s){pattern}") as caught:
        make().fit(frame, y)
    assert len(str(caught.value)) < 500


def test_what_does_not_fit_in_memory_is_refused_with_numbers(monkeypatch):
    """On a machine of 64 MiB, 2756 features are too many, and it says how many are not."""
    monkeypatch.setattr(options_module, "installed_memory", lambda: 2**26)
    frame, y = _frame(60)
    with pytest.raises(ValueError, match=r"make 2759 features, most of them \(2756\) for a \* b, which need") as caught:
        _fixed(A * B + G, frequencies=24).fit(frame, y)
    found = re.search(r"frequencies=(\{.*?\}) would fit, with (\d+) features", str(caught.value))
    assert found is not None
    model = _fixed(A * B + G, frequencies=literal_eval(found[1])).fit(frame, y)
    assert 500 < model.rows_.moments.request.size == int(found[2]) < 2759
