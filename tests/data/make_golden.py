"""The files of format version 1 that must load for ever, and what their models answered: run once, in 2026.

python tests/data/make_golden.py
"""

from pathlib import Path
from typing import Any

import numpy as np

from vff import Categorical, GPRegressor, Matern32
from vff.estimators.saving import save

FOLDER = Path(__file__).parent


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Two columns, a number and a level, and a target."""
    x = np.linspace(0.0, 1.0, 60)
    level = np.arange(60) % 3
    return np.column_stack([x, level]), np.sin(5.0 * x) + 0.3 * (level == 1) + 0.05 * np.cos(37.0 * np.arange(60))


def questions() -> np.ndarray:
    """Rows to ask about."""
    return np.column_stack([np.linspace(0.05, 0.95, 9), np.arange(9) % 3])


def main() -> None:
    """Write the files."""
    model: Any = GPRegressor(Matern32(0) + Categorical(1), frequencies=4).fit(*rows())
    save(model, FOLDER / "model_1.vff", units={0: "m"}, provenance={"target": "height"})
    np.savetxt(FOLDER / "model_1_answers.csv", np.column_stack(model.predict_f(questions())), "%.17g", ",")
    bare: Any = GPRegressor(Matern32(0) + Categorical(1), frequencies=4)
    bare.rows_, bare.n_features_in_ = model.rows_, model.n_features_in_
    save(bare, FOLDER / "statistics_1.vff")


if __name__ == "__main__":
    main()
