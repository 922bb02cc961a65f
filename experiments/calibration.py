"""Calibration: do predicted probabilities and intervals hold what they say, under every kind of likelihood?

Classes: held-out rows in ten groups of equal size by the probability they were given, with the share of ones in each;
on rows whose truth is known, and on flights from New York (more than 15 minutes late or not). Other likelihoods: rows
drawn from a known function of two columns; the chance that the fitted model gave to a smaller y (the probability
integral transform) is uniform over held-out rows if the model is right, and central intervals of predict_quantiles hold
the share of rows they are made for. Of counts, which jump, the transform is drawn at random within the jump, and an
interval should hold what the model itself says, "expected", more than its nominal share.

The error is the standard deviation of the actual share by the binomial law, were the prediction true.
"""

from typing import Any, NamedTuple

import numpy as np
from _common import BLUE, GREEN, GREY, ORANGE, RED, Run, looking_outside, new_figure, tidy
from late_flights import Reliability, Split, draw_reliability, first_rows, flights, reliability
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vff import GPClassifier, GPRegressor
from vff.likelihoods import (
    AbstractLikelihood,
    Bernoulli,
    Beta,
    Gamma,
    NegativeBinomial,
    Poisson,
    StudentT,
)

TRUTHS: dict[str, AbstractLikelihood] = {
    "poisson": Poisson(),
    "negative-binomial": NegativeBinomial(dispersion=0.5),
    "student-t": StudentT(scale=0.3, df=4.0),
    "gamma": Gamma(shape=3.0),
    "beta": Beta(precision=10.0),
}
COLOURS = dict(zip(TRUTHS, (BLUE, GREEN, ORANGE, RED, GREY), strict=True))
LEVELS = (0.5, 0.8, 0.95)
BINS, NODES = 10, 64
SIMULATED, FLIGHTS = "classes, simulated", "classes, flights"
Lines = list[dict[str, Any]]


class Sizes(NamedTuple):
    """Rows to learn from, and to be predicted."""

    learn: int
    predict: int
    classes: int
    """Simulated rows of two classes that are predicted, which costs less."""
    flights: tuple[int, int]
    frequencies: int | str
    likelihoods: tuple[str, ...]


WHOLE = Sizes(1500, 1000, 20_000, (20_000, 90_000), "auto", tuple(TRUTHS))
QUICK = Sizes(200, 60, 1000, (1000, 1000), 4, ("poisson", "gamma"))


def latent(X: np.ndarray) -> np.ndarray:
    """The true function."""
    return 0.7 + 1.2 * np.sin(7.0 * X[:, 0]) + 0.8 * np.cos(4.0 * X[:, 1])


def simulate(truth: AbstractLikelihood, rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.random((rows, 2))
    return X, truth.sample(latent(X), np.ones(rows), rng)


def chance(model: GPRegressor, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """P(Y ≤ y) of every row, the function integrated out."""
    mean, variance = model.predict_f(X)
    z, weights = np.polynomial.hermite_e.hermegauss(NODES)
    f = mean[:, None] + np.sqrt(variance)[:, None] * z
    return model.likelihood_.cdf(y[:, None], f, np.ones((1, 1))) @ (weights / weights.sum())


def transform(model: GPRegressor, X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """P(Y < y) + U P(Y = y) of every row, U uniform."""
    upto = chance(model, X, y)
    if not model.likelihood_.discrete:
        return upto
    below = chance(model, X, y - 1.0)
    return below + rng.random(y.size) * (upto - below)


def coverage(name: str, model: GPRegressor, X: np.ndarray, y: np.ndarray) -> Lines:
    """A line for every level."""
    ends = [0.5 + 0.5 * side * level for level in LEVELS for side in (-1.0, 1.0)]
    quantiles, lines = model.predict_quantiles(X, ends), []
    for number, level in enumerate(LEVELS):
        low, high = quantiles[:, 2 * number], quantiles[:, 2 * number + 1]
        inside = chance(model, X, high) - chance(model, X, low - model.likelihood_.discrete)
        line = {"likelihood": name, "nominal": level, "expected": float(inside.mean())}
        line |= {"actual": float(np.mean((low <= y) & (y <= high)))}
        lines.append({**line, "error": float(np.sqrt(np.sum(inside * (1.0 - inside)))) / y.size, "rows": y.size})
    return lines


def in_lines(name: str, found: Reliability) -> Lines:
    """The groups of a reliability curve, in the columns of the table."""
    keys = ("nominal", "expected", "actual", "error", "rows")
    columns = (found.predicted, found.predicted, found.observed, found.error, found.rows)
    return [{"likelihood": name, **dict(zip(keys, row, strict=True))} for row in zip(*columns, strict=True)]


def classes(sizes: Sizes, rng: np.random.Generator) -> Reliability:
    truth = Bernoulli("logit")
    X, y = simulate(truth, sizes.learn, rng)
    model = GPClassifier(frequencies=sizes.frequencies).fit(X, y)
    X, y = simulate(truth, sizes.classes, rng)
    with looking_outside():
        return reliability(model.predict_proba(X)[:, 1], y)


def late(part: Split, sizes: Sizes) -> Reliability:
    part = first_rows(part, *sizes.flights)
    model = GPClassifier(frequencies=sizes.frequencies).fit(part.X, part.y)
    with looking_outside():
        return reliability(model.predict_proba(part.X_new)[:, 1], part.y_new)


def draw_transform(ax: Axes, name: str, u: np.ndarray) -> None:
    """A histogram, with the band that holds 95 % of the bars if all is well."""
    mean, std = u.size / BINS, np.sqrt(u.size * (1.0 - 1.0 / BINS) / BINS)
    ax.axhspan((mean - 1.96 * std) / mean, (mean + 1.96 * std) / mean, color="0.88", lw=0)
    ax.axhline(1.0, color="0.5", lw=0.8)
    ax.hist(
        u, BINS, range=(0.0, 1.0), weights=np.full(u.size, 1.0 / mean), histtype="step", color=COLOURS[name], lw=1.6
    )
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 2.0))
    ax.set_title(name, fontsize=10)
    ax.set_xlabel("predicted P(Y < y)", fontsize=9)
    ax.set_ylabel("density of held-out rows", fontsize=9)
    tidy(ax)


def draw_coverage(ax: Axes, lines: Lines) -> None:
    """What intervals hold against what the model says that they do; likelihoods side by side at every level."""
    ax.axhline(0.0, color=GREY, lw=0.8, zorder=0)
    for number, name in enumerate(TRUTHS):
        own = [line for line in lines if line["likelihood"] == name]
        if not own:
            continue
        at = [place + 0.13 * (number - 2) for place in range(len(own))]
        away, error = ([100.0 * value for value in values] for values in zip(*map(_departure, own), strict=True))
        ax.errorbar(at, away, yerr=2.0 * np.array(error), fmt="o", ms=3.5, lw=1.2, color=COLOURS[name], label=name)
    ax.set_xticks(range(len(LEVELS)), [f"{100 * level:g} %" for level in LEVELS])
    ax.set_title("central intervals, ± 2 sd", fontsize=10)
    ax.set_xlabel("nominal share", fontsize=9)
    ax.set_ylabel("actual − expected share (%)", fontsize=9)
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + 0.55 * (high - low))
    ax.legend(fontsize=7, frameon=False, ncols=2, loc="upper center")
    tidy(ax)


