"""f'' + (omega0 / Q) f' + omega0^2 f = white noise: celerite's driven, damped oscillator (theory §16)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from vff.factors.interval.autoregressive import Slope, Stationary
from vff.linalg import namespace

_STEP = 1e-5  # of a logarithm
_SAME = 1e-7  # of omega0: roots that are closer are taken to be this far apart


@dataclass(frozen=True)
class DampedOscillator(Stationary):
    """Unit variance, in half domains. Above a quality of 1/2 it swings; at 1/2 it is a Matérn-3/2."""

    period: Any
    quality: Any

    @property
    def values(self) -> dict[str, float]:
        return {"period": self.period, "quality": self.quality}

    @property
    def order(self) -> int:
        return 2

    @property
    def omega0(self) -> Any:
        return 2.0 * np.pi / self.period

    @property
    def damping(self) -> Any:
        """Of the amplitude, per half domain; half of what stands before f'."""
        return 0.5 * self.omega0 / self.quality

    @property
    def coefficients(self) -> tuple[Any, ...]:
        return self.omega0**2, 2.0 * self.damping, 1.0

    def response(self, wave: np.ndarray) -> Any:
        return self.omega0**2 + wave * (2.0 * self.damping + wave)

    @property
    def diffusion(self) -> Any:
        return 4.0 * self.damping * self.omega0**2

    def state_covariance(self) -> np.ndarray:
        return np.diag([1.0, self.omega0**2])

    def state_root(self) -> Any:
        xp = namespace(self.omega0)
        return xp.diag(xp.stack([xp.ones(()), 1.0 / self.omega0]))

    @cached_property
    def _roots(self) -> tuple[complex, complex]:
        """-a(s) = 0: the slower one first. Equal ones are moved apart by less than rounding would see."""
        apart = np.sqrt(complex(self.damping**2 - self.omega0**2))
        apart = apart if abs(apart) > _SAME * self.omega0 else complex(_SAME * self.omega0)
        return self.damping - apart, self.damping + apart

    def _motion(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The two motions without noise: from (f, f') = (1, 0), and from (0, 1)."""
        slow, fast = self._roots
        kick = -np.exp(-slow * r) * np.expm1((slow - fast) * r) / (fast - slow)
        return np.real(np.exp(-fast * r) + fast * kick), np.real(kick)

    def covariance(self, r: np.ndarray) -> np.ndarray:
        return self._motion(np.abs(r))[0]

    @property
    def reach(self) -> float:
        """The time in which an oscillation is damped."""
        return float(1.0 / np.real(self._roots[0]))

    def tail(self, r: np.ndarray, derivative: int = 0) -> np.ndarray:
        """First row of exp(F r), F the companion matrix; each derivative is one more factor F."""
        weights = np.stack(self._motion(r), axis=1)
        companion = np.array([[0.0, 1.0], [-(self.omega0**2), -2.0 * self.damping]])
        return weights @ np.linalg.matrix_power(companion, derivative)

    def slopes(self) -> dict[str, Slope]:
        """omega0 goes as 1 / period; the damping as omega0 / quality."""
        square, twice, _ = self.coefficients
        precision = np.diag([0.0, 2.0 / square])
        return {
            "period": Slope(np.array([-2.0 * square, -twice, 0.0]), -3.0, precision),
            "quality": Slope(np.array([0.0, -twice, 0.0]), -1.0, np.zeros((2, 2))),
        }

    def tail_slopes(self, r: np.ndarray) -> dict[str, np.ndarray]:
        """By differences: the formula has a limit at every quality of 1/2."""

        def at(name: str, step: float) -> np.ndarray:
            return DampedOscillator(**{**self.values, name: self.values[name] * np.exp(step)}).tail(r)

        return {name: (at(name, _STEP) - at(name, -_STEP)) / (2.0 * _STEP) for name in self.values}
