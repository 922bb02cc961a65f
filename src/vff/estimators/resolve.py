"""Domains, edges and harmonics: what the options and the first rows say of every column and term."""

from collections.abc import Mapping, Sequence
from itertools import permutations
from math import prod
from typing import Any

import numpy as np

from vff.basis import Basis, Domain
from vff.estimators.binding import Binding, BoundTerm
from vff.estimators.options import Options, check_domain, check_frequencies, check_resolution, for_column
from vff.estimators.table_summary import TableSummary
from vff.factors import Factor, FactorOptions
from vff.inference import choose_harmonics, harmonics_in_product, largest_harmonic
from vff.moments import ColumnRequest, ColumnSummary, Place, TermRequest, numbers
from vff.words import shortened, shown

_COUNTED = 20_000  # rows, beyond which there are more different ones than features anyway


def _everybody(binding: Binding) -> frozenset:
    """All names that options may use: of columns, of terms, and of products with their columns in any order."""
    products = {term.name for term in binding.terms if term.name != term.term.name} | {
        " * ".join(names) for term in binding.terms if len(term.columns) > 1 for names in permutations(term.term.names)
    }
    return frozenset().union(*(column.aliases for column in binding.columns), products)


def resolve_domain(place: Place, summary: TableSummary, options: Options, growing: bool) -> tuple[Domain, bool]:
    """The domain of one column, or of several that are read together, and whether it was taken from the rows."""
    binding, on_column = summary.binding, _on_column(place, summary.binding)
    first, *more = numbers((place,))
    column, found = binding.columns[first], summary.summaries[first]
    term, d = on_column[0]
    factor = term.inner.factors[d]
    everybody = frozenset().union(*(other.aliases for other in binding.columns))
    _refuse_what_says_nothing(place, factor, binding, options, everybody)
    given = None
    if "domain" in factor.options:
        given = check_domain(for_column(options.domain, "domain", column.aliases, everybody), column.label)
    bases = [_least(own, e, binding, options) for own, e in on_column]
    _refuse_nothing_but_missing(binding, (first, *more), summary, factor, given)
    if more:
        every = tuple(summary.summaries[c] for c in (first, *more))
        others = [_given_by_name(c, binding, options, everybody) for c in more]
        domain = factor.settled_together(every, bases, growing=growing, given=(given, *others))
        return domain, domain.ends is not None and given is None
    domain = factor.spanning(*given) if given else factor.settled(found, bases, growing=growing)
    if domain.ends is not None and not found.constant:
        check_resolution(domain.ends, column.label)
    return domain, domain.ends is not None and given is None


def _refuse_nothing_but_missing(
    binding: Binding, columns: Sequence[int], summary: TableSummary, factor: Factor, given: tuple[float, float] | None
) -> None:
    """A column without a number shows no domain."""
    for c in columns:
        found = summary.summaries[c]
        if "domain" in factor.options and given is None and found.n and found.missing == found.n:
            raise ValueError(
                f"column {binding.columns[c].label} of X was expected to hold numbers, and is missing in all "
                f"{found.n:,} rows; leave it out, or give its domain"
            )


def _given_by_name(c: int, binding: Binding, options: Options, everybody: frozenset) -> tuple[float, float] | None:
    """The domain of a column that is read with another: what is said of all columns is not meant for it."""
    column = binding.columns[c]
    if not isinstance(options.domain, dict) or not any(key in column.aliases for key in options.domain):
        return None
    return check_domain(for_column(options.domain, "domain", column.aliases, everybody), column.label)


def _refuse_what_says_nothing(
    place: Place, factor: Factor, binding: Binding, options: Options, everybody: frozenset
) -> None:
    """Options that have nothing to say of a factor, given for its column by name, or where there is no other."""
    column = binding.columns[numbers((place,))[0]]
    on_others = [(_on_column(other, binding)[0], other) for other in binding.places if other != place]
    others = [(binding.columns[numbers((own,))[0]], term.inner.factors[d]) for (term, d), own in on_others]
    for name in ("domain", "frequencies", "edges"):
        if name in factor.options or any(o.index == column.index and name in own.options for o, own in others):
            continue
        requested = getattr(options, name)
        value = for_column(requested, name, column.aliases, everybody | _everybody(binding))
        nobody = name == "domain" and not any(name in own.options for _, own in others)
        if (isinstance(requested, dict) or nobody) and not (isinstance(value, str) and value == "auto"):
            kind = "a category" if column.levels is not None else factor.title
            raise ValueError(
                f"{name} for column {binding.label(place)} is {value!r:.60}, and the kernel takes this column for "
                f"{kind}, which has no {name}; leave it out, or write a kernel of numbers for the column"
            )


def _requested(term: BoundTerm, d: int, binding: Binding, option: Any, name: str) -> Any:
    """What an option says of one factor: by the name of its product, or by its column."""
    if isinstance(option, dict) and len(term.columns) == 1 and option.get(term.name) is not None:
        return option[term.name]
    if isinstance(option, dict) and len(term.columns) > 1:
        for order in permutations(range(len(term.columns))):  # two factors may have one column
            names = [term.term.names[e] for e in order]
            value = option.get(" * ".join(names))
            if isinstance(value, tuple | list) and len(value) != len(names):
                raise ValueError(
                    f"{name} for {' * '.join(map(shortened, names))} must be one value or {len(names)}, one for "
                    f"each column; got {shown(value)}"
                )
            if value is not None:  # one for all, or one for each
                return value[order.index(d)] if isinstance(value, tuple | list) else value
    return for_column(option, name, _aliases(term, d, binding), _everybody(binding))


