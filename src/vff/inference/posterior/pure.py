"""Effects that are pure: what a product has of its own, and what it has that a term of fewer columns could say.

The rule. Let h_d be the average of the features of factor d over the rows of the fit, and P_d the map that puts the
average h_d'c in place of a function of that factor. A term of factors 1 ... D is the sum over sets A of its factors of

    f_A = prod over A of (I - P_d), prod over the others of P_d,  of its coefficients

a function of the columns of A alone whose average along any one of them, with h_d, is zero. The full set is the
product's own effect. Every smaller one is a margin: it is added to the effect of the term that is over exactly these
columns of the table as the same variables (the phase of a season is not the time; of several, one that has the same
axes, else the first), and stays with the product where there is none. A factor that has no function 1 (a
line) is left as it is, and so are smooth ones beside it: only sets that have them are looked at. Last, every effect is
centred on the rows of the fit. So effects and the average of f over these rows sum to f, everywhere.

The effects of a model are linear in its coefficients, so their variances follow from the joint posterior by the same
map. What the features do not carry has no average over rows: in an average, a kernel is that of the features.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np

from vff.factors import Prior
from vff.inference.posterior.term import Rows, TermProcess
from vff.linalg import apply_along, product_rows
from vff.moments import Place

Sources = Sequence[Sequence[Hashable]]
"""The column of the table behind every factor of every term."""


class Keep(Enum):
    """What becomes of a factor."""

    ALL = "I"
    PURE = "I - P"
    MEAN = "P"


Monomial = tuple[Keep, ...]
"""By factor."""


@dataclass(frozen=True)
class Averages:
    """Of the features of one factor over the rows of the fit, in the coordinates of its prior."""

    h: np.ndarray
    """(P,)."""
    one: np.ndarray
    """Coefficients of the function 1, (P,)."""
    solved: np.ndarray
    """K^-1 h, (P,)."""

    @property
    def spread(self) -> float:
        """h'K^-1 h: prior variance of an average."""
        return float(self.h @ self.solved)


