"""vff's side of late_flights.py, in a process of its own: ``python _late_vff.py FOLDER`` prints one line of JSON."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def log_loss(p: np.ndarray, y: np.ndarray) -> float:
    return -float(np.mean(np.where(y > 0.5, np.log(p), np.log1p(-p))))


def features(model: Any) -> int:
    """P, of all terms together."""
    return model.posterior_.request.size


def main() -> None:
    folder = Path(sys.argv[1])
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    started, worked = time.perf_counter(), time.process_time()
    from vff import GPClassifier

    imported = time.perf_counter()
    model = GPClassifier().fit(X, y)
    fitted, cpu = time.perf_counter(), time.process_time() - worked
    X_test, y_test = np.load(folder / "X_test.npy"), np.load(folder / "y_test.npy")
    p = model.predict_proba(X_test)[:, 1]
    scored = time.perf_counter() - fitted
    found = {"import": imported - started, "fit": fitted - imported, "cpu": cpu, "score_seconds": scored}
    found |= {"log_loss": log_loss(p, y_test), "looks": model.fit_.visits, "coefficients": features(model)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
