"""Whether Markov chains have mixed, and how many independent draws they are worth.

After Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), Rank-normalization, folding, and localization: an improved
R-hat for assessing convergence of MCMC. Draws x are (chains, draws), of one number. Every chain is split in halves, so
that one that drifts disagrees with itself; of an odd number of draws the middle one is left out.

Draws that are all equal, or not all finite, say nothing about mixing: R-hat and effective sample sizes are NaN.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.fft import next_fast_len
from scipy.special import ndtri
from scipy.stats import rankdata

TAILS = (0.05, 0.95)


class ChainSummary(NamedTuple):
    """The law of one number, and how well the chains know it."""

    name: str
    mean: float
    sd: float
    quantile_5: float
    quantile_95: float
    ess_bulk: float
    """Independent draws that would know the centre as well."""
    ess_tail: float
    """Independent draws that would know the 5 % and the 95 % quantile as well."""
    rhat: float
    """Below 1.01 when the chains agree."""


def rank_normalised_rhat(x: np.ndarray) -> float:
    """Split R-hat of ranks: the larger one of location (bulk) and of spread (folded at the median).

    Infinite when no chain moves and they are at different places.
    """
    halves = _halves(_checked(x))
    if _silent(halves):
        return np.nan
    folded = np.abs(halves - np.median(halves))
    return float(np.fmax(_rhat(_normal_scores(halves)), _rhat(_normal_scores(folded))))


def bulk_ess(x: np.ndarray) -> float:
    """The effective sample size of the normal scores of the ranks."""
    return _ess(_normal_scores(_halves(_checked(x))))


def tail_ess(x: np.ndarray) -> float:
    """The lesser of the effective sample sizes of x ≤ its 5 % quantile and x ≤ its 95 % quantile.

    NaN when one of the two is always true, as it may be of a number with few values.
    """
    x = _checked(x)
    if _silent(x):
        return np.nan
    return float(np.min([_ess(_halves((x <= quantile).astype(float))) for quantile in np.quantile(x, TAILS)]))


def summary(chains: Mapping[str, np.ndarray]) -> list[ChainSummary]:
    """One line per name; every array is (chains, draws)."""
    return [_summary_of(name, _checked(x)) for name, x in chains.items()]


def _summary_of(name: str, x: np.ndarray) -> ChainSummary:
    low, high = np.quantile(x, TAILS)
    moments = float(np.mean(x)), float(np.std(x, ddof=1))
    return ChainSummary(name, *moments, float(low), float(high), bulk_ess(x), tail_ess(x), rank_normalised_rhat(x))


def _checked(x: np.ndarray) -> np.ndarray:
    """Floats with two axes and four draws at least."""
    x = np.asarray(x, dtype=float)
    if x.ndim != 2 or x.shape[0] < 1 or x.shape[1] < 4:
        raise ValueError(
            "Diagnostics expect draws of shape (chains, draws) with at least one chain of four draws, "
            f"but found shape {x.shape}; draw more, or put the chains in rows."
        )
    return x


def _halves(x: np.ndarray) -> np.ndarray:
    """(2 chains, draws // 2)."""
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, -half:]])


def _silent(x: np.ndarray) -> bool:
    """Whether the draws are all equal or not all finite."""
    return not np.all(np.isfinite(x)) or bool(np.all(x == x.flat[0]))


def _normal_scores(x: np.ndarray) -> np.ndarray:
    """Normal quantiles of the ranks among all draws (Blom, 1958); equal draws share a rank. NaN if not all finite."""
    if not np.all(np.isfinite(x)):
        return np.full(x.shape, np.nan)
    return ndtri((rankdata(x).reshape(x.shape) - 3 / 8) / (x.size + 1 / 4))


def _rhat(z: np.ndarray) -> float:
    """√ of the variance of all draws over that within chains; NaN when all are equal, infinite when no chain moves."""
    if _silent(z):
        return np.nan
    if not np.any(np.ptp(z, axis=1)):
        return np.inf
    draws = z.shape[1]
    within = np.mean(np.var(z, axis=1, ddof=1))
    between = np.var(np.mean(z, axis=1), ddof=1)
    return float(np.sqrt(between / within + (draws - 1) / draws))


def _ess(z: np.ndarray) -> float:
    """Draws over the autocorrelation time τ = -1 + 2 Σ_t ρ_t; NaN when all are equal.

    Geyer's initial monotone sequence: sums of neighbours ρ_2k + ρ_2k+1 are positive and fall in truth, so they are
    taken up to the first that is not positive, and none as larger than the one before. With S draws in all, no ESS
    exceeds S log10 S.
    """
    if _silent(z):
        return np.nan
    draws, size = z.shape[1], z.size
    # mean over chains of Σ_n z_n z_(n + lag) / draws, of centred chains padded with zeros, (draws,)
    padded = next_fast_len(2 * draws, real=True)
    spectrum = np.fft.rfft(z - np.mean(z, axis=1, keepdims=True), n=padded, axis=1)
    covariances = np.mean(np.fft.irfft(np.abs(spectrum) ** 2, n=padded, axis=1)[:, :draws], axis=0) / draws
    within = covariances[0] * draws / (draws - 1)
    total = covariances[0] + np.var(np.mean(z, axis=1), ddof=1)
    rho = 1 - (within - covariances) / total
    rho[0] = 1.0
    known = max(1, (draws - 1) // 2)  # pairs; the last lags rest on too few products
    pairs = rho[0 : 2 * known : 2] + rho[1 : 2 * known : 2]
    last = int(np.argmax(pairs <= 0)) if np.any(pairs <= 0) else known - 1
    # of the pair at which the sum ends, the even lag alone still tells something
    tau = -1 + 2 * np.sum(np.minimum.accumulate(pairs[:last])) + max(rho[2 * last], 0.0)
    return float(size / max(tau, 1 / np.log10(size)))
