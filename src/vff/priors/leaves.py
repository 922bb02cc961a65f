"""The priors there are.

Penalised-complexity priors shrink towards a simpler model at a constant rate: the distance from it is exponential
(Simpson et al., 2017, Penalising model component complexity). For a Gaussian process it is proportional to the standard
deviation, with zero as the simpler model, and to l^(-d/2) in d columns, with a constant as the simpler model (Fuglstad
et al., 2019, Constructing priors that penalize the complexity of Gaussian random fields). The rate follows from one
statement of probability.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy import special

from vff.linalg import namespace
from vff.priors.base import REAL, AbstractPrior, require_positive, require_probability
from vff.words import shown


@dataclass(frozen=True)
class Gamma(AbstractPrior):
    """Mean shape · scale, variance shape · scale²: p ∝ v^(shape - 1) exp(-v / scale).

    Parameters
    ----------
    shape, scale : float

    Examples
    --------
    >>> round(vff.priors.Gamma(shape=2.0, scale=3.0).median, 3)
    5.035
    """

    shape: float
    scale: float

    @property
    def log_constant(self) -> float:
        return -math.lgamma(self.shape) - self.shape * math.log(self.scale)

    def formula(self, value: Any, *numbers: Any) -> Any:
        shape, scale = numbers
        return (shape - 1.0) * namespace(value).log(value) - value / scale

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return self.scale * special.gammaincinv(self.shape, level)


@dataclass(frozen=True)
class LogNormal(AbstractPrior):
    """The logarithm is normal with mean log(median) and standard deviation sigma.

    Parameters
    ----------
    median, sigma : float

    Examples
    --------
    >>> vff.priors.LogNormal(median=2.0, sigma=0.5).quantile([0.16, 0.84]).round(1)
    array([1.2, 3.3])
    """

    median: float = field()  # pyright: ignore[reportIncompatibleVariableOverride]  # given, not computed
    sigma: float = field()

    @property
    def log_constant(self) -> float:
        return -math.log(self.sigma) - math.log(2 * math.pi) / 2

    def formula(self, value: Any, *numbers: Any) -> Any:
        median, sigma = numbers
        ratio = value / median  # a tracer when either is
        z = namespace(ratio).log(ratio) / sigma
        return -namespace(value).log(value) - z * z / 2

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return self.median * np.exp(self.sigma * special.ndtri(level))


@dataclass(frozen=True)
class InverseGamma(AbstractPrior):
    """1 / v is Gamma(shape, 1 / scale): p ∝ v^(-shape - 1) exp(-scale / v). Almost nothing is near zero.

    Parameters
    ----------
    shape, scale : float

    Examples
    --------
    >>> round(vff.priors.InverseGamma(shape=3.0, scale=2.0).median, 3)
    0.748
    """

    shape: float
    scale: float

    @property
    def log_constant(self) -> float:
        return self.shape * math.log(self.scale) - math.lgamma(self.shape)

    def formula(self, value: Any, *numbers: Any) -> Any:
        shape, scale = numbers
        return -(shape + 1.0) * namespace(value).log(value) - scale / value

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return self.scale / special.gammainccinv(self.shape, level)


@dataclass(frozen=True)
class HalfNormal(AbstractPrior):
    """The absolute value of a normal number with mean zero.

    Parameters
    ----------
    scale : float
        Standard deviation of the normal number.

    Examples
    --------
    >>> round(vff.priors.HalfNormal(1.0).quantile(0.95), 2)
    np.float64(1.96)
    """

    scale: float

    @property
    def log_constant(self) -> float:
        return math.log(2 / math.pi) / 2 - math.log(self.scale)

    def formula(self, value: Any, *numbers: Any) -> Any:
        z = value / numbers[0]
        return -z * z / 2

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return self.scale * math.sqrt(2) * special.erfinv(level)


@dataclass(frozen=True)
class Exponential(AbstractPrior):
    """Mean and standard deviation scale: p ∝ exp(-v / scale).

    Parameters
    ----------
    scale : float

    Examples
    --------
    >>> round(vff.priors.Exponential(2.0).median, 3)
    1.386
    """

    scale: float

    @property
    def log_constant(self) -> float:
        return -math.log(self.scale)

    def formula(self, value: Any, *numbers: Any) -> Any:
        return -value / numbers[0]

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return -self.scale * np.log1p(-level)


@dataclass(frozen=True)
class Normal(AbstractPrior):
    """Of a constant, which may have either sign.

    Parameters
    ----------
    mean, sd : float

    Examples
    --------
    >>> vff.priors.Normal(0.0, 1.0).quantile([0.025, 0.975]).round(2)
    array([-1.96,  1.96])
    """

    support = "real"

    mean: float = field(metadata=REAL)
    sd: float = field()

    @property
    def log_constant(self) -> float:
        return -math.log(self.sd) - math.log(2 * math.pi) / 2

    def formula(self, value: Any, *numbers: Any) -> Any:
        mean, sd = numbers
        z = (value - mean) / sd
        return -z * z / 2

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return self.mean + self.sd * special.ndtri(level)


@dataclass(frozen=True)
class LKJ(AbstractPrior):
    """Of a correlation r: p ∝ (1 - r²)^(concentration - 1), flat at one and near zero when it is large.

    That of Lewandowski, Kurowicka and Joe (2009) for two variables.

    Parameters
    ----------
    concentration : float

    Examples
    --------
    >>> vff.priors.LKJ(2.0).quantile([0.05, 0.5, 0.95]).round(2)
    array([-0.73,  0.  ,  0.73])
    """

    support = "correlation"

    concentration: float = field()

    @property
    def log_constant(self) -> float:
        return -math.log(2.0) * (2.0 * self.concentration - 1.0) - float(special.betaln(*[self.concentration] * 2))

    def formula(self, value: Any, *numbers: Any) -> Any:
        (concentration,) = numbers
        return (concentration - 1.0) * namespace(value).log1p(-value * value)

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return 2.0 * special.betaincinv(self.concentration, self.concentration, level) - 1.0


@dataclass(frozen=True)
class OfSd(AbstractPrior):
    """The prior of a variance v whose square root has the given one: p(v) = p_sd(√v) / 2√v.

    Parameters
    ----------
    prior : prior of a positive number
        Of the standard deviation.

    Examples
    --------
    >>> round(vff.priors.OfSd(vff.priors.HalfNormal(1.0)).quantile(0.95), 2)
    np.float64(3.84)
    """

    prior: AbstractPrior
    """Of the standard deviation, positive."""

    def __post_init__(self) -> None:
        if not isinstance(self.prior, AbstractPrior) or self.prior.support != "positive":
            raise ValueError(
                f"OfSd expects a prior of a positive number, but found {shown(self.prior)}; "
                "give the prior of the standard deviation, such as HalfNormal(1.0)."
            )

    @property
    def numbers(self) -> tuple[float, ...]:
        return self.prior.numbers

    @property
    def form(self) -> Self:
        return type(self)(self.prior.form)

    @property
    def log_constant(self) -> float:
        return self.prior.log_constant - math.log(2)

    def formula(self, value: Any, *numbers: Any) -> Any:
        xp = namespace(value)
        return self.prior.formula(xp.sqrt(value), *numbers) - xp.log(value) / 2

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        return np.square(self.prior.quantile(level))


def penalised_sd(above: float, probability: float) -> OfSd:
    """Penalised-complexity prior of a variance whose square root is above a number with this probability.

    Parameters
    ----------
    above, probability : float
        The statement that sets it.

    Returns
    -------
    OfSd
        A prior of the variance.

    Examples
    --------
    >>> round(vff.priors.penalised_sd(above=3.0, probability=0.05).quantile(0.95), 3)
    np.float64(9.0)
    """
    require_positive("penalised_sd", "above", above)
    require_probability("penalised_sd", probability)
    return OfSd(Exponential(above / -math.log(probability)))


@dataclass(frozen=True)
class PenalisedLengthscale(AbstractPrior):
    """Penalised-complexity prior with P(lengthscale < below) = probability.

    p(l) = (d/2) λ l^(-d/2 - 1) exp(-λ l^(-d/2)) with d = columns and λ = -log(probability) below^(d/2).

    Parameters
    ----------
    below, probability : float
        The statement that sets it.
    columns : int
        That the process is over and that share the lengthscale.

    Examples
    --------
    >>> round(vff.priors.PenalisedLengthscale(below=0.1, probability=0.05).quantile(0.05), 3)
    np.float64(0.1)
    """

    below: float
    probability: float
    columns: int = 1

    def __post_init__(self) -> None:
        require_positive("PenalisedLengthscale", "below", self.below)
        require_probability("PenalisedLengthscale", self.probability)
        if not isinstance(self.columns, int | np.integer) or self.columns < 1:
            raise ValueError(
                f"PenalisedLengthscale expects a whole number of columns from one, but found {shown(self.columns)}; "
                "give the number of columns that share the lengthscale."
            )

    @property
    def numbers(self) -> tuple[float, ...]:
        """below, λ below^(-d/2) = -log(probability), and d/2."""
        return float(self.below), -math.log(self.probability), self.columns / 2

    @property
    def form(self) -> Self:
        return type(self)(1.0, 0.5, 1)

    @property
    def log_constant(self) -> float:
        below, rate, half = self.numbers
        return math.log(half) + math.log(rate) + half * math.log(below)

    def formula(self, value: Any, *numbers: Any) -> Any:
        below, rate, half = numbers
        ratio = value / below  # a tracer when either is
        exponent = -half * namespace(ratio).log(ratio)
        return -(half + 1.0) * namespace(value).log(value) - rate * namespace(exponent).exp(exponent)

    def _quantile(self, level: np.ndarray) -> np.ndarray:
        """The level is exp(-λ l^(-d/2))."""
        below, rate, half = self.numbers
        return below * (rate / -np.log(level)) ** (1 / half)
