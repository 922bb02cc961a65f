"""Two columns at once: blocks Phi_s' W Phi_t of the Gram matrix, and their share of diag(Phi S Phi').

A pair engine is a record of two maps that are transposes of one another,

    sum_block(left, right, w)       sum_n w_n phi_s(n) phi_t(n)'         (P_s, P_t)
    evaluate_block(left, right, S)  phi_s(n)' S phi_t(n) at every row    (N,)

``table`` counts rows per pair of codes and is exact; ``nufft`` takes a two-dimensional transform, with the edge
functions as row weights of one-dimensional ones; ``grouped`` takes one-dimensional transforms of a continuous column
for every value of the other; ``dense`` writes the features out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from vff.basis import ColumnBasis
from vff.moments.engines.nufft import type1_for_pairs, type1_pair, type2, type2_for_pairs, type2_pair
from vff.moments.engines.sheets import edge_rows, packed_sums, packed_values
from vff.moments.rows import ColumnRows


@dataclass(frozen=True)
class PairEngine:
    """A named pair of adjoint maps between rows of two columns and a block."""

    name: str
    sum_block: Callable[[ColumnRows, ColumnRows, np.ndarray], np.ndarray]
    evaluate_block: Callable[[ColumnRows, ColumnRows, np.ndarray], np.ndarray]


def _dense_sum(left: ColumnRows, right: ColumnRows, w: np.ndarray) -> np.ndarray:
    plain = w.strides == (0,) and w[0] == 1.0
    return (left.features if plain else left.features * w[:, None]).T @ right.features


def _dense_evaluate(left: ColumnRows, right: ColumnRows, S: np.ndarray) -> np.ndarray:
    return np.einsum("np,np->n", left.features @ S, right.features)


def tally(counts: np.ndarray, left: ColumnRows, right: ColumnRows, w: np.ndarray) -> None:
    """Add the weights of the rows to the contingency table ``counts`` (D_s, D_t)."""
    cells = left.codes * counts.shape[1]
    cells += right.codes
    table = counts.reshape(-1)
    same = w.strides == (0,)  # one weight for all rows, as when none were given
    if table.size > 4 * cells.size:
        np.add.at(table, cells, w[0] if same else w)
    elif same:
        table += w[0] * np.bincount(cells, minlength=table.size)
    else:
        table += np.bincount(cells, w, table.size)


def _table_sum(left: ColumnRows, right: ColumnRows, w: np.ndarray) -> np.ndarray:
    counts = np.zeros((left.codebook.size, right.codebook.size))
    tally(counts, left, right, w)
    return left.features_at_values.T @ counts @ right.features_at_values


def _table_evaluate(left: ColumnRows, right: ColumnRows, S: np.ndarray) -> np.ndarray:
    table = left.features_at_values @ S @ right.features_at_values.T
    return table.reshape(-1)[left.codes * table.shape[1] + right.codes]


def _bases(left: ColumnRows, right: ColumnRows) -> tuple[ColumnBasis, ColumnBasis]:
    assert isinstance(left.basis, ColumnBasis)
    assert isinstance(right.basis, ColumnBasis)
    return left.basis, right.basis


def edges_at(column: ColumnRows) -> np.ndarray:
    """R_1 ... R_q at the rows, (q, N); every pair of the column asks for them."""
    assert isinstance(column.basis, ColumnBasis)
    if "edges" not in column.remembered:
        column.remembered["edges"] = edge_rows(type2, column.basis.single, column.t)
    return column.remembered["edges"]


def _wave_block(F: np.ndarray) -> np.ndarray:
    """Sums of products of cosines and sines, (2K + 1, 2L + 1), from F[k, l] = sum w exp(i (k theta + l theta'))."""
    K, L = (size // 2 for size in F.shape)
    plus, minus = F[K:, L:], F[K:, L::-1]  # (a, b) and (a, -b) for a, b >= 0
    total, difference = 0.5 * (plus + minus), 0.5 * (plus - minus)
    # cos cos, cos sin; sin cos, sin sin
    upper = np.concatenate([total.real, difference.imag[:, 1:]], axis=1)
    lower = np.concatenate([total.imag[1:], -difference.real[1:, 1:]], axis=1)
    return np.concatenate([upper, lower])


def _wave_coefficients(S: np.ndarray) -> np.ndarray:
    """C (2K + 1, 2L + 1) with Re sum C[k, l] exp(i (k theta + l theta')) = h' S h; transpose of ``_wave_block``."""
    K, L = (size // 2 for size in S.shape)
    cc, cs = S[: K + 1, : L + 1], np.pad(S[: K + 1, L + 1 :], ((0, 0), (1, 0)))
    sc, ss = np.pad(S[K + 1 :, : L + 1], ((1, 0), (0, 0))), np.pad(S[K + 1 :, L + 1 :], ((1, 0), (1, 0)))
    C = np.zeros(S.shape, complex)
    C[K:, L:] += 0.5 * (cc - ss - 1j * (sc + cs))
    C[K:, L::-1] += 0.5 * (cc + ss - 1j * (sc - cs))
    return C


def _nufft_sum(left: ColumnRows, right: ColumnRows, w: np.ndarray) -> np.ndarray:
    s, t = _bases(left, right)
    R, Q = edges_at(left), edges_at(right)
    harmonics = _wave_block(type1_pair(left.t, right.t, w, s.M, t.M))
    top = np.concatenate([harmonics, packed_sums(type1_for_pairs, left.t, w * Q, s.M).T], axis=1)
    bottom = np.concatenate([packed_sums(type1_for_pairs, right.t, w * R, t.M), (w * R) @ Q.T], axis=1)
    return np.concatenate([top, bottom])


def _nufft_evaluate(left: ColumnRows, right: ColumnRows, S: np.ndarray) -> np.ndarray:
    s, t = _bases(left, right)
    R, Q, H, J = edges_at(left), edges_at(right), s.harmonics, t.harmonics
    values = np.real(type2_pair(left.t, right.t, _wave_coefficients(S[:H, :J])))
    values += np.einsum("jn,jn->n", packed_values(type2_for_pairs, left.t, S[:H, J:].T, s.M), Q)
    values += np.einsum("jn,jn->n", packed_values(type2_for_pairs, right.t, S[H:, :J], t.M), R)
    return values + np.einsum("in,ij,jn->n", R, S[H:, J:], Q)


def _groups(column: ColumnRows) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the order of their codes, and where each code's rows begin, (N,) and (D + 1,)."""
    if "order" not in column.remembered:
        codes, D = column.codes, column.codebook.size
        # sixteen bits are sorted by counting
        column.remembered["order"] = np.argsort(codes.astype(np.uint16) if D <= 2**16 else codes, kind="stable")
        column.remembered["begins"] = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=D))])
    return column.remembered["order"], column.remembered["begins"]


