"""vff's side of chains.py: ``python _chains_vff.py FOLDER PROBLEM SAMPLER`` prints one line of JSON."""

import json
import sys
import time
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from _chains_problems import PROBLEMS, Clock, Problem, told


def fit(problem: Problem, X: np.ndarray, y: np.ndarray, sampler: str = "nuts") -> Any:
    from vff import GPRegressor, Matern32, priors

    given = {name: getattr(priors, law)(*numbers) for name, (law, *numbers) in problem.priors.items()}
    kernel = prod((Matern32(d) for d in range(1, problem.columns)), start=Matern32(0))
    model = GPRegressor(
        kernel,
        likelihood="poisson",
        frequencies=problem.frequencies,
        domain=problem.domain,
        edges=problem.edges,
        inference="mcmc",
        sampler=sampler,
        draws=problem.draws,
        warmup=problem.warmup,
        chains=problem.chains,
        priors=given,
        random_state=problem.seed,
    )
    return model.fit(X, y)


def main() -> None:
    folder, problem, sampler = Path(sys.argv[1]), PROBLEMS[sys.argv[2]], sys.argv[3]
    if len(sys.argv) > 4:
        problem = problem.shortened(int(sys.argv[4]))
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    clock = Clock.running()
    fit(replace(problem, draws=10, warmup=150), X, y, sampler)  # compiles all that the next one needs
    compiling, started = clock.seconds, time.perf_counter()
    model = fit(problem, X, y, sampler)
    whole, samples = time.perf_counter() - started + compiling, model.samples_
    assert samples is not None
    left = clock.seconds - compiling
    found = told(samples.values, samples.stats["n_steps"], samples.divergences, samples.seconds - left, whole)
    print(json.dumps(found | {"preparing": whole - compiling - samples.seconds}))


if __name__ == "__main__":
    main()
