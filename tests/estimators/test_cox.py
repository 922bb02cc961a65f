"""CoxProcess: agrees with the regression of counts, with sums written as loops, and with draws of the function."""

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from vff import Categorical, CoxProcess, GPRegressor, Matern12, Matern32, Matern52
from vff.estimators.pattern import Grid, Space, as_table, make_grid
from vff.likelihoods import Poisson

WINDOW = (0.0, 10.0)
BOX = [(0.0, 4.0), (-1.0, 1.0)]


def curve(seed: int = 0, n: int = 200) -> np.ndarray:
    """Points that gather on the left."""
    return 10.0 * np.random.default_rng(seed).beta(1.5, 3.0, n)


def plane(seed: int = 1, n: int = 150) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"east": 4.0 * rng.beta(2, 4, n), "north": rng.uniform(-1, 1, n)})


@pytest.fixture(scope="module")
def line() -> CoxProcess:
    return CoxProcess(grid=64, frequencies=6, random_state=0).fit(curve(), WINDOW)


@pytest.fixture(scope="module")
def area() -> CoxProcess:
    return CoxProcess(grid=(12, 10), frequencies=3, random_state=0).fit(plane(), BOX)


def test_it_is_the_regression_of_the_counts(line: CoxProcess) -> None:
    counts, edges = np.histogram(curve(), bins=64, range=WINDOW)
    np.testing.assert_array_equal(line.counts_, counts)
    centres = (edges[1:] + edges[:-1]) / 2
    X = np.column_stack([centres, np.full(64, 10 / 64)])
    how = {"frequencies": 6, "domain": WINDOW, "hyperparameters": "maximise"}
    direct = GPRegressor(Matern32(0), likelihood=Poisson(exposure=1), **how).fit(X, counts)
    assert line.elbo_ == pytest.approx(direct.elbo_, abs=1e-8)
    assert str(line.kernel_) == str(direct.kernel_)
    np.testing.assert_allclose(line.intensity().mean, direct.predict(X) / (10 / 64), rtol=1e-10)
    found = line.intensity(centres[:5], level=0.5)
    mean, variance = direct.predict_f(X[:5])
    width = np.log(found.upper / found.lower) / (2 * 0.6744897501960817)
    np.testing.assert_allclose(width, np.sqrt(variance), rtol=1e-10)
    np.testing.assert_allclose(found.mean, np.exp(mean + variance / 2), rtol=1e-10)


def test_the_whole_window_holds_as_many_as_were_seen(line: CoxProcess, area: CoxProcess) -> None:
    """With a constant that the prior says nothing about, the total is Gamma(N): mean N, variance N."""
    for model in (line, area):
        n = len(model.points_)
        count = model.expected_count(n_samples=4000)
        assert count.mean == pytest.approx(n, rel=0.01)
        assert count.std == pytest.approx(np.sqrt(n), rel=0.06)
        assert count.lower == pytest.approx(n - 1.645 * np.sqrt(n), rel=0.03)
        assert count.upper == pytest.approx(n + 1.645 * np.sqrt(n), rel=0.03)


def test_counts_against_joint_draws(line: CoxProcess) -> None:
    """On a few cells, against the joint covariance of the function, which has the constant in it."""
    region = (1.0, 3.0)
    grid = line.grid_
    volumes = np.array([max(0.0, min(b, 3.0) - max(a, 1.0)) for a, b in pairwise(grid.edges[0])])
    rows = np.column_stack([grid.centres[:, 0], np.full(64, 1.0)])
    f = line.model_.sample_f(rows, 20_000, random_state=3)
    totals = volumes @ np.exp(f)
    count = line.expected_count(region, n_samples=20_000)
    assert count.mean == pytest.approx(totals.mean(), abs=5 * totals.std() / np.sqrt(20_000))
    assert count.std == pytest.approx(totals.std(), rel=0.03)
    np.testing.assert_allclose((count.lower, count.upper), np.quantile(totals, (0.05, 0.95)), rtol=0.01)


