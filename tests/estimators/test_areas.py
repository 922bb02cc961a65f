"""Levels that know their neighbours in fits: against the dense field, from every source, under other likelihoods."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import vff
from vff import Areas, Categorical, GPRegressor, Matern32, Ordered, likelihoods
from vff.cli import main

SIDE, NOISE = 5, 0.2
NAMES = [f"r{n:02d}" for n in range(SIDE * SIDE)]
PAIRS = [(NAMES[n], NAMES[n + 1]) for n in range(SIDE * SIDE - 1) if (n + 1) % SIDE]
PAIRS += [(NAMES[n], NAMES[n + SIDE]) for n in range(SIDE * (SIDE - 1))]
EMPTY = {"r12", "r24", "isle"}
"""Areas without rows."""
HELD = {"noise_variance": NOISE, "optimizer": None, "normalize_y": False}
GIVEN = Areas("region", PAIRS, levels=["isle"], variance=1.0, ratio=4.0)
BARE = Areas("region", GIVEN.neighbours)
GRADES = ["none", "some", "much", "all"]


def draw(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    every, held = [*NAMES, "isle"], [name for name in NAMES if name not in EMPTY]
    field = np.linalg.cholesky(GIVEN(every, every) + 1e-9 * np.eye(len(every))) @ rng.standard_normal(len(every))
    region = rng.choice(held, n)
    grade = pd.Categorical(rng.choice(GRADES[:-1], n), categories=GRADES, ordered=True)
    frame = pd.DataFrame({"region": region, "t": rng.uniform(0.0, 6.0, n), "grade": grade})
    f = field[[every.index(own) for own in region]] + 0.5 * np.sin(frame["t"]) + 0.4 * grade.codes
    return frame, f.to_numpy() + np.sqrt(NOISE) * rng.standard_normal(n)


@pytest.fixture(scope="module")
def rows():
    return draw(400)


def evidence(K, y):
    L = np.linalg.cholesky(K + NOISE * np.eye(y.size))
    white = np.linalg.solve(L, y)
    return -0.5 * white @ white - np.log(np.diag(L)).sum() - 0.5 * y.size * np.log(2.0 * np.pi)


FIELDS = {
    "bym2": GIVEN,
    "proper": Areas("region", GIVEN.neighbours, kind="proper", variance=1.0, lengthscale=2.0),
    "ordered": Ordered("grade", GRADES, variance=0.5),
}


@pytest.mark.parametrize("field", FIELDS)
def test_nothing_is_left_out_of_a_field(rows, field):
    """All levels have a feature, so the bound is the evidence; with a Matérn beside or in a product it is below."""
    (frame, y), kernel = rows, FIELDS[field]
    column, t = frame[kernel.column], frame["t"].to_numpy()
    smooth = Matern32("t", variance=0.5, lengthscale=2.0)
    C, S = kernel(column, column), smooth(t, t)
    assert GPRegressor(kernel, **HELD).fit(frame, y).elbo_ == pytest.approx(evidence(C, y), rel=1e-10)
    for written, K in ((kernel + smooth, C + S), (kernel * smooth, C * S)):
        exact, bounds = evidence(K, y), []
        for M in (3, 40):
            bounds.append(GPRegressor(written, frequencies=M, **HELD).fit(frame, y).elbo_)
        assert bounds[0] < bounds[1] < exact
        assert bounds[1] > exact - 0.5


def test_areas_without_rows_follow_their_neighbours(rows):
    """The conditional distribution of the dense field, without a warning; an island knows nothing."""
    frame, y = rows
    model = GPRegressor(GIVEN, **HELD).fit(frame, y)
    new = pd.DataFrame({"region": ["r12", "r24", "isle", "r00"], "t": 0.0, "grade": "none"})
    mean, variance = model.predict_f(new)
    seen, cross = frame["region"], GIVEN(new["region"], frame["region"])
    K = GIVEN(seen, seen) + NOISE * np.eye(len(y))
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(K, y), atol=1e-9)
    left = np.diagonal(GIVEN(new["region"], new["region"])) - np.sum(cross.T * np.linalg.solve(K, cross.T), axis=0)
    np.testing.assert_allclose(variance, left, atol=1e-9)
    assert (mean[2], variance[2]) == pytest.approx((0.0, 1.0))
    with pytest.warns(vff.ExtrapolationWarning, match="level of column 'region' that the fit has not seen"):
        mean, variance = model.predict_f(pd.DataFrame({"region": ["elsewhere"], "t": 0.0, "grade": "none"}))
    assert (mean[0], variance[0]) == pytest.approx((0.0, 1.0))


@pytest.mark.parametrize("kind", ["bym2", "proper"])
def test_learning_finds_the_peak_of_the_evidence(kind):
    frame, y = draw(300, seed=5)
    model = GPRegressor(Areas("region", GIVEN.neighbours, kind=kind), normalize_y=False).fit(frame, y)
    (name,) = model.kernel_.given

    def height(step):
        variance, shape, noise = np.exp(step) * [
            model.kernel_.variance,
            model.kernel_.given[name],
            model.noise_variance_,
        ]
        own = replace(model.kernel_, variance=variance, **{name: shape})(frame["region"], frame["region"])
        return evidence(own + (noise - NOISE) * np.eye(len(y)), y)

    top = height(np.zeros(3))
    assert model.elbo_ == pytest.approx(top, rel=1e-9)
    for number in range(3):
        step = 1e-3 * (np.arange(3) == number)
        assert height(step) - height(-step) == pytest.approx(0.0, abs=2e-5)
        assert max(height(100 * step), height(-100 * step)) < top


def test_effects_are_found():
    frame, y = draw(3000, seed=4)
    model = GPRegressor(BARE + Matern32("t") + Ordered("grade")).fit(frame, y)
    assert model.noise_variance_ == pytest.approx(NOISE, rel=0.1)
    effect = model.predict_f(pd.DataFrame({"region": "r00", "t": 1.0, "grade": GRADES}))[0]
    np.testing.assert_allclose(np.diff(effect[:3]), 0.4, atol=0.1)
    assert model.column_levels_[2] == tuple(GRADES)


def test_a_sum_with_categorical_shares_the_column(rows):
    """BYM with two variances: one set of codes, and what is the same covariance is the same bound."""
    frame, y = rows
    split = Areas("region", GIVEN.neighbours, variance=0.8, ratio=1e4) + Categorical("region", variance=0.2)
    model = GPRegressor(split, **HELD).fit(frame, y)
    assert len(model.statistics_.binding.columns) == 1
    assert model.elbo_ == pytest.approx(GPRegressor(GIVEN, **HELD).fit(frame, y).elbo_, abs=0.05)
    assert model.column_levels_ == (GIVEN.levels_named,)
    after = GPRegressor(Categorical("region", variance=0.2) + split, **HELD).fit(frame, y)
    assert after.column_levels_ == (GIVEN.levels_named,)


def test_two_graphs_of_one_column(rows):
    """Levels in another order are another axis of the same column."""
    frame, y = rows
    line = Ordered("region", [*NAMES[::-1], "isle"], variance=0.3)
    C = GIVEN(frame["region"], frame["region"]) + line(frame["region"], frame["region"])
    model = GPRegressor(GIVEN + line, **HELD).fit(frame, y)
    assert model.elbo_ == pytest.approx(evidence(C, y), rel=1e-9)


@pytest.mark.parametrize(
    ("kernel", "column", "sentence"),
    [
        (
            Areas("g", [("a", "b")]),
            ["a", "b", "c"],
            "column 'g' of X holds 'c', and its neighbours name 'a', 'b'; give",
        ),
        (Areas("g", [("1", "2")]), [1, 2, 1], "where '1' is not 1; name levels as the column does"),
        (Areas("g", [("a", "b")]), ["a", "b", None], "a missing value has no place among 'a', 'b'; drop or fill"),
        (Ordered("g"), ["a", "b", "b"], r"Ordered\('g'\) needs the order of its levels, and column 'g' of X has none"),
        (Ordered("g"), [1, 2, 3], r"Ordered\('g'\) needs the order of its levels"),
        (Ordered("g", [1, 2]), [1, 2, 3], "column 'g' of X holds 3, and levels= 1, 2; give these levels a place"),
    ],
)
def test_levels_that_have_no_place_are_refused(kernel, column, sentence):
    with pytest.raises(ValueError, match=sentence):
        GPRegressor(kernel, missing="refuse").fit(pd.DataFrame({"g": column}), [1.0, 2.0, 3.0])
    chunks = [pd.DataFrame({"g": column, "y": [1.0, 2.0, 3.0]})] * 2
    with pytest.raises(ValueError, match=sentence):
        GPRegressor(Categorical("g") + kernel, missing="refuse").fit(vff.scan(chunks), "y")


def test_every_source_gives_the_same(rows, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    frame, y = rows
    kernel = BARE + Ordered("grade", GRADES) + Matern32("t")
    given = {"frequencies": 10, "domain": {"t": (0.0, 6.0)}}
    expected = GPRegressor(kernel, **given).fit(frame, y)
    whole = frame.assign(y=y, grade=frame["grade"].astype(str)).sort_values("region")  # chunks know different areas
    whole.to_csv(tmp_path / "rows.csv", index=False)
    for source in (
        vff.scan(str(tmp_path / "rows.csv"), chunk_rows=70),
        dd.from_pandas(whole, npartitions=4),
        pl.from_pandas(whole).lazy(),
    ):
        model = GPRegressor(kernel, **given).fit(source, "y")
        assert model.elbo_ == pytest.approx(expected.elbo_, rel=1e-7)
        assert model.column_levels_ == expected.column_levels_
    parts = GPRegressor(kernel, **given)
    for start in range(0, 400, 100):
        some = whole.iloc[start : start + 100]
        parts.partial_fit(some.drop(columns="y"), some["y"])
    assert parts.elbo_ == pytest.approx(expected.elbo_, rel=1e-7)
    parts.forget(whole.iloc[:100].drop(columns="y"), whole["y"].iloc[:100])
    rest = GPRegressor(kernel, **given).fit(whole.iloc[100:].drop(columns="y"), whole["y"].iloc[100:])
    assert parts.elbo_ == pytest.approx(rest.elbo_, rel=1e-6)


def test_the_order_is_that_of_the_column(rows):
    frame, y = rows
    expected = GPRegressor(Ordered("grade", GRADES, variance=1.0), **HELD).fit(frame, y)
    enum = pl.DataFrame({"grade": pl.Series(frame["grade"].astype(str).tolist(), dtype=pl.Enum(GRADES))})
    for table in (frame[["grade"]], enum):
        model = GPRegressor(Ordered("grade", variance=1.0), **HELD).fit(table, y)
        assert model.elbo_ == expected.elbo_
        assert model.column_levels_ == (tuple(GRADES),)
        assert model.kernel_ == expected.kernel_
    plain = frame[["grade"]].assign(grade=frame["grade"].cat.as_unordered())
    with pytest.raises(ValueError, match="needs the order of its levels"):
        GPRegressor(Ordered("grade")).fit(plain, y)


def test_counts_with_exposure_and_a_file(rows, tmp_path):
    """Poisson counts: near the posterior mode of the dense field, and the same after it was stored."""
    frame, _ = rows
    rng = np.random.default_rng(1)
    expected = rng.uniform(2.0, 9.0, len(frame))
    risk = dict(zip(NAMES, np.exp(0.5 * rng.standard_normal(len(NAMES))), strict=True))
    table = frame.assign(expected=expected)
    y = rng.poisson(expected * frame["region"].map(risk))
    model = GPRegressor(BARE, likelihood=likelihoods.Poisson(exposure="expected")).fit(table, y)
    one = table.groupby("region").agg(expected=("expected", "sum"))
    mean, variance = model.predict_f(pd.DataFrame({"region": one.index, "t": 0.0, "grade": "none", "expected": 1.0}))
    raw = np.log(pd.Series(y).groupby(frame["region"].to_numpy()).sum() / one["expected"])
    assert np.corrcoef(mean, raw)[0, 1] > 0.95
    assert np.all(np.abs(mean - raw) < 3.0 * np.sqrt(variance) + 0.2)
    model.save(tmp_path / "model.vff")
    again = vff.load(tmp_path / "model.vff")
    assert again.kernel_ == model.kernel_
    assert np.array_equal(again.predict(table), model.predict(table))


@pytest.mark.parametrize("covariance", ["kronecker", "factorised"])
def test_structured_covariances(rows, covariance):
    frame, y = rows
    kernel = GIVEN * Matern32("t", variance=1.0, lengthscale=2.0)
    given = {"optimizer": None, "frequencies": 3, "likelihood": "poisson"}
    y = np.random.default_rng(0).poisson(np.exp(y))
    full = GPRegressor(kernel, **given).fit(frame, y)
    some = GPRegressor(kernel, covariance=covariance, **given).fit(frame, y)
    assert some.elbo_ <= full.elbo_ + 1e-3
    assert np.corrcoef(some.predict(frame), full.predict(frame))[0, 1] > 0.9


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_chains_agree_with_the_bound():
    frame, y = draw(1500, seed=2)
    kernel = BARE + Ordered("grade")
    model = GPRegressor(kernel).fit(frame, y)
    chains = GPRegressor(kernel, inference="mcmc", draws=150, chains=2, random_state=0).fit(frame, y)
    new = pd.DataFrame({"region": NAMES, "t": 0.0, "grade": "some"})
    (mean, variance), (other, wider) = model.predict_f(new), chains.predict_f(new)
    np.testing.assert_allclose(other, mean, atol=0.15)
    np.testing.assert_allclose(np.sqrt(wider), np.sqrt(variance), atol=0.1)


def test_the_command_line_reads_neighbours(rows, tmp_path, capsys):
    frame, y = rows
    frame.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "pairs.csv").write_text("one,other\n" + "".join(f"{a},{b}\n" for a, b in PAIRS) + "isle,\n")
    terms = f"areas(region, '{tmp_path}/pairs.csv') + ordered(grade, levels=['none', 'some', 'much', 'all'])"
    words = ["fit", f"{tmp_path}/rows.csv", "--target", "y", "--out", f"{tmp_path}/model.vff", "--quiet", "--terms"]
    assert main([*words, terms]) == 0
    model = vff.load(tmp_path / "model.vff")
    expected = GPRegressor(BARE + Ordered("grade")).fit(frame, y)
    assert model.kernel_.terms[0].neighbours == GIVEN.neighbours
    assert model.elbo_ == pytest.approx(expected.elbo_, rel=1e-7)
    assert main(["effects", f"{tmp_path}/model.vff", "--out", f"{tmp_path}/effects.csv", "--quiet"]) == 0
    assert "isle" in (tmp_path / "effects.csv").read_text()
    capsys.readouterr()
    (tmp_path / "bad.csv").write_text("one,other\na,b,c\n")
    for file, sentence in (("none.csv", "cannot be read"), ("bad.csv", "found ['a', 'b', 'c'] in line 2")):
        assert main([*words, f"areas(region, '{tmp_path}/{file}')", "--force"]) == 3
        assert sentence in capsys.readouterr().err
    assert main([*words, "areas(region, pairs.csv)", "--force"]) == 2


def test_numbers_in_a_file_of_pairs(tmp_path):
    table = pd.DataFrame({"zone": [1, 2, 3] * 20, "y": np.random.default_rng(0).normal(size=60)})
    table.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "pairs.tsv").write_text("one\tother\n1\t2\n2\t3\n")
    words = ["fit", f"{tmp_path}/rows.csv", "--target", "y", "--out", f"{tmp_path}/model.vff", "--quiet", "--terms"]
    assert main([*words, f"areas(zone, '{tmp_path}/pairs.tsv', kind='proper')"]) == 0
    assert vff.load(tmp_path / "model.vff").column_levels_ == ((1, 2, 3),)


def test_effects_are_drawn_in_order(rows):
    pytest.importorskip("matplotlib").use("Agg")
    frame, y = rows
    model = GPRegressor(BARE + Ordered("grade"), frequencies=5).fit(frame, y)
    figure = vff.plot.effects(model)
    assert len(figure.axes) >= 2


def test_an_order_that_a_column_has_is_saved_and_drawn(tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    rng, order = np.random.default_rng(0), ["0-4", "5-17", "18-64", "65+"]
    codes = rng.integers(4, size=120)
    frame = pd.DataFrame({"age": pd.Categorical.from_codes(codes, order, ordered=True)})
    y = np.array([0.0, 3.0, -1.0, 2.0])[codes] + 0.3 * rng.normal(size=120)
    for kernel in (Ordered("age"), Ordered("age", order)):
        model = GPRegressor(kernel).fit(frame, y)
        model.save(tmp_path / "model.vff")
        np.testing.assert_array_equal(vff.load(tmp_path / "model.vff").predict(frame), model.predict(frame))
        texts = frame.astype(str) if kernel.levels else frame
        figure = vff.plot.effects(GPRegressor(kernel).fit(texts, y))
        assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == order
