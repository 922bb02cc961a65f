"""Rows in pieces, and models merged, are the rows together."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vff import Categorical, GPRegressor, Matern12, Matern32, Matern52

KERNEL = Matern32("u") + Matern52("v") + Categorical("g")
OPTIONS = {"frequencies": 8, "domain": {"u": (0.0, 5.0), "v": (-1.0, 1.0)}}


def _table(N: int = 200, seed: int = 0):
    """Later rows hold levels that earlier ones do not."""
    rng = np.random.default_rng(seed)
    levels = np.array(list("dcba"))[np.minimum(4 * np.arange(N) // N, rng.integers(0, 4, N))]
    frame = pd.DataFrame({"u": rng.uniform(0, 5, N), "v": rng.uniform(-1, 1, N), "g": levels})
    y = 1e3 + np.sin(frame["u"]) + frame["v"] ** 2 + 0.5 * (frame["g"] == "c") + 0.2 * rng.normal(size=N)
    return frame, y.to_numpy()


def _values(kernel) -> list[float]:
    """All hyperparameters of a sum, term by term."""
    values = [[term.variance, getattr(term, "lengthscale", None)] for term in kernel.terms]
    return [value for pair in values for value in pair if value is not None]


def _same(left: GPRegressor, right: GPRegressor, frame: pd.DataFrame, rtol: float = 1e-8) -> None:
    assert left.rows_.moments.n == right.rows_.moments.n
    assert left.elbo_ == pytest.approx(right.elbo_, rel=rtol)
    np.testing.assert_allclose(_values(left.kernel_), _values(right.kernel_), rtol=rtol)
    assert left.noise_variance_ == pytest.approx(right.noise_variance_, rel=rtol)
    for got, expected in zip(left.predict(frame, return_std=True), right.predict(frame, return_std=True), strict=True):
        np.testing.assert_allclose(got, expected, rtol=rtol)
    for got, expected in zip(left.effects(frame)[1:], right.effects(frame)[1:], strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-8)


def _given() -> GPRegressor:
    """All hyperparameters given: what is compared is the sums and not the optimiser's path."""
    kernel = (
        Matern32("u", variance=0.5, lengthscale=1.0)
        + Matern52("v", variance=0.5, lengthscale=1.0)
        + Categorical("g", variance=0.2)
    )
    return GPRegressor(kernel, noise_variance=0.04, optimizer=None, **OPTIONS)


@given(cuts=st.lists(st.integers(2, 198), max_size=4, unique=True), seed=st.integers(0, 10**6))
@settings(max_examples=8)
def test_any_pieces_give_the_fit_of_all_rows(cuts, seed):
    frame, y = _table(200, seed)
    parts = _given()
    for rows in np.split(np.arange(200), sorted(cuts)):
        parts.partial_fit(frame.iloc[rows], y[rows])
    _same(parts, _given().fit(frame, y), frame)


@pytest.mark.parametrize("sizes", [(20, 60, 120), (100, 100)])
def test_learning_from_pieces_is_learning_from_all(sizes):
    frame, y = _table()
    parts = GPRegressor(KERNEL, **OPTIONS)
    for rows in np.split(np.arange(200), np.cumsum(sizes)[:-1]):
        parts.partial_fit(frame.iloc[rows], y[rows])
    _same(parts, GPRegressor(KERNEL, **OPTIONS).fit(frame, y), frame)


@pytest.mark.parametrize("split", [30, 100, 190])
@pytest.mark.parametrize("learn", [True, False])
def test_merged_models_are_the_model_of_all_rows(split, learn):
    frame, y = _table()
    left, right, whole = ((GPRegressor(KERNEL, **OPTIONS) if learn else _given()) for _ in range(3))
    left.fit(frame[:split], y[:split])
    right.fit(frame[split:], y[split:])
    kept = right.predict(frame[split:])
    assert left.merge(right) is left
    _same(left, whole.fit(frame, y), frame)
    np.testing.assert_array_equal(right.predict(frame[split:]), kept)


def test_merging_does_not_depend_on_the_order_and_can_go_on():
    frame, y = _table()
    pieces = [_given().fit(frame[rows], y[rows]) for rows in (slice(0, 60), slice(60, 130), slice(130, 200))]
    whole = _given().fit(frame, y)
    _same(pieces[2].merge(pieces[0]).merge(pieces[1]), whole, frame)
    more = _given().fit(frame[:150], y[:150]).partial_fit(frame[150:], y[150:])
    _same(more, whole, frame)
    other = _given().fit(frame[:150], y[:150]).merge(_given().fit(frame[150:180], y[150:180]))
    _same(other.partial_fit(frame[180:], y[180:]), whole, frame)


