"""vff's side of additive.py, in a process of its own: ``python _additive_vff.py FOLDER`` prints one line of JSON.

FOLDER holds X.npy and y.npy to fit; if there are X_test.npy and y_test.npy it is scored on them, and if there is
X_new.npy prediction there is timed.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from _machine import peak_mib


def phases(model: Any) -> dict[str, float]:
    """Where a fit's time went: the one pass over the rows, and learning, which does not see them."""
    return {
        "pass_seconds": model.timing_["pass"],
        "learn_seconds": model.timing_["learn"],
        "evaluations": sum(milestone.optimum.evaluations for milestone in model.fit_.history),
    }


def fit(X: np.ndarray, y: np.ndarray) -> tuple[Any, dict[str, float]]:
    """A fit with everything that a first fit in a process brings: the import, and what the library loads when used."""
    before, started, worked = peak_mib(), time.perf_counter(), time.process_time()
    from vff import GPRegressor

    imported, loaded = time.perf_counter(), peak_mib()
    model = GPRegressor(kernel=None).fit(X, y)
    fitted, cpu = time.perf_counter(), time.process_time() - worked
    seconds = {"import": imported - started, "fit": fitted - imported, "cold": fitted - started, "cpu": cpu}
    memory = {"extra_mib": peak_mib() - loaded, "import_mib": loaded - before}
    return model, seconds | memory | phases(model)


def score(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    started = time.perf_counter()
    mse = float(np.mean((model.predict(X) - y) ** 2))
    nlpd = -float(np.mean(model.log_predictive_density(X, y)))
    return {"mse": mse, "nlpd": nlpd, "score_seconds": time.perf_counter() - started}


def time_prediction(model: Any, X: np.ndarray, repeats: int = 3) -> dict[str, float]:
    """The first prediction, which may have to set things up, and the best of a few: the machine is shared."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        model.predict(X, return_std=True)
        times.append(time.perf_counter() - started)
    return {"predict_first": times[0], "predict_best": min(times)}


def main() -> None:
    folder = Path(sys.argv[1])
    model, found = fit(np.load(folder / "X.npy"), np.load(folder / "y.npy"))
    if (folder / "X_test.npy").exists():
        found |= score(model, np.load(folder / "X_test.npy"), np.load(folder / "y_test.npy"))
    if (folder / "X_new.npy").exists():
        found |= time_prediction(model, np.load(folder / "X_new.npy"))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
