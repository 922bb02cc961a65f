"""Indicators of levels: one where the level is, zero elsewhere, and nothing for a level never seen."""

import numpy as np

from vff.basis import Codes, LevelBasis

CODES = np.array([2.0, 0.0, -1.0, 1.0, 2.0])
BASIS = LevelBasis(("red", "green", "blue"))


def test_features_are_indicators():
    phi = BASIS.evaluate(CODES)
    assert phi.shape == (5, BASIS.size)
    for row, code in zip(phi, CODES, strict=True):
        assert [float(level == code) for level in range(3)] == row.tolist()


def test_a_level_never_seen_is_nowhere():
    np.testing.assert_array_equal(Codes().contains(Codes().to_unit(CODES)), CODES >= 0.0)
    assert not BASIS.evaluate(np.array([-1.0])).any()
