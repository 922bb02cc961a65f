"""What every likelihood provides, and what follows from its fields."""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import Field, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from vff.likelihoods.rows import positive_or_none, require, spread_of, weighted_median
from vff.parameters import Fixed
from vff.words import shown

if TYPE_CHECKING:
    from vff.likelihoods.expectations import Expected
    from vff.likelihoods.logistic import Logistic
    from vff.likelihoods.predictive import Marginal


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

Moments = tuple[np.ndarray, np.ndarray]
"""Mean and variance, (N,) each."""

_FINITE = "finite numbers", "leave such rows out"
_PARAMETER, _COLUMN, _CHOICES = "parameter", "column", "choices"


def parameter(*, power: int = 0) -> Any:
    """A field of a likelihood of your own that is a positive number, held, or None, learnt.

    Parameters
    ----------
    power : int
        Of scale * y the parameter is scale^power times as large.

    Returns
    -------
    dataclasses.Field

    Examples
    --------
    >>> vff.likelihoods.parameter(power=2).default is None
    True
    """
    return field(default=None, metadata={_PARAMETER: power})


def likelihood_column(*, required: bool = False) -> Any:
    """A field of a likelihood of your own that names the column of X that every row brings as ``extra``.

    Parameters
    ----------
    required : bool
        Without it, None stands for ones.

    Returns
    -------
    dataclasses.Field

    Examples
    --------
    >>> vff.likelihoods.likelihood_column().default is None
    True
    """
    return field(metadata={_COLUMN: True}) if required else field(default=None, metadata={_COLUMN: True})


def choice(default: str, choices: tuple[str, ...]) -> Any:
    """A field of a likelihood of your own that is one of several words.

    Parameters
    ----------
    default : str
    choices : tuple of str

    Returns
    -------
    dataclasses.Field

    Examples
    --------
    >>> vff.likelihoods.choice("logit", ("logit", "probit")).default
    'logit'
    """
    return field(default=default, metadata={_CHOICES: choices})


@cache
def _with_role(kind: Any, role: str) -> tuple[Field, ...]:
    return tuple(own for own in fields(kind) if role in own.metadata)


