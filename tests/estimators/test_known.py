"""What is known beforehand: held and bounded numbers, priors, and the prior itself."""

import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import vff
from vff import Categorical, GPClassifier, GPRegressor, Linear, Matern12, Matern32, Matern52, between, fixed
from vff.baselines import ExactGP
from vff.kernels import normal_form, write_kernel
from vff.parameters import Between, Fixed
from vff.priors import Gamma, HalfNormal, LogNormal, Normal

rng = np.random.default_rng(0)
X = rng.uniform(0, 10, (120, 1))
Y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=120)
SIX = np.array([1.0, 3.0, 5.0, 6.0, 7.0, 8.0])[:, None]
WAVE = SIX[:, 0] * np.sin(SIX[:, 0])


def test_a_held_number_is_a_number():
    kernel = Matern32("x", lengthscale=fixed(2), variance=between(0.1, 10))
    assert kernel.lengthscale == 2.0
    assert kernel.lengthscale / 2 == 1.0
    assert repr(kernel) == "Matern32('x', variance=between(0.1, 10), lengthscale=fixed(2))"
    assert repr(fixed(2)) == "fixed(2.0)"
    assert repr(between(0.1, 10, 1)) == "between(0.1, 10.0, 1.0)"
    for copy in (deepcopy(kernel), pickle.loads(pickle.dumps(kernel)), clone(kernel, safe=False)):
        assert copy == kernel
        assert isinstance(copy.lengthscale, Fixed)
        assert isinstance(copy.variance, Between)
        assert copy.variance.bounds == (0.1, 10.0)
        assert not copy.variance.started
    assert write_kernel(kernel) == "Matern32('x', variance=between(0.1, 10.0), lengthscale=fixed(2.0))"


@pytest.mark.parametrize("wrong", ["2", None, True, np.inf, np.nan, [1.0]])
def test_what_is_no_number_cannot_be_held(wrong):
    with pytest.raises(ValueError, match="fixed takes finite numbers"):
        fixed(wrong)
    with pytest.raises(ValueError, match="between takes finite numbers"):
        between(0.0, wrong)


def test_bounds_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="give the lower one first"):
        between(2, 1)
    with pytest.raises(ValueError, match="start between the bounds"):
        between(1, 2, 3)
    with pytest.raises(ValueError, match="variance must be a positive number"):
        Matern32("x", variance=between(-1, 1))
    with pytest.raises(ValueError, match="lengthscale must be a positive number"):
        Matern32("x", lengthscale=fixed(0))
    with pytest.raises(ValueError, match="noise_variance must be None or a positive number"):
        GPRegressor(noise_variance=fixed(-1.0)).fit(X, Y)


def test_a_product_has_one_variance():
    one = Matern32("x", variance=between(1, 2)) * Matern32("z", variance=fixed(3))
    assert normal_form(one)[0].variance.bounds == (3.0, 6.0)
    held = Matern32("x", variance=fixed(2)) * Matern32("z", variance=fixed(3))
    assert isinstance(normal_form(held)[0].variance, Fixed)
    assert normal_form(held)[0].variance == 6.0
    again = normal_form(one)[0].with_values(4.0, [1.0, 2.0])
    assert normal_form(again)[0].variance.bounds == (3.0, 6.0)
    for other in (3.0, between(1, 2)):
        with pytest.raises(ValueError, match="a product has one variance"):
            Matern32("x", variance=between(1, 2)) * Matern32("z", variance=other)


@pytest.mark.parametrize("frequencies", ["auto", 20])
def test_held_numbers_stay_and_the_others_are_the_best_beside_them(frequencies):
    kernel = Matern32(0, lengthscale=fixed(1.0))
    model = GPRegressor(kernel, noise_variance=fixed(0.2), frequencies=frequencies).fit(X, Y)
    assert isinstance(model.kernel_.lengthscale, Fixed)
    assert model.kernel_.lengthscale == 1.0
    assert model.noise_variance_ == pytest.approx(0.2, rel=1e-12)

    def bound(variance: float) -> float:
        own = Matern32(0, variance=variance, lengthscale=1.0)
        how = {"noise_variance": 0.2, "optimizer": None, "frequencies": model.frequencies_}
        return GPRegressor(own, **how).fit(X, Y).elbo_

    best = minimize(lambda t: -bound(np.exp(t[0])), [0.0], method="Nelder-Mead").x[0]
    assert np.log(model.kernel_.variance) == pytest.approx(best, abs=1e-3)
    assert not any("bound" in note for note in model.notes_)


