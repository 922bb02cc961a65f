"""The estimator as its users meet it: numbers, contract, calibration."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from vff import ExtrapolationWarning, GPRegressor, Matern12, Matern32, Matern52
from vff.kernels import HalfInteger

KERNELS = (Matern12, Matern32, Matern52)


def _wave(N: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(2.0, 7.0, N)
    return x[:, None], 40.0 + 3.0 * np.sin(2 * x) + 0.5 * rng.normal(size=N)


def _exact(kernel, noise, x, y, new):
    K = kernel(x, x) + noise * np.eye(x.size)
    cross = kernel(new, x)
    solved = np.linalg.solve(K, cross.T)
    evidence = multivariate_normal(np.zeros(x.size), K).logpdf(y)
    return evidence, solved.T @ y, kernel(new, new) - cross @ solved


def _paper_features(p: int, M: int, a: float, b: float, lengthscale: float, x: np.ndarray):
    """K_uu (unit variance) and phi straight from the paper: cosines and sines on [a, b], L/2/S and the edge's state."""
    L, m = b - a, np.arange(M + 1)
    omega = 2 * np.pi * m / L
    kernel = HalfInteger.from_lengthscale(p, lengthscale)
    frequency = np.concatenate([omega, omega[1:]])
    d = L / 2 / kernel.spectral_density(frequency)
    d[0] *= 2
    Z = np.zeros((2 * M + 1, p + 1))
    for j in range(p + 1):
        wave = np.real((1j * omega) ** j) if j % 2 == 0 else np.imag((1j * omega) ** j)
        Z[: M + 1, j] = wave if j % 2 == 0 else 0.0
        Z[M + 1 :, j] = 0.0 if j % 2 == 0 else wave[1:]
    K = np.diag(d) + Z @ np.linalg.inv(kernel.state_covariance()) @ Z.T
    angle = np.outer(x - a, omega)
    return K, np.concatenate([np.cos(angle), np.sin(angle[:, 1:])], axis=1)


@pytest.mark.parametrize("Kernel", KERNELS)
@pytest.mark.parametrize("engine", ["dense", "nufft", "table", "grid"])
@pytest.mark.parametrize("M", [4, 25])
def test_elbo_is_the_papers_with_edges_off(Kernel, engine, M):
    rng = np.random.default_rng(M)
    x = np.linspace(10.0, 30.0, 150) if engine == "grid" else rng.uniform(10, 30, 150)
    y = np.sin(x) + 0.2 * rng.normal(size=150)
    variance, lengthscale, noise = 1.4, 3.0, 0.3
    K, phi = _paper_features(Kernel.order, M, 5.0, 36.0, lengthscale, x)
    Q = variance * phi @ np.linalg.solve(K, phi.T)
    expected = multivariate_normal(np.zeros(150), Q + noise * np.eye(150)).logpdf(y)
    expected -= 0.5 / noise * (150 * variance - np.trace(Q))
    model = GPRegressor(
        Kernel(0, variance=variance, lengthscale=lengthscale),
        noise_variance=noise,
        frequencies=M,
        domain=(5.0, 36.0),
        edges=0,
        engine=engine,
        optimizer=None,
        normalize_y=False,
    ).fit(x[:, None], y)
    assert model.elbo_ == pytest.approx(expected, rel=1e-9)
    assert model.engine_ == engine


