"""Formulas of others: what they mean, that no text does worse than a placed sentence, and that none makes work."""

import re
from contextlib import suppress

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vff.factors import KINDS
from vff.kernels import (
    Areas,
    Categorical,
    Linear,
    Matern32,
    Ordered,
    Periodic,
    Product,
    Sum,
    parse_kernel,
    write_kernel,
)
from vff.kernels.columns import ColumnError, Columns
from vff.kernels.formula import Formula, parse_terms
from vff.kernels.reading import parse_formula
from vff.kernels.tokens import Reader
from vff.parameters import between, fixed

HELD = {
    "x": "number",
    "z": "number",
    "t": "datetime",
    "late": "boolean",
    "g": "text",
    "h": "text",
    "wind speed": "number",
}


def model(text: str, **columns) -> Formula:
    return parse_formula(text, Columns(HELD, **columns))


def test_a_product_is_ours_and_not_that_of_r():
    both = Matern32("x") * Matern32("z")
    assert model("x * z").kernel == both == model("x:z").kernel == model("te(x, z)").kernel
    assert model("x + z + x:z").kernel == Matern32("x") + Matern32("z") + both
    assert model("x:z:g").kernel == Product((Matern32("x"), Matern32("z"), Categorical("g")))


def test_kinds_of_columns_decide_what_by_means():
    assert model("s(x, by=g)").kernel == Matern32("x") * Categorical("g")
    for name in ("z", "t", "late"):
        assert model(f"s(x, by={name})").kernel == Linear(name) * Matern32("x")
    assert model("te(x, z, by='wind speed')").kernel == Linear("wind speed") * Matern32("x") * Matern32("z")
    assert model("s(g, x, bs='re')").kernel == Linear("x") * Categorical("g")
    assert model("s(g, x, bs='fs')").kernel == Matern32("x") * Categorical("g") == model("s(x, g, bs='sz')").kernel
    for text in ("s(x, by=g)", "s(x, g, bs='re')", "x", "x * g"):
        with pytest.raises(ValueError, match=r"^parse_kernel: at character \d+, .*(known|nobody knows)"):
            parse_kernel(text)


def test_groups_in_groups():
    g, h = Categorical("g"), Categorical("h")
    assert model("(1 | g/h)").kernel == g + g * h == model("(1 | g) + (1 | g:h)").kernel
    assert model("(1|g/h:late)").kernel == g + Product((g, h, Categorical("late")))
    assert model("(0 + x || g/h)").kernel == Linear("x") * g + Product((Linear("x"), g, h))
    assert model("(1 | `wind speed`)").kernel == Categorical("wind speed")
    assert model("(x + 0 | g)").kernel == model("(-1 + x | g)").kernel == Linear("x") * g
    assert model("(1 | g) * s(x)").kernel == g * Matern32("x")
    assert model("((1 | g) + s(x))").kernel == g + Matern32("x")


def test_targets_offsets_and_constants():
    assert model("y ~ s(x)", target="y") == Formula(Matern32("x")) == model("~ s(x)") == model("y ~ s(x)")
    assert model("1 + s(x) + offset(`wind speed`)") == Formula(Matern32("x"), "wind speed")
    assert model("offset(z) + .", left_out=["t", "late"]).kernel == Sum(
        (Matern32("x"), Categorical("g"), Categorical("h"), Matern32("wind speed"))
    )
    refused = {
        "z ~ s(x)": "fit, which is 'y'; leave out 'z' ~ and write fit",
        "offset(z) + offset(z) + x": r"one offset .* give the model offset='z'",
        "(offset(z) + x)": "one offset beside the terms of the sum",
        "offset(g) + x": "a column of numbers or times was expected, found 'g'",
        "offset(z)": "a term beside it was expected, found offset alone",
        "1": "a term beside it",
        "1 + 1 + x": "5, a term was expected, found 1, a number",
        "(1 + x) * g": "2, a term was expected, found 1, a number",
        "2 * x": "1, a column, a term such as",
        "x -1": "found '-', which takes nothing away",
        "x * offset(z)": "found offset, which stands beside the terms",
    }
    for text, sentence in refused.items():
        with pytest.raises(ValueError, match=f"^kernel: at character .*{sentence}"):
            model(text, target="y")


