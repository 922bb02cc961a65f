"""White variables of a lattice: as many per column as its points tell apart, from a table over the lengthscale.

Functions at the n points of a column have rank r, less than their number P where points fill a part of the domain.
With phi R of that rank, phi = U C, any square root L of C R R' C' gives the same law at the points, U L v with r white
variables in place of P and more (theory (12.3)). L and what features leave out depend on the lengthscale alone and
smoothly, so they are read from a table by local polynomials, and computed beyond it. The rest of the white variables is
independent of the rows: ``unfolded`` draws it, and says what all coefficients are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import factorial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vff.factors import WhiteFactor
from vff.inference.methods.chains.points import RowData, TermPoints, TermShape
from vff.inference.methods.chains.run import compiled
from vff.likelihoods.float64 import float64

_NEGLIGIBLE = 1e-9  # of the largest standard deviation at points: beneath it functions are left out
_WORTH = 0.8  # of the features, above which nothing is gained
_STEP, _REACH = 0.05, 64  # of the table: log units, and steps to either side
_LOCAL = 12  # entries that a polynomial goes through: with these steps it is exact to rounding
_LAGRANGE = np.array([(-1.0) ** (_LOCAL - 1 - j) / (factorial(j) * factorial(_LOCAL - 1 - j)) for j in range(_LOCAL)])


class ColumnTable(NamedTuple):
    """Of one column, at logarithms of its lengthscale that are ``_STEP`` apart."""

    low: Any
    """The first of them."""
    rows: Any
    """L, r^2 numbers, and phi' K^-1 phi at the n points, (J, r^2 + n)."""
    C: Any
    """(r, P)."""
    features: Any
    """phi, (n, P)."""


class TabulatedRoot(NamedTuple):
    """What the maps of one column need."""

    L: Any
    """(r, r), lower triangular."""
    explained: Any
    """phi' K^-1 phi at the points, (n,)."""


@dataclass(frozen=True)
class TabulatedWhite(WhiteFactor[Any]):
    """r white variables to r coefficients of the functions U at the points of a column."""

    axis: WhiteFactor[Any]
    rank: int

    @property
    def size(self) -> int:
        return self.rank

    def at(self, values: tuple[Any, ...], table: ColumnTable | None = None) -> TabulatedRoot:
        """Read from the table, computed beyond it."""
        assert table is not None
        numbers = _numbers(self.axis, jnp.log(values[0]), table)
        return TabulatedRoot(numbers[: self.rank**2].reshape(self.rank, self.rank), numbers[self.rank**2 :])

    def coefficients(self, root: TabulatedRoot, v: Any) -> Any:
        return root.L @ v

    def explained(self, root: TabulatedRoot, features: Any) -> Any:
        return root.explained


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _numbers(axis: WhiteFactor[Any], log_value: Any, table: ColumnTable) -> Any:
    """A row of the table at any logarithm of the lengthscale, read or computed."""
    return _with_slope(axis, log_value, table)[0]


@_numbers.defjvp
def _(axis: WhiteFactor[Any], primals: Any, tangents: Any) -> Any:
    """Of one number, so that the slope is known on the way forward: nothing is kept of a branch that is not taken."""
    numbers, slope = _with_slope(axis, *primals)
    return numbers, slope * tangents[0]


def _with_slope(axis: WhiteFactor[Any], log_value: Any, table: ColumnTable) -> tuple[Any, Any]:
    place, last = (log_value - table.low) / _STEP, len(table.rows) - 1
    read = lambda at: _read(table.rows, (at - table.low) / _STEP)  # noqa: E731
    computed = lambda at: _computed(axis, table.C, table.features, jnp.exp(at))  # noqa: E731
    inside, one = (place >= 0) & (place <= last), jnp.ones_like(log_value)
    return jax.lax.cond(
        inside, lambda: jax.jvp(read, (log_value,), (one,)), lambda: jax.jvp(computed, (log_value,), (one,))
    )


