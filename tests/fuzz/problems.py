"""A random problem as a record that can be written down as a program, changed and made smaller."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Table = dict[str, np.ndarray]


@dataclass(frozen=True)
class Leaf:
    """One factor of a kernel: its name, its column, and the values it starts from."""

    kernel: str
    column: str
    values: dict[str, float] = field(default_factory=dict)


Terms = tuple[tuple[Leaf, ...], ...]


@dataclass(frozen=True)
class Problem:
    """Rows, a model for them, and rows to ask it about."""

    table: Table
    y: np.ndarray
    asked: Table
    terms: Terms = ()
    """A sum of products; empty for ``kernel=None``."""
    weights: np.ndarray | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """Of the constructor, beside the kernel. Options by column name its columns."""
    likelihood: str | None = None
    """As it is written in Python; None for Gaussian noise in closed form."""
    estimator: str = "GPRegressor"
    source: str = "array"
    """How the rows are handed over: a key of ``programs.SOURCES``."""
    steps: str = "fit"
    """What is done with them: a key of ``programs.STEPS``."""

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def weight(self) -> np.ndarray:
        """The weight of every row."""
        return np.ones(self.n) if self.weights is None else np.asarray(self.weights, float)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns of float64 that no term takes for levels, and no likelihood for exposure or trials."""
        apart = {leaf.column for term in self.terms for leaf in term if leaf.kernel == "Categorical"}
        apart |= {name for name in self.table if repr(name) in (self.likelihood or "")}
        return tuple(name for name, values in self.table.items() if values.dtype == float and name not in apart)

    @property
    def learns(self) -> bool:
        """Whether hyperparameters are learnt."""
        return self.options.get("optimizer", "lbfgs") is not None

    @property
    def asks_outside(self) -> bool:
        """Whether rows asked about may lie outside the domain, or hold levels that the fit has not seen."""
        seen = self.weight > 0.0
        return "domain" in self.options or any(
            _reaches_beyond(rows[name], values[seen])
            for name, values in self.table.items()
            for rows in (
                self.asked,
                self.table,
            )  # its own rows are asked about, too: those without weight may lie anywhere
        )

    def at(self, rows: Any) -> "Problem":
        """The problem of some of its rows, in the order given."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, table=picked(self.table, rows), y=self.y[rows], weights=weights)

    def asking_inside(self) -> "Problem":
        """The problem without the questions that lie outside its rows."""
        seen = picked(self.table, self.weight > 0.0)
        asked = len(next(iter(self.asked.values())))
        inside = [
            row
            for row in range(asked)
            if not any(_reaches_beyond(self.asked[name][row : row + 1], values) for name, values in seen.items())
        ]
        return replace(self, asked=picked(self.asked, inside) if inside else picked(seen, slice(0, 1)))

    def with_options(self, **options: Any) -> "Problem":
        return replace(self, options=self.options | options)

    def without(self, *names: str) -> "Problem":
        return replace(self, options={name: value for name, value in self.options.items() if name not in names})


def picked(table: Table, rows: Any) -> Table:
    return {name: values[rows] for name, values in table.items()}


def _reaches_beyond(asked: np.ndarray, seen: np.ndarray) -> bool:
    if asked.dtype.kind == "O":
        return not set(asked) <= set(seen)
    return bool(seen.size == 0 or asked.min() < seen.min() or asked.max() > seen.max())


def is_number(values: np.ndarray) -> bool:
    return values.dtype.kind in "fiub"


def in_days(values: np.ndarray) -> np.ndarray:
    """Numbers as they are, and times as days since 1970, which is what kernels measure them in."""
    if values.dtype.kind == "M":
        return values.astype("datetime64[ns]").astype(np.int64) / (86400 * 1e9)
    return values.astype(float)
