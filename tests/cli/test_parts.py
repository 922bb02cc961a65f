"""The small parts of the command line: options of several columns, progress, files that are whole or not there."""

import io
import shlex
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vff.cli import progress
from vff.cli.entry import as_json
from vff.cli.failures import UsageError, in_shell_words
from vff.cli.options import domain, frequencies, names, texts, types
from vff.cli.progress import Reporter, describe, duration
from vff.data.source import Progress
from vff.storage import written_whole


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (None, "auto"),
        ("x=0:24", {"x": (0.0, 24.0)}),
        ("x=-5:5e1, y = 0..1 ", {"x": (-5.0, 50.0), "y": (0.0, 1.0)}),
        ("`wind, speed`=1:2, 'a=b'=3:4,", {"wind, speed": (1.0, 2.0), "a=b": (3.0, 4.0)}),
        ("day=1970-01-02:1970-01-04", {"day": (1.0, 3.0)}),
        ("day=1970-01-02T12:00..1970-01-04T00:00:00Z", {"day": (1.5, 3.0)}),
    ],
)
def test_domains(text, read):
    assert domain(text) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (None, "auto"),
        ("auto", "auto"),
        ("30", 30),
        ("x=30, a*b=10", {"x": 30, "a * b": 10}),
        ("`a b` *  c=12x8", {"a b * c": (12, 8)}),
    ],
)
def test_frequencies(text, read):
    assert frequencies(text) == read


@pytest.mark.parametrize("text", ["x", "x=", "x=1", "=1:2", "x=1:2:3", "x=1:2, x=1:2", ",", "`x=1:2", "x=a:b"])
def test_domains_that_are_refused(text):
    with pytest.raises(UsageError, match=r"^--domain was expected to be like 'hour=0:24"):
        domain(text)


@pytest.mark.parametrize(
    ("text", "found", "advice"),
    [
        ("a=5:1", "'a=5:1'", "write 1:5"),
        ("x=0:1, a = 5 .. 1", "'a = 5 .. 1'", "write 1..5"),
        ("day=2024-12-31:2024-01-01", "'day=2024-12-31:2024-01-01'", "write 2024-01-01:2024-12-31"),
        ("a=5:5", "'a=5:5'", "give two ends that differ"),
    ],
)
def test_domains_that_are_the_wrong_way_round(text, found, advice):
    with pytest.raises(UsageError) as caught:
        domain(text)
    expected = "--domain was expected to lead from the lower end of a column to the upper one"
    assert str(caught.value) == f"{expected}, found {found}; {advice}"


def test_types():
    assert types("a=text, `b c`=number") == {"a": "text", "b c": "number"}
    assert types(None) == {}
    with pytest.raises(UsageError, match=r"^--types was expected to be like 'zip=text, day=datetime', found 'a=';"):
        types("a=")
    with pytest.raises(UsageError) as caught:
        types("b=text, a=colour")
    words = "text, number, integer, datetime, boolean"
    expected = "--types was expected to say what a column holds"
    assert str(caught.value) == f"{expected}, found 'a=colour'; write one of {words}"


@given(st.text())
def test_no_text_does_worse_than_a_usage_error(text):
    readers = domain, frequencies, types, lambda text: texts(text, "--units", "x=m"), lambda text: names(text, "--keep")
    for read in readers:
        try:
            read(text)
        except UsageError as error:
            assert len(str(error).splitlines()) == 1  # noqa: PT017


def test_names():
    assert names("id, `wind, speed` ,'x'", "--keep") == ["id", "wind, speed", "x"]
    assert names(None, "--keep") == []


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (61, "1 min 01 s"), (3600, "1 h 00 min"), (7379, "2 h 02 min")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_progress_in_words():
    half = Progress("summing", 500, 1000, 0.5, 10.0, "a.csv")
    assert describe(half, bar=False) == "summing 500 of 1,000 rows, 50 rows/s, 10 s left"
    assert describe(half, bar=True).startswith("summing [############............] 500 of")
    unknown = Progress("summing", 5000, None, None, 10.0, "a.csv")
    assert describe(unknown, bar=True) == "summing 5,000 rows, 500 rows/s"
    resumed = Progress("summing", 500, 1000, 0.5, 10.0, "a.csv", resumed=250)
    assert describe(resumed, bar=False) == "summing 500 of 1,000 rows, 25 rows/s, 20 s left"


def test_what_is_done_with_rows_that_were_read(monkeypatch):
    monkeypatch.setattr(progress, "_LEARNING", -1.0)
    for then in ("learning from", "answering for"):
        reporter = Reporter(stream=io.StringIO(), then=then)
        reporter(Progress("reading", 1000, 1000, 1.0, 10.0, "a.csv"))
        assert reporter.line().startswith(f"{then} 1,000 rows")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["plain", "terminal"])
def test_a_reporter_talks_when_it_takes_long(monkeypatch, stream):
    monkeypatch.setattr(progress, "_PATIENCE", 0.02)
    monkeypatch.setattr(progress, "_EVERY", {True: 0.01, False: 0.01})
    with Reporter(stream=stream) as reporter:
        reporter.phase("learning")
        time.sleep(0.1)
    assert "learning, 0 s" in stream.getvalue()
    assert ("\r" in stream.getvalue()) == stream.isatty()


def test_a_reporter_is_silent_when_it_is_quick_or_told_to_be(monkeypatch):
    quick, quiet = io.StringIO(), io.StringIO()
    with Reporter(stream=quick):
        pass
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with Reporter(stream=quiet, quiet=True):
        time.sleep(0.05)
    assert quick.getvalue() == quiet.getvalue() == ""


def test_files_are_whole_or_not_there(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("old")
    with suppress(RuntimeError), written_whole(path) as draft:
        draft.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    with written_whole(path) as draft:
        draft.write_text("new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_json_has_no_numbers_of_its_own():
    assert as_json({"a": float("nan"), "b": [1.0, float("inf")], 3: (True, None)}) == (
        '{"a": null, "b": [1.0, null], "3": [true, null]}'
    )


@pytest.mark.parametrize(
    ("said", "here"),
    [
        ("with types={'day': \"text\"}", "with --types day=text"),
        ("with types={'wind speed': \"text\"}", "with --types 'wind speed=text'"),
        ("with types={'a,b': ...}", "with --types '`a,b`=...'"),
        ('with types={"it\'s": "text"}', "with --types '`it'\"'\"'s`=text'"),
        ("with pandas.to_numeric(X['price'])", "with --types price=number"),
        ("with pandas.to_datetime(X['day'])", "with --types day=datetime"),
        ("or write the kernel with Categorical('price')", "or write --terms with cat(price)"),
        ("use Categorical('wind speed') for", "use cat(`wind speed`) in --terms for"),
        ("column 'x' of X holds text", "column 'x' holds text"),
        (r"with Categorical('two\nlines')", r"with Categorical('two\nlines')"),
    ],
)
def test_words_of_python_in_the_shell(said, here):
    assert in_shell_words(said) == here


def test_types_are_advised_as_they_are_taken():
    for name in ("day", "wind speed", "a,b", "it's", "a=`b`", "ünï"):
        words = shlex.split(in_shell_words(f'types={{{name!r}: "text"}}'))
        assert words[0] == "--types"
        assert types(words[1]) == {name: "text"}