def test_the_constant_moves_the_function_as_least_squares_says(line: CoxProcess) -> None:
    """With the sites of the rows written out: A = K + Phi' S Phi, h = Phi' S 1."""
    model, x = line.model_, line.grid_.centres
    (term,) = model.fit_.posterior.terms
    phi, K = term.features(x), term.factors[0].K.to_dense() / term.variance
    mean, variance = model.predict_f(np.column_stack([x, np.ones(64)]))
    s = line.grid_.cell_volume * np.exp(mean + variance / 2)  # minus the expected second derivative of a Poisson
    answer = np.linalg.solve(K + phi.T @ (s[:, None] * phi), phi.T @ s)
    information = s.sum() - s @ phi @ answer + 0.01
    constant = model.fit_.posterior.intercept
    follows = np.sqrt(constant.variance) * (1 - phi @ constant.answer)
    np.testing.assert_allclose(follows, (1 - phi @ answer) / np.sqrt(information), rtol=0.02, atol=1e-3)


def test_a_homogeneous_pattern_is_constant() -> None:
    covered = []
    for seed in range(3, 7):  # the second of them leans to the right, by 2.7 standard deviations
        x = np.random.default_rng(seed).uniform(0, 5, 250)
        model = CoxProcess(grid=50, random_state=0).fit(x, (0, 5))
        found = model.intensity(np.linspace(0, 5, 30))
        covered.append(np.mean((found.lower < 50) & (found.upper > 50)))
        part = model.expected_count((0, 2.5))
        assert part.lower < 125 < part.upper
        assert part.std > 7.0
    assert np.mean(covered) > 0.85
    assert np.median(covered) == 1.0


def test_three_columns_and_their_names() -> None:
    rng = np.random.default_rng(2)
    points = pd.DataFrame(rng.uniform(0, 1, (60, 3)), columns=["x", "exposure", "t"])
    model = CoxProcess(grid=5, frequencies=1, random_state=0).fit(points, [(0, 1)] * 3)
    assert model.counts_.shape == (5, 5, 5)
    assert model.counts_.sum() == 60
    assert list(model.feature_names_in_) == ["x", "exposure", "t"]
    assert model.n_features_in_ == 3
    assert model.model_.likelihood_.column == "exposure_2"
    assert model.expected_count(n_samples=200).mean == pytest.approx(60, rel=0.02)
    assert model.intensity(points).mean.shape == (60,)
    new = model.sample_points(3, random_state=1)
    assert all(pattern.shape[1] == 3 and np.all((pattern >= 0) & (pattern <= 1)) for pattern in new)


def test_polars_and_arrow_and_lists() -> None:
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    frame = plane(n=40)
    options: dict[str, Any] = {"grid": 6, "frequencies": 1, "random_state": 0}
    wanted = CoxProcess(**options).fit(frame, BOX)
    for other in (polars.DataFrame(frame.to_dict("list")), pyarrow.table(frame.to_dict("list"))):
        model = CoxProcess(**options).fit(other, {"north": (-1, 1), "east": (0, 4)})
        np.testing.assert_allclose(model.intensity(other).mean, wanted.intensity(frame).mean)
    bare = CoxProcess(**options).fit(frame.to_numpy().tolist(), BOX)
    assert not hasattr(bare, "feature_names_in_")
    np.testing.assert_allclose(bare.intensity().mean, wanted.intensity().mean)


def test_times() -> None:
    start = pd.Timestamp("2020-01-01")
    times = pd.DataFrame({"when": start + pd.to_timedelta(10 * curve(n=60), unit="D")})
    window = (start, pd.Timestamp("2020-04-10"))
    model = CoxProcess(grid=20, frequencies=3, random_state=0).fit(times, window)
    assert model.window_[0][0] == 18262.0
    half = model.expected_count({"when": (start, pd.Timestamp("2020-02-20"))})
    assert half.mean == pytest.approx(np.count_nonzero(times.when < "2020-02-20"), rel=0.15)
    with pytest.raises(ValueError, match=r"window for column 0 holds datetime64.*numbers were expected"):
        CoxProcess().fit(curve(), window)


def test_the_window_of_the_points_is_noted() -> None:
    model = CoxProcess(grid=8, frequencies=2).fit(curve(n=30))
    assert model.window_ == ((curve(n=30).min(), curve(n=30).max()),)
    assert "biased upward at its edges" in model.notes_[0]
    assert model.counts_.sum() == 30
    assert not any("window" in note for note in CoxProcess(grid=8, frequencies=2).fit(curve(n=30), WINDOW).notes_)


