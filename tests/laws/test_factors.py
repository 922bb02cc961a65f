"""What holds for every registered kind of factor: its inner product, features, tails, white variables, units and texts.

A file that registers a kind of its own imports these tests and says which cases they run over, by a
``pytest_generate_tests`` of its own.
"""

from itertools import pairwise

import jax
import numpy as np
import pandas as pd
import pytest
from tests.makers.factors import MAKERS, Case, cases

import vff
from vff import GPRegressor, parse_kernel
from vff.basis import Basis, Domain
from vff.factors import KINDS, FactorOptions, Leaf, Prior, Term, by_differences
from vff.factors.white import DenseWhite
from vff.kernels import write_kernel
from vff.kernels.formula import parse_terms
from vff.storage import Codec

H = 1e-5


def over(metafunc: pytest.Metafunc, every: list[Case]) -> None:
    """Run a law over these cases."""
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", every, ids=[own.name for own in every])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    over(metafunc, cases())


def close(one: np.ndarray, other: np.ndarray, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(one, other, rtol=0.0, atol=tolerance * max(1.0, float(np.abs(other).max(initial=0.0))))


def scaled(matrix: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    scale = 1.0 / np.sqrt(diagonal)
    return matrix * scale * scale[:, None]


def moved(case: Case, name: str, step: float) -> dict[str, float]:
    return {**case.values, name: case.values[name] * float(np.exp(step))}


def raw(prior: Prior, matrix: np.ndarray) -> np.ndarray:
    """Of the functions that are summed over rows, from one of the functions of the prior."""
    inverse = prior.transform.inverse
    return inverse.forward(inverse.forward(matrix).T)


def test_every_kind_has_a_maker() -> None:
    assert {kind.name for kind in KINDS} <= set(MAKERS)
    for kind in KINDS:
        leaves = {type(case.leaf) for case in MAKERS[kind.name]()}
        assert leaves == (set(kind.leaves) or leaves)  # some are written as leaves of another kind


def test_a_kind_is_made_of_its_own_classes(case: Case) -> None:
    (kind,) = (kind for kind in KINDS if type(case.leaf.factor) is kind.factor)
    assert type(case.leaf) in (kind.leaves or KINDS.leaves.values())
    assert case.basis.scattered == case.leaf.factor.scattered
    assert type(case.prior()) is kind.prior
    assert type(case.domain) is kind.domain
    assert type(case.basis) is kind.basis


# --- the prior -------------------------------------------------------------------------------------------------------


def test_the_precision_is_the_inner_product(case: Case) -> None:
    prior = case.prior()
    expected = case.gram(prior, case.values)
    close(scaled(prior.K.to_dense(), np.diagonal(expected)), scaled(expected, np.diagonal(expected)))


def test_derivatives_of_the_precision_hold_the_functions(case: Case) -> None:
    prior = case.prior()
    for own in case.leaf.factor.parameters:
        ends = [case.gram(prior, moved(case, own.name, step)) for step in (H, -H)]
        expected, diagonal = (ends[0] - ends[1]) / (2 * H), np.diagonal(prior.K.to_dense())
        close(scaled(prior.derivative(own.name).to_dense(), diagonal), scaled(expected, diagonal), 1e-6)


def test_a_precision_at_other_values_is_written_in_functions_that_are_held(case: Case) -> None:
    prior, diagonal = case.prior(), np.diagonal(case.prior().K.to_dense())
    for own in case.leaf.factor.parameters:
        there = case.prior(moved(case, own.name, 0.05))
        held = prior.held(there.K, there).to_dense()
        close(scaled(raw(prior, held), diagonal), scaled(raw(there, there.K.to_dense()), diagonal), 1e-9)


def test_features_are_covariances_with_the_function_inside_and_outside(case: Case) -> None:
    """The reproducing property, <phi, k(x, .)> = phi(x), and tails are what it says beyond."""
    prior = case.prior()
    for x in (*case.inside, *case.outside):
        close(prior.features(np.array([x]))[0], case.with_kernel(prior, x))


def test_features_inside_are_those_of_the_basis(case: Case) -> None:
    prior = case.prior()
    t = case.domain.to_unit(case.inside)
    assert case.domain.contains(t).all()
    close(prior.features(case.inside), prior.transform.forward(case.basis.evaluate(t).T).T)


def test_rows_beyond_see_few_states(case: Case) -> None:
    prior = case.prior()
    parts = prior.beyond(case.outside)
    if parts is None or not case.outside.size:
        return
    found = np.zeros((len(case.outside), case.basis.size))
    for rows, weights, states in parts:
        found[rows] = weights @ states.T
    close(found, prior.features(case.outside))


def test_what_features_leave_out_is_no_less_than_zero_and_falls(case: Case) -> None:
    factor, decay = case.leaf.factor, case.leaf.factor.decay
    x, highest_frequencies = case.domain.spread(np.linspace(0.0, 1.0, 43), case.basis.size)[:-1], (4, 8, 16, 32)
    whole = case.prior().prior_variance(x) + np.zeros(len(x))
    left = [whole - case.prior(basis=case.basis.resized(M)).carried(x) for M in highest_frequencies]
    rounding = 1e-10 * float(whole.max())
    assert all(np.all(own > -rounding) for own in left)
    assert all(np.all(finer <= coarser + rounding) for coarser, finer in pairwise(left))
    if decay is None:
        assert case.basis.detail is None
        close(left[0] / whole.max(), np.zeros(len(x)))
    elif factor.edges(case.basis) == factor.edges(factor.least(FactorOptions("auto", None, ()))):  # fewer miss the ends
        # ``decay`` is that of the tail of the spectrum; the ends fall more slowly, by about three powers
        assert np.median(left[-1]) < max(3.0 * 0.5 ** min(decay, 3.0) * np.median(left[-2]), 1e-12)


def test_slopes_are_those_of_the_features(case: Case) -> None:
    prior, h = case.prior(), 1e-5 * case.domain.unit()
    if not case.smooth:
        with pytest.raises(ValueError, match="has no derivative; "):
            prior.slope_variance(case.inside)
        return
    x = 0.5 * (case.inside[:-1] + case.inside[1:])
    close(prior.features(x, 1), (prior.features(x + h) - prior.features(x - h)) / (2 * h), 1e-6)
    ends = np.stack([x - 50 * h, x + 50 * h], axis=1)
    k = np.stack([prior.correlation(own, own) for own in ends])
    rises = (k[:, 0, 0] - 2.0 * k[:, 0, 1] + k[:, 1, 1]) / (100 * h) ** 2
    np.testing.assert_allclose(rises, prior.slope_variance(x) + np.zeros(x.size), rtol=1e-2)


def test_prior_variances_are_those_of_the_kernel(case: Case) -> None:
    """k(x, x) at rows inside and outside, in the double letters of the basis, and its slopes."""
    factor, prior = case.leaf.factor, case.prior()
    for x in (*case.inside, *case.outside):
        at = np.array([x])
        if not factor.scattered:  # else the same row has another input when it comes again
            close(prior.prior_variance(at) + np.zeros(1), prior.correlation(at, at)[0])
    if factor.constant_variance:
        assert prior.prior_variance(case.inside) == 1.0
        return
    t, factor = case.domain.to_unit(case.inside), factor.on(case.basis)
    close(case.basis.double.evaluate(t) @ factor.variance_letters(case.basis), factor.variance_functions(t))
    weights, slopes = factor.variance_weights(case.values), factor.variance_slopes(case.values)
    for own in factor.parameters:
        ends = [factor.variance_weights(moved(case, own.name, step)) for step in (H, -H)]
        close(slopes.get(own.name, np.zeros(weights.shape)), (ends[0] - ends[1]) / (2 * H), 1e-7)
    with jax.enable_x64(True):
        traced = jax.jit(lambda values: factor.variance_weights(values))(case.values)
        close(np.asarray(traced), weights)


def test_one_is_one(case: Case) -> None:
    one, phi = case.leaf.factor.one(case.basis), case.basis.evaluate(case.domain.to_unit(case.inside))
    if one is not None:
        close(phi @ one, np.ones(len(phi)))
        return
    assert not case.leaf.factor.constant_variance  # rows are counted by the constant
    nearest = np.linalg.lstsq(phi, np.ones(len(phi)), rcond=None)[0]
    assert np.abs(phi @ nearest - 1.0).max() > 0.1  # the features cannot make it


def test_waves_begin_the_features(case: Case) -> None:
    detail, t = case.basis.detail, case.domain.to_unit(case.inside)
    waves = None if detail is None else case.leaf.factor.waves(detail)
    if waves is not None and detail is not None:
        assert waves.size == 2 * detail + 1
        close(case.basis.evaluate(t)[:, : waves.size], waves.evaluate(t))
        angle = np.multiply.outer(np.pi * (t + 1.0), np.arange(detail + 1.0))
        close(waves.evaluate(t), np.concatenate([np.cos(angle), np.sin(angle[:, 1:])], axis=1))


# --- the kernel ------------------------------------------------------------------------------------------------------


def test_correlations_are_the_leafs(case: Case) -> None:
    x = case.inside
    values = np.array(case.levels, object)[x.astype(int)] if case.levels else x
    variance = case.leaf.variance / case.leaf.factor.unit(case.domain, "variance")
    expected = case.leaf(values, values[:2]) / variance
    close(case.prior().correlation(x, x[:2]), expected)
    t = case.domain.to_unit(x)
    block = case.leaf.factor.block(t, t[:2], case.values)
    close(block.value * (1.0 if block.exponent is None else np.exp(-block.exponent)), expected)
    with pytest.raises(ValueError, match="has no values yet"):
        case.leaf.bare()(values, values)


def test_slopes_of_correlations(case: Case) -> None:
    t, factor = case.domain.to_unit(case.inside), case.leaf.factor
    z = t[:2] + (0.0 if case.levels else 0.013)
    block = factor.block(t, z, case.values)
    decay = 1.0 if block.exponent is None else np.exp(-block.exponent)
    slopes = block.slopes()
    assert len(slopes) == len(factor.parameters)
    for got, expected in zip(slopes, by_differences(factor, t, z, case.values), strict=True):
        close(got * decay, expected, 1e-7)
    step = block.moved()
    if step is not None:
        ends = [factor.block(t + sign * H, z, case.values) for sign in (1, -1)]
        plus, minus = (own.value * (1.0 if own.exponent is None else np.exp(-own.exponent)) for own in ends)
        close(block.speed * step * decay, (plus - minus) / (2 * H), 1e-6)


# --- rows beyond -----------------------------------------------------------------------------------------------------


def test_rows_outside_are_kept_with_all_they_say(case: Case) -> None:
    """Sums over rows beyond the edges, and their derivatives with the functions held."""
    rng = np.random.default_rng(0)
    y, w = rng.normal(size=case.outside.size), rng.uniform(0.5, 2.0, case.outside.size)
    tails = case.leaf.factor.tails(case.domain, case.outside, y, w)
    if not tails:
        return
    prior, phi = case.prior(), case.prior().features(case.outside)
    parts = [(prior.tail_states(tail.side), prior.tail_sums(tail)) for tail in tails]
    close(sum(Z @ own.gram @ Z.T for Z, own in parts), phi.T @ (w[:, None] * phi))
    close(sum(Z @ own.project for Z, own in parts), phi.T @ (w * y))
    close(sum(Z @ own.total for Z, own in parts), phi.T @ w)
    for name in case.values:
        ends = [case.prior(moved(case, name, step)) for step in (H, -H)]
        for tail in tails:
            got = prior.tail_derivatives(tail)[name]
            plus, minus = (own.tail_sums(tail) for own in ends)
            for slope, one, other in zip(got, plus, minus, strict=True):
                close(slope, (one - other) / (2 * H), 1e-6)


# --- white variables -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("default", [False, True])
def test_white_variables_have_the_priors_covariance(case: Case, default: bool) -> None:
    factor, prior = case.leaf.factor, case.prior()
    white = DenseWhite(factor, case.basis) if default else factor.white(case.basis)
    assert (white.n_values, white.size) == (len(factor.parameters), case.basis.size)
    assert hash(white) == hash(DenseWhite(factor, case.basis) if default else factor.white(case.basis))
    phi = case.basis.evaluate(case.domain.to_unit(case.inside))
    with jax.enable_x64(True):
        root = white.at(tuple(case.values.values()))
        B = np.asarray(white.coefficients(root, np.eye(white.white_size)))
        explained = np.asarray(white.explained(root, phi))
    C = np.linalg.inv(raw(prior, prior.K.to_dense()))
    close(phi @ B @ B.T @ phi.T, phi @ C @ phi.T, 1e-8)
    close(explained, np.diagonal(phi @ C @ phi.T), 1e-8)
    if not factor.scattered:  # else squares are averaged
        close(explained, prior.carried(case.inside), 1e-8)


@pytest.mark.parametrize("default", [False, True])
def test_white_variables_have_slopes(case: Case, default: bool) -> None:
    factor = case.leaf.factor
    white = DenseWhite(factor, case.basis) if default else factor.white(case.basis)
    rng = np.random.default_rng(5)
    phi = case.basis.evaluate(case.domain.to_unit(case.inside))
    weights, v = rng.normal(size=len(phi)), rng.normal(size=(white.white_size, 1))

    def number(logs):
        root = white.at(tuple(jax.numpy.exp(own) for own in logs))
        return weights @ (white.explained(root, phi) + (phi @ white.coefficients(root, v))[:, 0])

    logs = np.log(list(case.values.values()))
    if not logs.size:
        return
    with jax.enable_x64(True):
        got = np.asarray(jax.jit(jax.grad(number))(logs))
        for n in range(logs.size):
            step = H * (np.arange(logs.size) == n)
            central = (float(number(logs + step)) - float(number(logs - step))) / (2 * H)
            # K written out in the functions at rows is badly conditioned for smooth kernels, and differences show it
            assert got[n] == pytest.approx(central, rel=1e-3 if default else 1e-5, abs=1e-6)


# --- choices ---------------------------------------------------------------------------------------------------------


def test_values_go_through_units_and_back(case: Case) -> None:
    prior = case.prior()
    factor = case.leaf.factor
    units = {own.name: factor.measure(case.domain, own) for own in factor.parameters}
    back = [units[name].outer(prior.values[name]) for name in case.leaf.given]
    again = Term((case.leaf.bare(),)).with_values(2.0, back)
    assert isinstance(again, type(case.leaf))
    for name, value in case.leaf.get_params().items():
        same = value if name in case.leaf.column_fields else pytest.approx(value)
        assert getattr(again, name) == same
    assert prior.factor == case.leaf.factor
    assert prior.domain == case.domain
    assert prior.basis == case.basis


def test_a_basis_and_a_domain_are_found(case: Case) -> None:
    factor = case.leaf.factor
    least = factor.least(FactorOptions("auto", None, case.levels))
    assert type(least) is type(case.basis)
    assert least.family == case.basis.family
    assert (least.detail is None) == (factor.decay is None) == (factor.needed(case.values) is None)
    low, high = float(case.inside.min()), float(case.inside.max())
    for domain in (factor.spanning(low, high), case.domain):
        assert type(domain) is type(case.domain)
        assert domain.holds(low, high)
        domain.check()
    case.basis.check()
    factor.check()
    assert factor.largest([least]) >= 16
    coarse = factor.coarse(case.basis, 9)
    assert coarse.size <= max(case.basis.size, 16)


def test_learning_starts_within_bounds(case: Case) -> None:
    factor = case.leaf.factor
    names = {own.name for own in factor.parameters}
    for detail in (0, 50, 500):
        points = factor.ladder(detail)
        assert points
        assert all(set(point.values) == names and point.variance > 0.0 for point in points)
        needed = [factor.needed(point.values) for point in points]
        assert all(own is None or own >= 1 for own in needed)
    for own in factor.parameters:
        low, high = own.bounds
        assert all(low <= value <= high for value in (*own.starts, own.typical))
        assert own.prior(10.0).support == own.support


# --- texts, files, fits ----------------------------------------------------------------------------------------------


def test_texts_are_read_back(case: Case) -> None:
    assert parse_kernel(write_kernel(case.leaf)) == case.leaf
    assert parse_kernel(repr(case.leaf.bare())) == case.leaf.bare()
    assert parse_terms(write_kernel(case.leaf), dict.fromkeys(map(str, case.leaf.columns), "number")) == case.leaf


def test_records_are_stored(case: Case) -> None:
    codec = Codec("vff")
    for record, hint in ((case.leaf, Leaf), (case.prior(), Prior), (case.domain, Domain), (case.basis, Basis)):
        assert codec.decode(codec.encode(record, hint), hint) == record


def test_a_fit_is_saved_and_comes_back(case: Case, tmp_path) -> None:
    rng = np.random.default_rng(1)
    column = case.column(rng, 60)
    frame = pd.DataFrame({**case.table(column), "z": rng.uniform(size=60)})
    f = np.linalg.cholesky(case.leaf(column, column) + 1e-6 * np.eye(60)) @ rng.standard_normal(60)
    y = f + np.sin(4.0 * frame["z"]) + 0.2 * rng.standard_normal(60)
    kernel, few = (
        case.leaf.bare() + case.leaf.bare() * vff.Matern32("z"),
        {(x := case.leaf.name): 4, "z": 2, f"{x} * z": 2},
    )
    few = few if "frequencies" in case.leaf.factor.options else {"z": 2}
    model = GPRegressor(kernel, frequencies=few).fit(frame, y)
    assert np.std(y - model.predict(frame)) < 0.8 * np.std(y)
    model.save(tmp_path / "model.vff")
    again = vff.load(tmp_path / "model.vff")
    for one, other in zip(model.predict_f(frame), again.predict_f(frame), strict=True):
        assert np.array_equal(one, other)
    assert again.kernel_ == model.kernel_
    parts = GPRegressor(kernel, frequencies=few, domain=model.domain_).partial_fit(frame[:40], y[:40])
    parts.partial_fit(frame[40:], y[40:])
    for one, other in zip(parts.rows_.moments.grams, model.rows_.moments.grams, strict=True):
        close(one, other)
