"""What chains leave behind: draws of the hyperparameters in the user's units, and how the chains went."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vff.inference.methods.chains.diagnostics import ChainSummary, summary
from vff.inference.methods.hyper import Parameter
from vff.likelihoods import AbstractLikelihood

if TYPE_CHECKING:
    from vff.inference.methods.chains.run import Drawn

_KEPT = 1000  # draws that predictions average over
_MOST_RHAT, _FEWEST_ESS = 1.01, 400.0
_FEWEST_WEIGHTED = 6.0
_DIVERGENT_SHARE = 0.001
_LONG_SHARE = 0.01
_WORRYING = 2.0  # times what is tolerated


@dataclass(frozen=True)
class Samples:
    """Draws of all hyperparameters, (chains, draws) each."""

    parameters: tuple[Parameter, ...]
    """All, those that are held among them."""
    t: np.ndarray
    """(chains, draws, L), in the order of the parameters."""
    stats: dict[str, np.ndarray]
    """By step: lp (the log-density, up to a constant), acceptance_rate, energy, n_steps, diverging."""
    kept: np.ndarray
    """Which of the draws, counted through all chains, predictions average over."""
    psi: np.ndarray
    """Of the likelihood, for every kept draw, in the units that learning saw."""
    likelihood: AbstractLikelihood
    """As it was before learning, in the units that learning saw."""
    scale: float
    """Of these units, in the user's."""
    seconds: float
    """Of warm-up and draws."""
    most_gradients: int
    """Of a step, beyond which it is cut off."""
    function: dict[str, np.ndarray] = field(default_factory=dict)
    """f at some rows of the fit, (chains, draws) each, by name; empty where only hyperparameters were sampled."""
    y: np.ndarray | None = None
    """The targets, where they are few enough to be kept."""
    effective: float | None = None
    """Of draws that no chain links: how many independent ones of equal weight they are worth."""

    @cached_property
    def values(self) -> dict[str, np.ndarray]:
        """Draws by name, in the user's units."""
        return {
            own.name: own.values(self.t[:, :, number])
            for number, own in enumerate(self.parameters)
            if own.prior is not None
        }

    @cached_property
    def summary(self) -> list[ChainSummary]:
        """Mean, standard deviation, quantiles, effective draws and R-hat of every hyperparameter."""
        found = summary(self.values)
        if self.effective is None:
            return found
        return [own._replace(ess_bulk=self.effective, ess_tail=self.effective, rhat=np.nan) for own in found]

    @cached_property
    def likelihoods(self) -> tuple[AbstractLikelihood, ...]:
        """Of every kept draw, in the user's units."""
        return tuple(self.likelihood.with_values(psi).in_units(self.scale) for psi in self.psi)

    @cached_property
    def averaged(self) -> AbstractLikelihood:
        """Gaussian noise of the average variance, in the user's units: what it adds to that of a new observation."""
        noise = self.parameters[-1].values(self.t[:, :, -1])
        likelihood: Any = self.likelihoods[0]  # which has a variance
        return replace(likelihood, variance=float(np.mean(noise)))

    @property
    def divergences(self) -> int:
        """Steps after warm-up at which energy was lost."""
        return int(self.stats["diverging"].sum()) if "diverging" in self.stats else 0

    def median(self, number: int) -> float:
        """Of one parameter, in the user's units."""
        return float(np.median(self.parameters[number].values(self.t[:, :, number])))

    def medians(self, sizes: Sequence[int]) -> list[list[float]]:
        """Of the first parameters, so many for every term."""
        starts = np.cumsum([0, *sizes[:-1]])
        return [[self.median(int(start) + n) for n in range(size)] for start, size in zip(starts, sizes, strict=True)]

    def __str__(self) -> str:
        return "\n".join(_table(self.summary, chains=self.effective is None))

    def notes(self) -> tuple[str, ...]:
        """What a user should know before trusting the draws."""
        if self.effective is not None:
            return self._on_weights(self.effective)
        notes, steps = [], self.stats["diverging"].size
        watched = [*self.summary, *summary(self.function)]
        if self.divergences > _DIVERGENT_SHARE * steps:
            notes.append(
                f"{self.divergences} of {steps} steps diverged: parts of the posterior may not have been visited; "
                "give narrower priors, or a longer warmup"
            )
        stuck = [own.name for own in watched if not np.isfinite(own.rhat + own.ess_bulk)]
        if stuck:
            notes.append(f"a chain of {stuck[0]} never moved, and nothing can be said of how well it was sampled")
        mixed = [own for own in watched if own.rhat > _MOST_RHAT]
        if mixed:
            worst = max(mixed, key=lambda own: own.rhat)
            notes.append(
                f"R-hat of {worst.name} is {worst.rhat:.3f}, above {_MOST_RHAT}: the chains have not mixed; ask for "
                "more draws or a longer warmup"
            )
        long = float(np.mean(self.stats["n_steps"] >= self.most_gradients))
        if long > _LONG_SHARE:
            notes.append(
                f"{100 * long:.0f} % of the steps were cut off at {self.most_gradients} gradients: the posterior is "
                "harder to cross than chains are long; give narrower priors, or fewer frequencies"
            )
        few = [own for own in watched if min(own.ess_bulk, own.ess_tail) < _FEWEST_ESS]
        if few:
            worst = min(few, key=lambda own: min(own.ess_bulk, own.ess_tail))
            edf = min(worst.ess_bulk, worst.ess_tail)
            notes.append(
                f"the draws of {worst.name} are worth {edf:.0f} independent ones, fewer than {_FEWEST_ESS:.0f}: "
                "its interval is rough; ask for more draws"
            )
        return tuple(notes)

    @staticmethod
    def _on_weights(effective: float) -> tuple[str, ...]:
        if effective >= _FEWEST_WEIGHTED:
            return ()
        return (
            f"the draws of the hyperparameters are worth {effective:.1f} independent ones: their posterior is far from "
            "the Gaussian that was laid around its mode, and intervals are rough; inference='mcmc' samples it",
        )