def test_kl_of_the_design_page():
    """N = 10^4, Matérn-3/2, lengthscale 0.2, noise 0.1, 41 features: below 15 nats; the paper's features: about 470."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 1, 10_000))
    kernel, noise = Matern32(0, variance=1.0, lengthscale=0.2), 0.1
    evidence, y = _markov_draw(x, kernel, noise, rng)
    fixed = {"noise_variance": noise, "optimizer": None, "normalize_y": False}
    ours = GPRegressor(kernel, frequencies=19, domain=(0.0, 1.0), **fixed).fit(x[:, None], y)
    paper = GPRegressor(kernel, frequencies=20, domain=(-0.3, 1.3), edges=0, **fixed).fit(x[:, None], y)
    assert 0.0 < evidence - ours.elbo_ < 15.0
    assert evidence - paper.elbo_ > 300.0


def _markov_draw(x, kernel, noise, rng):
    """A draw of y and its exact evidence in O(N): the Kalman filter of the Matérn's state."""
    unit = HalfInteger.from_lengthscale(kernel.order, kernel.lengthscale)
    stationary = kernel.variance * unit.state_covariance()
    rate = unit.rate
    state = np.linalg.cholesky(stationary) @ rng.normal(size=2)
    mean, covariance, evidence, y = np.zeros(2), stationary.copy(), 0.0, np.empty(x.size)
    for n in range(x.size):
        gap = x[n] - x[n - 1] if n else 0.0
        step = np.exp(-rate * gap) * np.array([[1 + rate * gap, gap], [-(rate**2) * gap, 1 - rate * gap]])
        jump = stationary - step @ stationary @ step.T
        root = np.linalg.cholesky(jump + 1e-14 * np.diag(np.diagonal(stationary)))
        state = step @ state + root @ rng.normal(size=2)
        y[n] = state[0] + np.sqrt(noise) * rng.normal()
        mean, covariance = step @ mean, step @ covariance @ step.T + jump
        spread = covariance[0, 0] + noise
        evidence += -0.5 * (np.log(2 * np.pi * spread) + (y[n] - mean[0]) ** 2 / spread)
        gain = covariance[:, 0] / spread
        mean, covariance = mean + gain * (y[n] - mean[0]), covariance - np.outer(gain, covariance[0])
    return evidence, y


@pytest.mark.parametrize("Kernel", [Matern32, Matern52])
def test_posterior_is_the_exact_one_inside_and_outside(Kernel):
    X, y = _wave(120)
    kernel, noise = Kernel(0, variance=4.0, lengthscale=1.1), 0.25
    new = np.linspace(1.0, 8.5, 60)
    evidence, mean, covariance = _exact(kernel, noise, X[:, 0], y - 40.0, new)
    model = GPRegressor(kernel, noise_variance=noise, frequencies=200, optimizer=None, normalize_y=False)
    model.fit(X, y - 40.0)
    assert model.elbo_ == pytest.approx(evidence, abs=1e-2)
    with pytest.warns(ExtrapolationWarning, match="outside the domain"):
        got_mean, got_variance = model.predict_f(new[:, None])
    np.testing.assert_allclose(got_mean, mean, atol=2e-3)
    np.testing.assert_allclose(got_variance, np.diagonal(covariance), atol=1e-3)
    with pytest.warns(ExtrapolationWarning):
        joint_mean, joint = model.predict_f(new[:, None], full_covariance=True)
    np.testing.assert_allclose(joint, covariance, atol=1e-3)
    np.testing.assert_allclose(joint_mean, got_mean, atol=1e-9)
    np.testing.assert_allclose(np.diagonal(joint), got_variance, atol=1e-9)
    with pytest.warns(ExtrapolationWarning):
        predicted, std = model.predict(new[:, None], return_std=True)
    np.testing.assert_allclose(std**2, got_variance + noise, rtol=1e-12)
    np.testing.assert_array_equal(predicted, got_mean)


@pytest.mark.parametrize("Kernel", [Matern32, Matern52])
def test_derivative_of_the_posterior(Kernel):
    X, y = _wave(150)
    model = GPRegressor(Kernel(), frequencies=60, hyperparameters="maximise").fit(X, y)
    grid, h = np.array([1.5, 2.2, 4.0, 6.9, 8.0]), 1e-4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        mean, variance = model.predict_derivative(grid[:, None])
        pair_mean, pair = model.predict_f(np.concatenate([grid - h, grid + h])[:, None], full_covariance=True)
    n = grid.size
    np.testing.assert_allclose(mean, (pair_mean[n:] - pair_mean[:n]) / (2 * h), rtol=1e-3, atol=1e-3)
    blocks = np.diagonal(pair[:n, :n]) + np.diagonal(pair[n:, n:]) - 2 * np.diagonal(pair[:n, n:])
    np.testing.assert_allclose(variance, blocks / (4 * h**2), rtol=2e-2)


def test_derivative_of_a_rough_process_is_refused():
    X, y = _wave(30)
    with pytest.raises(ValueError, match="no derivative"):
        GPRegressor(Matern12()).fit(X, y).predict_derivative(X)


