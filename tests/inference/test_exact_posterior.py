"""Few rows are known themselves, and answers are those of the process given them, theory (26.3)."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from vff import Categorical, GPRegressor, Matern32, Matern52, fixed, load

NOISE = 1e-6


def _rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).random((n, 2))
    return X, np.sin(6 * X[:, 0]) * np.cos(3 * X[:, 1])


def _matern52(x: np.ndarray, z: np.ndarray, lengthscale: float) -> np.ndarray:
    r = np.sqrt(5.0) * np.abs(np.subtract.outer(x, z)) / lengthscale
    return (1.0 + r + r**2 / 3.0) * np.exp(-r)


def _model(**options) -> GPRegressor:
    kernel = Matern52(0, variance=2.0, lengthscale=0.5) * Matern52(1, lengthscale=0.8)
    own = {"noise_variance": NOISE, "optimizer": None, "normalize_y": False, "domain": (0.0, 1.0)}
    return GPRegressor(kernel, **{**own, **options})


def _covariance(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return 2.0 * _matern52(X[:, 0], Z[:, 0], 0.5) * _matern52(X[:, 1], Z[:, 1], 0.8)


def _without(model: GPRegressor) -> GPRegressor:
    """The model as if nobody knew its rows: their sums alone, as a database gives them."""
    from dataclasses import replace

    model.statistics_ = replace(model.statistics_, few=None)
    return model.learn()


def _exact(X: np.ndarray, y: np.ndarray, noise: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean, variance and evidence of the process, by dense algebra."""
    total, cross = _covariance(X, X) + np.diag(noise), _covariance(X, Z)
    mean, taken = cross.T @ np.linalg.solve(total, y), np.einsum("nz,nz->z", cross, np.linalg.solve(total, cross))
    return mean, 2.0 - taken, float(multivariate_normal(cov=total).logpdf(y))


