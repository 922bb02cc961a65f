"""Laws of two fits: the same rows told in another way give the same answer."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuzz.laws import refusals_are_sentences
from fuzz.problems import Leaf, Problem, Table
from fuzz.programs import Run, run
from fuzz.tables import Rng, chance, one_of


@dataclass(frozen=True)
class Twin:
    """Another problem with the same answer, and how its units translate: y' = scale * y, log p' = log p - jacobian."""

    problem: Problem
    y_scale: float = 1.0
    jacobian: float = 0.0


@dataclass(frozen=True)
class Tolerance:
    """What may differ: the bound relatively and in nats, predictions in standard deviations of a new observation."""

    bound: float
    nats: float
    deviations: float


GIVEN = Tolerance(1e-8, 1e-6, 1e-6)
LEARNT = Tolerance(1e-6, 1e-2, 1e-2)


def with_rows_permuted(problem: Problem, rng: Rng) -> Twin:
    return Twin(problem.at(rng.permutation(problem.n)))


def with_rows_doubled(problem: Problem, rng: Rng) -> tuple[Twin, Problem]:
    """Every row twice, against weights twice as large."""
    return Twin(problem.at(np.repeat(np.arange(problem.n), 2))), replace(problem, weights=2.0 * problem.weight)


def with_other_units_of_y(problem: Problem, rng: Rng) -> Twin:
    """y in units of a power of two, which rounds nothing, over eighteen decades."""
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
    return Twin(moved, scale, weight * float(np.log(abs(scale))))


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
    return Twin(replace(problem, table=moved(problem.table), asked=moved(problem.asked), terms=terms, options=options))


def through_another_source(problem: Problem, rng: Rng) -> Twin:
    """In memory, in chunks, in files."""
    others = ("pandas", "arrow", "polars", "list of chunks", "function of chunks", "parquet")
    twin = replace(problem, source=one_of(rng, [name for name in others if name != problem.source]))
    return Twin(twin)


def by_another_engine(problem: Problem, rng: Rng) -> Twin:
    names = [name for name in ("dense", "nufft", "auto") if name != problem.options.get("engine", "auto")]
    return Twin(problem.with_options(engine=one_of(rng, names)))


def once_more(problem: Problem, rng: Rng) -> Twin:
    return Twin(problem)


def _scaled(values: dict[str, float], name: str, factor: float) -> dict[str, float]:
    return {key: value * factor if key == name else value for key, value in values.items()}


WAYS: tuple[Callable[[Problem, Rng], Any], ...] = (
    with_rows_permuted,
    with_rows_doubled,
    with_other_units_of_y,
    with_other_units_of_x,
    through_another_source,
    by_another_engine,
    once_more,
)


def tried(way: Callable[[Problem, Rng], Any], problem: Problem, first: Run, rng: Rng) -> tuple[str | None, Problem]:
    """How the answers of the twin differ, if they do, and the twin."""
    made = way(problem, rng)
    twin, base = made if isinstance(made, tuple) else (made, problem)
    one = first if base is problem else run(base)
    other = run(twin.problem)
    broken = refusals_are_sentences(twin.problem, other)
    if broken is not None:
        return f"the twin ends with {broken}", twin.problem
    if one.error is not None or other.error is not None:
        return _refused(one, other), twin.problem
    return difference(one, other, twin, LEARNT if problem.learns else GIVEN), twin.problem


def _refused(one: Run, other: Run) -> str | None:
    if (one.error is None) == (other.error is None):
        return None
    which, error = ("the first", one.error) if one.error is not None else ("the second", other.error)
    return f"{which} of two equal problems is refused: {error}"


def difference(one: Run, other: Run, twin: Twin, allowed: Tolerance) -> str | None:
    bound, moved = one.model.elbo_, other.model.elbo_ + twin.jacobian
    slack = allowed.bound * abs(bound) + allowed.nats + one.model.elbo_error_ + other.model.elbo_error_
    if not abs(moved - bound) <= slack:
        return f"the bounds are {bound!r} and {moved!r}"
    s, std = twin.y_scale, one.answers["std"]
    for name, scale in (("mean", s), ("std", abs(s)), ("f", s), ("effects", s), ("std of effects", abs(s))):
        size = std[:, None] if one.answers[name].ndim == 2 else std
        apart = np.max(np.abs(other.answers[name] / scale - one.answers[name]) / size, initial=0.0)
        if not apart <= allowed.deviations:
            return f"{name} differs by {apart:.3g} standard deviations of a new observation"
    return None
