"""D^r f = white noise from a random state where it starts: a Wiener process, r - 1 times integrated (theory §19).

Distances from the start are signed: on the other side another process, independent of the first, runs backwards from
the same state. With u and v in lengthscales

    r = 1    k = 1 + min(|u|, |v|)                                       the second terms if u and v have one sign,
    r = 2    k = 1 + u v + min^2 (3 max - min) / 6                       min and max of |u| and |v|
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np

from vff.factors.interval.autoregressive import Autoregressive, Slope

FAR = 1e60  # half domains: its fourth power is still a number


@dataclass(frozen=True)
class WienerProcess(Autoregressive):
    """Of order 1 or 2, in half domains. The state at the start has the variances 1 and lengthscale^-2."""

    r: int
    lengthscale: float

    @property
    def values(self) -> Mapping[str, float]:
        return {"lengthscale": self.lengthscale}

    @property
    def order(self) -> int:
        return self.r

    @property
    def coefficients(self) -> tuple[Any, ...]:
        return (*[0.0] * self.r, 1.0)

    def response(self, wave: np.ndarray) -> Any:
        return wave**self.r

    @property
    def diffusion(self) -> float:
        return self.lengthscale ** -(2.0 * self.r - 1.0)

    def state_root(self) -> Any:
        return np.diag([float(self.lengthscale) ** j for j in range(self.r)])

    def slopes(self) -> Mapping[str, Slope]:
        precision = np.diag([2.0 * j * self.lengthscale ** (2.0 * j) for j in range(self.r)])
        return {"lengthscale": Slope(np.zeros(self.r + 1), -(2.0 * self.r - 1.0), precision)}

    def tail(self, r: np.ndarray, derivative: int = 0) -> np.ndarray:
        """Taylor's polynomial: a constant, or a line."""
        r = np.minimum(r, FAR)
        steps = [j - derivative for j in range(self.r)]
        return np.stack([r**n / factorial(n) if n >= 0 else np.zeros_like(r) for n in steps], axis=1)

    def tail_slopes(self, r: np.ndarray) -> Mapping[str, np.ndarray]:
        return {"lengthscale": np.zeros((r.size, self.r))}

    def parts(self, u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state's part and that of the noise, whose sum is k, for distances (N,) and (N',), (N, N') each."""
        u, v = (np.clip(own, -FAR, FAR) / self.lengthscale for own in (u, v))
        product = np.multiply.outer(u, v)
        one, other = np.broadcast_arrays(np.abs(u)[:, None], np.abs(v))
        low, high = np.minimum(one, other), np.maximum(one, other)
        noise = low if self.r == 1 else low**2 * (3.0 * high - low) / 6.0
        state = np.ones_like(product) if self.r == 1 else 1.0 + product
        return state, np.where(product > 0.0, noise, 0.0)

    def covariance(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """k(u, v)."""
        state, noise = self.parts(u, v)
        return state + noise

    def slope_variance(self, u: np.ndarray) -> np.ndarray:
        """Of f' at these distances, per half domain squared; of order 2."""
        return (1.0 + np.minimum(np.abs(u), FAR) / self.lengthscale) / self.lengthscale**2
