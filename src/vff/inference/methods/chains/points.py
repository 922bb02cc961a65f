"""Where rows meet the function, in JAX: every term has points, and rows refer to them.

Points are all combinations of a few values per column (a lattice, one small matrix product per column), or written out
one after another. A row without a reference is its own point; codes say which point a row stands at; rows at the nodes
of cells are interpolated by polynomials, block by block of rows of one cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from vff.factors import WhiteFactor
from vff.inference.model.products import evaluated
from vff.inference.model.term import Term
from vff.moments import MomentRequest


class Interpolated(NamedTuple):
    """Rows in blocks of one cell each, some places of which are empty."""

    weights: Any
    """Of the nodes of the block's cell, (blocks, rows, nodes); zero in empty places."""
    cell: Any
    """Of every block."""
    place: Any
    """Where every row is, counted through all blocks, (N,)."""
    row: Any
    """Which row every place holds, N where none, (blocks * rows,)."""


class TermPoints(NamedTuple):
    """The points of one term."""

    features: tuple[Any, ...]
    """Of every column, (n_d, P_d): at its values on a lattice, or at every point."""
    codes: Any
    """(N,) point of every row; None when rows are points, each serving ``copies`` rows; or ``Interpolated``."""
    varying: tuple[Any, ...] = ()
    """Of every column the functions of which its k(x, x) is made, (n_d, J_d); none where all are one everywhere."""
    tables: tuple[Any, ...] = ()
    """Of every column what its white variables read, ``lattice.ColumnTable`` or None; empty where none does."""


class RowData(NamedTuple):
    """All that the log-density knows of the rows."""

    terms: tuple[TermPoints, ...]
    y: Any
    extra: Any
    w: Any
    offset: Any = 0.0
    """What is added to the function, (N,) or zero."""


@dataclass(frozen=True)
class TermShape:
    """A term, as far as compiled code depends on it."""

    axes: tuple[WhiteFactor, ...]
    lattice: bool = False
    copies: int = 1
    first: int = 0
    """Entry of its variance among the hyperparameters; those of its factors follow."""

    @property
    def end(self) -> int:
        """The entry after its last."""
        return self.first + 1 + sum(axis.n_values for axis in self.axes)

    @property
    def white_shape(self) -> tuple[int, ...]:
        return tuple(axis.white_size for axis in self.axes)

    @property
    def white_count(self) -> int:
        return prod(self.white_shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the coefficients."""
        return tuple(axis.size for axis in self.axes)

    def variance(self, t: Any) -> Any:
        """At log hyperparameters t."""
        return jnp.exp(t[self.first])

    def values_of(self, t: Any) -> list[tuple[Any, ...]]:
        """Hyperparameters of every column beside the variance."""
        values = (jnp.exp(t[entry]) for entry in range(self.first + 1, self.end))
        return [tuple(islice(values, axis.n_values)) for axis in self.axes]

    def roots(self, t: Any, points: TermPoints | None = None) -> tuple[Any, ...]:
        """Of every column, for unit variance; columns that read tables have them beside their points."""
        tables = points.tables if points is not None and points.tables else (None,) * len(self.axes)
        given: Any = zip(self.axes, self.values_of(t), tables, strict=True)
        return tuple(axis.at(values) if table is None else axis.at(values, table) for axis, values, table in given)

    @property
    def constant_variance(self) -> bool:
        """Whether k(x, x) is the same everywhere."""
        return all(axis.factor.constant_variance for axis in self.axes)

    def variance_weights(self, t: Any) -> list[Any]:
        """Of every column the weights of the functions of which its k(x, x) is made, (J_d,)."""
        return [axis.variance_weights(values) for axis, values in zip(self.axes, self.values_of(t), strict=True)]

    def prior_variance(self, points: TermPoints, t: Any) -> Any:
        """k(x, x) at every point; one number where it is the same at all."""
        if self.constant_variance:
            return self.variance(t)
        own = [functions @ g for functions, g in zip(points.varying, self.variance_weights(t), strict=True)]
        return self.variance(t) * (reduce(jnp.multiply.outer, own).reshape(-1) if self.lattice else prod(own))

    def variance_total(self, sums: Any, weight: Any, t: Any) -> Any:
        """sum w k(x, x), from ``Term.variance_sums`` where it varies."""
        if self.constant_variance:
            return self.variance(t) * weight
        for g in reversed(self.variance_weights(t)):
            sums = sums @ g
        return self.variance(t) * sums

    def matrix(self, t: Any, roots: tuple[Any, ...]) -> Any:
        """The map from white variables to coefficients, written out, with the variance in it, (P, S)."""
        both = zip(self.axes, roots, strict=True)
        maps = [axis.coefficients(root, jnp.eye(axis.white_size)) for axis, root in both]
        return jnp.exp(0.5 * t[self.first]) * reduce(jnp.kron, maps)

    def coefficients(self, roots: tuple[Any, ...], v: Any) -> Any:
        """White variables to coefficients, a tensor with an axis per column."""
        tensor = v.reshape(self.white_shape)
        for d, (axis, root) in enumerate(zip(self.axes, roots, strict=True)):
            front = jnp.moveaxis(tensor, d, 0)
            image = axis.coefficients(root, front.reshape(front.shape[0], -1))
            tensor = jnp.moveaxis(image.reshape(-1, *front.shape[1:]), 0, d)
        return tensor

    def at_points(self, points: TermPoints, roots: tuple[Any, ...], c: Any) -> tuple[Any, Any]:
        """phi'c and phi'K^-1 phi at every point."""
        explained = [
            axis.explained(root, phi) for axis, root, phi in zip(self.axes, roots, points.features, strict=True)
        ]
        if not self.lattice:
            return self.values(points, c), jnp.prod(jnp.stack(explained), axis=0)
        return self.values(points, c), reduce(jnp.multiply.outer, explained).reshape(-1)

    def values(self, points: TermPoints, c: Any) -> Any:
        """phi'c at every point."""
        if not self.lattice:
            return evaluated(points.features, c.reshape(-1), jnp)
        for d, phi in enumerate(points.features):
            c = jnp.moveaxis(jnp.tensordot(phi, c, axes=(1, d)), 0, d)
        return c.reshape(-1)

    def at_rows(self, points: TermPoints, values: Any) -> Any:
        """What is known of points, at the rows."""
        codes = points.codes
        if isinstance(codes, Interpolated):
            by_cell = values.reshape(-1, codes.weights.shape[-1])[codes.cell]
            by_place = jnp.einsum("brj,bj->br", codes.weights, by_cell).reshape(-1)
            return _picked(by_place, codes.place, codes.row)
        if codes is not None:
            return values[codes]
        return jnp.repeat(values, self.copies) if self.copies > 1 else values


def shapes_of(terms: Sequence[Term], request: MomentRequest) -> tuple[TermShape, ...]:
    """The terms as chains see them, rows written out."""
    shapes: list[TermShape] = []
    for term, own in zip(terms, request.terms, strict=True):
        axes = tuple(factor.white(basis) for factor, basis in zip(term.factors, own.bases, strict=True))
        shapes.append(TermShape(axes, first=shapes[-1].end if shapes else 0))
    return tuple(shapes)


@jax.custom_vjp
def _picked(values: Any, place: Any, row: Any) -> Any:
    """values[place]; every place holds at most one row, so the transpose is a choice as well and not a sum."""
    return values[place]


_picked.defvjp(
    lambda values, place, row: (values[place], row),
    lambda row, slope: (jnp.append(slope, 0.0)[row], None, None),
)
