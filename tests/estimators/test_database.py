"""Fits inside a database: the model is that of the same rows in memory, and only sums come out."""

import sqlite3
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from vff import GPClassifier, GPRegressor, scan
from vff.data import DatabaseTable
from vff.estimators.grouped import bundled
from vff.kernels import Categorical, Kernel, Matern12, Matern32
from vff.likelihoods import Poisson
from vff.moments import Moments

pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
ibis = pytest.importorskip("ibis")
pytestmark = [  # Ibis 12 calls what DuckDB and pandas will not have for ever
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option"),
]

N = 4_000
ADDITIVE = Matern32("hour") + Matern32("age") + Categorical("shop")
PRODUCT = Matern32("hour") * Matern32("age") + Categorical("shop") * Matern12("hour")
DAY = 86_400 * 10**6


def made(seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    hour, age = random.integers(24, size=N), random.integers(40, size=N) / 4
    f = np.sin(hour / 4) + np.cos(age / 2) * hour / 24
    return pa.table(
        {
            "hour": hour,
            "age": age,
            "shop": random.choice(np.array(["east", "north", None], object), N),
            "day": pa.array(random.integers(100, size=N) * DAY + DAY // 2, pa.timestamp("us")),
            "open": random.random(N) < 0.5,
            "y": 100.0 + f + random.normal(size=N),
            "w": random.integers(4, size=N),
            "visits": random.poisson(np.exp(f / 2) * (1 + hour % 3)),
            "hours": 1 + hour % 3,
        }
    )


ROWS = made()


def table(rows: Any = ROWS) -> DatabaseTable:
    """In DuckDB, behind a relation."""
    return scan(duckdb.from_arrow(rows))


def given(kernel: Kernel, **options: Any) -> GPRegressor:
    return GPRegressor(kernel, **{"frequencies": 6, "optimizer": None, **options})


def twin(model: Any) -> Any:
    return clone(model)


def in_memory(model: Any, rows: Any = ROWS, y: str = "y", w: str | None = None) -> Any:
    kept = [name for name in rows.column_names if name not in ("y", "w", "visits")]
    return model.fit(rows.select(kept), rows[y], None if w is None else rows[w])


def assert_same_sums(found: Moments, expected: Moments) -> None:
    assert found.request == expected.request
    assert (found.n, found.weight) == (expected.n, expected.weight)
    expected = expected.recentred(found.offset)
    np.testing.assert_allclose(found.target_squared, expected.target_squared, rtol=1e-12)
    np.testing.assert_allclose(found.target, expected.target, atol=1e-12 * 100 * found.weight)
    pairs = [*zip(found.grams, expected.grams, strict=True)]
    pairs += [(found.blocks[pair], expected.blocks[pair]) for pair in expected.blocks]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, atol=1e-12 * np.abs(other).max())
    scale = 1e-12 * np.sqrt(found.weight * found.target_squared)
    for one, other in zip(found.projects, expected.projects, strict=True):
        np.testing.assert_allclose(one, other, atol=scale)


def answers(model: Any, rows: Any = ROWS) -> np.ndarray:
    return model.predict(rows.slice(0, 50).select([str(name) for name in model.feature_names_in_]))


MODELS = {
    "one column": Matern32("hour"),
    "terms": ADDITIVE,
    "products": PRODUCT,
    "levels alone": Categorical("shop"),
    "times and booleans": Matern32("day") + Matern32("open") + Matern32("age"),
    "a column twice": Matern32("hour") + Categorical("hour"),
}


@pytest.mark.parametrize("w", [None, "w"], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("kernel", MODELS.values(), ids=MODELS.keys())
def test_sums_and_models_are_those_of_rows_in_memory(kernel: Kernel, w: str | None) -> None:
    found, expected = given(kernel).fit(table(), "y", sample_weight=w), in_memory(given(kernel), w=w)
    assert_same_sums(found.rows_.moments, expected.rows_.moments)
    np.testing.assert_allclose(found.elbo_, expected.elbo_, rtol=1e-9)
    np.testing.assert_allclose(answers(found), answers(expected), rtol=1e-9)


@pytest.mark.parametrize("kernel", [ADDITIVE, PRODUCT, None], ids=["terms", "products", "no kernel"])
def test_what_is_found_by_itself_is_found_in_the_database(kernel: Kernel | None) -> None:
    rows = ROWS.select(["hour", "age", "shop", "y"])
    model = GPRegressor(kernel, optimizer=None)
    found, expected = twin(model).fit(table(rows), "y"), in_memory(model, rows)
    assert (found.domain_, found.edges_) == (expected.domain_, expected.edges_)
    assert found.frequencies_ == expected.frequencies_
    np.testing.assert_allclose(found.elbo_, expected.elbo_, rtol=1e-9)
    assert list(found.feature_names_in_) == ["hour", "age", "shop"]


def test_detail_of_one_column_is_seen_in_sums_by_value() -> None:
    random = np.random.default_rng(0)
    x, z = random.integers(1000, size=N), random.integers(10, size=N)
    y = np.sin(2 * np.pi * 150 * x / 1000) + z + random.normal(size=N)
    rows = pa.table({"x": x, "z": z, "y": y})
    kernel = Matern32("x") + Matern32("z")
    model = GPRegressor(kernel, optimizer=None)
    found, expected = twin(model).fit(table(rows), "y"), in_memory(model, rows)
    assert found.rows_.highest_frequencies == expected.rows_.highest_frequencies
    assert found.rows_.highest_frequencies[0] >= 150


def test_levels_may_be_more_than_values_of_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vff.estimators.grouped._MOST_VALUES", 100)
    random = np.random.default_rng(0)
    g, x = random.integers(600, size=N), random.integers(50, size=N)
    y = random.normal(size=600)[g] + np.sin(x / 8) + 0.5 * random.normal(size=N)
    rows = pa.table({"g": g, "x": x, "y": y})
    model = GPRegressor(Categorical("g") + Matern32("x"))
    found, expected = twin(model).fit(table(rows), "y"), in_memory(model, rows)
    assert found.solver_ == expected.solver_ == "eliminating"
    np.testing.assert_allclose(found.elbo_, expected.elbo_, rtol=1e-9)
    np.testing.assert_allclose(found.coefficients().std, expected.coefficients().std, rtol=1e-5)


def test_only_cells_move() -> None:
    rows = table()
    given(ADDITIVE).fit(rows, "y")
    totals, *columns, cells = rows.queries
    assert totals.rows == 1
    assert sorted(query.rows for query in columns) == [3, 24, 40]
    assert cells.rows <= 3 * 24 * 40 < N
    assert "ORDER BY" in cells.sql


def test_sets_of_columns_are_asked_for_together_while_cells_are_few() -> None:
    pairs = [(0, 1), (0, 2), (1, 2)]
    assert bundled(pairs, [10, 10, 10], 1000) == [(0, 1, 2)]
    assert bundled(pairs, [10, 10, 10], 999) == pairs
    assert bundled([(0, 1), (2, 3), (0, 2)], [2, 2, 1000, 2], 2000) == [(0, 1), (2, 3), (0, 2)]
    assert bundled([], [], 9) == []


def test_many_cells_are_asked_for_set_by_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vff.estimators.grouped._TOGETHER", 10)
    rows = table()
    found, expected = given(ADDITIVE).fit(rows, "y"), in_memory(given(ADDITIVE))
    assert [query.rows for query in rows.queries[:4]] == [1, 24, 40, 3]
    assert sorted(query.rows for query in rows.queries[4:]) == [3 * 24, 3 * 40, 943]
    assert_same_sums(found.rows_.moments, expected.rows_.moments)


def sqlite(path: Path) -> Any:
    names = ["hour", "age", "shop", "y", "w"]
    connection = sqlite3.connect(path)
    connection.execute("create table rows (hour integer, age real, shop text, y real, w integer)")
    rows = (tuple(row.values()) for row in ROWS.select(names).to_pylist())
    connection.executemany("insert into rows values (?, ?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return ibis.sqlite.connect(path).table("rows")


def in_duckdb(path: Path) -> Any:
    import pyarrow.parquet

    pyarrow.parquet.write_table(ROWS, path)
    return ibis.duckdb.connect().read_parquet(path)


BACKENDS = {"duckdb": in_duckdb, "sqlite": sqlite, "memory": lambda path: ibis.memtable(ROWS)}


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS.keys())
def test_any_backend_by_the_same_code(backend: Any, tmp_path: Path) -> None:
    rows = backend(tmp_path / "rows")
    found = given(ADDITIVE).fit(rows, "y", sample_weight="w")
    if backend is sqlite:
        rows.get_backend().disconnect()  # Python warns of those left open, from 3.13 on
    assert_same_sums(found.rows_.moments, in_memory(given(ADDITIVE), w="w").rows_.moments)


def test_a_query_with_a_filter_and_a_computed_column() -> None:
    rows = ibis.memtable(ROWS)
    late = rows.filter(rows.hour >= 12).mutate(part=rows.hour // 3, decade=rows.age.round())
    sql = duckdb.from_arrow(ROWS).query(
        "rows", "select *, hour // 3 as part, round_even(age, 0) as decade from rows where hour >= 12"
    )
    kernel = Matern32("part") + Matern32("decade")
    some = ROWS.filter(ROWS["hour"].to_numpy() >= 12)
    some = some.append_column("part", pa.array(some["hour"].to_numpy() // 3))
    some = some.append_column("decade", pa.array(np.round(some["age"].to_numpy())))
    expected = in_memory(given(kernel), some).rows_.moments
    assert_same_sums(given(kernel).fit(sql, "y").rows_.moments, expected)
    assert given(kernel).fit(late, "y").rows_.moments.n == expected.n


def test_counts_with_exposure() -> None:
    rows, model = table(), given(Matern32("hour") + Categorical("shop"), likelihood=Poisson(exposure="hours"))
    found, expected = twin(model).fit(rows, "visits"), in_memory(model, y="visits")
    np.testing.assert_allclose(found.elbo_, expected.elbo_, rtol=1e-9)
    np.testing.assert_allclose(answers(found), answers(expected), rtol=1e-9)
    assert max(query.rows for query in rows.queries) < N


def test_labels_are_counted() -> None:
    rows = ROWS.append_column("label", pa.array(np.where(ROWS["y"].to_numpy() > 100.5, "late", "early")))
    model = GPClassifier(Matern32("hour") + Categorical("shop"), frequencies=5, optimizer=None)
    found = twin(model).fit(table(rows), "label", sample_weight="w")
    X, labels = rows.select(["hour", "shop"]), np.array(rows["label"].to_pylist())
    expected = model.fit(X, labels, rows["w"].to_numpy())
    assert list(found.classes_) == ["early", "late"]
    np.testing.assert_allclose(found.elbo_, expected.elbo_, rtol=1e-9)


def test_rows_are_added_and_taken_out() -> None:
    early, late = (ROWS.filter(mask) for mask in (ROWS["hour"].to_numpy() < 12, ROWS["hour"].to_numpy() >= 12))
    options = {"domain": {"hour": (0.0, 24.0), "age": (0.0, 10.0)}}
    whole, half = (in_memory(given(ADDITIVE, **options), rows).rows_.moments for rows in (ROWS, early))
    model = given(ADDITIVE, **options).partial_fit(table(early), "y").partial_fit(table(late), "y")
    assert_same_sums(model.rows_.moments, whole)
    assert_same_sums(model.forget(table(late), "y").rows_.moments, half)
    gathered = given(ADDITIVE, **options).collect(table(early), "y").collect(table(late), "y").learn()
    assert_same_sums(gathered.rows_.moments, whole)


def test_levels_that_come_later_are_added() -> None:
    rows = [pa.table({"s": list(text), "y": [1.0, 2.0, 4.0]}) for text in ("bca", "dba")]
    model = given(Categorical("s"))
    for some in rows:
        model.partial_fit(table(some), "y")
    assert model.rows_.binding.columns[0].levels == ("a", "b", "c", "d")
    assert model.rows_.moments.grams[0].tolist() == [2.0, 2.0, 1.0, 1.0]


def test_missing_values_are_refused_or_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    holes = ROWS["y"].to_numpy().copy()
    holes[:7] = np.nan
    rows = ROWS.set_column(ROWS.column_names.index("y"), "y", pa.array(holes))
    with pytest.raises(ValueError, match=r"column 'y' contains NULL.*7 of 4,000 rows.*missing='drop'"):
        given(ADDITIVE).fit(table(rows), "y")
    model = given(ADDITIVE, verbose=1).fit(scan(duckdb.from_arrow(rows), missing="drop"), "y")
    assert "7 of 4,000 rows left out" in "".join(capsys.readouterr())
    assert_same_sums(model.rows_.moments, in_memory(given(ADDITIVE), ROWS.slice(7)).rows_.moments)


REFUSED = {
    "too many values": (Matern32("y"), "w", r"column 'y' has more than 100 different values.*vff\.scan"),
    "no such column": (Matern32("z"), "y", "the kernel asks for column 'z'"),
    "text": (Matern32("shop"), "y", r"column 'shop' holds text.*Categorical\('shop'\)"),
    "no target": (Matern32("hour"), None, "requires y to be passed.*name the column"),
    "a target in memory": (Matern32("hour"), np.ones(3), "y must be the name of a column"),
}


@pytest.mark.parametrize(("kernel", "y", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(kernel: Kernel, y: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vff.estimators.grouped._MOST_VALUES", 100)
    with pytest.raises((TypeError, ValueError), match=message):
        given(kernel).fit(table(), y)


def test_too_many_combinations_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vff.estimators.grouped.MOST_CELLS", 100)
    with pytest.raises(ValueError, match="columns 'hour', 'age' have more than 100 combinations"):
        given(Matern32("hour") * Matern32("age")).fit(table(), "y")


def test_rows_beyond_the_domain_and_tables_without_rows_are_refused() -> None:
    with pytest.raises(ValueError, match=r"column 'hour' reaches \[0, 23\], beyond the domain.*filter"):
        given(Matern32("hour"), domain=(0.0, 12.0)).fit(table(), "y")
    with pytest.raises(ValueError, match="0 sample"):
        given(Matern32("hour")).fit(table(ROWS.slice(0, 0)), "y")
    with pytest.raises(ValueError, match="sample_weight is positive in 1 row"):
        given(Matern32("hour")).fit(table(pa.table({"hour": [1, 2], "y": [1.0, 2.0], "w": [1, 0]})), "y", "w")


def test_chains_keep_no_targets_of_rows_that_stay_in_the_database() -> None:
    """What is fetched for them are different rows with their counts, and not the rows."""
    chains = {"inference": "mcmc", "draws": 10, "warmup": 20, "chains": 1, "random_state": 0}
    model = GPRegressor(Matern32("hour"), frequencies=3, likelihood="poisson", **chains)
    few = ROWS.slice(0, 300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table(few), "visits")
    assert model.samples_.y is None
