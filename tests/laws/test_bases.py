"""What holds for every kind of basis and its domain: products of features, sums over rows, other sizes, files.

A file with a kind of its own imports these tests and says which cases they run over, by a ``pytest_generate_tests`` of
its own.
"""

import math
import pickle
from functools import reduce

import numpy as np
import pytest
from tests.makers.bases import Case, cases

from vff.basis import Basis, Domain
from vff.linalg import DenseView, OuterView
from vff.moments import (
    ENGINES,
    ColumnRequest,
    MomentRequest,
    TermRequest,
    equivalent_weights,
    moments_of_arrays,
    place_of,
)
from vff.storage import Codec


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", cases(), ids=lambda case: f"{case.basis!r:.40}")


def _leaves(kind):
    below = [leaf for own in kind.__subclasses__() for leaf in _leaves(own)]
    return below or [kind]


def test_every_kind_has_a_maker():
    ours = [kind for kind in _leaves(Basis) if kind.__module__.startswith("vff.")]
    assert set(ours) <= {type(case.basis) for case in cases()}


def _weights(n, seed=1):
    return np.random.default_rng(seed).uniform(0.0, 2.0, n)


def _sums(letters, t, w):
    """By the definition."""
    total = np.zeros(letters.size)
    for one, weight in zip(t, w, strict=True):
        total += weight * letters.evaluate(np.array([one]))[0]
    return total


def test_features_are_the_single_letters(case: Case):
    t = case.units(20)
    np.testing.assert_allclose(case.basis.evaluate(t), case.basis.single.evaluate(t), atol=1e-14)
    assert case.basis.size == case.basis.single.size


def test_letters_are_sums_of_products_of_their_parts(case: Case):
    t = case.units(20)
    assert len(case.basis.parts) == len(case.domain.parts)
    for own in (case.basis.single, case.basis.double):
        if len(own.parts) > 1:
            every = [part.evaluate(t[:, d]) for d, part in enumerate(own.parts)]
            products = reduce(lambda one, other: (one[:, :, None] * other[:, None]).reshape(20, -1), every)
            np.testing.assert_allclose(own.merged(products.T).T, own.evaluate(t), atol=1e-12)
            assert products.shape[1] == math.prod(part.size for part in own.parts)
        else:
            assert own.parts == (own,)


@pytest.mark.parametrize("engine", ["auto", *(engine.name for engine in ENGINES if engine.offered)])
def test_every_engine_sums_the_letters(case: Case, engine: str):
    """Of rows in an order of their own; engines that need another say so."""
    x, rng = case.draw(40), np.random.default_rng(8)
    y, w = rng.normal(size=40), _weights(40)
    columns = [np.ascontiguousarray(own) for own in np.reshape(x, (40, -1)).T]
    place = place_of(range(len(columns)))
    request = MomentRequest((TermRequest((place,), (ColumnRequest(case.domain, case.basis),)),))
    several = len(columns) > 1
    if engine == "grid" and (several or case.basis.double.band is not None):  # others go where they are best
        with pytest.raises(ValueError, match="engine='grid'"):
            moments_of_arrays(request, columns, y, w, engine)
        return
    found = moments_of_arrays(request, columns, y, w, engine)
    t = case.domain.to_unit(x)
    np.testing.assert_allclose(found.grams[0], w @ case.basis.double.evaluate(t), atol=1e-10)
    np.testing.assert_allclose(found.projects[0], (w * y) @ case.basis.evaluate(t), atol=1e-10)


def test_the_gram_matrix_is_a_linear_map_of_the_double_letters(case: Case):
    basis, t, w = case.basis, case.units(25), _weights(25)
    gram = np.zeros((basis.size, basis.size))
    for one, weight in zip(t, w, strict=True):
        gram += weight * case.square(one)
    sums = _sums(basis.double, t, w)
    np.testing.assert_allclose(basis.pairs(sums), gram, atol=1e-13 * w.sum())
    operator = basis.gram(sums)
    np.testing.assert_allclose(operator.to_dense(), gram, atol=1e-13 * w.sum())
    np.testing.assert_allclose(operator.diagonal(), np.diagonal(gram), atol=1e-13 * w.sum())
    many = basis.pairs(np.stack([sums, -2.0 * sums], axis=1))
    np.testing.assert_allclose(many[:, :, 1], -2.0 * gram, atol=1e-12 * w.sum())


def test_products_live_where_the_basis_says(case: Case):
    basis, found = case.basis, case.basis.products()
    sums = np.random.default_rng(2).normal(size=basis.double.size)
    written = np.zeros((basis.size, basis.size))
    written[found.rows, found.columns] = found.map @ sums
    np.testing.assert_allclose(basis.pairs(sums), written, atol=1e-14)
    np.testing.assert_array_equal(found.map.toarray().T, found.transposed.toarray())
    assert basis.everywhere == (found.rows.size == basis.size**2)


def test_seeing_is_the_transpose_of_the_gram_matrix(case: Case):
    basis, rng = case.basis, np.random.default_rng(3)
    S, sums = rng.normal(size=(basis.size, basis.size)), rng.normal(size=basis.double.size)
    X, Z = rng.normal(size=(2, basis.size, 2))
    assert np.sum(basis.pairs(sums) * S) == pytest.approx(sums @ basis.project(DenseView(S)))
    outer = OuterView(X, Z)
    assert np.sum(basis.pairs(sums) * outer.written()) == pytest.approx(sums @ basis.project(outer))
    t = case.units(9)
    psi, squares = basis.double.evaluate(t), [np.sum(S * case.square(one)) for one in t]
    np.testing.assert_allclose(psi @ basis.project(DenseView(S)), squares, atol=1e-12)


