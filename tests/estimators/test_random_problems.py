"""Random small additive problems, made to be awkward: no fit may crash, lose a number or claim to be certain."""

import os
import warnings
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vff import Categorical, ExtrapolationWarning, GPRegressor, Matern12, Matern32, Matern52
from vff.kernels import Sum

EXAMPLES = 1000 if os.environ.get("VFF_THOROUGH") else 60
COLUMNS = ("continuous", "ties", "constant", "collinear", "copy", "integers", "clustered", "levels", "outlier")
TARGETS = ("smooth", "noise", "tiny noise", "no noise", "constant", "outlier", "step")
SCALES = (1e-8, 1e-3, 1.0, 1e3, 1e8)


class Problem(NamedTuple):
    """What a random table is made from; a seed fills it."""

    N: int
    columns: list[str]
    target: str
    x_scale: float
    x_offset: float
    y_scale: float
    y_offset: float
    weights: str
    kernel: str
    seed: int


problems = st.builds(
    Problem,
    N=st.integers(2, 60),
    columns=st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=5),
    target=st.sampled_from(TARGETS),
    x_scale=st.sampled_from(SCALES),
    x_offset=st.sampled_from([0.0, 1.0, -1e3, 1e6]),
    y_scale=st.sampled_from(SCALES),
    y_offset=st.sampled_from([0.0, -1.0, 1e4, 1e8]),
    weights=st.sampled_from(["none", "counts", "wild", "zeros"]),
    kernel=st.sampled_from(["default", "Matern12", "Matern32", "Matern52", "mixed"]),
    seed=st.integers(0, 10**6),
)


def _column(kind: str, N: int, first: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return {
        "continuous": lambda: rng.uniform(-1, 1, N),
        "ties": lambda: rng.choice([-1.0, 0.0, 0.3], N),
        "constant": lambda: np.full(N, 0.7),
        "collinear": lambda: 2.0 * first,
        "copy": lambda: first.copy(),
        "integers": lambda: rng.integers(-3, 12, N).astype(float),
        "clustered": lambda: np.where(rng.random(N) < 0.5, 0.0, 1.0) + 1e-4 * rng.normal(size=N),
        "levels": lambda: rng.integers(0, 4, N).astype(float),
        "outlier": lambda: np.where(np.arange(N) == 0, 1e4, rng.normal(size=N)),
    }[kind]()


def _target(kind: str, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    N, smooth = len(X), np.sin(3 * X[:, 0]) + 0.5 * X[:, -1]
    return {
        "smooth": lambda: smooth + 0.3 * rng.normal(size=N),
        "noise": lambda: rng.normal(size=N),
        "tiny noise": lambda: smooth + 1e-7 * rng.normal(size=N),
        "no noise": lambda: smooth,
        "constant": lambda: np.full(N, 3.0),
        "outlier": lambda: np.where(np.arange(N) == N - 1, 1e6, rng.normal(size=N)),
        "step": lambda: (X[:, 0] > 0.1).astype(float),
    }[kind]()


def _kernel(problem: Problem):
    if problem.kernel == "default":
        return None
    fixed = {"Matern12": [Matern12], "Matern32": [Matern32], "Matern52": [Matern52]}
    kinds = fixed.get(problem.kernel, [Matern52, Matern12, Matern32])
    leaves = [
        Categorical(c) if kind == "levels" else kinds[c % len(kinds)](c) for c, kind in enumerate(problem.columns)
    ]
    return leaves[0] if len(leaves) == 1 else Sum(tuple(leaves))


def _table(problem: Problem):
    rng = np.random.default_rng(problem.seed)
    first = rng.uniform(-1, 1, problem.N)
    X = np.stack([_column(kind, problem.N, first, rng) for kind in problem.columns], axis=1)
    y = _target(problem.target, X, rng)
    shift = problem.x_offset * problem.x_scale  # an offset in units of the scale, which float64 resolves
    w = {
        "none": None,
        "counts": rng.integers(1, 5, problem.N),
        "wild": 10.0 ** rng.uniform(-4, 4, problem.N),
        "zeros": np.concatenate([[1.0, 1.0], rng.integers(0, 2, problem.N - 2)]),
    }[problem.weights]
    return shift + problem.x_scale * X, problem.y_scale * (y + problem.y_offset), w


def _drowns(X: np.ndarray) -> bool:
    """Whether a column varies by less than 1e-9 of its size, which is refused."""
    spread = np.ptp(X, axis=0)
    return bool(np.any((spread > 0.0) & (spread < 1e-9 * np.abs(X).max(axis=0))))


def _sound(model: GPRegressor, X: np.ndarray) -> None:
    """Predictions and effects at rows anywhere are numbers, and never certain."""
    mean, std = model.predict(X, return_std=True)
    latent, variance = model.predict_f(X)
    effects = model.effects(X)
    for values in (mean, std, latent, variance, effects.mean, effects.std, model.predict(X)):
        assert np.all(np.isfinite(values))
    assert np.all(std > 0.0)
    assert np.all(variance >= 0.0)
    assert np.all(effects.std >= 0.0)
    np.testing.assert_allclose(model.predict(X), mean, rtol=1e-9, atol=1e-9 * std.max())


@settings(max_examples=EXAMPLES)
@given(problems)
def test_no_small_additive_problem_breaks_a_fit(problem):
    X, y, w = _table(problem)
    model = GPRegressor(_kernel(problem))
    if _drowns(X[np.broadcast_to(1.0 if w is None else w, len(X)) > 0]):
        with pytest.raises(ValueError, match="float64 barely resolves"):
            model.fit(X, y, sample_weight=w)
        return
    model.fit(X, y, sample_weight=w)
    assert np.isfinite(model.elbo_)
    assert model.elbo_ <= model.evidence_upper_bound_ + 1e-6 * max(1.0, abs(model.elbo_))
    assert model.noise_variance_ > 0.0
    size = np.abs(X).max() + 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        for rows in (X, X + 0.3 * np.ptp(X, axis=0), np.concatenate([X[:3] + 1e3 * size, X[:3] - 1e9 * size]), X[:1]):
            _sound(model, rows)
