"""Kernels as text and back, and the distributive law on expressions nested at random."""

import tracemalloc
from dataclasses import dataclass
from itertools import permutations
from math import prod

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import vff
from vff.kernels import (
    Categorical,
    Matern12,
    Matern32,
    Matern52,
    Matern72,
    Matern92,
    Product,
    Sum,
    normal_form,
    parse_kernel,
    write_kernel,
)

KINDS = (Matern12, Matern32, Matern52, Matern72, Matern92, Categorical)
NASTY = ["", "it's", 'say "x"', "'\"", "a\nb", "a\\nb", "tab\t", "\r", "\0", "\x7f", "é", "日本", "😀", "\u2028",
         "\ud800", "Matern32('a') + ", "a * b", "\\", "\\'"]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        (
            "Matern32('dep_time') + Matern52('lon', variance=2, lengthscale=0.3) * Matern52('lat')",
            Matern32("dep_time") + Matern52("lon", variance=2, lengthscale=0.3) * Matern52("lat"),
        ),
        (
            "(Matern32(0) + Matern32(1)) * Categorical('g')",
            Matern32(0) * Categorical("g") + Matern32(1) * Categorical("g"),
        ),
        ("Matern12(0) + Matern12(1) * Matern12(2)", Matern12(0) + Product((Matern12(1), Matern12(2)))),
        ("Matern12(0) * (Matern12(1) * (Matern12(2)))", Product((Matern12(0), Matern12(1), Matern12(2)))),
        ("((Matern92(-1)))", Matern92(-1)),
        ("Matern32(a)", Matern32("a")),
        ("Categorical('g',) + Matern12(0, variance=1,)", Categorical("g") + Matern12(0, variance=1)),
        ('  Matern72 (\n"a" ,lengthscale = 1e-3, variance=.5)\n', Matern72("a", variance=0.5, lengthscale=1e-3)),
        ("Matern32('\\x41\\u0042\\U00000043\\'\\\"\\\\')", Matern32("ABC'\"\\")),
    ],
)
def test_what_is_written_is_read(text, kernel):
    assert parse_kernel(text) == kernel
    assert parse_kernel(write_kernel(kernel)) == kernel


@pytest.mark.parametrize("column", [*NASTY, 0, -3, 10**30, np.int64(4), np.str_("it's")], ids=ascii)
def test_columns_come_back(column):
    kernel = Matern32(column) + Matern12("other") * Categorical(column)
    assert parse_kernel(write_kernel(kernel)) == kernel == parse_kernel(repr(kernel))


@pytest.mark.parametrize(
    "value", [2, 2.0, 0.25, 1 / 3, 2**60 + 1, 5e-324, 1.7976931348623157e308, np.float32(0.1), np.float64(0.1), True]
)
def test_values_come_back_to_the_last_bit(value):
    kernel = Matern32("x", variance=value, lengthscale=1)
    assert parse_kernel(write_kernel(kernel)) == kernel
    short = parse_kernel(repr(kernel))
    assert short.variance == float(f"{float(value):.6g}")
    assert repr(short) == repr(kernel)


def test_text_is_readable():
    kernel = Matern32("a", variance=2, lengthscale=0.25) * Categorical(1, variance=2.0) + Matern52("b", variance=1 / 3)
    assert write_kernel(kernel) == (
        "Matern32('a', variance=2, lengthscale=0.25) * Categorical(1, variance=2.0) + "
        "Matern52('b', variance=0.3333333333333333)"
    )
    assert repr(kernel).endswith("Categorical(1, variance=2) + Matern52('b', variance=0.333333)")
    assert write_kernel(Sum((Matern32("a"),))) == "Matern32('a')"
    assert vff.parse_kernel is parse_kernel