@dataclass(frozen=True, eq=False)
class Part:
    """What one term contributes to an effect: a function of some of its factors, the others averaged."""

    term: int
    whole: TermProcess
    averages: tuple[Averages | None, ...]
    """By factor; None for one that is left as it is."""
    over: tuple[int, ...]
    """Factors that it is a function of."""
    monomials: tuple[Monomial, ...]
    """Its map is their sum; factors beside ``over`` are averaged in all of them."""

    @cached_property
    def process(self) -> TermProcess:
        """The prior's functions of these factors."""
        own = self.whole
        columns, factors = (tuple(each[d] for d in self.over) for each in (own.columns, own.factors))
        return replace(own, columns=columns, factors=factors)

    @property
    def untouched(self) -> bool:
        """Whether it is the term as it is."""
        return all(keep is Keep.ALL for monomial in self.monomials for keep in monomial)

    def _mapped(self, v: np.ndarray, one: Callable[[int, Keep, np.ndarray], np.ndarray]) -> np.ndarray:
        """The sum over monomials of a map along every axis of v (P,) or (P, S)."""
        shape = self.whole.transform.shape

        def maps(monomial: Monomial) -> list[Callable[[np.ndarray], np.ndarray]]:
            return [lambda u, d=d, keep=keep: one(d, keep, u) for d, keep in enumerate(monomial)]

        return np.sum([apply_along(v, shape, maps(monomial)) for monomial in self.monomials], axis=0)

    def factor_map(self, d: int, keep: Keep, c: np.ndarray) -> np.ndarray:
        """Coefficients (P_d, ...) of one factor to those of what is kept of it."""
        own = self.averages[d]
        if keep is Keep.ALL or own is None:
            return c
        mean = np.tensordot(own.h, c, axes=1)[None]
        if d not in self.over:
            return mean
        constant = np.multiply.outer(own.one, mean[0])
        return c - constant if keep is Keep.PURE else constant

    def reduced(self, c: np.ndarray) -> np.ndarray:
        """Coefficients (P, ...) of the term to those of the function of ``over``."""
        return self._mapped(c, self.factor_map)

    def embedded(self, c: np.ndarray) -> np.ndarray:
        """The same function in the features of the term, (P, ...)."""
        return replace(self, over=tuple(range(len(self.averages)))).reduced(c)

    def adjoint(self, v: np.ndarray) -> np.ndarray:
        """The transpose of ``embedded``, (P, ...)."""

        def one(d: int, keep: Keep, v: np.ndarray) -> np.ndarray:
            own = self.averages[d]
            if keep is Keep.ALL or own is None:
                return v
            mean = np.multiply.outer(own.h, np.tensordot(own.one, v, axes=1))
            return v - mean if keep is Keep.PURE else mean

        return self._mapped(v, one)

    def kept(self, phi: Sequence[np.ndarray | None], monomial: Monomial) -> list[np.ndarray]:
        """What is kept of the features of every factor (N, P_d) at rows anywhere; of averages, (1, P_d)."""
        found = []
        for own, features, keep in zip(self.averages, phi, monomial, strict=True):
            if own is None or keep is Keep.ALL:
                assert features is not None
                found.append(features)
            elif keep is Keep.MEAN:
                found.append(own.h[None])
            else:
                assert features is not None
                found.append(features - own.h)
        return found

    def factors_at(self, x: np.ndarray) -> list[np.ndarray | None]:
        """The features of its factors at rows x (N, C); None for those that are averaged."""
        every = enumerate(zip(self.whole.columns, self.whole.at_rows, strict=True))
        return [own.features(x[:, c]) if d in self.over else None for d, (c, own) in every]

    def written(self, x: np.ndarray) -> np.ndarray:
        """What stands in place of the features of the term at rows anywhere, (N, P)."""
        phi, total = self.factors_at(x), np.zeros((len(x), self.whole.size))
        for monomial in self.monomials:
            kept = [np.broadcast_to(own, (len(x), own.shape[1])) for own in self.kept(phi, monomial)]
            total += product_rows(kept)
        return total

    def prior(self, x: np.ndarray, rows: Rows) -> np.ndarray:
        """Its variance without data at every row, (N,)."""

        def whole(d: int, x: np.ndarray) -> np.ndarray | float:
            return self.whole.at_rows[d].prior_variance(x[:, self.whole.columns[d]])

        return self._prior(x, rows, whole)

    def unseen(self, x: np.ndarray, rows: Rows) -> np.ndarray:
        """The part of it that the features do not carry, (N,)."""

        def carried(d: int, x: np.ndarray) -> np.ndarray:
            return self.whole.at_rows[d].carried(x[:, self.whole.columns[d]])

        return np.maximum(self.prior(x, rows) - self._prior(x, rows, carried), 0.0)

    def _prior(self, x: np.ndarray, rows: Rows, own: Callable[[int, np.ndarray], np.ndarray | float]) -> np.ndarray:
        """From the variance of every factor at the rows, k(x, x) or what features carry of it."""
        tables = [self._variances(d, x, rows, own) for d in range(len(self.averages))]
        pairs = ((one, other) for one in self.monomials for other in self.monomials)
        total = sum(prod(table(*each) for table, *each in zip(tables, *pair, strict=True)) for pair in pairs)
        return self.whole.variance * np.broadcast_to(np.asarray(total, float), len(x))

    def _variances(
        self, d: int, x: np.ndarray, rows: Rows, own: Callable[[int, np.ndarray], np.ndarray | float]
    ) -> Callable[[Keep, Keep], np.ndarray | float]:
        """Prior covariances of what two monomials keep of one factor at the same rows."""
        known = self.averages[d]
        if d not in self.over:
            assert known is not None
            return lambda one, other, spread=known.spread: spread
        whole = own(d, x)
        if known is None:
            return lambda one, other: whole
        factor = TermProcess(1.0, self.whole.columns[d : d + 1], self.whole.factors[d : d + 1])
        (follows,) = factor.linear(x, rows, [known.solved])
        weights = {Keep.ALL: (1.0, 0.0), Keep.PURE: (1.0, -1.0), Keep.MEAN: (0.0, 1.0)}  # of a row, and of the average

        def covariance(one: Keep, other: Keep) -> np.ndarray | float:
            (a, b), (c, e) = weights[one], weights[other]
            return a * c * whole + (a * e + b * c) * follows + b * e * known.spread

        return covariance


