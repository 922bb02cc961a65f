"""Domains, edges and harmonics: what the options and the first rows say of every column and term."""

from collections.abc import Sequence
from itertools import permutations
from math import prod
from typing import Any, NamedTuple

import numpy as np

from vff.basis import Codes, ColumnBasis, Interval, LevelBasis
from vff.estimators.binding import Binding, BoundColumn, BoundTerm
from vff.estimators.options import check_domain, check_edges, check_frequencies, check_resolution, for_column
from vff.estimators.overview import Overview
from vff.inference import choose_domain, choose_harmonics, harmonics_in_product, largest_harmonic
from vff.moments import ColumnRequest, TermRequest
from vff.words import shortened, shown

_COUNTED = 20_000  # rows, beyond which there are more different ones than features anyway


class Options(NamedTuple):
    """The constructor's options that concern the columns."""

    frequencies: Any
    domain: Any
    edges: Any
    covariance: str = "full"
    """Of q: what may be summed, and how much memory is needed, depend on it."""
    likelihood: Any = "gaussian"


class Settled(NamedTuple):
    """What one term will be summed over."""

    request: TermRequest
    asked: tuple[int | None, ...]
    detail: int


def _everybody(binding: Binding) -> frozenset:
    """All names that options may use: of columns, of terms, and of products with their columns in any order."""
    products = {term.name for term in binding.terms if term.name != term.term.name} | {
        " * ".join(map(str, columns))
        for term in binding.terms
        if len(term.columns) > 1
        for columns in permutations(term.term.columns)
    }
    return frozenset().union(*(column.aliases for column in binding.columns), products)


def settle_place(c: int, overview: Overview, options: Options, growing: bool) -> tuple[Interval | Codes, bool]:
    """The domain of one column, and whether it was taken from the rows."""
    column, found = overview.binding.columns[c], overview.surveys[c]
    everybody = frozenset().union(*(other.aliases for other in overview.binding.columns))
    if column.levels is not None:
        _refuse_places_of_levels(column, overview.binding, options, everybody)
        return Codes(), False
    given = check_domain(for_column(options.domain, "domain", column.aliases, everybody), column.label)
    # without edge functions in some term, the domain is padded, as the paper advises
    edges = [_edges_of(term, d, overview.binding, options) for term, d in _on_column(c, overview.binding)]
    interval = given or choose_domain(found, min(edges), growing=growing)
    if not found.constant:
        check_resolution(interval, column.label)
    return interval, given is None


def _refuse_places_of_levels(column: BoundColumn, binding: Binding, options: Options, everybody: frozenset) -> None:
    """Options that have nothing to say of a category, given for one by its name, or where there is nothing else."""
    numbers = [other for other in binding.columns if other.levels is None]
    if any(other.index == column.index for other in numbers):
        return
    for name in ("domain", "frequencies", "edges"):
        asked = getattr(options, name)
        value = for_column(asked, name, column.aliases, everybody | _everybody(binding))
        if (isinstance(asked, dict) or (name == "domain" and not numbers)) and not _is_auto(value):
            raise ValueError(
                f"{name} for column {column.label} is {value!r:.60}, and the kernel takes this column for a category, "
                f"which has no {name}; leave it out, or write a kernel of numbers for the column"
            )


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _asked(term: BoundTerm, d: int, binding: Binding, option: Any, name: str) -> Any:
    """What an option says of one factor: by the name of its product, or by its column."""
    if isinstance(option, dict) and len(term.columns) == 1 and option.get(term.name) is not None:
        return option[term.name]
    if isinstance(option, dict) and len(term.columns) > 1:
        for columns in permutations(term.term.columns):
            value = option.get(" * ".join(map(str, columns)))
            if value is not None:
                return _of_factor(value, columns.index(term.term.columns[d]), columns, name)
    return for_column(option, name, binding.columns[term.columns[d]].aliases, _everybody(binding))


def _of_factor(value: Any, place: int, columns: Sequence[Any], name: str) -> Any:
    """One column's part of what was said of a product: one value for all, or one for each."""
    if not isinstance(value, tuple | list):
        return value
    if len(value) != len(columns):
        raise ValueError(
            f"{name} for {' * '.join(map(shortened, columns))} must be one value or {len(columns)}, one for each "
            f"column; got {shown(value)}"
        )
    return value[place]


