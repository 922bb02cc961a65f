"""Pure effects against their definition: averages by loops over the rows, variances by dense algebra."""

from functools import reduce
from itertools import chain, combinations

import numpy as np
import pandas as pd
import pytest

import vff
import vff.inference.learning.solver as solvers_module
from vff import Categorical, GPRegressor, Linear, Matern12, Matern32, Matern52, Periodic
from vff.inference.posterior import Averaged, Pieces, Posterior

T, V, G = Matern32("t", variance=1.0, lengthscale=2.0), Matern52("v", lengthscale=1.0), Categorical("g", variance=0.7)
KERNELS = {
    "by group": T + G + T * G,
    "other harmonics": Matern12("t", variance=2.0, lengthscale=5.0) + V + Matern52("t", lengthscale=3.0) * V,
    "one main effect": T + T * V,
    "no main effect": T * V,
    "two products": T + G + V + T * G + V * T,
    "three": T + G + T * V + T * V * G,
    "three with all": T + G + V + T * V + V * G + G * T + T * V * G,
    "three with one": G + T * V * G,
    "a season that drifts": Periodic("t", 3.0, variance=1.0, lengthscale=1.0)
    + Matern32("t", lengthscale=4.0)
    + Periodic("t", 3.0, variance=1.0, lengthscale=1.0) * Matern32("t", lengthscale=4.0),
    "lines": Linear("v", variance=1.0) + G + Linear("v", variance=1.0) * G,
    "a slope that varies": Linear("v", variance=1.0) + T + Linear("v", variance=1.0) * T,
    "a function of the phase": Periodic("t", 3.0, variance=1.0, lengthscale=1.0) + G + T * G,
    "a trend beside a season that drifts": Matern32("t", lengthscale=4.0)
    + Periodic("t", 3.0, variance=1.0, lengthscale=1.0) * Matern32("t", lengthscale=4.0),
}


def _frame(N: int, seed: int = 0) -> pd.DataFrame:
    """Columns that depend on one another, so that averages over rows are no products."""
    rng = np.random.default_rng(seed)
    g = rng.integers(0, 3, N)
    t = np.clip(rng.uniform(0, 8, N) + g, 0.1, 9.9)
    v = np.clip(0.2 * t + rng.normal(size=N), -1.9, 3.9)
    return pd.DataFrame({"t": t, "v": v, "g": np.array(list("abc"))[g]})


def _targets(frame: pd.DataFrame) -> np.ndarray:
    rng = np.random.default_rng(9)
    f = np.sin(frame["t"]) + 0.5 * frame["v"] * (frame["g"] == "b") + (frame["g"] == "c")
    return f.to_numpy() + 0.3 * rng.normal(size=len(frame))


OPTIONS = {"optimizer": None, "domain": {"t": (0.0, 10.0), "v": (-2.0, 4.0)}}


def _model(name: str, N: int = 90, **options) -> tuple[GPRegressor, pd.DataFrame]:
    harmonics = {"t": 4, "v": 2} if "'v'" in repr(KERNELS[name]) else {"t": 4}
    if name == "other harmonics":
        harmonics = {"t": 5, "v": 2, "t * v": (3, 2)}
    if "a season that drifts" in name:
        harmonics = 3
    if name == "lines":
        harmonics = "auto"
    asked = {"noise_variance": 0.09, "frequencies": harmonics} | OPTIONS | options
    if "likelihood" in options:
        asked.pop("noise_variance")
    asked["domain"] = {c: ends for c, ends in OPTIONS["domain"].items() if f"'{c}'" in repr(KERNELS[name])}
    frame = _frame(N)
    y = _targets(frame)
    if options.get("likelihood") == "poisson":
        y = np.floor(np.exp(0.5 * y))
    return GPRegressor(KERNELS[name], **asked).fit(frame, y), frame


