"""The algebra the user writes."""

import numpy as np
import pytest

from vff.kernels import Matern12, Matern32, Matern52, Product, Sum, normal_form

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
