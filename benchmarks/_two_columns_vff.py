"""vff's side of two_columns.py, in a process of its own: ``python _two_columns_vff.py FOLDER`` prints JSON."""

import json
import sys
import time
from pathlib import Path

from _two_columns_race import load, mean_nlpd


def main() -> None:
    X, y, X_test, y_test = load(Path(sys.argv[1]))
    started = time.perf_counter()
    from vff import GPRegressor, Matern32

    imported = time.perf_counter()
    model = GPRegressor(Matern32(0) * Matern32(1)).fit(X, y)
    fitted = time.perf_counter()
    mean, std = model.predict(X_test, return_std=True)
    (M,), (q,) = model.frequencies_.values(), model.edges_.values()
    found = {"import": imported - started, "fit": fitted - imported, "nlpd": mean_nlpd(mean, std**2, y_test)}
    sizes = {"M": list(M), "P": (2 * M[0] + 1 + q[0]) * (2 * M[1] + 1 + q[1])}
    print(json.dumps(found | sizes | {"timing": model.timing_, "noise": model.noise_variance_}))


if __name__ == "__main__":
    main()
