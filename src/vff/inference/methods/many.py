"""What keeps a covariance of all coefficients is not for many levels: a sentence before any work is done."""

from vff.inference.learning.harmonics import fewer
from vff.inference.learning.solver import LARGEST_DIRECT
from vff.moments import MomentRequest

_NUMBER, _ALIVE = 8, 4  # bytes; matrices of all coefficients at once


def refuse_many(request: MomentRequest, what: str, instead: str, *, least: bool = False) -> None:
    """ValueError where coefficients are too many; with ``least``, however few frequencies are used."""
    P = fewer(request, 0.0, 1).size if least else request.size
    if P <= LARGEST_DIRECT:
        return
    fit = "at least " if least else ""
    raise ValueError(
        f"{what} writes covariances of all coefficients at many settings of the hyperparameters: of {fit}{P:,}, where "
        f"at most {LARGEST_DIRECT:,} are taken, these need {_ALIVE * _NUMBER * P**2 / 2**30:.2g} GiB; use {instead}, "
        f"or fewer {'levels' if least else 'frequencies or levels'}"
    )
