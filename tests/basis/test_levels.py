"""Indicators of levels: one where the level is, zero elsewhere, and nothing for a level never seen."""

import numpy as np
import pytest

from vff.basis import Codes, LevelBasis
from vff.linalg import DenseView

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


def test_double_letters_span_all_products_of_features():
    phi, psi = BASIS.single.evaluate(CODES), BASIS.double.evaluate(CODES)
    for row, letters in zip(phi, psi, strict=True):
        np.testing.assert_array_equal(BASIS.pairs(letters), np.outer(row, row))


def test_gram_adjoint(rng):
    S, letters = rng.normal(size=(3, 3)), rng.normal(size=3)
    assert np.sum(BASIS.pairs(letters) * S) == pytest.approx(letters @ BASIS.see(DenseView(S)))
