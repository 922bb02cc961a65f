"""What users gave, as messages show it: on one line, and never all of a text without end."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vff
from vff import Categorical, GPClassifier, GPRegressor, Matern32, parse_kernel
from vff.kernels.formula import parse_terms
from vff.likelihoods import Poisson
from vff.words import LONGEST, listed, perhaps, shortened, shown, shown_path

ENDLESS = "n" * 100_000
X = np.linspace(0.0, 1.0, 12)
FRAME = pd.DataFrame({"x": X})
TEXTS = pd.DataFrame({ENDLESS: [f"{ENDLESS}{row}" for row in range(12)]})
NUMBERS = pd.DataFrame({ENDLESS: X})
KERNEL = Matern32("x")


@given(st.text(), st.integers(40, 100))
def test_a_text_is_shown_whole_or_with_both_ends(text: str, longest: int) -> None:
    line = shortened(text, longest)
    assert "\n" not in line
    assert len(line) <= longest
    assert line == text or "\n" in text or line.endswith(f"({len(text):,} characters)")


def test_names_lists_and_paths() -> None:
    assert shown("a name") == "'a name'"
    assert shown(np.zeros((2, 2))) == "array([[0., 0.], [0., 0.]])"
    assert len(shown(ENDLESS)) == LONGEST
    assert shown(ENDLESS).endswith("nnn' (100,002 characters)")
    assert listed(["a", 2]) == "'a', 2"
    assert listed(range(14)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 ..."
    path = "/a/long/path" * 20 + "/to/rows.csv"
    assert shown_path(path) == repr(path)
    assert "/rows.csv'" in shown_path(path * 2)


def fit(kernel: object = KERNEL, X: object = FRAME, y: object = X, **options: object) -> Callable[[], object]:
    return lambda: GPRegressor(kernel, **options).fit(X, y)  # pyright: ignore[reportArgumentType]


LONG = Matern32(ENDLESS)
DOORS: dict[str, Callable[[], object]] = {
    "a column that is not there": fit(LONG),
    "columns that are there": fit(X=NUMBERS),
    "a column without names": fit(LONG, X[:, None]),
    "missing values": fit(LONG, pd.DataFrame({ENDLESS: np.where(X > 0.5, np.nan, X)}), missing="refuse"),
    "text": fit(LONG, TEXTS),
    "twice": fit(LONG, pd.DataFrame(np.c_[X, X], columns=[ENDLESS, ENDLESS])),
    "domain of what is not there": fit(domain={ENDLESS: (0, 1)}),
    "domain the wrong way round": fit(LONG, NUMBERS, domain={ENDLESS: (1, 0)}),
    "domain of a text": fit(LONG, NUMBERS, domain={ENDLESS: ENDLESS}),
    "frequencies": fit(LONG, NUMBERS, frequencies={ENDLESS: -1}),
    "a list of frequencies": fit(frequencies=list(range(100_000))),
    "likelihood": fit(likelihood=ENDLESS),
    "engine": fit(engine=ENDLESS),
    "covariance": fit(covariance=ENDLESS),
    "inference": fit(inference=ENDLESS),
    "a kernel as text": fit(ENDLESS),
    "exposure": fit(likelihood=Poisson(exposure=ENDLESS)),
    "priors": fit(inference="mcmc", priors={ENDLESS: 1.0}),
    "one class": lambda: GPClassifier(KERNEL).fit(FRAME, [ENDLESS] * 12),
    "a classifier's likelihood": lambda: GPClassifier(KERNEL, likelihood=ENDLESS).fit(FRAME, X > 0.5),
    "a value of a kernel": lambda: Matern32(ENDLESS, variance=-1.0),
    "a product": lambda: LONG * LONG,
    "a sum": lambda: LONG + ENDLESS,  # pyright: ignore[reportOperatorIssue]
    "no values": lambda: LONG(X, X),
    "an unknown kernel": lambda: parse_kernel(f"{ENDLESS}('x')"),
    "an unknown value": lambda: parse_kernel(f"Matern32('x', {ENDLESS}=1)"),
    "terms": lambda: parse_terms(ENDLESS, {"x": "number"}),
    "columns of terms": lambda: parse_terms("y", {ENDLESS: "number"}),
    "levels": lambda: parse_terms(f"smooth({ENDLESS})", {ENDLESS: "text"}),
    "a file": lambda: vff.scan(f"{ENDLESS}.csv"),
    "a pattern": lambda: vff.scan(f"{ENDLESS}*.csv"),
    "a model": lambda: vff.load(ENDLESS),
}


@pytest.mark.parametrize("door", DOORS)
def test_what_has_no_end_is_not_echoed_whole(door: str) -> None:
    with pytest.raises((ValueError, TypeError, OSError)) as caught:
        DOORS[door]()
    said = str(caught.value)
    assert len(said) < 700
    assert "\n" not in said


def test_what_has_no_end_in_files(tmp_path: Path) -> None:
    contents = {
        f"{ENDLESS},{ENDLESS}\n1,2\n": KERNEL,
        f"{ENDLESS},y\na,1\nb,2\n": LONG,
        "x,y\n" + "1,2\n" * 300_000 + f"{ENDLESS},2\n": KERNEL,
        f"x,y,{ENDLESS}\n1,2,3\n": Categorical("z"),
    }
    for number, (content, kernel) in enumerate(contents.items()):
        path = tmp_path / f"{number}.csv"
        path.write_text(content)
        with pytest.raises(ValueError, match=r"^.{20,900}$"):
            GPRegressor(kernel).fit(str(path), "y")


def test_names_that_were_almost_right_are_guessed():
    assert perhaps("mag_er", ["mjd", "mag_err"]) == ": perhaps 'mag_err' was meant"
    assert perhaps("LogPrice", ["logprice", "x"]) == ": perhaps 'logprice' was meant"
    assert perhaps("star", ["mjd"]) == ""
    assert perhaps(3, None) == ""
