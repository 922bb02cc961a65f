"""The likelihoods there are, and their names."""

from dataclasses import MISSING, fields, is_dataclass
from typing import TypeVar

from vff.likelihoods.base import AbstractLikelihood
from vff.likelihoods.beta import Beta
from vff.likelihoods.classes import Bernoulli, Binomial
from vff.likelihoods.counts import NegativeBinomial, Poisson
from vff.likelihoods.custom import Custom
from vff.likelihoods.gamma import Gamma
from vff.likelihoods.gaussian import Gaussian
from vff.likelihoods.ordinal import Ordinal
from vff.likelihoods.student_t import StudentT
from vff.storage import admit
from vff.words import shown

LIKELIHOODS: list[type[AbstractLikelihood]] = [
    *(Gaussian, Bernoulli, Poisson, NegativeBinomial, StudentT, Gamma, Beta, Ordinal, Binomial, Custom)
]
"""Kinds, in the order in which sentences name them. ``register`` adds one."""

Kind = TypeVar("Kind", bound=type[AbstractLikelihood])


def register(kind: Kind) -> Kind:
    """Take a kind of likelihood in: estimators and commands know its names, and files may hold it."""
    if not is_dataclass(kind):
        raise TypeError(f"a likelihood is a frozen dataclass; decorate {kind.__name__} with @dataclass(frozen=True)")
    taken = {name for one in LIKELIHOODS for name in (one.__name__, *one.names)}
    twice = [name for name in (kind.__name__, *kind.names) if name in taken]
    if twice:
        raise ValueError(f"there is a likelihood called {shown(twice[0])} already; choose another name")
    admit(kind)
    LIKELIHOODS.append(kind)
    return kind


def unregister(kind: type[AbstractLikelihood]) -> None:
    """The opposite of ``register``."""
    LIKELIHOODS.remove(kind)
    admit(kind, False)


def likelihood_names() -> dict[str, type[AbstractLikelihood]]:
    """The kinds by the names that stand for them without anything more."""
    return {name: kind for kind in LIKELIHOODS for name in kind.names if not _required(kind)}


def binary_names() -> tuple[str, ...]:
    """Those of likelihoods of zeros and ones, which classifiers take."""
    return tuple(name for name, kind in likelihood_names().items() if kind.named(name).binary)


def by_name(likelihood: str | AbstractLikelihood) -> AbstractLikelihood:
    """The likelihood itself, or the one of that name with all its parameters learnt."""
    if isinstance(likelihood, AbstractLikelihood):
        return likelihood
    if isinstance(likelihood, str):
        for kind in LIKELIHOODS:
            if likelihood not in kind.names:
                continue
            for needed in _required(kind):
                call = f"{kind.__name__}({needed}='column')"
                raise ValueError(f"A {likelihood} likelihood needs the column of {needed}; pass {call}.")
            return kind.named(likelihood)
    names = ", ".join(likelihood_names())
    raise ValueError(f"likelihood must be one of {names}, or a likelihood object; got {shown(likelihood)}.")


def _required(kind: type[AbstractLikelihood]) -> list[str]:
    """Fields without which there is no likelihood."""
    own = fields(kind) if kind.names else ()  # pyright: ignore[reportArgumentType]
    return [one.name for one in own if one.default is MISSING and one.default_factory is MISSING]
