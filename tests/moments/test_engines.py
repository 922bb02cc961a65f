"""One column: all engines agree with the written-out features, on all four operations, for any rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.makers.engines import evaluated

from vff.basis import ColumnBasis, Interval
from vff.linalg import DenseView
from vff.moments import (
    ENGINES,
    ColumnRequest,
    ColumnRows,
    DistinctValues,
    Job,
    LetterFunction,
    MomentRequest,
    Moments,
    Work,
    choose,
    column_rows,
    moments_of_arrays,
    synthesise,
)

UNIT = Interval(-1.0, 1.0)


def _request(M: int, q: int) -> MomentRequest:
    return MomentRequest.of_columns([ColumnRequest(UNIT, ColumnBasis(M, q))])


def _column(basis: ColumnBasis, t: np.ndarray) -> ColumnRows:
    """Rows that every engine can work on."""
    return ColumnRows(ColumnRequest(UNIT, basis), t, DistinctValues(np.unique(t)))


def _rows(kind: str, N: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind == "table":
        return rng.integers(0, 7, N) / 3.0 - 1.0
    if kind == "grid":
        return np.linspace(-1.0, 1.0, N)
    if kind == "lattice":
        return np.linspace(-0.71, 0.93, N)
    if kind == "clustered":
        return np.clip(rng.normal(0.3, 1e-4, N), -1, 1)
    return rng.uniform(-1, 1, N)


OFFERED = [engine.name for engine in ENGINES if engine.offered]
KINDS = ["continuous", "table", "grid", "lattice", "clustered"]
PAIRS = [(engine, kind) for engine in OFFERED for kind in KINDS if engine != "grid" or kind in ("grid", "lattice")]


@pytest.mark.parametrize(("engine", "kind"), PAIRS)
@given(M=st.integers(1, 40), q=st.integers(0, 4), N=st.integers(3, 90), seed=st.integers(0, 10**6))
def test_four_operations(engine, kind, M, q, N, seed):
    rng = np.random.default_rng(seed)
    basis, t = ColumnBasis(M, q), _rows(kind, N, seed)
    y, w = rng.normal(size=N), rng.uniform(0, 2, N)
    phi = basis.evaluate(t)
    moments = moments_of_arrays(_request(M, q), [t], y, w, engine)
    size = w.sum() + 1e-300
    np.testing.assert_allclose(basis.pairs(moments.grams[0]), phi.T @ (w[:, None] * phi), atol=1e-10 * size)
    np.testing.assert_allclose(moments.project, phi.T @ (w * y), atol=1e-10 * np.abs(w * y).sum())
    np.testing.assert_allclose(moments.features_sums[0], phi.T @ w, atol=1e-10 * size)
    c, S = rng.normal(size=basis.size), rng.normal(size=(basis.size, basis.size))
    S = S + S.T
    values, squares = evaluated(_column(basis, t), c, basis.project(DenseView(S)), engine)
    np.testing.assert_allclose(values, phi @ c, atol=1e-10 * np.abs(c).sum())
    np.testing.assert_allclose(squares, np.einsum("np,pq,nq->n", phi, S, phi), atol=1e-10 * np.abs(S).sum())


@pytest.mark.parametrize("engine", ["dense", "nufft", "table"])
def test_highest_edge_functions_keep_their_digits(engine):
    """R_4 beside 300 harmonics is of size 1e-11; its sums are right relative to that size."""
    M, t = 300, np.random.default_rng(0).uniform(-0.9, 0.9, 40)
    basis, one = ColumnBasis(M, 4), np.ones(40)
    gram = basis.pairs(moments_of_arrays(_request(M, 4), [t], one, one, engine).grams[0])
    # the definition as a series over the harmonics above M, which does not cancel
    omega = np.pi * np.arange(M + 1, 200_000)
    remainder = np.array([np.sum(np.cos(omega * (x + 1.0)) * omega**-4.0) for x in t])
    assert gram[-1, -1] == pytest.approx(remainder @ remainder, rel=1e-3)
    assert gram[-1, 7] == pytest.approx(remainder @ np.cos(7 * np.pi * (t + 1.0)), rel=1e-3)


@given(cuts=st.lists(st.integers(0, 200), max_size=5), seed=st.integers(0, 10**6), offset=st.floats(-1e3, 1e3))
def test_any_partition_of_the_rows_gives_the_same_moments(cuts, seed, offset):
    rng = np.random.default_rng(seed)
    request = _request(6, 3)
    t, y, w = rng.uniform(-1, 1, 200), 5.0 + rng.normal(size=200), rng.uniform(0, 1, 200)
    whole = moments_of_arrays(request, [t], y, w, "dense", 5.0)
    total = Moments.zero(request, 5.0)
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), 200], strict=True):
        total = total + moments_of_arrays(request, [t[start:stop]], y[start:stop], w[start:stop], "dense", offset)
    assert total.n == whole.n
    scale = max(1.0, abs(offset)) ** 2 * 200
    np.testing.assert_allclose(total.grams[0], whole.grams[0], atol=1e-13 * scale)
    for name in ("weight", "target", "target_squared", "project"):
        np.testing.assert_allclose(getattr(total, name), getattr(whole, name), atol=1e-13 * scale)


def test_rows_can_be_taken_back_out_and_scaled(rng):
    request = _request(5, 2)
    t, y = rng.uniform(-1, 1, 60), rng.normal(size=60)
    read = [moments_of_arrays(request, [t[rows]], y[rows], np.ones(30), "dense") for rows in (slice(30), slice(30, 60))]
    back = (read[0] + read[1]) - read[1]
    assert back.n == 30
    np.testing.assert_allclose(back.grams[0], read[0].grams[0], atol=1e-12)
    doubled = read[0].scaled(2.0)
    twice = read[0] + read[0]
    np.testing.assert_allclose(doubled.project, twice.project, rtol=1e-14)
    assert doubled.weight == twice.weight
    assert doubled.target_squared == pytest.approx(twice.target_squared)


def test_moments_of_different_functions_do_not_mix(rng):
    one, other = (Moments.zero(_request(M, 2)) for M in (4, 5))
    with pytest.raises(ValueError, match="sum different functions"):
        one + other


@given(M=st.integers(2, 60), fraction=st.floats(0.0, 1.0), q=st.integers(0, 4), seed=st.integers(0, 10**6))
def test_sums_for_a_smaller_M_are_inside_those_for_a_larger(M, fraction, q, seed):
    rng = np.random.default_rng(seed)
    t, y, w = rng.uniform(-1, 1, 70), rng.normal(size=70), rng.uniform(0, 1, 70)
    small = max(1, int(fraction * M))
    large = moments_of_arrays(_request(M, q), [t], y, w, "dense")
    direct = moments_of_arrays(_request(small, q), [t], y, w, "dense")
    nested = large.restricted([[small]])
    assert nested.request == direct.request
    np.testing.assert_allclose(nested.grams[0], direct.grams[0], atol=1e-12)
    np.testing.assert_allclose(nested.project, direct.project, atol=1e-12)
    with pytest.raises(ValueError, match="these sums stop at"):
        direct.restricted([[small + 1]])


def test_grid_refuses_other_rows(rng):
    basis = ColumnBasis(3, 0)
    with pytest.raises(ValueError, match="equally spaced"):
        ENGINES["grid"].sum([_column(basis, rng.uniform(-1, 1, 30))], [Job((basis.single,))], np.ones(30), np.ones(30))


@pytest.mark.parametrize(
    ("kind", "N", "expected"),
    [("continuous", 20, "dense"), ("continuous", 10**5, "nufft"), ("table", 10**5, "table"), ("grid", 10**5, "grid")],
)
def test_the_choice_of_engine_says_why(kind, N, expected):
    basis = ColumnBasis(30, 3)
    choice = choose(Work(N, [Job((basis.double,))], [column_rows(ColumnRequest(UNIT, basis), _rows(kind, N, 0))]))
    assert choice.name == expected
    assert choice.reason.startswith(expected)
    assert str(N) in choice.reason


@pytest.mark.parametrize("engine", OFFERED)
def test_functions_of_several_bases_on_one_column_are_taken_together(engine, rng):
    """Terms on the same column may differ in M and in q; the edge functions are each one's own."""
    t = _rows("grid", 40, 0)
    bases = [ColumnBasis(5, 0), ColumnBasis(5, 2), ColumnBasis(5, 1), ColumnBasis(3, 3)]
    axis_letters = [alphabet for basis in bases for alphabet in (basis.single, basis.double)]
    functions = [LetterFunction((0,), (alphabet,), rng.normal(size=alphabet.size)) for alphabet in axis_letters]
    values = synthesise([_column(ColumnBasis(5, 3), t)], functions, engine)
    for value, function, alphabet in zip(values, functions, axis_letters, strict=True):
        expected = alphabet.evaluate(t) @ function.coefficients
        np.testing.assert_allclose(value, expected, atol=1e-11 * np.abs(function.coefficients).sum())