def on_gap(bound_gap: float, tolerated: float) -> tuple[str, ...]:
    """Where the features are too few for the lengthscales that were drawn."""
    if not bound_gap > _WORRYING * tolerated:
        return ()
    return (
        f"at the lengthscales that were drawn the features miss {bound_gap:.3g} nats, and {tolerated:.2g} are "
        "tolerated: the posterior leans towards longer lengthscales; give more frequencies",
    )


def stats_of(drawn: "Sequence[Drawn]") -> dict[str, np.ndarray]:
    """How the chains went, (chains, draws) each."""
    return {name: np.stack([getattr(own, name) for own in drawn]) for name in drawn[0]._fields[1:]}


def evenly(chains: int, draws: int, most: int = _KEPT) -> np.ndarray:
    """Which draws to keep, counted through all chains: evenly spaced."""
    total = chains * draws
    step = max(1, -(-total // most))
    return np.arange(0, total, step)


def _table(rows: Sequence[ChainSummary], *, chains: bool) -> list[str]:
    """A line by hyperparameter; draws that no chain links have one effective number, and nothing that should mix."""
    wide = max([len(own.name) for own in rows] + [len("hyperparameter")])
    heads = f"{'mean':>10} {'sd':>10} {'5 %':>10} {'95 %':>10} {'ess':>7}" + chains * f" {'tail':>7} {'R-hat':>7}"
    lines = [
        f"{own.name:<{wide}} {own.mean:>10.4g} {own.sd:>10.3g} {own.quantile_5:>10.4g} {own.quantile_95:>10.4g} "
        f"{own.ess_bulk:>7.0f}" + chains * f" {own.ess_tail:>7.0f} {own.rhat:>7.3f}"
        for own in rows
    ]
    return [f"{'hyperparameter':<{wide}} {heads}", *lines]