@pytest.mark.parametrize("held", [fixed(2.0), between(0.1, 10.0)], ids=repr)
def test_what_is_known_of_a_number_is_read(held, monkeypatch):
    """Whatever leaves make of it."""
    seen = {}
    monkeypatch.setattr(Matern32, "__init__", lambda self, column, **values: seen.update(values))
    for text in (f"Matern32(x, lengthscale={held!r})", f"s(x, lengthscale={held!r})"):
        seen.clear()
        with suppress(AttributeError):  # of a leaf that is not made
            parse_kernel(text)
        assert repr(seen["lengthscale"]) == repr(held)
        assert type(seen["lengthscale"]) is type(held)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("s(x, variance=fixed())", "21, a number was expected"),
        ("s(x, variance=fixed(1, 2))", r"22, \) was expected"),
        ("s(x, variance=between(1))", "24, , and another number was expected"),
        ("s(x, variance=between(2, 1))", "15, between takes a lower and an upper bound"),
        ("s(x, variance=fixed(nan))", "21, a number was expected, found nan"),
        ("s(x, variance=fixed(9e999))", "15, fixed takes finite numbers"),
        ("s(x, variance=eval(1))", "15, .* was expected, found eval"),
    ],
)
def test_what_is_said_wrongly_of_a_number(text, sentence):
    with pytest.raises(ValueError, match=f"^parse_kernel: at character {sentence}"):
        parse_kernel(text)


def test_a_field_may_name_a_column(monkeypatch):
    monkeypatch.setattr(Matern32, "value_columns", frozenset({"lengthscale"}))
    for text in ("Matern32(x, lengthscale=h)", "s(x, lengthscale='h')"):
        with pytest.raises(ValueError, match="lengthscale must be a positive number, got 'h'"):
            parse_kernel(text)
        with pytest.raises(ColumnError, match="'h', which is none"):
            parse_kernel(text, {"x": "number"})


def test_values_without_names_are_those_of_python():
    assert parse_kernel("Periodic(h, 24, lengthscale=2)") == Periodic("h", 24, lengthscale=2)
    assert parse_kernel("Ordered(g, ['a', 'b'])") == Ordered("g", ["a", "b"])
    assert parse_kernel("areas(g, {'a': ['b']})") == Areas("g", {"a": ["b"]})
    for text in ("Periodic(h, 24, 2)", "Periodic(h, lengthscale=2, 24)", "Periodic(h, 24, period=24)", "linear(x, 2)"):
        with pytest.raises(ValueError, match=r"^parse_kernel: at character \d+, .*= or .* was expected, found"):
            parse_kernel(text)


def test_columns_without_names_go_by_number():
    numbered = Columns({0: "number", 1: "number", 2: "text"})
    assert parse_formula("s(0) + (1 | -1)", numbered).kernel == Matern32(0) + Categorical(-1)
    assert parse_formula("te(0, 1) + .", numbered).kernel == Matern32(0) * Matern32(1) + Categorical(2)
    assert parse_formula("s(0, by=2) + .", numbered).kernel == Matern32(0) * Categorical(2) + Matern32(1)
    with pytest.raises(ColumnError, match="found 3, which is none; these have numbers from 0 to 2"):
        parse_formula("s(3)", numbered)
    with pytest.raises(ColumnError, match="found 'x', which is none; these have numbers"):
        parse_formula("s(x)", numbered)
    with pytest.raises(ValueError, match="a column was expected, found 0"):
        model("s(0)")