def test_all_held_is_nothing_to_learn():
    kernel = Matern32(0, variance=fixed(0.7), lengthscale=fixed(1.5))
    one = GPRegressor(kernel, noise_variance=fixed(0.1), frequencies=20).fit(X, Y)
    bare = Matern32(0, variance=0.7, lengthscale=1.5)
    other = GPRegressor(bare, noise_variance=0.1, optimizer=None, frequencies=20).fit(X, Y)
    assert one.elbo_ == pytest.approx(other.elbo_, abs=1e-8)
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-9)


def test_bounds_hold_and_are_told_where_learning_ends_at_one():
    free = GPRegressor(Matern32(0)).fit(X, Y)
    wide = GPRegressor(Matern32(0, lengthscale=between(0.01, 100))).fit(X, Y)
    assert wide.elbo_ == pytest.approx(free.elbo_, abs=1e-3)
    assert wide.kernel_.lengthscale.bounds == (0.01, 100.0)
    narrow = GPRegressor(Matern32(0, lengthscale=between(0.1, 1.0)), noise_variance=between(0.2, 0.3)).fit(X, Y)
    assert narrow.kernel_.lengthscale == 1.0
    assert narrow.noise_variance_ * (1 + 1e-12) >= 0.2
    assert any("lengthscale ended at its upper bound" in note for note in narrow.notes_)
    again = GPRegressor(narrow.kernel_, noise_variance=between(0.2, 0.3)).fit(X, Y)
    assert again.kernel_.lengthscale == 1.0


def test_a_bounded_variance_does_not_come_to_nothing():
    Z = np.column_stack([X[:, 0], rng.uniform(size=120)])
    model = GPRegressor(Matern32(0) + Matern32(1, variance=between(0.1, 1.0))).fit(Z, Y)
    assert model.fit_.terms[1].active
    assert model.fit_.terms[1].variance == pytest.approx(0.1)
    assert not any("do not support" in note for note in model.notes_)
    held = GPRegressor(Matern32(0) + Matern32(1, variance=fixed(0.1))).fit(Z, Y)
    assert held.fit_.terms[1].active
    assert held.elbo_ == pytest.approx(model.elbo_, abs=1e-3)


def test_held_numbers_of_sums_products_and_other_likelihoods():
    frame = pd.DataFrame({"x": X[:, 0], "g": np.where(rng.uniform(size=120) < 0.5, "a", "b")})
    kernel = Matern32("x", lengthscale=fixed(2)) + Categorical("g", variance=fixed(0.5))
    kernel = kernel + Matern32("x", variance=fixed(0.1), lengthscale=3) * Categorical("g")
    model = GPRegressor(kernel, frequencies=10).fit(frame, Y)
    smooth, groups, both = normal_form(model.kernel_)
    assert smooth.factors[0].lengthscale == 2.0
    assert groups.variance == 0.5
    assert both.variance == pytest.approx(0.1)
    assert isinstance(both.variance, Fixed)
    counts = np.random.default_rng(1).poisson(np.exp(Y))
    kernel = Matern32(0, variance=fixed(0.8), lengthscale=between(0.5, 1.0))
    poisson = GPRegressor(kernel, likelihood="poisson", frequencies=10).fit(X, counts)
    assert poisson.kernel_.variance == 0.8
    assert 0.5 <= poisson.kernel_.lengthscale <= 1.0
    labels = GPClassifier(Matern32(0, lengthscale=fixed(2)), frequencies=8).fit(X, Y > 0)
    assert labels.kernel_.lengthscale == 2.0


