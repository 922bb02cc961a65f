"""Rows that are averages, and rows whose inputs are uncertain: what is lost by taking them for points.

Left, rows are averages over bins a third of a period wide, of a wave with noise: taken for points, 17 % of its
amplitude is gone, and the intervals do not know it. Right, inputs are read with a known error, x ~ N(t, std^2). Taken
for points, the wave is flattened by the error, and noise is learnt that is none. With q(x) = p(x), as
Matern52("t", std="h") has it, the bound takes the misfit on average over inputs, which flattens more and leaves more to
the noise; q(x) that follows the rows, found by a loop that hands its middles and standard deviations to the same
kernel, gives the noise back.
"""

import numpy as np
import pandas as pd
from _common import BLUE, GREY, ORANGE, Run
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vff import GPRegressor, Matern52

PERIOD, BIN, NOISE = 3.0, 1.0, 0.1
ERROR, SCATTER = 0.15, 0.2
WAVE = 2.0 * np.pi / PERIOD
PURPLE = "#CC79A7"


def bins(seed: int, n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Averages over bins with any middle."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0.5, 19.5, n)
    return pd.DataFrame({"t": t, "h": BIN}), np.sin(WAVE * t) * np.sinc(BIN / PERIOD) + NOISE * rng.normal(size=n)


def read_with_errors(seed: int, n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Where y was observed is known with an error."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 20.0, n)
    t = x + ERROR * rng.normal(size=n)
    return pd.DataFrame({"t": t, "h": ERROR}), np.sin(WAVE * x) + SCATTER * rng.normal(size=n)


def following(X: pd.DataFrame, y: np.ndarray, steps: int) -> GPRegressor:
    """q(x) by turns with q(f): towards N(x | t, h^2) N(y | f(x), noise), with f straight near the middle of q(x)."""
    room = {"t": (X["t"].min() - 8 * ERROR, X["t"].max() + 8 * ERROR), "h": (0.0, 1.01 * ERROR)}
    q, model = X.copy(), GPRegressor()
    for _ in range(steps):
        model = GPRegressor(Matern52("t", std="h"), frequencies=40, domain=room).fit(q, y)
        f, near = (model.predict_f(q.assign(t=q["t"] + step, h=0.0))[0] for step in (0.0, 1e-3))
        slope, noise = (near - f) / 1e-3, model.noise_variance_
        precision = ERROR**-2.0 + slope**2 / noise
        aim = (X["t"] / ERROR**2 + slope * (y - f + slope * q["t"]) / noise) / precision
        middle = (q["t"] + 0.5 * (aim - q["t"]).clip(-0.1, 0.1)).clip(
            room["t"][0] + 5.1 * ERROR, room["t"][1] - 5.1 * ERROR
        )
        q = pd.DataFrame({"t": middle, "h": (0.5 / q["h"] ** 2 + 0.5 * precision) ** -0.5})
    return model


def fits(kind: str, seed: int, quick: bool) -> tuple[dict[str, GPRegressor], pd.DataFrame, np.ndarray]:
    """All answers to one table."""
    n = 150 if quick else 300
    if kind == "bins":
        X, y = bins(seed, n)
        knowing = {"averages": GPRegressor(Matern52("t", width="h"), frequencies=40).fit(X, y)}
    else:
        X, y = read_with_errors(seed, n)
        knowing = {
            "q(x) = p(x)": GPRegressor(Matern52("t", std="h"), frequencies=40).fit(X, y),
            "q(x) follows": following(X, y, 4 if quick else 15),
        }
    return {"points": GPRegressor(Matern52("t"), frequencies=40).fit(X, y), **knowing}, X, y


def draw(axes: Axes, models: dict[str, GPRegressor], X: pd.DataFrame, y: np.ndarray, title: str) -> None:
    """A stretch of the rows, and what was made of it."""
    at = np.linspace(4.0, 11.0, 300)
    new = pd.DataFrame({"t": at, "h": 0.0})
    axes.plot(X["t"], y, ".", color=GREY, ms=3, alpha=0.6, label="rows")
    axes.plot(at, np.sin(WAVE * at), color="black", lw=1.0, ls="--", label="truth")
    colours = {"points": ORANGE, "q(x) = p(x)": PURPLE}
    for name, model in models.items():
        colour = colours.get(name, BLUE)
        mean, variance = model.predict_f(new)
        axes.plot(at, mean, color=colour, lw=1.5, label=name)
        axes.fill_between(at, mean - 1.96 * variance**0.5, mean + 1.96 * variance**0.5, color=colour, alpha=0.15, lw=0)
    axes.set(title=title, xlabel="t", xlim=(4.0, 11.0), ylim=(-2.1, 1.6))
    axes.legend(fontsize="x-small", loc="lower left", ncols=2)


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    figure = Figure(figsize=(10.0, 3.6), layout="constrained")
    titles = {
        "bins": f"averages over a third of a period, noise {NOISE:g}",
        "errors": f"inputs with a std of {ERROR:g}",
    }
    panels, rows = dict(zip(titles, figure.subplots(1, 2, sharey=True), strict=True)), []
    panels["bins"].set_ylabel("y")
    new = pd.DataFrame({"t": np.linspace(1.5, 18.5, 300), "h": 0.0})
    truth = np.sin(WAVE * new["t"].to_numpy())
    for kind, title in titles.items():
        found: dict[str, list[tuple[float, ...]]] = {}
        for seed in range(2 if run.quick else 10):
            models, X, y = fits(kind, seed, run.quick)
            for name, model in models.items():
                mean, variance = model.predict_f(new)
                inside = np.mean(np.abs(mean - truth) < 1.96 * np.sqrt(variance))
                size = float(mean @ truth / (truth @ truth))
                away = float(np.mean((mean - truth) ** 2))
                found.setdefault(name, []).append((away, float(inside), size, model.noise_variance_**0.5))
            if seed == 0:
                draw(panels[kind], models, X, y, title)
            run.say(f"{kind}, table {seed + 1}")
        for name, own in found.items():
            away, inside, size, noise = np.mean(own, axis=0)
            rows.append(
                {
                    "rows": kind,
                    "taken for": name,
                    "rmse of f": round(float(np.sqrt(away)), 4),
                    "in 95 %": round(float(inside), 3),
                    "amplitude": round(float(size), 3),
                    "noise sd": round(float(noise), 3),
                    "true noise sd": NOISE if kind == "bins" else SCATTER,
                }
            )
    run.finish(rows, figure)


if __name__ == "__main__":
    main()
