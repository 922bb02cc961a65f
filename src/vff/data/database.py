"""Tables of a database: questions go there, and sums come back. The only file that knows Ibis.

Where columns have few different values, a model needs no rows: counts and sums for every combination of values say all.
So a task that can do with them (``from_groups``) is answered by totals and by sums by group; all that a table was
asked, and how many rows came back each time, stands in its ``queries``.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Self

from vff.data.checkpoint import PartRecord, PassState
from vff.data.groups import DatabaseRows
from vff.data.roles import Roles
from vff.data.schema import Kind
from vff.data.source import Chunk, Part, ReadOptions, ReadPart, Source

_NAME = "vff_rows"  # of a relation without a name of its own
_KINDS = {
    "is_boolean": Kind.BOOLEAN,
    "is_numeric": Kind.NUMBER,
    "is_timestamp": Kind.DATETIME,
    "is_date": Kind.DATETIME,
    "is_interval": Kind.DURATION,
}


class Relation(Protocol):
    """A table expression of Ibis, or a relation of DuckDB."""

    columns: Any

    def aggregate(self, *args: Any, **kwargs: Any) -> Any: ...

    def limit(self, *args: Any, **kwargs: Any) -> Any: ...


class Query(NamedTuple):
    """A question that was asked of a database."""

    sql: str
    rows: int
    """How many came back."""
    seconds: float


class DatabaseTable(Source):
    """A table or query of any backend of Ibis, or a relation of DuckDB, which is asked through Ibis too."""

    unit = "database"
    expensive_pass = False

    def __init__(self, data: Any, *, options: ReadOptions | None = None) -> None:
        try:
            import ibis
        except ImportError as error:
            raise ImportError("expected ibis, to ask a database, found none; pip install 'vff[database]'") from error
        self.options = options or ReadOptions()
        if self.options.checkpoint is not None:
            raise ValueError("a database is asked for sums, and there is no long pass to keep; leave checkpoint= out")
        self._relation = data if hasattr(data, "query") else None
        if self._relation is not None:
            schema = {column.name: _type_of(column.type) for column in data.limit(0).to_arrow_table().schema}
            data = ibis.table(schema, name=_NAME)
        elif not hasattr(data, "aggregate"):
            raise TypeError(f"a table of a database was expected, found {type(data).__name__}; select a table")
        self.expression = data
        self.names = tuple(data.columns)
        self.kinds = {name: _kind_of(kind) for name, kind in data.schema().items()}
        self.batches = "to_pyarrow_batches" if self._relation is None else "to_arrow_reader"
        """The method of the user's table that gives rows in chunks, for advice."""
        self.queries: list[Query] = []
        """All that was asked, in order."""

    @staticmethod
    def number(value: float) -> Any:
        """A number, as expressions write it."""
        import ibis

        return ibis.literal(value, "float64")

    def with_options(self, **changes: Any) -> Self:
        twin = super().with_options(**changes)
        vars(twin).pop("rows", None)  # which were others
        return twin

    def restricted(self, columns: Sequence[str]) -> Self:
        twin = super().restricted(columns)
        twin.expression = self.expression.select(list(twin.names or ()))
        return twin

    def select(self, roles: Roles) -> Self:
        """The same table, in which columns have roles; questions name the columns they are about."""
        twin = self.with_options(keep_missing=roles.levels)
        twin.roles = roles
        return twin

    def parts(self) -> Iterator[Part]:
        """All rows together, in the order in which the database hands them out."""
        yield ReadPart("database", self._fetched)

    def _fetched(self) -> Iterator[Chunk]:
        from vff.data.arrow import in_chunks  # of what comes from a database, Arrow is there

        first, n = 0, self.options.chunk_rows
        if self._relation is None:
            batches = self.expression.to_pyarrow_batches(chunk_size=n)
        else:
            batches = self._relation.query(_NAME, self._sql(self.expression)).to_arrow_reader(n)
        with closing(batches):  # a connection with an open answer takes no other question
            for batch in batches:
                if batch.num_rows:
                    where = f"database, rows {first:,} to {first + batch.num_rows - 1:,}"
                    yield Chunk(where, in_chunks(batch)).counted(self.options)
                    first += batch.num_rows

    def reduce(self, task: Any, checkpoint: Any = None, without: tuple[str, ...] = ()) -> PassState[Any]:
        """By sums over groups, where the task can do with them."""
        if not hasattr(task, "from_groups"):
            return super().reduce(task, checkpoint, without)
        found = task.from_groups(self.rows)
        totals = self.rows.totals
        record = PartRecord("database", "", totals.n + totals.weightless, totals.dropped, 1)
        return PassState((record,), committed=found, complete=True)

    def revisitable(self) -> Source:
        """The different rows with their weights, in memory."""
        return self.rows.different()

    @cached_property
    def rows(self) -> DatabaseRows:
        """The rows with their targets and weights, which have to have a name."""
        roles = self.roles
        if roles is None or roles.target is None:
            raise ValueError(
                "requires y to be passed, but the target y is None: name the column of the database that holds it"
            )
        return DatabaseRows(self, roles)

    def ask(self, question: Any) -> Any:
        """The answer as an Arrow table."""
        started = time.perf_counter()
        sql, relation = self._sql(question), self._relation
        answer = question.to_pyarrow() if relation is None else relation.query(_NAME, sql).to_arrow_table()
        self.queries.append(Query(sql, answer.num_rows, time.perf_counter() - started))
        return answer

    def _sql(self, question: Any) -> str:
        import ibis

        return str(ibis.to_sql(question, dialect=None if self._relation is None else "duckdb"))


def _type_of(arrow: Any) -> Any:
    """What Ibis calls a type of Arrow; a relation may have columns that nobody knows, as long as they are not used."""
    import ibis

    try:
        return ibis.dtype(arrow)
    except (LookupError, NotImplementedError, TypeError, ValueError):
        return ibis.dtype("interval('us')") if "interval" in str(arrow) else ibis.expr.datatypes.unknown


def _kind_of(kind: Any) -> Kind:
    return next((name for test, name in _KINDS.items() if getattr(kind, test)()), Kind.TEXT)
