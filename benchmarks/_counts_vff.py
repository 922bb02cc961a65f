"""vff's side of counts.py: ``python _counts_vff.py FOLDER`` prints one line of JSON."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = tuple(f"x{d}" for d in range(4))


def frame(folder: Path, suffix: str = "") -> tuple[Any, np.ndarray]:
    import pandas as pd

    X = pd.DataFrame(np.load(folder / f"X{suffix}.npy"), columns=COLUMNS)
    X["region"] = np.load(folder / f"region{suffix}.npy")
    return X, np.load(folder / f"y{suffix}.npy")


def model() -> Any:
    from vff import Categorical, GPRegressor, Matern32

    kernel = Categorical("region")
    for column in COLUMNS:
        kernel = kernel + Matern32(column)
    return GPRegressor(kernel, likelihood="negative-binomial")


def main() -> None:
    folder = Path(sys.argv[1])
    X, y = frame(folder)
    started = time.perf_counter()
    from vff import GPRegressor  # noqa: F401

    found: dict[str, Any] = {"import": time.perf_counter() - started}
    for name in ("", "warm_"):  # the first fit of a process compiles
        began, worked = time.perf_counter(), time.process_time()
        fitted = model().fit(X, y)
        found[f"{name}fit"] = time.perf_counter() - began
        found[f"{name}cpu"] = time.process_time() - worked
    X_test, y_test = frame(folder, "_test")
    mean, _ = fitted.predict_f(X_test)
    likelihood = fitted.likelihood_
    at_mean = likelihood.expected(likelihood.psi, y_test, np.ones(len(y_test)), mean, np.zeros(len(y_test)))
    found |= {"log_score": -float(np.mean(at_mean.value)), "dispersion": likelihood.dispersion}
    found |= {"looks": fitted.fit_.visits, "coefficients": fitted.posterior_.request.size}
    found |= {"doubt": fitted.fit_.doubt, "method": fitted.fit_.method, "elbo": fitted.fit_.elbo}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
