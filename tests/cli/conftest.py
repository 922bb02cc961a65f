"""A stand-in for fits of labels and counts to sources, in memory; it steps back when estimators walk over sources."""

from typing import Any

import pyarrow as pa
import pytest

from vff.estimators import GPClassifier, GPRegressor
from vff.kernels import Matern32, normal_form
from vff.sources import scan
from vff.sources.base import AbstractSource


def read(model: Any, source: AbstractSource, y: str, w: str | None) -> tuple[Any, Any, Any]:
    """X, y and the weights, all in memory."""
    table = pa.concat_tables(chunk.data for part in source.parts() for chunk in part.chunks())
    used = [name for name in table.column_names if name not in (y, w)]
    if model.kernel is not None:
        factors = [factor for term in normal_form(model.kernel) for factor in term.factors]
        column = getattr(model.likelihood, "column", None)
        used = [name for name in used if name == column or name in {factor.column for factor in factors}]
    return table.select(used), table.column(y), None if w is None else table.column(w)


def in_memory(method: Any) -> Any:
    def call(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if isinstance(X, AbstractSource) and self.likelihood != "gaussian":
            X, y, sample_weight = read(self, X, y, sample_weight)
        return method(self, X, y, sample_weight=sample_weight)

    return call


def walks(model: Any) -> bool:
    """Whether an estimator with a likelihood of its own takes a source."""
    rows = pa.table({"x": [0.0, 1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1, 1]})
    try:
        model.fit(scan(lambda: iter([rows])), "y")
    except (TypeError, ValueError):
        return False
    return True


@pytest.fixture(scope="session", autouse=True)
def _stand_in():
    options: dict[str, Any] = {"frequencies": 2, "domain": {"x": (0.0, 4.0)}}
    with pytest.MonkeyPatch.context() as patch:
        for model in (
            GPRegressor(Matern32("x"), likelihood="poisson", **options),
            GPClassifier(Matern32("x"), **options),
        ):
            if not walks(model):
                patch.setattr(type(model), "fit", in_memory(type(model).fit))
        yield