def _subsets(items):
    items = sorted(items)
    return [frozenset(some) for some in chain(*(combinations(items, k) for k in range(len(items) + 1)))]


def _receiver(model, t, some):
    """The number of the term over exactly these factors of term t, in the words of the rule."""
    terms, columns = model.statistics_.terms, model.statistics_.binding.columns
    inner = model.posterior_.terms

    def read(s, factors):
        return sorted((columns[terms[s].columns[d]].index, repr(inner[s].factors[d].domain.variable)) for d in factors)

    axes = sorted(terms[t].columns[d] for d in some)
    able = [s for s, own in enumerate(terms) if s != t and read(s, range(len(own.columns))) == read(t, some)]
    alike = [s for s in able if sorted(terms[s].columns) == axes]
    return (alike or able or [t])[0]


def _functionals(model, rows, new):
    """For every effect and every term: the signs and sets of factors at the row that its sum is made of."""
    posterior = model.posterior_
    T = len(posterior.terms)
    found = [[[] for _ in range(T)] for _ in range(T)]
    for t, term in enumerate(posterior.terms):
        D = len(term.factors)
        taken = set()
        for some in sorted(_subsets(range(D)), key=lambda one: (-len(one), sorted(one))):
            fixed = {d for d, own in enumerate(term.factors) if own.factor.one(own.basis) is None}
            if not some or not some >= fixed:
                continue
            s = t if len(some) == D else _receiver(model, t, some)
            if (s, t) in taken and s != t:
                s = t
            taken.add((s, t))
            for inner in (one for one in _subsets(some) if one >= fixed):
                found[s][t].append(((-1) ** (len(some) - len(inner)), inner))
    return found


def _dense(model, S, rows, new):
    """Mean and variance of every effect at new rows, (N, T) each; S is the covariance with the constant held."""
    posterior: Posterior = model.posterior_
    places, terms = posterior.request.slices, posterior.terms
    fit_x, new_x = (model._evaluate(frame, lambda one: (one.x,))[0] for frame in (rows, new))
    made = _functionals(model, fit_x, new_x)
    averages = [
        [np.mean([f.features(fit_x[n : n + 1, c])[0] for n in range(len(fit_x))], axis=0) for c, f in _factors(term)]
        for term in terms
    ]

    def functional(s, x):
        w = np.zeros(posterior.request.size)
        for t, term in enumerate(terms):
            phi = [f.features(x[None, c])[0] for c, f in _factors(term)]
            for sign, inner in made[s][t]:
                w[places[t]] += sign * reduce(
                    np.kron, [phi[d] if d in inner else averages[t][d] for d in range(len(phi))]
                )
        return w

    def remainder(s, x):
        total = 0.0
        for t, term in enumerate(terms):
            for sign, one in made[s][t]:
                for other_sign, other in made[s][t]:
                    kernel = carried = sign * other_sign * term.variance
                    for d, (c, f) in enumerate(_factors(term)):
                        left, right = (f.features(x[None, c])[0] if d in e else averages[t][d] for e in (one, other))
                        seen = left @ f.K.solve(right[:, None])[:, 0]
                        whole = float(np.squeeze(f.prior_variance(x[None, c])))
                        kernel *= whole if d in one and d in other else seen
                        carried *= seen
                    total += kernel - carried
        return total

    mean, variance = np.zeros((2, len(new_x), len(terms)))
    for s in range(len(terms)):
        centre = np.mean([functional(s, x) for x in fit_x], axis=0)
        for n, x in enumerate(new_x):
            w = functional(s, x) - centre
            mean[n, s] = w @ posterior.mean
            variance[n, s] = w @ S @ w + remainder(s, x)
            if posterior.intercept is not None:
                variance[n, s] += posterior.intercept.variance * (w @ posterior.intercept.answer) ** 2
    return mean, variance


def _factors(term):
    return list(zip(term.columns, term.factors, strict=True))