def test_features_are_among_the_double_letters(case: Case):
    t, w = case.units(25), _weights(25)
    sums = _sums(case.basis.double, t, w)
    np.testing.assert_allclose(case.basis.features_sum(sums), _sums(case.basis.single, t, w), atol=1e-12)
    many = case.basis.features_sum(np.stack([sums, 3.0 * sums], axis=1))
    np.testing.assert_allclose(many[:, 1], 3.0 * _sums(case.basis.single, t, w), atol=1e-12)


def test_a_joint_basis_holds_both(case: Case):
    t = case.units(15)
    assert case.basis.joint(case.basis) == case.basis
    for other in case.others:
        both = case.basis.joint(other)
        assert both is not None
        assert both == other.joint(case.basis)
        for own in (case.basis, other):
            np.testing.assert_allclose(both.to(own).single(both.evaluate(t).T).T, own.evaluate(t), atol=1e-12)


def test_going_to_a_smaller_basis_commutes_with_summing(case: Case):
    t, w, rng = case.units(25), _weights(25), np.random.default_rng(4)
    for other in (case.basis, *case.others):
        large = case.basis.joint(other)
        assert large is not None
        change = large.to(other)
        double, single = _sums(large.double, t, w), _sums(large.single, t, w)
        np.testing.assert_allclose(change.double(double), _sums(other.double, t, w), atol=1e-11)
        np.testing.assert_allclose(change.single(single), _sums(other.single, t, w), atol=1e-11)
        np.testing.assert_allclose(
            change.double(np.stack([double, 2.0 * double], axis=1))[:, 1], 2.0 * change.double(double), atol=1e-10
        )
        c = rng.normal(size=other.size)
        assert change.single(single) @ c == pytest.approx(single @ change.single_transpose(c), abs=1e-10)


def test_another_detail_is_of_the_same_family(case: Case):
    detail = case.basis.detail
    if detail is None:
        assert case.basis.resized(3) == case.basis
        return
    larger = case.basis.resized(2 * detail + 1)
    assert larger.detail == 2 * detail + 1
    assert larger.family == case.basis.family
    assert larger.joint(case.basis) == larger
    assert larger.resized(detail) == case.basis


def test_values_that_come_later_add_nothing(case: Case):
    if not case.domain.discrete:
        return
    t, w = case.units(25), _weights(25)
    before = case.basis.numbers.levels  # pyright: ignore[reportAttributeAccessIssue]
    values = (*case.later, *before)
    extended, change = case.basis.extended(values)
    assert extended.numbers.size == len(values)
    for double in (False, True):
        letters, new = ((own.double if double else own.single) for own in (case.basis, extended))
        sums = _sums(letters, t, w)
        moved = (change.double if double else change.single)(sums)
        assert moved.sum() == pytest.approx(sums.sum())
        np.testing.assert_array_equal(moved[len(case.later) :], sums)
        assert moved.shape == (new.size,)
        if not double:
            np.testing.assert_array_equal(change.single_transpose(moved), sums)
    assert case.basis.extended(before)[0] == case.basis


def test_nodes_stand_for_rows(case: Case):
    basis, t, w = case.basis, case.units(200), _weights(200)
    assert len(basis.nodes()) == basis.node_count
    term = TermRequest((place_of(range(len(basis.parts))),), (ColumnRequest(case.domain, basis),))
    weights = equivalent_weights(term, w @ basis.double.evaluate(t))
    at_nodes = basis.evaluate(basis.nodes())
    expected = np.sum([weight * case.square(one) for one, weight in zip(t, w, strict=True)], axis=0)
    np.testing.assert_allclose(at_nodes.T @ (weights[:, None] * at_nodes), expected, atol=1e-9 * w.sum())


def test_derivatives_follow_one_another(case: Case):
    if case.domain.discrete or len(case.domain.parts) > 1:  # of several columns, there are slopes along each
        return
    t, h = np.linspace(-0.9, 0.9, 13), 1e-6
    slopes = (case.basis.evaluate(t + h) - case.basis.evaluate(t - h)) / (2.0 * h)
    np.testing.assert_allclose(case.basis.evaluate(t, 1), slopes, atol=1e-5 * max(1.0, np.abs(slopes).max()))


def test_files_pickles_and_keys(case: Case):
    codec = Codec("vff")
    for record, kind in ((case.basis, Basis), (case.domain, Domain)):
        if type(record).__module__.startswith("vff."):
            assert codec.decode(codec.encode(record, kind), kind) == record
        assert pickle.loads(pickle.dumps(record)) == record
        assert {record: 1}[record] == 1
        record.check()
    assert case.basis.suits(case.domain)
    ColumnRequest(case.domain, case.basis).check()


def test_domains_know_their_rows(case: Case):
    domain, x = case.domain, case.draw(50)
    t = domain.to_unit(x)
    assert domain.contains(t).all()
    assert domain.holds(float(np.nanmin(x)), float(np.nanmax(x)))
    assert domain.unit("length") > 0.0
    assert domain.describe()
    assert "column speed" in domain.outside_text("speed")
