"""All names of the room, likelihoods by name, and how a new kind comes in."""

# ruff: noqa: F401

from dataclasses import MISSING, fields, is_dataclass

from vff.likelihoods import NAMES, NEEDED, likelihood_names
from vff.likelihoods.base import (
    WIDEST_EXPONENT,
    AbstractLikelihood,
    Location,
    Parameter,
    choice,
    likelihood_column,
    parameter,
)
from vff.likelihoods.custom import Custom
from vff.likelihoods.expectations import Expected, best_constant, log_predictive, parameter_derivatives, row_modes
from vff.likelihoods.links import Bernoulli, Beta, Binomial, Ordinal
from vff.likelihoods.predictive import Marginal, Mixture, Predictive
from vff.likelihoods.scales import ErrorBars, Gamma, Gaussian, NegativeBinomial, Poisson, StudentT
from vff.storage import forbid, permit
from vff.words import shown

LIKELIHOODS: list[type[AbstractLikelihood]] = [
    Gaussian, Bernoulli, Poisson, NegativeBinomial, StudentT, Gamma, Beta, Ordinal, Binomial, ErrorBars, Custom
]  # fmt: skip
"""The kinds there are. ``register`` adds one."""


def register(kind: type[AbstractLikelihood], *names: str) -> None:
    """Take a kind of likelihood in: estimators and commands know it by these names, and files may hold it.

    Parameters
    ----------
    kind : class
        A frozen dataclass that is an ``AbstractLikelihood``.
    *names : str
        What stands for it in place of an object.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Tallies(vff.likelihoods.Poisson):
    ...     pass
    >>> vff.likelihoods.register(Tallies, "tallies")
    >>> vff.likelihoods.by_name("tallies").conditional_mean(np.zeros(1), np.ones(1))
    array([1.])
    >>> vff.likelihoods.unregister(Tallies)
    """
    if not is_dataclass(kind):
        raise TypeError(f"a likelihood is a frozen dataclass; decorate {kind.__name__} with @dataclass(frozen=True)")
    taken = {*NAMES, *(name for some in NAMES.values() for name in some)}
    twice = [name for name in (kind.__name__, *names) if name in taken]
    if twice:
        raise ValueError(f"there is a likelihood called {shown(twice[0])} already; choose another name")
    NAMES[kind.__name__] = names
    for own in fields(kind):
        if own.default is MISSING and own.default_factory is MISSING:
            NEEDED.setdefault(kind.__name__, own.name)
    LIKELIHOODS.append(kind)
    permit(kind)


def unregister(kind: type[AbstractLikelihood]) -> None:
    """The opposite of ``register``.

    Parameters
    ----------
    kind : class
        That was registered.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Tallies(vff.likelihoods.Poisson):
    ...     pass
    >>> vff.likelihoods.register(Tallies, "tallies")
    >>> vff.likelihoods.unregister(Tallies)
    """
    LIKELIHOODS.remove(kind)
    del NAMES[kind.__name__]
    NEEDED.pop(kind.__name__, None)
    forbid(kind)


def binary_names() -> tuple[str, ...]:
    """The names of likelihoods of zeros and ones, which classifiers take."""
    return tuple(name for name in likelihood_names() if by_name(name).binary)


def exposed_names() -> tuple[str, ...]:
    """The names of likelihoods that take an exposure."""
    return tuple(name for name in likelihood_names() if by_name(name).column_role() == "exposure")


def by_name(likelihood: str | AbstractLikelihood, **options: object) -> AbstractLikelihood:
    """The likelihood itself, or the one of that name with all its parameters learnt.

    Parameters
    ----------
    likelihood : str or likelihood
    **options
        Fields of the likelihood that is named.

    Returns
    -------
    likelihood

    Examples
    --------
    >>> vff.likelihoods.by_name("poisson", exposure="hours")
    Poisson(exposure='hours')
    """
    if isinstance(likelihood, AbstractLikelihood):
        return likelihood
    for kind in LIKELIHOODS:
        if isinstance(likelihood, str) and likelihood in NAMES[kind.__name__]:
            needed = NEEDED.get(kind.__name__)
            if needed is not None and needed not in options:
                call = f"{kind.__name__}({needed}='column')"
                raise ValueError(f"A {likelihood} likelihood needs the column of {needed}; pass {call}.")
            return kind.named(likelihood, **options)
    names = ", ".join(likelihood_names())
    raise ValueError(f"likelihood must be one of {names}, or a likelihood object; got {shown(likelihood)}.")