def test_held_numbers_are_saved(tmp_path):
    kernel = Matern32(0, lengthscale=fixed(1.0), variance=between(0.1, 10))
    model = GPRegressor(kernel, noise_variance=fixed(0.2), frequencies=10).fit(X, Y)
    model.save(tmp_path / "held.vff")
    loaded = vff.load(tmp_path / "held.vff")
    assert repr(loaded.kernel_) == repr(model.kernel_)
    assert repr(loaded.kernel) == repr(kernel)
    assert repr(loaded.noise_variance) == "fixed(0.2)"
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_baselines_learn_all_or_none():
    kernel = Matern32(0, lengthscale=fixed(1.0))
    with pytest.raises(ValueError, match="baselines learn all or none"):
        ExactGP(kernel).fit(SIX, WAVE)
    held = Matern32(0, lengthscale=fixed(1.0), variance=fixed(2.0))
    assert ExactGP(held, noise_variance=0.1, optimizer=None).fit(SIX, WAVE).kernel_.lengthscale == 1.0


# --- a deterministic function, and a handful of rows ------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Matern12, Matern32, Matern52])
@pytest.mark.parametrize("noise", [1e-8, 1e-4])
def test_a_handful_of_rows_is_learnt_as_the_exact_process_learns_it(kind, noise):
    """The evidence by dense algebra is the judge; priors so flat that they say nothing."""

    def evidence(t: np.ndarray) -> float:
        C = kind(0, variance=np.exp(t[0]), lengthscale=np.exp(t[1]))(SIX[:, 0], SIX[:, 0]) + noise * np.eye(6)
        return -0.5 * (np.linalg.slogdet(2 * np.pi * C)[1] + WAVE @ np.linalg.solve(C, WAVE))

    starts = ([3.0, 1.0], [2.0, 0.0])
    best = max((minimize(lambda t: -evidence(t), t, method="Nelder-Mead").x for t in starts), key=evidence)
    flat = {"variance": LogNormal(30.0, 50.0), "lengthscale": LogNormal(3.0, 50.0)}
    model = GPRegressor(kind(0), noise_variance=fixed(noise), normalize_y=False, priors=flat).fit(SIX, WAVE)
    found = np.log([model.kernel_.variance, model.kernel_.lengthscale])
    np.testing.assert_allclose(found, best, atol=2e-3)
    np.testing.assert_allclose(model.predict(SIX), WAVE, atol=10 * noise)
    # the exact posterior mean between the rows
    new = np.linspace(1, 8, 30)
    kernel = kind(0, variance=np.exp(best[0]), lengthscale=np.exp(best[1]))
    C = kernel(SIX[:, 0], SIX[:, 0]) + noise * np.eye(6)
    mean = kernel(new, SIX[:, 0]) @ np.linalg.solve(C, WAVE)
    np.testing.assert_allclose(model.predict(new[:, None]), mean, atol=0.02)


@settings(max_examples=8, deadline=None)
@given(st.integers(3, 30), st.integers(0, 2**16))
def test_a_deterministic_function_is_interpolated(n, seed):
    own = np.random.default_rng(seed)
    x = np.sort(own.permutation(200)[:n] / 200.0)[:, None]  # no two rows closer than features can tell apart
    y = np.sin(5 * x[:, 0]) + x[:, 0] ** 2
    model = GPRegressor(Matern52(0), noise_variance=fixed(1e-8), domain=(0, 1)).fit(x, y)
    mean, variance = model.predict_f(x)
    np.testing.assert_allclose(mean, y, atol=1e-4)
    assert np.sqrt(variance.max()) < 0.01 * max(1.0, y.std())
    assert np.isfinite(model.predict(np.linspace(0, 1, 7)[:, None], return_std=True)).all()


def test_noise_below_what_float64_tells_is_told():
    model = GPRegressor(Matern52(0), noise_variance=fixed(1e-30)).fit(SIX, WAVE)
    assert model.noise_variance_ == pytest.approx(1e-12 * WAVE.var())
    assert any("float64 does not tell less than" in note for note in model.notes_)
    assert not any(
        "float64" in note for note in GPRegressor(Matern52(0), noise_variance=fixed(1e-8)).fit(SIX, WAVE).notes_
    )


