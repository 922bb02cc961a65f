"""Processes that obey a linear differential equation with constant coefficients (theory §16).

a(D) f = white noise of spectral density ``diffusion``, a(s) = sum_j a_j s^j of order r, a_r = 1, with all roots left of
the imaginary axis where f is stationary. Then S(omega) = diffusion / |a(i omega)|^2, and the state
(f, f', ..., f^(r-1)) is Markov. Everything that features need of a kernel on an interval is here, so that one is a
class with these few answers. The half-integer Matérn is a(s) = (s + rate)^(p+1), celerite's oscillator
a(s) = s^2 + (omega0 / Q) s + omega0^2; a(s) = s^r is a Wiener process, r - 1 times integrated.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class Slope(NamedTuple):
    """Derivatives in the logarithm of a hyperparameter."""

    coefficients: np.ndarray
    """Of a_0 ... a_r, (r + 1,)."""
    log_diffusion: float
    state_precision: np.ndarray
    """(r, r)."""


class Autoregressive(ABC):
    """One such process at some values of its hyperparameters, in half domains."""

    @property
    @abstractmethod
    def values(self) -> Mapping[str, float]:
        """The hyperparameters by name."""

    @property
    @abstractmethod
    def order(self) -> int:
        """r, the size of the state."""

    @property
    @abstractmethod
    def coefficients(self) -> tuple[Any, ...]:
        """a_0 ... a_r; numbers, or traced by JAX."""

    @abstractmethod
    def response(self, wave: np.ndarray) -> Any:
        """a(i omega)."""

    @property
    @abstractmethod
    def diffusion(self) -> Any:
        """Spectral density of the driving noise."""

    @abstractmethod
    def state_root(self) -> Any:
        """L with L L' the inverse of the state's covariance where the process begins, (r, r)."""

    def state_precision(self) -> np.ndarray:
        root = self.state_root()
        return root @ root.T

    def spectral_density(self, omega: np.ndarray) -> Any:
        """S(w) with k(r) = (1 / 2 pi) int S(w) exp(i w r) dw."""
        response = self.response(1j * np.asarray(omega))
        return self.diffusion / (response.real**2 + response.imag**2)

    @abstractmethod
    def tail(self, r: np.ndarray, derivative: int = 0) -> np.ndarray:
        """Regression weights of the given derivative of f(b + r), r >= 0, on the state at b, (N, r)."""

    @abstractmethod
    def slopes(self) -> Mapping[str, Slope]:
        """By hyperparameter."""

    def curvatures(self) -> Mapping[tuple[str, str], Slope]:
        """Second derivatives by pairs of hyperparameters; those left out are taken by differences."""
        return {}

    @abstractmethod
    def tail_slopes(self, r: np.ndarray) -> Mapping[str, np.ndarray]:
        """d tail / d log hyperparameter, (N, r) each."""


class Stationary(Autoregressive):
    """One of unit variance that is the same everywhere."""

    @abstractmethod
    def state_covariance(self) -> np.ndarray:
        """Of (f, f', ..., f^(r-1)) at any point, (r, r)."""

    @abstractmethod
    def covariance(self, r: np.ndarray) -> np.ndarray:
        """k(r)."""

    @property
    @abstractmethod
    def reach(self) -> float:
        """The distance beyond an edge over which the state there has a say."""
