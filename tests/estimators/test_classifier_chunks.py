"""Rows of a classifier that come in chunks: each is added to those before, or none is."""

import numpy as np
import pandas as pd
import pytest

import vff
from vff import Categorical, GPClassifier, Matern32
from vff.cli import main

N = 600
CLASSES = ["no", "yes"]


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    found = pd.DataFrame({"t": rng.uniform(0.0, 10.0, N), "g": rng.choice(list("abc"), N), "unused": "text"})
    f = 2.0 * np.sin(found.t) + (found.g == "a")
    return found.assign(hit=np.where(rng.uniform(size=N) < 1.0 / (1.0 + np.exp(-f)), "yes", "no"))


def made() -> GPClassifier:
    return GPClassifier(Matern32("t") + Categorical("g"), domain={"t": (0.0, 10.0)}, frequencies=6)


def test_chunks_of_a_file_are_added_one_after_another(rows, tmp_path):
    rows.to_csv(tmp_path / "rows.csv", index=False)
    model = made().partial_fit(vff.scan(tmp_path / "rows.csv", chunk_rows=200), "hit", classes=CLASSES)
    by_hand = made()
    for start in range(0, N, 200):
        some = rows[start : start + 200]
        by_hand.partial_fit(some[["t", "g"]], some.hit, classes=CLASSES)
    assert model.statistics_.n == N
    assert model.predict_proba(rows) == pytest.approx(by_hand.predict_proba(rows), abs=1e-12)


def test_a_chunk_that_cannot_be_used_leaves_the_model_as_it_was(rows, tmp_path):
    model = made().partial_fit(rows[["t", "g"]], rows.hit, classes=CLASSES)
    before = model.predict_proba(rows)
    rows.assign(t=rows.t.where(rows.index < 500, 99.0)).to_csv(tmp_path / "far.csv", index=False)
    with pytest.raises(ValueError, match="beyond the domain"):
        model.partial_fit(vff.scan(tmp_path / "far.csv", chunk_rows=100), "hit")
    assert model.statistics_.n == N
    assert np.array_equal(model.predict_proba(rows), before)


def test_a_classifier_is_updated_on_the_command_line(rows, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows[:400].to_csv("first.csv", index=False)
    rows[400:].to_csv("more.csv", index=False)
    words = ["fit", "first.csv", "--target", "hit", "--classify", "--terms", "t + g", "--domain", "t=-1:11"]
    assert main([*words, "--out", "model.vff", "--quiet"]) == 0
    assert main(["update", "model.vff", "more.csv", "--out", "updated.vff", "--quiet"]) == 0
    assert vff.load("updated.vff").statistics_.n == N