def test_points_count_as_often_as_they_are_given() -> None:
    once = np.array([1.0, 2.0, 9.9, 10.0])
    model = CoxProcess(Matern12(0), grid=10, frequencies=1).fit(np.concatenate([once, once]), WINDOW)
    np.testing.assert_array_equal(model.counts_, [0, 2, 2, 0, 0, 0, 0, 0, 0, 4])


def test_exposure_is_divided_out() -> None:
    rng = np.random.default_rng(7)
    x = np.concatenate([rng.uniform(0, 5, 200), rng.uniform(5, 10, 50)])
    four = CoxProcess(grid=40, frequencies=4, random_state=0)
    four.fit(x, WINDOW, exposure=lambda c: np.where(c[:, 0] < 5, 4.0, 1.0))
    found = four.intensity(np.array([1.0, 9.0]))
    assert np.all((found.lower < 10) & (found.upper > 10))
    assert four.expected_count((0, 5)).mean == pytest.approx(200, rel=0.06)
    same = clone(four).fit(x, WINDOW, exposure=np.repeat([4.0, 1.0], 20))
    np.testing.assert_allclose(same.intensity().mean, four.intensity().mean)


def test_cells_that_were_not_observed_are_left_out() -> None:
    x = curve()
    hidden = (np.arange(50) >= 10) & (np.arange(50) < 15)
    x = x[(x < 2) | (x >= 3)]
    model = CoxProcess(grid=50, frequencies=5, random_state=0).fit(x, WINDOW, exposure=1.0 * ~hidden)
    assert model.model_.rows_.moments.n == 45
    assert model.expected_count().mean == pytest.approx(x.size, rel=0.02)
    assert model.expected_count((2.0, 3.0)) == (0.0, 0.0, 0.0, 0.0)
    gap, beside = model.intensity(np.array([2.5])), model.intensity(np.array([1.5]))
    assert gap.upper[0] / gap.lower[0] > beside.upper[0] / beside.lower[0]
    with pytest.raises(ValueError, match=r"1 of \d+ points lie in cells of zero exposure, the first at \(2.5\)"):
        clone(model).fit(np.append(x, 2.5), WINDOW, exposure=1.0 * ~hidden)


def test_answers_by_draws_alone(line: CoxProcess) -> None:
    """As with Markov chains, here with the draws of the Gaussian posterior, whose constant is known."""
    drawn = pickle.loads(pickle.dumps(line))
    drawn.inference_ = "mcmc"
    x = np.array([0.5, 4.0, 9.5])
    mean, variance = line.model_.predict_f(np.column_stack([x, np.ones(3)]))
    found = drawn.intensity(x, random_state=0)
    np.testing.assert_allclose(found.mean, np.exp(mean + variance / 2), rtol=0.05)
    np.testing.assert_allclose(found.lower, np.exp(mean - 1.645 * np.sqrt(variance)), rtol=0.1)
    np.testing.assert_allclose(found.upper, np.exp(mean + 1.645 * np.sqrt(variance)), rtol=0.1)
    assert drawn.intensity().mean.shape == (64,)
    count = drawn.expected_count(n_samples=4000)
    assert count.mean == pytest.approx(200, rel=0.01)
    assert count.std == pytest.approx(np.sqrt(200), rel=0.06)  # a wide f carries the level too


def test_regions(area: CoxProcess) -> None:
    seed: dict[str, Any] = {"random_state": 1, "n_samples": 50}
    west = area.expected_count({"east": (0, 2)}, **seed)
    assert west == area.expected_count([(0, 2), (-1, 1)], **seed)
    mask = area.grid_.centres[:, 0].reshape(area.grid_.shape) < 2
    assert west.mean == pytest.approx(area.expected_count(mask, **seed).mean)
    assert area.expected_count(np.zeros((12, 10), bool)).upper == 0.0
    once, again = (area.expected_count(n_samples=50) for _ in range(2))
    assert once == again  # the seed is the estimator's


@given(low=st.floats(0.0, 3.9), width=st.floats(0.01, 4.0), cut=st.floats(0.05, 0.95))
@settings(max_examples=15)
def test_counts_add_up(area: CoxProcess, low: float, width: float, cut: float) -> None:
    high = min(4.0, low + width)
    middle = low + cut * (high - low)
    seed: dict[str, Any] = {"random_state": 1, "n_samples": 2}
    parts = [area.expected_count({"east": ends}, **seed).mean for ends in ((low, middle), (middle, high))]
    assert sum(parts) == pytest.approx(area.expected_count({"east": (low, high)}, **seed).mean, rel=1e-9)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=2))
