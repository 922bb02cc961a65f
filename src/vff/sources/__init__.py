"""Where rows come from that are not in memory: files, folders, streams, clusters, databases.

``scan`` opens what a user hands in. A source is read part by part and chunk by chunk (``base``), a pass over it is a
task that every chunk answers (``passes``), and the state of a long pass is kept on the disk (``checkpoint``).
"""

from vff.sources.base import AbstractPart, AbstractSource, Chunk, Handling, Progress, Report, SourceError
from vff.sources.checkpoint import Checkpoint, PartRecord, Standing
from vff.sources.database import DatabaseRows, DatabaseTable, Groups, Query, TooManyGroupsError, Totals
from vff.sources.missing import selected
from vff.sources.opening import is_chunked, opened, scan
from vff.sources.passes import FaultyPartWarning, Spread, Task, asked, check_same_rows, reduce

__all__ = [
    "AbstractPart",
    "AbstractSource",
    "Checkpoint",
    "Chunk",
    "DatabaseRows",
    "DatabaseTable",
    "FaultyPartWarning",
    "Groups",
    "Handling",
    "PartRecord",
    "Progress",
    "Query",
    "Report",
    "SourceError",
    "Spread",
    "Standing",
    "Task",
    "TooManyGroupsError",
    "Totals",
    "asked",
    "check_same_rows",
    "is_chunked",
    "opened",
    "reduce",
    "scan",
    "selected",
]
