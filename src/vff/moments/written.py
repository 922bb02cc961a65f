"""Rows of a sum of terms of one column each, features written out side by side: all pairs of terms in one product.

Engines take a set of columns at a time and write, spread or count its letters anew. Where features are a few hundred
and rows have few ties, a product of all features at once is faster: P^2 multiplications per row, which BLAS does at the
full speed of a core, for the sums of all pairs, and as many for quadratic forms. Levels are not written out: rows of a
level are added up by a sparse product. What is summed and evaluated is that of the engines, theory (3.1) and (3.3).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.linalg import block_diag, cho_factor, cho_solve
from scipy.linalg.blas import dtrmm  # pyright: ignore[reportAttributeAccessIssue]
from scipy.sparse import csr_array

from vff.basis.protocol import Basis
from vff.linalg import slices_of
from vff.moments.engines.base import START, Choice, Work
from vff.moments.engines.choice import cheapest
from vff.moments.operations import LetterFunction, Tables, Weighed
from vff.moments.plan import PassPlan
from vff.moments.rows import ColumnRows, TermRequest
from vff.moments.statistics import MomentRequest, Moments

_PER_LETTER, _PER_PRODUCT, _PER_LEVEL = 5e-9, 3e-11, 2e-9  # seconds, beside those of the engines
_THERE_AND_BACK = 4.0  # of what engines estimate for sums, by which values at rows, which they know less of, are dearer
_FEWEST, _LETTERS = 2**8, 2**20  # rows and letters at a time
_MOST_OF = 0.7  # features: where fewer are asked for, they are written by themselves
KEPT = 2**27
"""Bytes of features that are kept from pass to pass."""


@dataclass(frozen=True)
class Layout:
    """Which terms are written out, and which are levels."""

    request: MomentRequest

    @cached_property
    def levels(self) -> tuple[int, ...]:
        return tuple(s for s, term in enumerate(self.request.terms) if term.factors[0].domain.discrete)

    @cached_property
    def places(self) -> dict[int, slice]:
        """Where each of the others stands among the features that are written."""
        written = [s for s in range(len(self.request.terms)) if s not in self.levels]
        return dict(zip(written, slices_of(self.request.sizes[s] for s in written), strict=True))

    @property
    def size(self) -> int:
        """Features that are written."""
        return sum(self.request.sizes[s] for s in self.places)

    @property
    def chunk(self) -> int:
        """Rows at a time."""
        return max(_FEWEST, _LETTERS // self.size)

    @cached_property
    def term_of(self) -> dict[int, int]:
        """The term of every column."""
        return {self.column(s): s for s in range(len(self.request.terms))}

    def column(self, s: int) -> int:
        (column,) = self.request.terms[s].numbers
        return column

    def basis(self, s: int) -> Basis:
        return self.request.terms[s].bases[0]

    def narrowing(self, request: MomentRequest) -> list[tuple[slice, np.ndarray]] | None:
        """What takes the features of every term to those of a smaller request; None where they are the same."""
        if request == self.request:
            return None
        found = []
        for s, place in self.places.items():
            written, own = self.basis(s), request.terms[s].bases[0]
            eye = np.eye(written.size)
            found.append((place, (eye if own == written else written.to(own).single(eye)).T))
        return found

    @property
    def choice(self) -> Choice:
        """What is said of it where engines are named."""
        return Choice("dense", f"dense: all pairs of terms in one product of {self.size} letters")


def layout_of(plan: PassPlan, n: int) -> Layout | None:
    """That of a plan whose rows are better written out; None where they cannot be, or engines are faster."""
    request = plan.request
    if plan.engine != "auto" or not plan.sets or not all(_simple(term) for term in request.terms):
        return None
    layout = Layout(request)
    if len(layout.term_of) < len(request.terms) or not layout.places:
        return None
    per_row = layout.size * (_PER_LETTER + _PER_PRODUCT * layout.size + _PER_LEVEL * len(layout.levels))
    engines = 0.0
    for one in (*plan.alone, *plan.sets):
        engines += _THERE_AND_BACK * (cheapest(Work(n, one.jobs, plan.empty(one)))[1].seconds or 0.0)
        if START + n * per_row < engines:
            return layout
    return None


def _simple(term: TermRequest) -> bool:
    """Whether a term is of one column, and no row of it is missing or stands for many."""
    if len(term.factors) > 1 or len(term.numbers) > 1:
        return False
    basis, domain = term.bases[0], next(iter(term.factors)).domain
    if basis.scattered or basis.numbers is not basis:
        return False
    return basis.orthogonal and basis.single.local == 1 if domain.discrete else _spanned(basis)


@lru_cache(maxsize=64)
def _spanned(basis: Basis) -> bool:
    """Whether products of features tell the sums over all double letters; of a line, they have no constant."""
    return bool(np.diff(csr_array(basis.products().map).tocsc().indptr).all())


class WrittenStretch(list[ColumnRows]):
    """The columns of a stretch of rows, with their features."""

    def __init__(self, columns: Iterable[ColumnRows], layout: Layout, features: np.ndarray | None = None):
        super().__init__(columns)
        self.layout = layout
        self.features = self._written() if features is None else features

    def _written(self) -> np.ndarray:
        layout = self.layout
        found = np.empty((self[0].x.size, layout.size))
        for s, place in layout.places.items():
            column = self[layout.column(s)].on(layout.request.terms[s].factors[0].domain)
            found[:, place] = layout.basis(s).single.evaluate_transposed(column.t).T
        return found

    def level_column(self, s: int) -> ColumnRows:
        column = self[self.layout.column(s)]
        return column.for_request(self.layout.request.terms[s].factors[0])

    def feature_sums(self, w: np.ndarray) -> tuple[np.ndarray, ...]:
        """sum w phi of every term."""
        written, found = w @ self.features, []
        for s in range(len(self.layout.request.terms)):
            if s in self.layout.places:
                found.append(written[self.layout.places[s]])
                continue
            column = self.level_column(s)
            counts = np.bincount(column.codes, w, column.known_values.size)
            found.append(column.letters(self.layout.basis(s).single).T @ counts)
        return tuple(found)

    def combined(self, request: MomentRequest, groups: Sequence[Sequence[Weighed]], tables: Tables) -> list[np.ndarray]:
        """The sum of every group of functions, each with its weight, at every row.

        They are functions of the same terms, perhaps with fewer harmonics.
        """
        known = tables.setdefault("written", {})
        if "forms" not in known:
            maps = self.layout.narrowing(request)
            known["forms"] = [_Form(self, Layout(request), group) for group in groups]
            if maps is not None and Layout(request).size > _MOST_OF * self.layout.size:
                change = np.asarray(block_diag(*(change for _, change in maps)))
                maps = None
                for form in known["forms"]:
                    form.widen(change)
            known["narrow"] = maps
        features = self.features
        if known["narrow"] is not None:
            maps = known["narrow"]
            features = np.concatenate([self.features[:, place] @ change for place, change in maps], axis=1)
        return [form.at(self, features) for form in known["forms"]]


class _Form:
    """A sum of functions as a vector and a matrix over features, and tables over levels."""

    def __init__(self, rows: WrittenStretch, layout: Layout, group: Sequence[Weighed]):
        self.linear, self.square = np.zeros(layout.size), np.zeros((layout.size, layout.size))
        self.by_level: dict[int, np.ndarray] = {}
        self.across: dict[int, np.ndarray] = {}
        self.between: dict[tuple[int, int], np.ndarray] = {}
        for weight, function in group:
            terms = [layout.term_of[c] for c in function.columns]
            coefficients = weight * function.coefficients
            at_levels = [_at_values(rows, s, own) for s, own in zip(terms, function.axis_letters, strict=True)]
            for d, letters in enumerate(at_levels):
                if letters is not None:
                    coefficients = np.moveaxis(np.tensordot(letters, coefficients, axes=(1, d)), 0, d)
            self._add(layout, terms, function, coefficients)
        # of what is symmetric, the upper triangle says all
        self.square = np.asfortranarray(np.triu(self.square) + np.tril(self.square, -1).T)

    def widen(self, change: np.ndarray) -> None:
        """The same over features from which these follow by a change, (P, fewer)."""
        square = change @ (0.5 * (self.square + self.square.T)) @ change.T
        self.linear, self.square = change @ self.linear, np.asfortranarray(np.triu(square) + np.tril(square, -1).T)
        self.across = {s: table @ change.T for s, table in self.across.items()}

    def _add(self, layout: Layout, terms: list[int], function: LetterFunction, coefficients: np.ndarray) -> None:
        if len(terms) == 1:
            (s,) = terms
            basis = layout.basis(s)
            if s in layout.levels:
                self.by_level[s] = self.by_level.get(s, 0.0) + coefficients
            elif function.axis_letters[0] == basis.single:
                self.linear[layout.places[s]] += coefficients
            else:
                self.square[layout.places[s], layout.places[s]] += square_from(basis, coefficients)
            return
        s, t = terms
        if s in layout.places and t in layout.places:
            self.square[layout.places[s], layout.places[t]] += coefficients
        elif s in layout.levels and t in layout.levels:
            self.between[s, t] = coefficients
        else:
            level, other = (s, t) if s in layout.levels else (t, s)
            rows = coefficients if level == s else coefficients.T
            whole = self.across.setdefault(level, np.zeros((len(rows), layout.size)))
            whole[:, layout.places[other]] += rows

    def at(self, rows: WrittenStretch, features: np.ndarray) -> np.ndarray:
        total = features @ self.linear if self.linear.any() else np.zeros(len(features))
        for s, table in self.by_level.items():
            total += table[rows.level_column(s).codes]
        for s, table in self.across.items():
            total += np.einsum("np,np->n", table[rows.level_column(s).codes], features)
        for (s, t), table in self.between.items():
            total += table[rows.level_column(s).codes, rows.level_column(t).codes]
        if self.square.any():
            total += np.einsum("np,np->n", dtrmm(1.0, self.square, features.T, trans_a=1).T, features)
        return total


def _at_values(rows: WrittenStretch, s: int, letters: Any) -> np.ndarray | None:
    """Letters at the values of a level, (D, size); None where they are indicators of these, or of no levels."""
    if s not in rows.layout.levels:
        return None
    column = rows.level_column(s)
    return None if column.letters_are_values(letters) else column.letters(letters)


class WrittenSums:
    """The sums of a plan, taken stretch by stretch."""

    def __init__(self, layout: Layout):
        P = layout.size
        self.layout, self.n, self.weight, self.target = layout, 0, 0.0, 0.0
        self.gram, self.project = np.zeros((P, P)), np.zeros(P)
        self.levels: dict[int, list[np.ndarray]] = {}
        self.between: dict[tuple[int, int], np.ndarray] = {}

    def add(self, rows: WrittenStretch, w: np.ndarray, weighted: np.ndarray) -> None:
        features = rows.features
        self.n, self.weight, self.target = self.n + w.size, self.weight + w.sum(), self.target + weighted.sum()
        # of a root, BLAS takes half; sites of likelihoods that are not log-concave may be negative, and have none
        positive = w.min(initial=0.0) >= 0.0
        weighed = features * (np.sqrt(w) if positive else w)[:, None]
        self.gram += (weighed if positive else features).T @ weighed
        self.project += weighted @ features
        for s in self.layout.levels:
            column = rows.level_column(s)
            D, codes = column.known_values.size, column.codes
            by_level = csr_array((w, codes, np.arange(w.size + 1)), (w.size, D)).T
            parts = [np.bincount(codes, w, D), np.bincount(codes, weighted, D), by_level @ features]
            if s not in self.levels:
                self.levels[s] = [np.zeros_like(part) for part in parts]
            for total, part in zip(self.levels[s], parts, strict=True):
                total += part
            for t in self.layout.levels:
                if s < t:
                    other = rows.level_column(t)
                    both = codes.astype(np.int64) * other.known_values.size + other.codes
                    cells = np.bincount(both, w, D * other.known_values.size).reshape(D, -1)
                    self.between[s, t] = self.between.get((s, t), 0.0) + cells

    def moments(self, rows: WrittenStretch) -> Moments:
        """What all rows sum to; the last stretch knows what levels are."""
        layout, request = self.layout, self.layout.request
        grams, projects, across = [], [], {}
        for s in range(len(request.terms)):
            basis = layout.basis(s)
            if s in layout.places:
                place = layout.places[s]
                grams.append(doubles_from(basis, self.gram[place, place]))
                projects.append(self.project[place].copy())
                continue
            column, (weights, targets, crossed) = rows.level_column(s), self.levels[s]
            single = _letters(column, basis.single)
            grams.append(_applied(_letters(column, basis.double), weights))
            projects.append(_applied(single, targets))
            across[s] = _applied(single, crossed)
        blocks = {}
        for s, t in request.pairs:
            if s in layout.places and t in layout.places:
                blocks[s, t] = np.ascontiguousarray(self.gram[layout.places[s], layout.places[t]])
            elif s in layout.levels and t in layout.levels:
                cells = _applied(_letters(rows.level_column(s), layout.basis(s).single), self.between[s, t])
                other = _letters(rows.level_column(t), layout.basis(t).single)
                blocks[s, t] = np.ascontiguousarray(_applied(other, cells.T).T)
            elif s in layout.levels:
                blocks[s, t] = np.ascontiguousarray(across[s][:, layout.places[t]])
            else:
                blocks[s, t] = np.ascontiguousarray(across[t][:, layout.places[s]].T)
        whole = self.n, float(self.weight), 0.0, float(self.target), 0.0
        return Moments(request, *whole, tuple(grams), tuple(projects), blocks)


def _letters(column: ColumnRows, letters: Any) -> np.ndarray | None:
    return None if column.letters_are_values(letters) else column.letters(letters)


def _applied(letters: np.ndarray | None, sums: np.ndarray) -> np.ndarray:
    """Sums by value as sums over letters."""
    return sums if letters is None else letters.T @ sums


@lru_cache(maxsize=64)
def _normal(basis: Basis) -> Any:
    """A factor of L'L, L the linear map from sums over double letters to sums over products of two features."""
    found = basis.products()
    return cho_factor(csr_array(found.transposed @ found.map).toarray())


def doubles_from(basis: Basis, gram: np.ndarray) -> np.ndarray:
    """Sums over double letters, (Q,), of which this is the Gram matrix: the only ones, theory (3.3)."""
    found = basis.products()
    return cho_solve(_normal(basis), found.transposed @ gram[found.rows, found.columns])


def square_from(basis: Basis, coefficients: np.ndarray) -> np.ndarray:
    """A matrix S, (P, P), with phi'S phi = psi'c at every row: the smallest."""
    found, S = basis.products(), np.zeros((basis.size, basis.size))
    S[found.rows, found.columns] = found.map @ cho_solve(_normal(basis), coefficients)
    return S
