"""From the words on the command line to an exit code: the only place that prints, and the only one that catches."""

import json
import math
import os
import re
import sys
import traceback
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from typing import Any, NamedTuple

from vff.cli.failures import GOOD, code_of, one_line, sentence_of
from vff.cli.parser import make_parser

_NUMBER = re.compile(r"[0-9][0-9,.]*")


class Result(NamedTuple):
    """The answer of a command, for programs and for people."""

    record: dict[str, Any]
    """What ``--json`` prints."""
    text: str
    """What is printed otherwise."""


def as_json(record: Mapping[str, Any]) -> str:
    """One JSON object; numbers that JSON does not have become null."""
    return json.dumps(_plain(record), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and say how it went; the result is the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    options = Namespace(json="--json" in words, debug="--debug" in words)
    try:
        options = make_parser().parse_args(words)
        result = run(options)
    except SystemExit as done:  # --help and --version have printed what they had to say
        return done.code if isinstance(done.code, int) else GOOD
    except (Exception, KeyboardInterrupt) as error:
        return _failed(error, options)
    return _printed(as_json(result.record) if options.json else result.text)


def run(options: Namespace) -> Result:
    """The command that was asked for; its warnings go to standard error, and into the record."""
    command: Callable[[Namespace], Result] = getattr(import_module(options.home), options.command)
    # whatever a library prints on the way is not the answer
    with _warnings_shown(quiet=options.quiet) as sentences, redirect_stdout(sys.stderr):
        result = command(options)
    return Result({**result.record, "warnings": sentences}, result.text) if sentences else result


@contextmanager
def _warnings_shown(*, quiet: bool) -> Iterator[list[str]]:
    """Every new warning is a line on standard error and in the list, once however many pieces of rows it comes from."""
    sentences: list[str] = []

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        sentence = one_line(str(message))
        # the next piece of the rows has other counts
        if _NUMBER.sub("#", sentence) in [_NUMBER.sub("#", known) for known in sentences]:
            return
        sentences.append(sentence)
        if not quiet:
            print(f"vff: warning: {sentence}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for kind in (DeprecationWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", kind)
        warnings.showwarning = show
        yield sentences


def _failed(error: BaseException, options: Namespace) -> int:
    code, sentence = code_of(error), sentence_of(error, options)
    if options.debug:
        traceback.print_exception(error)
    if options.json:
        _printed(as_json({"error": sentence, "code": code}))
    else:
        print(f"vff: error: {sentence}", file=sys.stderr)
    return code


def _printed(text: str) -> int:
    """Print in the letters that the terminal knows; that nobody reads on, as in ``vff info | head``, is no error."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        if text:
            print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more when it ends
    return GOOD