class AbstractLikelihood(ABC):
    """p(y | f), one factor per row.

    A leaf is a frozen dataclass. Its fields say what they are: ``parameter()`` is a positive number, held if given and
    learnt if None, ``likelihood_column()`` the name of a column of X, ``choice()`` a word. What is not said by fields
    are the traits below, and the hooks. The log-density is a function of ``psi``, the unconstrained values of all
    parameters, and never of the numbers in the object, so that compiled code serves every value.

    Examples
    --------
    >>> new = vff.likelihoods.Poisson().predictive(np.zeros(1), np.full(1, 0.5), np.ones(1))  # f ~ N(0, 0.5)
    >>> new.mean().round(3), new.quantiles([0.1, 0.9])
    (array([1.284]), array([[0., 3.]]))
    """

    # --- traits --------------------------------------------------------------------------------------------------

    normal: ClassVar[bool] = False
    """y = f + normal noise of a ``variance``, so that the moments of f are all that predictions need."""
    locates: ClassVar[bool] = False
    """It has a location of its own, beside which no constant mean is learnt."""
    log_concave: bool = True
    """The second derivative of log p(y | f) in f is never positive: one maximum, also against a Gaussian prior."""
    affine: ClassVar[bool] = False
    """log p = y A(f) + extra B(f) + a constant: two sums say all that rows at one f have to say."""
    widest: ClassVar[float] = 1e4
    """The largest prior variance of f that is learnt; an sd of a hundred leaves no likelihood anything to say."""
    standardised: bool = False
    """f is in units of y, so that y may be shifted and scaled before learning."""
    scale_name: str = "f"
    """The scale of y that f is on: "y", a link of the mean of y such as "log" or "logit", or "f", one of its own."""
    discrete: bool = False
    """y is a whole number."""
    support: tuple[float, float] = (-np.inf, np.inf)
    """The least and the largest y; of a Binomial up to infinity, since trials differ by row."""
    expects: tuple[str, str] | None = None
    """What y must be, in words, and advice: within the support, and whole where discrete. None: any finite number."""
    known_errors: ClassVar[bool] = False
    """extra is a standard deviation of y that is known, in its units; of others it is what y is counted by."""
    complete: bool = True
    """Mean, variance and cdf of y given f are known."""
    misfit: ClassVar[str] = (
        "the likelihood may not suit the targets, or f cannot follow them; try another, or more frequencies"
    )
    """What is advised where far more rows than should lie outside their intervals."""

    # --- hooks: data ---------------------------------------------------------------------------------------------

    def check(self, y: np.ndarray, extra: np.ndarray) -> None:
        """ValueError when y or extra cannot be."""
        good, (expected, advice), (low, high) = np.isfinite(y), self.expects or _FINITE, self.support
        if self.expects is not None:
            inside = (y >= low) & (y <= high) & (y == np.floor(y)) if self.discrete else (y > low) & (y < high)
            good = good & inside
        require(good, y, f"{self.title} expects {expected}", "y", advice)

    def _check_extra(self, good: np.ndarray, extra: np.ndarray, expected: str) -> None:
        """ValueError when a row of the column of X is not good."""
        sentence = f"{self.title} expects {expected} in column {shown(self.column)}"
        require(good, extra, sentence, "it", "leave such rows out or correct the column")

    def _guess(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> tuple[float, ...]:
        """Starting values of the entries of psi, from data."""
        return tuple(1.0 for _ in self.entries)

    def location(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> Location:
        """A guess at the constant f that fits best, and how far off it may be."""
        return Location(weighted_median(y, w), spread_of(y, w)) if self.standardised else Location(0.0, 15.0)

    def sized(self, y: np.ndarray) -> Self:
        """With what the length of psi takes from the data: the number of levels of an ordinal y."""
        return self

    def _sized_for(self, length: int) -> Self:
        """With a psi of this length."""
        return self

    # --- hooks: JAX, scalars; one of the two must be there -------------------------------------------------------

    def log_density(self, y: Any, f: Any, extra: Any, psi: Any) -> Any:
        """log p(y | f) in jax.numpy."""
        return self.expected_log_density(y, f, 0.0, extra, psi)

    def expected_log_density(self, y: Any, mean: Any, variance: Any, extra: Any, psi: Any) -> Any:
        """E log p(y | f), f ~ N(mean, variance), in jax.numpy; without it, quadrature finds it."""
        raise TypeError(f"{type(self).__name__} defines neither log_density nor expected_log_density")

    def logistic(self, psi: np.ndarray, y: np.ndarray, extra: np.ndarray) -> "Logistic | None":
        """log p as a straight line in f and a softplus of it, in NumPy, where it is that: then nothing is compiled."""
        return None

    def width(self, psi: np.ndarray) -> float:
        """The distance from the real line of the nearest singularity of log p in f, divided by π.

        Quadrature needs sd / width to be resolved. One for everything made of log(1 + exp(f)).
        """
        return np.inf if self.closed_form else 1.0

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

    def closed_moments(self, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray) -> Moments | None:
        """Mean and variance of y when f ~ N(mean, variance), if known in closed form; else None."""
        return None

    # --- what follows from the fields; an ordinal likelihood and those of users have entries of their own --------

    @classmethod
    def named(cls, name: str, **options: Any) -> Self:
        """The likelihood of one of the names under which it is registered."""
        return cls(**options)

    def __post_init__(self) -> None:
        for own in _with_role(type(self), _CHOICES):
            value, choices = getattr(self, own.name), own.metadata[_CHOICES]
            if value not in choices:
                raise ValueError(f"{own.name} must be one of {', '.join(map(shown, choices))}; got {shown(value)}.")
        for own in _with_role(type(self), _PARAMETER):
            value = getattr(self, own.name)
            positive_or_none(own.name, value)
            if isinstance(value, Fixed):  # as any number is here that is given
                object.__setattr__(self, own.name, float(value))

    @property
    def form(self) -> Self:
        """The likelihood without its numbers: all that compiled code may depend on."""
        columns = {own.name: 0 for own in _with_role(type(self), _COLUMN)}
        return replace(self, **dict.fromkeys(self.values), **columns)  # pyright: ignore[reportArgumentType]

    @property
    def values(self) -> dict[str, Any]:
        """The parameters by name in the user's terms; None where they are still to be learnt."""
        return {own.name: getattr(self, own.name) for own in _with_role(type(self), _PARAMETER)}

    @property
    def entries(self) -> tuple[Parameter, ...]:
        """The entries of psi, in order."""
        powers = (own.metadata[_PARAMETER] for own in _with_role(type(self), _PARAMETER))
        each = zip(self.values.items(), powers, strict=True)
        return tuple(Parameter(name, value, value is None, power=power) for (name, value), power in each)

    def _with_entries(self, values: tuple[float, ...]) -> Self:
        """The likelihood with these values of its entries."""
        return replace(self, **dict(zip(self.values, values, strict=True)))  # pyright: ignore[reportArgumentType]

    @property
    def column(self) -> Hashable | None:
        """The column of X that every row brings as ``extra``; None: ``extra`` is ones."""
        return next((getattr(self, own.name) for own in _with_role(type(self), _COLUMN)), None)

    @classmethod
    def column_role(cls) -> str | None:
        """What that column is: "exposure", "trials"; None where rows bring none."""
        return next((own.name for own in _with_role(cls, _COLUMN)), None)

    @property
    def extra_alone(self) -> float:
        """extra of rows that bring none."""
        return 0.0 if self.known_errors else 1.0

    @property
    def outliers(self) -> bool:
        """Whether a row may be one, whose y by itself says little of f; not where log p is concave in the mean of y."""
        return not self.log_concave

    # --- final ---------------------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """What sentences call it."""
        name = type(self).__name__
        return f"{'An' if name[0] in 'AEIOU' else 'A'} {name} likelihood"

    @property
    def conjugate(self) -> bool:
        """Whether sums over the rows say all: normal noise of one variance, which is learnt."""
        return self.normal and bool(self.free.all())

    @property
    def closed_form(self) -> bool:
        """Whether ``expected_log_density`` is known; otherwise quadrature does it."""
        return type(self).expected_log_density is not AbstractLikelihood.expected_log_density

    @property
    def binary(self) -> bool:
        """Whether y is zero or one."""
        return self.discrete and self.support == (0.0, 1.0)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the entries of psi."""
        return tuple(entry.name for entry in self.entries)

    @property
    def free(self) -> np.ndarray:
        """(R,) which entries of psi are learnt."""
        return np.array([entry.learnt for entry in self.entries], dtype=bool)

    @property
    def psi(self) -> np.ndarray:
        """(R,) of a likelihood whose parameters are all set."""
        entries = self.entries
        missing = [entry.name for entry in entries if entry.value is None]
        if missing:
            raise ValueError(
                f"{type(self).__name__} has no value of {', '.join(missing)} yet; give one, or fit it with with_values."
            )
        return np.array([entry.to_psi(entry.value) for entry in entries if entry.value is not None])

    def start(self, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> np.ndarray:
        """(R,) psi to start learning from: held values where given, guesses from data elsewhere."""
        sized = self.sized(y)
        pairs = zip(sized.entries, sized._guess(y, extra, w), strict=True)
        return np.array([e.to_psi(guess if e.value is None else e.value) for e, guess in pairs], dtype=float)

    def with_values(self, psi: np.ndarray) -> Self:
        """With all parameters set."""
        sized = self._sized_for(len(psi))
        pairs = zip(sized.entries, psi, strict=True)
        return sized._with_entries(tuple(entry.from_psi(value) for entry, value in pairs))

    def in_units(self, scale: float) -> Self:
        """Of scale * y rather than y: parameters that are scales are multiplied. All must be set."""
        entries = self.entries
        if not any(entry.power for entry in entries):
            return self
        self.psi  # noqa: B018  asks for all values
        return self._with_entries(tuple(e.value * scale**e.power for e in entries if e.value is not None))

    # --- numbers: what inference and prediction ask --------------------------------------------------------------

    def expected(
        self, psi: np.ndarray, y: np.ndarray, extra: np.ndarray, mean: np.ndarray, variance: np.ndarray
    ) -> "Expected":
        """E log p(y | f), f ~ N(mean, variance), row by row, with its slope and its curvature."""
        from vff.likelihoods.expectations import expected

        return expected(self, psi, y, extra, mean, variance)

    def predictive(self, mean: np.ndarray, variance: np.ndarray, extra: np.ndarray) -> "Marginal":
        """A new y at rows where f ~ N(mean, variance). All parameters must be set."""
        from vff.likelihoods.predictive import Marginal

        return Marginal(self, mean, variance, extra)