def test_expected_improvement_proposes_no_point_twice():
    x = np.array([[0.1], [0.5], [0.9]])
    candidates = np.linspace(0, 1, 201)[:, None]

    def f(x: np.ndarray) -> np.ndarray:
        return (6 * x[:, 0] - 2) ** 2 * np.sin(12 * x[:, 0] - 4)

    from scipy.stats import norm

    for _ in range(12):
        y = f(x)
        model = GPRegressor(Matern52(0), noise_variance=fixed(1e-8 * y.var()), domain=(0, 1)).fit(x, y)
        mean, variance = model.predict_f(candidates)
        sd = np.sqrt(variance)
        z = (y.min() - mean) / np.maximum(sd, 1e-300)
        best = candidates[np.argmax((y.min() - mean) * norm.cdf(z) + sd * norm.pdf(z))]
        assert np.abs(x - best).min() > 1e-9
        x = np.vstack([x, best])
    assert f(x).min() + 6.020740 < 0.01 * np.ptp(f(candidates))


# --- priors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "priors",
    [
        {"lengthscale": LogNormal(0.5, 0.2), "noise_variance": HalfNormal(0.05)},
        {"lengthscale[0]": Gamma(3.0, 0.2), "variance": LogNormal(5.0, 0.3)},
    ],
)
def test_priors_give_the_maximum_a_posteriori_of_the_logarithms(priors):
    model = GPRegressor(Matern32(0), priors=priors, frequencies=20).fit(X, Y)

    def objective(t: np.ndarray) -> float:
        variance, lengthscale, noise = np.exp(t)
        own = Matern32(0, variance=variance, lengthscale=lengthscale)
        bound = GPRegressor(own, noise_variance=noise, optimizer=None, frequencies=20).fit(X, Y).elbo_
        values = {"variance": variance, "lengthscale": lengthscale, "noise_variance": noise}
        said = [(prior, values[name.partition("[")[0]]) for name, prior in priors.items()]
        return bound + sum(prior.log_density(value) + np.log(value) for prior, value in said)

    at = np.log([model.kernel_.variance, model.kernel_.lengthscale, model.noise_variance_])
    for step in 1e-3 * np.eye(3):
        slope = (objective(at + step) - objective(at - step)) / 2e-3
        assert slope == pytest.approx(0.0, abs=2e-3)
    plain = GPRegressor(Matern32(0), frequencies=20).fit(X, Y)
    assert model.elbo_ < plain.elbo_  # the bound itself is reported, without the prior


def test_a_number_in_priors_holds():
    model = GPRegressor(Matern32(0), priors={"lengthscale[0]": 1.0, "noise_variance": 0.2}).fit(X, Y)
    other = GPRegressor(Matern32(0, lengthscale=fixed(1.0)), noise_variance=fixed(0.2)).fit(X, Y)
    assert model.elbo_ == pytest.approx(other.elbo_, abs=1e-6)
    assert model.kernel_.lengthscale == pytest.approx(1.0)


def test_priors_of_other_likelihoods():
    counts = np.random.default_rng(1).poisson(np.exp(Y))
    near = {"lengthscale": LogNormal(0.7, 0.01), "dispersion": LogNormal(3.0, 0.01)}
    model = GPRegressor(Matern32(0), likelihood="negative-binomial", priors=near, frequencies=10).fit(X, counts)
    assert model.kernel_.lengthscale == pytest.approx(0.7, rel=0.05)
    assert model.likelihood_.dispersion == pytest.approx(3.0, rel=0.05)
    held = GPRegressor(likelihood="student-t", priors={"df": 4.0}, frequencies=10).fit(X, Y)
    assert held.likelihood_.df == 4.0
    assert np.all(np.diff(model.fit_.bounds) >= -1e-9)
    assert model.fit_.bounds[-1] == pytest.approx(model.elbo_)


