"""Kernels that are given as text: what they mean is known when the columns of the rows are."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from vff.data import Positive, Source, column_kinds, text_in
from vff.estimators.binding import Binding
from vff.estimators.options import FitSpec
from vff.estimators.pattern import Space
from vff.estimators.saved_records import Saved
from vff.factors import Column, Kernel
from vff.kernels.columns import Columns, written
from vff.kernels.reading import parse_formula
from vff.words import shown


def for_rows(spec: FitSpec, source: Source, y: Any, sample_weight: Any, seen: Columns | None = None) -> FitSpec:
    """What is asked for, with the kernel and the offset that its text means for the columns of these rows.

    Where others were ``seen`` before, it means for these what it meant for those.
    """
    text: Any = spec.kernel
    if not isinstance(text, str):
        return spec
    target = y.column if isinstance(y, Positive) else y
    target = target if isinstance(target, str) else None
    elsewhere = (sample_weight, spec.likelihood.column, spec.noise_std, spec.offset)
    known = replace(
        seen or Columns(column_kinds(source), left_out=[own for own in elsewhere if isinstance(own, str | int)]),
        apart={} if target is None else {target: "the target"},
        target=target,
        look=partial(text_in, source),
    )
    formula = parse_formula(text, known)
    if formula.offset is not None and spec.offset not in (None, formula.offset):
        raise ValueError(
            f"the kernel has offset({written(formula.offset)}), and the model has offset={shown(spec.offset)}; leave "
            "one of the two out"
        )
    offset = spec.offset if formula.offset is None else formula.offset
    return replace(spec, kernel=formula.kernel, offset=offset, options=spec.options._replace(offset=offset))


def seen_by(model: Any) -> Columns | None:
    """The columns of the rows that a model has seen; None where there were none."""
    rows, names = getattr(model, "statistics_", None), getattr(model, "feature_names_in_", None)
    if rows is None:
        return None
    return _bound(rows.binding, range(model.n_features_in_) if names is None else names)


def _bound(binding: Binding, names: Any) -> Columns:
    """Columns as terms were bound to them; others are no part of "."."""
    bound, every = {column.index: column.kind for column in binding.columns}, list(names)
    kinds: Mapping[Column, str] = {name: bound.get(index, "number") for index, name in enumerate(every)}
    return Columns(kinds, left_out=[name for index, name in enumerate(every) if index not in bound])


def over_points(kernel: Kernel | str | None, space: Space) -> Kernel | None:
    """The kernel of a point pattern, whose columns are all there is."""
    if not isinstance(kernel, str):
        return kernel
    formula = parse_formula(kernel, Columns(dict(zip(space.columns, space.kinds, strict=True))))
    if formula.offset is not None:
        raise ValueError(
            f"the kernel has offset({written(formula.offset)}), and points have none; give the exposure of the cells "
            "to fit"
        )
    return formula.kernel


def in_file(kernel: Kernel | str | None, saved: Saved) -> Kernel | None:
    """The kernel that a text means for the columns that a file tells of."""
    if not isinstance(kernel, str):
        return kernel
    if saved.rows is None:
        return None
    return parse_formula(kernel, _bound(saved.rows.binding, saved.names or range(saved.n_features))).kernel