def _departure(line: dict[str, Any]) -> tuple[float, float]:
    return line["actual"] - line["expected"], line["error"]


def draw(groups: dict[str, Reliability], transforms: dict[str, np.ndarray], lines: Lines) -> Figure:
    figure = new_figure(13.0, 6.4)
    axes = figure.subplots(2, 4).ravel()
    for ax, name in zip(axes, (SIMULATED, FLIGHTS), strict=False):
        ax.set_title(f"{name}, ± 2 sd", fontsize=10)
        if name not in groups:
            ax.axis("off")
            continue
        draw_reliability(ax, groups[name])
        ax.set_xlabel("predicted probability", fontsize=9)
        ax.set_ylabel("share of ones", fontsize=9)
    for ax, (name, u) in zip(axes[2:], transforms.items(), strict=False):
        draw_transform(ax, name, u)
    for ax in axes[2 + len(transforms) : -1]:
        ax.axis("off")
    draw_coverage(axes[-1], lines)
    figure.suptitle("Probabilities and intervals on held-out rows", fontsize=12)
    return figure


def shown(lines: Lines) -> Lines:
    """The table as it is printed, in per cent."""
    names = ("nominal", "expected", "actual", "error")
    digits = dict.fromkeys(names, 1) | {"error": 2}
    return [
        {"likelihood": line["likelihood"], **{f"{name} (%)": f"{100 * line[name]:.{digits[name]}f}" for name in names}}
        | {"(a - e) / error": f"{(line['actual'] - line['expected']) / line['error']:+.1f}", "rows": int(line["rows"])}
        for line in lines
    ]


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    sizes, rng = QUICK if run.quick else WHOLE, np.random.default_rng(1)
    groups, transforms, lines = {SIMULATED: classes(sizes, rng)}, {}, []
    for name in sizes.likelihoods:
        truth = TRUTHS[name]
        X, y = simulate(truth, sizes.learn, rng)
        model = GPRegressor(likelihood=name, frequencies=sizes.frequencies).fit(X, y)
        learnt = ", ".join(f"{key} {value:.3g}" for key, value in model.likelihood_.values.items())
        run.say(f"{name}: bound {model.elbo_:.1f}{learnt and f', learnt {learnt}'}; predicting ...")
        X, y = simulate(truth, sizes.predict, rng)
        with looking_outside():
            transforms[name] = transform(model, X, y, rng)
            lines += coverage(name, model, X, y)
    try:
        groups[FLIGHTS] = late(flights(), sizes)
    except (OSError, ImportError) as error:
        run.say(f"the flights are left out, because they could not be had: {error}")
    lines += [line for name, found in groups.items() for line in in_lines(name, found)]
    run.finish(lines, draw(groups, transforms, lines), shown(lines))


if __name__ == "__main__":
    main()
