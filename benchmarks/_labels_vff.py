"""vff's side of labels.py: ``python _labels_vff.py FOLDER`` prints one line of JSON."""

import json
import sys
import time
from pathlib import Path

import numpy as np
from _late_vff import features, log_loss


def main() -> None:
    folder = Path(sys.argv[1])
    X, y, X_test, y_test = (np.load(folder / f"{name}.npy") for name in ("X", "y", "X_test", "y_test"))
    started = time.perf_counter()
    from vff import GPClassifier

    found = {"import": time.perf_counter() - started}
    for name in ("", "warm_"):  # the first fit of a process compiles
        began, worked = time.perf_counter(), time.process_time()
        model = GPClassifier().fit(X, y)
        found[f"{name}fit"] = time.perf_counter() - began
        found[f"{name}cpu"] = time.process_time() - worked
    p = model.predict_proba(X_test)[:, 1]
    found |= {"log_loss": log_loss(p, y_test), "looks": model.fit_.visits, "coefficients": features(model)}
    found |= {"doubt": model.fit_.doubt, "method": model.fit_.method, "elbo": model.fit_.elbo}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
