"""All ways to meet rows agree with rows written out: lattices, distinct points, nodes that stand for rows."""

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling_models import DOMAIN, Groups, Model, Smooth, model

from vff.inference.methods.chains.design import Design, design
from vff.inference.methods.chains.interpolation import compressed
from vff.inference.methods.chains.points import RowData, TermPoints
from vff.inference.methods.natural.row_sites import Observed
from vff.likelihoods import Poisson, StudentT

A, B, G = Smooth(0), Smooth(1, M=2, q=0, p=0), Groups(2)


def written(own: Model, found: Design) -> Design:
    """The same terms, every row a point of its own."""
    _, request, _, observed = own.parts()
    points = []
    for term in request.terms:
        features = []
        for c, factor in zip(term.columns, term.factors, strict=True):
            place = DOMAIN.to_unit(own.x[:, c]) if hasattr(factor.domain, "a") else own.x[:, c]
            features.append(factor.basis.evaluate(place))
        points.append(TermPoints(tuple(features), None))
    shapes = tuple(replace(shape, lattice=False, copies=1) for shape in found.shapes)
    return Design(shapes, RowData(tuple(points), observed.y, observed.extra, observed.w), found.choice)


@cache
def compiled(target):
    return jax.jit(lambda data, z: target.log_likelihood(data, target.at(data, z)))


def agree(own: Model, tolerance: float = 1e-9) -> Design:
    found = own.design()
    with jax.enable_x64(True):
        answers = []
        for points in (found, written(own, found)):
            target, data = own.target(own=points)
            z = 0.5 * np.random.default_rng(11).standard_normal(target.size)
            answers.append(float(compiled(target)(data, z)))
    assert answers[0] == pytest.approx(answers[1], rel=tolerance)
    return found


def rows(kind: str, rng: np.random.Generator) -> np.ndarray:
    values = [np.linspace(0.0, 3.0, 4), np.array([0.2, 1.1, 2.7]), np.arange(3.0)]
    grid = np.array([(a, b, c) for a in values[0] for b in values[1] for c in values[2]])
    if kind == "grid":
        return grid
    if kind == "shuffled":
        return rng.permutation(np.repeat(grid, 2, axis=0))[: len(grid)]
    if kind == "few points":
        few = np.column_stack([rng.uniform(0.0, 3.0, (7, 2)), rng.integers(0, 3, 7)])
        return rng.permutation(np.repeat(few, 6, axis=0))[:36]
    return np.column_stack([rng.uniform(0.0, 3.0, (36, 2)), rng.integers(0, 3, 36)])


KINDS = ("grid", "shuffled", "few points", "scattered")


@pytest.mark.parametrize("kind", KINDS)
def test_points_agree_with_rows(kind):
    rng = np.random.default_rng(0)
    x = rows(kind, rng)
    found = agree(model([[A, B], [B, G]], x, Poisson(), rng))
    kinds = {
        (shape.lattice, points.codes is not None) for shape, points in zip(found.shapes, found.rows.terms, strict=True)
    }
    if kind == "grid":
        assert (True, True) in kinds or (True, False) in kinds
    if kind == "few points":
        assert (False, True) in kinds
    if kind == "scattered":
        assert found.rows.terms[0].codes is None
        assert not found.shapes[0].lattice


def test_a_lattice_in_order_needs_no_codes():
    x = np.array([(a, b) for a in np.linspace(0.0, 3.0, 6) for b in np.linspace(0.0, 3.0, 6)])
    found = agree(model([[A, B]], x, Poisson(), np.random.default_rng(0)))
    assert found.shapes[0].lattice
    assert found.rows.terms[0].codes is None


# --- nodes that stand for rows -------------------------------------------------------------------------------------


def summed(M: int, t: np.ndarray, observed: Observed, function) -> tuple[float, float]:
    """A function of (t, y, extra) over rows by nodes, and row by row."""
    short = compressed(M, t, observed)
    assert short is not None
    nodes, sums = short
    at_nodes = np.repeat(nodes, 2)
    by_rows = observed.w @ function(t, observed.y, observed.extra)
    return float(sums.w @ function(at_nodes, sums.y, sums.extra)), float(by_rows)


@settings(max_examples=25)
@given(
    st.integers(1, 40),
    st.integers(0, 2**31),
    st.floats(0.0, 4.0),
    st.sampled_from([(-1.0, 1.0), (-0.3, 0.9), (0.2, 0.21)]),
)
def test_nodes_stand_for_rows(M, seed, amplitude, span):
    """exp(f) under f of half of M harmonics, with weights, three exposures and a few counts."""
    rng = np.random.default_rng(seed)
    N = 64 * 12 * max(4, int(np.ceil(M * (span[1] - span[0])))) + 10
    t, y, extra = rng.uniform(*span, N), rng.poisson(0.3, N).clip(0, 3) * 1.0, rng.choice([0.5, 1.0, 2.0], N)
    observed = Observed(y, extra, rng.uniform(0.0, 2.0, N))
    wave = rng.uniform(0.0, 0.5) * M
    phase = rng.uniform(0.0, 6.0)

    def row(t, y, extra):
        f = amplitude * np.sin(np.pi * wave * t + phase)
        return y * f - extra * np.exp(f)

    by_nodes, by_rows = summed(M, t, observed, row)
    scale = observed.w @ (extra * np.exp(amplitude * np.sin(np.pi * wave * t + phase)) + amplitude * y)
    assert abs(by_nodes - by_rows) < 1e-9 * scale


