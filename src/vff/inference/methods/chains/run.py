"""Markov chains by BlackJAX: Hamiltonian steps that know a Gaussian, adaptation, several chains side by side.

Positions are scaled so that the posterior is about N(0, I). A Hamiltonian step turns exactly along that Gaussian and is
kicked by what the log-density differs from it (Shahbaba et al., 2014, Split Hamiltonian Monte Carlo):

    p += e/2 (g + m^-1 z);    (z, p) -> (z cos e + m p sin e, p cos e - m^-1 z sin e);    p += e/2 (g + m^-1 z)

with m the inverse mass, g the slope of the log-density. Hyperparameters, whose tails are heavier than a Gaussian's,
take leapfrog steps beside it. White variables that the data say nothing about then cost no accuracy, however many
they are. Step size and mass are adapted as in Stan, with the windows, the dual averaging and the variances of
BlackJAX, drawn towards the scales that are known before.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vff.likelihoods.float64 import float64
from vff.linalg import threads_for
from vff.moments.threads import cores

SAMPLERS = ("nuts", "hmc")
_SHORT, _LONG = 200, 500  # steps of warm-up
_BLOCK = 50  # steps that are compiled together, between two looks at the clock
_ACCEPTANCE = 0.8
_FIRST_STEP = 0.5
# radians along the Gaussian: eight points of this size go round more than half a circle and less than a whole one; with
# longer steps NUTS would turn again before it notices that it has turned
_LONGEST_STEP = 0.75
_KNOWN = 25.0  # draws that the scales known before count for
_MOST_DOUBLINGS = 9
MOST_GRADIENTS = 2**_MOST_DOUBLINGS - 1
_HALVINGS = 20
_QUARTER, _JITTER = 0.5 * np.pi, 0.3  # a quarter turn makes a Gaussian draw independent
_MOST_STEPS = 256
_PATIENCE = 2.0  # seconds between lines of progress
# the emitters of fused loops take as long as all other passes together, and code without them runs as fast here
_QUICK = {"xla_cpu_use_fusion_emitters": False}

LogDensity = Callable[[Any, Any], Any]
"""(data, position) -> log-density; hashable, since it is what compiled code is remembered by."""


@lru_cache(maxsize=1)
def _options() -> dict[str, Any] | None:
    """Options that this version of JAX knows."""
    try:
        jax.jit(lambda x: x + 1, compiler_options=_QUICK)(0.0)
    except (TypeError, ValueError, RuntimeError):
        return None
    return dict(_QUICK)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """``jax.jit``, in less time."""
    return jax.jit(function, compiler_options=_options())


@lru_cache(maxsize=32)
def slope_of(target: LogDensity) -> Callable[..., Any]:
    """(data, position) -> log-density and its gradient, compiled."""
    return compiled(jax.value_and_grad(target, argnums=1))


class Drawn(NamedTuple):
    """What a chain left behind, step by step."""

    position: np.ndarray
    """(draws, size)."""
    lp: np.ndarray
    """The log-density, up to a constant. These names are those of ArviZ."""
    acceptance_rate: np.ndarray
    energy: np.ndarray
    n_steps: np.ndarray
    """Evaluations of the gradient."""
    diverging: np.ndarray


@dataclass(frozen=True)
class Plan:
    """How long to run, and how."""

    draws: int
    warmup: int | None
    """None: as long as the target needs."""
    chains: int
    sampler: str
    seed: int

    def settled(self, *, known: bool) -> "Plan":
        """With a warm-up; a short one where the shape of the posterior is known beforehand."""
        return self if self.warmup is not None else replace(self, warmup=_SHORT if known else _LONG)


class _Carry(NamedTuple):
    state: Any
    step: Any
    """Dual averaging of the step size."""
    mass: Any
    """Variances of the window so far."""
    step_size: Any
    inverse_mass: Any


def _turning(inverse_mass: Any, n_hyper: int) -> Callable[..., Any]:
    """The step above, as BlackJAX builds integrators; a leapfrog step for the first ``n_hyper`` coordinates."""
    from blackjax.mcmc.integrators import IntegratorState

    turns = np.arange(inverse_mass.size) >= n_hyper
    spring = jnp.where(turns, 1.0 / inverse_mass, 0.0)

    def build(log_density: Callable[[Any], Any], kinetic_energy: Any) -> Callable[[Any, Any], Any]:
        slope = jax.value_and_grad(log_density)

        def step(state: Any, size: Any) -> Any:
            z, p, _, g = state
            p = p + 0.5 * size * (g + spring * z)
            cos, sin = jnp.where(turns, jnp.cos(size), 1.0), jnp.where(turns, jnp.sin(size), size)
            z, p = z * cos + inverse_mass * p * sin, p * cos - spring * z * sin
            value, g = slope(z)
            return IntegratorState(z, p + 0.5 * size * (g + spring * z), value, g)

        return step

    return build


def _move(
    sampler: str, log_density: Callable[[Any], Any], n_hyper: int, key: Any, carry: _Carry
) -> tuple[Any, Any, Any]:
    """One transition: the next state, what BlackJAX tells about it, and how many gradients it took."""
    from blackjax.mcmc import hmc, nuts

    integrator = _turning(carry.inverse_mass, n_hyper)
    size: Any = jnp.minimum(carry.step_size, _LONGEST_STEP)
    mass = carry.inverse_mass
    if sampler == "nuts":
        kernel = nuts.build_kernel(integrator)
        state, info = kernel(key, carry.state, log_density, size, mass, _MOST_DOUBLINGS)
        return state, info, info.num_integration_steps
    first, second = jax.random.split(key)
    length: Any = _QUARTER * jax.random.uniform(first, minval=1.0 - _JITTER, maxval=1.0 + _JITTER)
    steps: Any = jnp.clip(jnp.round(length / size), 1, _MOST_STEPS).astype(int)
    state, info = hmc.build_kernel(integrator)(second, carry.state, log_density, length / steps, mass, steps)
    return state, info, steps


@lru_cache(maxsize=32)
def _blocks(target: LogDensity, sampler: str) -> Callable[..., Any]:
    """Some steps of a chain, compiled."""
    n_hyper: int | None = getattr(target, "n_hyper", None)
    (step_begin, step_add, step_end), (_, mass_add, mass_end) = _adaptations()

    def adapted(carry: _Carry, acceptance: Any, stage: Any, ends: Any) -> _Carry:
        step = _bounded(step_add(carry.step, acceptance))
        mass = jax.lax.cond(stage == 1, lambda m: mass_add(m, carry.state.position), lambda m: m, carry.mass)
        carry = carry._replace(step=step, mass=mass, step_size=jnp.exp(step.log_step_size))

        def next_window(carry: _Carry) -> _Carry:
            mass = mass_end(carry.mass)
            size = step_end(carry.step)
            inverse = mass.inverse_mass_matrix
            if n_hyper is not None:
                inverse = jnp.where(np.arange(inverse.size) < n_hyper, inverse, carry.inverse_mass)
            return carry._replace(mass=mass, step=step_begin(size), step_size=size, inverse_mass=inverse)

        return jax.lax.cond(ends == 1, next_window, lambda carry: carry, carry)

    def settled(carry: _Carry) -> _Carry:
        """The end of warm-up: from here on the average step size counts."""
        return carry._replace(step_size=step_end(carry.step))

    def step(data: Any, carry: _Carry, given: tuple[Any, Any, Any]) -> tuple[_Carry, Drawn]:
        key, stage, ends = given
        state, info, steps = _move(sampler, partial(target, data), n_hyper or 0, key, carry)
        carry = carry._replace(state=state)
        adapting = lambda carry: adapted(carry, info.acceptance_rate, stage, ends)  # noqa: E731
        carry = jax.lax.cond(stage >= 0, adapting, lambda carry: carry, carry)
        carry = jax.lax.cond(ends == 2, settled, lambda carry: carry, carry)
        others = (info.acceptance_rate, info.energy, steps, info.is_divergent)
        return carry, Drawn(state.position, state.logdensity, *others)

    def block(data: Any, carry: _Carry, keys: Any, stages: Any, ends: Any) -> tuple[_Carry, Drawn]:
        return jax.lax.scan(partial(step, data), carry, (keys, stages, ends))

    return compiled(block)


def _bounded(step: Any) -> Any:
    """No longer than steps are taken: an average that wandered off beyond would not come back in time."""
    longest = float(np.log(_LONGEST_STEP))
    return step._replace(
        log_step_size=jnp.minimum(step.log_step_size, longest),
        log_step_size_avg=jnp.minimum(step.log_step_size_avg, longest),
    )


def _adaptations() -> tuple[Any, Any]:
    """Of the step size and of the mass: begin, add, end."""
    from blackjax.adaptation.mass_matrix import mass_matrix_adaptation
    from blackjax.adaptation.step_size import dual_averaging_adaptation

    return dual_averaging_adaptation(_ACCEPTANCE), mass_matrix_adaptation(True, _KNOWN)


def _begin(z: Any, value: Any, slope: Any, step_size: float = _FIRST_STEP) -> _Carry:
    """A chain before its first step."""
    from blackjax.mcmc.hmc import HMCState

    (step, _, _), (mass, _, _) = _adaptations()
    one, size = jnp.ones(z.size), jnp.asarray(step_size)
    return _Carry(HMCState(jnp.asarray(z), value, slope), step(size), mass(z.size, one), size, one)


def compilation(target: LogDensity, sampler: str, data: Any, size: int) -> "Future[Callable[..., Any]]":
    """The blocks of a target, compiled in the background: it takes seconds, and so does what comes before them.

    ``data`` are of the shapes that will be; a position has this size.
    """
    import blackjax  # noqa: F401  here, because two threads that import it at once find half of it

    def work() -> Callable[..., Any]:
        """By a run with a step size that is no number: every step ends at once."""
        with float64():
            block, zero = _blocks(target, sampler), jnp.zeros(size)
            carry = _begin(zero, jnp.zeros(()), zero, np.nan)
            keys = jax.random.split(jax.random.PRNGKey(0), _BLOCK)
            jax.block_until_ready(block(jax.device_put(data), carry, keys, *np.full((2, _BLOCK), -1)))
        return block

    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(work)
    finally:
        pool.shutdown(wait=False)


def _schedule(plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Stage of every step (0 step size, 1 also mass, -1 none), and what ends with it (1 a window, 2 warm-up)."""
    from blackjax.adaptation.staged_adaptation import build_schedule

    assert plan.warmup is not None
    warm = np.asarray(build_schedule(plan.warmup)).reshape(-1, 2)
    total = -(-(plan.warmup + plan.draws) // _BLOCK) * _BLOCK
    stages, ends = np.full(total, -1), np.zeros(total, int)
    stages[: plan.warmup], ends[: plan.warmup] = warm.T
    if plan.warmup:
        ends[plan.warmup - 1] = 2
    return stages, ends


def run(
    target: LogDensity,
    data: Any,
    starts: np.ndarray,
    plan: Plan,
    progress: Callable[[str], None],
    compiling: "Future[Callable[..., Any]] | None" = None,
) -> list[Drawn]:
    """Every chain from its start, (chains, size); two at a time if cores are. The same seed gives the same draws."""
    assert plan.warmup is not None
    warmup = plan.warmup

    stages, ends = _schedule(plan)
    progress("compiling, once for every shape of a model")

    def chain(number: int) -> Drawn:
        with float64():
            keys = jax.random.split(jax.random.fold_in(jax.random.PRNGKey(plan.seed), number), len(stages))
            carry, kept = _begin(starts[number], *slope(data, starts[number])), []
            for at in range(0, len(stages), _BLOCK):
                some = slice(at, at + _BLOCK)
                carry, drawn = block(data, carry, keys[some], stages[some], ends[some])
                if at + _BLOCK > warmup:
                    kept.append(jax.tree.map(np.asarray, drawn))
                report(number, at + _BLOCK, drawn)
        first = warmup // _BLOCK * _BLOCK
        whole = jax.tree.map(lambda *parts: np.concatenate(parts), *kept)
        own = slice(warmup - first, warmup - first + plan.draws)
        return Drawn(*(values[own] for values in whole))

    block = (compiling or compilation(target, plan.sampler, data, starts.shape[1])).result()
    with float64():
        data, slope = jax.device_put(data), slope_of(target)
        starts = np.stack([_possible(start, lambda z: float(slope(data, z)[0])) for start in starts])
    report = _reporter(plan, len(stages), progress)
    # two chains, each with a core: threads of a linear-algebra library within each would only wait for one another
    with threads_for(1), ThreadPoolExecutor(min(2, plan.chains, cores())) as pool:
        return list(pool.map(chain, range(plan.chains)))


def _possible(start: np.ndarray, log_density: Callable[[np.ndarray], float]) -> np.ndarray:
    """A start, or the nearest on the way to the centre whose density is not zero."""
    for _ in range(_HALVINGS):
        if np.isfinite(log_density(start)):
            return start
        start = 0.5 * start
    raise ValueError(
        "the posterior density is zero or not a number where chains begin; look at hyperparameters that priors holds "
        "at numbers, and at priors far from what the data say"
    )


def _reporter(plan: Plan, total: int, progress: Callable[[str], None]) -> Callable[[int, int, Any], None]:
    """A line of progress every two seconds or so."""
    done, divergent = [0] * plan.chains, 0
    started = last = time.perf_counter()

    def report(chain: int, steps: int, drawn: Any) -> None:
        nonlocal divergent, last
        done[chain] = steps
        if steps > (plan.warmup or 0):
            divergent += int(np.sum(drawn.diverging))
        now, every = time.perf_counter(), total * plan.chains
        if now - last > _PATIENCE:
            last, share = now, sum(done) / every
            left = (now - started) * (1.0 - share) / share
            progress(
                f"{sum(done):,} of {every:,} steps of {plan.chains} chains; {divergent} divergent; {left:.0f} s left"
            )

    return report