@dataclass(frozen=True, eq=False)
class PureEffect:
    """The effect of one term: what is its own, and margins of others."""

    parts: tuple[Part, ...]
    """Of different terms, its own first."""

    @property
    def plain(self) -> bool:
        """Whether it is the term as it is."""
        (own, *more) = self.parts
        return not more and all(keep is Keep.ALL for keep in own.monomials[0])

    def centred_on(self, centre: np.ndarray, places: Sequence[slice]) -> np.ndarray:
        """z, (P,): its average over the rows of the fit is z'c of all coefficients c."""
        z = np.zeros(centre.size)
        for part in self.parts:
            z[places[part.term]] = part.adjoint(centre[places[part.term]])
        return z

    def embedded(self, c: np.ndarray, places: Sequence[slice]) -> np.ndarray:
        """The effect that coefficients c (P,) have, in the features of the model, (P,)."""
        found = np.zeros(c.shape)
        for part in self.parts:
            found[places[part.term]] = part.embedded(c[places[part.term]])
        return found


def pure_effects(
    terms: Sequence[TermProcess], centre: np.ndarray, places: Sequence[slice], sources: Sources
) -> tuple[PureEffect, ...]:
    """The effect of every term by the rule above; ``centre`` is the average of all features over the rows, (P,)."""
    averages = pure_averages(terms, centre, places)
    given = [_given(t, terms, averages[t], sources) for t in range(len(terms))]
    taken = {s for own in given for s in own}
    effects = []
    for s, term in enumerate(terms):
        parts = [_own(s, term, averages[s], list(given[s].values()), moved=bool(given[s]) or s in taken)]
        for t, own in enumerate(given):
            if s in own:
                parts.append(_margin(t, terms[t], averages[t], own[s]))
        effects.append(PureEffect(tuple(parts)))
    return tuple(effects)


def pure_averages(
    terms: Sequence[TermProcess], centre: np.ndarray, places: Sequence[slice]
) -> list[tuple[Averages | None, ...]]:
    """Of every factor of every term: from its own sums, else from another term's over the same axis."""
    centres = [centre[place] for place in places]
    ones = [[_one(own) for own in term.factors] for term in terms]
    own = [
        [_average(term, centre, these, d) for d in range(len(these))]
        for term, centre, these in zip(terms, centres, ones, strict=True)
    ]
    found = []
    for term, these, here in zip(terms, ones, own, strict=True):
        each: list[Averages | None] = []
        for c, factor, one, h in zip(term.columns, term.factors, these, here, strict=True):
            known = h if h is not None else next(_elsewhere(c, factor, terms, own), None)
            if one is None or known is None:
                each.append(None)
            else:
                each.append(Averages(known, one, np.asarray(factor.K.solve(known[:, None]))[:, 0]))
        found.append(tuple(each))
    return found


def _average(term: TermProcess, centre: np.ndarray, ones: Sequence[np.ndarray | None], d: int) -> np.ndarray | None:
    """h of one factor: the others' function 1 leads from averages of products to it; None where they have none."""
    maps: list[Callable[[np.ndarray], np.ndarray]] = []
    for e, one in enumerate(ones):
        if e == d:
            maps.append(lambda v: v)
        elif one is None:
            return None
        else:
            maps.append(lambda v, one=one: np.tensordot(one, v, axes=1)[None])
    return apply_along(centre, term.transform.shape, maps)