def _frequencies_of(term: BoundTerm, d: int, binding: Binding, options: Options) -> int | None:
    """Harmonics asked for; what is said of a column is meant for its own term, and for products if it has none."""
    column, option = binding.columns[term.columns[d]], options.frequencies
    own = any(other.columns == (term.columns[d],) for other in binding.terms)
    if isinstance(option, dict) and len(term.columns) > 1 and own:
        option = {key: value for key, value in option.items() if key not in column.aliases}
    return check_frequencies(_asked(term, d, binding, option, "frequencies"), column.label)


def _edges_of(term: BoundTerm, d: int, binding: Binding, options: Options) -> int:
    """Edge functions of one factor, as many as float64 resolves beside the most harmonics asked of its column."""
    p = term.inner.order(d)
    assert p is not None
    asked = [_frequencies_of(other, e, binding, options) for other, e in _on_column(term.columns[d], binding)]
    most = max((M for M in asked if M is not None), default=None)
    return check_edges(_asked(term, d, binding, options.edges, "edges"), p, most)


def _on_column(c: int, binding: Binding) -> list[tuple[BoundTerm, int]]:
    """Factors over one column: it is summed once, with the most harmonics and edge functions of any of them."""
    return [(term, d) for term in binding.terms for d, other in enumerate(term.columns) if other == c]


def _most_edges(c: int, binding: Binding, options: Options) -> int:
    """Of any factor over a column."""
    return max(_edges_of(term, d, binding, options) for term, d in _on_column(c, binding))


def settle_term(
    term: BoundTerm,
    places: Sequence[Interval | Codes],
    overview: Overview,
    options: Options,
    *,
    growing: bool,
) -> Settled:
    """The functions of one term; a number of harmonics that was left open is chosen here."""
    binding, inner = overview.binding, term.inner
    edges = [
        None if isinstance(places[c], Codes) else _edges_of(term, d, binding, options)
        for d, c in enumerate(term.columns)
    ]
    asked = tuple(None if q is None else _frequencies_of(term, d, binding, options) for d, q in enumerate(edges))
    found, detail = list(asked), 0
    if None in found and len(term.columns) > 1:
        shared = _shared_harmonics(term, edges, overview, growing=growing)
        found = [M or other for M, other in zip(asked, shared, strict=True)]
    elif found == [None] and edges[0] is not None:
        c, p = next(iter(term.columns)), inner.order(0)
        place = places[c]
        assert isinstance(place, Interval)
        assert p is not None
        q = _most_edges(c, binding, options)
        found[0], detail = _harmonics_alone(c, place, p, edges[0], q, overview, growing=growing)
    factors = tuple(
        ColumnRequest(places[c], LevelBasis(binding.columns[c].levels or ()) if q is None else ColumnBasis(M or 1, q))
        for c, q, M in zip(term.columns, edges, found, strict=True)
    )
    return Settled(TermRequest(term.columns, factors), asked, detail)


def _shared_harmonics(
    term: BoundTerm, edges: Sequence[int | None], overview: Overview, *, growing: bool
) -> list[int | None]:
    """Harmonics for a product that was given none."""
    binding = overview.binding
    known = [
        len(binding.columns[c].levels or ()) if q is None else (overview.surveys[c], q)
        for c, q in zip(term.columns, edges, strict=True)
    ]
    products = sum(len(other.columns) > 1 for other in binding.terms)
    return harmonics_in_product(known, products, _combinations(term, overview), growing=growing)


def _combinations(term: BoundTerm, overview: Overview) -> float:
    """How many different rows there may be in the columns of a term; repeated rows count once."""
    found, sample = [overview.surveys[c] for c in term.columns], overview.sample
    counted = overview.combinations.get(term.columns)
    if counted is not None:
        return float(counted)
    if sample is not None and sample.complete and sample.y.size <= _COUNTED:
        return float(len(np.unique(np.column_stack([sample.columns[c] for c in term.columns]), axis=0)))
    many = [survey.distinct for survey in found if survey.book is None]
    return float(max(many)) if many else prod(float(survey.distinct) for survey in found)


def _harmonics_alone(
    c: int, place: Interval, p: int, q: int, q_most: int, overview: Overview, *, growing: bool
) -> tuple[int, int]:
    """M for a term of one column, and the detail that asked for it; ``q_most`` edge functions are summed beside it."""
    terms = len(overview.binding.terms)
    distinct, found = max(other.distinct for other in overview.surveys), overview.surveys[c]
    most, usual = (largest_harmonic(found, q_most, among, distinct, growing=growing) for among in (1, terms))
    profile = overview.profile(c)
    if terms == 1 or profile is None:
        return most if terms == 1 else usual, 0
    return choose_harmonics(profile, place, p, q, usual, most)
