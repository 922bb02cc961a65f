"""What users read when something is wrong, names, and likelihoods of their own."""

import copy
import pickle

import numpy as np
import pytest
from scipy import special
from tests.makers.likelihoods import case

from vff import likelihoods as lk


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: lk.Gaussian(-1.0), "variance must be a number above 0, or None"),
        (lambda: lk.Bernoulli("cloglog"), "link must be one of 'logit', 'probit'; got 'cloglog'"),
        (lambda: lk.Bernoulli(squash=0.5), "squash must be at least 0 and below 0.5"),
        (lambda: lk.Ordinal((1.0, 0.0)), "increasing order"),
        (lambda: lk.Ordinal((0.0, 1.0), levels=2), "make 3 levels"),
        (lambda: lk.Ordinal(levels=1), "whole number from two"),
        (lambda: lk.Binomial(None), "needs the column"),
        (lambda: lk.Custom(max, unit=1.0), "name other than unit"),
        (lambda: lk.by_name("binomial"), r"pass Binomial\(trials='column'\)"),
        (lambda: lk.by_name("weibull"), "must be one of gaussian, bernoulli, .* got 'weibull'"),
    ],
)
def test_arguments_that_cannot_be(make, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()


def test_names() -> None:
    assert lk.by_name("logit") == lk.by_name("bernoulli") == lk.Bernoulli("logit")
    assert lk.by_name("probit") == lk.Bernoulli("probit")
    assert lk.by_name("negative-binomial") == lk.NegativeBinomial()
    likelihood = lk.Poisson("e")
    assert lk.by_name(likelihood) is likelihood


def poisson(y, f):
    import jax

    return y * f - jax.numpy.exp(f) - jax.scipy.special.gammaln(y + 1)


def laplace(y, f, scale):
    import jax.numpy as jnp

    return -jnp.abs(y - f) / scale - jnp.log(2 * scale)


def test_custom_reproduces_poisson() -> None:
    custom = lk.Custom(
        poisson, mean=np.exp, variance=np.exp, cdf=lambda y, f: special.pdtr(np.floor(y), np.exp(f)), discrete=True
    )
    y, f, _ = case("poisson").rows()
    one = np.ones_like(f)
    for ours, theirs in zip(
        custom.expected(custom.psi, y, one, f, 0.3 * one),
        lk.Poisson().expected(custom.psi, y, one, f, 0.3 * one),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    for function in (lk.log_predictive,):
        ours, theirs = (function(like, custom.psi, y, one, f, 0.3 * one) for like in (custom, lk.Poisson()))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    np.testing.assert_allclose(
        custom.predictive(f, 0.3 * one, one).moments(), lk.Poisson().predictive(f, 0.3 * one, one).moments()
    )
    assert lk.best_constant(custom, custom.psi, y, one, one) == pytest.approx(np.log(y.mean()), abs=1e-6)


def test_custom_parameters_are_learnt_in_log_space() -> None:
    custom = lk.Custom(laplace, standardised=True, scale=0.5)
    assert custom.parameters == ("scale", "unit")
    assert custom.free.tolist() == [True, False]
    np.testing.assert_allclose(custom.start(np.zeros(3), np.ones(3), np.ones(3)), [np.log(0.5), 0.0])
    fitted = custom.with_values(np.array([np.log(2.0), 0.0])).in_units(10.0)
    assert fitted.values == {"scale": pytest.approx(2.0)}
    one = np.ones(1)
    value = fitted.expected(fitted.psi, 7 * one, one, 2 * one, 0 * one).value[0]
    assert value == pytest.approx(-5 / 20 - np.log(40))
    assert fitted.form == custom.form


def test_custom_copies_and_says_what_it_lacks() -> None:
    custom = lk.Custom(laplace, scale=0.5)
    assert pickle.loads(pickle.dumps(custom)) == custom
    assert copy.deepcopy(custom) == custom
    assert hash(custom) == hash(lk.Custom(laplace, scale=0.5))
    with pytest.raises(ValueError, match=r"needs the mean of a Custom likelihood; pass Custom\(…, mean=function\)"):
        custom.predictive(np.zeros(1), np.ones(1), np.ones(1)).moments()
    with pytest.raises(ValueError, match="needs the sample"):
        custom.sample(np.zeros(1), np.ones(1), np.random.default_rng(0))
