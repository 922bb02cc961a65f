"""Where learning starts: a coarse look over lengthscales and noise shares, at the number of harmonics each deserves."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from vff.inference.column import ColumnModel
from vff.inference.optimise import rescale
from vff.linalg import threads_for

_LENGTHSCALES = (2.0, 0.6, 0.2, 0.06, 0.02, 0.006)  # half domains
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

    Lengthscales first, with the middle noise share; then the other shares at the best lengthscale.
    """
    lengthscales = (given["lengthscale"],) if given["lengthscale"] else _LENGTHSCALES
    middle, *others = _variances(given)
    model = model.restricted(min(model.basis.M, _MOST_HARMONICS))
    coarse = [_evaluate(model, {**middle, "lengthscale": length}, given) for length in lengthscales]
    best = max(coarse, key=_elbo)
    length = model.parameters.unpack(best.theta)["lengthscale"]
    return max([best, *(_evaluate(model, {**more, "lengthscale": length}, given) for more in others)], key=_elbo)


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
    with threads_for(model.basis.size):
        closed = model.at(theta)
        elbo = closed.elbo
    if given["variance"] or given["noise"]:
        return Start(theta, model.basis.M, elbo)
    scale, elbo = rescale(closed)
    shift = model.parameters.pack({"variance": scale, "noise": scale, "lengthscale": 1.0})
    return Start(theta + shift, model.basis.M, elbo)
