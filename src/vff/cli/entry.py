"""From the words on the command line to an exit code: the only place that prints, and the only one that catches."""

import os
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from importlib import import_module

from vff.cli.failures import GOOD, code_of, sentence_of
from vff.cli.parser import make_parser
from vff.cli.results import Result, as_json
from vff.cli.warned import Warned

_HOMES = {
    "fit": "vff.cli.fitting",
    "update": "vff.cli.fitting",
    "forget": "vff.cli.fitting",
    "moments": "vff.cli.summing",
    "merge": "vff.cli.summing",
    "predict": "vff.cli.predicting",
    "effects": "vff.cli.showing",
    "info": "vff.cli.info",
    "demo": "vff.cli.demo",
}


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
    command: Callable[[Namespace], Result] = getattr(import_module(_HOMES[options.command]), options.command)
    # whatever a library prints on the way is not the answer
    with Warned(quiet=options.quiet) as warned, redirect_stdout(sys.stderr):
        result = command(options)
    if warned.sentences:
        return Result({**result.record, "warnings": warned.sentences}, result.text)
    return result


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
