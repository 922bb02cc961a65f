"""Two columns at once: engines agree with the written-out block, are adjoint, and explain why they were chosen."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vff.basis import Codes, ColumnBasis, Interval, LevelBasis
from vff.moments import (
    PAIR_ENGINES,
    Codebook,
    ColumnRequest,
    ColumnRows,
    MomentRequest,
    choose_pair,
    column_rows,
    evaluate_and_quad,
    gram_adjoint,
    plan_reading,
    quad_of_pairs,
    read_arrays,
)

NUMBERS = ("integer", "decimal", "continuous", "constant")


@pytest.mark.parametrize("engine", PAIR_ENGINES)
@given(
    kinds=st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)),
    M=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    q=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    N=st.integers(1, 60),
    seed=st.integers(0, 10**6),
)
def test_a_block_is_the_sum_of_products_and_its_map_has_the_right_transpose(engine, make_table, kinds, M, q, N, seed):
    table = make_table(N, seed, kinds).with_bases([ColumnBasis(*both) for both in zip(M, q, strict=True)])
    left, right = table.column_rows
    phi, psi = left.basis.evaluate(left.t), right.basis.evaluate(right.t)
    block = PAIR_ENGINES[engine].sum_block(left, right, table.w)
    np.testing.assert_allclose(block, (phi * table.w[:, None]).T @ psi, rtol=0, atol=1e-10 * table.w.sum())
    S = np.random.default_rng(seed).normal(size=block.shape)
    values = PAIR_ENGINES[engine].evaluate_block(left, right, S)
    np.testing.assert_allclose(values, np.einsum("np,pq,nq->n", phi, S, psi), rtol=0, atol=1e-10 * np.abs(S).sum())
    assert np.sum(block * S) == pytest.approx(table.w @ values, abs=1e-11 * table.w.sum() * np.abs(S).sum())


WITH_LEVELS = [("levels", "continuous"), ("continuous", "levels"), ("integer", "levels"), ("levels", "levels")]


@pytest.mark.parametrize(
    ("engine", "kinds"),
    [(engine, kinds) for engine in ("dense", "table") for kinds in WITH_LEVELS]
    + [("grouped", kinds) for kinds in WITH_LEVELS[:2]],
)
def test_a_block_with_levels(engine, kinds, make_table, rng):
    table = make_table(70, 8, kinds)
    left, right = table.column_rows
    if engine == "grouped" and kinds[0] == "continuous":
        left = ColumnRows(left.request, left.x)  # no book: the groups are those of the other column
    expected = np.zeros((left.basis.size, right.basis.size))
    phi, psi = left.basis.evaluate(left.t), right.basis.evaluate(right.t)
    for n in range(70):
        expected += table.w[n] * np.outer(phi[n], psi[n])
    block, S = PAIR_ENGINES[engine].sum_block(left, right, table.w), rng.normal(size=expected.shape)
    np.testing.assert_allclose(block, expected, atol=1e-12)
    assert np.sum(block * S) == pytest.approx(table.w @ PAIR_ENGINES[engine].evaluate_block(left, right, S), rel=1e-11)


def _quad(table, rows, S, engine, pair_engine):
    """Phi c and diag(Phi S Phi') column by column and pair by pair; c is one everywhere."""
    places, total, mean = table.request.slices, np.zeros(table.y.size), np.zeros(table.y.size)
    for column, place in zip(rows, places, strict=True):
        name = "table" if isinstance(column.basis, LevelBasis) and engine != "auto" else engine
        size = place.stop - place.start
        value, square = evaluate_and_quad(column, np.ones(size), gram_adjoint(column.basis, S[place, place]), name)
        mean, total = mean + value, total + square
    blocks = {(s, t): S[places[s], places[t]] for s, t in table.request.pairs}
    return mean, total + 2.0 * quad_of_pairs(rows, blocks, pair_engine)


@pytest.mark.parametrize("engine", ["auto", "dense", "nufft", "table", "grouped"])
@settings(max_examples=20)
@given(N=st.integers(1, 90), seed=st.integers(0, 10**6))
def test_columns_and_pairs_make_up_the_whole_quadratic_form(engine, make_table, N, seed):
    table = make_table(N, seed)
    if engine in ("nufft", "grouped"):
        table = table.only(range(4))
    P, phi = table.request.size, table.features
    S = np.random.default_rng(seed).normal(size=(P, P))
    S = S + S.T
    parts = zip(table.request.columns, table.columns, strict=True)
    rows = [column_rows(*part) for part in parts] if engine == "auto" else table.column_rows
    mean, square = _quad(table, rows, S, "auto" if engine == "grouped" else engine, engine)
    np.testing.assert_allclose(mean, phi.sum(1), rtol=0, atol=1e-10 * P)
    np.testing.assert_allclose(square, np.einsum("np,pq,nq->n", phi, S, phi), rtol=0, atol=1e-10 * np.abs(S).sum())


@pytest.mark.parametrize("codes", [[], [1.0], [0.0, 1.0, 2.0], [2.0, -1.0, 2.0, -1.0, 0.0]])
def test_few_rows_of_levels_are_evaluated_too(codes):
    """A level never seen has no effect, wherever it stands."""
    effects = {-1.0: 0.0, 0.0: 5.0, 1.0: 6.0, 2.0: 7.0}
    rows = column_rows(_levels(), np.array(codes))
    found = evaluate_and_quad(rows, np.array([5.0, 6.0, 7.0]), np.array([25.0, 36.0, 49.0]))
    np.testing.assert_array_equal(found[0], [effects[code] for code in codes])
    np.testing.assert_array_equal(found[1], [effects[code] ** 2 for code in codes])


def _levels() -> ColumnRequest:
    return ColumnRequest(Codes(), LevelBasis(("a", "b", "c")))


def _number(M: int = 30) -> ColumnRequest:
    return ColumnRequest(Interval(0.0, 1000.0), ColumnBasis(M, 2))


def _book(size: int) -> Codebook:
    return Codebook(np.arange(float(size)), 0.0, 1.0)


@pytest.mark.parametrize(
    ("N", "sizes", "expected", "number"),
    [
        (20, (None, None), "dense", "20 rows"),
        (10**6, (None, None), "nufft", "1000000 rows"),
        (10**6, (None, 50), "grouped", "1000000 rows in 50 groups"),
        (10**6, (50, None), "grouped", "1000000 rows in 50 groups"),
        (10**6, (40, 50), "table", "40 x 50 cells"),
        (10**8, (2**13, 2**12), "nufft", "100000000 rows"),  # more cells than fit
    ],
)
def test_the_choice_for_a_pair_says_why(N, sizes, expected, number):
    books = [None if size is None else _book(size) for size in sizes]
    choice = choose_pair(N, (_number(), _number()), books, 1.0)
    assert choice.name == expected
    assert choice.reason.startswith(f"{expected}: ")
    assert number in choice.reason


@pytest.mark.parametrize(("N", "expected"), [(100, "dense"), (10**6, "grouped")])
def test_levels_beside_a_continuous_column_say_why(N, expected):
    for requests, books in (((_levels(), _number()), [_book(3), None]), ((_number(), _levels()), [None, _book(3)])):
        choice = choose_pair(N, requests, books, 1.0)
        assert choice.name == expected
        assert f"{N} rows" in choice.reason


def test_a_plan_explains_every_column_and_pair():
    request = MomentRequest((_number(), _number(), _levels()))
    plan = plan_reading(10**6, request, [_book(40), None, _book(3)])
    assert [choice and choice.name for choice in plan.columns] == ["table", None, "table"]
    assert {pair: choice.name for pair, choice in plan.pairs.items()} == {
        (0, 1): "grouped",
        (0, 2): "table",
        (1, 2): "grouped",
    }
    for choice in [*filter(None, plan.columns), *plan.pairs.values()]:
        assert choice.reason.startswith(f"{choice.name}: ")
        assert re.search(r"\d+ (rows|cells|levels)|\d+ x \d+ cells", choice.reason)
    asked = plan_reading(10**6, request, [_book(40), None, _book(3)], "nufft")
    assert asked.pairs[0, 1].reason == "nufft: as asked"


def test_a_grid_of_several_columns_is_refused_with_a_sentence():
    request, t = MomentRequest((_number(3), _number(3))), np.linspace(0.0, 1000.0, 50)
    with pytest.raises(ValueError, match=r"engine='grid' sums one column .* use engine='auto'"):
        read_arrays(request, [t, t], t, np.ones(50), "grid")


def test_a_table_of_too_many_cells_is_refused_with_a_sentence(rng):
    request = MomentRequest((_number(3), _number(3)))
    columns = [rng.uniform(0.0, 1000.0, 4200) for _ in range(2)]
    with pytest.raises(ValueError, match=r"counts rows per pair of values, .* 1\.76e\+07 .* round these columns"):
        read_arrays(request, columns, columns[0], np.ones(4200), "table")
