"""Where learning starts: a coarse look over lengthscales and noise shares, at the number of harmonics each deserves."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from vff.inference.column import ColumnModel
from vff.inference.optimise import rescale
from vff.linalg import threads_for

_LENGTHSCALES = (2.0, 0.6, 0.2, 0.06, 0.02)  # half domains
_SHORT_LENGTHSCALE, _MANY_CYCLES = 0.006, 32
_NOISE_SHARES = (0.1, 0.01, 1.0)  # noise variance over signal variance; the first goes with every lengthscale
_MOST_HARMONICS = 128


@dataclass(frozen=True)
class Start:
    """A candidate and the bound it reaches."""

    theta: np.ndarray
    M: int
    elbo: float


def harmonics_for(lengthscale: float, p: int) -> int:
    """Harmonics that carry most of the prior variance at this lengthscale (half domains)."""
    # Half the spectral mass of f lies below about omega = rate; four rates leave a few per cent or less.
    rate = np.sqrt(2 * p + 1) / lengthscale
    return int(np.clip(np.ceil(4.0 * rate / np.pi), 12, 10_000))


def look(model: ColumnModel, given: Mapping[str, float | None]) -> Start:
    """The best of a few candidates. ``given`` holds the user's values by parameter name, None where free.

    Lengthscales first, with the middle noise share; then the other shares at the best lengthscale. Short lengthscales
    are tried with all the harmonics they need only when the targets have something to say at high frequencies.
    """
    middle, *others = _variances(given)
    coarse = model.restricted(min(model.basis.M, _MOST_HARMONICS))
    detail = highest_standing_out(model)
    tried = [(coarse, length) for length in _LENGTHSCALES]
    if detail > _MANY_CYCLES:
        tried.append((coarse, _SHORT_LENGTHSCALE))
    if detail > coarse.basis.M:
        fine = model.restricted(min(model.basis.M, int(1.3 * detail) + 8))
        tried += [(fine, length) for length in (4.0 / detail, 1.0 / detail, 0.25 / detail)]
    if given["lengthscale"]:
        tried = [(model, given["lengthscale"])]
    with threads_for(coarse.basis.size):
        first = [(sized, _evaluate(sized, {**middle, "lengthscale": length}, given)) for sized, length in tried]
        sized, best = max(first, key=lambda pair: pair[1].elbo)
        length = model.parameters.unpack(best.theta)["lengthscale"]
        shares = [_evaluate(sized, {**more, "lengthscale": length}, given) for more in others]
    return max([best, *shares], key=_elbo)


def highest_standing_out(model: ColumnModel) -> int:
    """The highest harmonic in which the targets stand out of white noise of their own variance; 0 when none does."""
    M, project = model.basis.M, model.moments.project
    power = project[1 : M + 1] ** 2 + project[M + 1 : 2 * M + 1] ** 2
    # for white noise, power is about exponential with mean sum w y^2; 12 + log M is one false alarm in 1e5 tables
    expected = model.moments.target_squared
    standing = np.flatnonzero(power > (12.0 + np.log(M)) * expected)
    return int(standing[-1]) + 1 if standing.size else 0


def _elbo(start: Start) -> float:
    return start.elbo


def _variances(given: Mapping[str, float | None]) -> list[dict[str, float]]:
    variance, noise = given["variance"], given["noise"]
    if variance and noise:
        return [{"variance": variance, "noise": noise}]
    if noise:
        return [{"variance": noise / share, "noise": noise} for share in _NOISE_SHARES]
    return [{"variance": variance or 1.0, "noise": share * (variance or 1.0)} for share in _NOISE_SHARES]


def _evaluate(model: ColumnModel, values: Mapping[str, float], given: Mapping[str, float | None]) -> Start:
    model = model.restricted(min(model.basis.M, harmonics_for(values["lengthscale"], model.p)))
    theta = model.parameters.pack(values)
    closed = model.at(theta)
    if given["variance"] or given["noise"]:
        return Start(theta, model.basis.M, closed.elbo)
    scale, elbo = rescale(closed)
    shift = model.parameters.pack({"variance": scale, "noise": scale, "lengthscale": 1.0})
    return Start(theta + shift, model.basis.M, elbo)
