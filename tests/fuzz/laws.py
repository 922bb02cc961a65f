"""Laws of one fit: each says in a sentence how it was broken, or nothing."""

from typing import Any

import numpy as np

from fuzz import dense
from fuzz.findings import accident, is_refusal, stray
from fuzz.problems import Problem, in_days
from fuzz.programs import Run

MOST_EXACT = 80  # rows that the exact process is asked about
_ROUNDING = 1e-6  # of a bound, relative; nats below one
_MOST_OUTSIDE_OF = 10  # rows from which on a fifth of them is more than one
_REACH = 10.0  # prior standard deviation of the constant, in standard deviations of y
_TWO_SIDED, _LAST_DIGITS = 1.959963984540054, 1e-9
_HAIR = 1e-7  # of the prior variance: what a posterior variance may be off by rounding


def refusals_are_sentences(problem: Problem, run: Run) -> str | None:
    """No exception but a ValueError of one sentence."""
    return None if run.error is None or is_refusal(run.error) else accident(run.error)


def no_stray_warning(problem: Problem, run: Run) -> str | None:
    """No warning but of extrapolation, where rows may lie outside the domain."""
    return stray(run.warned, outside=problem.asks_outside)


def answers_are_numbers(problem: Problem, run: Run) -> str | None:
    """No NaN, no infinity; variances are not negative, and a new observation is never certain."""
    for name, values in run.answers.items():
        if not np.all(np.isfinite(values)):
            return f"{name} holds {values[~np.isfinite(values)].flat[0]}"
        if "quantiles" not in name and ("std" in name or "variance" in name) and np.any(values < 0.0):
            return f"{name} is negative: {values.min():g}"
    if "std" in run.answers and not np.all(run.answers["std"] > 0.0):
        return "the standard deviation of a new observation is zero"
    if "quantiles" in run.answers and np.any(np.diff(run.answers["quantiles"], axis=1) < 0.0):
        return "quantiles fall as their levels rise"
    if run.error is not None:
        return None
    if not np.isfinite(run.model.elbo_):
        return f"elbo_ is {run.model.elbo_}"
    if problem.likelihood is None and not run.model.noise_variance_ > 0.0:
        return f"noise_variance_ is {run.model.noise_variance_}"
    return None


def quantiles_are_those_of_a_normal(problem: Problem, run: Run) -> str | None:
    """With Gaussian noise a new observation is normal: quantiles are the mean, and 1.96 standard deviations from it.

    Averaged over hyperparameters it is a mixture of these.
    """
    mixed = run.error is None and run.model.samples_ is not None
    if "quantiles" not in run.answers or problem.likelihood is not None or mixed:
        return None
    mean, std = run.answers["mean"][:, None], run.answers["std"][:, None]
    expected = mean + std * np.array([-_TWO_SIDED, 0.0, _TWO_SIDED])
    apart = np.max(np.abs(run.answers["quantiles"] - expected) / (std + _LAST_DIGITS * np.abs(mean)))
    return f"quantiles lie {apart:.3g} standard deviations from where they are" if apart > _ROUNDING else None


def own_rows_lie_within_their_intervals(problem: Problem, run: Run) -> str | None:
    """Of the rows of the fit, at most a fifth lies outside the middle 99.8 %, or a note says why."""
    usual = problem.learns and problem.weights is None and problem.n >= _MOST_OUTSIDE_OF
    if run.error is not None or not usual or run.model.notes_ or "own quantiles" not in run.answers:
        return None
    low, high = run.answers["own quantiles"].T
    outside = float(np.mean((problem.y < low) | (problem.y > high)))
    return f"{outside:.0%} of its own rows lie outside the middle 99.8 %" if outside > 0.2 else None


def constant_of(problem: Problem) -> dense.Constant:
    """The prior of the constant: the one place that knows how the model treats it.

    With ``normalize_y`` it is normal around the weighted mean of y, ten weighted standard deviations wide (ten units,
    where y is constant); otherwise there is none.
    """
    if not problem.options.get("normalize_y", True):
        return dense.Constant(0.0)
    y, w = problem.y.astype(np.longdouble), problem.weight
    mean = np.sum(w * y) / np.sum(w)
    spread = np.sum(w * (y - mean) ** 2) / np.sum(w)
    return dense.Constant(float(mean), _REACH**2 * (float(spread) if spread > 1e-28 * mean**2 else 1.0))


