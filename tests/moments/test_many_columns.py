"""Many columns: every mixture of engines and every split of the rows gives the sums of the definition."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vff.basis import ColumnBasis, LevelBasis
from vff.moments import Choice, PassPlan, moments_of_arrays, plan_pass, run_pass
from vff.moments import plan as module
from vff.moments.engines import dense, grouped

OF_COLUMN = (None, "dense", "nufft", "table")
OF_PAIR = ("dense", "nufft", "table", "grouped")
WITH_LEVELS = ("dense", "table", "grouped")


def _plan(table, of_columns, of_pairs) -> PassPlan:
    plan = plan_pass(table.y.size, table.request, table.distinct_values)
    alone = [replace(one, choice=name and Choice(name, name)) for one, name in zip(plan.alone, of_columns, strict=True)]
    assert [one.columns for one in plan.sets] == list(table.request.pairs)
    sets = [replace(one, choice=Choice(name, name)) for one, name in zip(plan.sets, of_pairs, strict=True)]
    return replace(plan, alone=tuple(alone), sets=tuple(sets))


def _assert_is_the_definition(moments, table, offset, tolerance=1e-10):
    phi, w, residual = table.features, table.w, table.y - offset
    size, atol = w.sum(), tolerance * w.sum() * max(1.0, np.abs(residual).max())
    np.testing.assert_allclose(moments.gram().dense(), phi.T @ (w[:, None] * phi), rtol=0, atol=tolerance * size)
    np.testing.assert_allclose(moments.project, phi.T @ (w * residual), rtol=0, atol=atol)
    np.testing.assert_allclose(np.concatenate(moments.features_sums), phi.T @ w, rtol=0, atol=tolerance * size)
    assert moments.n == w.size
    assert moments.weight == pytest.approx(size, rel=1e-12)
    assert moments.target == pytest.approx(np.sum(w * residual), abs=atol)
    assert moments.target_squared == pytest.approx(np.sum(w * residual**2), rel=1e-12)


@pytest.mark.parametrize("engine", ["dense", "nufft", "table", "auto"])
@settings(max_examples=20)
@given(N=st.integers(1, 150), seed=st.integers(0, 10**6), offset=st.floats(-5.0, 5.0))
def test_every_engine_gives_the_gram_matrix_of_the_definition(engine, make_table, N, seed, offset):
    table = make_table(N, seed)
    _assert_is_the_definition(table.read(engine, offset), table, offset)


def test_rows_enough_for_all_engines_to_be_chosen(make_table):
    kinds = ("continuous", "integer", "continuous", "levels", "decimal", "continuous", "continuous")
    table = make_table(6000, 7, kinds)
    large, levels = ColumnBasis(60, 2), LevelBasis(("a", "b", "c", "d"))
    table = table.with_bases([large, ColumnBasis(5, 2), large, levels, ColumnBasis(4, 0), *[ColumnBasis(2, 1)] * 2])
    distinct_values = [None, table.distinct_values[1], None, *table.distinct_values[3:5], None, None]
    plan = plan_pass(6000, table.request, distinct_values)
    assert {one.choice.name for one in plan.sets} == set(OF_PAIR)
    moments, choices = run_pass(plan, table.source, 3.0)
    assert {choice.name for choice in choices} == {"dense", "nufft", "table"}
    _assert_is_the_definition(moments, table, 3.0)
    _assert_is_the_definition(table.read(offset=3.0), table, 3.0)


@pytest.mark.parametrize("kinds", [("integer", "continuous"), ("continuous", "continuous"), ("constant", "decimal")])
def test_every_mixture_over_two_columns_agrees(kinds, make_table):
    table = make_table(60, 1, kinds)
    for *of_columns, of_pair in product(OF_COLUMN, OF_COLUMN, OF_PAIR):
        moments, _ = run_pass(_plan(table, of_columns, [of_pair]), table.source, 3.0)
        _assert_is_the_definition(moments, table, 3.0)


@given(data=st.data(), seed=st.integers(0, 10**6))
def test_any_mixture_over_all_kinds_of_columns_agrees(make_table, data, seed):
    table = make_table(70, seed)
    levels = [isinstance(column.basis, LevelBasis) for column in table.request.columns]
    of_columns = [data.draw(st.sampled_from(("dense", "table") if level else OF_COLUMN)) for level in levels]
    of_pairs = [
        data.draw(st.sampled_from(WITH_LEVELS if levels[s] or levels[t] else OF_PAIR)) for s, t in table.request.pairs
    ]
    moments, choices = run_pass(_plan(table, of_columns, of_pairs), table.source, 3.0)
    _assert_is_the_definition(moments, table, 3.0)
    assert [choice.name for choice, asked in zip(choices, of_columns, strict=True) if asked] == list(
        filter(None, of_columns)
    )


def test_one_weight_for_all_rows_counts_like_weights_written_out(make_table, assert_equal):
    table = make_table(90, 2)
    same = np.broadcast_to(1.7, 90)  # no memory, and a shorter way through the tables
    for engine in ("auto", "table", "dense"):
        short = moments_of_arrays(table.request, table.columns, table.y, same, engine)
        assert_equal(short, moments_of_arrays(table.request, table.columns, table.y, same.copy(), engine), 1e-13)


@pytest.mark.parametrize("engine", ["auto", "dense", "nufft", "table"])
@pytest.mark.parametrize("chunk", [900, 1500, 2600])
def test_the_length_of_a_chunk_does_not_matter(engine, chunk, make_table, assert_equal, monkeypatch):
    table = make_table(2600, 3)
    whole = table.read(engine, 3.0)
    monkeypatch.setattr(module, "_CHUNK_OF_SEVERAL", chunk)
    distinct_values = [
        distinct if engine != "nufft" else None for distinct in table.distinct_values[:-1]
    ] + table.distinct_values[-1:]
    assert plan_pass(2600, table.request, distinct_values, engine).chunk == chunk
    assert_equal(table.read(engine, 3.0), whole, 1e-12)


@pytest.mark.parametrize("engine", ["auto", "dense", "nufft", "table"])
def test_rows_may_come_one_by_one(engine, make_table, assert_equal, monkeypatch):
    table = make_table(12, 3)
    whole = table.read(engine, 3.0)
    monkeypatch.setattr(module, "_CHUNK_OF_SEVERAL", 1)
    assert_equal(table.read(engine, 3.0), whole, 1e-12)


@pytest.mark.parametrize("engine", ["dense", "grouped"])
def test_letters_are_written_out_in_stretches(engine, make_table, assert_equal, monkeypatch):
    table = make_table(1300, 3, ("integer", "decimal", "constant"))
    plan, seen, stretches = _plan(table, [None] * 3, [engine] * 3), [], dense.WrittenLetters
    whole, _ = run_pass(plan, table.source, 3.0)
    monkeypatch.setattr(dense, "WRITTEN", 1)  # 64 rows at a time, or one group

    def written(columns, rows, **how):
        seen.append(rows)
        return stretches(columns, rows, **how)

    for engine_file in (dense, grouped):
        monkeypatch.setattr(engine_file, "WrittenLetters", written)
    assert_equal(run_pass(plan, table.source, 3.0)[0], whole, 1e-12)
    assert len(seen) > 3 * 5


def test_groups_without_rows_are_passed_over(make_table, assert_equal):
    table = make_table(200, 9, ("continuous", "levels"))
    table.columns[1][:] = np.where(table.columns[1] == 1.0, 3.0, table.columns[1])  # nobody is a "b"
    found, _ = run_pass(_plan(table, ["dense", "table"], ["grouped"]), table.source, 3.0)
    assert_equal(found, table.read("dense", 3.0), 1e-12)


@pytest.mark.parametrize("engine", ["auto", "dense", "table"])
@given(cuts=st.lists(st.integers(0, 120), max_size=4), seed=st.integers(0, 10**6))
def test_any_split_of_the_rows_adds_up(engine, make_table, assert_equal, cuts, seed):
    table = make_table(120, seed)
    total = table.rows(slice(0, 0)).read(engine, 3.0)
    for start, stop in pairwise([0, *sorted(cuts), 120]):
        total = total + table.rows(slice(start, stop)).read(engine, 3.0)
    assert_equal(total, table.read(engine, 3.0), 1e-12)


def test_a_source_is_read_once_from_first_to_last_row(make_table, monkeypatch):
    table, seen, reported = make_table(2600, 4), [], []
    monkeypatch.setattr(module, "_CHUNK_OF_SEVERAL", 1024)

    def column(s, rows):
        seen.append((s, rows.start, rows.stop))
        return table.columns[s][rows]

    plan = plan_pass(2600, table.request, table.distinct_values)
    run_pass(plan, module.RowBlock(2600, column, table.y, table.w), 0.0, reported.append)
    stretches = [(0, 1024), (1024, 2048), (2048, 2600)]
    assert sorted(seen) == [(s, *stretch) for s in range(5) for stretch in stretches]
    assert reported == [1024, 2048, 2600]


@pytest.mark.parametrize("engine", ["auto", "dense", "nufft", "table"])
def test_rows_outside_of_one_place_count_nowhere(engine, make_table, assert_equal):
    table = make_table(80, 5)
    inside = np.ones(80, bool)
    for row, (s, x) in {3: (0, 11.0), 20: (2, -6.5), 21: (1, 5.1), 50: (4, -1.0)}.items():
        table.columns[s][row] = x  # the last is a level never seen
        inside[row] = False
    found = table.read(engine, 3.0)
    assert found.n == 76
    assert_equal(found, table.rows(inside).read("dense", 3.0), 1e-10)


def test_rows_outside_count_nowhere_in_groups_either(make_table, assert_equal):
    """A level never seen has no group; two sets group by the same column at the same time."""
    table = make_table(300, 5, ("continuous", "levels", "continuous"))
    inside = np.ones(300, bool)
    table.columns[1][::7], inside[::7] = -1.0, False
    table.columns[0][10], inside[10] = 6.5, False
    plan = _plan(table, ["nufft", "table", "nufft"], ["grouped", "dense", "grouped"])
    found, _ = run_pass(plan, table.source, 3.0)
    assert found.n == inside.sum()
    assert_equal(found, table.rows(inside).read("dense", 3.0), 1e-10)


def test_columns_of_the_same_values_have_the_same_sums(make_table):
    table = make_table(50, 6, ("continuous", "continuous")).with_bases([ColumnBasis(3, 2)] * 2)
    table.columns[1][:] = table.columns[0]
    gram = table.read("dense").gram().dense()
    np.testing.assert_allclose(gram[:9, 9:], gram[:9, :9], atol=1e-12)