def test_answers_and_bound_are_those_of_the_process():
    X, y = _rows(30)
    Z = np.vstack([X[:5], _rows(40, seed=1)[0], [[1.02, 0.5]]])  # beyond the domain, too
    mean, variance, evidence = _exact(X, y, np.full(30, NOISE), Z)
    model = _model().fit(X, y)
    np.testing.assert_allclose(model.predict_f(Z)[0], mean, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(model.predict_f(Z)[1], variance, rtol=1e-7, atol=1e-9)
    assert model.elbo_ == pytest.approx(evidence, abs=1e-5)
    assert _without(_model().fit(X, y)).elbo_ < evidence - 100.0


def test_a_weight_is_a_number_of_rows():
    X, y = _rows(20)
    counts = np.arange(20) % 3 + 1
    Z, _ = _rows(10, seed=1)
    again = np.repeat(np.arange(20), counts)
    weighed, repeated = _model().fit(X, y, sample_weight=counts), _model().fit(X[again], y[again])
    assert weighed.posterior_.exact is not None
    assert repeated.posterior_.exact is not None
    np.testing.assert_allclose(weighed.predict_f(Z), repeated.predict_f(Z), rtol=1e-4, atol=1e-8)
    assert weighed.elbo_ == pytest.approx(repeated.elbo_, abs=1e-4)


def test_error_bars_and_offsets_are_the_rows_own():
    X, y = _rows(25)
    errors, offset = np.linspace(1e-4, 2e-3, 25), np.linspace(-3.0, 5.0, 25)
    Z, _ = _rows(10, seed=1)
    mean, variance, evidence = _exact(X, y, errors**2 + NOISE, Z)
    model = _model(offset=2).fit(np.column_stack([X, offset]), y + offset, noise_std=errors)
    found = model.predict_f(np.column_stack([Z, np.full(10, 7.0)]))
    np.testing.assert_allclose(found[0], mean + 7.0, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found[1], variance, rtol=1e-5, atol=1e-9)
    assert model.elbo_ == pytest.approx(evidence, abs=1e-3)


def test_a_constant_is_integrated():
    """With a prior standard deviation of ten of y's, as in every fit."""
    X, y = _rows(25)
    y = y + 3.0
    Z, _ = _rows(10, seed=1)
    kappa = (10.0 * y.std()) ** 2
    total, cross = _covariance(X, X) + kappa + NOISE * np.eye(25), _covariance(X, Z) + kappa
    centred = y - y.mean()
    model = _model(normalize_y=True).fit(X, y)
    mean = y.mean() + cross.T @ np.linalg.solve(total, centred)
    variance = 2.0 + kappa - np.einsum("nz,nz->z", cross, np.linalg.solve(total, cross))
    np.testing.assert_allclose(model.predict_f(Z)[0], mean, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(model.predict_f(Z)[1], variance, rtol=1e-5, atol=1e-8)
    assert model.elbo_ == pytest.approx(multivariate_normal(cov=total).logpdf(centred), abs=1e-4)


def test_who_asks_for_frequencies_is_answered_with_these():
    X, y = _rows(30)
    assert _model(frequencies=6).fit(X, y).posterior_.training is None


def test_what_is_said_of_the_bound_is_said_of_the_evidence():
    model = _model().fit(*_rows(30))
    assert model.elbo_gap_ == (0.0, 0.0)
    assert model.evidence_upper_bound_ == model.elbo_
    assert not any("nats low" in note for note in model.notes_)


def test_rows_given_twice_are_learnt_from_their_evidence():
    """Their bound would lie low where there is no noise, and a note would say so."""
    X, y = _rows(20)
    kernel, how = Matern52(0) * Matern52(1), {"noise_variance": fixed(1e-8), "domain": (0.0, 1.0)}
    twice = np.append(np.arange(20), 0)
    once, again = GPRegressor(kernel, **how).fit(X, y), GPRegressor(kernel, **how).fit(X[twice], y[twice])
    assert not any("bound" in note for note in again.notes_)
    for found, expected in zip(again.kernel_.factors, once.kernel_.factors, strict=True):
        assert found.lengthscale == pytest.approx(expected.lengthscale, rel=0.05)


def test_a_joint_law_has_the_variances_of_its_rows():
    X, y = _rows(20)
    Z, _ = _rows(15, seed=1)
    model = _model().fit(X, y)
    _, covariance = model.posterior_.joint(Z)
    np.testing.assert_allclose(np.diagonal(covariance), model.posterior_.marginals(Z)[1], rtol=1e-7, atol=1e-11)
    draws = model.sample_y(np.vstack([X[:3], Z]), 400, random_state=0)
    assert np.abs(draws[:3] - y[:3, None]).max() < 0.01


def test_rows_come_by_and_by():
    X, y = _rows(30)
    Z, _ = _rows(10, seed=1)
    at_once, later = _model().fit(X, y), _model()
    for some in (slice(0, 10), slice(10, 11), slice(11, 30)):
        later.partial_fit(X[some], y[some])
    np.testing.assert_allclose(later.predict_f(Z)[1], at_once.predict_f(Z)[1], rtol=1e-5)
    assert later.elbo_ == pytest.approx(at_once.elbo_, rel=1e-6)
    more, targets = _rows(40, seed=2)
    assert later.partial_fit(more, targets).posterior_.training is None  # too many


def test_levels_that_are_renumbered_keep_their_rows():
    X, y = _rows(24)
    levels = np.array(["b", "c", "a"])[np.arange(24) % 3]
    kernel = Matern52("x", variance=1.0, lengthscale=0.4) * Categorical("g")
    how = {"noise_variance": NOISE, "optimizer": None, "domain": {"x": (0.0, 1.0)}}
    frames = [{"x": X[some, 0], "g": levels[some]} for some in (slice(0, 2), slice(2, 24))]
    import pandas as pd

    frames = [pd.DataFrame(frame) for frame in frames]
    at_once = GPRegressor(kernel, **how).fit(pd.concat(frames), y)
    later = GPRegressor(kernel, **how).partial_fit(frames[0], y[:2]).partial_fit(frames[1], y[2:])
    for model in (at_once, later):
        rows = model.posterior_.training
        assert rows is not None
        named = np.array(model.column_levels_[1])[rows.x[:, 1].astype(int)]
        assert sorted(zip(rows.x[:, 0], named, strict=True)) == sorted(zip(X[:, 0], levels, strict=True))
    np.testing.assert_allclose(later.predict_f(frames[1])[1], at_once.predict_f(frames[1])[1], rtol=1e-4, atol=1e-9)


def test_rows_that_are_forgotten_are_taken_out():
    X, y = _rows(30)
    Z, _ = _rows(10, seed=1)
    model = _model().partial_fit(X, y).forget(X[3:8], y[3:8])
    left = np.delete(np.arange(30), slice(3, 8))
    again = _model().fit(X[left], y[left])
    np.testing.assert_allclose(model.predict_f(Z), again.predict_f(Z), rtol=1e-6, atol=1e-9)


def test_many_answers_are_given_in_stretches(monkeypatch):
    import vff.inference.posterior.term as term

    X, y = _rows(20)
    Z, _ = _rows(100, seed=1)
    model = _model().fit(X, y)
    whole = model.predict_f(Z)
    monkeypatch.setattr(term, "_WRITTEN", 140)
    np.testing.assert_allclose(model.predict_f(Z), whole, rtol=1e-12)
    np.testing.assert_allclose(model.predict(Z), whole[0], rtol=1e-12)


def test_files_have_them(tmp_path):
    X, y = _rows(20)
    model = _model().fit(X, y)
    Z, _ = _rows(10, seed=1)
    model.save(tmp_path / "m.vff")
    np.testing.assert_array_equal(load(tmp_path / "m.vff").predict_f(Z)[1], model.predict_f(Z)[1])


def test_files_of_sums_have_no_rows(tmp_path):
    X, y = _rows(20)
    _model().collect(X, y).save(tmp_path / "sums.vff")
    assert load(tmp_path / "sums.vff").statistics_.few is None
    assert load(tmp_path / "sums.vff").learn().posterior_.training is None


@pytest.mark.parametrize("domain", ["auto", (0.0, 1.0)])
def test_a_text_file_and_a_table_have_the_same(tmp_path, domain):
    import pandas as pd

    X, y = _rows(20)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y})
    frame.to_csv(tmp_path / "t.csv", index=False)
    kernel = Matern32("a") * Matern32("b")
    how = {"noise_variance": fixed(NOISE), "domain": domain}
    table = GPRegressor(kernel, **how).fit(frame[["a", "b"]], y)
    file = GPRegressor(kernel, **how).fit(str(tmp_path / "t.csv"), "y")
    np.testing.assert_allclose(file.predict_f(frame[["a", "b"]])[1], table.predict_f(frame[["a", "b"]])[1], rtol=1e-5)
    assert table.predict_f(frame[["a", "b"]])[1].max() < 2.0 * NOISE
    assert file.elbo_ == pytest.approx(table.elbo_, abs=1e-4)
