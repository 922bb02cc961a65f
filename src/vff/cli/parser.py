"""The commands and their options, with help that teaches. Imports nothing but argparse."""

import argparse
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

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

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{shortened(one_line(message), _LONGEST)}; {self.prog} --help has the options and an example")


def make_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = _Parser(
        prog="vff",
        description=ABOUT,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"vff {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for name, add in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=SUMMARIES[name],
            description=SUMMARIES[name][0].upper() + SUMMARIES[name][1:] + ".",
            epilog=PAGES[name],
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        add(command)
        _add_common(command)
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how it talks")
    group.add_argument("--json", action="store_true", help="print one JSON object and nothing else on standard output")
    group.add_argument("--quiet", action="store_true", help="no progress and no warnings on standard error")
    group.add_argument("--debug", action="store_true", help="show where in the program an error arose")


def _add_out(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--out", required=True, metavar="FILE", help=what)
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists (an input never is)")


def _add_reading(parser: argparse.ArgumentParser, *, checkpoint: bool = True, chunk_rows: int = 2**20) -> None:
    group = parser.add_argument_group("how the rows are read")
    group.add_argument("--missing", choices=("refuse", "drop"), default="refuse", help="rows with a missing value in "
                       "a column that is used: refused by name, or left out and counted (default: refuse)")  # fmt: skip
    group.add_argument("--faulty", choices=("refuse", "skip"), default="refuse", help="files that cannot be read: "
                       "refused by name, or left out whole with a warning (default: refuse)")  # fmt: skip
    group.add_argument("--types", metavar="LIST", help="what columns of CSV hold, if not what they look like: "
                       "'zip=text'")  # fmt: skip
    group.add_argument("--delimiter", metavar="SIGN", help="between the values of CSV, if not a comma: ';'")
    group.add_argument("--chunk-rows", type=_positive, default=chunk_rows, metavar="N", help="rows in memory at a "
                       f"time (default: {chunk_rows})")  # fmt: skip
    if checkpoint:
        group.add_argument("--checkpoint", metavar="FILE", help="write the state of a long pass to FILE, and go on "
                           "from it when the same command is run again")  # fmt: skip


def _add_model(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the model")
    group.add_argument("--target", metavar="COLUMN", help="the column to explain and predict")
    group.add_argument("--terms", metavar="TEXT", help="effects to add up, as in 'hour + day * cat(zone)'; "
                       "default '.', one for every column")  # fmt: skip
    group.add_argument("--weight", metavar="COLUMN", help="a row of weight 3 counts as three equal rows")
    group.add_argument("--domain", metavar="LIST", help="where functions live, in the columns' units: "
                       "'hour=0:24, day=2024-01-01:2024-12-31'; default: the range of the rows")  # fmt: skip
    group.add_argument("--frequencies", metavar="LIST", help="detail: '30', or 'hour=30, hour * day=12x8'; default: "
                       "as much as the rows support")  # fmt: skip
    group.add_argument("--edges", type=int, metavar="N", help="edge functions per column; default: by the kernel")
    group.add_argument("--units", metavar="LIST", help="'hour=h, load=kW': for labels and tables, kept in the file; "
                       "values are not converted")  # fmt: skip


def _add_fit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="+", metavar="DATA", help="CSV, Parquet or Arrow files, patterns, folders; or "
                        "statistics (.vffm) of 'vff moments' and 'vff merge'")  # fmt: skip
    _add_model(parser)
    group = parser.add_argument_group("what is observed")
    group.add_argument("--likelihood", choices=_Likelihoods(), metavar="NAME", help="how the target scatters: "
                       "%(choices)s (default: gaussian)")  # fmt: skip
    group.add_argument("--exposure", metavar="COLUMN", help="of counts: how long or how many were watched")
    group.add_argument("--classify", action="store_true", help="the target is a label, of two classes or more")
    _add_reading(parser)
    _add_out(parser, "the model, ending in .vff")


def _add_moments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="+", metavar="DATA", help="CSV, Parquet or Arrow files, patterns, folders")
    _add_model(parser)
    _add_reading(parser)
    _add_out(parser, "the statistics, ending in .vffm")


def _add_merge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("parts", nargs="+", metavar="PART", help="statistics of 'vff moments', ending in .vffm")
    _add_out(parser, "the statistics of all rows, ending in .vffm")


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a model of 'vff fit', ending in .vff")
    parser.add_argument("data", nargs="+", metavar="DATA", help="rows with the columns that the model uses")
    parser.add_argument("--level", type=_share, default=0.95, metavar="P", help="probability that a new observation "
                        "lies between lower and upper (default: 0.95)")  # fmt: skip
    parser.add_argument("--keep", metavar="COLUMNS", help="columns of DATA to copy in front: 'id, day'")
    _add_reading(parser, checkpoint=False, chunk_rows=2**17)
    _add_out(parser, "the predictions, ending in .parquet or .csv")


def _add_effects(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a model of 'vff fit', ending in .vff")
    parser.add_argument("--terms", metavar="NAMES", help="which terms, as 'vff info' names them: 'hour, hour * day'")
    parser.add_argument("--class", dest="of_class", metavar="LABEL", help="of more than two classes: which one")
    parser.add_argument("--level", type=_share, default=0.95, metavar="P", help="of the bands (default: 0.95)")
    _add_out(parser, "a picture (.png, .pdf, .svg), or the numbers (.csv)")


def _add_info(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a model (.vff), statistics (.vffm), or a file or folder of data")
    parser.add_argument("--types", metavar="LIST", help="as for 'vff fit'")
    parser.add_argument("--delimiter", metavar="SIGN", help="as for 'vff fit'")


def _add_rows(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a model of 'vff fit', ending in .vff")
    parser.add_argument("data", nargs="+", metavar="DATA", help="rows with the columns that the model uses")
    parser.add_argument("--target", metavar="COLUMN", help="default: that of the model")
    parser.add_argument("--weight", metavar="COLUMN", help="default: that of the model")
    _add_reading(parser)
    _add_out(parser, "the new model, ending in .vff")


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="vff-demo", metavar="FOLDER", help="where to (default: vff-demo)")
    parser.add_argument("--rows", type=_positive, default=4000, metavar="N", help="how many rows (default: 4000)")
    parser.add_argument("--force", action="store_true", help="replace files of an earlier demo")


_COMMANDS: dict[str, Callable[[Any], None]] = {
    "fit": _add_fit,
    "predict": _add_predict,
    "effects": _add_effects,
    "info": _add_info,
    "update": _add_rows,
    "forget": _add_rows,
    "moments": _add_moments,
    "merge": _add_merge,
    "demo": _add_demo,
}


def _positive(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"a whole number from 1 was expected, found {shown(text)}")
    return number


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0.0 < share < 1.0:
        raise argparse.ArgumentTypeError(f"a number between 0 and 1 was expected, found {shown(text)}")
    return share
