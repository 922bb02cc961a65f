"""Laws of two fits: the same rows told in another way give the same answer."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fuzz.laws import refusals_are_sentences
from fuzz.problems import Leaf, Problem, Table
from fuzz.programs import Run, run
from fuzz.tables import Rng, chance, one_of


@dataclass(frozen=True)
class Twin:
    """Two problems with the same answer, and how units translate: y' = scale * y, log p' = log p - jacobian."""

    base: Problem
    problem: Problem
    y_scale: float = 1.0
    jacobian: float = 0.0
    accuracy: float = 1e-14
    """The relative error of the sums of two engines, and of solving with them, for a condition number of one."""


@dataclass(frozen=True)
class Tolerance:
    """What may differ: the bound relatively and in nats, predictions in standard deviations of a new observation."""

    bound: float
    nats: float
    deviations: float


GIVEN = Tolerance(1e-8, 1e-6, 1e-6)
# Natural gradients end within 1e-7 nats of the top, which is half the square of a deviation.
ITERATED = Tolerance(1e-8, 1e-6, 1e-3)
# Learning may stop anywhere within hundredths of a nat of an optimum, a tenth of a hyperparameter's own uncertainty.
LEARNT = Tolerance(1e-6, 5e-2, 1e-1)
_SETTLED = {1: 6, 2: 3, 3: 1}  # frequencies of rows that come in parts, by the widest product
_IN_PARTS = 6  # rows from which on every third of them is more than one
_SPREADING = 1e-10  # what engines promise of their sums (1e-12 is measured where rows have several columns)
# Features of smooth kernels are nearly collinear: errors of sums are so many times larger in a bound, in coefficients.
_IN_BOUND, _IN_COEFFICIENTS = 1e5, 1e7
_ROUNDING = 1e-12  # of the largest y, which is all that float64 holds of a y that is large beside its noise


def with_rows_permuted(problem: Problem, rng: Rng) -> Twin:
    return Twin(problem, problem.at(rng.permutation(problem.n)))


def with_rows_doubled(problem: Problem, rng: Rng) -> Twin | None:
    """Every row twice, against weights twice as large. (One row is refused, and two equal ones are not.)"""
    if problem.n == 1:
        return None
    heavier = replace(problem, weights=2.0 * problem.weight)
    return Twin(heavier, problem.at(np.repeat(np.arange(problem.n), 2)))


def with_other_units_of_y(problem: Problem, rng: Rng) -> Twin | None:
    """y in units of a power of two, which rounds nothing, over eighteen decades. A constant y has no units to go by."""
    if np.all(problem.y == problem.y[0]):
        return None
    scale = 2.0 ** round(np.log2(10.0) * one_of(rng, [-9, -6, -3, 3, 6, 8, 9]))
    scale *= -1.0 if chance(rng, 0.3) else 1.0
    options = dict(problem.options)
    if options.get("noise_variance") is not None:
        options["noise_variance"] *= scale**2
    terms = tuple(
        tuple(replace(leaf, values=_scaled(leaf.values, "variance", scale**2 if k == 0 else 1.0)) for k, leaf in pairs)
        for pairs in (list(enumerate(term)) for term in problem.terms)
    )
    weight = float(np.sum(problem.weight))
    moved = replace(problem, y=scale * problem.y, options=options, terms=terms)
    return Twin(problem, moved, scale, weight * float(np.log(abs(scale))))


def with_other_units_of_x(problem: Problem, rng: Rng) -> Twin:
    """Every column of numbers in units of a power of two, some of them mirrored."""
    scales = {name: 2.0 ** int(rng.integers(-20, 21)) * one_of(rng, [1.0, -1.0]) for name in problem.numbers}

    def moved(table: Table) -> Table:
        return {name: scales.get(name, 1) * values if name in scales else values for name, values in table.items()}

    def leaf_moved(leaf: Leaf) -> Leaf:
        return replace(leaf, values=_scaled(leaf.values, "lengthscale", abs(scales.get(leaf.column, 1.0))))

    options = dict(problem.options)
    if "domain" in options:
        options["domain"] = {
            name: tuple(sorted(scales[name] * end for end in ends)) for name, ends in options["domain"].items()
        }
    terms = tuple(tuple(map(leaf_moved, term)) for term in problem.terms)
    return Twin(
        problem, replace(problem, table=moved(problem.table), asked=moved(problem.asked), terms=terms, options=options)
    )


def through_another_source(problem: Problem, rng: Rng) -> Twin:
    """In memory, in chunks, in files."""
    others = ("pandas", "arrow", "polars", "list of chunks", "function of chunks", "parquet", "dask")
    twin = replace(problem, source=one_of(rng, [name for name in others if name != problem.source]))
    return Twin(problem, twin)


def by_another_engine(problem: Problem, rng: Rng) -> Twin:
    names = [name for name in ("dense", "nufft", "auto") if name != problem.options.get("engine", "auto")]
    return Twin(problem, problem.with_options(engine=one_of(rng, names)), accuracy=_SPREADING)


def saved_and_loaded(problem: Problem, rng: Rng) -> Twin:
    return Twin(problem, replace(problem, steps="save and load"))


def with_columns_in_another_order(problem: Problem, rng: Rng) -> Twin:
    """Columns go by name where they have names: in any order, and among others."""
    base = replace(problem, source="pandas" if problem.source == "array" else problem.source)
    return Twin(base, replace(base, steps="columns in another order"))


def added_up(problem: Problem, rng: Rng) -> Twin | None:
    """Rows that come in parts, for functions that were settled before the first of them.

    Levels and dates have no domain that could be settled, and a part of one row or without weight is refused.
    """
    used = {leaf.column for term in problem.terms for leaf in term} or set(problem.table)
    if not used <= set(problem.numbers) or np.any(problem.weight == 0.0) or problem.n < _IN_PARTS:
        return None
    base = replace(problem, source="array" if problem.source == "array" else "pandas")
    domain = {}
    for name in sorted(used):
        low, high = float(base.table[name].min()), float(base.table[name].max())
        domain[name] = (low, high) if low < high else (low - 1.0, high + 1.0)
    base = base.with_options(frequencies=_SETTLED[max(map(len, problem.terms), default=1)], domain=domain)
    return Twin(base, replace(base, steps=one_of(rng, ["partial_fit", "collect and merge"])))


def with_an_offset_of_x(problem: Problem, rng: Rng) -> Twin:
    """Columns on a lattice of 2^-16 of their spread, and the same ones moved along it: nothing is rounded.

    Those that hold one value have no spread to go by.
    """
    lattice, moved, asked, asked_moved = {}, {}, {}, {}
    for name in problem.numbers:
        spread = float(np.ptp(problem.table[name]))
        if spread == 0.0:
            continue
        step = 2.0 ** np.floor(np.log2(spread)) * 2.0**-16
        shift = step * float(rng.integers(-(2**36), 2**36))
        for into, along, values in ((lattice, moved, problem.table[name]), (asked, asked_moved, problem.asked[name])):
            into[name] = step * np.round((values - problem.table[name].min()) / step)
            along[name] = into[name] + shift
    base = replace(problem.without("domain"), table=problem.table | lattice, asked=problem.asked | asked)
    return Twin(base, replace(base, table=base.table | moved, asked=base.asked | asked_moved))


def once_more(problem: Problem, rng: Rng) -> Twin:
    return Twin(problem, problem)


def _scaled(values: dict[str, float], name: str, factor: float) -> dict[str, float]:
    return {key: value * factor if key == name else value for key, value in values.items()}


Way = Callable[[Problem, Rng], Twin | None]

WAYS: tuple[Way, ...] = (
    with_rows_permuted,
    with_rows_doubled,
    with_other_units_of_y,
    with_other_units_of_x,
    through_another_source,
    by_another_engine,
    saved_and_loaded,
    with_columns_in_another_order,
    added_up,
    with_an_offset_of_x,
    once_more,
)


def tried(way: Way, problem: Problem, first: Run, rng: Rng) -> tuple[str | None, tuple[Problem, ...]]:
    """How the answers of the twin differ, if they do, and the two problems."""
    twin = way(problem, rng)
    if twin is None:
        return None, (problem,)
    one = first if twin.base is problem else run(twin.base)
    other = run(twin.problem)
    sentence = refusals_are_sentences(twin.problem, other)
    if sentence is None and (one.error is not None or other.error is not None):
        sentence = _refused(one, other)
    elif sentence is None:
        sentence = difference(one, other, twin)
    return sentence, (twin.base, twin.problem)


def _refused(one: Run, other: Run) -> str | None:
    if (one.error is None) == (other.error is None):
        return None
    which, error = ("the first", one.error) if one.error is not None else ("the second", other.error)
    return f"{which} of two equal problems is refused: {error}"


def stopped_short(run: Run) -> bool:
    """Whether a fit says in its notes that learning ended before an optimum: where, may depend on the last digits."""
    return run.error is None and any(" stopped " in note for note in run.model.notes_)


def difference(one: Run, other: Run, twin: Twin) -> str | None:
    """How the answers of two runs differ in more than rounding, or than where learning stops."""
    if stopped_short(one) or stopped_short(other):
        return None
    allowed = LEARNT if twin.base.learns else GIVEN if twin.base.likelihood is None else ITERATED
    bound, moved = one.model.elbo_, other.model.elbo_ + twin.jacobian
    relative = max(allowed.bound, _IN_BOUND * twin.accuracy)
    slack = relative * abs(bound) + allowed.nats + one.model.elbo_error_ + other.model.elbo_error_
    if not abs(moved - bound) <= slack:
        return f"the bounds are {bound!r} and {moved!r}"
    s = twin.y_scale
    for name, size in _sizes(one, twin).items():
        scale = s if name in ("mean", "f", "effects") else abs(s)
        apart = np.max(np.abs(other.answers[name] / scale - one.answers[name]) / size, initial=0.0)
        if not apart <= allowed.deviations:
            return f"{name} differs by {apart:.3g} standard deviations"
    return None


def _sizes(one: Run, twin: Twin) -> dict[str, np.ndarray]:
    """What differences of every answer are measured by: the deviation of a new observation, that of f, or one."""
    problem = twin.base
    if "probability" in one.answers:
        return {"probability": np.ones(1)}
    if problem.likelihood is not None:  # f has other units than y
        deviation = np.sqrt(one.answers["variance of f"])
        return {"f": deviation, "mean": one.answers["std"], "std": one.answers["std"]}
    # what rounding leaves of y, and of a system whose best row is known so much better than the prior knows it
    spread = float(np.sqrt(np.cov(problem.y, aweights=problem.weight, ddof=0)))
    condition = float(problem.weight.max()) * spread**2 / one.model.noise_variance_
    rounding = _ROUNDING * float(np.max(np.abs(problem.y))) + twin.accuracy * max(condition, _IN_COEFFICIENTS) * spread
    size = one.answers["std"] + rounding / GIVEN.deviations
    # among columns that can stand in for one another, learning may choose another one with the same bound
    names = ("mean", "std", "f") if problem.learns else ("mean", "std", "f", "effects", "std of effects")
    return {name: size if one.answers[name].ndim == 1 else size[:, None] for name in names}