def _elsewhere(
    c: Place, factor: Prior, terms: Sequence[TermProcess], averages: Sequence[Sequence[np.ndarray | None]]
) -> Iterator[np.ndarray]:
    """h from factors of other terms over the same levels."""
    for term, own in zip(terms, averages, strict=True):
        for there, other, h in zip(term.columns, term.factors, own, strict=True):
            same = there == c and other.domain == factor.domain and other.basis == factor.basis
            # how fine a basis is was found while learning, and must not decide what an effect is
            if same and h is not None and other.basis.detail is None:
                raw = other.basis.to(factor.basis).single(other.transform.inverse.forward(h))
                yield factor.transform.forward(raw)


def _one(prior: Prior) -> np.ndarray | None:
    """Coefficients of the function 1 in the coordinates of a prior; None where it is none of its functions."""
    raw = prior.factor.one(prior.basis)
    return None if raw is None else prior.transform.inverse.transpose(raw)


Set = frozenset[int]


def _sets(averages: Sequence[Averages | None]) -> Iterator[Set]:
    """The sets of factors that are looked at, the full one first, without the empty one."""
    free = [d for d, own in enumerate(averages) if own is not None]
    fixed = [d for d, own in enumerate(averages) if own is None]
    for size in range(len(free), -1, -1):
        yield from (frozenset((*fixed, *some)) for some in combinations(free, size) if fixed or some)


def _given(
    t: int, terms: Sequence[TermProcess], averages: Sequence[Averages | None], sources: Sources
) -> dict[int, Set]:
    """Which margins of a term others take, by their numbers; nobody takes two of one term."""
    found: dict[int, Set] = {}
    read = [[(c, f.domain.variable) for c, f in zip(*own, strict=True)] for own in _with_factors(sources, terms)]
    for some in _sets(averages):
        wanted = Counter(read[t][d] for d in some), Counter(terms[t].columns[d] for d in some)
        able = [
            s
            for s, own in enumerate(read)
            if s != t and len(some) < len(averages) and s not in found and Counter(own) == wanted[0]
        ]
        alike = [s for s in able if Counter(terms[s].columns) == wanted[1]]
        if able:
            found[(alike or able)[0]] = some
    return found


def _with_factors(
    sources: Sources, terms: Sequence[TermProcess]
) -> Iterator[tuple[Sequence[Hashable], Sequence[Prior]]]:
    return ((own, term.factors) for own, term in zip(sources, terms, strict=True))


def _monomial(averages: Sequence[Averages | None], some: Set) -> Monomial:
    """Of f_A."""
    return tuple(Keep.ALL if own is None else Keep.PURE if d in some else Keep.MEAN for d, own in enumerate(averages))


def _own(
    t: int, term: TermProcess, averages: tuple[Averages | None, ...], given: Sequence[Set], *, moved: bool
) -> Part:
    """What is left of a term without the margins that others take; as it is where nothing of it or to it is moved."""
    every = tuple(range(len(averages)))
    if not moved:
        return Part(t, term, averages, every, ((Keep.ALL,) * len(averages),))
    left = [some for some in _sets(averages) if some not in given]
    # a sum over all sets that hold some factors is one product: of these pure, of the others all
    for pure in (*_sets(averages), frozenset[int]()):
        if {some for some in _sets(averages) if some >= pure} == set(left):
            keeps = (Keep.PURE if own is not None and d in pure else Keep.ALL for d, own in enumerate(averages))
            return Part(t, term, averages, every, (tuple(keeps),))
    return Part(t, term, averages, every, tuple(_monomial(averages, some) for some in left))


def _margin(t: int, term: TermProcess, averages: tuple[Averages | None, ...], some: Set) -> Part:
    return Part(t, term, averages, tuple(sorted(some)), (_monomial(averages, some),))
