"""Terms as people write them: what they mean, that they come back, and that mistakes are placed."""

import doctest
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vff.kernels import Categorical, Matern12, Matern32, Matern52, Matern92, Sum, formula, write_kernel
from vff.kernels.formula import ColumnError, parse_terms

KINDS = {
    "month": "number",
    "dep_time": "duration",
    "arr_time": "datetime",
    "airline": "text",
    "late": "boolean",
    "wind speed": "number",
    "cat": "number",
    "größe": "number",
    "a.b": "number",
    "tick`ed": "number",
    "route": "list",
}
MATERNS = (Matern12, Matern32, Matern52, Matern92)


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("month + dep_time * arr_time", Matern32("month") + Matern32("dep_time") * Matern32("arr_time")),
        ("airline", Categorical("airline")),
        ("late", Matern32("late")),
        ("cat(month) * airline", Categorical("month") * Categorical("airline")),
        ("cat + cat(cat)", Matern32("cat") + Categorical("cat")),
        ("smooth(month)", Matern32("month")),
        ("smooth(month, 5/2)", Matern52("month")),
        ("smooth( `wind speed` , 9 / 2, lengthscale=3)", Matern92("wind speed", lengthscale=3)),
        ("Matern52(month)", Matern52("month")),
        ("Matern52('month', lengthscale=2)", Matern52("month", lengthscale=2)),
        ("`wind speed` + 'wind speed' + \"wind speed\"", Sum((Matern32("wind speed"),) * 3)),
        ("`tick``ed` + größe + a.b", Matern32("tick`ed") + Matern32("größe") + Matern32("a.b")),
        ("'wind\\x20speed'", Matern32("wind speed")),
        (
            "(month + cat) * airline",
            Matern32("month") * Categorical("airline") + Matern32("cat") * Categorical("airline"),
        ),
        ("cat(route,)", Categorical("route")),
    ],
)
def test_what_is_written_is_meant(text, kernel):
    assert parse_terms(text, KINDS) == kernel
    assert parse_terms(f"({text})", KINDS) == kernel


def test_a_dot_is_every_other_column():
    kinds = {"a": "number", "b": "text", "c": "number", "y": "number"}
    apart = {"y": "the target"}
    assert parse_terms(".", kinds, apart=apart) == Matern32("a") + Categorical("b") + Matern32("c")
    assert parse_terms("smooth(a, 5/2) + .", kinds, apart=apart) == Matern52("a") + Categorical("b") + Matern32("c")
    assert parse_terms("`a` * .", kinds, apart=apart) == Matern32("a") * Categorical("b") + Matern32("a") * Matern32(
        "c"
    )
    assert parse_terms("a * b + .", kinds, apart=apart) == Matern32("a") * Categorical("b") + Matern32("c")
    with pytest.raises(ColumnError, match=r"at character 9, \. stands for .* there are none; leave it out$"):
        parse_terms("a*b*c + .", kinds, apart=apart)


@pytest.mark.parametrize(
    ("text", "place", "expected", "found"),
    [
        ("", 1, "a column, a call", "the end"),
        ("month +", 8, "a column, a call", "the end"),
        ("month * * cat", 9, "a column, a call", "*"),
        ("month cat", 7, "+, * or the end", "cat"),
        ("month - cat", 7, "one of ( ) + * , = .", "'-'"),
        ("(month", 7, "+, * or )", "the end"),
        ("month)", 6, "+, * or the end", ")"),
        ("log(month)", 1, "smooth, Categorical", "log"),
        ("cat(", 5, "a column", "the end"),
        ("cat(3)", 5, "a column", "3"),
        ("cat(airline, variance)", 22, "= was expected", ")"),
        ("cat(airline, lengthscale=2)", 14, "variance= or )", "lengthscale"),
        ("smooth(month, 2/2)", 15, "a smoothness (1/2, 3/2", "2"),
        ("smooth(month, 5", 15, "a smoothness (1/2, 3/2", "5"),
        ("Matern52(month, lengthscale=x)", 29, "a number", "x"),
        ("`month", 1, "a closing `", "none after `month"),
        ("'month\n'", 1, "a closing '", "none after 'month;"),
        ("'\\q'", 2, "an escape that repr writes", "\\q"),
        ("(" * 5000, 101, "at most 100 parentheses", "one more"),
        ("__import__('os')", 1, "one of cat, ", "__import__"),
    ],
)
def test_mistakes_are_placed(text, place, expected, found):
    with pytest.raises(ValueError, match=f"^terms: at character {place}, [^\n]*; write terms as in") as caught:
        parse_terms(text, KINDS)
    assert expected in str(caught.value)
    assert f"found {found}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("month + mnoth", "9, .* found 'mnoth', which is none; perhaps 'month' was meant"),
        ("Airline", "perhaps 'airline' was meant"),
        ("zzz", "the columns are 'month', 'dep_time', .*, ..."),
        ("smooth(airline)", r"numbers or times .* 'airline', which holds text; write cat\(...\) around 'airline'"),
        ("month + route", "9, .*'route', which holds list; leave it out"),
        ("month * a.b", "'a.b', which is the target; leave it out of the terms"),
    ],
)
def test_columns_that_cannot_be_used(text, sentence):
    with pytest.raises(ColumnError, match=f"^terms: at character .*{sentence}"):
        parse_terms(text, KINDS, apart={"a.b": "the target"})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("cat + month * month", "at character 7, Product: one factor per column"),
        ("Matern32(month, variance=-1)", "at character 1, Matern32.*variance must be a positive number"),
    ],
)
def test_what_a_kernel_refuses_is_placed(text, sentence):
    with pytest.raises(ValueError, match=f"^terms: {sentence}"):
        parse_terms(text, KINDS)


