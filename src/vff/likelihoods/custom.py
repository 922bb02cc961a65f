"""A likelihood by a function of the user's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from vff.likelihoods.base import AbstractLikelihood, Parameter
from vff.likelihoods.checks import positive_or_none
from vff.words import shown

UNIT = "unit"


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
    mean: Callable[..., Any] | None
    variance: Callable[..., Any] | None
    cumulative: Callable[..., Any] | None
    draw: Callable[..., Any] | None
    standardised: bool
    discrete: bool
    scale_name: str
    complete: bool
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
        fields = {
            "function": function,
            "mean": mean,
            "variance": variance,
            "cumulative": cdf,
            "draw": sample,
            "standardised": standardised,
            "discrete": discrete,
            "scale_name": "y" if standardised else "f",
            "complete": None not in (mean, variance, cdf),
            "starts": tuple((name, float(value)) for name, value in parameters.items()),
            "unit": 1.0,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _at(self, starts: tuple[tuple[str, float], ...], unit: float) -> Self:
        copy = object.__new__(type(self))
        for name, value in {**vars(self), "starts": starts, "unit": unit}.items():
            object.__setattr__(copy, name, value)
        return copy

    @property
    def form(self) -> Self:
        return self._at(tuple((name, 1.0) for name, _ in self.starts), 1.0)

    @property
    def values(self) -> dict[str, Any]:
        return dict(self.starts)

    @property
    def entries(self) -> tuple[Parameter, ...]:
        entries = tuple(Parameter(name, value, True) for name, value in self.starts)
        return (*entries, Parameter(UNIT, self.unit, False, power=1)) if self.standardised else entries

    def _with_entries(self, values: tuple[float, ...]) -> Self:
        starts = tuple((name, value) for (name, _), value in zip(self.starts, values, strict=False))
        return self._at(starts, values[-1] if self.standardised else 1.0)

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        from vff.likelihoods.numerics import jnp

        parameters = {name: jnp.exp(psi[k]) for k, (name, _) in enumerate(self.starts)}
        if not self.standardised:
            return self.function(y, f, **parameters)
        inverse = jnp.exp(-psi[-1])
        return self.function(y * inverse, f * inverse, **parameters) - psi[-1]

    def width(self, psi: np.ndarray) -> float:
        return float(np.exp(psi[-1])) if self.standardised else 1.0

    def _ask(self, name: str, function: Callable[..., Any] | None, *arguments: Any, call: str) -> np.ndarray:
        """What a function of the user's says in its own unit."""
        if function is None:
            raise ValueError(
                f"This needs the {name} of a Custom likelihood; pass Custom(…, {name}=function) of {call}."
            )
        return np.asarray(function(*arguments, **self.values), dtype=float)

    def conditional_mean(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        return self.unit * self._ask("mean", self.mean, np.asarray(f) / self.unit, call="(f, **parameters)")

    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        variance = self._ask("variance", self.variance, np.asarray(f) / self.unit, call="(f, **parameters)")
        return self.unit**2 * np.broadcast_to(variance, np.shape(f))

    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        places = np.asarray(y) / self.unit, np.asarray(f) / self.unit
        return self._ask("cdf", self.cumulative, *places, call="(y, f, **parameters)")

    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.unit * self._ask("sample", self.draw, np.asarray(f) / self.unit, rng, call="(f, rng, **parameters)")