def test_merging_rows_outside_a_single_domain():
    frame, y = _table()
    options = {"domain": (1.0, 4.0), "frequencies": 8, "noise_variance": 0.1, "optimizer": None}
    kernel = Matern32("u", variance=0.5, lengthscale=1.0)
    left, right, whole = (
        GPRegressor(kernel, **options).fit(frame[r], y[r]) for r in (slice(80), slice(80, 200), slice(200))
    )
    left.merge(right)
    assert left.elbo_ == pytest.approx(whole.elbo_, rel=1e-8)
    inside = frame[frame["u"].between(1.0, 4.0)]
    np.testing.assert_allclose(left.predict(inside), whole.predict(inside), rtol=1e-8)


REFUSALS = {
    "another column": (Matern32("u") + Matern52("w") + Categorical("g"), {}),
    "fewer terms": (Matern32("u") + Matern52("v"), {}),
    "another order": (Matern32("u") + Matern32("v") + Categorical("g"), {}),
    "another order with the same edges": (Matern12("u") + Matern52("v") + Categorical("g"), {"edges": 3}),
    "levels for numbers": (Categorical("u") + Matern52("v") + Categorical("g"), {}),
    "another domain": (KERNEL, {"domain": {"u": (0.0, 6.0), "v": (-1.0, 1.0)}}),
    "other edges": (KERNEL, {"edges": 1}),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_differs_is_not_merged(case):
    frame, y = _table()
    frame = frame.assign(w=frame["v"])
    kernel, changes = REFUSALS[case]
    domain = {name: place for name, place in OPTIONS["domain"].items() if name in str(kernel)}
    if case == "levels for numbers":
        domain.pop("u", None)
    options = {"frequencies": 8, "domain": domain, **changes}
    edges = {"edges": 3} if case == "another order with the same edges" else {}
    model = GPRegressor(KERNEL, **OPTIONS, **edges).fit(frame, y)
    before, n = model.predict(frame), model.rows_.moments.n
    other = GPRegressor(kernel, **options).fit(frame[100:], y[100:])
    with pytest.raises(ValueError, match=r"keep the kernel|with the same domain|with the same edges") as caught:
        model.merge(other)
    assert len(str(caught.value)) < 400
    np.testing.assert_array_equal(model.predict(frame), before)
    assert model.rows_.moments.n == n


EXCHANGED = {
    "a term less": Matern32("u") + Categorical("g"),
    "another order": Matern12("u") + Matern52("v") + Categorical("g"),
    "columns exchanged": Matern52("v") + Matern32("u") + Categorical("g"),
    "levels for numbers": Categorical("u") + Matern52("v") + Categorical("g"),
}


@pytest.mark.parametrize("case", EXCHANGED)
def test_a_kernel_exchanged_between_pieces_is_refused_with_a_sentence(case):
    frame, y = _table()
    model = GPRegressor(KERNEL, **OPTIONS).partial_fit(frame, y)
    before = model.predict(frame)
    model.set_params(kernel=EXCHANGED[case])
    with pytest.raises(ValueError, match="kernel"):
        model.partial_fit(frame, y)
    np.testing.assert_array_equal(model.predict(frame), before)


BAD = {
    "infinite x": lambda frame, y: (frame.assign(u=np.inf), y),
    "missing y": lambda frame, y: (frame, np.full(len(y), np.nan)),
    "text for numbers": lambda frame, y: (frame.assign(v="x"), y),
    "beyond the domain": lambda frame, y: (frame.assign(u=99.0), y),
    "lengths differ": lambda frame, y: (frame, y[:-1]),
    "a column less": lambda frame, y: (frame[["u", "g"]], y),
    "no rows": lambda frame, y: (frame[:0], y[:0]),
}


@pytest.mark.parametrize("case", BAD)
def test_a_failed_partial_fit_leaves_the_model_unchanged(case):
    frame, y = _table()
    model = GPRegressor(KERNEL, **OPTIONS).partial_fit(frame[:120], y[:120])
    state = {name: value for name, value in vars(model).items() if name.endswith("_")}
    with pytest.raises(ValueError, match=r"\w+ .*\w+"):
        model.partial_fit(*BAD[case](frame[120:].assign(g="new"), y[120:]))
    assert vars(model).keys() >= state.keys()
    assert all(getattr(model, name) is value for name, value in state.items())
    model.partial_fit(frame[120:], y[120:])
    _same(model, GPRegressor(KERNEL, **OPTIONS).fit(frame, y), frame)


def test_merging_what_is_not_fitted_is_refused():
    frame, y = _table()
    model = GPRegressor(KERNEL, **OPTIONS)
    fitted = GPRegressor(KERNEL, **OPTIONS).fit(frame, y)
    for left, right in ((model, fitted), (fitted, model)):
        with pytest.raises(ValueError, match="not fitted"):
            left.merge(right)


def test_pieces_of_one_row_and_of_missing_levels():
    frame, y = _table()
    frame = frame.assign(g=frame["g"].where(frame.index % 7 != 3, None))
    parts = _given().partial_fit(frame[:2], y[:2])
    for row in range(2, 40):
        parts.partial_fit(frame[row : row + 1], y[row : row + 1])
    _same(parts, _given().fit(frame[:40], y[:40]), frame[:40])