def _aliases(term: BoundTerm, d: int, binding: Binding) -> frozenset:
    """The names by which options may speak of what a factor reads."""
    return binding.columns[numbers((term.columns[d],))[0]].aliases


def _frequencies_of(term: BoundTerm, d: int, binding: Binding, options: Options) -> int | None:
    """Harmonics asked for; what is said of a column is meant for its own term, and for products if it has none."""
    aliases, option = _aliases(term, d, binding), options.frequencies
    own = any(other.columns == (term.columns[d],) for other in binding.terms)
    if isinstance(option, dict) and len(term.columns) > 1 and own:
        option = {key: value for key, value in option.items() if key not in aliases}
    label = binding.label(term.columns[d])
    return check_frequencies(_requested(term, d, binding, option, "frequencies"), label)


def _least(term: BoundTerm, d: int, binding: Binding, options: Options) -> Basis:
    """The basis of one factor with the least detail, as its options ask for it."""
    column, factor = binding.columns[numbers((term.columns[d],))[0]], term.inner.factors[d]
    edges = _requested(term, d, binding, options.edges, "edges") if "edges" in factor.options else "auto"
    requested: list[int | None] = []
    if "frequencies" in factor.options:
        requested = [_frequencies_of(other, e, binding, options) for other, e in _on_column(term.columns[d], binding)]
    most = max((M for M in requested if M is not None), default=None)
    return factor.least(FactorOptions(edges, most, column.levels or ()))


def _on_column(place: Place, binding: Binding) -> list[tuple[BoundTerm, int]]:
    """Factors over one column: it is summed once, with the most harmonics and edge functions of any of them."""
    return [(term, d) for term in binding.terms for d, other in enumerate(term.columns) if other == place]


def resolve_term(
    term: BoundTerm, domains: Mapping[Place, Domain], summary: TableSummary, options: Options, *, growing: bool
) -> tuple[TermRequest, tuple[int | None, ...], int]:
    """The functions of one term, its harmonics as requested, and the detail that asked for those left open."""
    binding, factors = summary.binding, term.inner.factors
    least = [_least(term, d, binding, options) for d in range(len(factors))]
    requested = tuple(
        _frequencies_of(term, d, binding, options) if "frequencies" in factor.options else None
        for d, factor in enumerate(factors)
    )
    found, detail = list(requested), 0
    if None in found and len(factors) > 1:
        known = [(_richest(summary, c), basis) for c, basis in zip(term.columns, least, strict=True)]
        products = sum(len(other.columns) > 1 for other in binding.terms)
        wider = () if growing or found != [None] * len(found) else _spread(term, options)
        rows = _combinations(term, summary)
        levels = prod(basis.size for own, basis in zip(factors, least, strict=True) if own.exchangeable)
        shared = harmonics_in_product(known, products, rows, growing=growing, wider=wider, levels=levels)
        found = [M or other for M, other in zip(requested, shared, strict=True)]
    elif found == [None] and least[0].detail is not None:
        c, factor, terms = term.columns[0], term.inner.factors[0], len(binding.terms)
        resolved = factor.largest([_least(own, e, binding, options) for own, e in _on_column(c, binding)])
        distinct, own = max(other.n_distinct for other in summary.summaries), _richest(summary, c)
        most, usual = (
            min(resolved, _with_as_many(least[0], largest_harmonic(own, 10**9, among, distinct, growing=growing)))
            for among in (1, terms)
        )
        found[0] = most if terms == 1 else usual
        looked_at = terms > 1 and factor.waves(usual) is not None
        profile = summary.profile(c) if looked_at and isinstance(c, int) else None
        if profile is not None:
            found[0], detail = choose_harmonics(profile, factor, ColumnRequest(domains[c], least[0]), usual, most)
    requests = tuple(
        ColumnRequest(domains[c], (basis if basis.detail is None else basis.resized(M or 1)).within(domains[c]))
        for c, basis, M in zip(term.columns, least, found, strict=True)
    )
    return TermRequest(term.columns, requests), requested, detail


def _spread(term: BoundTerm, options: Options) -> list[int]:
    """Factors over a domain in a product of two over one column: a drift needs many harmonics, or the season does."""
    gaussian = options.likelihood == "gaussian" or getattr(options.likelihood, "conjugate", False)
    if not gaussian or options.covariance != "full" or len(set(term.term.columns)) == len(term.term.columns):
        return []
    return [d for d, factor in enumerate(term.inner.factors) if "domain" in factor.options]


def _richest(summary: TableSummary, place: Place) -> ColumnSummary:
    """What is known of a column, or of the one with the most values of several that are read together."""
    return max((summary.summaries[c] for c in numbers((place,))), key=lambda own: own.n_distinct)


def _with_as_many(least: Basis, M: int) -> int:
    """The detail at which a basis has about as many features as M harmonics of one column: M itself there."""
    most, detail = least.size + 2 * (M - 1), 1
    if least.resized(2).size - least.size == 2:
        return M
    while least.resized(detail + 1).size <= most:
        detail += 1
    return detail


def _combinations(term: BoundTerm, summary: TableSummary) -> float:
    """How many different rows there may be in the columns of a term; repeated rows count once."""
    found, sample = [summary.summaries[c] for c in term.numbers], summary.sample
    counted = summary.combinations.get(term.numbers)
    if counted is not None:
        return float(counted)
    if sample is not None and sample.complete and sample.y.size <= _COUNTED:
        columns = np.column_stack([sample.columns[c] for c in term.numbers])
        # missing values are alike, and unlike any number
        return float(len(np.unique(np.where(np.isnan(columns), np.inf, columns), axis=0)))
    many = [one.n_distinct for one in found if one.distinct is None]
    return float(max(many)) if many else prod(float(one.n_distinct) for one in found)
