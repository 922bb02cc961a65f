"""A likelihood by a function of the user's."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from vff.likelihoods.base import AbstractLikelihood, Parameter
from vff.likelihoods.float64 import numerics
from vff.likelihoods.rows import positive_or_none
from vff.words import shown

UNIT = "unit"
CALLS = dict.fromkeys(("mean", "variance"), "(f, **parameters)") | {
    "cdf": "(y, f, **parameters)",
    "sample": "(f, rng, **parameters)",
}


@dataclass(frozen=True, init=False)
class Custom(AbstractLikelihood):
    """p(y | f) by a function of the user's.

    Parameters
    ----------
    function : callable
        ``function(y, f, **parameters)``, the log-density of one row in jax.numpy.
    mean, variance : callable or None
        Of y: ``mean(f, **parameters)``, ``variance(f, **parameters)``; as ``cdf`` and ``sample`` functions of NumPy,
        needed only by what asks for them.
    cdf : callable or None
        ``cdf(y, f, **parameters)``.
    sample : callable or None
        ``sample(f, rng, **parameters)``.
    standardised : bool
        f is in units of y and the density depends on y - f alone; y is then scaled before learning, and the density in
        the user's units is function(y/unit, f/unit)/unit.
    discrete : bool
        y is a whole number.
    **parameters : float
        Starting values of positive parameters, which are learnt.

    Examples
    --------
    >>> import jax
    >>> def poisson(y, f):
    ...     return y * f - jax.numpy.exp(f) - jax.scipy.special.gammaln(y + 1)
    >>> model = vff.GPRegressor(likelihood=vff.likelihoods.Custom(poisson, mean=np.exp, variance=np.exp, discrete=True))
    """

    log_concave = False

    function: Callable[..., Any]
    functions: tuple[tuple[str, Callable[..., Any] | None], ...]
    """Those of NumPy, by name."""
    standardised: bool
    discrete: bool
    starts: tuple[tuple[str, float], ...]
    unit: float

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        mean: Callable[..., Any] | None = None,
        variance: Callable[..., Any] | None = None,
        cdf: Callable[..., Any] | None = None,
        sample: Callable[..., Any] | None = None,
        standardised: bool = False,
        discrete: bool = False,
        **parameters: float,
    ) -> None:
        for name, value in parameters.items():
            positive_or_none(name, value)
            if value is None or name == UNIT:
                raise ValueError(
                    f"Custom parameter {shown(name)} needs a positive starting value and a name other than unit."
                )
        vars(self).update(
            function=function,
            functions=tuple(zip(CALLS, (mean, variance, cdf, sample), strict=True)),
            standardised=standardised,
            discrete=discrete,
            scale_name="y" if standardised else "f",
            complete=None not in (mean, variance, cdf),
            starts=tuple((name, float(value)) for name, value in parameters.items()),
            unit=1.0,
        )

    def _at(self, values: Iterable[float], unit: float) -> Self:
        """With these values of the parameters, which come first."""
        copy = object.__new__(type(self))
        vars(copy).update(vars(self), starts=tuple(zip(self.values, values, strict=False)), unit=unit)
        return copy

    @property
    def form(self) -> Self:
        return self._at([1.0] * len(self.starts), 1.0)

    @property
    def values(self) -> dict[str, Any]:
        return dict(self.starts)

    @property
    def entries(self) -> tuple[Parameter, ...]:
        entries = tuple(Parameter(name, value, True) for name, value in self.starts)
        return (*entries, Parameter(UNIT, self.unit, False, power=1)) if self.standardised else entries

    def _with_entries(self, values: tuple[float, ...]) -> Self:
        return self._at(values, values[-1] if self.standardised else 1.0)

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        exp = numerics.jnp.exp
        parameters = {name: exp(psi[k]) for k, (name, _) in enumerate(self.starts)}
        if not self.standardised:
            return self.function(y, f, **parameters)
        inverse = exp(-psi[-1])
        return self.function(y * inverse, f * inverse, **parameters) - psi[-1]

    def width(self, psi: np.ndarray) -> float:
        return float(np.exp(psi[-1])) if self.standardised else 1.0

    def _ask(self, name: str, *arguments: Any) -> np.ndarray:
        """What a function of the user's says in its own unit."""
        function = dict(self.functions)[name]
        if function is None:
            raise ValueError(
                f"This needs the {name} of a Custom likelihood; pass Custom(…, {name}=function) of {CALLS[name]}."
            )
        return np.asarray(function(*arguments, **self.values), dtype=float)

    def conditional_mean(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return self.unit * self._ask("mean", np.asarray(f) / self.unit)

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return self.unit**2 * np.broadcast_to(self._ask("variance", np.asarray(f) / self.unit), np.shape(f))

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return self._ask("cdf", np.asarray(y) / self.unit, np.asarray(f) / self.unit)

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.unit * self._ask("sample", np.asarray(f) / self.unit, rng)
