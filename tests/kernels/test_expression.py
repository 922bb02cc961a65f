"""The algebra the user writes."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from vff.kernels import Categorical, Matern12, Matern32, Matern52, Product, Sum, normal_form

A, B, C = Matern32("a"), Matern52("b", variance=2.0), Matern12("c", lengthscale=3.0)


def test_sums_and_products_are_associative_and_distribute():
    assert (A + B) + C == A + (B + C) == Sum((A, B, C))
    assert (A * B) * C == A * (B * C) == Product((A, B, C))
    assert (A + B) * C == A * C + B * C
    assert A * (B + C) == A * B + A * C
    assert (A + B) * (A + C) == A * A + A * C + B * A + B * C


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
    single, product = normal_form(Categorical(3) + Categorical("a") * B * Categorical("c") * C)
    assert (single.name, product.name) == ("3", "a * b * c * c")
    assert single.with_values(2.0, ()) == Categorical(3, variance=2.0)
    assert product.with_values(6.0, (1.0, 2.0)) == (
        Categorical("a", variance=6.0)
        * Matern52("b", variance=1.0, lengthscale=1.0)
        * Categorical("c", variance=1.0)
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
    assert list(Matern32("x").get_params()) == ["column", "variance", "lengthscale"]
    kernel = Sum((Matern32(0), Matern32("x") * Categorical("x")))
    assert kernel.get_params(deep=False) == {"terms": kernel.terms}
    names = [name for name in kernel.get_params() if name.endswith("column")]
    assert names == ["0__column", "x__column", "x_2__column"]
    kernel.set_params(x__lengthscale=4.0, x_2__variance=2.0, **{"0__column": "z"})
    assert kernel == Matern32("z") + Matern32("x", lengthscale=4.0) * Categorical("x", variance=2.0)
    assert kernel.set_params(terms=(A, B), a__variance=5.0) == Matern32("a", variance=5.0) + B


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
