"""vff's side of levels.py: ``python _levels_vff.py FOLDER smooth|linear|stream|crossed`` prints one line of JSON."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from _machine import peak_mib

COLUMNS = tuple(f"x{d}" for d in range(4))


def level_variances(model: Any) -> list[float]:
    """Those of the terms over levels."""
    terms = getattr(model.kernel_, "terms", (model.kernel_,))
    return [term.variance for term in terms if type(term).__name__ == "Categorical"]


def spread(folder: Path, found: Any) -> float:
    """Deviation of the errors of all levels' effects over their stated one; it should be near one."""
    ids, truth = np.load(folder / "ids.npy"), np.load(folder / "effects.npy")
    named = {name: place for place, name in enumerate(found.names)}
    chosen = [named.get(f"g[{n}]", named.get(f"g[c{n:010d}]")) for n in ids]
    return float(np.std((found.mean[chosen] - truth) / found.std[chosen]))


def frame(folder: Path, part: str) -> tuple[Any, np.ndarray]:
    import pandas as pd

    if part == "crossed":
        return pd.DataFrame({name: np.load(folder / f"{name}.npy") for name in ("g", "item")}), np.load(
            folder / "y.npy"
        )
    X = pd.DataFrame(np.load(folder / "X.npy"), columns=COLUMNS)
    X["g"] = np.load(folder / "g.npy")
    return X, np.load(folder / "y.npy")


def main() -> None:
    folder, part = Path(sys.argv[1]), sys.argv[2]
    rows = (folder / "rows.parquet", "y") if part == "stream" else frame(folder, part)
    started = time.perf_counter()
    from vff import Categorical, GPRegressor, Linear, Matern32

    imported, worked = time.perf_counter(), time.process_time()
    kernel = Categorical("g")
    if part == "crossed":
        kernel = kernel + Categorical("item")
    for column in COLUMNS if part in ("smooth", "linear") else ():
        kernel = kernel + (Linear(column) if part == "linear" else Matern32(column))
    model = GPRegressor(kernel).fit(*rows)
    fitted = time.perf_counter()
    effects = model.coefficients()
    done, cpu = time.perf_counter(), time.process_time() - worked
    found = {"import": imported - started, "fit": fitted - imported, "effects": done - fitted, "cpu": cpu}
    found |= {"peak": peak_mib(), "noise": model.noise_variance_}
    found |= dict(zip(("level", "item"), level_variances(model), strict=False)) | {"error": model.elbo_error_}
    found |= {"z": spread(folder, effects), "solver": model.solver_, "timing": model.timing_}
    found |= {"evaluations": sum(milestone.optimum.evaluations for milestone in model.fit_.history)}
    found |= {"harmonics": sum(term.M for term in model.fit_.terms if isinstance(term.M, int))}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
