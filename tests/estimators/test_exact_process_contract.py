"""What scikit-learn's own tests ask of its exact process, asked of ours: same table, same questions, Matérns for RBF.

``ASKED`` names every test of sklearn.gaussian_process.tests.test_gpr (1.8: 195 cases) with the number of its cases and
the test here that asks the same; ``LEFT`` those that have no meaning here, with the reason. Noise is held at 1e-10, as
``alpha`` is there, and constants are ours (``normalize_y``) where its kernels add one.
"""

import numpy as np
import pytest
from sklearn.base import clone

from vff import GPRegressor, Linear, Matern32, Matern52, Periodic, between, fixed

X = np.array([1.0, 3.0, 5.0, 6.0, 7.0, 8.0])[:, None]
NEW = np.array([2.0, 4.0, 5.5, 6.5, 7.5])[:, None]
Y = X[:, 0] * np.sin(X[:, 0])
LENGTH, VARIANCE = between(1e-3, 1e3, 1.0), between(1e-2, 1e2, 1.0)
HELD = Matern52(0, variance=fixed(1.0), lengthscale=fixed(1.0))
KERNELS = {
    "length": (Matern52(0, variance=fixed(1.0), lengthscale=1.0), False),
    "held": (HELD, False),
    "bounded length": (Matern52(0, variance=fixed(1.0), lengthscale=LENGTH), False),
    "bounded": (Matern52(0, variance=VARIANCE, lengthscale=LENGTH), False),
    "with a constant": (Matern52(0, variance=VARIANCE, lengthscale=LENGTH), True),
    "from elsewhere": (Matern52(0, variance=between(1e-2, 1e2, 0.1), lengthscale=LENGTH), True),
}
every_kernel = pytest.mark.parametrize("name", KERNELS)
learnt_kernels = pytest.mark.parametrize("name", [name for name in KERNELS if name != "held"])

ASKED = {
    "test_gpr_interpolation": (6, "test_interpolation"),
    "test_gpr_interpolation_structured": (1, "test_interpolation_of_levels"),
    "test_lml_improving": (5, "test_learning_improves_the_evidence"),
    "test_lml_precomputed": (6, "test_the_bound_is_that_of_the_learnt_kernel"),
    "test_converged_to_local_maximum": (5, "test_nothing_is_left_to_gain"),
    "test_solution_inside_bounds": (5, "test_bounds_hold"),
    "test_lml_gradient": (65, "test_gradient"),
    "test_prior": (6, "test_prior"),
    "test_sample_statistics": (6, "test_statistics_of_draws"),
    "test_no_optimizer": (4, "test_without_an_optimizer"),
    "test_predict_cov_vs_std": (12, "test_covariance_and_standard_deviation"),
    "test_anisotropic_kernel": (1, "test_lengthscales_by_column"),
    "test_y_normalization": (6, "test_units_of_y"),
    "test_large_variance_y": (1, "test_a_large_variance"),
    "test_gpr_correct_error_message": (1, "test_a_singular_covariance"),
    "test_duplicate_input": (6, "test_two_rows_at_one_place"),
    "test_no_fit_default_predict": (1, "test_a_prior_without_numbers"),
    "test_warning_bounds": (1, "test_ends_at_bounds_are_told"),
    "test_bound_check_fixed_hyperparameter": (1, "test_a_held_period"),
    "test_constant_target": (6, "test_a_constant_target"),
    "test_gpr_consistency_std_cov_non_invertible_kernel": (1, "test_covariance_of_a_nearly_singular_kernel"),
    "test_gpr_fit_error": (1, "test_error_bars_of_the_wrong_length"),
    "test_predict_shapes": (4, "test_shapes"),
    "test_sample_y_shapes": (4, "test_shapes"),
    "test_sample_y_shape_with_prior": (4, "test_shapes_of_a_prior"),
    "test_predict_shape_with_prior": (2, "test_shapes_of_a_prior"),
    "test_gpr_predict_input_not_modified": (1, "test_rows_are_left_as_they_are"),
    "test_gpr_predict_no_cov_no_std_return": (6, "test_the_mean_alone"),
}
LEFT = {
    "test_lml_without_cloning_kernel": (6, "kernels are never changed in place"),
    "test_random_starts": (1, "learning looks for starts by itself; there is no number of restarts"),
    "test_y_multioutput": (1, "one target at a time; several are refused with a sentence"),
    "test_custom_optimizer": (5, "the optimizer is not the user's: 'lbfgs' or None"),
    "test_gpr_fit_error": (1, "its second case is about restarts"),
    "test_gpr_lml_error": (1, "there is no gradient to ask for without values"),
    "test_gpr_predict_error": (1, "standard deviation and covariance are asked of different methods"),
    "test_predict_shapes": (2, "several targets"),
    "test_sample_y_shapes": (2, "several targets"),
    "test_sample_y_shape_with_prior": (4, "several targets"),
    "test_predict_shape_with_prior": (2, "several targets"),
    "test_n_targets_error": (1, "several targets"),
}