def test_overlaps_against_loops(ends: list[tuple[float, float]]) -> None:
    box = tuple((min(pair), max(pair)) for pair in ends)
    grid = Grid((np.linspace(0, 1, 4), np.linspace(0, 1, 6)))
    found = grid.overlap(box)
    for i in range(3):
        for j in range(5):
            sides = [
                max(0.0, min(high, edge[k + 1]) - max(low, edge[k]))
                for (low, high), edge, k in zip(box, grid.edges, (i, j), strict=True)
            ]
            assert found[i, j] == pytest.approx(sides[0] * sides[1])


def test_automatic_grids() -> None:
    space = {d: Space.of(as_table(np.zeros((1, d)))) for d in (1, 2, 3)}
    assert make_grid("auto", ((0.0, 1.0),), space[1]).shape == (256,)
    assert make_grid("auto", ((0.0, 1.0), (0.0, 1.0)), space[2]).shape == (64, 64)
    assert make_grid("auto", ((0.0, 4.0), (0.0, 1.0)), space[2]).shape == (128, 32)
    assert make_grid("auto", ((0.0, 1.0), (0.0, 99.0)), space[2]).shape == (32, 128)
    assert make_grid("auto", ((0.0, 1.0),) * 3, space[3]).shape == (16, 16, 16)
    assert make_grid({1: 7}, ((0.0, 1.0), (0.0, 1.0)), space[2]).shape == (64, 7)


def test_simulated_patterns_look_like_the_pattern(line: CoxProcess) -> None:
    patterns = line.sample_points(300, random_state=0)
    sizes = np.array([len(pattern) for pattern in patterns])
    assert sizes.mean() == pytest.approx(200, abs=5)
    assert sizes.std() == pytest.approx(20, rel=0.15)  # Poisson of a Gamma: twice the variance
    left = np.mean(np.concatenate(patterns) < 3.0)
    assert left == pytest.approx(np.mean(curve() < 3.0), abs=0.04)


def test_kernels_of_fewer_columns_and_sums() -> None:
    model = CoxProcess(Matern52("east"), grid=8, frequencies=2).fit(plane(), BOX)
    found = model.intensity().mean
    np.testing.assert_allclose(found, found[:, :1] * np.ones((1, 8)))
    both = CoxProcess(Matern32(0) + Matern32(1), grid=8, frequencies=2, random_state=0).fit(plane(), BOX)
    assert both.expected_count(n_samples=2000).std == pytest.approx(np.sqrt(150), rel=0.1)


def test_domains_hold_the_window() -> None:
    given_ = CoxProcess(grid=16, frequencies=4, domain=(-1, 12)).fit(curve(), WINDOW)
    assert given_.model_.domain_ == {0: (-1.0, 12.0)}
    padded = CoxProcess(grid=16, frequencies=4, edges=0).fit(curve(), WINDOW)
    assert padded.model_.domain_ == {0: (-5.0, 15.0)}
    with pytest.raises(ValueError, match=r"domain of column 0 is \[1, 9\] and must hold its window \[0, 10\]"):
        CoxProcess(domain={0: (1, 9)}).fit(curve(), WINDOW)


def test_conventions(line: CoxProcess) -> None:
    copy = clone(line)
    assert copy.get_params() == line.get_params()
    assert not hasattr(copy, "model_")
    with pytest.raises(NotFittedError):
        copy.intensity()
    with pytest.raises(NotFittedError):
        copy.expected_count()
    back = pickle.loads(pickle.dumps(line))
    assert back.expected_count() == line.expected_count()
    before = dict(vars(back))
    with pytest.raises(ValueError, match="outside the window"):
        back.fit(curve(), (0, 1))
    assert vars(back) == before


