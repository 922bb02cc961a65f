"""What columns hold."""

from enum import StrEnum


class Kind(StrEnum):
    """What a column holds. The one list of kinds: whoever meets a column of some library translates its type to one."""

    NUMBER = "number"
    INTEGER = "integer"
    """Whole numbers that must not become floats: levels, labels."""
    DATETIME = "datetime"
    DURATION = "duration"
    BOOLEAN = "boolean"
    TEXT = "text"
    """Text, categories, and whatever else is told apart and not counted."""
    UNKNOWN = "unknown"
    """Nothing but missing values so far."""

    def __repr__(self) -> str:
        return repr(self.value)  # messages show it as a text

    @property
    def counts(self) -> bool:
        """Whether values are numbers as they are."""
        return self in (Kind.NUMBER, Kind.INTEGER, Kind.BOOLEAN)

    @property
    def is_time(self) -> bool:
        """Whether values are counted in days."""
        return self in (Kind.DATETIME, Kind.DURATION)

    @property
    def family(self) -> "Kind":
        """What terms see: integers are numbers, and so is what is not known yet."""
        return Kind.NUMBER if self in (Kind.INTEGER, Kind.UNKNOWN) else self


DECLARABLE = (Kind.TEXT, Kind.NUMBER, Kind.INTEGER, Kind.DATETIME, Kind.BOOLEAN)
"""What a user may say that a column holds."""
IN_MEMORY = (Kind.NUMBER, Kind.DATETIME, Kind.DURATION, Kind.BOOLEAN, Kind.TEXT)
"""What a column of a table holds."""