def _compare(model, S, rows, new, rtol=1e-6):
    scale = model.target_.scale
    mean, variance = _dense(model, S, rows, new)
    effects = model.effects(new)
    np.testing.assert_allclose(effects.mean / scale, mean, atol=1e-8)
    np.testing.assert_allclose((effects.std / scale) ** 2, variance, rtol=rtol, atol=1e-8)


def _sums(model, frame):
    function = model.effects(frame).mean.sum(axis=1) + model.intercept_
    np.testing.assert_allclose(function, model.predict_f(frame)[0], atol=1e-9)


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "a slope that varies"])
def test_effects_are_the_definition_by_loops(name):
    """Inside all domains, by letters."""
    model, frame = _model(name)
    _sums(model, frame)
    np.testing.assert_allclose(model.effects(frame).mean.mean(axis=0), 0.0, atol=1e-9)
    _compare(model, model.posterior_.covariance.matrix(), frame, _frame(7, 5))


@pytest.mark.filterwarnings("ignore::vff.ExtrapolationWarning")
@pytest.mark.parametrize("name", ["by group", "three", "two products", "a function of the phase"])
def test_beyond_domains_and_of_levels_never_seen(name):
    model, frame = _model(name)
    new = _frame(8, 5)
    new.loc[:3, "t"] += 9.0
    new.loc[2:5, "g"] = "never seen"
    _sums(model, new)
    _compare(model, model.posterior_.covariance.matrix(), frame, new)


def test_slopes_of_groups_leave_the_common_slope_to_the_line():
    """A line has no function 1 and stays; the average over groups is known from their own term."""
    model, frame = _model("lines")
    own, margin = model._pure_effects[0].parts
    assert (own.term, margin.term, margin.over) == (0, 2, (0,))
    _sums(model, frame)
    _compare(model, model.posterior_.covariance.matrix(), frame, _frame(6, 5))


def test_a_slope_that_varies_is_shown_as_it_is_however_fine_the_others_are():
    model, frame = _model("a slope that varies", frequencies={"t": 6, "v * t": 3})
    assert all(effect.plain for effect in model._pure_effects)
    _sums(model, frame)


@pytest.mark.parametrize("name", ["by group", "other harmonics", "three"])
def test_another_likelihood(name):
    model, frame = _model(name, likelihood="poisson")
    _sums(model, frame)
    _compare(model, model.posterior_.covariance.matrix(), frame, _frame(6, 5))


@pytest.mark.filterwarnings("ignore::vff.ExtrapolationWarning")
@pytest.mark.parametrize("covariance", ["kronecker", "two kroneckers", "factorised"])
@pytest.mark.parametrize("name", ["by group", "three"])
def test_structured_covariances(name, covariance):
    model, frame = _model(name, covariance=covariance, likelihood="poisson")
    found = model.posterior_.covariance
    assert isinstance(found, Pieces)
    S = np.zeros((found.request.size,) * 2)
    for place, pieces in zip(found.request.slices, found.roots, strict=True):
        S[place, place] = sum(reduce(np.kron, [L @ L.T for L in piece]) for piece in pieces)
    new = _frame(8, 5)
    new.loc[:2, "t"] += 9.0
    _sums(model, new)
    _compare(model, S, frame, new)


@pytest.mark.filterwarnings("ignore::vff.ExtrapolationWarning")
@pytest.mark.parametrize("name", ["by group", "two products", "three"])
def test_the_solver_without_a_factor(name, monkeypatch):
    """Means to rounding; variances as well as the probes know them, which is their sum written out exactly."""
    monkeypatch.setattr(solvers_module, "LARGEST_DIRECT", 2)
    model, frame = _model(name)
    assert model.solver_ == "iterative"
    covariance = model.posterior_.covariance
    S = np.stack([covariance.product(unit) for unit in np.eye(covariance.request.size)])
    exact = covariance.form.solve(np.eye(covariance.request.size))
    assert np.abs(S - exact).max() < 0.05 * np.abs(exact).max()
    new = _frame(8, 5)
    new.loc[:2, "t"] += 9.0
    _sums(model, new)
    _compare(model, S, frame, new)