@pytest.mark.parametrize(
    ("options", "points", "window", "exposure", "sentence"),
    [
        ({}, np.empty(0), WINDOW, None, "points holds no point"),
        ({}, np.empty((0, 2)), BOX, None, "points holds no point"),
        ({}, np.ones((5, 4)), None, None, "one to 3 columns, the coordinates, and have 4"),
        ({}, np.ones(5), None, None, "all points have the same value 1 in column 0.*give fit the window"),
        ({}, np.array([1.0, np.nan]), WINDOW, None, "NaN"),
        ({}, np.array(["a", "b"]), WINDOW, None, "column 0"),
        (
            {},
            curve(),
            (0, 5),
            None,
            r"\d+ of 200 points lie outside the window: column 0 goes .*; widen the window",
        ),
        ({}, curve(), (10, 0), None, "window for column 0 must be a pair .low, high. with low < high"),
        ({}, curve(), (0, np.inf), None, "window for column 0"),
        ({}, curve(), 3, None, "window must be a pair .low, high., or a dictionary by column; got 3"),
        ({}, plane(), (0, 1), None, "window must be 2 pairs"),
        ({}, plane(), {"east": (0, 4)}, None, "window has no .low, high. for column 'north'"),
        ({}, plane(), {"east": (0, 4), "up": (0, 4)}, None, "window names column 'up', and the points have 'east', 'n"),
        ({"grid": 1}, curve(), WINDOW, None, "grid must be 'auto' or whole numbers of cells from 2 on"),
        ({"grid": "fine"}, curve(), WINDOW, None, "grid must be 'auto'"),
        ({"grid": (4, 4, 4)}, plane(), BOX, None, "grid must be 'auto'.*all 2 column.s."),
        ({"grid": {"up": 4}}, plane(), BOX, None, "grid names column 'up'"),
        ({"grid": 10**5}, plane(), BOX, None, "more than 1e.07 cells"),
        ({"grid": 8}, curve(), WINDOW, np.ones(9), r"exposure has shape \(9,\) and the grid \(8,\)"),
        ({"grid": 8}, curve(), WINDOW, -np.ones(8), "exposure is -1 in some cell"),
        ({"grid": 8}, curve(), WINDOW, np.eye(8)[0], "positive in 1 cell"),
        ({"grid": 8}, curve(), WINDOW, np.full(8, np.nan), "exposure"),
        ({"grid": 8}, curve(), WINDOW, lambda c: c, "8 centres of the cells and must return one number for each"),
        ({"kernel": Categorical(0)}, curve(), WINDOW, None, "takes column 0 for a category"),
        ({"kernel": Matern32(1)}, curve(), WINDOW, None, "the kernel names column 1, and the points have 0"),
        ({"kernel": Matern32(-1)}, curve(), WINDOW, None, "the kernel names column -1"),
        ({"inference": "laplace"}, curve(), WINDOW, None, "inference must be one of 'variational', 'mcmc'"),
    ],
)
def test_refusals_of_fit(options: dict, points: Any, window: Any, exposure: Any, sentence: str) -> None:
    model = CoxProcess(**options)
    with pytest.raises(ValueError, match=sentence):
        model.fit(points, window, exposure)
    assert not hasattr(model, "model_")


def test_refusals_of_answers(line: CoxProcess, area: CoxProcess) -> None:
    with pytest.raises(ValueError, match=r"1 of 2 points lie outside the window.*inside the window alone"):
        line.intensity(np.array([1.0, 11.0]))
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        line.intensity(level=90)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        line.expected_count(level=0.0)
    with pytest.raises(ValueError, match="n_samples must be a whole number from 1 on"):
        line.expected_count(n_samples=0)
    with pytest.raises(ValueError, match="n_samples must be a whole number from 1 on"):
        line.sample_points(1.5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="the region goes from 5 to 11 in column 0 and the window from 0 to 10"):
        line.expected_count((5, 11))
    with pytest.raises(ValueError, match=r"the region has shape \(3,\) and the grid \(64,\)"):
        line.expected_count(np.ones(3, bool))
    with pytest.raises(ValueError, match="region must be 2 pairs"):
        area.expected_count((0, 1))
    with pytest.raises(ValueError, match="feature names"):
        area.intensity(pd.DataFrame({"x": [1.0], "y": [0.0]}))


def test_too_many_cells_for_a_solver_without_a_factor(line: CoxProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    def few(*args: Any) -> None:
        raise ValueError("a joint distribution over 64 rows needs a solution per row")

    monkeypatch.setattr(type(line.model_.posterior_), "draws", few)
    with pytest.raises(ValueError, match=r"drawn at all cells of the region together, and a joint.*; take a smaller"):
        line.expected_count()
