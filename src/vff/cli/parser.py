"""The commands and their options, with help that teaches. Imports nothing but argparse."""

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from vff import __version__
from vff.cli.failures import UsageError, one_line
from vff.cli.pages import ABOUT, EXAMPLES, PAGES, SUMMARIES
from vff.words import shortened, shown

_LONGEST = 400  # characters of what argparse says, which repeats what it was given


class _Likelihoods:
    """Their names, asked for when they are needed: their room takes ten times as long to import as this."""

    def __iter__(self) -> Iterator[str]:
        from vff.likelihoods import likelihood_names

        return iter(likelihood_names())


class _Parser(argparse.ArgumentParser):
    """Says what is wrong by an exception, so that it is printed like any other error, and nothing exits by itself."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{shortened(one_line(message), _LONGEST)}; {self.prog} --help has the options and an example")


def make_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = _Parser(prog="vff", description=ABOUT, epilog=EXAMPLES)
    parser.add_argument("--version", action="version", version=f"vff {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for name, command in _COMMANDS.items():
        summary = SUMMARIES[name]
        own = commands.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + ".", epilog=PAGES[name]
        )
        own.set_defaults(home=f"vff.cli.{command.home}")
        out = {"--out": {"required": True, "metavar": "FILE", "help": command.out}, "--force": _FORCE}
        written = [("", out)] if command.out else []
        for title, options in [("", command.own), *command.groups.items(), *written, ("how it talks", _TALKING)]:
            group = own.add_argument_group(title) if title else own
            for flag, more in options.items():
                group.add_argument(flag, **more)
    return parser


def _positive(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"a whole number from 1 was expected, found {shown(text)}")
    return number


def _pairs(text: str) -> int | str:
    if text == "auto":
        return text
    try:
        return _positive(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"auto or a whole number from 1 was expected, found {shown(text)}") from None


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0.0 < share < 1.0:
        raise argparse.ArgumentTypeError(f"a number between 0 and 1 was expected, found {shown(text)}")
    return share


_Options = dict[str, dict[str, Any]]
"""What argparse is to know of options and arguments, by name."""
_FORCE = {"action": "store_true", "help": "replace FILE if it exists (an input never is)"}
_TALKING: _Options = {
    "--json": {"action": "store_true", "help": "print one JSON object and nothing else on standard output"},
    "--quiet": {"action": "store_true", "help": "no progress and no warnings on standard error"},
    "--debug": {"action": "store_true", "help": "show where in the program an error arose"},
}
_MODEL: _Options = {
    "--target": {"metavar": "COLUMN", "help": "the column to explain and predict"},
    "--terms": {"metavar": "TEXT", "help": "effects to add up, as in 'hour + day * cat(zone)'; default '.', one for "
                "every column"},
    "--weight": {"metavar": "COLUMN", "help": "a row of weight 3 counts as three equal rows"},
    "--noise-std": {"metavar": "COLUMN", "help": "error bars: known standard deviations of the target, beside which "
                    "noise is learnt"},
    "--offset": {"metavar": "COLUMN", "help": "is added to the function, on the scale of the link, wherever it is "
                 "predicted: the logarithm of a population"},
    "--domain": {"metavar": "LIST", "help": "where functions live, in the columns' units: 'hour=0:24, "
                 "day=2024-01-01:2024-12-31'; default: the range of the rows"},
    "--frequencies": {"metavar": "LIST", "help": "detail: '30', or 'hour=30, hour * day=12x8'; default: as much as the "
                      "rows support"},
    "--edges": {"type": int, "metavar": "N", "help": "edge functions per column; default: by the kernel"},
    "--units": {"metavar": "LIST", "help": "'hour=h, load=kW': for labels and tables, kept in the file; values are not "
                "converted"},
}  # fmt: skip
_CHOSEN: _Options = {
    "--interactions": {"type": _pairs, "metavar": "auto|N", "help": "let products of two terms join the sum as long as "
                       "they pay: at most 5, or N; default: none"},
    "--hyperparameters": {"choices": ("auto", "integrate", "maximise"), "help": "predictions average over what "
                          "learning does not know of them where that matters, always, or never (default: auto)"},
}  # fmt: skip
_OBSERVED: _Options = {
    "--likelihood": {"choices": _Likelihoods(), "metavar": "NAME", "help": "how the target scatters: %(choices)s "
                     "(default: gaussian)"},
    "--exposure": {"metavar": "COLUMN", "help": "of counts: how long or how many were watched"},
    "--classify": {"action": "store_true", "help": "the target is a label, of two classes or more"},
}  # fmt: skip
_READING: _Options = {
    "--missing": {"choices": ("effect", "drop", "refuse"), "help": "a missing value in a column of numbers that is "
                  "used: it has an effect of its own, its row is left out and counted, or refused by name (default: "
                  "effect, or as the model was fitted)"},
    "--faulty": {"choices": ("refuse", "skip"), "default": "refuse", "help": "files that cannot be read: refused by "
                 "name, or left out whole with a warning (default: refuse)"},
    "--types": {"metavar": "LIST", "help": "what columns of CSV hold, if not what they look like: 'zip=text'"},
    "--delimiter": {"metavar": "SIGN", "help": "between the values of CSV, if not a comma: ';'"},
    "--chunk-rows": {"type": _positive, "default": 2**20, "metavar": "N", "help": "rows in memory at a time (default: "
                     "%(default)s)"},
    "--checkpoint": {"metavar": "FILE", "help": "write the state of a long pass to FILE, and go on from it when the "
                     "same command is run again"},
}  # fmt: skip
_MODEL_FILE = {"model": {"metavar": "MODEL", "help": "a model of 'vff fit', ending in .vff"}}
_ROWS = {"data": {"nargs": "+", "metavar": "DATA", "help": "rows with the columns that the model uses"}}
_LEVEL = {"type": _share, "default": 0.95, "metavar": "P"}
_OF_THE_MODEL = {"metavar": "COLUMN", "help": "default: that of the model"}


class _Command(NamedTuple):
    """Where a command is written, what it takes, under no title and under some, and what its output is."""

    home: str
    own: _Options
    groups: dict[str, _Options] = {}  # noqa: RUF012
    out: str | None = None


_READ = {"how the rows are read": _READING}
_CHANGE = _Command(
    "fitting", _MODEL_FILE | _ROWS | {"--target": _OF_THE_MODEL, "--weight": _OF_THE_MODEL}, _READ,
    "the new model, ending in .vff",
)  # fmt: skip
_COMMANDS = {
    "fit": _Command(
        "fitting", {"data": _ROWS["data"] | {"help": "CSV, Parquet or Arrow files, patterns, folders; or statistics "
                    "(.vffm) of 'vff moments' and 'vff merge'"}},
        {"the model": _MODEL | _CHOSEN, "what is observed": _OBSERVED, **_READ}, "the model, ending in .vff",
    ),
    "predict": _Command(
        "answers", _MODEL_FILE | _ROWS | {
            "--level": _LEVEL | {"help": "probability that a new observation lies between lower and upper (default: "
                                 "0.95)"},
            "--keep": {"metavar": "COLUMNS", "help": "columns of DATA to copy in front: 'id, day'"},
        },
        {"how the rows are read": {
            **{flag: more for flag, more in _READING.items() if flag != "--checkpoint"},
            "--chunk-rows": _READING["--chunk-rows"] | {"default": 2**17},
        }},
        "the predictions, ending in .parquet or .csv",
    ),
    "effects": _Command(
        "answers", _MODEL_FILE | {
            "--terms": {"metavar": "NAMES", "help": "which terms, as 'vff info' names them: 'hour, hour * day'"},
            "--class": {"dest": "of_class", "metavar": "LABEL", "help": "of more than two classes: which one"},
            "--level": _LEVEL | {"help": "of the bands (default: 0.95)"},
        },
        out="a picture (.png, .pdf, .svg), or the numbers (.csv)",
    ),
    "info": _Command("info", {
        "file": {"metavar": "FILE", "help": "a model (.vff), statistics (.vffm), or a file or folder of data"},
        "--types": {"metavar": "LIST", "help": "as for 'vff fit'"},
        "--delimiter": {"metavar": "SIGN", "help": "as for 'vff fit'"},
    }),
    "update": _CHANGE,
    "forget": _CHANGE,
    "moments": _Command(
        "fitting", {"data": _ROWS["data"] | {"help": "CSV, Parquet or Arrow files, patterns, folders"}},
        {"the model": _MODEL, **_READ}, "the statistics, ending in .vffm",
    ),
    "merge": _Command(
        "fitting", {"parts": {"nargs": "+", "metavar": "PART", "help": "statistics of 'vff moments', ending in .vffm"}},
        out="the statistics of all rows, ending in .vffm",
    ),
    "demo": _Command("demo", {
        "--out": {"default": "vff-demo", "metavar": "FOLDER", "help": "where to (default: vff-demo)"},
        "--rows": {"type": _positive, "default": 4000, "metavar": "N", "help": "how many rows (default: 4000)"},
        "--force": {"action": "store_true", "help": "replace files of an earlier demo"},
    }),
}  # fmt: skip