@pytest.mark.parametrize(("amplitude", "tolerance"), [(1.0, 1e-9), (2.0, 1e-7), (4.0, 1e-5)])
def test_the_highest_harmonic_alone(amplitude, tolerance):
    """The worst that features can do, relative to the sum of exp(f)."""
    M, rng = 40, np.random.default_rng(5)
    N = 64 * 80 + 1
    t = rng.uniform(-1.0, 1.0, N)
    t[:2] = -1.0, 1.0
    observed = Observed(np.zeros(N), np.ones(N), np.ones(N))
    by_nodes, by_rows = summed(M, t, observed, lambda t, y, extra: np.exp(amplitude * np.sin(np.pi * M * t)))
    assert by_nodes == pytest.approx(by_rows, rel=tolerance)


def test_few_rows_and_rows_at_one_place_are_not_carried():
    t, ones = np.random.default_rng(2).uniform(-1.0, 1.0, 3000), np.ones(3000)
    assert compressed(3, t[:100], Observed(ones[:100], ones[:100], ones[:100])) is None
    assert compressed(3, ones, Observed(ones, ones, ones)) is None
    assert compressed(3, t, Observed(ones, ones, ones)) is not None


def test_rows_at_nodes_and_edges_of_cells():
    """Where the barycentric formula divides by zero, and where two cells meet."""
    N = 64 * 8
    first = compressed(2, np.linspace(-1.0, 1.0, N), Observed(np.ones(N), np.ones(N), np.ones(N)))
    assert first is not None
    t = np.concatenate([first[0], np.linspace(-1.0, 1.0, N)])
    ones = np.ones(t.size)
    by_nodes, by_rows = summed(2, t, Observed(ones, ones, ones), lambda t, y, extra: np.cos(2.0 * np.pi * t) + t**3)
    assert by_nodes == pytest.approx(by_rows, rel=1e-12)


def slopes(own: Model, points: Design) -> tuple[float, np.ndarray]:
    """The log-density and its gradient somewhere."""
    target, data = own.target(own=points)
    z = 0.5 * np.random.default_rng(11).standard_normal(target.size)
    with jax.enable_x64(True):
        value, gradient = jax.jit(jax.value_and_grad(target, argnums=1))(data, z)
    return float(value), np.asarray(gradient)


def test_two_sums_say_all_about_counts():
    """With log p = y A(f) + extra B(f) + constant: the same density up to a constant, for any exposure."""
    rng = np.random.default_rng(2)
    N = 4 * 16 * 6 * 2
    own = model([[Smooth(0, M=3, q=3)]], rng.uniform(0.0, 3.0, (N, 1)), Poisson(), rng)
    own = replace(own, observed=replace(own.observed, extra=rng.uniform(0.5, 2.0, N)))
    short = design(*own.parts(), affine=True)
    assert short.choice.name == "nufft"
    assert short.rows.y.size < N // 3
    _, gradient = slopes(own, short)
    _, by_rows = slopes(own, written(own, short))
    np.testing.assert_allclose(gradient, by_rows, rtol=1e-8, atol=1e-8)


def test_only_two_sums_stand_for_rows():
    """log p of Student's t turns sharply with f, so its rows stay, however few values y has."""
    rng = np.random.default_rng(2)
    N = 4 * 16 * 6 * 9
    own = model([[Smooth(0, M=3, q=3)]], rng.uniform(0.0, 3.0, (N, 1)), StudentT(), rng)
    own = replace(own, observed=replace(own.observed, y=own.observed.y.round()))
    assert design(*own.parts(), affine=StudentT().affine).rows.y.size == N


@pytest.mark.parametrize("engine", ["nufft", "table", "dense", "grid"])
def test_engines_agree(engine):
    """Any engine may be asked for; nodes of cells carry rows in any order, also several columns of a sum."""
    rng = np.random.default_rng(3)
    x = np.column_stack([rng.uniform(0.0, 3.0, 400) ** 2 / 3.0, rng.choice(np.linspace(0.1, 2.9, 300), 400)])
    own = model([[Smooth(0, M=4, q=3)], [Smooth(1, M=5, q=0, p=0)]], x, Poisson(), rng)
    found = design(*own.parts(), engine)
    if engine != "grid":
        assert found.choice.name == engine
    value, gradient = slopes(own, found)
    by_rows, rows_gradient = slopes(own, written(own, found))
    assert value == pytest.approx(by_rows, rel=1e-11)
    np.testing.assert_allclose(gradient, rows_gradient, rtol=1e-8, atol=1e-8)
