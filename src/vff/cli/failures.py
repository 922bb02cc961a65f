"""What can go wrong, as exit codes and sentences of one line."""

import errno
import re
import shlex
from collections.abc import Callable
from typing import Any

from vff.words import LONGEST_PATH, shortened

GOOD, BUG, USAGE, DATA, FILE, PACKAGE, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130

_EXTRAS = {"matplotlib": "plot", "pyarrow": "files", "blackjax": "mcmc", "arviz": "mcmc"}


class UsageError(Exception):
    """A command that cannot be meant, whatever the data are."""


class OutputError(Exception):
    """A file that cannot be read or written."""


def code_of(error: BaseException) -> int:
    """The exit code that an error ends the command with."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, UsageError):
        return USAGE
    if isinstance(error, ImportError):
        return PACKAGE
    if (
        isinstance(error, OutputError | OSError) or type(error).__name__ == "FileError"
    ):  # naming it would import storage
        return FILE
    return DATA if isinstance(error, ValueError | TypeError | MemoryError) else BUG


def sentence_of(error: BaseException, options: Any) -> str:
    """What is said about an error, on one line."""
    checkpoint = getattr(options, "checkpoint", None)
    if isinstance(error, KeyboardInterrupt):
        resume = f"; run the same command again to go on from {checkpoint}" if checkpoint else "; nothing was written"
        return f"interrupted{resume}"
    if isinstance(error, ImportError):
        return _missing_package(error)
    if isinstance(error, OSError) and error.strerror:
        return _operating_system(error)
    if isinstance(error, MemoryError):
        return "a chunk of rows was expected to fit in memory and did not; give a smaller --chunk-rows"
    text = in_shell_words(one_line(str(error))) or type(error).__name__
    if code_of(error) == BUG:
        return (
            f"{type(error).__name__}: {text}; this was not expected: run again with --debug and report what it prints"
        )
    if "missing value" in text and getattr(options, "missing", "drop") != "drop":
        return f"{text}; --missing drop leaves such rows out, and counts them"
    return text


_NAME = (
    r"""['"](?P<name>(?<=')[^'\\]*(?=')|(?<=")[^"\\]*(?="))['"]"""  # of a column, as Python writes those of one line
)
_WORD = re.compile(r"\w+")


def _type(match: re.Match[str], kind: str) -> str:
    """What a column holds, as ``--types`` takes it."""
    name = match["name"]
    if _WORD.fullmatch(name):
        return f"--types {name}={kind}"
    odd = any(sign in name for sign in ",=`'\"")
    return "--types " + shlex.quote(f"{_quoted(name)}={kind}" if odd else f"{name}={kind}")


def _level(match: re.Match[str]) -> str:
    """A column of levels, as ``--terms`` takes it."""
    name = match["name"]
    return f"cat({name if _WORD.fullmatch(name) else _quoted(name)})"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


_SHELL_WORDS: dict[str, str | Callable[[re.Match[str]], str]] = {
    r"give domain=\(a, b\) wide enough": "fit with a --domain wide enough",
    r"domain=": "--domain ",
    r"sample_weight": "the weight",
    r" of X (?=contains|holds)": " ",
    r"delimiter=": "--delimiter",
    rf"types={{{_NAME}: \"?(?P<kind>[a-z]+|\.\.\.)\"?}}": lambda match: _type(match, match["kind"]),
    r"types=": "--types ",
    r"partial_fit": "vff update",
    rf"give the model frequencies={{{_NAME}: (?P<most>[0-9]+)}}": lambda match: (
        f"give --frequencies {shlex.quote(match['name'] + '=' + match['most'])}"
    ),
    r"frequencies=": "--frequencies ",
    r"hyperparameters='(?P<how>[a-z]+)'": lambda match: f"--hyperparameters {match['how']}",
    rf"write fit\(frame, {_NAME}\)": lambda match: f"give --target {shlex.quote(match['name'])}",
    r"the target is named in fit": "the target is that of --target",
    r"normalize_y=False": "normalize_y=False of Python",
    rf"pandas\.to_numeric\(X\[{_NAME}\]\)": lambda match: _type(match, "number"),
    rf"pandas\.to_datetime\(X\[{_NAME}\]\)": lambda match: _type(match, "datetime"),
    rf"write the kernel with Categorical\({_NAME}\)": lambda match: f"write --terms with {_level(match)}",
    rf"Categorical\({_NAME}\)": lambda match: f"{_level(match)} in --terms",
    r"and kernel=None does not take them for a category": "and without --terms they are not taken for a category",
    r"which kernel=None does not take for a category": "which are not taken for a category without --terms",
    r"too many for kernel=None to take it for a category": "too many to be taken for a category without --terms",
    r"kernel=None took the text in column": "without --terms, text was taken for a category in column",
}
"""What the library calls things, as patterns, and what they are called here."""


def in_shell_words(text: str) -> str:
    """A sentence of the library as one of the command line."""
    for words, here in _SHELL_WORDS.items():
        text = re.sub(words, here, text)
    return text


def one_line(text: str) -> str:
    """The text with its line breaks and runs of spaces as single spaces, and no word of endless length."""
    return " ".join(shortened(word, LONGEST_PATH) for word in text.split())


def _missing_package(error: ImportError) -> str:
    package = (error.name or "").split(".")[0]
    if not package or package == "vff":
        return one_line(str(error))
    extra = _EXTRAS.get(package)
    how = f"pip install 'vff[{extra}]'" if extra else f"pip install {package}"
    return f"this command needs the package {package}, which is not installed; {how}"


def _operating_system(error: OSError) -> str:
    where = f"{shortened(error.filename, LONGEST_PATH)}: " if error.filename else ""
    advice = {
        errno.ENOENT: "check the path",
        errno.EACCES: "check its permissions",
        errno.ENOSPC: "make room and run again",
    }.get(error.errno or 0, "check the file")
    return f"{where}{(error.strerror or '').lower()}; {advice}"