@pytest.mark.parametrize("name", ["by group", "three"])
def test_averages_over_draws(name):
    """With another prior covariance for every coefficient than that of the hyperparameters in the middle."""
    model, frame = _model(name)
    before = model.posterior_.covariance
    carried = tuple(1.3 * term.prior_covariance() for term in before.terms)
    taken = tuple(
        own + K - term.prior_covariance() for own, K, term in zip(before.taken, carried, before.terms, strict=True)
    )
    P = before.request.size
    covariance = Averaged(before.terms, taken, before.shared, carried, np.zeros((2, P)), np.zeros(2))
    posterior, new = model.posterior_, _frame(6, 5)
    object.__setattr__(
        model.fit_,
        "posterior",
        Posterior(
            posterior.mean, covariance, posterior.centre, posterior.centre_covariance, intercept=posterior.intercept
        ),
    )
    model.posterior_ = model.fit_.posterior
    _compare(model, before.matrix(), frame, new)
    np.testing.assert_allclose(covariance.product(np.eye(P)[3]), before.matrix()[3], atol=1e-10)


def test_a_smooth_by_group_has_bands_of_a_tenth():
    """As they are, two deviations are about one: t, g and their product can stand in for one another."""
    rng = np.random.default_rng(2)
    t, g = rng.uniform(0, 10, 3000), rng.integers(0, 4, 3000)
    curves = np.sin(t[:, None] + 0.7 * np.arange(4)) + 0.4 * np.arange(4)
    y = curves[np.arange(3000), g] + 0.3 * rng.normal(size=3000)
    frame = pd.DataFrame({"t": t, "g": np.array(list("abcd"))[g]})
    kernel = Matern32("t", variance=1.0, lengthscale=3.0) + Categorical("g", variance=1.0)
    kernel = kernel + Matern32("t", variance=1.0, lengthscale=3.0) * Categorical("g")
    model = GPRegressor(kernel, optimizer=None, noise_variance=0.09, frequencies=12).fit(frame, y)
    new = pd.DataFrame({"t": np.repeat(np.linspace(0.5, 9.5, 50), 4), "g": list("abcd") * 50})
    as_they_are, pure = model.effects(new, pure=False), model.effects(new)
    assert np.all(2.0 * as_they_are.std.max(axis=0) > [0.7, 0.9, 1.2])
    assert np.all(2.0 * pure.std.max(axis=0) < 0.12)
    every = np.sin(new["t"].to_numpy()[:, None] + 0.7 * np.arange(4)) + 0.4 * np.arange(4)
    codes = np.arange(200) % 4
    level = np.array([curves[:, k].mean() for k in range(4)])
    truth = every.mean(axis=1) - curves.mean(), level[codes] - level.mean()
    truth = (*truth, every[np.arange(200), codes] - curves.mean() - truth[0] - truth[1])
    assert np.abs(pure.mean - np.stack(truth, axis=1)).max() < 0.12


def test_without_products_nothing_changes():
    frame = _frame(80)
    model = GPRegressor(Matern32("t") + Categorical("g"), frequencies=5).fit(frame, _targets(frame))
    for one, other in zip(model.effects(frame)[1:], model.effects(frame, pure=False)[1:], strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises((TypeError, ValueError), match="pure"):
        model.effects(frame, pure="yes")


def test_a_classifier_has_pure_effects():
    frame = _frame(200)
    y = _targets(frame) > 0.3
    model = vff.GPClassifier(KERNELS["by group"], frequencies=4, optimizer=None).fit(frame, y)
    _sums(model, frame)
    _compare(model, model.posterior_.covariance.matrix(), frame, _frame(6, 5))