def test_priors_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="priors names 'length', which the model does not have; it has variance"):
        GPRegressor(priors={"length": LogNormal(1, 1)}).fit(X, Y)
    with pytest.raises(ValueError, match="give a prior for a positive number"):
        GPRegressor(priors={"lengthscale": Normal(0, 1)}).fit(X, Y)
    with pytest.raises(ValueError, match="must be a prior of"):
        GPRegressor(priors={"lengthscale": "short"}).fit(X, Y)
    with pytest.raises(ValueError, match="priors must be None or a dictionary"):
        GPRegressor(priors=[1.0]).fit(X, Y)
    with pytest.raises(ValueError, match="integrates out under its own weak prior"):
        GPRegressor(likelihood="poisson", priors={"constant": Normal(0, 1)}).fit(X, np.ones(120))


def test_weak_priors_are_those_of_a_handful_of_rows():
    """Of twenty rows and more nothing is said; of fewer, what is written down in the docs."""
    x, y = X[:12], Y[:12]
    spread = y.var()
    stated = {
        "variance": LogNormal(0.5 * spread, 3.0),
        "lengthscale": LogNormal(0.5 * float(np.ptp(x)), 2.0),
        "noise_variance": LogNormal(0.1 * spread, 3.0),
    }
    default, said = (GPRegressor(Matern32(0), priors=own).fit(x, y) for own in (None, stated))
    assert default.elbo_ == pytest.approx(said.elbo_, abs=1e-6)
    assert default.kernel_.lengthscale == pytest.approx(said.kernel_.lengthscale, rel=1e-3)
    many = GPRegressor(Matern32(0), frequencies=20).fit(X, Y)
    best = GPRegressor(Matern32(0), frequencies=20, priors={"variance": LogNormal(1.0, 100.0)}).fit(X, Y)
    assert many.elbo_ == pytest.approx(best.elbo_, abs=1e-6)


def test_chains_hold_what_is_held_and_refuse_walls():
    how = {"inference": "mcmc", "draws": 10, "warmup": 20, "chains": 1, "frequencies": 5, "random_state": 0}
    model = GPRegressor(Matern32(0, lengthscale=fixed(2.0)), **how).fit(X[:40], Y[:40])
    assert model.kernel_.lengthscale == pytest.approx(2.0)
    assert all(own.prior is None or own.kind != "lengthscale" for own in model.samples_.parameters)
    with pytest.raises(ValueError, match="give one in priors= instead"):
        GPRegressor(Matern32(0, lengthscale=between(1, 2)), **how).fit(X[:40], Y[:40])


# --- before any row ---------------------------------------------------------------------------------------------------


def test_the_prior_answers_when_all_its_numbers_are_given():
    frame = pd.DataFrame({"x": np.linspace(0, 3, 7), "g": list("abababa")})
    kernel = Matern32("x", variance=2.0, lengthscale=1.5) * Categorical("g", variance=1.0)
    kernel = kernel + Linear("x", variance=0.5, origin=0.0)
    model = GPRegressor(kernel, noise_variance=0.3)
    x, g = frame.x.to_numpy(), frame.g.to_numpy(dtype=object)
    dense = Matern32(0, variance=2.0, lengthscale=1.5)(x, x) * np.equal.outer(g, g)
    dense = dense + Linear(0, variance=0.5)(x, x)
    mean, covariance = model.predict_f(frame, full_covariance=True)
    np.testing.assert_array_equal(mean, 0.0)
    np.testing.assert_allclose(covariance, dense, atol=1e-12)
    np.testing.assert_allclose(model.predict_f(frame)[1], np.diagonal(dense), atol=1e-12)
    np.testing.assert_allclose(model.predict(frame, return_std=True)[1] ** 2, np.diagonal(dense) + 0.3, atol=1e-12)
    draws = model.sample_prior(frame, 20_000, random_state=0)
    np.testing.assert_allclose(np.cov(draws), dense, atol=0.3)
    noisy = model.sample_y(frame, 20_000, random_state=0)
    np.testing.assert_allclose(noisy.var(axis=1), np.diagonal(dense) + 0.3, rtol=0.06)
    assert not hasattr(model, "posterior_")


def test_the_prior_of_counts():
    model = GPRegressor(Matern32(0, variance=0.5, lengthscale=1.0), likelihood="poisson")
    mean, std = model.predict([[0.0], [1.0]], return_std=True)
    np.testing.assert_allclose(mean, np.exp(0.25))
    np.testing.assert_allclose(std**2, np.exp(0.25) + np.exp(1.0) - np.exp(0.5))