def test_only_text_is_read():
    with pytest.raises(TypeError, match="a text was expected, got Matern32"):
        parse_terms(Matern32("month"), KINDS)


def test_the_docstring_is_true():
    assert doctest.testmod(formula).attempted == 2
    assert doctest.testmod(formula).failed == 0


ODD = st.sampled_from(["a`b", "'", "x y", ""])
NAMES = st.lists(st.text(st.characters(), max_size=6) | ODD, min_size=2, max_size=5, unique=True)
VALUES = st.none() | st.floats(min_value=0.0, exclude_min=True, allow_infinity=False)


def factors(name):
    smooth = st.builds(lambda kind, *v: kind(name, variance=v[0], lengthscale=v[1]), st.sampled_from(MATERNS), VALUES,
                       VALUES)  # fmt: skip
    return smooth | st.builds(lambda variance: Categorical(name, variance=variance), VALUES)


@st.composite
def kernels(draw):
    """Sums of products over names of any characters, and the names."""
    names = draw(NAMES)
    terms = draw(
        st.lists(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True), min_size=1, max_size=4)
    )
    parts = []
    for term in terms:
        product = draw(factors(term[0]))
        for name in term[1:]:
            product = product * draw(factors(name))
        parts.append(product)
    return names, sum(parts[1:], parts[0])


@given(kernels())
def test_kernels_come_back(both):
    names, kernel = both
    assert parse_terms(write_kernel(kernel), dict.fromkeys(names, "number")) == kernel


@given(NAMES)
def test_any_name_can_be_quoted(names):
    quoted = " + ".join(f"`{name.replace('`', '``')}`" for name in names)
    assert parse_terms(quoted, dict.fromkeys(names, "number")) == Sum(tuple(map(Matern32, names)))


MARKS = ["cat(", "smooth(", "Matern52(", "(", ")", "+", "*", ",", "=", "/", ".", "5/2", " ", "`", "'", "\\", "\n"]
PIECES = st.sampled_from([*KINDS, *MARKS, "variance=1", "lengthscale", "9e999"])


@given(st.text() | st.lists(PIECES, max_size=12).map("".join))
@example("smooth(month,")
@example("cat(cat")
@example("smooth(month, 5/")
@example("month `a\nb`")
def test_no_text_does_worse_than_a_placed_error(text):
    sentence = "terms: at character "
    with suppress(ValueError):
        try:
            parse_terms(text, KINDS, apart={"late": "the target"})
        except ValueError as error:
            sentence = str(error)
            raise
    assert sentence.startswith("terms: at character ")
    assert len(sentence.splitlines()) == 1


def test_terms_that_multiply_out_are_refused_before_they_do():
    kinds = {f"{name}{k}": "number" for name in "ab" for k in range(600)}
    doubled = " * ".join(f"(a{k} + b{k})" for k in range(200))
    with pytest.raises(ValueError, match=r"^terms: at character \d+, at most 1,000 terms were .* 1,024 or more when"):
        parse_terms(doubled, kinds)
    with pytest.raises(ValueError, match=r"^terms: at character 1, at most 1,000 terms were expected, found 1,200 or"):
        parse_terms(".", kinds)
    with pytest.raises(ValueError, match=r"^terms: at character 6, at most 1,000 terms were expected, found 1,199 or"):
        parse_terms("a0 * .", kinds)
    with pytest.raises(ValueError, match="at most 32 factors in a term were expected, found 33 or more"):
        parse_terms(" * ".join(list(kinds)[:40]), kinds)
