"""What a case that broke a law says, and the law about errors and warnings that all kinds share."""

import os
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import vff
from vff import ExtrapolationWarning

_LONGEST = 400  # characters of a sentence
_OURS = os.path.dirname(os.path.abspath(vff.__file__))
_RULES_OF_SKLEARN = os.sep + "sklearn" + os.sep


@dataclass(frozen=True)
class Finding:
    """A broken law: which one, how, and a program that shows it."""

    law: str
    sentence: str
    script: str = ""


@dataclass(frozen=True)
class Outcome:
    """What came of a case. ``counts`` are figures of what was done, such as fits and refusals."""

    finding: Finding | None = None
    counts: dict[str, int] = field(default_factory=dict)


def is_refusal(error: BaseException, kinds: tuple[type, ...] = (ValueError,)) -> bool:
    """Whether this is a refusal in our own words: an error of a plain kind that was raised by us, in one sentence.

    NumPy's LinAlgError is a ValueError too, and so are what Arrow and pandas raise: those are accidents.
    """
    plain = type(error) in kinds or (isinstance(error, kinds) and type(error).__module__.startswith("vff."))
    frames = traceback.extract_tb(error.__traceback__)
    ours = bool(frames) and (frames[-1].filename.startswith(_OURS) or _RULES_OF_SKLEARN in frames[-1].filename)
    return plain and ours and is_sentence(str(error))


def is_sentence(text: str) -> bool:
    return 20 <= len(text) <= _LONGEST and "\n" not in text


def accident(error: BaseException) -> str:
    """One line for an error that should not have come, with where it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    text = str(error).replace("\n", "\\n")
    return f"{type(error).__name__}{place}: {text[:300]}"


def stray(warned: Sequence[warnings.WarningMessage], *, outside: bool) -> str | None:
    """The first warning that nobody asked for; with rows outside, those of extrapolation are expected."""
    for each in warned:
        if not (outside and issubclass(each.category, ExtrapolationWarning)):
            return f"{each.category.__name__}: {str(each.message)[:300]}"
    return None
