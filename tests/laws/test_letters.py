"""What letters say of themselves is true: how many there are, how high they reach, how many meet at a point."""

import numpy as np
from tests.makers.bases import Case, cases

from vff.basis import EdgeLetters


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", cases(), ids=lambda case: f"{case.basis!r:.40}")


def test_letters_are_as_many_as_they_say_and_can_be_keys(case: Case):
    for letters in (case.basis.single, case.basis.double):
        assert letters.evaluate(case.units(7)).shape == (7, letters.size)
        assert letters.evaluate(case.units(7)[:0]).shape == (0, letters.size)
        assert hash(letters) == hash(letters)


def test_local_letters_are_zero_but_for_so_many(case: Case):
    for letters in (case.basis.single, case.basis.double):
        met = np.count_nonzero(letters.evaluate(case.units(200)), axis=1)
        assert met.max() <= (letters.size if letters.local is None else letters.local)


def test_trigonometric_letters_reach_no_higher_than_their_band(case: Case):
    """Beside powers of t, which belong to their multipliers, nothing of them is above the band."""
    for letters in (case.basis.single, case.basis.double):
        own = letters.trigonometric
        assert (own is None) == (letters.band is None)
        if own is None or letters.band is None:
            continue
        n = 4 * (letters.band + 2)
        t = -1.0 + 2.0 * np.arange(n) / n
        M, q = own.multipliers
        waves = np.pi * np.multiply.outer(t + 1.0, np.arange(1, M + 1))
        inner = np.concatenate([np.ones((n, 1)), np.cos(waves), np.sin(waves)], axis=1)
        values = letters.evaluate(t)
        for block, place in own.slices:
            polynomials, harmonics = own.polynomials(t), own.harmonics() @ inner.T
            whole = block.multiplier(polynomials - harmonics) * np.ones(n)
            np.testing.assert_allclose(values[:, place.start], whole, atol=1e-13)  # the block begins with cos 0
            trigonometric = block.multiplier(-harmonics) if q and block.edges else 1.0
            waves_of = values[:, place] if not block.edges else _waves(t, block.K) * np.reshape(trigonometric, (-1, 1))
            spectrum = np.abs(np.fft.rfft(waves_of, axis=0)) / n
            assert spectrum[letters.band + 1 :].max() < 1e-13


def _waves(t: np.ndarray, K: int) -> np.ndarray:
    angle = np.pi * np.multiply.outer(t + 1.0, np.arange(K + 1))
    return np.concatenate([np.cos(angle), np.sin(angle[:, 1:])], axis=1)


def test_letters_without_edges_are_harmonics(case: Case):
    own = case.basis.single.trigonometric
    if own is None:
        return
    M, _ = own.multipliers
    plain = EdgeLetters(M, 0, own.blocks[:1])
    t = case.units(9)
    np.testing.assert_allclose(plain.evaluate(t), _waves(t, M), atol=1e-14)