def test_what_is_not_given_cannot_be_asked():
    for model in (GPRegressor(), GPRegressor(Matern32(0)), GPRegressor(Matern32(0, variance=1.0))):
        with pytest.raises(NotFittedError, match="call fit first, or, to ask the prior, give"):
            model.predict(X)
    with pytest.raises(NotFittedError, match="noise_variance"):
        GPRegressor(Matern32(0, variance=1.0, lengthscale=1.0)).predict(X)
    with pytest.raises(ValueError, match="tables in memory"):
        GPRegressor(Matern32(0, variance=1.0, lengthscale=1.0)).predict_f(iter([X]))


def test_the_prior_after_a_fit_is_that_of_the_learnt_numbers():
    model = GPRegressor(Matern32(0), frequencies=10).fit(X, Y)
    draws = model.sample_prior(X[:3], 20_000, random_state=0)
    np.testing.assert_allclose(draws.var(axis=1), model.kernel_.variance, rtol=0.06)
    np.testing.assert_allclose(draws.mean(axis=1), Y.mean(), atol=0.05)


@pytest.mark.parametrize(
    "kernel",
    [
        Matern32(0, variance=between(0.1, 10), lengthscale=2.0),
        Matern32(0, variance=1.0, lengthscale=between(1, 3)),
        Linear(0, variance=1.0),
    ],
)
def test_a_prior_whose_numbers_nobody_gave_does_not_answer(kernel):
    with pytest.raises(NotFittedError, match="give all numbers of"):
        GPRegressor(kernel, noise_variance=0.1).predict(X)
    assert GPRegressor(kernel, frequencies="auto").fit(X, Y).sample_prior(X[:3]).shape == (3, 1)


def test_a_prior_whose_numbers_are_all_given_answers():
    for kernel in (
        Matern32(0, variance=between(0.1, 10, 2.0), lengthscale=fixed(2.0)),
        Linear(0, variance=1.0, origin=0.0),
        Linear(0, variance=1.0) * Matern32(0, variance=1.0, lengthscale=2.0),
    ):
        assert not GPRegressor(kernel, noise_variance=0.1).predict(X).any()


def test_the_prior_is_scored_as_it_predicts():
    prior = GPRegressor(Matern32(0, variance=1.0, lengthscale=2.0), noise_variance=0.25)
    assert prior.score(X, Y) == pytest.approx(1.0 - np.mean(Y**2) / np.var(Y))
    np.testing.assert_allclose(prior.log_predictive_density(X, Y), -0.5 * np.log(2.5 * np.pi) - 0.4 * Y**2)
    for ask in (ExactGP().score, GPRegressor().score, GPRegressor().log_predictive_density):
        with pytest.raises(NotFittedError):
            ask(X, Y)


def test_without_an_optimizer_priors_do_not_move_what_is_given():
    model = GPRegressor(
        Matern32(0, lengthscale=1.0, variance=1.0), noise_variance=0.1, optimizer=None,
        priors={"lengthscale": LogNormal(5.0, 0.01), "noise_variance": LogNormal(5.0, 0.01)},
    ).fit(X, Y)  # fmt: skip
    assert model.kernel_ == Matern32(0, lengthscale=1.0, variance=1.0)
    assert model.noise_variance_ == pytest.approx(0.1)
    with pytest.raises(ValueError, match="give a prior for a positive number"):
        model.set_params(priors={"lengthscale": Normal(0.0, 1.0)}).fit(X, Y)


@pytest.mark.parametrize("variance", [fixed(1e4), between(1e4, 1e5)])
def test_a_held_variance_beyond_what_the_likelihood_takes_is_refused(variance):
    counts = rng.poisson(np.exp(Y))
    with pytest.raises(ValueError, match=r"variance\[0\] is .* and Poisson takes a variance of at most 200"):
        GPRegressor(Matern32(0, variance=variance), likelihood="poisson").fit(X, counts)
    model = GPRegressor(Matern32(0, variance=fixed(200)), likelihood="poisson", frequencies=5).fit(X, counts)
    assert model.fit_.terms[0].variance == pytest.approx(200.0)


