"""Simulation-based calibration: are truths drawn from the prior uniform among posterior draws?

Hyperparameters come from the priors, a function from the Gaussian process they name, and Poisson counts from that
function (Talts et al., 2018), for Markov chains; with ``--integrated`` numbers with Gaussian noise, for the weighted
draws of ``hyperparameters="integrate"``. The model is fitted with the same priors; the rank of every truth among
thinned draws is then uniform, if draws are those of the posterior. What the features miss of the function has a
variance below a part in a thousand here (of numbers, at the median lengthscale), so that the posterior of the
approximation is that of the model.

The table has, by quantity, p-values of a chi-square test over bins of the ranks and of a Kolmogorov-Smirnov test.
``--sets 40`` changes the number of data sets.
"""

import argparse
import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from _common import BLUE, Run, new_figure, tidy
from matplotlib.figure import Figure
from scipy.stats import binom, chisquare, kstest

from vff import GPRegressor, Matern32
from vff.priors import AbstractPrior, LogNormal, Normal

SETS, QUICK_SETS, ROWS = 200, 6, 40
CHAINS, WARMUP, DRAWS, THIN = 2, 200, 250, 5
BINS, LEVEL = 10, 0.99
POINTS = np.array([0.3, 0.85])
F = tuple(f"f({place:g})" for place in POINTS)
Lines = list[dict[str, Any]]


@dataclass(frozen=True)
class Method:
    """What is drawn from, how it is fitted, and where the draws are."""

    name: str
    priors: dict[str, AbstractPrior]
    quantities: dict[str, str]
    """What ``samples_`` calls a hyperparameter, and what it is here."""
    options: dict[str, Any]
    draws: int
    """That a fit leaves of every hyperparameter."""
    thin: int

    @property
    def ranks(self) -> int:
        """Of which one draw is left out, so that there are as many ranks."""
        return self.draws // self.thin

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.quantities.values(), *F)


OF_KERNEL = {"variance[0]": "variance", "lengthscale[0]": "lengthscale"}
CHAINED = Method(
    "sbc",
    {"variance": LogNormal(0.5, 0.5), "lengthscale": LogNormal(0.5, 0.3), "constant": Normal(1.0, 0.5)},
    OF_KERNEL | {"constant": "constant"},
    {"likelihood": "poisson", "frequencies": 12, "inference": "mcmc"}
    | {"draws": DRAWS, "warmup": WARMUP, "chains": CHAINS},
    CHAINS * DRAWS,
    THIN,
)
INTEGRATED = Method(
    "sbc_integrated",
    {"variance": LogNormal(0.5, 1.0), "lengthscale": LogNormal(0.5, 0.5), "noise_variance": LogNormal(0.1, 1.0)},
    OF_KERNEL | {"noise_variance": "noise_variance"},
    # without a constant, whose prior is flat
    {"frequencies": 16, "hyperparameters": "integrate", "normalize_y": False},
    240,
    2,
)


