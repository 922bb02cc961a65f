"""Pine saplings: Markov chains over a log Gaussian Cox process in two columns, with more and more frequencies.

The paper's section on MCMC: 127 saplings counted on 64 x 64 cells, log rate c + f with f a product of two Matérn-3/2 on
[-1, 2]^2 without edge functions, M = 14, 16, ..., 30 frequencies per column with zero counted. Priors are the authors':
lengthscales Gamma(0.1, 1), variance Gamma(1, 1), c normal with mean 0 and variance 3, for rates per cell. As M grows
the posterior of the lengthscales comes to rest. Beside it the defaults of this library: edge functions, domain [0, 1].

``--only 14 30`` runs some M of the paper and no default. ``pines_lengthscales.png`` is the second picture.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from _common import GREY, Run, new_figure, tidy
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde

from vff import GPRegressor, Matern32
from vff.datasets import Dataset, load_pines
from vff.priors import Gamma, Normal

CELLS, DOMAIN = 64, (-1.0, 2.0)
PAPER, QUICK = tuple(range(14, 31, 2)), (14, 22)
DEFAULTS, QUICK_DEFAULTS = (8, 11, 14), (8,)  # harmonics, on a third of the length
PRIORS = {"lengthscale": Gamma(0.1, 1.0), "variance": Gamma(1.0, 1.0), "constant": Normal(0.0, 3.0**0.5)}
CHAINS, WARMUP, DRAWS = 2, 300, 500
QUICK_WARMUP, QUICK_DRAWS = 60, 60
NAMES = ("lengthscale[0]", "lengthscale[1]")
SHORTEST, LONGEST = 0.02, 0.4  # of the densities that are drawn
Lines = list[dict[str, Any]]


class Chain(NamedTuple):
    """What is kept of a fit."""

    title: str
    paper: bool
    lengthscales: dict[str, np.ndarray]
    """(chains, draws) each."""
    intensity: np.ndarray
    """Posterior mean at the cells, saplings per unit area, (east, north)."""
    row: dict[str, Any]


def asked() -> tuple[int, ...]:
    """The option ``--only``, taken from the command line before the common ones are read."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--only", type=int, nargs="+", choices=PAPER, default=())
    chosen, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    return tuple(chosen.only)