def _stretches(column: ColumnRows) -> Iterator[tuple[int, slice]]:
    """Codes that occur, with their rows in the order of ``_groups``."""
    begins = _groups(column)[1].tolist()
    return ((d, slice(*ends)) for d, ends in enumerate(pairwise(begins)) if ends[0] < ends[1])


def _grouped_sum(left: ColumnRows, right: ColumnRows, w: np.ndarray) -> np.ndarray:
    if left.book is None:
        return _grouped_sum(right, left, w).T
    assert isinstance(right.basis, ColumnBasis)
    M, H, D, order = right.basis.M, right.basis.harmonics, left.codebook.size, _groups(left)[0]
    t, weights, sums = right.t[order], w[order], np.zeros((D, right.basis.size))
    for d, rows in _stretches(left):
        sums[d, :H] = packed_sums(type1_for_pairs, t[rows], weights[None, rows], M)[0]
    for j, edge in enumerate(edges_at(right)):
        sums[:, H + j] = np.bincount(left.codes, w * edge, D)
    return left.features_at_values.T @ sums


def _grouped_evaluate(left: ColumnRows, right: ColumnRows, S: np.ndarray) -> np.ndarray:
    if left.book is None:
        return _grouped_evaluate(right, left, S.T)
    assert isinstance(right.basis, ColumnBasis)
    M, H, order = right.basis.M, right.basis.harmonics, _groups(left)[0]
    coefficients, t, values = left.features_at_values @ S, right.t[order], np.empty(right.t.size)
    for d, rows in _stretches(left):
        values[order[rows]] = packed_values(type2_for_pairs, t[rows], coefficients[d : d + 1, :H], M)[0]
    for j, edge in enumerate(edges_at(right)):
        values += coefficients[left.codes, H + j] * edge
    return values


def prepare_pairs(columns: Sequence[ColumnRows], engines: Mapping[tuple[int, int], str], pool: Executor) -> None:
    """What several pairs of a column will need, worked out once, so that pairs can then be taken side by side."""
    transformed = {s for pair, engine in engines.items() if engine in ("nufft", "grouped") for s in pair}
    waiting = [columns[s] for s in transformed if isinstance(columns[s].basis, ColumnBasis)]
    list(pool.map(edges_at, waiting))
    grouped = {s for pair, engine in engines.items() if engine == "grouped" for s in pair}
    list(pool.map(_groups, [columns[s] for s in grouped if columns[s].book is not None]))


PAIR_ENGINES = {
    engine.name: engine
    for engine in (
        PairEngine("dense", _dense_sum, _dense_evaluate),
        PairEngine("nufft", _nufft_sum, _nufft_evaluate),
        PairEngine("table", _table_sum, _table_evaluate),
        PairEngine("grouped", _grouped_sum, _grouped_evaluate),
    )
}
