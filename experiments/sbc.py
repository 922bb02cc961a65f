"""Simulation-based calibration of the Markov chains: are truths drawn from the prior uniform among posterior draws?

Hyperparameters come from the priors, a function from the Gaussian process they name, and Poisson counts from that
function (Talts et al., 2018). The model is fitted with the same priors; the rank of every truth among thinned draws is
then uniform, if draws are those of the posterior. What the features miss of the function has a variance below a part in
a thousand here, so that the posterior of the approximation is that of the model.

The table has, by quantity, p-values of a chi-square test over bins of the ranks and of a Kolmogorov-Smirnov test.
``--sets 40`` changes the number of data sets.
"""

import argparse
import sys
import time
from typing import Any

import numpy as np
from _common import BLUE, Run, new_figure, tidy
from matplotlib.figure import Figure
from scipy.stats import binom, chisquare, kstest

from vff import GPRegressor, Matern32
from vff.priors import LogNormal, Normal

SETS, QUICK_SETS, ROWS, FREQUENCIES = 200, 6, 40, 12
CHAINS, WARMUP, DRAWS, THIN = 2, 200, 250, 5
RANKS = CHAINS * DRAWS // THIN  # of which one draw is left out, so that there are as many ranks
BINS, LEVEL = 10, 0.99
PRIORS = {"variance": LogNormal(0.5, 0.5), "lengthscale": LogNormal(0.5, 0.3), "constant": Normal(1.0, 0.5)}
POINTS = np.array([0.3, 0.85])
QUANTITIES = {"variance[0]": "variance", "lengthscale[0]": "lengthscale", "constant": "constant"}
ALL = (*QUANTITIES.values(), *(f"f({x:g})" for x in POINTS))
Lines = list[dict[str, Any]]


def sets_asked() -> int | None:
    """The option ``--sets``, taken from the command line before the common ones are read."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--sets", type=int, default=None)
    chosen, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    return chosen.sets


def matern32(x: np.ndarray, lengthscale: float) -> np.ndarray:
    """Correlations of all pairs."""
    r = np.sqrt(3.0) * np.abs(x[:, None] - x) / lengthscale
    return (1.0 + r) * np.exp(-r)


def simulate(x: np.ndarray, rng: np.random.Generator) -> tuple[dict[str, float], np.ndarray]:
    """The truth from the prior, the constant included in f, and counts at the rows."""
    truth = {name: float(prior.sample(1, rng)[0]) for name, prior in PRIORS.items()}
    places = np.concatenate([x, POINTS])
    K = truth["variance"] * matern32(places, truth["lengthscale"])
    root = np.linalg.cholesky(K + 1e-10 * np.eye(places.size))
    f = truth["constant"] + root @ rng.standard_normal(places.size)
    counts = rng.poisson(np.exp(f[: x.size]))
    return truth | {f"f({place:g})": value for place, value in zip(POINTS, f[x.size :].tolist(), strict=True)}, counts


def draws_of(model: GPRegressor) -> dict[str, np.ndarray]:
    """Thinned draws of every quantity, one draw left out."""
    samples = model.samples_
    assert samples is not None
    every = slice(THIN - 1, None, THIN)
    found = {short: samples.values[name][:, every].ravel()[1:] for name, short in QUANTITIES.items()}
    f = model.sample_f(POINTS[:, None], CHAINS * DRAWS, random_state=0)
    # these come in random order: as many of them as of the others
    return found | {f"f({place:g})": values[: RANKS - 1] for place, values in zip(POINTS, f, strict=True)}


def ranks(run: Run, sets: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ranks (sets, quantities), the largest R-hat and the least effective sample size of every fit."""
    x = np.sort(np.random.default_rng(0).uniform(0.0, 1.0, ROWS))
    found, rhats, sizes = [], [], []
    for number in range(sets):
        started = time.perf_counter()
        truth, y = simulate(x, np.random.default_rng((1, number)))
        model = GPRegressor(
            Matern32(0),
            likelihood="poisson",
            frequencies=FREQUENCIES,
            domain=(0.0, 1.0),
            inference="mcmc",
            draws=DRAWS,
            warmup=WARMUP,
            chains=CHAINS,
            priors=PRIORS,
            random_state=number,
        ).fit(x[:, None], y)
        draws = draws_of(model)
        found.append([int(np.count_nonzero(draws[name] < truth[name])) for name in ALL])
        assert model.samples_ is not None
        rhats.append(max(own.rhat for own in model.samples_.summary))
        sizes.append(min(own.ess_bulk for own in model.samples_.summary))
        if number < 2 or number % 20 == 19:
            run.say(f"{number + 1} of {sets} data sets; the last took {time.perf_counter() - started:.2f} s")
    return np.array(found), np.array(rhats), np.array(sizes)


