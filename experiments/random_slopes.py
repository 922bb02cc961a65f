"""Random slopes beside lme4: reaction times after days without sleep, an intercept and a slope for every subject.

    python experiments/random_slopes.py [--quick] [--out FOLDER]

The data (Belenky et al. 2003, eighteen subjects on ten days) come with R's package lme4, which fits
``Reaction ~ Days + (Days | Subject)`` by maximum likelihood and by REML; without R a table like it is simulated, and
the columns of lme4 hold the truth. Here the model is ``Linear("Days") + Linear("Days", intercept=True) *
Categorical("Subject")``. What lme4 calls fixed effects have priors here, the slope one whose variance is learnt, and
are integrated out. So

- variance components are those of REML, which integrates over flat priors, and not of maximum likelihood;
- the slope of all subjects is drawn to zero a little, by the share of its variance that is not of the data;
- on y less lme4's fixed effects, the bound at lme4's variance components is its likelihood, to rounding.
"""

import io
import shutil
import subprocess
from typing import Any

import numpy as np
import pandas as pd
from _common import BLUE, GREY, ORANGE, Run, new_figure, tidy
from matplotlib.figure import Figure

from vff import Categorical, GPRegressor, Linear
from vff.kernels import normal_form

NAMES = ("sd of intercepts", "sd of slopes", "correlation", "sd of the noise", "intercept", "slope")
LMER = """
suppressMessages(library(lme4))
cat("Subject,Days,Reaction\n"); write.table(sleepstudy[, c("Subject", "Days", "Reaction")], sep=",", col.names=FALSE,
  row.names=FALSE, quote=FALSE)
for (reml in c(FALSE, TRUE)) {
  m <- lmer(Reaction ~ Days + (Days | Subject), sleepstudy, REML=reml, control=lmerControl(optCtrl=list(ftol_abs=1e-12,
    xtol_abs=1e-12)))
  v <- as.data.frame(VarCorr(m))
  cat("#", format(c(v$sdcor[1], v$sdcor[2], v$sdcor[3], sigma(m), fixef(m), logLik(m)), digits=15), "\n")
}
cat("#", format(t(as.matrix(coef(m)$Subject)), digits=15), "\n")
"""


class Answer:
    """What lme4 says, or the truth of a simulation."""

    def __init__(self, numbers: np.ndarray, log_likelihood: float | None, lines: np.ndarray):
        self.numbers, self.log_likelihood, self.lines = numbers, log_likelihood, lines


def asked() -> tuple[pd.DataFrame, dict[str, Answer]] | None:
    """The data and the fits of lme4; None where R or lme4 is not there."""
    if shutil.which("Rscript") is None:
        return None
    found = subprocess.run(["Rscript", "-e", LMER], capture_output=True, text=True, check=False)
    if found.returncode:
        return None
    lines = found.stdout.splitlines()
    frame = pd.read_csv(io.StringIO("\n".join(line for line in lines if not line.startswith("#"))))
    ml, reml, groups = (np.array(line[1:].split(), float) for line in lines if line.startswith("#"))
    lines_of_groups = groups.reshape(-1, 2)
    answers = {
        name: Answer(own[:6], float(own[6]), lines_of_groups)
        for name, own in (("lme4, maximum likelihood", ml), ("lme4, REML", reml))
    }
    return frame, answers


def simulated() -> tuple[pd.DataFrame, dict[str, Answer]]:
    """A table like it, and what it was made of."""
    rng, truth = np.random.default_rng(0), np.array([24.0, 6.0, 0.1, 25.5, 251.0, 10.5])
    across = truth[2] * truth[0] * truth[1]
    lines = rng.multivariate_normal(truth[4:], [[truth[0] ** 2, across], [across, truth[1] ** 2]], 18)
    frame = pd.DataFrame({"Subject": np.repeat(np.arange(18), 10), "Days": np.tile(np.arange(10.0), 18)})
    f = lines[frame["Subject"], 0] + lines[frame["Subject"], 1] * frame["Days"]
    return frame.assign(Reaction=f + truth[3] * rng.normal(size=180)), {"truth": Answer(truth, None, lines)}


def random_line(sd: float, slope: float, correlation: float) -> Any:
    own = Linear("Days", variance=sd**2, intercept=True, slope=slope / sd, correlation=correlation)
    return own * Categorical("Subject")