def test_samples_have_the_posterior_moments():
    X, y = _wave(60)
    model = GPRegressor(random_state=0, hyperparameters="maximise").fit(X, y)
    new = np.linspace(2.5, 6.5, 5)[:, None]
    mean, covariance = model.predict_f(new, full_covariance=True)
    draws = model.sample_f(new, 20_000)
    np.testing.assert_allclose(draws.mean(1), mean, atol=5 * np.sqrt(covariance.max() / 20_000))
    np.testing.assert_allclose(np.cov(draws), covariance, atol=0.05 * covariance.max())
    noisy = model.sample_y(new, 20_000, random_state=1)
    assert noisy.shape == (5, 20_000)
    np.testing.assert_allclose(noisy.var(1), np.diagonal(covariance) + model.noise_variance_, rtol=0.06)
    np.testing.assert_array_equal(model.sample_y(new, 3, random_state=7), model.sample_y(new, 3, random_state=7))


def test_training_rows_outside_the_domain_are_legal_when_insisted_on():
    X, y = _wave(100)
    kernel, noise = Matern32(0, variance=4.0, lengthscale=1.0), 0.25
    fixed = {"noise_variance": noise, "optimizer": None, "normalize_y": False, "frequencies": 20}
    narrow = GPRegressor(kernel, domain=(3.0, 6.0), **fixed).fit(X, y - 40)
    wide = GPRegressor(kernel, domain=(2.0, 7.0), **fixed).fit(X, y - 40)
    assert narrow.elbo_ < wide.elbo_
    learnt = GPRegressor(Matern32(), domain=(3.0, 6.0), frequencies=20).fit(X, y)
    assert np.isfinite(learnt.elbo_)


def test_coverage_of_new_observations():
    """Over 200 simulated data sets the 95 % intervals cover 93 to 97 %."""
    rng = np.random.default_rng(11)
    covered = []
    for _ in range(200):
        x = rng.uniform(0, 1, 160)
        kernel = Matern32(0, variance=1.0, lengthscale=0.2)
        f = np.linalg.cholesky(kernel(x, x) + 1e-10 * np.eye(160)) @ rng.normal(size=160)
        y = 5.0 + f + 0.3 * rng.normal(size=160)
        model = GPRegressor(domain=(0.0, 1.0)).fit(x[:100, None], y[:100])
        mean, std = model.predict(x[100:, None], return_std=True)
        covered.append(np.abs(y[100:] - mean) < 1.959964 * std)
    assert 0.93 < np.mean(covered) < 0.97


def test_learning_finds_the_truth_and_says_nothing_is_wrong():
    rng = np.random.default_rng(5)
    x = np.sort(rng.uniform(0, 50, 4000))
    _, y = _markov_draw(x, Matern32(0, variance=2.0, lengthscale=1.5), 0.4, rng)
    model = GPRegressor(Matern32()).fit(x[:, None], 7.0 + y)
    assert model.noise_variance_ == pytest.approx(0.4, rel=0.1)
    assert model.kernel_.lengthscale == pytest.approx(1.5, rel=0.25)
    assert model.kernel_.variance == pytest.approx(2.0, rel=0.5)
    assert model.notes_ == ()
    assert model.elbo_ <= model.evidence_upper_bound_


def test_auto_frequencies_leave_little_to_gain():
    X, y = _wave(500)
    model = GPRegressor().fit(X, y)
    chosen = model.frequencies_[0]
    more = GPRegressor(frequencies=3 * chosen).fit(X, y)
    assert 0.0 <= more.elbo_ - model.elbo_ < 1.0
    assert model.domain_[0] == (X.min(), X.max())


def test_notes_name_what_limits_the_bound():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 800)
    y = np.sin(60 * x) + 0.1 * rng.normal(size=800)
    few = GPRegressor(Matern32(0, variance=1.0, lengthscale=0.05), frequencies=5, noise_variance=0.01, optimizer=None)
    assert any("M limits the bound" in note for note in few.fit(x[:, None], y).notes_)
    line = 3 * x + 0.1 * rng.normal(size=800)
    tight = GPRegressor(
        Matern32(0, variance=1.0, lengthscale=0.5),
        frequencies=30,
        noise_variance=0.01,
        edges=0,
        domain=(0, 1),
        optimizer=None,
    )
    assert any("domain limits the bound" in note for note in tight.fit(x[:, None], line).notes_)