@pytest.mark.parametrize(
    ("text", "place", "expected", "found"),
    [
        ("", 1, "a kernel (Categorical, Matern12", "the end"),
        ("Matern33('a')", 1, "a kernel (Categorical, Matern12", "Matern33"),
        ("Matern32", 9, "( was expected", "the end"),
        ("Matern32()", 10, "a column (a quoted name or an index)", ")"),
        ("Matern32(=)", 10, "a column", "=;"),
        ("Matern32(1.0)", 10, "a column", "1.0"),
        ("Matern32('a'", 13, ", or ) was expected", "the end"),
        ("Matern32('a)", 10, "a closing '", "none after 'a)"),
        ("Matern32('a\n')", 10, "a closing '", "none after 'a;"),
        ("Matern32('a', 2)", 15, "variance= or lengthscale= or width= or std= or ) was expected", "2"),
        ("Matern32('a', scale=2)", 15, "variance= or lengthscale=", "scale"),
        (
            "Matern32('a', variance=1, variance=2)",
            27,
            "character 27, lengthscale= or width= or std= or ) was",
            "variance",
        ),
        ("Categorical('a', lengthscale=1)", 18, "variance= or ) was expected", "lengthscale"),
        ("Categorical('a', variance=1, variance=2)", 30, "character 30, ) was expected", "variance"),
        ("Categorical('a',, variance=1)", 17, "variance= or ) was expected", ","),
        ("Matern32('a', variance 1)", 24, "= was expected", "1"),
        ("Matern32('a', variance=x)", 24, "a number was expected", "x"),
        ("Matern32('a', variance='1')", 24, "a number was expected", "'1'"),
        ("Matern32('a') Matern32('b')", 15, "+, * or the end", "Matern32"),
        ("Matern32('a') - Matern32('b')", 15, "one of ( ) + * , =", "'-'"),
        ("Matern32('a') +", 16, "a kernel", "the end"),
        ("(Matern32('a')", 15, "+, * or )", "the end"),
        ("Matern32('a'))", 14, "the end was expected", ")"),
        ("Matern32('a\\q')", 12, "an escape that repr writes", "\\q"),
        ("Matern32('\\x4')", 11, "an escape that repr writes", "\\x"),
        ("Matern32('\\U00110000')", 11, "an escape that repr writes", "\\U"),
        ("__import__('os')", 1, "a kernel", "__import__"),
        ("(" * 10_000, 101, "at most 100 parentheses within each other", "one more"),
    ],
)
def test_mistakes_are_placed(text, place, expected, found):
    with pytest.raises(ValueError, match=f"^parse_kernel: at character {place}, [^\n]*; write kernels as") as caught:
        parse_kernel(text)
    sentence = str(caught.value)
    assert expected in sentence
    assert f"found {found}" in sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Matern12(0) + Matern32('a', variance=-1)", r"at character 15, Matern32\('a'\): variance must be a positive"),
        (f"Matern32('a', variance={'9' * 400})", r"at character 1, .*variance must be a positive number, got inf"),
        ("Matern12(0) + Matern32('a') * Matern12('a')", "at character 15, Product: one factor per column"),
        (f"Matern32({'9' * 5000})", "at character 10, Exceeds the limit"),
    ],
)
def test_what_a_kernel_refuses_is_placed(text, sentence):
    with pytest.raises(ValueError, match=f"^parse_kernel: {sentence}"):
        parse_kernel(text)


def test_only_text_is_read():
    with pytest.raises(TypeError, match="a text was expected, got Matern32"):
        parse_kernel(Matern32("a"))


# Expressions nested at random, kept as trees that know nothing of Sum and Product.


@dataclass(frozen=True)
class Node:
    """A sum or a product of two trees."""

    mark: str
    left: object
    right: object


def build(tree):
    """The kernel of a tree."""
    if not isinstance(tree, Node):
        return tree
    left, right = build(tree.left), build(tree.right)
    return left + right if tree.mark == "+" else left * right


def text(tree):
    """The tree with all its parentheses."""
    if not isinstance(tree, Node):
        return write_kernel(tree)
    return f"({text(tree.left)} {tree.mark} {text(tree.right)})"


def covariance(tree, x, z):
    """k(x, z) by the tree's own shape; x and z hold the values of each column."""
    if not isinstance(tree, Node):
        return tree(x[tree.column], z[tree.column])
    left, right = covariance(tree.left, x, z), covariance(tree.right, x, z)
    return left + right if tree.mark == "+" else left * right


def leaves(columns, values):
    """One-column kernels; ``values`` is a strategy for their variance and lengthscale."""

    def leaf(kind, column, variance, lengthscale):
        if kind is Categorical:
            return Categorical(column, variance=variance)
        return kind(column, variance=variance, lengthscale=lengthscale)

    return st.builds(leaf, st.sampled_from(KINDS), st.sampled_from(columns), values, values)


@st.composite
def trees(draw, columns, values, depth=3):
    """Sums share columns; the two sides of a product divide them."""
    marks = ["leaf", "+"] + ["*"] * (len(columns) > 1)
    mark = draw(st.sampled_from(marks if depth else ["leaf"]))
    if mark == "leaf":
        return draw(leaves(columns, values))
    cut = draw(st.integers(1, len(columns) - 1)) if mark == "*" else 0
    left, right = (columns[:cut], columns[cut:]) if mark == "*" else (columns, columns)
    return Node(mark, draw(trees(left, values, depth - 1)), draw(trees(right, values, depth - 1)))


