"""What every likelihood provides."""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any, NamedTuple, Self

import numpy as np


class Parameter(NamedTuple):
    """One entry of psi: value = lower + exp(psi), or psi itself when ``real``."""

    name: str
    value: float | None  # None: not known yet
    learnt: bool
    lower: float = 0.0
    power: int = 0  # y in other units, y' = s y, has value' = s^power value
    real: bool = False

    def to_psi(self, value: float) -> float:
        return value if self.real else float(np.log(value - self.lower))

    def from_psi(self, psi: float) -> float:
        if self.real:
            return float(psi)
        # above the lower end also where rounding would put it there
        return max(self.lower + float(np.exp(psi)), float(np.nextafter(self.lower, np.inf)))


class Location(NamedTuple):
    """Where to look for the best constant f: within ``reach`` of ``start``."""

    start: float
    reach: float


WIDEST_EXPONENT = 200.0
"""Variance of f where exp(f) is the mean of y: y over twelve decades either way, and exp(2 variance), which is in the
second moment of y, stays within float64."""


class Traits(NamedTuple):
    """What callers must know about a likelihood before they use it."""

    column: Hashable | None = None  # the column of X that every row brings as ``extra``: exposure or trials
    standardised: bool = False  # f is in units of y, so that y may be shifted and scaled before learning
    locates: bool = False  # has a location of its own, beside which a constant mean could not be told
    closed_form: bool = False  # ``expected`` is known; otherwise quadrature does it
    discrete: bool = False  # y is a whole number
    log_concave: bool = True  # log p(y | f) has one maximum in f, also against a Gaussian prior
    affine: bool = False  # log p = y A(f) + extra B(f) + a constant: two sums say all that rows at one f have to say
    support: tuple[float, float] = (-np.inf, np.inf)  # of a Binomial up to infinity, since trials differ by row
    widest: float = 1e4  # variance of f; an sd of a hundred leaves no likelihood anything to say
    complete: bool = True  # mean, variance and cdf of y given f are known


