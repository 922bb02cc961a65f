"""What once went wrong between memory, files, streams and clusters, and must not again."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from vff import Categorical, GPClassifier, GPRegressor, Matern32, load, scan
from vff.estimators.saving import describe

pytest.importorskip("pyarrow")


def made(n: int, levels: str = "abc", seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"x": rng.uniform(size=n), "z": rng.integers(0, 9, n), "g": rng.choice(list(levels), n)})
    table["y"] = np.sin(5 * table.x) + 0.1 * table.z + (table.g == "a") + rng.normal(scale=0.3, size=n)
    return table


def test_levels_that_come_late_keep_their_effects_under_any_likelihood():
    kernel = Matern32("x") + Categorical("g")
    first, second = made(200, "bc"), made(200, "ac", seed=1)
    for table in (first, second):
        table["calls"] = np.random.default_rng(2).poisson(np.exp(table.y))
    used = ["x", "g"]

    def new() -> GPRegressor:
        return GPRegressor(kernel, likelihood="poisson", domain={"x": (0, 1)}, frequencies=6)

    memory = new().partial_fit(first[used], first.calls).partial_fit(second[used], second.calls)
    chunks = new().partial_fit([first], "calls").partial_fit([second], "calls")
    asked = pd.DataFrame({"x": 0.5, "g": list("abc")})
    np.testing.assert_allclose(chunks.predict_f(asked)[0], memory.predict_f(asked)[0], atol=1e-6)


def test_integers_too_large_for_floats_are_levels_of_their_own(tmp_path: Path):
    table = made(300)
    table["id"] = 2**60 + np.random.default_rng(0).integers(0, 5, 300)
    table["y"] += table.id % 5
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    models = [
        GPRegressor(Matern32("x") + Categorical("id"), frequencies=6).fit(str(tmp_path / name), "y")
        for name in ("t.csv", "t.parquet")
    ]
    assert models[0].rows_.binding.columns[1].levels == models[1].rows_.binding.columns[1].levels
    assert models[0].elbo_ == pytest.approx(models[1].elbo_, rel=1e-9)


def test_missing_text_is_a_level_wherever_the_rows_are(tmp_path: Path):
    table = made(300)
    table.loc[::5, "g"] = None
    table.loc[::7, "x"] = np.nan
    table.to_parquet(tmp_path / "t.parquet")
    kept = int(table.x.notna().sum())
    for source in (str(tmp_path / "t.parquet"), [table]):
        model = GPRegressor(frequencies=4).fit(scan(source, missing="drop"), "y")
        assert model.rows_.moments.n == kept
        assert None in (model.rows_.binding.columns[2].levels or ())


SAID = "{} rows were left out because cells were missing or infinite"


def _holed(n: int, seed: int = 0) -> pd.DataFrame:
    """Every tenth row lacks x, and is to be left out."""
    table = made(n, seed=seed)[["x", "z", "y"]]
    table["calls"], table["label"] = (
        np.round(np.exp(table.y)),
        np.where(table.y > 0.7, "p", np.where(table.z > 4, "q", "r")),
    )
    table.loc[::10, "x"] = np.nan
    return table


@pytest.mark.parametrize("likelihood", ["gaussian", "poisson"])
@pytest.mark.parametrize("domain", ["auto", {"x": (0.0, 1.0), "z": (0.0, 8.0)}], ids=["two passes", "one pass"])
def test_rows_that_were_left_out_are_counted_in_the_notes(tmp_path: Path, domain, likelihood):
    table = _holed(200)
    target = "y" if likelihood == "gaussian" else "calls"
    rows = table[["x", "z", target]]
    rows.to_csv(tmp_path / "t.csv", index=False)
    model = GPRegressor(frequencies=4, domain=domain, likelihood=likelihood)
    assert clone(model).fit(rows.dropna()[["x", "z"]], rows.dropna()[target]).notes_ == ()
    for source in (tmp_path / "t.csv", [rows[:90], rows[90:]]):
        assert clone(model).fit(scan(source, missing="drop", chunk_rows=70), target).notes_ == (SAID.format(20),)
    model.fit(scan([rows], missing="drop"), target).save(tmp_path / "m.vff")
    assert load(tmp_path / "m.vff").notes_ == describe(tmp_path / "m.vff").notes == (SAID.format(20),)


def test_rows_left_out_are_added_up_and_forgotten(tmp_path: Path):
    first, second = _holed(200), _holed(100, seed=1)
    used = ["x", "z", "y"]
    model = GPRegressor(frequencies=4, domain={"x": (0.0, 1.0), "z": (0.0, 8.0)})

    def rows(*tables: pd.DataFrame):
        return scan([table[used] for table in tables], missing="drop")

    grown = clone(model).partial_fit(rows(first), "y").partial_fit(rows(second), "y")
    assert grown.notes_ == (SAID.format(30),)
    assert grown.partial_fit(rows(first[:1]), "y").notes_ == (SAID.format(31),)
    assert grown.forget(rows(second), "y").notes_ == (SAID.format(21),)
    parts = [clone(model).collect(rows(table), "y") for table in (first, second)]
    parts[0].save(tmp_path / "part.vffm")
    assert describe(tmp_path / "part.vffm").notes == (SAID.format(20),)
    assert parts[0].merge(parts[1]).learn().notes_ == (SAID.format(30),)
    one = clone(model).fit(rows(first[:5]), "y").notes_[0]
    assert one == "1 row was left out because cells were missing or infinite"


def test_rows_left_out_are_said_once_where_there_is_a_model_per_class(tmp_path: Path):
    table = _holed(200)[["x", "label"]]
    model = GPClassifier(frequencies=4).fit(scan([table], missing="drop"), "label")
    assert model.classes_.tolist() == ["p", "q", "r"]
    assert [note for note in model.notes_ if "left out" in note] == [SAID.format(20)]
    model.save(tmp_path / "m.vff")
    assert load(tmp_path / "m.vff").notes_ == model.notes_


def test_rows_that_a_database_leaves_out_are_counted():
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("ibis")
    table = _holed(200)[["x", "z", "y", "calls"]].copy()
    for target, likelihood in (("y", "gaussian"), ("calls", "poisson")):
        rows = scan(duckdb.from_df(table[["x", "z", target]].round(2)), missing="drop")
        model = GPRegressor(frequencies=4, likelihood=likelihood).fit(rows, target)
        assert model.notes_[0] == SAID.format(20)


def test_a_label_of_dropped_rows_is_no_class():
    table = made(200)
    table["label"] = np.where(table.y > 0.5, "p", "q")
    table.loc[3, ["x", "label"]] = [np.nan, "zzz"]
    model = GPClassifier(Matern32("x"), frequencies=4).fit(scan([table], missing="drop"), "label")
    assert model.classes_.tolist() == ["p", "q"]


def test_rows_beyond_the_domain_are_forgotten_after_sums_were_merged():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.uniform(-0.2, 1.2, 600), "y": 1e4 + rng.standard_t(2, 600) * 100})
    parts = [table[i : i + 100] for i in range(0, 600, 100)]

    def new() -> GPRegressor:
        return GPRegressor(Matern32("x"), domain={"x": (0, 1)}, frequencies=8)

    model = new().fit(scan(lambda: iter(parts)), "y").forget(parts[-1][["x"]], parts[-1].y)
    other = new().fit(table[["x"]][:500], table.y[:500])
    assert model.elbo_ == pytest.approx(other.elbo_, rel=1e-9)


def test_a_model_that_collected_more_is_saved_after_it_learnt(tmp_path: Path):
    table = made(200)
    used = ["x", "g"]
    model = GPRegressor(Matern32("x") + Categorical("g"), domain={"x": (0, 1)}, frequencies=6)
    model.partial_fit(table[used], table.y).collect(made(50, "d", seed=3)[used], made(50, "d", seed=3).y)
    with pytest.raises(ValueError, match=r"learn\(\) before"):
        model.save(tmp_path / "m.vff")
    model.learn().save(tmp_path / "m.vff")


def test_columns_may_come_in_another_order():
    first, second = made(200), made(200, seed=1)
    kernel = Matern32("x") + Matern32("z")
    options = {"domain": {"x": (0, 1), "z": (0, 8)}, "frequencies": 6}
    turned = second[["y", "z", "x"]]
    whole = GPRegressor(kernel, **options).fit(pd.concat([first, second])[["x", "z"]], pd.concat([first, second]).y)
    added = GPRegressor(kernel, **options).partial_fit([first], "y").partial_fit([turned], "y")
    merged = GPRegressor(kernel, **options).collect([first], "y")
    merged.merge(GPRegressor(kernel, **options).collect([turned], "y")).learn()
    for model in (added, merged):
        np.testing.assert_allclose(model.predict(first[["x", "z"]]), whole.predict(first[["x", "z"]]), atol=1e-8)


def test_rows_that_change_between_passes_are_refused():
    tables = iter([made(200), made(200).assign(z=lambda t: t.z + 100)])
    with pytest.raises(ValueError, match="the first pass over the rows did not see"):
        GPRegressor(Matern32("z")).fit(scan(lambda: iter([next(tables)])), "y")


@pytest.mark.parametrize("seed", [1, 6])
def test_rows_of_whole_numbers_are_forgotten(seed):
    """On these some waves of the domain vanish at every row, so that rounding is all there is of them."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 300, (400, 1)).astype(float)
    y = np.sin(x[:, 0] / 50.0) + 0.15 * rng.normal(size=400)
    left = GPRegressor().fit(x, y).forget(x[:10], y[:10])
    assert left.fit_.n == 390


