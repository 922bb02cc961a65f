"""Many walks over the same rows are as many passes, kept in memory or not; equal rows are taken together."""

from dataclasses import replace

import numpy as np
import pytest

from vff.basis import ColumnBasis, LevelBasis
from vff.moments import (
    DistinctValues,
    PreparedRows,
    RowBlock,
    distinct_values_for,
    merge_equal_rows,
    moments_of_arrays,
    plan_pass,
    summarise_column,
)
from vff.moments import plan as planning_module
from vff.moments import run as run_module
from vff.moments import sample as sample_module

ENGINES = ("auto", "dense", "nufft", "table")
LEVELS = LevelBasis(("a", "b", "c", "d"))
TERMS = [((0,), (ColumnBasis(3, 2),)), ((2, 1), (ColumnBasis(2, 1), ColumnBasis(2, 0))), ((3,), (LEVELS,))]
KINDS = ("integer", "decimal", "continuous", "levels")


def _prepared_rows(table, engine: str = "auto") -> PreparedRows:
    summaries = [summarise_column(table.y.size, lambda rows, x=x: x[rows]) for x in table.columns]
    distinct_values = distinct_values_for(engine, table.request, summaries, table.source)
    return PreparedRows(plan_pass(table.y.size, table.request, distinct_values, engine), table.source)


def _step(y: np.ndarray, w: np.ndarray):
    return lambda rows, columns: (w[rows], w[rows] * y[rows])


def _without_squares(moments):
    """A pass over prepared rows knows no y, so it does not sum its squares."""
    return replace(moments, target_squared=0.0)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("engine", ENGINES)
def test_every_walk_is_a_pass_with_its_own_weights(make_table, assert_equal, monkeypatch, rng, engine, kept):
    monkeypatch.setattr(planning_module, "_CHUNK_OF_SEVERAL", 37)
    if not kept:
        monkeypatch.setattr(run_module, "_KEPT", 0)
    table = make_table(200, 4, KINDS).with_terms(TERMS)
    prepared = _prepared_rows(table, engine)
    assert prepared.n == 200
    for _ in range(3):
        y, w = rng.normal(size=200), rng.uniform(0.0, 2.0, 200)
        found = prepared.sum(_step(y, w))
        expected = moments_of_arrays(table.request, table.columns, y, w, "dense")
        assert_equal(_without_squares(found), _without_squares(expected), 1e-10)
        assert bool(prepared._kept) is kept


def test_weights_may_be_negative(make_table, assert_equal, rng):
    """As are the sites of a likelihood that is not log-concave."""
    table = make_table(90, 5)
    y, w = rng.normal(size=90), 1.0 + rng.normal(size=90)
    assert w.min() < 0.0
    found, plus, minus = (
        _without_squares(_prepared_rows(table).sum(_step(y, weights)))
        for weights in (w, np.maximum(w, 0), np.maximum(-w, 0))
    )
    assert_equal(replace(found, n=0), replace(plus - minus, n=0), 1e-9)


def test_rows_are_prepared_once_when_they_are_kept(make_table):
    table, asked = make_table(60, 6), []

    def column(c: int, rows: slice) -> np.ndarray:
        asked.append(c)
        return table.columns[c][rows]

    prepared = _prepared_rows(table)
    prepared = PreparedRows(prepared.plan, replace(prepared.source, column=column))
    step = _step(table.y, table.w)
    prepared.sum(step)
    first = len(asked)
    prepared.sum(step)
    assert first == len(table.columns) == len(asked)


def test_steps_see_every_row_once_and_in_order(make_table, monkeypatch):
    monkeypatch.setattr(planning_module, "_CHUNK_OF_SEVERAL", 31)
    table, seen = make_table(100, 7), []

    def step(rows, columns):
        seen.append((rows.start, rows.stop))
        for c, column in enumerate(columns):
            np.testing.assert_array_equal(column.x, table.columns[c][rows])
        return table.w[rows], table.w[rows]

    _prepared_rows(table).sum(step)
    assert [start for start, _ in seen] == [0, *(stop for _, stop in seen[:-1])]
    assert seen[-1][1] == 100
    assert len(seen) == 4


def _counted(N: int = 400, seed: int = 0) -> tuple[RowBlock, np.ndarray, list[DistinctValues]]:
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 4, N).astype(float), rng.integers(-2, 1, N) / 4.0]
    y, w = rng.integers(0, 3, N).astype(float), rng.uniform(0.5, 2.0, N)
    source = RowBlock(N, lambda c, rows: columns[c][rows], y, w)
    return source, rng.choice([1.0, 2.0], N), [DistinctValues(np.unique(x)) for x in columns]


def test_equal_rows_are_taken_together():
    source, extra, distinct_values = _counted()
    whole = slice(0, source.n)
    few, some = merge_equal_rows(source, extra, distinct_values)
    assert few.n <= 4 * 3 * 3 * 2 < source.n
    assert few.w.sum() == pytest.approx(source.w.sum())
    rows = np.stack([few.column(0, slice(0, few.n)), few.column(1, slice(0, few.n)), few.y, some], axis=1)
    assert len(np.unique(rows, axis=0)) == few.n
    every = np.stack([source.column(0, whole), source.column(1, whole), source.y, extra], axis=1)
    for row, w in zip(rows, few.w, strict=True):
        assert w == pytest.approx(source.w[np.all(every == row, axis=1)].sum())


@pytest.mark.parametrize("ties", [True, False])
def test_equal_rows_of_too_many_combinations_are_sorted_where_there_are_ties(ties, monkeypatch, rng):
    monkeypatch.setattr(sample_module, "_WORTH_SORTING", 100)
    pool = rng.normal(size=(300, 4))
    chosen = rng.integers(300, size=2000) if ties else np.arange(300)
    x, y, extra, w = *pool[chosen].T[:3], rng.uniform(0.5, 2.0, chosen.size)
    source, offset = RowBlock(y.size, lambda c, rows: (x if c == 0 else -x)[rows], y, w), pool[chosen, 3]
    few, some, beside = merge_equal_rows(source, extra, [None, None], offset)
    assert few.n == np.unique(chosen).size
    assert ties or few is source
    order, whole = np.argsort(few.y), slice(0, few.n)
    kept = pool[np.unique(chosen)]
    kept = kept[np.argsort(kept[:, 1])]
    for found, wanted in ((few.column(0, whole), 0), (few.y, 1), (some, 2), (beside, 3)):
        np.testing.assert_array_equal(found[order], kept[:, wanted])
    weights = [w[y == value].sum() for value in few.y]
    np.testing.assert_allclose(few.w, weights, rtol=1e-13)


@pytest.mark.parametrize("case", ["continuous column", "continuous y", "continuous extra", "few rows"])
def test_different_rows_are_left_alone(case):
    source, extra, distinct_values = _counted(20 if case == "few rows" else 400)
    if case == "continuous column":
        distinct_values = [distinct_values[0], None]
    if case == "continuous y":
        source = replace(source, y=np.random.default_rng(1).normal(size=source.n))
    if case == "continuous extra":
        extra = np.random.default_rng(1).uniform(1.0, 2.0, source.n)
    if case == "few rows":
        distinct_values = [DistinctValues(np.arange(50.0)), DistinctValues(np.arange(-40.0, 40.0) / 4.0)]
    same, other = merge_equal_rows(source, extra, distinct_values)
    assert same is source
    assert other is extra
