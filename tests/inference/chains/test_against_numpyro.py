"""A small model without conjugacy against NumPyro: the paper's K_uu written out, hyperparameters and f compared."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vff import GPRegressor, Matern32
from vff.inference.methods.chains.diagnostics import bulk_ess
from vff.priors import Exponential, LogNormal, Normal, OfSd

numpyro = pytest.importorskip("numpyro")

N, M, A, B = 60, 4, -1.0, 5.0
RNG = np.random.default_rng(4)
X = np.sort(RNG.uniform(0.0, 4.0, N))
NEW = np.array([0.1, 0.9, 2.0, 3.3, 3.95])
TARGETS = {
    "poisson": RNG.poisson(np.exp(0.4 + np.sin(2.0 * X))).astype(float),
    "bernoulli": (RNG.random(N) < 1.0 / (1.0 + np.exp(-2.0 * np.sin(2.0 * X)))).astype(float),
}
PLACES, WEIGHTS = np.polynomial.hermite_e.hermegauss(20)


def features(x: np.ndarray) -> np.ndarray:
    """Cosines, with the constant, and sines on [A, B]."""
    omega = 2.0 * np.pi * np.arange(M + 1) / (B - A)
    angle = np.multiply.outer(x - A, omega)
    return np.concatenate([np.cos(angle), np.sin(angle)[:, 1:]], axis=1)


def prior_matrix(variance: Any, lengthscale: Any) -> Any:
    """K_uu of a Matern-3/2 as Hensman, Durrande and Solin (2018) have it: diagonal and rank one, for either half."""
    rate = jnp.sqrt(3.0) / lengthscale
    omega = 2.0 * np.pi * jnp.arange(M + 1) / (B - A)
    density = 4.0 * rate**3 * variance / (rate**2 + omega**2) ** 2
    alpha = 0.5 * (B - A) / density * jnp.where(omega == 0.0, 2.0, 1.0)
    K = jnp.zeros((2 * M + 1, 2 * M + 1))
    K = K.at[: M + 1, : M + 1].set(jnp.diag(alpha) + 1.0 / variance)
    gamma = omega[1:] / (rate * jnp.sqrt(variance))
    return K.at[M + 1 :, M + 1 :].set(jnp.diag(alpha[1:]) + jnp.outer(gamma, gamma))


def function_at(x: np.ndarray, variance: Any, lengthscale: Any, constant: Any, v: Any) -> tuple[Any, Any]:
    """Mean and variance of f given u = chol(K) v."""
    L = jnp.linalg.cholesky(prior_matrix(variance, lengthscale))
    half = jax.scipy.linalg.solve_triangular(L, features(x).T, lower=True)
    return constant + half.T @ v, variance - jnp.sum(half**2, axis=0)


def expected(name: str, y: np.ndarray, mean: Any, variance: Any) -> Any:
    if name == "poisson":
        return jnp.sum(y * mean - jnp.exp(mean + 0.5 * variance))
    f = mean[:, None] + jnp.sqrt(variance)[:, None] * PLACES
    return jnp.sum(-jnp.logaddexp(0.0, jnp.where(y[:, None] > 0.5, -f, f)) @ WEIGHTS) / np.sqrt(2.0 * np.pi)


def dense_model(name: str) -> None:
    import numpyro.distributions as dist

    sd = numpyro.sample("sd", dist.Exponential(1.0))
    lengthscale = numpyro.sample("lengthscale", dist.LogNormal(jnp.log(1.2), 0.5))
    constant = numpyro.sample("constant", dist.Normal(0.2, 1.5))
    v = numpyro.sample("v", dist.Normal(0.0, 1.0).expand([2 * M + 1]))
    mean, rest = function_at(X, sd**2, lengthscale, constant, v)
    numpyro.factor("rows", expected(name, TARGETS[name], mean, rest))
    f, own = function_at(NEW, sd**2, lengthscale, constant, v)
    numpyro.deterministic("f", f)
    numpyro.deterministic("rest", own)


def by_numpyro(name: str) -> dict[str, np.ndarray]:
    """(chains, draws, ...) by name."""
    from numpyro.infer import MCMC, NUTS

    with jax.enable_x64(True):
        kernel = NUTS(dense_model, target_accept_prob=0.9)
        chains = MCMC(kernel, num_warmup=300, num_samples=600, num_chains=2, chain_method="sequential",
                      progress_bar=False)  # fmt: skip
        chains.run(jax.random.PRNGKey(2), name)
        return {key: np.asarray(values) for key, values in chains.get_samples(group_by_chain=True).items()}


def same_law(one: np.ndarray, other: np.ndarray) -> None:
    """Means and standard deviations within four Monte Carlo errors; (chains, draws) each."""
    sizes = [min(bulk_ess(x), x.size) for x in (one, other)]
    sds = [x.std() for x in (one, other)]
    error = np.sqrt(sum(sd**2 / size for sd, size in zip(sds, sizes, strict=True)))
    assert abs(one.mean() - other.mean()) < 4.0 * error
    squares = [(x - x.mean()) ** 2 for x in (one, other)]
    spread = np.sqrt(sum(s.var() / min(bulk_ess(s), s.size) for s in squares))
    assert abs(squares[0].mean() - squares[1].mean()) < 4.0 * spread


@pytest.mark.parametrize("name", TARGETS)
def test_hyperparameters_and_function_agree_with_numpyro(name):
    priors = {"variance": OfSd(Exponential(1.0)), "lengthscale": LogNormal(1.2, 0.5), "constant": Normal(0.2, 1.5)}
    model = GPRegressor(
        Matern32(0), likelihood=name, frequencies=M, edges=0, domain=(A, B), inference="mcmc", priors=priors,
        draws=500, warmup=300, chains=2, random_state=1,
    ).fit(X[:, None], TARGETS[name])  # fmt: skip
    truth, values = by_numpyro(name), model.samples_.values
    assert model.samples_.divergences == 0
    assert model.frequencies_ == {0: M}
    same_law(np.log(values["variance[0]"]), np.log(truth["sd"] ** 2))
    same_law(np.log(values["lengthscale[0]"]), np.log(truth["lengthscale"]))
    same_law(values["constant"], truth["constant"])
    drawn, rest = model.posterior_.values(NEW[:, None])
    assert len(model.samples_.kept) == 1000
    f = (model.target_.mean + drawn).reshape(5, 2, 500)
    for n in range(5):
        same_law(f[n], truth["f"][:, :, n])
    np.testing.assert_allclose(rest, truth["rest"].mean(axis=(0, 1)), rtol=0.25)