COLUMNS = ["a", "b", 0, "0", "a_2"]
ANY_COLUMNS = st.lists(
    st.text(st.characters(), max_size=6) | st.sampled_from(NASTY) | st.integers(-5, 10**6),
    min_size=1, max_size=5, unique=True,
)  # fmt: skip
ANY_VALUES = st.none() | st.floats(min_value=0.0, exclude_min=True, allow_infinity=False) | st.integers(1, 2**70)


@given(ANY_COLUMNS.flatmap(lambda columns: trees(columns, ANY_VALUES)))
@example(Node("*", Node("+", Matern32("a"), Matern32("b")), Node("+", Matern32("c"), Categorical("d"))))
def test_kernels_come_back(tree):
    kernel = build(tree)
    assert parse_kernel(write_kernel(kernel)) == kernel
    assert parse_kernel(text(tree)) == kernel
    assert repr(parse_kernel(repr(kernel))) == repr(kernel)


@given(trees(COLUMNS, st.floats(0.1, 5.0)), st.integers(0, 2**32 - 1))
def test_the_normal_form_is_the_expression(tree, seed):
    rng = np.random.default_rng(seed)
    x, z = ({column: rng.integers(0, 4, n) / 2 for column in COLUMNS} for n in (6, 5))
    terms = normal_form(build(tree))
    for term in terms:
        assert len(set(term.columns)) == len(term.columns)
    total = sum(prod(factor(x[factor.column], z[factor.column]) for factor in term.factors) for term in terms)
    np.testing.assert_allclose(total, covariance(tree, x, z), rtol=1e-12)
    unit = (term.with_values(1.0, (1.0,) * sum(len(f.given) for f in term.factors)) for term in terms)
    assert [term.key for term in terms] == [normal_form(kernel)[0].key for kernel in unit]
    for term in terms:
        assert term.variance == pytest.approx(prod(factor.variance for factor in term.factors), rel=1e-14)


@given(st.permutations(COLUMNS[:4]).flatmap(lambda columns: st.tuples(*(leaves([c], ANY_VALUES) for c in columns))))
def test_a_key_does_not_depend_on_the_order_of_factors(factors):
    keys = {normal_form(Product(order))[0].key for order in permutations(factors)}
    assert len(keys) == 1
    (key,) = keys
    assert set(key) == {(factor.column, type(factor).__name__) for factor in factors}


def doubled(count: int) -> str:
    return "*".join(f"(Matern32('a{k}')+Matern32('b{k}'))" for k in range(count))


@pytest.mark.parametrize(
    ("text", "place", "found"),
    [
        (doubled(10), 289, "1,000 terms were expected, found 1,024 or more"),
        (doubled(200), 289, "1,000 terms were expected, found 1,024 or more"),
        ("+".join(["Matern32(0)"] * 20_000), 12_001, "1,000 terms were expected, found 1,001 or more"),
        (f"({doubled(9)})+({doubled(9)})", 291, "1,000 terms were expected, found 1,024 or more"),
        ("*".join(f"Matern32({k})" for k in range(5000)), 407, "32 factors in a term were expected, found 33 or more"),
    ],
)
def test_what_multiplies_out_is_refused_before_it_does(text, place, found):
    with pytest.raises(ValueError, match=f"^parse_kernel: at character {place}, at most {found} when .*; leave some"):
        parse_kernel(text)


@pytest.mark.parametrize("text", [doubled(200), "(" * 10**6, "Matern32(0)+" * 10**5, "Matern32(0) " * 10**5])
def test_a_refusal_takes_no_memory(text):
    tracemalloc.start()
    with pytest.raises(ValueError, match="parse_kernel: at character"):
        parse_kernel(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_as_many_terms_as_are_allowed_are_those_that_python_builds():
    many = "+".join(f"Matern32({k})" for k in range(1000))
    assert parse_kernel(many) == Sum(tuple(Matern32(k) for k in range(1000)))
    wide = f"({'+'.join(f'Matern32({k})' for k in range(40, 1040))})*" + "*".join(f"Matern12({k})" for k in range(31))
    kernel = parse_kernel(wide)
    assert isinstance(kernel, Sum)
    assert {len(term.factors) for term in kernel.terms if isinstance(term, Product)} == {32}


def test_products_of_sums_come_in_the_order_of_python():
    a, b, c, d, e = (Matern32(name) for name in "abcde")
    text = "(Matern32('a') + Matern32('b')) * Matern32('c') * (Matern32('d') + Matern32('e')) + (Matern32('a'))"
    assert parse_kernel(text) == (a + b) * c * (d + e) + a
