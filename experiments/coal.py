"""The rate of coal-mining disasters in Britain, 1851 to 1962, from the days of 191 of them.

A log Gaussian Cox process over time with a Matérn-3/2, on cells of half a year. The table has expected disasters by
period, with 90 % intervals, beside the number that happened. ``--inference mcmc`` draws from the posterior by Markov
chains instead of taking it as Gaussian.
"""

import argparse
import sys
import time
from typing import Any

import numpy as np
from _common import Run, new_figure, tidy

from vff import CoxProcess, Matern32, plot
from vff.datasets import load_coal

WINDOW = (1851.0, 1963.0)
PERIODS = ((1851, 1963), (1851, 1890), (1890, 1930), (1930, 1963))


def inference() -> str:
    """The option ``--inference``, taken from the command line before the common ones are read."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--inference", choices=("variational", "mcmc"), default="variational")
    chosen, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    return chosen.inference


def counted(model: CoxProcess, years: np.ndarray) -> list[dict[str, Any]]:
    """Disasters that happened and that were to be expected, by period."""
    rows = []
    for low, high in PERIODS:
        count = model.expected_count((low, high))
        happened = int(np.count_nonzero((years >= low) & (years < high)))
        rows.append(
            {
                "period": f"{low}-{high - 1}",
                "happened": happened,
                "expected": round(count.mean, 1),
                "std": round(count.std, 1),
                "lower": round(count.lower, 1),
                "upper": round(count.upper, 1),
                "per_year": round(count.mean / (high - low), 3),
            }
        )
    return rows


def main() -> None:
    how = inference()
    run = Run.from_command_line(__file__, __doc__)
    years = load_coal().X[:, 0]
    model = CoxProcess(
        Matern32(0),
        grid=56 if run.quick else 224,
        frequencies=6 if run.quick else "auto",
        inference=how,
        random_state=0,
    )
    started = time.perf_counter()
    model.fit(years, WINDOW)
    run.say(f"{how}: {model.kernel_}, elbo {model.elbo_:.2f}, {time.perf_counter() - started:.1f} s")
    figure = new_figure(8.0, 4.0)
    ax = figure.add_subplot()
    plot.intensity(model, ax, xlabel="year", label="disasters per year")
    tidy(ax)
    ax.set_title("Coal-mining disasters in Britain", fontsize=11)
    run.finish(counted(model, years), figure)


if __name__ == "__main__":
    main()