def likelihood(frame: pd.DataFrame, numbers: np.ndarray) -> float:
    """The bound on y less the fixed effects, at variance components of somebody else."""
    rest = frame["Reaction"] - numbers[4] - numbers[5] * frame["Days"]
    model = GPRegressor(random_line(*numbers[:3]), noise_variance=numbers[3] ** 2, optimizer=None, normalize_y=False)
    return model.fit(frame[["Days", "Subject"]], rest).elbo_


def fitted(frame: pd.DataFrame) -> tuple[GPRegressor, np.ndarray, np.ndarray]:
    """The model, its numbers in the order of ``NAMES``, and the line of every subject."""
    kernel = Linear("Days") + Linear("Days", intercept=True) * Categorical("Subject")
    model = GPRegressor(kernel).fit(frame[["Days", "Subject"]], frame["Reaction"])
    (_, lines), table = normal_form(model.kernel_), model.coefficients()
    line: Any = lines.factors[0]
    sd, noise = np.sqrt(line.variance), np.sqrt(model.likelihood_.values["variance"])
    numbers = np.array([sd, sd * line.slope, line.correlation, noise, table["constant"].mean, table["Days"].mean])
    groups = np.array(
        [
            [table[f"Days[intercept] * Subject[{name}]"].mean, table[f"Days * Subject[{name}]"].mean]
            for name in dict.fromkeys(frame["Subject"])
        ]
    )
    return model, numbers, groups + numbers[4:]


def draw(frame: pd.DataFrame, lines: np.ndarray, other: str, answer: Answer) -> Figure:
    """Lines of subjects, each by itself, by lme4 and here; and predictions side by side."""
    figure = new_figure(10.0, 4.2)
    left, right = figure.subplots(1, 2)
    alone = np.array([np.polyfit(own["Days"], own["Reaction"], 1)[::-1] for _, own in frame.groupby("Subject")])
    for one, two in zip(alone, lines, strict=True):
        left.plot(*np.stack([one, two], axis=1), color=GREY, lw=0.6, zorder=1)
    left.plot(*alone.T, ".", color=GREY, label="each subject by itself")
    left.plot(*answer.lines.T, "o", mfc="none", color=ORANGE, ms=9, label=other)
    left.plot(*lines.T, ".", color=BLUE, label="vff")
    left.set(xlabel="reaction time at day 0 (ms)", ylabel="slope (ms per day)")
    left.legend(frameon=False, fontsize="small")
    codes, days = pd.factorize(frame["Subject"])[0], frame["Days"].to_numpy()
    both = [own[codes, 0] + own[codes, 1] * days for own in (answer.lines, lines)]
    ends = [min(map(np.min, both)), max(map(np.max, both))]
    right.plot(ends, ends, color=GREY, lw=0.8)
    right.plot(*both, ".", color=BLUE)
    right.set(xlabel=f"reaction time by {other} (ms)", ylabel="reaction time by vff (ms)")
    for ax in (left, right):
        tidy(ax)
    figure.suptitle("Intercepts and slopes of eighteen subjects, drawn together", fontsize=11)
    return figure


def main() -> None:
    run = Run.from_command_line(__file__, __doc__)
    found = asked()
    if found is None:
        run.say("R or its package lme4 is not there: a table like sleepstudy is simulated, and the truth is shown")
    frame, answers = found or simulated()
    model, numbers, lines = fitted(frame)
    columns = {name: answer.numbers for name, answer in answers.items()} | {"vff": numbers}
    rows = [
        {"": name, **{own: float(f"{values[n]:.4f}") for own, values in columns.items()}}
        for n, name in enumerate(NAMES)
    ]
    other, answer = list(answers.items())[-1]
    run.finish(rows, draw(frame, lines, other, answer))
    print(f"\n{model.coefficients(levels=False)}\n")
    apart = np.abs(lines - answer.lines).max(axis=0)
    print(f"lines of subjects differ from {other} by at most {apart[0]:.2f} ms at day 0 and {apart[1]:.2f} ms per day")
    first = next(iter(answers.values()))
    if first.log_likelihood is not None:
        own = likelihood(frame, first.numbers)
        print(f"log-likelihood at lme4's maximum: {first.log_likelihood:.6f} by lme4, {own:.6f} here")


if __name__ == "__main__":
    main()
