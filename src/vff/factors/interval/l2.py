"""L2 Fourier features on [a, b]: u_m = int_a^b f(x) exp(-i omega_m (x - a)) dx (paper, section 3.2 and appendix A).

The appendix prints the Matérn-1/2 case with misprints (the rate is missing from exponents); here every half-integer
order follows from one integral. With k(r) = sum_j a_j (rate r)^j exp(-rate r) and

    I(s; z) = int_0^s sum_j a_j (rate r)^j exp(-z r) dr
            = sum_j a_j rate^j j! / z^(j+1) [1 - exp(-z s) sum_(i<=j) (z s)^i / i!],

    cov(u_m, f(x)) = exp(-i w s) [ I(s; rate - i w) + I(L - s; rate + i w) ],      s = x - a in [0, L].

The covariance of two variables integrates this once more, against exp(i w' s); the same primitives close it.
"""

from dataclasses import dataclass
from math import factorial

import numpy as np

from vff.factors.interval.basis import Interval
from vff.factors.interval.matern import HalfInteger, covariance_coefficients


@dataclass(frozen=True)
class L2Features:
    """The real inducing variables int f cos, m = 0 ... M, then -int f sin, m = 1 ... M, of the complex u_m.

    ``kernel`` has unit variance and its rate in the units of ``interval``; scale the results by the variance.
    """

    interval: Interval
    M: int
    kernel: HalfInteger

    @property
    def length(self) -> float:
        return self.interval.b - self.interval.a

    @property
    def omega(self) -> np.ndarray:
        return 2.0 * np.pi * np.arange(self.M + 1) / self.length

    def _partial(self, s: np.ndarray, z: np.ndarray) -> np.ndarray:
        """I(s; z) for s (..., 1) against z (M+1,), complex."""
        total = np.zeros(np.broadcast_shapes(s.shape, z.shape), complex)
        for j, a in enumerate(covariance_coefficients(self.kernel.p)):
            series = sum((z * s) ** i / factorial(i) for i in range(j + 1))
            total += a * self.kernel.rate**j * factorial(j) / z ** (j + 1) * (1.0 - np.exp(-z * s) * series)
        return total

    def complex_cross(self, x: np.ndarray) -> np.ndarray:
        """cov(u_m, f(x)) for x in [a, b], complex (M + 1, N)."""
        s = (np.asarray(x, float) - self.interval.a)[:, None]
        omega, rate = self.omega, self.kernel.rate
        inside = self._partial(s, rate - 1j * omega) + self._partial(self.length - s, rate + 1j * omega)
        return (np.exp(-1j * omega * s) * inside).T

    def cross(self, x: np.ndarray) -> np.ndarray:
        """cov(u, f(x)) of the real variables, (2M + 1, N): real parts, then imaginary parts."""
        waves = self.complex_cross(x)
        return np.concatenate([np.real(waves), np.imag(waves[1:])])

    def gram(self) -> np.ndarray:
        """cov(u, u') of the real variables, (2M + 1, 2M + 1)."""
        # With E = cov(u_m, conj u_n) and R = cov(u_m, u_n):  cov(Re, Re') = Re(E + R) / 2,
        # cov(Im, Im') = Re(E - R) / 2,  cov(Re, Im') = Im(R - E) / 2.
        hermitian, plain = self._double(+1), self._double(-1)
        cc, ss = np.real(hermitian + plain) / 2.0, np.real(hermitian - plain) / 2.0
        cs = np.imag(plain - hermitian) / 2.0
        return np.block([[cc, cs[:, 1:]], [cs[:, 1:].T, ss[1:, 1:]]])

    def _double(self, sign: int) -> np.ndarray:
        """int_0^L cov(u_m, f(a + s)) exp(sign i w_n s) ds for all m, n, complex (M + 1, M + 1)."""
        w, rate = self.omega, self.kernel.rate
        beat = 1j * (sign * w[None, :] - w[:, None])
        forward = self._integrated(rate - 1j * w[:, None], beat)
        # Second half: substitute s -> L - s; exp(beat L) = 1 for harmonics.
        return forward + self._integrated(rate + 1j * w[:, None], -beat)

    def _integrated(self, z: np.ndarray, beat: np.ndarray) -> np.ndarray:
        """int_0^L exp(beat s) I(s; z) ds, elementwise over (M + 1, M + 1)."""
        length = self.length
        whole = np.where(beat == 0.0, length, 0.0)  # int_0^L exp(beat s) ds over full periods
        total = np.zeros(beat.shape, complex)
        for j, a in enumerate(covariance_coefficients(self.kernel.p)):
            # int_0^L s^i exp(-(z - beat) s) ds, the lower incomplete Gamma function of integer order
            y = z - beat
            decayed = np.zeros(beat.shape, complex)
            for i in range(j + 1):
                series = sum((y * length) ** n / factorial(n) for n in range(i + 1))
                decayed += z**i / y ** (i + 1) * (1.0 - np.exp(-y * length) * series)
            total += a * self.kernel.rate**j * factorial(j) / z ** (j + 1) * (whole - decayed)
        return total
