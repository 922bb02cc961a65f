"""The banana figure: bounds of a classifier against the number of frequencies, for three kinds of covariance of q(u).

400 points of two classes, a product of two Matérn-3/2 with variance and lengthscales one, all held. The first three
panels are the paper's: harmonics on the data's range ± 1.5, a probit squashed into [0.001, 0.999], and

    full             q(u) with a covariance of its own
    Kronecker        one Kronecker product over the two columns
    two Kroneckers   a sum of two of them

The paper's M counts the zero frequency, so that M - 1 harmonics and the constant are 2M - 1 features per column. Open
circles are the numbers printed in the paper. The fourth panel has the defaults, edge functions on the range of the
data, and the probit as it is. Lines are the exact variational Gaussian process, whose bound nothing of the kind can
pass.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from _common import BLUE, GREY, RED, Run, new_figure, tidy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vff import GPClassifier, Matern32
from vff.baselines import VariationalGP
from vff.basis import ColumnBasis, Interval
from vff.datasets import Dataset, load_banana
from vff.features import ColumnPrior
from vff.inference.methods.structured.fit import Kind, ProductTerm, fit_structured
from vff.likelihoods import Bernoulli

FULL, ONE, TWO, DEFAULT = "full", "Kronecker", "two Kroneckers", "edge functions"
PUBLISHED: dict[str, dict[int, float]] = {
    FULL: {2: -310.701953, 4: -151.529181, 6: -143.004411, 8: -140.609600}
    | {10: -140.256859, 12: -140.033605, 14: -139.929552, 16: -140.225325},
    ONE: {2: -311.182988, 4: -154.623878, 6: -148.776111, 8: -148.839305, 10: -150.719993, 12: -152.452384}
    | {14: -154.062974, 16: -155.542108, 18: -156.865764, 20: -158.046935, 22: -159.123444, 24: -160.101903},
    TWO: {2: -310.764715, 4: -152.100504, 6: -143.899581, 8: -141.632740, 10: -141.418105, 12: -141.157026}
    | {14: -141.095862, 16: -141.080679, 18: -141.072712, 20: -141.040855, 22: -141.133223, 24: -141.132649},
}
PUBLISHED_EXACT = -139.128
BARS = {14: -139.5, 26: -139.0}  # of the fourth panel, by features per column
HARMONICS = (1, 2, 3, 5, 8, 11, 14)  # of the fourth panel
PADDING, ORDER, LENGTHSCALE, EDGES = 1.5, 1, 1.0, 3
QUICK = {FULL: (4, 8), ONE: (4, 8), TWO: (6,)}
SQUASHED, CLEAN = Bernoulli("probit", 0.001), Bernoulli("probit")
KERNEL = Matern32(0, variance=1.0, lengthscale=LENGTHSCALE) * Matern32(1, variance=1.0, lengthscale=LENGTHSCALE)
GIVEN: dict[str, Any] = {"optimizer": None, "fit_intercept": False}
Lines = list[dict[str, Any]]


def padded(x: np.ndarray) -> Interval:
    return Interval(float(x.min()) - PADDING, float(x.max()) + PADDING)


def exact(data: Dataset, likelihood: Bernoulli) -> float:
    model = VariationalGP(KERNEL, likelihood=likelihood, optimizer=None, normalize_y=False)
    return model.fit(data.X, data.y).elbo_


def full(data: Dataset, M: int) -> float:
    domain = {c: (place.a, place.b) for c, place in enumerate(map(padded, data.X.T))}
    model = GPClassifier(KERNEL, likelihood=SQUASHED, domain=domain, edges=0, frequencies=M - 1, **GIVEN)
    return model.fit(data.X, data.y).elbo_


def default(data: Dataset, harmonics: int) -> float:
    model = GPClassifier(KERNEL, likelihood=CLEAN, frequencies=harmonics, **GIVEN).fit(data.X, data.y)
    assert set(model.edges_.values()) == {(EDGES, EDGES)}
    return model.elbo_


def product(X: np.ndarray, M: int) -> ProductTerm:
    """Features and prior of either column, harmonics alone."""
    features, priors, basis = [], [], ColumnBasis(M - 1, 0)
    for x in X.T:
        place = padded(x)
        rate = np.sqrt(3.0) * place.half_length / LENGTHSCALE
        features.append(basis.evaluate(place.to_unit(x)))
        priors.append(ColumnPrior(basis, ORDER, rate).matrix().to_dense())
    return ProductTerm(tuple(features), tuple(priors))


def structured(kind: Kind, data: Dataset, M: int) -> float:
    terms, extra = [product(data.X, M)], np.ones(len(data.y))
    return fit_structured(kind, terms, data.y, None, SQUASHED, SQUASHED.psi, extra, tolerance=1e-4).elbo


METHODS: dict[str, Callable[[Dataset, int], float]] = {
    FULL: full,
    ONE: partial(structured, "kronecker"),
    TWO: partial(structured, "two kroneckers"),
}


def measure(run: Run, data: Dataset) -> Iterator[dict[str, Any]]:
    """A line for every bound."""
    line = exact(data, SQUASHED)
    yield {"covariance": "exact, squashed", "M": "", "features": "", "bound": line, "published": PUBLISHED_EXACT}
    for name, method in METHODS.items():
        for M in [M for M in PUBLISHED[name] if M in QUICK[name] or not run.quick]:
            bound = method(data, M)
            run.say(f"{name}, M = {M}: {bound:.3f}")
            yield {"covariance": name, "M": M, "features": 2 * M - 1, "bound": bound, "published": PUBLISHED[name][M]}
    yield {"covariance": "exact, clean", "M": "", "features": "", "bound": exact(data, CLEAN), "published": ""}
    for M in HARMONICS[1:4:2] if run.quick else HARMONICS:
        features, bound = 2 * M + 1 + EDGES, default(data, M)
        run.say(f"{DEFAULT}, {features} features per column: {bound:.3f}")
        yield {"covariance": DEFAULT, "M": M + 1, "features": features, "bound": bound, "published": ""}


def shown(rows: Lines) -> Lines:
    """The table as it is printed."""
    found = []
    for row in rows:
        known = row["published"] != ""
        line = {"covariance": row["covariance"], "M": str(row["M"]), "features per column": str(row["features"])}
        line |= {"ours": f"{row['bound']:.3f}", "published": f"{row['published']:.3f}" if known else ""}
        found.append({**line, "ours - published": f"{row['bound'] - row['published']:+.3f}" if known else ""})
    return found


def draw_panel(ax: Axes, rows: Lines, line: float, across: str) -> None:
    """Bounds against M or the features."""
    at, bound = ([row[key] for row in rows] for key in (across, "bound"))
    ax.axhline(line, color=RED, lw=1.5, label="exact variational GP")
    ax.plot(at, bound, "o-", color=BLUE, ms=4, lw=1.0, label="ours")
    published = [(row[across], row["published"]) for row in rows if row["published"] != ""]
    if published:
        ax.plot(*zip(*published, strict=True), "o", ms=9, mfc="none", mec=GREY, label="published")
    ax.text(0.97, 0.97, f"exact: {line:.3f}", transform=ax.transAxes, ha="right", va="top", fontsize=8, color=RED)
    tidy(ax)


def draw(rows: Lines) -> Figure:
    figure = new_figure(11.0, 7.0)
    axes = figure.subplots(2, 2).ravel()
    lines = {row["covariance"]: row["bound"] for row in rows}
    titles = {
        FULL: "full covariance",
        ONE: "one Kronecker product",
        TWO: "sum of two Kronecker products",
        DEFAULT: "full covariance, edge functions on the data's range, clean probit",
    }
    for ax, (name, title) in zip(axes, titles.items(), strict=True):
        own = name == DEFAULT
        across = "features" if own else "M"
        chosen = [row for row in rows if row["covariance"] == name]
        draw_panel(ax, chosen, lines["exact, clean" if own else "exact, squashed"], across)
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("features per column" if own else "M (harmonics per column, zero counted)", fontsize=9)
        ax.set_ylabel("bound (nats)", fontsize=9)
        ax.set_ylim((-144.5, -137.8) if own else (-163.0, -136.0))
        if own:
            for features, bar in BARS.items():
                ax.plot([features - 1.5, features + 1.5], [bar, bar], color=GREY, lw=1.5, label="bar")
        ax.set_xlim((4.0, 34.0) if own else (0.0, 25.0))
        unit = "features" if own else "M"
        for row in [row for row in chosen if row["bound"] < ax.get_ylim()[0]]:
            says = f"out of view: {row['bound']:.1f} at {unit} = {row[across]}"
            ax.text(0.3, 0.03, says, transform=ax.transAxes, fontsize=8, color=BLUE)
    handles, labels = axes[0].get_legend_handles_labels()
    bar, name = axes[3].get_legend_handles_labels()
    figure.legend([*handles, bar[-1]], [*labels, name[-1]], loc="outside lower center", ncols=4, fontsize=9)
    figure.suptitle("Bounds on the evidence of the banana data, hyperparameters held at one", fontsize=12)
    return figure


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    try:
        data = load_banana()
    except OSError as error:
        print(f"banana_bounds: skipped, because the data could not be had: {error}")
        return
    rows = list(measure(run, data))
    run.finish(rows, draw(rows), shown(rows))
    found = {row["features"]: row["bound"] for row in rows if row["covariance"] == DEFAULT}
    for features, bar in BARS.items():
        if features in found:
            says = "met" if found[features] > bar else "missed"
            print(f"bar of {bar} with {features} features per column: {says}, {found[features]:.3f}")


if __name__ == "__main__":
    main()
