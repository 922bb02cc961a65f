"""``--noise-std`` and ``--offset``: columns that are known of every row, where it is predicted, too."""

import numpy as np
import pandas as pd
import pytest

from vff import GPRegressor, Matern32, load
from vff.cli import main
from vff.cli.info import _part


@pytest.fixture
def rows(tmp_path, monkeypatch) -> pd.DataFrame:
    """Numbers with error bars and an offset, and counts, in a file of the working folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.uniform(0.0, 6.0, 150), "o": rng.normal(size=150)})
    frame["err"] = np.exp(rng.normal(-2.0, 0.7, 150))
    f = np.sin(frame["x"]) + frame["o"]
    frame["y"] = f + np.sqrt(frame["err"] ** 2 + 0.01) * rng.standard_normal(150)
    frame["count"] = rng.poisson(np.exp(f))
    frame.to_csv("rows.csv", index=False)
    frame[["x", "o"]].to_csv("without.csv", index=False)
    return frame


MODEL = ["--terms", "x", "--domain", "x=0:6", "--frequencies", "8", "--quiet"]
FIT = ["rows.csv", "--target", "y", "--noise-std", "err", "--offset", "o", *MODEL]


def test_fit_predict_update_and_merge(rows, capsys):
    assert main(["fit", *FIT, "--out", "model.vff"]) == 0
    said = capsys.readouterr().out
    assert "Gaussian likelihood: noise of sd " in said
    assert " beside the error bars\n" in said
    expected = GPRegressor(Matern32("x"), noise_std="err", offset="o", domain={"x": (0, 6)}, frequencies=8).fit(
        rows, "y"
    )
    found = load("model.vff")
    assert (found.noise_std, found.offset) == ("err", "o")
    assert found.elbo_ == pytest.approx(expected.elbo_, abs=1e-6)
    assert main(["predict", "model.vff", "rows.csv", "--out", "new.csv", "--quiet"]) == 0
    mean, std = expected.predict(rows, return_std=True)
    np.testing.assert_allclose(pd.read_csv("new.csv")["mean"], mean, rtol=1e-6)
    np.testing.assert_allclose(pd.read_csv("new.csv")["sd"], std, rtol=1e-6)
    assert main(["moments", *FIT, "--out", "sums.vffm"]) == 0
    assert main(["fit", "sums.vffm", "--out", "again.vff", "--quiet"]) == 0
    assert load("again.vff").elbo_ == pytest.approx(expected.elbo_, abs=1e-6)
    assert main(["update", "model.vff", "rows.csv", "--out", "twice.vff", "--quiet"]) == 0
    assert load("twice.vff").statistics_.n == 300


def test_counts_with_an_offset(rows):
    words = ["rows.csv", "--target", "count", "--likelihood", "poisson", "--offset", "o", *MODEL]
    assert main(["fit", *words, "--out", "counts.vff"]) == 0
    model = GPRegressor(Matern32("x"), likelihood="poisson", offset="o", domain={"x": (0, 6)}, frequencies=8)
    np.testing.assert_allclose(load("counts.vff").predict(rows), model.fit(rows, "count").predict(rows), rtol=1e-6)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fit", *FIT[:5], "--offset", "q", *MODEL, "--out", "m.vff"], "--offset was expected to be a column"),
        (["fit", *FIT[:3], "--noise-std", "q", *MODEL, "--out", "m.vff"], "--noise-std was expected to be a column"),
        (["fit", *FIT, "--likelihood", "student-t", "--out", "m.vff"], "for likelihood='gaussian'"),
        (["fit", *FIT, "--classify", "--out", "m.vff"], "--noise-std is for numbers"),
    ],
)
def test_refusals(rows, capsys, words, said):
    assert main(words) != 0
    assert said in capsys.readouterr().err


def test_what_is_known_is_needed_where_it_is_predicted(rows, capsys):
    assert main(["fit", *FIT, "--out", "model.vff"]) == 0
    assert main(["predict", "model.vff", "without.csv", "--out", "new.csv", "--quiet"]) != 0
    assert "the noise-std of the model was expected to be a column of the data, found 'err'" in capsys.readouterr().err
    rows[["x", "err"]].to_csv("without.csv", index=False)
    assert main(["predict", "model.vff", "without.csv", "--out", "new.csv", "--quiet"]) != 0
    assert "the offset of the model was expected to be a column of the data, found 'o'" in capsys.readouterr().err


def test_a_bad_cell_is_found_in_its_row(rows, capsys):
    cells = rows["x"].astype(str).where(rows.index != 3, "big")
    rows.assign(x=cells).to_csv("bad.csv", index=False)
    assert main(["fit", "bad.csv", "--target", "y", "--terms", "s(x)", "--out", "model.vff"]) != 0
    assert "'big' in row 5 (the header is row 1)" in capsys.readouterr().err


def test_next_to_nothing_is_nothing():
    assert (_part(5.12e-13), _part(-1e-9), _part(0.123456), _part(None)) == ("0 %", "0 %", "12.3 %", "-")