def cells(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Centres and counts of all cells."""
    centres = (np.arange(CELLS) + 0.5) / CELLS
    counts, _, _ = np.histogram2d(*data.X.T, bins=CELLS, range=((0.0, 1.0), (0.0, 1.0)))
    return np.stack(np.meshgrid(centres, centres, indexing="ij"), axis=-1).reshape(-1, 2), counts.ravel()


def sample(run: Run, X: np.ndarray, y: np.ndarray, M: int, paper: bool) -> Chain:
    """Chains with M frequencies, zero counted: the paper's way, or with this library's edges and domain."""
    place: dict[str, Any] = {"domain": DOMAIN, "edges": 0} if paper else {"domain": (0.0, 1.0)}
    model = GPRegressor(
        Matern32(0) * Matern32(1),
        likelihood="poisson",
        frequencies=M - 1,
        inference="mcmc",
        draws=QUICK_DRAWS if run.quick else DRAWS,
        warmup=QUICK_WARMUP if run.quick else WARMUP,
        chains=CHAINS,
        priors=PRIORS,
        random_state=0,
        **place,
    ).fit(X, y)
    samples = model.samples_
    assert samples is not None
    row: dict[str, Any] = {"features": "paper" if paper else "default", "M": M}
    found = {own.name: own for own in samples.summary}
    for name, short in zip(NAMES, ("east", "north"), strict=True):
        own = found[name]
        row |= {f"{short}_mean": own.mean, f"{short}_sd": own.sd}
        row |= {f"{short}_5": own.quantile_5, f"{short}_95": own.quantile_95}
    row |= {"ess": min(own.ess_bulk for own in found.values()), "rhat": max(own.rhat for own in found.values())}
    row |= {"divergences": samples.divergences, "seconds": samples.seconds}
    intensity = np.asarray(model.predict(X)).reshape(CELLS, CELLS) * CELLS**2
    title = f"M = {M}" if paper else f"default, M = {M}"
    run.say(f"{title}: lengthscales {row['east_mean']:.4f} and {row['north_mean']:.4f}, R-hat {row['rhat']:.3f}")
    return Chain(title, paper, {name: samples.values[name] for name in NAMES}, intensity, row)


def shown(rows: Lines) -> Lines:
    """The table as it is printed."""
    lines = []
    for row in rows:
        line = {"features": row["features"], "M": str(row["M"])}
        for short in ("east", "north"):
            line[f"{short}: mean ± sd"] = f"{row[f'{short}_mean']:.4f} ± {row[f'{short}_sd']:.4f}"
            line["5 % to 95 %" + " " * (short == "north")] = f"{row[f'{short}_5']:.4f} to {row[f'{short}_95']:.4f}"
        line |= {"least ESS": f"{row['ess']:.0f}", "R-hat": f"{row['rhat']:.3f}"}
        lines.append(line | {"divergent": str(row["divergences"]), "seconds": f"{row['seconds']:.1f}"})
    return lines


def compared(last: Chain, before: Chain) -> list[str]:
    """How far the means of the lengthscales moved, in units of what chains can tell and of the posterior."""
    from vff.inference.methods.chains.diagnostics import bulk_ess

    sentences = []
    for name, short in zip(NAMES, ("east", "north"), strict=True):
        new, old = last.lengthscales[name], before.lengthscales[name]
        error = np.hypot(*(x.std() / np.sqrt(bulk_ess(x)) for x in (new, old)))
        moved = new.mean() - old.mean()
        sentences.append(
            f"lengthscale {short}, {last.title} less {before.title}: {moved:+.4f}, which is {moved / error:+.1f} Monte "
            f"Carlo errors and {moved / old.std():+.2f} posterior standard deviations"
        )
    return sentences


def draw_intensities(run: Run, data: Dataset, chains: Sequence[Chain]) -> Figure:
    """Panels of the posterior mean, and the saplings in the last one."""
    figure = new_figure(3.0 * min(len(chains), 3) + 0.8, 2.9 * -(-len(chains) // 3))
    axes = figure.subplots(-(-len(chains) // 3), min(len(chains), 3), squeeze=False, sharex=True, sharey=True)
    top = max(float(np.quantile(own.intensity, 0.995)) for own in chains)
    image = None
    for ax, own in zip(axes.ravel(), chains, strict=False):
        image = ax.imshow(own.intensity.T, origin="lower", extent=(0, 1, 0, 1), vmin=0.0, vmax=top, cmap="viridis")
        ax.set_title(own.title, fontsize=10)
        ax.tick_params(labelsize=8)
    for ax in axes.ravel()[len(chains) :]:
        ax.set_visible(False)
    axes.ravel()[len(chains) - 1].plot(*data.X.T, ".", color="white", ms=3, mec="black", mew=0.3)
    for ax in axes[-1]:
        ax.set_xlabel("east (side of the square)", fontsize=9)
    for ax in axes[:, 0]:
        ax.set_ylabel("north (side of the square)", fontsize=9)
    assert image is not None
    bar = figure.colorbar(image, ax=axes, extend="max", shrink=0.9)
    bar.set_label("saplings per unit area", fontsize=9)
    figure.suptitle("Pine saplings: posterior mean intensity" + " (quick)" * run.quick, fontsize=12)
    return figure


def draw_density(ax: Axes, x: np.ndarray, colour: Any, label: str, dashed: bool) -> None:
    """By smoothing the logarithms of the draws."""
    at = np.geomspace(SHORTEST, LONGEST, 400)
    logs = np.log(x.ravel())
    inside = logs[(logs > np.log(SHORTEST / 3)) & (logs < np.log(LONGEST * 3))]
    density = gaussian_kde(inside)(np.log(at)) / at * inside.size / logs.size
    ax.plot(at, density, color=colour, lw=1.3, ls="--" if dashed else "-", label=label)


def draw_lengthscales(chains: Sequence[Chain]) -> Figure:
    """Posteriors of both lengthscales: the paper's features above, the defaults of this library below."""
    figure = new_figure(10.5, 7.0)
    axes = figure.subplots(2, 2, sharex="col", sharey="col")
    paper = [own for own in chains if own.paper]
    own_way = [own for own in chains if not own.paper]
    for across, (name, short) in enumerate(zip(NAMES, ("east", "north"), strict=True)):
        for down, group in enumerate((paper, own_way)):
            ax, colours = axes[down, across], colormaps["viridis"](np.linspace(0.9, 0.0, max(len(group), 2)))
            for own, colour in zip(group, colours, strict=False):
                draw_density(ax, own.lengthscales[name], colour, own.title, dashed=False)
            if down and paper:
                draw_density(ax, paper[-1].lengthscales[name], GREY, f"paper, {paper[-1].title}", dashed=True)
            ax.set_title(f"{short}, " + ("default features" if down else "the paper's features"), fontsize=10)
            ax.set_ylabel("posterior density", fontsize=9)
            ax.set_xlim(SHORTEST, 0.25)
            tidy(ax)
        axes[1, across].set_xlabel(f"lengthscale, {short} (side of the square)", fontsize=9)
    for ax in axes[:, 1]:
        ax.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.suptitle("Pine saplings: posterior of the lengthscales", fontsize=12)
    return figure


def main() -> None:
    only = asked()
    run = Run.from_command_line(__file__, __doc__)
    try:
        data = load_pines()
    except OSError as error:
        print(f"pines: skipped, because the data could not be had: {error}")
        return
    X, y = cells(data)
    chains = [sample(run, X, y, M, paper=True) for M in only or (QUICK if run.quick else PAPER)]
    if not only:
        chains += [sample(run, X, y, M + 1, paper=False) for M in (QUICK_DEFAULTS if run.quick else DEFAULTS)]
    paper = [own for own in chains if own.paper]
    rows = [own.row for own in chains]
    panels = paper if len(paper) <= 6 else [*paper[:5], paper[-1]]
    run.finish(rows, draw_intensities(run, data, panels), shown(rows))
    second = run.folder / f"{run.name}_lengthscales.png"
    draw_lengthscales(chains).savefig(second, dpi=70 if run.quick else 150)
    print(f"picture: {second.name}, beside it")
    if len(paper) > 1:
        print("\n" + "\n".join(compared(paper[-1], paper[-2])))


if __name__ == "__main__":
    main()
