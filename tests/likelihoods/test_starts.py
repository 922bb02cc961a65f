"""Starting values, and parameters at the ends of their ranges."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from likelihood_makers import MAKERS, rows

from vff.likelihoods import AbstractLikelihood, StudentT

HELD = {"student": {"scale": None, "df": None}, "gamma": {"shape": None}, "beta": {"precision": None}}
HELD |= {"gaussian": {"variance": None}, "negative": {"dispersion": None}, "poisson": {}, "ordinal": {"cuts": None}}


def asked(likelihood: AbstractLikelihood, y: np.ndarray, extra: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.array([*likelihood.start(y, extra, w), *likelihood.location(y, extra, w)])


@pytest.mark.parametrize("name", HELD)
def test_a_row_of_weight_two_starts_as_two_rows(name):
    own: Any = MAKERS[name].likelihood
    likelihood = replace(own, **HELD[name])
    y, _, extra = rows(name, 39)
    twice = (np.concatenate([part, part]) for part in (y, extra, np.ones(39)))
    np.testing.assert_allclose(asked(likelihood, y, extra, np.full(39, 2.0)), asked(likelihood, *twice), rtol=1e-12)


def test_learnt_degrees_of_freedom_stay_above_two():
    learnt = StudentT().with_values(np.array([0.0, -60.0]))
    assert learnt.values["df"] > 2.0
    assert np.isfinite(learnt.conditional_variance(np.zeros(1), np.ones(1))).all()
    assert np.isfinite(learnt.psi).all()
