"""Tables of every kind of column, with their features written out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from vff.basis import Codes, ColumnBasis, Interval, LevelBasis
from vff.moments import (
    ColumnRequest,
    ColumnRows,
    DistinctValues,
    MomentRequest,
    Moments,
    RowBlock,
    TermRequest,
    moments_of_arrays,
)

KINDS = ("integer", "decimal", "continuous", "constant", "levels")


@dataclass(frozen=True)
class Table:
    """Rows with what is to be summed over them."""

    request: MomentRequest
    columns: list[np.ndarray]
    y: np.ndarray
    w: np.ndarray

    @property
    def features(self) -> np.ndarray:
        """Phi, (N, P): the definition."""
        return np.concatenate([self._of_term(term) for term in self.request.terms], axis=1)

    def _of_term(self, term: TermRequest) -> np.ndarray:
        parts = zip(term.columns, term.factors, strict=True)
        written = [factor.basis.evaluate(factor.domain.to_unit(self.columns[c])) for c, factor in parts]
        if len(written) == 1:
            return written[0]
        rows = []
        for n in range(self.y.size):
            product = np.ones(1)
            for features in written:
                product = np.kron(product, features[n])
            rows.append(product)
        return np.array(rows).reshape(self.y.size, term.size)

    @property
    def distinct_values(self) -> list[DistinctValues]:
        """The distinct values of every column, found by sorting."""
        return [
            DistinctValues(
                np.arange(float(column.basis.size)) if isinstance(column.basis, LevelBasis) else np.unique(x)
            )
            for column, x in zip(self.request.columns, self.columns, strict=True)
        ]

    @property
    def column_rows(self) -> list[ColumnRows]:
        """Rows that every engine can work on."""
        parts = zip(self.request.columns, self.columns, self.distinct_values, strict=True)
        return [ColumnRows(*part) for part in parts]

    @property
    def source(self) -> RowBlock:
        return RowBlock(self.y.size, lambda s, rows: self.columns[s][rows], self.y, self.w)

    def rows(self, which: Any) -> "Table":
        return replace(self, columns=[x[which] for x in self.columns], y=self.y[which], w=self.w[which])

    def only(self, which: Sequence[int]) -> "Table":
        """Some of the columns."""
        request = MomentRequest.of_columns([self.request.columns[s] for s in which])
        return replace(self, request=request, columns=[self.columns[s] for s in which])

    def with_bases(self, bases: Sequence[ColumnBasis | LevelBasis]) -> "Table":
        both = zip(self.request.columns, bases, strict=True)
        return replace(self, request=MomentRequest.of_columns([replace(column, basis=basis) for column, basis in both]))

    def with_terms(self, terms: Sequence[tuple[Sequence[int], Sequence[ColumnBasis | LevelBasis]]]) -> "Table":
        """Terms over some of the columns each, with a basis per column."""
        places = [column.domain for column in self.request.columns]
        requests = [
            TermRequest(tuple(numbers), tuple(ColumnRequest(places[c], b) for c, b in zip(numbers, bases, strict=True)))
            for numbers, bases in terms
        ]
        return replace(self, request=MomentRequest(tuple(requests)))

    def read(self, engine: str = "auto", offset: float = 0.0) -> Moments:
        return moments_of_arrays(self.request, self.columns, self.y, self.w, engine, offset)


def _make(N: int, seed: int, kinds: Sequence[str] = KINDS) -> Table:
    rng = np.random.default_rng(seed)
    every = {
        "integer": (Interval(-3.5, 9.0), ColumnBasis(3, 2), rng.integers(-3, 9, N).astype(float)),
        "decimal": (Interval(0.0, 5.0), ColumnBasis(2, 0), np.round(rng.uniform(0.0, 5.0, N), 1)),
        "continuous": (Interval(-6.0, 6.0), ColumnBasis(4, 3), np.clip(rng.normal(size=N), -6.0, 6.0)),
        "constant": (Interval(1.5, 3.0), ColumnBasis(1, 1), np.full(N, 2.5)),
        "levels": (Codes(), LevelBasis(("a", "b", "c", "d")), rng.integers(0, 4, N).astype(float)),
    }
    columns = [every[kind] for kind in kinds]
    request = MomentRequest.of_columns([ColumnRequest(place, basis) for place, basis, _ in columns])
    return Table(request, [x for _, _, x in columns], 3.0 + rng.normal(size=N), rng.uniform(0.0, 2.0, N))


def _assert_equal(found: Moments, expected: Moments, tolerance: float) -> None:
    assert found.request == expected.request
    assert found.n == expected.n
    assert found.offset == expected.offset
    size = expected.weight * max(1.0, np.abs(expected.target_squared / max(expected.weight, 1e-300)))
    for name in ("weight", "target", "target_squared"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=0, atol=tolerance * size)
    for mine, theirs in zip((*found.grams, *found.projects), (*expected.grams, *expected.projects), strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=tolerance * size)
    assert found.blocks.keys() == expected.blocks.keys()
    for pair, block in expected.blocks.items():
        np.testing.assert_allclose(found.blocks[pair], block, rtol=0, atol=tolerance * size)


@pytest.fixture(scope="session")
def make_table() -> Callable[..., Table]:
    """Rows, seed and kinds of columns -> a table."""
    return _make


@pytest.fixture(scope="session")
def assert_equal() -> Callable[[Moments, Moments, float], None]:
    """Two sets of moments agree in everything, relative to the size of the sums."""
    return _assert_equal
