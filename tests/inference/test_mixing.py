"""All that a fit answers mixes over draws of the hyperparameters: new, saved, and with more rows."""

import numpy as np
import pytest

from vff import GPRegressor, load

NEW = np.random.default_rng(5).random((40, 2))


def _table(n: int, likelihood: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    X = rng.random((n, 2))
    f = np.sin(5.0 * X[:, 0]) + X[:, 1]
    return X, (rng.poisson(np.exp(f)).astype(float) if likelihood == "poisson" else f + 0.4 * rng.standard_normal(n))


def _fitted(likelihood: str, **more) -> GPRegressor:
    return GPRegressor(likelihood=likelihood, domain=(0.0, 1.0), frequencies=8, **more).fit(*_table(60, likelihood))


@pytest.fixture(scope="module", params=["gaussian", "poisson"])
def pair(request) -> tuple[GPRegressor, GPRegressor]:
    """By default, and with the best hyperparameters taken for known."""
    return _fitted(request.param), _fitted(request.param, hyperparameters="maximise")


def test_moments_are_those_of_the_draws(pair):
    model, _ = pair
    assert model.samples_ is not None
    mean, variance = model.predict_f(NEW)
    drawn, rest = model.posterior_.values(NEW)
    centre, scale = model.target_.mean, model.target_.scale
    # draws lie about the mean of their setting, so that few of them have that of all
    np.testing.assert_allclose(centre + scale * drawn.mean(axis=1), mean, atol=0.02 * np.sqrt(variance.max()))
    spread = scale * np.sqrt(drawn.var(axis=1) + rest)
    assert np.mean(np.log(spread / np.sqrt(variance))) == pytest.approx(0.0, abs=0.15)


def test_everything_is_wider_than_at_the_best(pair):
    model, best = pair
    assert best.samples_ is None
    assert np.mean(model.predict_f(NEW)[1]) > np.mean(best.predict_f(NEW)[1])
    ends = (0.025, 0.975)
    ours, theirs = (np.diff(own.predict_quantiles(NEW, ends), axis=1).mean() for own in pair)
    # counts are whole numbers, and noise is all but known: what is wider may be little
    assert ours > 0.98 * theirs
    ours, theirs = (own.effects(NEW) for own in pair)
    assert np.sum(ours.std) > np.sum(theirs.std)
    shares = np.array([[term.variance_share for term in own.fit_.terms] for own in pair])
    assert np.all(shares[0] != shares[1])
    np.testing.assert_allclose(shares[0], shares[1], atol=0.15)


def test_new_observations_come_from_all_settings(pair):
    """Draws of y have the quantiles that are predicted, and the noise of their own setting."""
    model, _ = pair
    draws = model.sample_y(NEW, 4000, random_state=0)
    levels = (0.1, 0.5, 0.9)
    expected = model.predict_quantiles(NEW, levels)
    below = np.mean(draws[:, :, None] <= expected[:, None, :], axis=1)
    least = np.mean(draws[:, :, None] < expected[:, None, :], axis=1)
    for number, level in enumerate(levels):
        assert np.mean(below[:, number]) > level - 0.03
        assert np.mean(least[:, number]) < level + 0.03


def test_a_saved_model_and_one_of_more_rows_mix_too(pair, tmp_path):
    model, _ = pair
    model.save(tmp_path / "m.vff")
    again = load(tmp_path / "m.vff")
    np.testing.assert_allclose(again.predict_f(NEW), model.predict_f(NEW), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        again.predict_quantiles(NEW, (0.1, 0.9)), model.predict_quantiles(NEW, (0.1, 0.9)), rtol=1e-8, atol=1e-10
    )
    np.testing.assert_array_equal(again.sample_y(NEW, 5, random_state=1), model.sample_y(NEW, 5, random_state=1))
    likelihood = "gaussian" if model.fit_.from_sums else "poisson"
    X, y = _table(90, likelihood)
    more = GPRegressor(likelihood=likelihood, domain=(0.0, 1.0), frequencies=8)
    more.partial_fit(X[:60], y[:60])
    assert more.samples_ is not None
    before = more.predict_f(NEW)[1].mean()
    more.partial_fit(X[60:], y[60:])
    assert more.samples_ is not None
    assert more.predict_f(NEW)[1].mean() < before


def test_what_is_said_of_few_rows():
    """That their intervals are too narrow, where they are; and draws that no chain links have no R-hat."""
    X, y = _table(12, "gaussian")
    model, best = GPRegressor().fit(X, y), GPRegressor(hyperparameters="maximise").fit(X, y)
    assert not any("too narrow" in note for note in model.notes_)
    assert any("12 rows hardly determine hyperparameters" in note for note in best.notes_)
    assert "nan" not in str(model.samples_)
    assert "R-hat" not in str(model.samples_)
