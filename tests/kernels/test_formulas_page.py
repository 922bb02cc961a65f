"""The table of docs/formulas.md is true, line by line; run as a program, this file writes it anew."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vff import GPRegressor
from vff.data import column_kinds, open_rows
from vff.estimators.formulas import for_rows
from vff.kernels import parse_kernel

PAGE = Path(__file__).parents[2] / "docs" / "formulas.md"
ROW = re.compile(r"^\| (ours|ours, not R's|mgcv|lme4|R) \| (`+) ?(.*?) ?\2 \| (.*) \|$", re.MULTILINE)
NUMBERS = ("x", "z", "hour", "doy", "lon", "lat", "wind speed", "log_n", "y")
TABLE = pd.DataFrame({name: np.linspace(0.0, 1.0, 4) for name in NUMBERS}).assign(
    day=pd.date_range("2024-01-01", periods=4), house=list("abab"), room=["hall", "attic"] * 2, region=list("abca")
)


def rows() -> list[tuple[str, str, str]]:
    """Whose they are, formulas, and what the page says that they become."""
    return [(own[0], own[2].replace("\\|", "|"), own[3].replace("\\|", "|")) for own in ROW.findall(PAGE.read_text())]


def becomes(text: str) -> str:
    """What a model with this formula would be asked to fit, or the sentence that refuses it."""
    try:
        spec = for_rows(GPRegressor(text)._spec(), open_rows(TABLE), "y", None)
    except ValueError as error:
        return f"refused: {error}"
    return f"`{spec.kernel!r}`" + ("" if spec.offset is None else f", with `offset={spec.offset!r}`")


@pytest.mark.parametrize(("whose", "text", "said"), rows(), ids=[text for _, text, _ in rows()])
def test_a_line_of_the_table(whose: str, text: str, said: str) -> None:
    assert becomes(text) == said


def test_the_table_is_long_enough() -> None:
    read = [(whose, text) for whose, text, said in rows() if not said.startswith("refused")]
    assert len(read) >= 60
    assert {whose for whose, _ in read} == {"ours", "ours, not R's", "mgcv", "lme4", "R"}
    assert len(rows()) - len(read) >= 20
    assert len({text for _, text in read}) == len(read)


@pytest.mark.parametrize(
    "text", [text for _, text, said in rows() if not said.startswith("refused") and "~" not in text]
)
def test_parse_kernel_agrees(text: str) -> None:
    if "offset(" in text:
        with pytest.raises(
            ValueError, match=r"^parse_kernel: at character 8, .* give the model offset='log_n', and leave"
        ):
            parse_kernel(text, TABLE)
        return
    kernel = parse_kernel(text, TABLE)
    assert f"`{kernel!r}`" == becomes(text)
    kinds = column_kinds(open_rows(TABLE))
    assert kinds is not None
    assert parse_kernel(text, dict(kinds)) == kernel
    try:
        alone = parse_kernel(text)
    except ValueError as error:
        assert re.search(r"nobody knows|is known what|, or give data", str(error))  # noqa: PT017
    else:
        assert alone == kernel


if __name__ == "__main__":

    def anew(match: re.Match[str]) -> str:
        text = match[3].replace("\\|", "|")
        shown = f"{match[2]} {match[3]} {match[2]}" if len(match[2]) > 1 else f"`{match[3]}`"
        return f"| {match[1]} | {shown} | {becomes(text)} |".replace(becomes(text), becomes(text).replace("|", "\\|"))

    PAGE.write_text(re.sub(ROW.pattern.replace(r"(.*) \|$", r"(.*?) ?\|$"), anew, PAGE.read_text(), flags=re.MULTILINE))
