"""Warnings of a command, one line each, and each once however many pieces of the rows it comes from."""

import re
import sys
import warnings
from typing import Any, Self

from vff.cli.failures import one_line

_NUMBER = re.compile(r"[0-9][0-9,.]*")


class Warned:
    """While entered, every new warning is a line on standard error; ``sentences`` has them all."""

    def __init__(self, *, quiet: bool) -> None:
        self.sentences: list[str] = []
        self._quiet = quiet
        self._known: set[str] = set()
        self._context = warnings.catch_warnings()

    def __enter__(self) -> Self:
        self._context.__enter__()
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        warnings.showwarning = self._show
        return self

    def __exit__(self, *details: Any) -> None:
        self._context.__exit__(*details)

    def _show(self, message: Warning | str, *_: Any, **__: Any) -> None:
        sentence = one_line(str(message))
        kind = _NUMBER.sub("#", sentence)  # the next piece of the rows has other counts
        if kind in self._known:
            return
        self._known.add(kind)
        self.sentences.append(sentence)
        if not self._quiet:
            print(f"vff: warning: {sentence}", file=sys.stderr)