@pytest.mark.parametrize(
    ("kernel", "more", "said"),
    [
        (
            Matern32(0, lengthscale=fixed(2.0)),
            {"lengthscale": 5.0},
            r"gives 5.0 for lengthscale\[0\], which is held at 2",
        ),
        (Matern32(0, lengthscale=fixed(2.0)), {"lengthscale[0]": LogNormal(5, 1)}, "a prior for .* which is held at 2"),
        (Matern32(0, lengthscale=between(1, 2)), {"lengthscale": 5.0}, "which is bounded by between"),
        (Matern32(0), {"noise_variance": 5.0}, "gives 5.0 for noise_variance, which is held at 0.1"),
    ],
)
@pytest.mark.parametrize("inference", ["variational", "mcmc"])
def test_priors_do_not_contradict_what_is_held(kernel, more, said, inference):
    pytest.importorskip("blackjax")
    model = GPRegressor(kernel, noise_variance=fixed(0.1), priors=more, inference=inference, draws=10, warmup=20)
    with pytest.raises(ValueError, match=said):
        model.fit(X, Y)


def test_priors_do_not_contradict_a_likelihood():
    likelihood = vff.likelihoods.StudentT(df=4.0)
    for prior, said in ((5.0, "gives 5.0 for df"), (LogNormal(5, 1), "a prior for df")):
        with pytest.raises(ValueError, match=f"{said}, which is held at 4"):
            GPRegressor(Matern32(0), likelihood=likelihood, priors={"df": prior}).fit(X, Y)


@pytest.mark.parametrize(
    "write",
    [
        lambda: vff.likelihoods.StudentT(scale=between(0.1, 0.2)),
        lambda: vff.likelihoods.StudentT(df=between(3, 5)),
        lambda: vff.likelihoods.Gaussian(variance=between(0.3, 0.5)),
        lambda: vff.likelihoods.NegativeBinomial(dispersion=between(0.1, 0.2)),
        lambda: vff.Periodic("a", period=between(3, 4)),
        lambda: Linear("a", origin=between(3, 4)),
        lambda: GPRegressor(Matern32(0), priors={"lengthscale": between(1, 2)}).fit(X, Y),
    ],
)
def test_bounds_are_refused_where_nothing_is_learnt_between_them(write):
    with pytest.raises(ValueError, match="cannot be bounded, got between"):
        write()


def test_a_held_number_of_a_likelihood_is_the_number():
    assert repr(vff.likelihoods.StudentT(df=fixed(4))) == repr(vff.likelihoods.StudentT(df=4.0))


@pytest.mark.parametrize("noise", [between(-1, 1), between(0, 1)])
def test_noise_is_bounded_from_above_zero(noise):
    frame = pd.DataFrame({"x": X[:, 0], "y": Y, "err": 0.1})
    for more in ({"noise_std": "err"}, {}):
        with pytest.raises(ValueError, match="a lower bound that is not zero"):
            GPRegressor(Matern32("x"), noise_variance=noise, **more).fit(frame, "y")


def test_notes_tell_given_bounds_from_others():
    note = GPRegressor(Matern32(0, lengthscale=between(10, 20)), frequencies=10).fit(X, Y).notes_
    assert "lengthscale ended at its lower bound, 10, as it was given: the data may want it lower" in note


def test_held_numbers_come_back_to_the_last_digit():
    held = {"noise_variance": 1e-2, "lengthscale": 0.7, "variance": 1.1}
    model = GPRegressor(Matern32(0), priors=held, frequencies=10).fit(X, 3.0 * Y)
    learnt = model.fit_.terms[0]
    assert (model.noise_variance_, learnt.lengthscales[0], learnt.variance) == (1e-2, 0.7, 1.1)


def test_the_constant_has_its_own_prior_with_any_noise():
    for likelihood, who in (("gaussian", "a fit with Gaussian noise"), ("student-t", "inference='variational'")):
        with pytest.raises(ValueError, match=f"priors names the constant, which {who} integrates out"):
            GPRegressor(Matern32(0), likelihood=likelihood, priors={"constant": 3.0}).fit(X, Y)
