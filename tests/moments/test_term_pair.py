"""Blocks of two terms, however their columns overlap: against features written out, and the transpose."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vff.basis import Codes, ColumnBasis, Interval, LevelBasis
from vff.linalg import DenseView
from vff.moments import ColumnRequest, TermPair, TermRequest, project_term, term_gram

UNIT, LEVELS = Interval(-1.0, 1.0), LevelBasis(("a", "b", "c"))


def _term(columns, bases) -> TermRequest:
    places = [Codes() if isinstance(basis, LevelBasis) else UNIT for basis in bases]
    return TermRequest(tuple(columns), tuple(map(ColumnRequest, places, bases)))


def _rows(levels, N, seed):
    """Unit coordinates of three columns, (3, N); codes in the column of levels."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1.0, 1.0, (3, N))
    if levels is not None:
        t[levels] = rng.integers(0, LEVELS.size, N)
    return t


def _features(term: TermRequest, t: np.ndarray) -> np.ndarray:
    """(N, P): Kronecker products row by row."""
    written = [basis.evaluate(t[column]) for column, basis in zip(term.columns, term.bases, strict=True)]
    rows = []
    for parts in zip(*written, strict=True):
        row = np.ones(1)
        for part in parts:
            row = np.kron(row, part)
        rows.append(row)
    return np.array(rows)


def _letters(term_pair: TermPair, t: np.ndarray, w: np.ndarray) -> np.ndarray:
    """sum w times products of letters, by a loop over rows."""
    written = [alphabet.evaluate(t[c]) for c, alphabet in zip(term_pair.columns, term_pair.axis_letters, strict=True)]
    total = np.zeros([alphabet.size for alphabet in term_pair.axis_letters])
    for n, weight in enumerate(w):
        row = np.array(weight)
        for letters in written:
            row = np.multiply.outer(row, letters[n])
        total += row
    return total


PAIRS = {
    "disjoint": ((0,), (2,)),
    "disjoint, one a product": ((2, 0), (1,)),
    "main and product": ((1,), (0, 1)),
    "product and main": ((1, 0), (0,)),
    "partly shared": ((0, 1), (1, 2)),
    "partly shared, reversed": ((1, 0), (2, 1)),
    "equal": ((0, 1), (0, 1)),
    "equal, reversed": ((0, 1), (1, 0)),
    "one column": ((1,), (1,)),
    "inside": ((2, 0, 1), (0, 2)),
    "three equal, turned": ((2, 0, 1), (0, 1, 2)),
}


@pytest.mark.parametrize("levels", [None, 0, 1])
@pytest.mark.parametrize("name", PAIRS)
@settings(max_examples=6)
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_a_block_is_the_sum_of_products_of_features(name, levels, data, seed):
    """Different M and q in a shared column included; <block(m), S> = <m, letters(S)>."""
    basis = st.builds(ColumnBasis, st.integers(1, 3), st.integers(0, 2))
    left, right = (
        _term(columns, [LEVELS if c == levels else data.draw(basis) for c in columns]) for columns in PAIRS[name]
    )
    term_pair, t = TermPair(left, right), _rows(levels, 9, seed)
    w = np.random.default_rng(seed).uniform(0.0, 2.0, 9)
    phi, psi = _features(left, t), _features(right, t)
    sums = _letters(term_pair, t, w)
    block = term_pair.block(sums)
    np.testing.assert_allclose(block, phi.T @ (w[:, None] * psi), rtol=0, atol=1e-12 * w.sum())
    S = np.random.default_rng(seed + 1).normal(size=block.shape)
    coefficients = term_pair.letters(S)
    assert coefficients.shape == sums.shape
    assert np.sum(block * S) == pytest.approx(np.sum(sums * coefficients), abs=1e-12 * w.sum() * np.abs(S).sum())
    for n in range(9):
        value = np.sum(_letters(term_pair, t[:, n : n + 1], np.ones(1)) * coefficients)
        assert value == pytest.approx(phi[n] @ S @ psi[n], abs=1e-12 * np.abs(S).sum())


@pytest.mark.parametrize("name", PAIRS)
def test_block_and_letters_are_transposes_for_any_sums(name, rng):
    """Also where no rows could have given these sums."""
    left, right = (
        _term(columns, [ColumnBasis(2 + c, c) if side else ColumnBasis(4 - c, 2) for c in columns])
        for side, columns in enumerate(PAIRS[name])
    )
    term_pair = TermPair(left, right)
    sums = rng.normal(size=[alphabet.size for alphabet in term_pair.axis_letters])
    S = rng.normal(size=(left.size, right.size))
    assert np.sum(term_pair.block(sums) * S) == pytest.approx(np.sum(sums * term_pair.letters(S)), rel=1e-9)


def test_a_column_is_summed_by_double_letters_only_where_it_is_shared():
    term_pair = TermPair(
        _term((1, 0), [ColumnBasis(2, 1), ColumnBasis(4, 0)]), _term((1, 2), [ColumnBasis(3, 0), LEVELS])
    )
    assert term_pair.columns == (0, 1, 2)
    assert term_pair.axis_letters == (ColumnBasis(4, 0).single, ColumnBasis(3, 1).double, LEVELS.single)


def test_a_column_has_one_set_of_levels():
    term_pair = TermPair(_term((0,), [LEVELS]), _term((0,), [LevelBasis(("a", "b"))]))
    with pytest.raises(ValueError, match="a column has one set of levels"):
        _ = term_pair.axis_letters


BASES = st.one_of(st.builds(ColumnBasis, st.integers(1, 3), st.integers(0, 2)), st.just(LEVELS))


@settings(max_examples=15)
@given(bases=st.lists(BASES, min_size=1, max_size=3), seed=st.integers(0, 10**6))
def test_gram_matrix_of_a_product_from_products_of_double_letters(bases, seed):
    rng = np.random.default_rng(seed)
    t = [rng.integers(0, 3, 7) if basis == LEVELS else rng.uniform(-1, 1, 7) for basis in bases]
    term, w = _term(range(len(bases)), bases), rng.uniform(0.0, 2.0, 7)
    phi = _features(term, np.array(t, float))
    letters = _letters(TermPair(term, term), np.array(t, float), w)
    gram = term_gram(term, letters).dense()
    np.testing.assert_allclose(gram, phi.T @ (w[:, None] * phi), rtol=0, atol=1e-12 * w.sum())
    S = rng.normal(size=gram.shape)
    coefficients = project_term(bases, DenseView(S))
    assert coefficients.shape == letters.shape
    assert np.sum(gram * S) == pytest.approx(np.sum(letters * coefficients), abs=1e-11 * w.sum() * np.abs(S).sum())
    np.testing.assert_allclose(TermPair(term, term).block(letters), gram, rtol=0, atol=1e-12 * w.sum())
    np.testing.assert_allclose(TermPair(term, term).letters(S), coefficients, rtol=0, atol=1e-12 * np.abs(S).sum())