def test_rows_that_were_never_seen_are_not_forgotten():
    table = made(900)
    used, kernel = ["x", "g"], Matern32("x") + Categorical("g")
    model = GPRegressor(kernel, domain={"x": (0, 1)}, frequencies=6).fit(table[used][:800], table.y[:800])
    with pytest.raises(ValueError, match="not among the rows seen"):
        model.forget(table[used][:10], table.y[:10] + 5000.0)
    few = table[table.g == "a"][:800]
    with pytest.raises(ValueError, match="not among the rows seen"):
        model.forget(few[used], few.y).forget(few[used], few.y)


def test_rows_are_counted_one_by_one_under_any_likelihood(tmp_path: Path):
    table = pd.concat([made(50)] * 3, ignore_index=True)
    table["calls"] = np.repeat([1, 2, 3], 50)
    table["calls"] = table.groupby("x").calls.transform("first")
    model = GPRegressor(Matern32("z"), likelihood="poisson", frequencies=4).fit(scan([table]), "calls")
    model.save(tmp_path / "m.vff")
    from vff.estimators import describe

    assert describe(tmp_path / "m.vff").rows == 150


def test_a_model_of_files_picks_its_columns_by_name(tmp_path: Path):
    table = made(200)
    table.to_parquet(tmp_path / "t.parquet")
    model = GPRegressor(Matern32("x") + Matern32("z"), frequencies=4).fit(str(tmp_path / "t.parquet"), "y")
    expected = model.predict(table[["x", "z"]])
    np.testing.assert_array_equal(model.predict(table[["y", "z", "g", "x"]]), expected)
    with pytest.raises(ValueError, match="X has no column 'z'"):
        model.predict(table[["x"]])
