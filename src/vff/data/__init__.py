"""Rows, wherever they are: tables in memory, files, folders, streams, clusters, databases.

``open_rows`` and ``scan`` open what a user hands in, by the first of ``SOURCES`` that knows it. A source is read part
by part and chunk by chunk (``source``), a pass over it is a task that every chunk answers (``passes``), and the state
of a long pass is kept on the disk (``checkpoint``).
"""

from vff.data.checkpoint import Checkpoint, PartRecord, PassState
from vff.data.database import DatabaseTable, Query
from vff.data.groups import DatabaseRows, Groups, TooManyGroupsError, Totals
from vff.data.memory import MemorySource
from vff.data.opening import SOURCES, SourceKind, open_rows, registered, scan
from vff.data.passes import FaultyPartWarning, Task, asked, check_same_rows
from vff.data.roles import Positive, Roles, Used
from vff.data.schema import Kind, Schema
from vff.data.source import ASKED_AGAIN, Chunk, Handling, Part, Progress, Report, Source, SourceError
from vff.data.table import Table

__all__ = [
    "ASKED_AGAIN",
    "SOURCES",
    "Checkpoint",
    "Chunk",
    "DatabaseRows",
    "DatabaseTable",
    "FaultyPartWarning",
    "Groups",
    "Handling",
    "Kind",
    "MemorySource",
    "Part",
    "PartRecord",
    "PassState",
    "Positive",
    "Progress",
    "Query",
    "Report",
    "Roles",
    "Schema",
    "Source",
    "SourceError",
    "SourceKind",
    "Table",
    "Task",
    "TooManyGroupsError",
    "Totals",
    "Used",
    "asked",
    "check_same_rows",
    "open_rows",
    "registered",
    "scan",
]