def _read(rows: Any, place: Any) -> Any:
    """The table between its entries: a polynomial through those around."""
    first = jnp.clip(jnp.floor(jax.lax.stop_gradient(place)).astype(int) - _LOCAL // 2 + 1, 0, len(rows) - _LOCAL)
    gaps = place - first - np.arange(_LOCAL)
    before = jnp.concatenate([jnp.ones(1), jnp.cumprod(gaps[:-1])])
    after = jnp.concatenate([jnp.cumprod(gaps[:0:-1])[::-1], jnp.ones(1)])
    return (before * after * _LAGRANGE) @ jax.lax.dynamic_slice(rows, (first, 0), (_LOCAL, rows.shape[1]))


def _halved(axis: WhiteFactor[Any], C: Any, root: Any) -> tuple[Any, Any]:
    """Q (S, r) with orthonormal columns and L, lower triangular with a positive diagonal: C R = L Q'."""
    shape = jax.ShapeDtypeStruct((axis.white_size, len(C)), C.dtype)
    (transposed,) = jax.linear_transpose(lambda v: axis.coefficients(root, v), shape)(C.T)
    Q, upper = jnp.linalg.qr(transposed)
    signs = jnp.where(jnp.diagonal(upper) < 0.0, -1.0, 1.0)
    return Q * signs, (upper * signs[:, None]).T


def _computed(axis: WhiteFactor[Any], C: Any, features: Any, value: Any) -> Any:
    """L and phi' K^-1 phi."""
    root = axis.at((value,))
    return jnp.concatenate([_halved(axis, C, root)[1].reshape(-1), axis.explained(root, features)])


@lru_cache(maxsize=32)
def _entry(axis: WhiteFactor[Any]) -> Any:
    return compiled(lambda C, features, value: _computed(axis, C, features, value))


def reduced(shapes: Sequence[TermShape], rows: RowData, t: np.ndarray) -> tuple[tuple[TermShape, ...], RowData]:
    """The same law at the rows in fewer white variables, where columns of a lattice allow it; t is near its middle."""
    found = [_reduced(shape, points, t) for shape, points in zip(shapes, rows.terms, strict=True)]
    return tuple(shape for shape, _ in found), rows._replace(terms=tuple(points for _, points in found))


def _reduced(shape: TermShape, points: TermPoints, t: np.ndarray) -> tuple[TermShape, TermPoints]:
    if not shape.lattice:
        return shape, points
    columns = [
        _column(axis, np.asarray(phi), values)
        for axis, phi, values in zip(shape.axes, points.features, shape.values_of(t), strict=True)
    ]
    if all(table is None for _, _, table in columns):
        return shape, points
    axes, features, tables = zip(*columns, strict=True)
    return replace(shape, axes=axes), points._replace(features=features, tables=tables)


def _column(axis: WhiteFactor[Any], phi: np.ndarray, values: tuple[Any, ...]) -> tuple[Any, Any, ColumnTable | None]:
    """A column's white variables, functions at points, and table; as they are where nothing is gained."""
    if len(values) != 1 or not axis.factor.constant_variance:
        return axis, phi, None
    value = float(values[0])
    with float64():
        R = np.asarray(axis.coefficients(axis.at((value,)), np.eye(axis.white_size)))
        U, sd, _ = np.linalg.svd(phi @ R, full_matrices=False)
        rank = int(np.sum(sd > _NEGLIGIBLE * sd[0]))
        if rank > _WORTH * axis.size:
            return axis, phi, None
        U, sd = U[:, :rank], sd[:rank]
        C, entry = (U.T @ phi) / sd[:, None], _entry(axis)
        middle = np.log(value) + _STEP * np.arange(-_REACH, _REACH + 1)
        rows = np.stack([np.asarray(entry(C, phi, own)) for own in np.exp(middle)])
    return TabulatedWhite(axis.factor, axis.basis, axis, rank), U * sd, ColumnTable(middle[0], rows, C, phi)


def unfolded(full: TermShape, points: TermPoints, t: Any, v: Any, key: Any) -> tuple[Any, Any]:
    """Coefficients of all functions of a term, its variance in them, and all white variables, given those of points.

    What rows do not speak of is drawn from its prior, theory (12.3): V = z + Q (v - Q'z) with C R = L Q', by columns.
    """
    roots = full.roots(t)
    if not points.tables:
        return jnp.exp(0.5 * t[full.first]) * full.coefficients(roots, v), v
    given = zip(full.axes, roots, points.tables, strict=True)
    maps = [None if table is None else _halved(axis, table.C, root)[0] for axis, root, table in given]
    z = jax.random.normal(key, full.white_shape)
    short = _along(maps, z, transposed=True)
    V = (z + _along(maps, v.reshape(short.shape) - short, transposed=False)).reshape(-1)
    return jnp.exp(0.5 * t[full.first]) * full.coefficients(roots, V), V


def _along(maps: Sequence[Any], tensor: Any, *, transposed: bool) -> Any:
    """Every axis by its map, or the transpose; those without one stay."""
    for d, Q in enumerate(maps):
        if Q is not None:
            tensor = jnp.moveaxis(jnp.tensordot(Q.T if transposed else Q, tensor, axes=(1, d)), 0, d)
    return tensor
