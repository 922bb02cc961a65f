"""The constructor's options, checked at the door of ``fit``: all that a user asks of a fit, but the rows."""

import os
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from importlib.util import find_spec
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vff.data import UsedColumns
from vff.estimators.arguments import is_number, is_positive, is_whole, seeded, whole_number
from vff.estimators.named import beside, used_columns
from vff.inference import (
    KINDS,
    LARGEST_DIRECT,
    METHODS,
    NO_LEVELS,
    Exchangeable,
    Method,
    Spec,
    choose,
    inferences,
    largest_that_fits,
    memory_needed,
    structured_memory,
)
from vff.kernels import Kernel
from vff.moments import ENGINES, MomentRequest
from vff.parameters import bounds_of
from vff.words import listed, shown

if TYPE_CHECKING:
    from vff.inference.methods.chains.run import Plan

BY_ROW = "given by row"
"""What stands for error bars that rows brought along."""
COVARIANCES = ("full", *KINDS)
MISSING = ("effect", "drop", "refuse")
_MOST_FREQUENCIES = 10**9
_LEAST_BATCH = 256
_SHARE_OF_MEMORY = 0.8
_CARRIED = 48  # numbers that chains keep of a row of one column: more are carried from nodes
_COPIES_SAMPLED = 6
_SAMPLERS = ("nuts", "hmc")
_USUAL_PAIRS = 5
_LEAST_DRAWS, _LEAST_WARMUP = 10, 20


class Options(NamedTuple):
    """The constructor's options that concern the columns."""

    frequencies: Any
    domain: Any
    edges: Any
    covariance: str = "full"
    """Of q: what may be summed, and how much memory is needed, depend on it."""
    likelihood: Any = "gaussian"
    offset: Any = None
    noise_std: Any = None


class ChainOptions(NamedTuple):
    """The constructor's options of Markov chains."""

    draws: Any = 500
    warmup: Any = None
    chains: Any = 4
    sampler: Any = "nuts"
    random_state: Any = None

    def checked(self) -> tuple[int, int | None, int, str]:
        """Draws, warm-up, chains and the sampler."""
        check_choice("sampler", self.sampler, _SAMPLERS)
        draws = whole_number("draws", self.draws, _LEAST_DRAWS)
        warmup = None if self.warmup is None else whole_number("warmup", self.warmup, _LEAST_WARMUP)
        return draws, warmup, whole_number("chains", self.chains, 1), self.sampler

    def plan(self) -> "Plan":
        """How to run; a random state moves on by one number."""
        from vff.inference.methods.chains.run import Plan

        return Plan(*self.checked(), int(seeded(self.random_state).randint(2**31 - 1)))


@dataclass(frozen=True)
class FitSpec(Spec):
    """What is asked of a fit."""

    kernel: Kernel | None = None
    options: Options = Options("auto", "auto", "auto")  # noqa: RUF009  a named tuple
    engine: str = "auto"
    optimizer: str | None = "lbfgs"
    centred: bool = True
    """Whether the function has a constant mean that the data determine."""
    noise: float | None = None
    """Where the variance of Gaussian noise starts; None: from the data."""
    noise_limits: tuple[float, float] | None = None
    """Between which bounds it is learnt; two equal ones hold it. None where nothing was said."""
    batch: int | None = None
    chains: ChainOptions = ChainOptions()  # noqa: RUF009  a named tuple
    progress: Callable[[str], None] = lambda message: None
    noise_std: str | int | None = None
    """The column of known standard deviations of y."""
    offset: str | int | None = None
    """The column that is added to the function, known where it is predicted, too."""
    missing: str = "effect"
    """What a missing number is: an effect of its own, a reason to leave its row out, or one to refuse it."""
    interactions: Any = None
    """Which products of terms may join the sum."""

    @property
    def most_pairs(self) -> int:
        """How many products of two terms may join the sum."""
        return check_interactions(self.interactions)

    @property
    def used(self) -> UsedColumns:
        """The columns that the model names."""
        return used_columns(self.kernel, self.likelihood, self.offset)

    @property
    def beside(self) -> tuple[Hashable, ...]:
        """The columns that are read and not modelled."""
        return beside(self.likelihood, self.offset)

    def method(self) -> Method:
        """The method of inference for it; options that make no sense together are refused."""
        check_choice("inference", self.inference, inferences())
        check_choice("hyperparameters", self.hyperparameters, ("auto", "maximise", "integrate"))
        method = choose(METHODS, self)
        if method.samples:
            if find_spec("blackjax") is None:
                raise ImportError("inference='mcmc' needs BlackJAX, which is not installed; pip install 'vff[mcmc]'")
            self.chains.checked()
        if self.priors is not None and not isinstance(self.priors, Mapping):
            raise ValueError(
                "priors must be None or a dictionary by hyperparameter, such as {'lengthscale': Gamma(2, 1)}; got "
                f"{shown(self.priors)}"
            )
        return method


