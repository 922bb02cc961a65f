"""The algebra the user writes."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from vff.kernels import Categorical, Matern12, Matern32, Matern52, Product, Sum, normal_form

A, B, C, D = Matern32("a"), Matern52("b", variance=2.0), Matern12("c", lengthscale=3.0), Matern32("d", variance=4.0)


def test_sums_and_products_are_associative_and_distribute():
    assert (A + B) + C == A + (B + C) == Sum((A, B, C))
    assert (A * B) * C == A * (B * C) == Product((A, B, C))
    assert (A + B) * C == A * C + B * C
    assert A * (B + C) == A * B + A * C
    assert (A + B) * (C + D) == A * C + A * D + B * C + B * D
    assert A * (B + C) * D == A * B * D + A * C * D
    assert (A + B * C) * D == A * D + B * C * D
    assert A * (B + (C + D) * Categorical("e")) == A * B + A * C * Categorical("e") + A * D * Categorical("e")


def test_sum_inside_a_product_is_not_a_product_of_all():
    values = {"a": 2.0, "b": 3.0, "c": 5.0}

    def value(kernel):
        return sum(np.prod([values[column] for column in term.columns]) for term in normal_form(kernel))

    assert value((A + B) * C) == 25.0
    assert value(A * B + C) == 11.0


def test_normal_form_keeps_one_variance_per_term():
    first, second = normal_form(A + B * Matern12("c", variance=3.0))
    assert first.variance is None
    assert first.columns == ("a",)
    assert second.variance == 6.0
    assert second.columns == ("b", "c")
    rebuilt = second.with_values(6.0, (1.0, 2.0))
    assert normal_form(rebuilt)[0].variance == 6.0
    assert [term.variance for term in normal_form((A + B) * (C + D))] == [None, 4.0, 2.0, 8.0]


def test_repr_is_what_was_written():
    assert repr(A + B * C) == "Matern32('a') + Matern52('b', variance=2) * Matern12('c', lengthscale=3)"


def test_calling_a_kernel_gives_its_covariance():
    kernel = Matern12(0, variance=2.0, lengthscale=0.5)
    np.testing.assert_allclose(kernel(np.array([0.0, 1.0]), np.array([0.25])), [[2 * np.exp(-0.5)], [2 * np.exp(-1.5)]])
    with pytest.raises(ValueError, match="no values yet"):
        A(np.zeros(1), np.zeros(1))


@pytest.mark.parametrize("bad", [{"variance": 0.0}, {"lengthscale": -1.0}, {"variance": np.inf}, {"lengthscale": "1"}])
def test_bad_values_are_named(bad):
    (name,) = bad
    with pytest.raises(ValueError, match=f"Matern32\\('x'\\): {name} must be a positive number"):
        Matern32("x", **bad)


def test_column_must_be_a_name_or_an_index():
    with pytest.raises(TypeError, match="name or an index"):
        Matern32(1.5)
    with pytest.raises(TypeError, match="a kernel was expected"):
        A + 3


def test_levels_are_exchangeable():
    kernel = Categorical("carrier", variance=2.0)
    x, z = ["AA", None, "UA", 3], ["UA", "AA", float("nan")]
    expected = [[2.0 * ((a == b) or (a is None and b != b)) for b in z] for a in x]
    np.testing.assert_array_equal(kernel(x, z), expected)
    assert (
        repr(A * Categorical("c") + kernel) == "Matern32('a') * Categorical('c') + Categorical('carrier', variance=2)"
    )
    with pytest.raises(ValueError, match="no values yet: give variance, or"):
        Categorical("carrier")(x, z)
    with pytest.raises(ValueError, match=r"Categorical\('c'\): variance must be a positive number"):
        Categorical("c", variance=-1.0)
    with pytest.raises(TypeError, match="unexpected keyword"):
        Categorical("c", lengthscale=1.0)


def test_terms_have_names_and_hand_out_lengthscales_in_order():
    single, product = normal_form(Categorical(3) + Categorical("a") * B * Categorical("d") * C)
    assert (single.name, product.name) == ("3", "a * b * d * c")
    assert single.with_values(2.0, ()) == Categorical(3, variance=2.0)
    assert product.with_values(6.0, (1.0, 2.0)) == (
        Categorical("a", variance=6.0)
        * Matern52("b", variance=1.0, lengthscale=1.0)
        * Categorical("d", variance=1.0)
        * Matern12("c", variance=1.0, lengthscale=2.0)
    )
    with pytest.raises(ValueError, match=r"takes 2 lengthscale\(s\), got 1"):
        product.with_values(6.0, (1.0,))


class Holder(BaseEstimator):
    """An estimator of scikit-learn with a kernel among its parameters."""

    def __init__(self, kernel=None):
        self.kernel = kernel


EXPRESSIONS = {
    "leaf": Matern32("x", lengthscale=2.0),
    "levels": Categorical(0),
    "product": A * B,
    "sum": A + Categorical("b") * C,
    "same column twice": A + Matern12("a") + Matern32("a_2"),
    "shared columns": A + A * B + A * Matern32("a_2") + Matern12(0) * Matern12("0"),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_kernels_are_cloned_and_searched_by_scikit_learn(name):
    kernel = EXPRESSIONS[name]
    assert clone(kernel) == kernel
    assert clone(kernel) is not kernel
    holder = Holder(kernel)
    copy = clone(holder)
    assert copy.kernel == kernel
    parameters = [key for key in holder.get_params() if key.endswith("variance")]
    assert len(parameters) == sum(len(term.factors) for term in normal_form(kernel))
    for value, key in enumerate(parameters, start=3):
        copy.set_params(**{key: float(value)})
        assert copy.get_params()[key] == value
    values = [factor.variance for term in normal_form(copy.kernel) for factor in term.factors]
    assert values == [3.0 + place for place in range(len(values))]
    assert holder.kernel is kernel
    assert "variance=3" not in repr(kernel)


def test_parameters_are_called_after_columns():
    assert list(Matern32("x").get_params()) == ["column", "variance", "lengthscale", "width", "std"]
    kernel = Sum((Matern32(0), Matern32("x"), Categorical("x")))
    assert kernel.get_params(deep=False) == {"terms": kernel.terms}
    names = [name for name in kernel.get_params() if name.endswith("column")]
    assert names == ["0__column", "x__column", "x_2__column"]
    kernel.set_params(x__lengthscale=4.0, x_2__variance=2.0, **{"0__column": "z"})
    assert kernel == Matern32("z") + Matern32("x", lengthscale=4.0) + Categorical("x", variance=2.0)
    assert kernel.set_params(terms=(A, B), a__variance=5.0) == Matern32("a", variance=5.0) + B


@pytest.mark.parametrize(
    ("kernel", "names"),
    [
        (A + A * B, ["a", "a_2", "b"]),
        (A + A * B + Matern12("a") * C, ["a", "a_2", "b", "a_3", "c"]),
        (A + A * Matern32("a_2"), ["a", "a_3", "a_2"]),
        (Matern32("a_2") + A * Matern32("a_2_2") + A * Matern32("a_2"), ["a_2", "a", "a_2_2", "a_3", "a_2_3"]),
        (Matern32(0) * Matern32("0") + Matern32(0), ["0", "0_2", "0_3"]),
    ],
    ids=repr,
)
def test_a_name_made_up_for_a_repeated_column_is_no_column(kernel, names):
    found = [key.removesuffix("__lengthscale") for key in kernel.get_params() if key.endswith("__lengthscale")]
    assert found == names
    for name in names:
        owner = str(kernel.get_params()[f"{name}__column"])
        assert owner == name or name not in {str(leaf.column) for leaf in kernel._named_leaves().values()}
    changed = clone(kernel).set_params(**{f"{name}__lengthscale": 1.0 + place for place, name in enumerate(names)})
    assert [leaf.lengthscale for leaf in changed._named_leaves().values()] == [
        1.0 + place for place in range(len(names))
    ]
    assert list(changed.get_params()) == list(kernel.get_params())


@pytest.mark.parametrize(
    ("make", "where", "reason"),
    [
        (lambda: A * Matern52("a"), r"Matern32\('a'\) and Matern52\('a'\) on column 'a'", "is not a Matérn"),
        (lambda: A * A, r"Matern32\('a'\) and Matern32\('a'\) on column 'a'", "is not a Matérn"),
        (lambda: (A + B) * (C + A), r"in Matern32\('a'\) \* Matern32\('a'\)", "is not a Matérn"),
        (lambda: A * B * C * Matern12("b"), r"on column 'b' in .* \* Matern12\('b'\)", "is not a Matérn"),
        (lambda: Product((Matern12(0), B, Matern12(np.int64(0)))), "on column", "is not a Matérn"),
        (lambda: Categorical("g") * Categorical("g"), "on column 'g'", "told apart once"),
        (lambda: Categorical("g") * Matern32("g"), "on column 'g'", "told apart once"),
        (lambda: clone(A * B).set_params(b__column="a"), "on column 'a'", "is not a Matérn"),
    ],
)
def test_a_product_has_one_factor_per_column(make, where, reason):
    with pytest.raises(ValueError, match=f"^Product: one factor per column was expected, found .*{where}.*{reason}"):
        make()


def test_a_smooth_by_group_is_a_product():
    assert normal_form(Categorical("g") * Matern32("x"))[0].columns == ("g", "x")
    assert normal_form(Matern32(0) * Matern32("0"))[0].columns == (0, "0")


def test_a_term_is_known_by_its_key():
    def key(kernel):
        (term,) = normal_form(kernel)
        return term.key

    assert key(A * B * C) == key(C * A * B) == (("a", "Matern32"), ("b", "Matern52"), ("c", "Matern12"))
    assert key(Matern32("x") * Matern12(10) * Categorical(9)) == (
        (9, "Categorical"),
        (10, "Matern12"),
        ("x", "Matern32"),
    )
    assert key(A) == key(Matern32("a", variance=7.0, lengthscale=2.0))
    assert len({key(A), key(Matern12("a")), key(Matern32("b")), key(Categorical("a")), key(A * B)}) == 5
    assert key(Matern32(0)) != key(Matern32("0"))


def test_terms_keep_their_order_and_their_copies():
    terms = normal_form(B * A + C + A * B + C)
    assert [term.columns for term in terms] == [("b", "a"), ("c",), ("a", "b"), ("c",)]
    assert [terms.index(term) for term in terms] == [0, 1, 2, 1]
    assert terms[0].key == terms[2].key


@pytest.mark.parametrize("kernel", [Matern32("x"), Matern32("x") + Matern12("z", variance=1.0)], ids=repr)
def test_bad_parameters_change_nothing(kernel):
    before, prefix = clone(kernel), "x__" if isinstance(kernel, Sum) else ""
    with pytest.raises(ValueError, match="variance must be a positive number"):
        kernel.set_params(**{f"{prefix}lengthscale": 2.0, f"{prefix}variance": -1.0})
    with pytest.raises(ValueError, match=r"has no parameter 'length'; it has .*lengthscale'"):
        kernel.set_params(length=3.0)
    assert kernel == before


def test_parts_must_be_kernels():
    for bad in ((), [A, B], (A, 3), (A, A + B)):
        with pytest.raises(TypeError, match="Sum: terms must be a tuple of kernels"):
            Sum(bad)
    with pytest.raises(TypeError, match="Product: factors must be a tuple of one-column kernels"):
        Product((A, A * B))
