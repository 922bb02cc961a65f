"""Rows, wherever they are: tables in memory, files, folders, streams, clusters, databases.

``open_rows`` and ``scan`` open what a user hands in, by the first of ``SOURCES`` that knows it. A source is read part
by part and chunk by chunk (``source``), a pass over it is a task that every chunk answers (``passes``), and the state
of a long pass is kept on the disk (``checkpoint``).
"""

from vff.data.checkpoint import Checkpoint, PartRecord, PassState
from vff.data.columns import column_kinds, text_in
from vff.data.database import DatabaseTable
from vff.data.groups import DatabaseRows, Groups, TooManyGroupsError
from vff.data.memory import MemorySource
from vff.data.opening import SOURCES, SourceKind, open_rows, scan
from vff.data.passes import FaultyPartWarning, check_same_rows, run_task
from vff.data.roles import Positive, Roles, UsedColumns
from vff.data.schema import Kind
from vff.data.source import NEEDS_REVISITS, Chunk, Part, Progress, ReadOptions, Source, SourceError
from vff.data.table import Table

__all__ = [
    "NEEDS_REVISITS",
    "SOURCES",
    "Checkpoint",
    "Chunk",
    "DatabaseRows",
    "DatabaseTable",
    "FaultyPartWarning",
    "Groups",
    "Kind",
    "MemorySource",
    "Part",
    "PartRecord",
    "PassState",
    "Positive",
    "Progress",
    "ReadOptions",
    "Roles",
    "Source",
    "SourceError",
    "SourceKind",
    "Table",
    "TooManyGroupsError",
    "UsedColumns",
    "check_same_rows",
    "column_kinds",
    "open_rows",
    "run_task",
    "scan",
    "text_in",
]