def test_data_may_be_anything_that_has_columns(tmp_path):
    frame = pd.DataFrame({"x": [0.0, 1.0], "g": ["a", "b"]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for data in (frame, {"x": "integer", "g": "text"}, str(tmp_path / "rows.csv"), lambda: iter([frame])):
        assert parse_kernel("x * g", data) == Matern32("x") * Categorical("g")
    assert parse_kernel("s(0) + .", frame[["x"]].to_numpy().repeat(2, axis=1)) == Matern32(0) + Matern32(1)
    with pytest.raises(ValueError, match=r"columns were expected to hold one of number, .*, got 'float'"):
        parse_kernel("x", {"x": "float"})
    with pytest.raises(ColumnError, match=r"^parse_kernel: at character 1, .* perhaps 'x' was meant"):
        parse_kernel("X", frame)


VALID = (
    "s(x) + te(x, z) + (1 | g) + cc(t, 365.25)",
    "y ~ 1 + s(x, by=g, lengthscale=2) + offset(z)",
    "(1 + x | g/h) + (x || g:h) * s(z)",
    "s(x, g, bs='fs') + s(g, bs=\"re\") + ti(x, `wind speed`, bs='cr')",
    "Matern52(x, lengthscale=fixed(2), variance=between(0.1, 10)) * cat(z) + .",
    "ordered(g, ['a', 'b']) + areas(h, {'a': ['b', 'c'], 'd': []}, kind='proper')",
    "(x + z) * (g + factor(late)) : smooth(t, 5/2)",
    "s(g, bs='mrf', neighbours={1: [2]}) + s(x, bs='cc', period=24, order=2)",
)
CALLS = "s( te( cc( cat( offset( fixed( between( Periodic( (1|g) (x||g) y~ by=g bs='re' k=5 lengthscale=2 %in%"
MARKS = "| || ~ ( ) + * : / - ^ , = . [ ] { } 0 1 -1 5/2 1e999 'x' \" ` \\ # 🦔"
PIECES = st.sampled_from([*CALLS.split(), *MARKS.split(), *HELD, "`wind speed`", "\n", "\0", "9" * 5000, "x" * 2000])


@st.composite
def mutated(draw):
    """A formula in which pieces were put in, taken out or moved."""
    text = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        stop = draw(st.integers(start, min(len(text), start + 6)))
        text = text[:start] + draw(PIECES | st.just("") | st.text(max_size=2)) + text[stop:]
    return text


TEXTS = st.text() | st.lists(PIECES, max_size=14).map("".join) | st.lists(PIECES, max_size=14).map(" ".join) | mutated()
DOORS = {
    "parse_kernel": parse_kernel,
    "parse_kernel of data": lambda text: parse_kernel(text, HELD),
    "terms": lambda text: parse_terms(text, HELD, apart={"late": "the target"}),
    "kernel": lambda text: model(text, target="y"),
    "kernel of an array": lambda text: parse_formula(text, Columns({0: "number", 1: "text"})),
}


@given(TEXTS)
@example("s(x,")
@example("s(x, bs=")
@example("(1 | ")
@example("(`a\nb` | g)")
@example("te(`a\nb`, x, by=`c\nd`)")
@example("offset(`a\nb`)")
@example("'a\nb' ~ x")
@example("s(`a\nb`, bs='cc')")
@example(f"s(x, {'a' * 2000}=1)")
@example(f"te(x, z, {'a' * 2000}=1)")
@example(f"s(x, {'a' * 2000}=1, {'a' * 2000}=1)")
def test_no_text_does_worse_than_a_placed_sentence(text):
    for door, read in DOORS.items():
        try:
            read(text)
        except ValueError as error:
            sentence = str(error)
            assert re.match(rf"{door.split()[0]}: at character \d+, ", sentence)
            assert len(sentence.splitlines()) == 1
            assert len(sentence) < 1000


@given(st.sampled_from(VALID))
def test_what_is_read_is_written_and_read(text):
    if "fixed(" in text:  # which leaves take when they know of it
        text = text.replace("fixed(2)", "2").replace("between(0.1, 10)", "1")
    kernel = model(text, target="y").kernel
    assert parse_kernel(write_kernel(kernel)) == kernel == parse_kernel(write_kernel(kernel), HELD)
    assert parse_terms(write_kernel(kernel), HELD) == kernel


HOSTILE = {
    "parentheses": ("(" * 10**4, 110),
    "more parentheses": ("(" * 10**5, 110),
    "closed parentheses": ("(" * 10**4 + "s(x)" + ")" * 10**4, 110),
    "lists in lists": ("areas(g, " + "[" * 10**5, 10),
    "terms": ("s(x)+" * 20_000, 5100),
    "groups": ("(1|g)+" * 17_000, 6100),
    "open groups": ("(x+" * 33_000, 400),
    "wide products": ("te(" + "x," * 50_000, 80),
    "nested groups": ("(1|" + "g/" * 50_000, 80),
    "products": ("x:" * 50_000, 80),
    "dots": (".+" * 50_000, 2100),
    "constants": ("1+" * 50_000, 10),
    "names of values": ("s(x," + ",".join(f"a{k}=1" for k in range(15_000)) + ")", 140),
    "one word": ("x" * 10**5, 10),
    "one number": ("9" * 10**5, 10),
    "quotes": ("'" * 10**5, 10),
    "spaces": (" " * 10**5, 10),
    "what is no formula": ("\\" * 10**5, 10),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_refused_before_they_are_read(name, monkeypatch):
    """Tokens that are cut, a bound on the work whatever the machine does."""
    text, most = HOSTILE[name]
    count = 0
    cut = Reader._tokens

    def counted(self):
        nonlocal count
        for token in cut(self):
            count += 1
            yield token

    monkeypatch.setattr(Reader, "_tokens", counted)
    for read in DOORS.values():
        count = 0
        with pytest.raises(ValueError, match="at character"):
            read(text)
        assert count <= most


def test_names_of_calls_are_those_of_kernels():
    """A kernel of one's own is read by its name without anybody being told."""
    for name, leaf in KINDS.leaves.items():
        if leaf.nickname:
            with pytest.raises(ValueError, match=r"a column"):
                parse_kernel(f"{leaf.nickname}()")
        with pytest.raises(ValueError, match=r"\( was expected, found the end"):
            parse_kernel(name)
