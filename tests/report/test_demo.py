"""The demo, on flights made up so that it takes no time."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from vff.datasets import FLIGHT_COLUMNS, Dataset

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402

_DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", _DEMO)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def flights(n: int = 900) -> Dataset:
    rng = np.random.default_rng(0)
    highest = {"month": 12, "day": 31, "weekday": 7, "dep_time": 1440, "arr_time": 1440, "air_time": 600}
    X = np.column_stack([rng.integers(1, highest.get(name, 50), size=n, endpoint=True) for name in FLIGHT_COLUMNS])
    X = X.astype(float)
    y = 10.0 * np.sin(X[:, 3] / 200.0) + 0.05 * X[:, 5] + rng.standard_normal(n)
    return Dataset(X, y, tuple(FLIGHT_COLUMNS.values()), "delay (minutes)", "made up", "nobody", "none", 7)


def test_the_demo_prints_its_tables_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module, picture = demo(), tmp_path / "out" / "demo.png"
    monkeypatch.setattr(module, "load_flights_nyc", flights)
    monkeypatch.setattr(module, "PICTURE", picture)
    module.main()
    printed = capsys.readouterr().out
    expected = [
        "900 flights; 7 left out",
        "MSE, standardised",
        "NLPD",
        "survey",
        "Engine",
        "M grew in",
        *module.LABELS.values(),
    ]
    assert [text for text in expected if text not in printed] == []
    shares = [float(line.split()[-1]) for line in printed.split("% of variance")[1].splitlines()[2:10]]
    total = float(printed.split("All together explain ")[1].split()[0])
    assert sum(shares) == pytest.approx(total, abs=0.05)
    assert 50.0 < total < 100.0
    assert picture.stat().st_size > 10_000
    assert len(pyplot.gcf().axes) == 8
    pyplot.close("all")


def test_the_columns_of_the_demo_say_what_the_data_set_says() -> None:
    """A flight that took as long as usual is zero beyond it, whatever midnight and time zones do to the clock."""
    rows = {
        "distance": [500.0] * 3 + [2475.0],
        "dep_time": [600.0, 1400.0, 700.0, 480.0],
        "air_time": [80.0] * 3 + [330.0],
    }
    clock = [110.0, 110.0, 130.0, 330.0 + 35.0 - 180.0]
    X = pd.DataFrame(rows)
    X["arr_time"] = (X["dep_time"] + clock) % 1440
    found = demo().readable(X.assign(month=1, day=1, weekday=1, plane_age=3))
    assert found["ground"].tolist() == [0.0, 0.0, 20.0, 0.0]
    assert found["air"].tolist() == [0.0] * 4