def asked() -> tuple[Method, int | None]:
    """Options of this experiment, taken from the command line before the common ones are read."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--sets", type=int, default=None)
    parser.add_argument("--integrated", action="store_true")
    chosen, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    return INTEGRATED if chosen.integrated else CHAINED, chosen.sets


def matern32(x: np.ndarray, lengthscale: float) -> np.ndarray:
    """Correlations of all pairs."""
    r = np.sqrt(3.0) * np.abs(x[:, None] - x) / lengthscale
    return (1.0 + r) * np.exp(-r)


def simulate(method: Method, x: np.ndarray, rng: np.random.Generator) -> tuple[dict[str, float], np.ndarray]:
    """The truth from the prior, the constant included in f, and targets at the rows."""
    truth = {name: float(prior.sample(1, rng)[0]) for name, prior in method.priors.items()}
    places = np.concatenate([x, POINTS])
    K = truth["variance"] * matern32(places, truth["lengthscale"])
    root = np.linalg.cholesky(K + 1e-10 * np.eye(places.size))
    f = truth.get("constant", 0.0) + root @ rng.standard_normal(places.size)
    at_rows = f[: x.size]
    if "noise_variance" in truth:
        y = at_rows + np.sqrt(truth["noise_variance"]) * rng.standard_normal(x.size)
    else:
        y = rng.poisson(np.exp(at_rows))
    return truth | dict(zip(F, f[x.size :].tolist(), strict=True)), y


def draws_of(method: Method, model: GPRegressor) -> dict[str, np.ndarray]:
    """Thinned draws of every quantity, one draw left out."""
    samples = model.samples_
    assert samples is not None
    every = slice(method.thin - 1, None, method.thin)
    found = {short: samples.values[name][:, every].ravel()[1:] for name, short in method.quantities.items()}
    f = model.sample_f(POINTS[:, None], method.draws, random_state=0)
    # these come in random order: as many of them as of the others
    return found | {name: values[: method.ranks - 1] for name, values in zip(F, f, strict=True)}


def ranks(run: Run, method: Method, sets: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ranks (sets, quantities), the largest R-hat and the least effective sample size of every fit."""
    x = np.sort(np.random.default_rng(0).uniform(0.0, 1.0, ROWS))
    found, rhats, sizes = [], [], []
    for number in range(sets):
        started = time.perf_counter()
        truth, y = simulate(method, x, np.random.default_rng((1, number)))
        model = GPRegressor(
            Matern32(0), domain=(0.0, 1.0), priors=method.priors, random_state=number, **method.options
        ).fit(x[:, None], y)
        draws = draws_of(method, model)
        found.append([int(np.count_nonzero(draws[name] < truth[name])) for name in method.all])
        assert model.samples_ is not None
        rhats.append(max(own.rhat for own in model.samples_.summary))
        sizes.append(min(own.ess_bulk for own in model.samples_.summary))
        if number < 2 or number % 20 == 19:
            run.say(f"{number + 1} of {sets} data sets; the last took {time.perf_counter() - started:.2f} s")
    return np.array(found), np.array(rhats), np.array(sizes)


def tested(method: Method, found: np.ndarray) -> Lines:
    """p-values by quantity; ranks are spread within their step for the second test."""
    spread = np.random.default_rng(2).uniform(size=found.shape)
    rows = []
    for name, own, jitter in zip(method.all, found.T, spread.T, strict=True):
        counts = np.bincount(own * BINS // method.ranks, minlength=BINS)
        row = {"quantity": name, "mean_rank": float((own.mean() + 0.5) / method.ranks)}
        row |= {"chi_square_p": float(chisquare(counts).pvalue)}
        rows.append(row | {"ks_p": float(kstest((own + jitter) / method.ranks, "uniform").pvalue), "sets": len(own)})
    return rows


def draw(method: Method, found: np.ndarray, rows: Lines) -> Figure:
    """Histograms of ranks, and below them how far their distribution is from the uniform one, with bands."""
    figure = new_figure(13.0, 5.6)
    axes = figure.subplots(2, len(method.all), sharey="row")
    n = len(found)
    low, high = binom.ppf((0.5 - LEVEL / 2, 0.5 + LEVEL / 2), n, 1.0 / BINS)
    at = np.linspace(0.0, 1.0, 201)
    lower, upper = (binom.ppf(level, n, at) / n - at for level in (0.5 - LEVEL / 2, 0.5 + LEVEL / 2))
    for top, bottom, name, own, row in zip(axes[0], axes[1], method.all, found.T, rows, strict=True):
        top.axhspan(float(low), float(high), color="0.85", lw=0)
        top.axhline(n / BINS, color="0.5", lw=0.8)
        top.hist(own / method.ranks, np.linspace(0.0, 1.0, BINS + 1), color=BLUE, rwidth=0.9)
        top.set_title(f"{name}\np = {row['chi_square_p']:.2f}, {row['ks_p']:.2f}", fontsize=10)
        below = np.searchsorted(np.sort((own + 0.5) / method.ranks), at, side="right") / n
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
    method, sets = asked()
    run = replace(Run.from_command_line(__file__, __doc__), name=method.name)
    found, rhats, sizes = ranks(run, method, sets or (QUICK_SETS if run.quick else SETS))
    rows = tested(method, found)
    run.finish(rows, draw(method, found, rows), shown(rows))
    size = f"least effective sample size: median {np.median(sizes):.0f}, smallest {sizes.min():.0f}"
    if np.isfinite(rhats).all():
        print(f"\nR-hat: median {np.median(rhats):.3f}, largest {rhats.max():.3f}")
    print(f"\n{size}, of {method.draws} draws")


if __name__ == "__main__":
    main()