def test_elbo_is_for_the_users_units():
    X, y = _wave(80)
    given = {"frequencies": 30, "optimizer": None}
    centred = y - y.mean()
    model = GPRegressor(Matern32(0, variance=4.0, lengthscale=1.0), noise_variance=0.3, normalize_y=False, **given)
    scaled = GPRegressor(Matern32(0, variance=4.0, lengthscale=1.0), noise_variance=0.3, **given)
    # a constant c0 ~ N(mean, V) beside the process: p(y) = p(y | c0) p(c0) / p(c0 | y) at any c0, here the mean
    V, c0 = (10.0 * y.std()) ** 2, scaled.fit(X, y).posterior_.intercept
    m, v = y.std() * c0.mean, y.var() * c0.variance
    odds = -0.5 * np.log(2 * np.pi * V) + 0.5 * np.log(2 * np.pi * v) + 0.5 * m**2 / v
    assert scaled.elbo_ == pytest.approx(model.fit(X, centred).elbo_ + odds, rel=1e-10)
    # and by two more values of it, which the prior does not see
    step = 0.5
    up, down = (model.fit(X, centred - shift).elbo_ for shift in (step, -step))
    curvature = (2.0 * model.fit(X, centred).elbo_ - up - down) / step**2
    assert 1.0 / v == pytest.approx(curvature + 1.0 / V, rel=1e-8)
    assert m == pytest.approx(v * (up - down) / (2.0 * step), rel=1e-8)


def test_without_a_mean_the_units_of_y_do_not_matter_either():
    X, y = _wave(80)
    base = GPRegressor(frequencies=20, normalize_y=False).fit(X, y - 40)
    large = GPRegressor(frequencies=20, normalize_y=False).fit(X, 1e6 * (y - 40))
    np.testing.assert_allclose(large.predict(X), 1e6 * base.predict(X), rtol=1e-3, atol=1e3)
    assert large.elbo_ == pytest.approx(base.elbo_ - 80 * np.log(1e6), abs=1e-2)
    assert large.notes_ == ()


@given(
    scale=st.sampled_from([1e-6, 1.0, 1e5]), shift=st.sampled_from([0.0, -1e4, 1e6]), unit=st.sampled_from([1e-4, 1e3])
)
def test_units_do_not_matter(scale, shift, unit):
    X, y = _wave(60)
    base = GPRegressor(frequencies=20).fit(X, y)
    other = GPRegressor(frequencies=20).fit(unit * X, shift + scale * y)
    mean, std = base.predict(X[:9], return_std=True)
    got_mean, got_std = other.predict(unit * X[:9], return_std=True)
    np.testing.assert_allclose((got_mean - shift) / scale, mean, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(got_std / scale, std, rtol=1e-3)
    assert other.kernel_.lengthscale == pytest.approx(unit * base.kernel_.lengthscale, rel=1e-2)


@pytest.mark.parametrize("engine", ["dense", "nufft"])
def test_partial_fit_equals_fit(engine):
    X, y = _wave(300)
    options = {"frequencies": 15, "domain": (2.0, 7.0), "engine": engine}
    whole = GPRegressor(**options).fit(X, y)
    parts = GPRegressor(**options)
    for rows in (slice(0, 50), slice(50, 180), slice(180, 300)):
        parts.partial_fit(X[rows], y[rows])
    assert parts.rows_.moments.n == 300
    assert parts.elbo_ == pytest.approx(whole.elbo_, abs=1e-4)
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=1e-3)
    parts.fit(X[:50], y[:50])
    assert parts.rows_.moments.n == 50


def test_partial_fit_beyond_an_automatic_domain_is_refused():
    X, y = _wave(50)
    model = GPRegressor().partial_fit(X, y)
    with pytest.raises(ValueError, match="give domain="):
        model.partial_fit(X + 10, y)