def learnt_terms(kernel: Any, names: tuple[str, ...]) -> list[dense.Term]:
    """The kernel of a fit for the exact process."""
    terms = []
    for term in getattr(kernel, "terms", (kernel,)):
        factors, variance = [], 1.0
        for leaf in getattr(term, "factors", (term,)):
            column = leaf.column if isinstance(leaf.column, str) else names[leaf.column]
            variance *= leaf.variance
            levels = type(leaf).__name__ == "Categorical"
            factors.append(dense.Factor(column, None) if levels else _matern(leaf, column))
        terms.append(dense.Term(variance, tuple(factors)))
    return terms


def _matern(leaf: Any, column: str) -> dense.Factor:
    return dense.Factor(column, int(type(leaf).__name__.removeprefix("Matern")[0]) // 2, leaf.lengthscale)


def judged(problem: Problem, run: Run) -> dense.Exact | None:
    """The exact process at what the fit has learnt; None where long double cannot tell it from a singular one."""
    terms = learnt_terms(run.model.kernel_, tuple(problem.table))
    smooth = {factor.column for term in terms for factor in term.factors if factor.order is not None}

    def plain(name: str, values: np.ndarray) -> np.ndarray:
        return in_days(values) if name in smooth else values

    table, asked = ({name: plain(name, each) for name, each in t.items()} for t in (problem.table, problem.asked))
    rows = (table, problem.y, problem.weight, asked)
    try:
        return dense.exact(terms, run.model.noise_variance_, constant_of(problem), *rows)
    except FloatingPointError:
        return None


def bounds_hold(problem: Problem, run: Run) -> str | None:
    """Bound ≤ evidence ≤ upper bound; without the evidence where rows are many."""
    if run.error is not None:
        return None
    low, high = run.model.elbo_ - run.model.elbo_error_, run.model.evidence_upper_bound_
    slack = _ROUNDING * max(1.0, abs(low))
    if not low <= high + slack:
        return f"elbo_ {low!r} lies above evidence_upper_bound_ {high!r}"
    if problem.n > MOST_EXACT:
        return None
    judge = judged(problem, run)
    if judge is None:
        return None
    evidence = judge.evidence
    slack = _ROUNDING * max(1.0, abs(evidence))
    if not low <= evidence + slack:
        return f"elbo_ {low!r} lies above the exact evidence {evidence!r}"
    if not evidence <= high + slack:
        return f"the exact evidence {evidence!r} lies above evidence_upper_bound_ {high!r}"
    return None


def predictions_are_as_close_as_the_bound(problem: Problem, run: Run) -> str | None:
    """Evidence less bound is the divergence from the exact posterior, and no marginal can be further away than all."""
    if run.error is not None or problem.n > MOST_EXACT or not run.answers or run.model.samples_ is not None:
        return None
    judge = judged(problem, run)
    if judge is None:
        return None
    hair = _HAIR * judge.prior_variance
    allowed = max(judge.evidence - run.model.elbo_, 0.0) + _ROUNDING * max(1.0, abs(judge.evidence)) + 1e-3
    p, q = np.maximum(judge.variance, 0.0) + hair, run.answers["variance of f"] + hair
    apart = run.answers["f"] - judge.mean
    divergence = 0.5 * (q / p - 1.0 - np.log(q / p) + apart**2 / p)
    worst = int(np.argmax(divergence))
    if divergence[worst] <= allowed:
        return None
    return (
        f"at row {worst} asked about, f is {run.answers['f'][worst]:.9g} ± {q[worst] ** 0.5:.3g} and exactly "
        f"{judge.mean[worst]:.9g} ± {p[worst] ** 0.5:.3g}: {divergence[worst]:.3g} nats apart, {allowed:.3g} allowed"
    )


LAWS = (
    refusals_are_sentences,
    no_stray_warning,
    answers_are_numbers,
    quantiles_are_those_of_a_normal,
    own_rows_lie_within_their_intervals,
    bounds_hold,
    predictions_are_as_close_as_the_bound,
)
