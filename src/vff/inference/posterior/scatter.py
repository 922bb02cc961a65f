"""Rows whose inputs are uncertain: how much the mean of f varies over what their inputs may be (theory (24.6)).

With x ~ p given, var f(x) is the average over x of the variance of f, which double letters give as they are averages
of products, and the variance over x of the mean m(x) = phi(x)'c, the average of its square less the square of its
average. Terms that read no uncertain input do not vary, nor does the constant.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from vff.inference.posterior.term import Rows, TermProcess
from vff.moments import LetterFunction, TermPair, pair_functions, synthesise


class MeanScatter:
    """The variance over uncertain inputs of the sum of some terms with known coefficients."""

    def __init__(self, terms: Sequence[TermProcess], coefficients: Sequence[np.ndarray]):
        """Those of ``terms`` that read one; in the coordinates of their priors."""
        known = zip(terms, coefficients, strict=True)
        self.own = [(term, c) for term, c in known if any(one.factor.scattered for one in term.factors)]
        self._means = [term.function(c) for term, c in self.own]
        self._squares = self._functions()

    def _functions(self) -> list[LetterFunction]:
        """Functions whose sum is the average of the square."""
        own = [term.square(np.outer(c, c)) for term, c in self.own]
        pairs = {(s, t): (self.own[s], self.own[t]) for s, t in combinations(range(len(self.own)), 2)}
        term_pairs = {key: TermPair(one.request, other.request) for key, ((one, _), (other, _)) in pairs.items()}
        blocks = {key: 2.0 * np.outer(one.to_raw(c), other.to_raw(e)) for key, ((one, c), (other, e)) in pairs.items()}
        return [*own, *pair_functions(term_pairs, blocks)]

    def at(self, n: int, rows: Rows) -> np.ndarray:
        """At n rows; those beyond a domain have known inputs, and none."""
        found = np.zeros(n)
        if not self.own:
            return found
        inside = np.logical_and.reduce([term.inside(rows) for term, _ in self.own])
        if inside.any():
            some = rows if inside.all() else [column.taken(inside) for column in rows]
            values = synthesise(some, [*self._means, *self._squares])
            mean, square = (np.sum(part, axis=0) for part in (values[: len(self.own)], values[len(self.own) :]))
            # the difference is a variance; only rounding can carry it below zero
            found[inside] = np.maximum(square - mean**2, 0.0)
        return found