def tested(found: np.ndarray) -> Lines:
    """p-values by quantity; ranks are spread within their step for the second test."""
    spread = np.random.default_rng(2).uniform(size=found.shape)
    rows = []
    for name, own, jitter in zip(ALL, found.T, spread.T, strict=True):
        counts = np.bincount(own * BINS // RANKS, minlength=BINS)
        row = {"quantity": name, "mean_rank": float((own.mean() + 0.5) / RANKS)}
        row |= {"chi_square_p": float(chisquare(counts).pvalue)}
        rows.append(row | {"ks_p": float(kstest((own + jitter) / RANKS, "uniform").pvalue), "sets": len(own)})
    return rows


def draw(found: np.ndarray, rows: Lines) -> Figure:
    """Histograms of ranks, and below them how far their distribution is from the uniform one, with bands."""
    figure = new_figure(13.0, 5.6)
    axes = figure.subplots(2, len(ALL), sharey="row")
    n = len(found)
    low, high = binom.ppf((0.5 - LEVEL / 2, 0.5 + LEVEL / 2), n, 1.0 / BINS)
    at = np.linspace(0.0, 1.0, 201)
    lower, upper = (binom.ppf(level, n, at) / n - at for level in (0.5 - LEVEL / 2, 0.5 + LEVEL / 2))
    for top, bottom, name, own, row in zip(axes[0], axes[1], ALL, found.T, rows, strict=True):
        top.axhspan(float(low), float(high), color="0.85", lw=0)
        top.axhline(n / BINS, color="0.5", lw=0.8)
        top.hist(own / RANKS, np.linspace(0.0, 1.0, BINS + 1), color=BLUE, rwidth=0.9)
        top.set_title(f"{name}\np = {row['chi_square_p']:.2f}, {row['ks_p']:.2f}", fontsize=10)
        below = np.searchsorted(np.sort((own + 0.5) / RANKS), at, side="right") / n
        bottom.fill_between(at, lower, upper, color="0.85", lw=0)
        bottom.step(at, below - at, color=BLUE, lw=1.2, where="post")
        bottom.set_xlabel("rank of the truth (share of draws)", fontsize=9)
        tidy(top)
        tidy(bottom)
    axes[0, 0].set_ylabel("data sets", fontsize=9)
    axes[1, 0].set_ylabel("ECDF less uniform", fontsize=9)
    figure.suptitle(
        f"Ranks of the truth, {n} data sets; grey: {LEVEL:.0%} of what chance does, at a place", fontsize=12
    )
    return figure


def shown(rows: Lines) -> Lines:
    """The table as it is printed."""
    return [
        {name: f"{value:.3f}" if isinstance(value, float) else value for name, value in row.items()} for row in rows
    ]


def main() -> None:
    sets = sets_asked()
    run = Run.from_command_line(__file__, __doc__)
    found, rhats, sizes = ranks(run, sets or (QUICK_SETS if run.quick else SETS))
    rows = tested(found)
    run.finish(rows, draw(found, rows), shown(rows))
    print(
        f"\nR-hat: median {np.median(rhats):.3f}, largest {rhats.max():.3f}; least effective sample size of "
        f"{CHAINS * DRAWS} draws: median {np.median(sizes):.0f}, smallest {sizes.min():.0f}"
    )


if __name__ == "__main__":
    main()