def test_weights_are_counts_and_zero_is_absence():
    X, y = _wave(80)
    counts = np.random.default_rng(1).integers(0, 3, 80)
    options = {"frequencies": 12}
    weighted = GPRegressor(**options).fit(X, y, sample_weight=counts)
    repeated = GPRegressor(**options).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert weighted.elbo_ == pytest.approx(repeated.elbo_, abs=1e-4)
    assert weighted.domain_ == repeated.domain_
    inside = X[counts > 0]
    np.testing.assert_allclose(weighted.predict(inside), repeated.predict(inside), atol=2e-3)


def test_frames_and_names():
    X, y = _wave(100)
    frame = pd.DataFrame({"other": np.arange(100), "hour": X[:, 0]})
    by_name = GPRegressor(Matern32("hour"), frequencies={"hour": 12}, domain={"hour": (2, 7)}).fit(frame, y)
    assert by_name.feature_names_in_.tolist() == ["other", "hour"]
    assert by_name.domain_ == {"hour": (2.0, 7.0)}
    assert by_name.frequencies_ == {"hour": 12}
    by_index = GPRegressor(Matern32(1), frequencies=12, domain=(2, 7)).fit(frame.to_numpy(), y)
    polar = GPRegressor(Matern32("hour"), frequencies=12, domain=(2, 7)).fit(pl.DataFrame(frame.to_dict("list")), y)
    np.testing.assert_allclose(by_name.predict(frame), by_index.predict(frame.to_numpy()), atol=1e-9)
    np.testing.assert_allclose(polar.predict(pl.DataFrame(frame.to_dict("list"))), by_name.predict(frame), atol=1e-9)


def test_log_predictive_density():
    X, y = _wave(60)
    model = GPRegressor(hyperparameters="maximise").fit(X, y)
    mean, std = model.predict(X, return_std=True)
    expected = [multivariate_normal(m, s**2).logpdf(v) for m, s, v in zip(mean, std, y, strict=True)]
    np.testing.assert_allclose(model.log_predictive_density(X, y), expected, rtol=1e-10)


def test_progress_is_said_when_asked_for(capsys):
    GPRegressor(verbose=1).fit(*_wave(50))
    said = capsys.readouterr().err
    assert "engine" in said
    assert "nats" in said
    GPRegressor().fit(*_wave(50))
    assert capsys.readouterr().err == ""


@given(
    N=st.sampled_from([2, 3, 17, 120]),
    kind=st.sampled_from(["noise", "constant", "step", "tiny noise", "ties", "outlier"]),
    Kernel=st.sampled_from(KERNELS),
    seed=st.integers(0, 500),
)
def test_no_small_table_breaks_a_fit(N, kind, Kernel, seed):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 1, N)) if kind != "ties" else np.resize([0.0, 0.5, 1.0], N)
    y = {
        "noise": rng.normal(size=N),
        "constant": np.full(N, 3.0),
        "step": (x > 0.5).astype(float),
        "tiny noise": np.sin(6 * x) + 1e-7 * rng.normal(size=N),
        "ties": rng.normal(size=N),
        "outlier": np.where(np.arange(N) == 0, 1e6, rng.normal(size=N)),
    }[kind]
    model = GPRegressor(Kernel()).fit(x[:, None], y)
    mean, std = model.predict(x[:, None], return_std=True)
    assert np.isfinite(model.elbo_)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)


@pytest.mark.parametrize("Kernel", [Matern32, Matern52])
def test_expected_gap_holds_on_average_for_draws_from_the_model(Kernel):
    rng = np.random.default_rng(4)
    kernel, noise = Kernel(0, variance=1.0, lengthscale=0.2), 0.05
    x = rng.uniform(0, 1, 200)
    root = np.linalg.cholesky(kernel(x, x) + noise * np.eye(200))
    gaps = []
    for _ in range(30):
        y = root @ rng.normal(size=200)
        fixed = {"noise_variance": noise, "optimizer": None, "normalize_y": False, "frequencies": 6}
        model = GPRegressor(kernel, **fixed).fit(x[:, None], y)
        evidence = multivariate_normal(np.zeros(200), root @ root.T).logpdf(y)
        gaps.append(evidence - model.elbo_)
    least, most = model.elbo_gap_
    assert 0.8 * least < np.mean(gaps) < 1.2 * most
