"""A look at the columns before the harmonics are settled: does one of them carry detail beyond the usual?

A sum shares its harmonics among the terms, and a term that got too few to see its own detail would be taken for noise.
So every column is fitted by itself on a sample of rows with its share of the harmonics, and the spectrum of what is
left is searched for harmonics above that which matter.
"""

from dataclasses import replace

import numpy as np

from vff.factors import Factor, with_room
from vff.inference.learning.model import SumModel
from vff.inference.learning.rows import LearningRows
from vff.inference.learning.start import look_alone, power_of, stands_out
from vff.inference.model.scale import TargetScale, standardised
from vff.inference.model.term import Term
from vff.moments import (
    MOST_FEW,
    ColumnRequest,
    LetterFunction,
    MomentRequest,
    Profile,
    analyse,
    column_rows,
    moments_of_arrays,
    synthesise,
)

_BLOCKS, _BLOCK = 64, 2048  # stretches of rows at random places
_WORTH_IT = 5e-3  # of the variance of y, in one harmonic: a wave of a tenth of its standard deviation


def sample_pieces(n: int, rows: int = _BLOCKS * _BLOCK) -> list[slice]:
    """Stretches of rows at random places, about ``rows`` in all; all rows when they are few."""
    if n <= rows:
        return [slice(0, n)]
    block = max(1, rows // _BLOCKS)
    starts = np.random.default_rng(0).integers(n - block, size=_BLOCKS)
    return [slice(int(start), int(start) + block) for start in starts]


def choose_harmonics(profile: Profile, factor: Factor, column: ColumnRequest, usual: int, most: int) -> tuple[int, int]:
    """M for one column of a sum, and the detail that asked for it (0 when the usual M is enough)."""
    detail = _highest_worth_having(profile, factor, column, usual, most)
    return (min(most, max(usual, with_room(detail))) if detail else usual), detail


def _highest_worth_having(profile: Profile, factor: Factor, column: ColumnRequest, usual: int, most: int) -> int:
    """The highest harmonic, up to ``most``, that matters in what ``usual`` harmonics leave of a column; 0 if none."""
    domain, basis = column.domain, factor.waves(most)
    inside = domain.contains(domain.to_unit(profile.x))
    profile = Profile(*(part[inside] for part in profile))
    x, y, w, within = profile.x, profile.y, profile.w, float(profile.within.sum())
    if x.size < 2 or basis is None:
        return 0
    residual = y - _smooth(ColumnRequest(domain, column.basis.resized(usual)), profile, factor)
    rows = column_rows(ColumnRequest(domain, basis), x)
    waves = analyse(rows, basis.single, w * residual)
    power = power_of(waves, most)
    spread = float(w @ (y - np.average(y, weights=w)) ** 2) + within
    matters = 2.0 * power > _WORTH_IT * float(w.sum()) * spread
    beyond = np.flatnonzero(stands_out(power, float(w @ residual**2) + within) & matters) + 1
    return int(beyond[-1]) if beyond.size else 0


def _smooth(request: ColumnRequest, profile: Profile, factor: Factor) -> np.ndarray:
    """What a fit of this column alone makes of the targets, at its rows."""
    x, y, w, within = profile
    moments = moments_of_arrays(MomentRequest.of_columns([request]), [x], y, w, offset=float(np.average(y, weights=w)))
    moments = replace(moments, target_squared=moments.target_squared + float(within.sum()))
    target, term = TargetScale.of(moments, (), True), Term((factor,))
    few = None
    if x.size <= MOST_FEW:
        few = LearningRows(x[:, None], (y - target.mean) / target.scale, w, np.zeros(x.size))
    model = SumModel((term,), standardised(moments, (), target)[0], few=few)
    start = look_alone(model, dict.fromkeys(term.names), None, 0)
    fitted = model.restricted(start.harmonics)
    coefficients = fitted.transform(fitted.unpack(start.theta)).transpose(fitted.at(start.theta).mean)
    column = fitted.moments.request.columns[0]
    (values,) = synthesise([column_rows(column, x)], [LetterFunction((0,), (column.basis.single,), coefficients)])
    return target.mean + target.scale * values
