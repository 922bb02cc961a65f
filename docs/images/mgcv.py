"""The picture of the page for those who come from mgcv: one table, fitted by both: python docs/images/mgcv.py.

Needs R with mgcv (Rscript on the path). The functions are those of Gu and Wahba's four univariate terms.
"""

import argparse
import io
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vff import GPRegressor, Trend

BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#666666"
FIT = """
library(mgcv); d <- read.csv("{rows}"); at <- read.csv("{at}")
m <- gam(y ~ s(x0) + s(x1) + s(x2) + s(x3), data = d, method = "REML")
p <- predict(m, at, type = "terms", se.fit = TRUE)
write.csv(cbind(p$fit, p$se.fit), row.names = FALSE)
"""


def simulated(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(n, 4))
    x2 = X[:, 2]
    bumps = 0.2 * x2**11 * (10 * (1 - x2)) ** 6 + 10 * (10 * x2) ** 3 * (1 - x2) ** 10
    y = 2 * np.sin(np.pi * X[:, 0]) + np.exp(2 * X[:, 1]) + bumps + 2 * rng.normal(size=n)
    return pd.DataFrame(X, columns=["x0", "x1", "x2", "x3"]).assign(y=y)


def by_mgcv(rows: pd.DataFrame, at: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error of every term."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {"rows": f"{folder}/rows.csv", "at": f"{folder}/at.csv"}
        rows.to_csv(paths["rows"], index=False)
        at.to_csv(paths["at"], index=False)
        done = subprocess.run(["Rscript", "-e", FIT.format(**paths)], capture_output=True, text=True, check=True)
    found = pd.read_csv(io.StringIO(done.stdout)).to_numpy()
    return found[:, :4], found[:, 4:]


def compared() -> Figure:
    rows = simulated()
    at = pd.DataFrame({name: np.linspace(0.01, 0.99, 200) for name in rows.columns[:4]})
    model = GPRegressor(Trend("x0") + Trend("x1") + Trend("x2") + Trend("x3")).fit(rows, "y")
    names, mean, std = model.effects(at)
    fit, se = by_mgcv(rows, at)
    figure = Figure(figsize=(10.0, 2.9), layout="constrained")
    for d, ax in enumerate(np.ravel(figure.subplots(1, 4, sharey=True))):
        x = at[names[d]]
        ax.fill_between(x, mean[:, d] - 2 * std[:, d], mean[:, d] + 2 * std[:, d], color=BLUE, alpha=0.2, lw=0)
        ax.plot(x, mean[:, d], color=BLUE, lw=1.4, label="vff, Trend, ±2 sd")
        ax.plot(x, fit[:, d], color=ORANGE, lw=1.2, ls="--", label="mgcv, s(), ±2 se")
        for sign in (-2, 2):
            ax.plot(x, fit[:, d] + sign * se[:, d], color=ORANGE, lw=0.7, ls=":")
        ax.set_xlabel(names[d])
        ax.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("effect on y")
    figure.axes[3].legend(fontsize=7, frameon=False, loc="upper left")
    apart = np.sqrt(np.mean((mean - fit) ** 2, axis=0))
    print("root mean square of the difference, by term:", apart.round(3), "sd of y:", round(rows["y"].std(), 2))
    print("mean ratio of standard deviations, vff over mgcv:", (std / se).mean(axis=0).round(2))
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    compared().savefig(parser.parse_args().out / "mgcv.png", dpi=90)
