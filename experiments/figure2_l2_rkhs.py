"""Figure 2: cov(u_m, f(x)) of L2 Fourier features against RKHS Fourier features, for the three Matérns.

omega_m = 16 pi / (b - a), the eighth harmonic, and a lengthscale of (b - a) / 10. The L2 variable is the integral of
f(t) exp(-i omega (t - a)) over [a, b], the RKHS variable the inner product of f with the same wave. Only the second is
an exact sinusoid on [a, b] whatever the kernel: the data can then be summed before any hyperparameter is known.
"""

import numpy as np
from _common import BLUE, RED, Run, mark_domain, new_figure, tidy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vff.basis import ColumnBasis, Interval
from vff.features import ColumnPrior, L2Features, tail_features
from vff.kernels import HalfInteger

DOMAIN = Interval(0.0, 1.0)
HARMONIC = 8
LENGTHSCALE = 0.1
OMEGA = 2.0 * np.pi * HARMONIC / (DOMAIN.b - DOMAIN.a)
NAMES = ("Matérn-1/2", "Matérn-3/2", "Matérn-5/2")


def l2_covariance(x: np.ndarray, p: int) -> np.ndarray:
    """cov(u_m, f(x)) of the L2 feature, complex: in closed form on [a, b], by quadrature beyond."""
    kernel = HalfInteger.from_lengthscale(p, LENGTHSCALE)
    inside = (x >= DOMAIN.a) & (x <= DOMAIN.b)
    covariance = np.empty(x.size, complex)
    covariance[inside] = L2Features(DOMAIN, HARMONIC, kernel).complex_cross(x[inside])[HARMONIC]
    # Beyond [a, b] the integrand has no kink, and Gauss' rule is exact to rounding.
    nodes, weights = np.polynomial.legendre.leggauss(200)
    t = DOMAIN.a + DOMAIN.half_length * (nodes + 1.0)
    wave = DOMAIN.half_length * weights * np.exp(-1j * OMEGA * (t - DOMAIN.a))
    covariance[~inside] = kernel.covariance(np.subtract.outer(x[~inside], t)) @ wave
    return covariance


def rkhs_covariance(x: np.ndarray, p: int) -> np.ndarray:
    """cov(u_m, f(x)) of the RKHS feature, complex: the wave on [a, b], its tails beyond (paper, Table 1)."""
    rate = HalfInteger.from_lengthscale(p, LENGTHSCALE).rate * DOMAIN.half_length
    basis = ColumnBasis(HARMONIC, 0)
    t = DOMAIN.to_unit(x)
    inside = np.abs(t) <= 1.0
    features = np.empty((x.size, basis.size))
    features[inside] = basis.evaluate(t[inside])
    features[~inside] = tail_features(ColumnPrior(basis, p, rate), t[~inside])
    return features[:, HARMONIC] - 1j * features[:, basis.size - 1]


def departure(x: np.ndarray, covariance: np.ndarray) -> float:
    """Root mean square distance on [a, b] to the nearest sinusoid of this frequency, relative to the covariance."""
    inside = (x >= DOMAIN.a) & (x <= DOMAIN.b)
    waves = np.stack([np.cos(OMEGA * x[inside]), np.sin(OMEGA * x[inside])], axis=1).astype(complex)
    target = covariance[inside]
    nearest = waves @ np.linalg.lstsq(waves, target, rcond=None)[0]
    return float(np.linalg.norm(target - nearest) / np.linalg.norm(target))


def draw_panel(ax: Axes, x: np.ndarray, covariance: np.ndarray, title: str) -> None:
    ax.axhline(0.0, color="0.85", lw=0.8, zorder=0)
    ax.plot(x, np.real(covariance), color=RED, lw=1.5, label="real part")
    ax.plot(x, np.imag(covariance), color=BLUE, lw=1.5, label="imaginary part")
    mark_domain(ax, (DOMAIN.a, DOMAIN.b))
    ax.set_title(title, fontsize=10)
    tidy(ax)


def draw(x: np.ndarray, curves: dict[tuple[int, str], np.ndarray]) -> Figure:
    """Kernels down, kinds of features across."""
    figure = new_figure(10.0, 7.4)
    axes = figure.subplots(3, 2, sharex=True)
    for p, line in enumerate(axes):
        for ax, kind in zip(line, ("L2", "RKHS"), strict=True):
            off = departure(x, curves[p, kind])
            words = "a sinusoid inside" if off < 1e-9 else f"{100 * off:.0f} % away from a sinusoid inside"
            draw_panel(ax, x, curves[p, kind], f"{NAMES[p]}, {kind}: {words}")
        line[0].set_ylabel("cov(u, f(x))")
    for ax in axes[-1]:
        ax.set_xlabel("x (lengthscale 0.1; dashed: [a, b])")
    axes[0, 0].legend(fontsize=8, loc="lower right")
    figure.suptitle("RKHS features are exact waves on [a, b]; L2 features are bent by the edges, and by the kernel")
    return figure


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    x = np.linspace(-0.4, 1.4, 271 if run.quick else 1801)
    curves = {(p, "L2"): l2_covariance(x, p) for p in range(3)}
    curves |= {(p, "RKHS"): rkhs_covariance(x, p) for p in range(3)}
    rows = [
        {
            "kernel": NAMES[p],
            "features": kind,
            "largest": float(np.abs(curve).max()),
            "departure_from_sinusoid": departure(x, curve),
        }
        for (p, kind), curve in sorted(curves.items())
    ]
    run.finish(rows, draw(x, curves))


if __name__ == "__main__":
    main()
