"""A process that is killed takes nothing with it: the last one ends with the bits of a run that nobody disturbed."""

import importlib.util
import os
import signal
import sys
from pathlib import Path

import pytest

KILLS = Path(__file__).parents[2] / "benchmarks" / "kills.py"


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes are killed in another way here")
def test_killed_and_started_again(tmp_path, monkeypatch) -> None:
    spec = importlib.util.spec_from_file_location("kills", KILLS)
    assert spec is not None
    assert spec.loader is not None
    kills = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "kills", kills)
    spec.loader.exec_module(kills)
    (tmp_path / "data").mkdir()
    kills.write_table(tmp_path / "data", 100_000, 3, "parquet")
    more = ["--interval", "0.02", "--chunk-rows", "10000"]
    undisturbed = kills.run_child(tmp_path, more)
    hits, ended = kills.torment(tmp_path, 2, undisturbed, more, reach=0.3)
    assert hits == 2
    assert undisturbed.digest is not None
    assert {run.digest for run in ended} == {undisturbed.digest}
    assert sorted(os.listdir(tmp_path)) == ["begun", "data"]