def model_of(name: str, noise: float = 1e-10, **more) -> GPRegressor:
    kernel, constant = KERNELS[name]
    return GPRegressor(kernel, noise_variance=fixed(noise), normalize_y=constant, **more)


def bound(model: GPRegressor, kernel=None) -> float:
    """What is learnt from at the values of a kernel: of so few rows the evidence."""
    how = {"noise_variance": model.noise_variance_, "normalize_y": model.normalize_y, "optimizer": None}
    return GPRegressor(kernel or model.kernel_, **how).fit(X, Y).elbo_


def test_every_question_is_asked_or_left_with_a_reason():
    assert sum(count for count, _ in (*ASKED.values(), *LEFT.values())) == 195
    assert sum(count for count, _ in ASKED.values()) >= 130
    assert all(callable(globals()[test]) for _, test in ASKED.values())


@every_kernel
def test_interpolation(name):
    mean, variance = model_of(name).fit(X, Y).predict_f(X)
    np.testing.assert_allclose(mean, Y, atol=1e-7)
    np.testing.assert_allclose(variance, 0.0, atol=1e-7)


def test_interpolation_of_levels():
    import pandas as pd

    from vff import Categorical

    frame = pd.DataFrame({"g": ["A", "B", "C"]})
    kernel = Categorical("g", variance=fixed(1.0))
    model = GPRegressor(kernel, noise_variance=fixed(1e-10), normalize_y=False).fit(frame, [1.0, 2.0, 3.0])
    mean, variance = model.predict_f(frame)
    np.testing.assert_allclose(mean, [1, 2, 3], atol=1e-7)
    np.testing.assert_allclose(variance, 0.0, atol=1e-7)


@learnt_kernels
def test_learning_improves_the_evidence(name):
    model = model_of(name, 1e-3).fit(X, Y)
    assert bound(model) > bound(model, KERNELS[name][0])


@every_kernel
def test_the_bound_is_that_of_the_learnt_kernel(name):
    model = model_of(name, 1e-3).fit(X, Y)
    assert bound(model) == pytest.approx(model.elbo_, abs=1e-6)


@learnt_kernels
def test_nothing_is_left_to_gain(name):
    """In any learnt number, or it stands at its bound."""
    learnt = [own for own in ("variance", "lengthscale") if not _is_held(KERNELS[name][0], own)]
    flat = {"variance": _flat(30.0), "lengthscale": _flat(3.0)}
    model = model_of(name, 1e-2, priors={own: flat[own] for own in learnt}).fit(X, Y)
    for own in learnt:
        value = float(getattr(model.kernel_, own))
        ends = getattr(getattr(KERNELS[name][0], own), "bounds", (0.0, np.inf))
        up, down = (bound(model, _moved(model.kernel_, own, value * np.exp(step))) for step in (1e-3, -1e-3))
        assert abs(up - down) / 2e-3 < 1e-2 or np.isclose(value, ends).any()


def _flat(median: float):
    from vff.priors import LogNormal

    return LogNormal(median, 50.0)


def _is_held(kernel, name: str) -> bool:
    ends = getattr(getattr(kernel, name), "bounds", (0.0, 1.0))
    return ends[0] == ends[1]


def _moved(kernel, name: str, value: float):
    return clone(kernel, safe=False).set_params(**{name: value})


@learnt_kernels
def test_bounds_hold(name):
    model = model_of(name).fit(X, Y)
    for own in ("variance", "lengthscale"):
        low, high = getattr(getattr(KERNELS[name][0], own), "bounds", (0.0, np.inf))
        assert low <= float(getattr(model.kernel_, own)) * (1 + 1e-12)
        assert float(getattr(model.kernel_, own)) <= high * (1 + 1e-12)


