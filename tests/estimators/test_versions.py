"""Files of earlier formats: their models answer what they answered when they were written."""

import runpy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vff import load
from vff.storage import read_file

DATA = Path(__file__).parents[1] / "data"
MADE = runpy.run_path(str(DATA / "make_versions.py"))


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("name", MADE["MAKERS"])
def test_files_of_earlier_versions_load_for_ever(name, version):
    path = DATA / f"{name}_{version}.vff"
    assert read_file(path, ["model"]).version == version
    model: Any = load(path)
    expected = np.loadtxt(DATA / f"{name}_{version}_answers.csv", delimiter=",")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one of the rows lies outside
        found = MADE["answers"](model)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_rows_are_added_to_a_model_of_version_2_as_they_were(tmp_path):
    model: Any = load(DATA / "natural_2.vff")
    X, y = MADE["counts"]()
    again = model.partial_fit(X[::2], y[::2])
    assert again.rows_.n == 90
    again.save(tmp_path / "model.vff")
    np.testing.assert_array_equal(load(tmp_path / "model.vff").predict(X), again.predict(X))


@pytest.mark.parametrize("name", ["collapsed", "natural"])
def test_shares_of_earlier_versions_are_taken_again_from_the_sums(name):
    """They were variances of effects, which do not add up."""
    before: Any = load(DATA / f"{name}_4.vff")
    now = MADE["MAKERS"][name]()
    found, expected = ([term.variance_share for term in one.fit_.terms] for one in (before, now))
    np.testing.assert_allclose(found, expected, atol=1e-8)
    assert [term.concurvity for term in before.fit_.terms] == [None, None]
