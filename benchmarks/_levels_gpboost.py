"""GPBoost's side of levels.py: ``python _levels_gpboost.py FOLDER`` prints one line of JSON.

It needs GPBoost and what that brings, and not vff, so that it can run in an environment of its own.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from _machine import peak_mib


def main() -> None:
    folder = Path(sys.argv[1])
    X, g, y = (np.load(folder / f"{name}.npy") for name in ("X", "g", "y"))
    started = time.perf_counter()
    import gpboost  # pyright: ignore[reportMissingImports]

    imported, worked = time.perf_counter(), time.process_time()
    model = gpboost.GPModel(group_data=g, likelihood="gaussian")
    model.fit(y=y, X=np.column_stack([np.ones(y.size), X]))
    fitted = time.perf_counter()
    model.predict_training_data_random_effects(predict_var=True)
    done, cpu = time.perf_counter(), time.process_time() - worked
    noise, level = np.ravel(model.get_cov_pars(format_pandas=False))[:2].tolist()
    found = {"import": imported - started, "fit": fitted - imported, "effects": done - fitted, "cpu": cpu}
    found |= {"peak": peak_mib(), "noise": noise, "level": level, "version": f"GPBoost {gpboost.__version__}"}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