@learnt_kernels
@pytest.mark.parametrize("lengthscale", np.logspace(-3, 3, 13))
def test_gradient(name, lengthscale):
    """Of what is learnt from, against differences, wherever the lengthscale starts."""
    from vff.inference import SumModel, Term
    from vff.moments import moments_of_arrays

    kernel, constant = KERNELS[name]
    sums = GPRegressor(kernel, noise_variance=1e-3, normalize_y=constant, optimizer=None, frequencies=40).fit(X, Y)
    request = sums.statistics_.moments.request
    intercept = 100.0 if constant else None
    model = SumModel((Term((kernel.factor,)),), moments_of_arrays(request, [X[:, 0]], Y, np.ones(6)),
                     intercept=intercept)  # fmt: skip
    theta = np.log([float(kernel.variance), lengthscale / 3.5, 1e-3])
    form = model.at(theta)
    gradient = model.pull_back(theta, form.objective_cotangents)
    for i, step in enumerate(1e-4 * np.eye(3)):
        ends = [model.at(theta + sign * step).objective for sign in (2, 1, -1, -2)]
        slope = (8 * (ends[1] - ends[2]) - (ends[0] - ends[3])) / 12e-4
        assert gradient[i] == pytest.approx(slope, rel=5e-4, abs=1e-4)


@every_kernel
def test_prior(name):
    kernel, _ = KERNELS[name]
    mean, covariance = GPRegressor(kernel).predict_f(X, full_covariance=True)
    np.testing.assert_array_equal(mean, 0.0)
    np.testing.assert_allclose(np.diagonal(covariance), float(kernel.variance))


@every_kernel
def test_statistics_of_draws(name):
    model = model_of(name).fit(X, Y)
    mean, variance = model.predict_f(NEW)
    draws = model.sample_y(NEW, 20_000, random_state=0)
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=0.05 * np.sqrt(variance.max()) + 1e-6)
    np.testing.assert_allclose(draws.var(axis=1) / variance.max(), variance / variance.max(), atol=0.06)


@pytest.mark.parametrize("optimizer", [None, "lbfgs"])
@pytest.mark.parametrize("kernel", [Matern52(0, variance=1.0, lengthscale=1.0), Matern32(0, variance=1, lengthscale=1)])
def test_without_an_optimizer(optimizer, kernel):
    learnt = GPRegressor(kernel, noise_variance=0.1, optimizer=optimizer).fit(X, Y).kernel_
    assert (learnt.variance == pytest.approx(1.0) and learnt.lengthscale == pytest.approx(1.0)) is (optimizer is None)


@every_kernel
@pytest.mark.parametrize("target", [Y, np.ones(6)], ids=["wave", "ones"])
def test_covariance_and_standard_deviation(name, target):
    model = model_of(name, 1e-6).fit(X, target)
    _, covariance = model.predict_f(NEW, full_covariance=True)
    _, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(np.sqrt(np.diagonal(covariance) + model.noise_variance_), std, atol=1e-6)


def test_lengthscales_by_column():
    own = np.random.RandomState(0)
    rows = own.uniform(-1, 1, (50, 2))
    kernel = Matern52(0) * Matern52(1)
    target = np.sin(2 * rows[:, 0]) + np.sin(0.2 * rows[:, 1])  # a line has no lengthscale
    model = GPRegressor(kernel, noise_variance=fixed(1e-6), frequencies=6).fit(rows, target)
    first, second = model.kernel_.factors
    assert second.lengthscale > 5 * first.lengthscale


@every_kernel
def test_units_of_y(name):
    """A model of standardised targets, scaled back, is that of the targets: units are never the model's."""
    kernel, _ = KERNELS[name]
    scale = float(Y.std())
    wide = clone(kernel, safe=False).set_params(variance=kernel.variance)
    small = GPRegressor(wide, noise_variance=fixed(1e-6)).fit(X, (Y - Y.mean()) / scale)
    variance = kernel.variance
    scaled = fixed(variance * scale**2) if _is_held(kernel, "variance") else variance.times(scale**2)
    large = GPRegressor(
        clone(kernel, safe=False).set_params(variance=scaled), noise_variance=fixed(1e-6 * scale**2)
    ).fit(X, Y)
    for one, other in zip(small.predict(NEW, return_std=True), large.predict(NEW, return_std=True), strict=True):
        shift = Y.mean() if one is not None and np.allclose(one, small.predict(NEW)) else 0.0
        np.testing.assert_allclose(scale * one + shift, other, atol=1e-4 * scale)


def test_a_large_variance():
    small, large = (GPRegressor(Matern52(0)).fit(X, times * Y) for times in (1.0, 10.0))
    for one, other in zip(small.predict(NEW, return_std=True), large.predict(NEW, return_std=True), strict=True):
        np.testing.assert_allclose(10.0 * one, other, rtol=1e-4)


def test_a_singular_covariance():
    """Lines of two columns that are one, without noise: an answer and not an error."""
    rows = np.arange(12.0).reshape(6, 2)
    model = GPRegressor(Linear(0) + Linear(1), noise_variance=fixed(1e-10)).fit(rows, np.ones(6))
    np.testing.assert_allclose(model.predict(rows), 1.0, atol=1e-6)


