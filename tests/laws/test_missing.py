"""Missing numbers beside every kind of factor: the laws of factors, over factors with an effect of missing values."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tests.laws.test_factors import (  # noqa: F401  laws that run over the cases of this file
    close,
    over,
    test_derivatives_of_the_precision_hold_the_functions,
    test_features_are_covariances_with_the_function_inside_and_outside,
    test_features_inside_are_those_of_the_basis,
    test_learning_starts_within_bounds,
    test_one_is_one,
    test_prior_variances_are_those_of_the_kernel,
    test_rows_beyond_see_few_states,
    test_rows_outside_are_kept_with_all_they_say,
    test_slopes_of_correlations,
    test_the_precision_is_the_inner_product,
    test_white_variables_have_slopes,
    test_white_variables_have_the_priors_covariance,
)
from tests.makers import factors
from tests.makers.factors import Case

from vff.factors import KINDS, Factor, Prior, admitting, or_missing, rows_may_miss
from vff.factors.missing.prior import NeverMissing


@dataclass(frozen=True)
class Beside:
    """In place of a leaf: its factor has missing values beside it."""

    base: Any

    @property
    def factor(self) -> Factor:
        return or_missing(self.base.factor)

    @property
    def given(self) -> Any:
        return self.base.given


def _bordered(matrix: np.ndarray) -> np.ndarray:
    whole = np.zeros((len(matrix) + 1, len(matrix) + 1))
    whole[:-1, :-1], whole[-1, -1] = matrix, 1.0
    return whole


def _with_missing(case: Case) -> Case:
    """The inner product of the functions has one more function, of norm one, that is orthogonal to the others."""
    domain, basis, _ = admitting(case.domain, case.basis)

    def gram(prior: Any, values: Any) -> np.ndarray:
        return _bordered(case.gram(prior.base, values))

    def with_kernel(prior: Any, x: Any) -> np.ndarray:
        gone = bool(np.isnan(x).any())
        numbers = np.zeros(case.basis.size) if gone else case.with_kernel(prior.base, x)
        return np.append(numbers, float(gone))

    inside = np.concatenate([case.inside, np.full((2, *case.inside.shape[1:]), np.nan)])
    if inside.ndim == 2:
        inside[-1, 0] = case.inside[0, 0]  # one of two is enough
    changes: Any = {"leaf": Beside(case.leaf), "domain": domain, "basis": basis, "inside": inside}
    return replace(case, name=f"missing beside {case.name}", gram=gram, with_kernel=with_kernel, **changes)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Two cases of every kind: the wrapping is the same for all, and compiling takes long."""
    every = [case for kind in KINDS for case in factors.MAKERS.get(kind.name, list)()[-2:]]
    over(metafunc, [_with_missing(case) for case in every])


def _definition(case: Case, prior: Prior, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Numbers as without missing values; these have one with each other, and nothing with numbers."""
    found = np.zeros((len(x), len(z)))
    for i, one in enumerate(x):
        for j, other in enumerate(z):
            gone = np.isnan(one).any(), np.isnan(other).any()
            if all(gone):
                found[i, j] = 1.0
            elif not any(gone):
                found[i, j] = prior.correlation(np.array([one]), np.array([other]))[0, 0]
    return found


def test_correlations_are_those_of_the_definition(case: Case) -> None:
    x, prior = case.inside, case.prior()
    expected = _definition(case, prior.base, x, x[::2])  # pyright: ignore[reportAttributeAccessIssue]
    close(prior.correlation(x, x[::2]), expected)
    t = case.domain.to_unit(x)
    close(case.leaf.factor.correlation(t, t[::2], case.values), expected)


def test_features_carry_all_of_a_missing_value(case: Case) -> None:
    carried = case.prior().carried(case.inside)
    np.testing.assert_array_equal(carried[-2:], 1.0)
    close(carried[:-2], case.prior().base.carried(case.inside[:-2]))  # pyright: ignore[reportAttributeAccessIssue]


def test_a_fit_without_missing_values_knows_nothing_of_them(case: Case) -> None:
    base, x = case.prior().base, case.inside  # pyright: ignore[reportAttributeAccessIssue]
    prior = rows_may_miss(base)
    assert isinstance(prior, NeverMissing)
    assert rows_may_miss(prior) is prior
    gone = np.isnan(x).reshape(len(x), -1).any(axis=1)
    np.testing.assert_array_equal(prior.outside(x)[gone], True)
    np.testing.assert_array_equal(prior.features(x)[gone], 0.0)
    np.testing.assert_array_equal(prior.carried(x)[gone], 0.0)
    np.testing.assert_array_equal((prior.prior_variance(x) + np.zeros(len(x)))[gone], 1.0)
    close(prior.features(x[~gone]), base.features(x[~gone]))
    close(prior.correlation(x, x), _definition(case, base, x, x))
    if not prior.factor.constant_variance:
        close(prior.variance_functions(x) @ prior.factor.variance_weights(prior.values), prior.prior_variance(x))
    parts = prior.beyond(x)
    if parts is not None:
        assert not any(rows[gone].any() for rows, *_ in parts)
