"""The kernel of a model from a file, and the products that joined it, against the terms of its sums."""

from collections.abc import Sequence

import numpy as np

from vff.estimators.binding import BoundTerm
from vff.estimators.statistics import Statistics
from vff.estimators.tried import TriedInteractions
from vff.factors import Kernel, Term, normal_form
from vff.moments import numbers
from vff.storage import FileError


def demand(truth: bool | np.bool_, expected: str, found: object) -> None:
    """Refuse a file that is well formed and says what cannot be."""
    if not truth:
        raise FileError(f"{expected} was expected, found {found!r:.120}; write the file anew with save")


def check_kernel(kernel: Kernel | None, rows: Statistics | None, tried: TriedInteractions | None = None) -> None:
    """The kernel that a model prints is the one that its rows were summed for, whatever its starting values are.

    Products of two that joined the sum come after its terms, in their order.
    """
    if rows is None:
        return
    terms = rows.terms
    if tried is not None:
        terms = _without_joined(terms, tried)
    if kernel is None:
        return
    summed, written = [term.term for term in terms], normal_form(kernel)
    expected, found = _kernel_text(summed), _kernel_text(written)
    if expected != found and len(summed) == len(written):  # what was left to the column was taken from it
        found = _kernel_text([_completed(own, term, rows) for own, term in zip(written, terms, strict=True)])
    demand(expected == found, f"the kernel {expected:.100} that the rows were summed for", found)


def _without_joined(terms: Sequence[BoundTerm], tried: TriedInteractions) -> Sequence[BoundTerm]:
    """The terms that were there before products joined them."""
    joined = [pair.name for pair in tried.joined]
    rest = len(terms) - len(joined)
    found = [term.term.name for term in terms[max(0, rest) :]]
    demand(rest > 0 and found == joined, f"products {joined!s:.100} at the end of the sum", found)
    known = [value for pair in tried.pairs for value in (pair.expected, pair.gain) if value is not None]
    demand(bool(np.isfinite([tried.needed, *known]).all()), "finite gains of pairs", known)
    return terms[:rest]


def _completed(written: Term, bound: BoundTerm, rows: Statistics) -> Term:
    """A term with the order of levels that its columns have."""
    columns = rows.binding.columns
    if len(written.factors) != len(bound.columns):
        return written
    firsts = (columns[numbers((place,))[0]] for place in bound.columns)
    return Term(tuple(leaf.over(own.order, own.label) for leaf, own in zip(written.factors, firsts, strict=True)))


def _kernel_text(terms: Sequence[Term]) -> str:
    return " + ".join(" * ".join(own.bare().text(repr) for own in term.factors) for term in terms)