def engine_names() -> tuple[str, ...]:
    """What engines users may ask for."""
    return ("auto", *(engine.name for engine in ENGINES if engine.offered))


def for_column(option: Any, name: str, column: Set[Any], everybody: Set[Any]) -> Any:
    """One column's value of an option that may be a dictionary.

    ``column`` holds the names this column goes by, ``everybody`` those of all columns of the kernel.
    """
    if not isinstance(option, dict):
        return option
    unknown = [key for key in option if key not in everybody]
    if unknown:
        names = [name for name in everybody if isinstance(name, str)] or list(everybody)
        known = listed(sorted(names, key=str))
        raise ValueError(f"{name} names column {shown(unknown[0])}, which the kernel does not use; it uses {known}")
    return next((value for key, value in option.items() if key in column), "auto")


def check_resolution(ends: tuple[float, float], label: str) -> None:
    """Refuse a column whose variation drowns in its offset."""
    size, length = max(map(abs, ends)), ends[1] - ends[0]
    if length < 1e-9 * size:
        raise ValueError(
            f"column {label} of X varies by {length:g} around {size:g}, which float64 barely "
            "resolves; subtract a constant from it first"
        )


def check_size(
    request: MomentRequest,
    names: Sequence[Hashable],
    covariance: str = "full",
    rows: int = 0,
    exchangeable: Exchangeable = NO_LEVELS,
    most_rows: float = np.inf,
) -> None:
    """Refuse a number of features whose sums and matrices cannot fit in memory, before any work is done."""
    room, structured = _SHARE_OF_MEMORY * installed_memory(), covariance != "full"
    whole = memory_needed(request, exchangeable, most_rows)
    needed = structured_memory(covariance, request, rows) if structured else whole  # pyright: ignore[reportArgumentType]
    if needed <= room:
        return
    if structured:  # rows are written out, factor by factor, and no matrix is larger than a group of features
        where = f" at {rows} different rows" if rows else ""
        raise ValueError(
            f"covariance={shown(covariance)} for {request.size} features{where} needs {needed / 2**30:.2g} GiB where "
            f"{room / 2**30:.2g} may be used; use fewer frequencies or fewer rows, or covariance='full', which keeps "
            "no features of rows"
        )
    worst = max(range(len(names)), key=lambda s: request.sizes[s])
    fits = largest_that_fits(request, room, exchangeable, most_rows)
    advice = "leave a column or a term out"
    if fits is not None:
        harmonics = {name: M[0] if len(M) == 1 else M for name, M in zip(names, fits.harmonics, strict=True)}
        known = {name: M for name, M in harmonics.items() if M is not None}
        less = memory_needed(fits, exchangeable, most_rows) / 2**30
        advice = f"frequencies={known} would fit, with {fits.size} features in {less:.1f} GiB"
    raise ValueError(
        f"the kernel and frequencies make {request.size} features, most of them ({request.sizes[worst]}) for "
        f"{names[worst]}, which need {needed / 2**30:.1f} GiB where {installed_memory() / 2**30:.1f} GiB are installed "
        f"and {room / 2**30:.1f} may be used; {advice}"
    )


def check_sampling_size(request: MomentRequest, rows: int, draws: int) -> None:
    """Refuse chains whose features, covariances and draws cannot fit in memory."""
    P = request.size
    per_row = sum(min(term.size, _CARRIED) if len(term.shape) == 1 else sum(term.shape) for term in request.terms)
    needed = 8 * (_COPIES_SAMPLED * (P**2 + rows * per_row) + 2 * draws * P)
    room = _SHARE_OF_MEMORY * installed_memory()
    if P > LARGEST_DIRECT or needed > room:
        raise ValueError(
            f"inference='mcmc' for {P} features at {rows} different rows needs about {needed / 2**30:.2g} GiB where "
            f"{room / 2**30:.2g} may be used, and takes at most {LARGEST_DIRECT} features; use fewer frequencies, "
            "fewer rows, or inference='variational'"
        )


def installed_memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**34