@every_kernel
def test_two_rows_at_one_place(name):
    answers = []
    for shift in (0.0, 1e-15):
        rows, target = np.vstack([X, X[0] + shift]), np.append(Y, Y[0] + 1)
        answers.append(model_of(name, 1e-2).fit(rows, target).predict(np.linspace(1, 8, 50)[:, None], return_std=True))
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-6)


def test_a_prior_without_numbers():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError, match="to ask the prior, give a kernel with all its numbers"):
        GPRegressor().predict(X)


def test_ends_at_bounds_are_told():
    model = GPRegressor(Matern52(0, lengthscale=between(1e-5, 1e-3))).fit(X, Y)
    assert any("lengthscale ended at its" in note for note in model.notes_)
    both = GPRegressor(Matern52(0, lengthscale=between(1e3, 1e5)), noise_variance=between(1e-5, 1e-3)).fit(X, Y)
    assert any("lengthscale ended at its lower bound" in note for note in both.notes_)
    assert any("noise ended at its upper bound" in note for note in both.notes_)


def test_a_held_period():
    kernel = Matern52(0, variance=50.0**2, lengthscale=50.0) + Periodic(0, period=fixed(1.0), lengthscale=1.0)
    assert np.isfinite(GPRegressor(kernel).fit(X, Y).elbo_)


@every_kernel
def test_a_constant_target(name):
    kernel, _ = KERNELS[name]
    mean, variance = GPRegressor(kernel, noise_variance=fixed(1e-10)).fit(X, np.ones(6)).predict_f(X)
    np.testing.assert_allclose(mean, 1.0, atol=1e-6)
    np.testing.assert_allclose(variance, 0.0, atol=1e-7)


def test_covariance_of_a_nearly_singular_kernel():
    own = np.random.default_rng(0)
    rows, target = own.uniform(-1.5, 1.5, (6, 2)), own.normal(size=6)
    kernel = Matern52(0, variance=9e5, lengthscale=590.0) * Matern52(1, lengthscale=1300.0)
    model = GPRegressor(kernel, noise_variance=1e-5, optimizer=None, frequencies=6).fit(rows, target)
    new = np.array([[-1.0, -1.0], [1.0, 1.0]])
    _, variance = model.predict_f(rows)
    _, covariance = model.predict_f(rows, full_covariance=True)
    np.testing.assert_allclose(np.diagonal(covariance), variance, rtol=1e-3, atol=1e-7)
    assert np.isfinite(model.predict(new * 0.1)).all()


def test_error_bars_of_the_wrong_length():
    with pytest.raises(ValueError, match="noise_std"):
        GPRegressor(Matern52(0)).fit(X, Y, noise_std=np.zeros(100))


@pytest.mark.parametrize("normalize_y", [True, False])
@pytest.mark.parametrize("column", [False, True])
def test_shapes(normalize_y, column):
    own = np.random.RandomState(1234)
    rows, new = own.randn(9, 6), own.randn(7, 6)
    target = own.randn(9, 1) if column else own.randn(9)
    model = GPRegressor(normalize_y=normalize_y, frequencies=3, domain=(-5, 5))
    if column:
        with pytest.warns(match="column-vector y was passed"):
            model.fit(rows, target)
    else:
        model.fit(rows, target)
    mean, std = model.predict(new, return_std=True)
    assert mean.shape == std.shape == (7,)
    assert model.predict_f(new, full_covariance=True)[1].shape == (7, 7)
    assert model.sample_y(new, 5).shape == (7, 5)


@pytest.mark.parametrize("n_samples", [1, 5])
def test_shapes_of_a_prior(n_samples):
    own = np.random.RandomState(1024)
    rows, target = own.randn(10, 3), own.randn(10)
    one, *others = (Matern52(c, variance=1.0, lengthscale=1.0) for c in range(3))
    kernel = sum(others, one)
    model = GPRegressor(kernel, noise_variance=0.1, frequencies=5)
    before = [model.sample_y(rows, n_samples).shape, *(part.shape for part in model.predict(rows, return_std=True))]
    model.fit(rows, target)
    after = [model.sample_y(rows, n_samples).shape, *(part.shape for part in model.predict(rows, return_std=True))]
    assert before == after


def test_rows_are_left_as_they_are():
    model, rows = GPRegressor(Matern52(0)).fit(X, Y), NEW.copy()
    model.predict(rows, return_std=True)
    np.testing.assert_array_equal(rows, NEW)


@every_kernel
def test_the_mean_alone(name):
    model = model_of(name).fit(X, Y)
    mean = model.predict(NEW)
    assert isinstance(mean, np.ndarray)
    np.testing.assert_allclose(mean, model.predict(NEW, return_std=True)[0], atol=1e-9)