class AbstractLikelihood(ABC):
    """p(y | f), one factor per row.

    A leaf is a frozen dataclass. Numbers given to its constructor are held fixed, None are learnt. The log-density is a
    function of ``psi``, the unconstrained values of all parameters, and never of the numbers in the object, so that
    compiled code serves every value. Methods with an implementation here are final.
    """

    # --- hooks: what the likelihood is ---------------------------------------------------------------------------

    @property
    @abstractmethod
    def traits(self) -> Traits:
        """What kind of likelihood it is."""

    @property
    @abstractmethod
    def form(self) -> Self:
        """The likelihood without its numbers: all that compiled code may depend on."""

    @property
    @abstractmethod
    def values(self) -> dict[str, Any]:
        """The parameters by name in the user's terms; None where they are still to be learnt."""

    @abstractmethod
    def _entries(self) -> tuple[Parameter, ...]:
        """The entries of psi, in order."""

    @abstractmethod
    def _with_entries(self, values: tuple[float, ...]) -> Self:
        """The likelihood with these values of its entries."""

    # --- hooks: data ---------------------------------------------------------------------------------------------

    @abstractmethod
    def check(self, y: np.ndarray, extra: np.ndarray) -> None:
        """ValueError when y or extra cannot be."""

    @abstractmethod
    def sized(self, y: np.ndarray) -> Self:
        """With what the length of psi takes from the data: the number of levels of an ordinal y."""

    @abstractmethod
    def _guess(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> tuple[float, ...]:
        """Starting values of the entries, from data."""

    @abstractmethod
    def location(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> Location:
        """A guess at the constant f that fits best, and how far off it may be."""

    # --- hooks: JAX, scalars -------------------------------------------------------------------------------------

    @abstractmethod
    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        """log p(y | f) in jax.numpy."""

    @abstractmethod
    def expected(self, y: Any, mean: Any, variance: Any, extra: Any, psi: Any) -> Any:
        """E log p(y | f), f ~ N(mean, variance), in jax.numpy; NotImplemented unless ``closed_form``."""

    @abstractmethod
    def width(self, psi: np.ndarray) -> float:
        """The distance from the real line of the nearest singularity of log p in f, divided by π.

        Quadrature needs sd / width to be resolved. One for everything made of log(1 + exp(f)).
        """

    # --- hooks: NumPy, of a likelihood whose parameters are all set ----------------------------------------------

    @abstractmethod
    def conditional_mean(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        """E[y | f]."""

    @abstractmethod
    def conditional_variance(self, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        """var[y | f]."""

    @abstractmethod
    def cdf(self, y: np.ndarray, f: np.ndarray, extra: np.ndarray) -> np.ndarray:
        """P(Y ≤ y | f); arguments broadcast."""

    @abstractmethod
    def sample(self, f: np.ndarray, extra: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One y per f."""

    @abstractmethod
    def closed_moments(
        self, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Mean and variance of y when f ~ N(mean, variance), if known in closed form; else None."""

    # --- final ---------------------------------------------------------------------------------------------------

    @property
    def column(self) -> Hashable | None:
        """The column of X that every row brings as ``extra``; None: ``extra`` is ones."""
        return self.traits.column

    @property
    def standardised(self) -> bool:
        """Whether f is in units of y, so that y may be shifted and scaled before learning."""
        return self.traits.standardised

    @property
    def locates(self) -> bool:
        """Whether it has a location of its own, beside which no constant mean is learnt."""
        return self.traits.locates

    @property
    def closed_form(self) -> bool:
        """Whether ``expected`` is known; otherwise quadrature does it."""
        return self.traits.closed_form

    @property
    def discrete(self) -> bool:
        """Whether y is a whole number."""
        return self.traits.discrete

    @property
    def log_concave(self) -> bool:
        """Whether log p(y | f) has one maximum in f, also against a Gaussian prior."""
        return self.traits.log_concave

    @property
    def affine(self) -> bool:
        """Whether log p = y A(f) + extra B(f) + a constant."""
        return self.traits.affine

    @property
    def support(self) -> tuple[float, float]:
        """The least and the largest y."""
        return self.traits.support

    @property
    def widest(self) -> float:
        """The largest prior variance of f that is learnt."""
        return self.traits.widest

    @property
    def complete(self) -> bool:
        """Whether mean, variance and cdf of y given f are known."""
        return self.traits.complete

    @property
    def entries(self) -> tuple[Parameter, ...]:
        """The entries of psi, in order."""
        return self._entries()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the entries of psi."""
        return tuple(entry.name for entry in self._entries())

    @property
    def free(self) -> np.ndarray:
        """(R,) which entries of psi are learnt."""
        return np.array([entry.learnt for entry in self._entries()], dtype=bool)

    @property
    def psi(self) -> np.ndarray:
        """(R,) of a likelihood whose parameters are all set."""
        entries = self._entries()
        missing = [entry.name for entry in entries if entry.value is None]
        if missing:
            raise ValueError(
                f"{type(self).__name__} has no value of {', '.join(missing)} yet; give one, or fit it with with_values."
            )
        return np.array([entry.to_psi(entry.value) for entry in entries if entry.value is not None])

    def start(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> np.ndarray:
        """(R,) psi to start learning from: held values where given, guesses from data elsewhere."""
        sized = self.sized(y)
        guesses = sized._guess(y, extra, w)
        pairs = zip(sized._entries(), guesses, strict=True)
        return np.array([e.to_psi(guess if e.value is None else e.value) for e, guess in pairs], dtype=float)

    def with_values(self, psi: np.ndarray) -> Self:
        """With all parameters set."""
        sized = self._sized_for(len(psi))
        pairs = zip(sized._entries(), psi, strict=True)
        return sized._with_entries(tuple(entry.from_psi(value) for entry, value in pairs))

    def in_units(self, scale: float) -> Self:
        """Of scale * y rather than y: parameters that are scales are multiplied. All must be set."""
        entries = self._entries()
        if not any(entry.power for entry in entries):
            return self
        self.psi  # noqa: B018  asks for all values
        return self._with_entries(tuple(e.value * scale**e.power for e in entries if e.value is not None))

    @abstractmethod
    def _sized_for(self, length: int) -> Self:
        """With a psi of this length; only an ordinal likelihood without levels differs from self."""
