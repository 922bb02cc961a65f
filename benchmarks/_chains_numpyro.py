# pyright: reportMissingImports=false
"""NumPyro's side of chains.py: ``python _chains_numpyro.py FOLDER PROBLEM FORM`` prints one line of JSON.

The Hilbert-space approximation of NumPyro (Riutort-Mayol et al., 2023) in float64, NUTS with a device per chain. FORM:

    by hand    what a careful user writes: two small matrix products instead of the matrix of all eigenfunctions, or
               rows pooled into bins so narrow that the posterior is the same
    stock      the matrix of all eigenfunctions at all rows; only the time of a gradient is measured

Both forms of a problem have the same posterior, so that chains behave alike and the times of a gradient translate one
into the other.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _chains_problems import PROBLEMS, Clock, Problem, told

BINS = 2000  # over the range of the rows
DEVICES = 2
LEAST_SECONDS = 2.0
LOOP = 20  # gradients that are compiled together


class Rows(NamedTuple):
    """What the likelihood needs: log rates are c + at(coefficients), of counts y with exposures w."""

    at: Callable[[Any], Any]
    y: Any
    w: Any


def sizes(problem: Problem) -> list[int]:
    """Eigenfunctions by column."""
    return [problem.eigenfunctions] * problem.columns


def roots(problem: Problem, lengthscales: list[Any]) -> list[Any]:
    """Square roots of the spectral densities of every column, for unit variance."""
    import jax.numpy as jnp
    from numpyro.contrib.hsgp.spectral_densities import diag_spectral_density_matern

    half, m = problem.half_length, problem.eigenfunctions
    return [jnp.sqrt(diag_spectral_density_matern(1.5, 1.0, own, half, m, 1)).reshape(-1) for own in lengthscales]


def eigenfunctions(problem: Problem, x: np.ndarray) -> Any:
    """Of one column, (n, m)."""
    from numpyro.contrib.hsgp.laplacian import eigenfunctions

    return eigenfunctions(x - 0.5, problem.half_length, problem.eigenfunctions)


def stock(problem: Problem, X: np.ndarray, y: np.ndarray) -> Rows:
    """All eigenfunctions at all rows."""
    from numpyro.contrib.hsgp.laplacian import eigenfunctions

    phi = eigenfunctions(X - 0.5, [problem.half_length] * problem.columns, sizes(problem))
    return Rows(lambda b: phi @ b.reshape(-1), y, np.ones(y.size))


def by_hand(problem: Problem, X: np.ndarray, y: np.ndarray) -> Rows:
    """A lattice column by column, or bins of one column."""
    if problem.columns == 2:
        first, second = (eigenfunctions(problem, np.unique(x)) for x in X.T)
        return Rows(lambda b: (first @ b @ second.T).reshape(-1), y, np.ones(y.size))
    place = np.minimum((X[:, 0] * BINS).astype(int), BINS - 1)
    phi = eigenfunctions(problem, (np.arange(BINS) + 0.5) / BINS)
    return Rows(lambda b: phi @ b, np.bincount(place, y, BINS), np.bincount(place, minlength=BINS))


FORMS = {"by hand": by_hand, "stock": stock}


def law(prior: tuple[str, float, float]) -> Any:
    """A prior, by name."""
    import numpyro.distributions as dist

    name, first, second = prior
    if name == "Gamma":
        return dist.Gamma(first, 1.0 / second)
    return dist.LogNormal(np.log(first), second) if name == "LogNormal" else dist.Normal(first, second)


def model(problem: Problem, rows: Rows) -> None:
    """Poisson counts whose log rate is a constant and a product of Matérn-3/2."""
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    names = [f"lengthscale[{d}]" for d in range(problem.columns)]
    lengthscales = [numpyro.sample(name, law(problem.priors["lengthscale"])) for name in names]
    variance = numpyro.sample("variance", law(problem.priors["variance"]))
    constant = numpyro.sample("constant", law(problem.priors["constant"]))
    spread = jnp.sqrt(variance)
    for root in roots(problem, lengthscales):
        spread = jnp.multiply.outer(spread, root)
    if problem.centred:
        b: Any = numpyro.sample("coefficients", dist.Normal(0.0, spread).to_event(problem.columns))
    else:
        white: Any = numpyro.sample("coefficients", dist.Normal(0.0, 1.0).expand(sizes(problem)).to_event())
        b = spread * white
    f = constant + rows.at(b)
    numpyro.factor("rows", jnp.sum(rows.y * f - rows.w * jnp.exp(f)))


def gradient_seconds(problem: Problem, rows: Rows) -> float:
    """Of one gradient of the log-density in a compiled loop, while every device runs one."""
    import jax
    from numpyro.infer.util import initialize_model

    keys = jax.random.split(jax.random.PRNGKey(0), DEVICES)
    info = initialize_model(keys, model, model_args=(problem, rows))
    slope = jax.grad(info.potential_fn)

    def step(_: Any, z: Any) -> Any:
        return jax.tree.map(lambda value, g: value - 1e-12 * g, z, slope(z))

    loop = jax.pmap(lambda z: jax.lax.fori_loop(0, LOOP, step, z))
    z = info.param_info.z
    jax.block_until_ready(loop(z))
    count, started = 0, time.perf_counter()
    while not count or time.perf_counter() - started < LEAST_SECONDS:
        jax.block_until_ready(loop(z))
        count += LOOP
    return (time.perf_counter() - started) / count


def sample(problem: Problem, rows: Rows, clock: Clock) -> dict[str, Any]:
    import jax
    from numpyro.infer import MCMC, NUTS, init_to_median

    kernel = NUTS(model, init_strategy=init_to_median, dense_mass=problem.dense_mass)
    plan: dict[str, Any] = {"num_warmup": problem.warmup, "num_samples": problem.draws, "num_chains": problem.chains}
    chains = MCMC(kernel, **plan, chain_method="parallel", progress_bar=False)
    started = time.perf_counter()
    chains.run(jax.random.PRNGKey(problem.seed), problem, rows, extra_fields=("num_steps", "diverging"))
    values = {name: np.asarray(x) for name, x in chains.get_samples(group_by_chain=True).items()}
    whole, compiling = time.perf_counter() - started, clock.seconds
    extra = {name: np.asarray(x) for name, x in chains.get_extra_fields(group_by_chain=True).items()}
    del values["coefficients"]
    return told(values, extra["num_steps"], int(extra["diverging"].sum()), whole - compiling, whole)


def main() -> None:
    folder, problem, form = Path(sys.argv[1]), PROBLEMS[sys.argv[2]], sys.argv[3]
    if len(sys.argv) > 4:
        problem = problem.shortened(int(sys.argv[4]))
    import numpyro

    numpyro.enable_x64()
    numpyro.set_host_device_count(DEVICES)
    clock = Clock.running()
    rows = FORMS[form](problem, np.load(folder / "X.npy"), np.load(folder / "y.npy"))
    found = sample(problem, rows, clock) if form == "by hand" else {}
    print(json.dumps(found | {"gradient": gradient_seconds(problem, rows)}))


if __name__ == "__main__":
    main()