def check_frequencies(value: Any, label: str) -> int | None:
    """A positive number of harmonics, or None for 'auto'."""
    if isinstance(value, str) and value == "auto":
        return None
    if not is_whole(value, 1):
        raise ValueError(
            f"frequencies for column {label} must be 'auto' or a positive integer, got {shown(value)}; "
            "30 is a common choice, 'auto' grows it until the bound stops gaining"
        )
    if int(value) > _MOST_FREQUENCIES:
        raise ValueError(
            f"frequencies for column {label} are {shown(value)}, more than float64 resolves; use at most "
            f"{_MOST_FREQUENCIES}, or 'auto'"
        )
    return int(value)


def check_domain(value: Any, label: str) -> tuple[float, float] | None:
    """The ends of an interval, or None for 'auto'."""
    if isinstance(value, str) and value == "auto":
        return None
    ends = tuple(value) if isinstance(value, Collection) and getattr(value, "ndim", 1) == 1 else ()
    if len(ends) != 2 or not all(isinstance(end, Real | Decimal) for end in ends):
        raise ValueError(
            f"domain for column {label} must be 'auto' or a pair (a, b) of numbers in the column's units (days since "
            f"1970-01-01 for dates), got {shown(value)}"
        )
    a, b = map(float, ends)
    if not (np.isfinite(a) and np.isfinite(b) and a < b):
        raise ValueError(f"domain for column {label} must have a < b, both finite; got ({a:g}, {b:g})")
    return a, b


def check_noise(value: Any, *, error_bars: bool = False) -> float | None:
    """The variance of Gaussian noise as the user gives it: a number, a held or bounded one, or None.

    Beside error bars, zero is for none at all.
    """
    bounds = bounds_of(value)
    nothing = is_number(value) and float(value) == 0.0 and bounds in (None, (0.0, 0.0))
    if nothing and error_bars:
        return 0.0
    if bounds is not None and bounds[0] < bounds[1] and not is_positive(bounds[0]):
        raise ValueError(
            f"noise_variance is learnt between bounds above zero, got {shown(value)}; give a lower bound that is not "
            "zero, such as 1e-8 of the variance of y"
        )
    for number in () if value is None else (value, *(bounds or ())):
        if not is_positive(number):
            said = f"noise_variance must be None or a positive number, got {shown(value)}; "
            if nothing:
                said += "no noise at all is for rows with error bars (noise_std): without these, "
            raise ValueError(f"{said}fixed(1e-8) holds it, between(low, high) bounds it")
    return value


def check_column(name: str, value: Any) -> Any:
    """The name or the number of a column of X, or None."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, str | Integral)):
        raise TypeError(f"{name} must be None, or the name or the number of a column of X, got {shown(value)}")
    return value


def check_errors_given(noise_std: Any) -> Any:
    """Standard deviations that come with the rows, one for each."""
    if isinstance(noise_std, str):
        raise ValueError(
            f"noise_std of fit has one standard deviation per row, got {shown(noise_std)}; where it is a column of X, "
            f"the model names it: GPRegressor(noise_std={shown(noise_std)})"
        )
    if np.ndim(noise_std) == 0 and isinstance(noise_std, Real):
        raise ValueError(
            f"noise_std of fit has one standard deviation per row, got {shown(noise_std)}; where all rows have the "
            f"same, GPRegressor(noise_variance=fixed({float(noise_std) ** 2:.6g})) says so"
        )
    return noise_std


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if not isinstance(value, str | None) or value not in allowed:  # an array of one word is none of them
        raise ValueError(f"{name} must be one of {', '.join(map(shown, allowed))}; got {shown(value)}")


def check_interactions(value: Any) -> int:
    """How many pairs may join the sum; none where none were asked for."""
    if value is None:
        return 0
    if isinstance(value, str) and value == "auto":
        return _USUAL_PAIRS
    if not is_whole(value, 1):
        raise ValueError(
            f"interactions must be None, 'auto' (at most {_USUAL_PAIRS} pairs) or a whole number of pairs from 1 on, "
            f"got {shown(value)}; give one of these, or write products in the kernel"
        )
    return int(value)


def check_batch(value: Any) -> int | None:
    """Rows per step, or None for all of them."""
    if value is None:
        return None
    if not is_whole(value, _LEAST_BATCH):
        raise ValueError(
            f"batch_size must be None (all rows in every step) or a whole number from {_LEAST_BATCH} on, got "
            f"{shown(value)}"
        )
    return int(value)
