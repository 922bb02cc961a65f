"""Aligned tables."""

import doctest

import numpy as np
import pytest

from vff.report import table, text


def test_the_documented_example() -> None:
    assert doctest.testmod(text).failed == 0


def test_numbers_right_words_left() -> None:
    assert table([("rows", 1000), ("M", 7)]) == "rows  1000\nM        7"


def test_header_and_numpy_numbers() -> None:
    lines = table([(np.int64(3), np.float64(0.5)), (12, 1e9)], header=["M", "seconds"]).splitlines()
    assert lines == [" M  seconds", "--  -------", " 3      0.5", "12    1e+09"]


def test_dictionaries_may_lack_keys() -> None:
    assert table([{"a": 1, "b": "x"}, {"a": 2}]) == "a  b\n-  -\n1  x\n2"


def test_nothing() -> None:
    assert table([]) == ""


@pytest.mark.parametrize("header", [None, ["one"]])
def test_uneven_rows(header: list[str] | None) -> None:
    rows = [(1, 2), (3,)] if header is None else [(1, 2)]
    with pytest.raises(ValueError, match=r"equally many cells; found \[1, 2\]"):
        table(rows, header)
