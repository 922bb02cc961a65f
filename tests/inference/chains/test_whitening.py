"""White variables to coefficients: the square root of T'K^-1 T, against dense matrices in NumPy."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vff.basis import ColumnBasis, LevelBasis
from vff.factors.interval.factor import MaternFactor
from vff.factors.interval.white import ColumnWhite as Column
from vff.factors.levels.factor import LevelFactor
from vff.inference.methods.chains.points import TermPoints, TermShape

LENGTHSCALES = (0.03, 0.4, 1.0, 5.0, 40.0)
COLUMNS = [Column(MaternFactor(p), ColumnBasis(5, q)) for p in (0, 1, 2) for q in (0, 1, p + 2)]
SIZES = [Column(MaternFactor(1), ColumnBasis(M, 3)) for M in (1, 17)]
POINTS = np.concatenate([[-1.0, 1.0, 0.0], np.random.default_rng(1).uniform(-1.0, 1.0, 20)])


@pytest.fixture(autouse=True)
def doubles():
    with jax.enable_x64(True):
        yield


def dense(column: Column, lengthscale: float) -> np.ndarray:
    """T' K^-1 T, with K and T written out."""
    prior = column.factor.column_prior(column.basis, {"lengthscale": lengthscale})
    T = prior.transform.forward(np.eye(column.size))
    return T.T @ np.linalg.solve(prior.matrix().to_dense(), T)


@cache
def compiled(column: Column):
    """The map written out, and phi'K^-1 phi at the points, as functions of the lengthscale."""
    phi, white = column.basis.evaluate(POINTS), np.eye(column.white_size)

    def both(lengthscale):
        root = column.at((lengthscale,))
        return column.coefficients(root, white), column.explained(root, phi)

    return jax.jit(both)


def mapped(column: Column, lengthscale: float) -> np.ndarray:
    return np.asarray(compiled(column)(lengthscale)[0])


def close(one, other, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max())


@pytest.mark.parametrize("column", COLUMNS + SIZES, ids=str)
def test_the_map_is_a_root_of_the_inverse(column):
    phi = column.basis.evaluate(POINTS)
    for lengthscale in LENGTHSCALES:
        B, C = mapped(column, lengthscale), dense(column, lengthscale)
        assert B.shape == (column.size, column.white_size)
        assert B.dtype == np.float64
        # T is badly conditioned where lengthscales are long: what counts is f, the functions at rows
        close(phi @ B @ B.T @ phi.T, phi @ C @ phi.T)
        close(compiled(column)(lengthscale)[1], np.diag(phi @ C @ phi.T))
        if 0.1 < lengthscale < 10.0:
            close(B @ B.T, C, 1e-7)


@pytest.mark.parametrize("column", COLUMNS + SIZES, ids=str)
def test_features_explain_no_more_than_there_is(column):
    for lengthscale in (0.03, 1.0, 1e3):
        explained = np.asarray(compiled(column)(lengthscale)[1])
        assert np.all(explained > 0.0)
        assert np.all(explained <= 1.0 + 1e-10)


@pytest.mark.parametrize("lattice", [True, False])
def test_a_product_is_a_kronecker_product(lattice):
    rng = np.random.default_rng(2)
    one, other, levels = (
        Column(MaternFactor(1), ColumnBasis(3, 2)),
        Column(MaternFactor(0), ColumnBasis(2, 0)),
        LevelFactor().white(LevelBasis(tuple("abcd"))),
    )
    shape, scales = TermShape((one, levels, other), lattice), (0.7, 1.0, 1.9)
    v = rng.standard_normal(int(np.prod(shape.white_shape)))
    by_column = [mapped(one, scales[0]), np.eye(4), mapped(other, scales[2])]
    B = np.kron(np.kron(by_column[0], by_column[1]), by_column[2])
    codes = rng.integers(0, 4, 5)
    features = (one.basis.evaluate(POINTS[:5]), np.eye(4)[codes], other.basis.evaluate(POINTS[5:10]))
    if lattice:
        phi = np.kron(np.kron(features[0], features[1]), features[2])
    else:
        phi = np.array([np.kron(np.kron(a, b), c) for a, b, c in zip(*features, strict=True)])

    @jax.jit
    def all_of(scales, v):
        t = jnp.log(jnp.array([1.0, scales[0], scales[2]]))
        roots = shape.roots(t)
        c = shape.coefficients(roots, v)
        return shape.matrix(t, roots), c, *shape.at_points(TermPoints(features, None), roots, c)

    matrix, c, values, explained = all_of(scales, v)
    close(matrix, B, 1e-12)
    close(np.asarray(c).reshape(-1), B @ v, 1e-12)
    K = np.kron(np.kron(dense(one, scales[0]), np.eye(4)), dense(other, scales[2]))
    close(values, phi @ B @ v, 1e-11)
    close(explained, np.diag(phi @ K @ phi.T), 1e-10)
