"""A lattice that stands for the rows: its node values meet every letter between the nodes, small letters relatively."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vff.basis import ColumnBasis, EdgeLetters, HarmonicBlock, Interval
from vff.moments import ENGINES, ColumnRequest, ColumnRows, Job, TermRequest, Work, term_gram
from vff.moments.engines.nufft import interpolate
from vff.moments.engines.ruler import Ruler
from vff.moments.engines.spread import EPSILON, nodes_for

UNIT = Interval(-1.0, 1.0)


def _points(seed: int) -> np.ndarray:
    """Both edges, and points between them."""
    return np.concatenate([[-1.0, 1.0, 0.0], np.random.default_rng(seed).uniform(-1.0, 1.0, 60)])


def _met(ruler: Ruler, alphabet: EdgeLetters, t: np.ndarray) -> np.ndarray:
    """What interpolation through the kernel makes of the node values, (N, size)."""
    values = ruler.letters(alphabet)
    assert values.shape == (ruler.n, alphabet.size)
    return interpolate([ruler.reach * t], values.T.astype(complex), EPSILON).real.T


@given(M=st.integers(1, 60), q=st.integers(0, 4), spare=st.integers(0, 20), seed=st.integers(0, 10**6))
@settings(max_examples=25)
def test_node_values_are_seen_as_the_letters_between_the_nodes(M, q, spare, seed):
    basis, t = ColumnBasis(M, q), _points(seed)
    for alphabet in (basis.single, basis.double):
        found = _met(Ruler(alphabet.band + spare, EPSILON), alphabet, t)
        np.testing.assert_allclose(found, alphabet.evaluate(t), rtol=0, atol=2e-11)


def _remainder(M: int, n: int, t: np.ndarray) -> np.ndarray:
    """R_n = B_n - Re sum_(m<=M) (i omega_m)^-n exp(i omega_m s) with thirty digits."""
    with mpmath.workdps(30):
        pi, values = mpmath.pi, []
        for x in t.tolist():
            s = mpmath.mpf(x) + 1
            polynomial = -(mpmath.mpf(2) ** (n - 1)) / mpmath.factorial(n) * mpmath.bernpoly(n, s / 2)
            waves = mpmath.fsum(mpmath.re((1j * pi * m) ** -n * mpmath.expj(pi * m * s)) for m in range(1, M + 1))
            values.append(float(polynomial - waves))
    return np.array(values)


@pytest.mark.parametrize("M", [1, 8, 60])
def test_edge_functions_are_seen_relative_to_their_size(M):
    """R_3 beside 60 harmonics is of size 1e-7, and its square of size 1e-14."""
    t = np.append(_points(M)[::3], 1.0)
    R = {n: _remainder(M, n, t) for n in (1, 2, 3)}
    basis = ColumnBasis(M, 3)
    double = dict(zip([block.edges for block in basis.double.blocks], basis.double.slices, strict=True))
    found = _met(Ruler(2 * M, EPSILON), basis.double, t)
    for i, j in ((1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3)):
        error = np.abs(found[:, double[i, j][1]][:, 0] - R[i] * R[j]).max()
        assert error < 1e-6 * np.abs(R[i]).max() * np.abs(R[j]).max()
    for n in (1, 2, 3):
        waves = R[n][:, None] * np.cos(np.pi * np.outer(t + 1.0, np.arange(M + 1)))
        assert np.abs(found[:, double[n,][1]][:, : M + 1] - waves).max() < 1e-9 * np.abs(R[n]).max()


def test_a_ruler_reaches_beyond_the_interval_and_is_fine_enough():
    for K in (0, 1, 7, 120):
        ruler = Ruler(K, EPSILON)
        assert ruler.n == nodes_for(K)
        assert ruler.n % 2 == 0
        assert np.pi * K * ruler.step <= 0.5 * np.pi
        assert ruler.nodes[0] < -1.0
        assert ruler.nodes[-1] > 1.0


def test_the_highest_harmonic_counts_those_inside_edge_functions():
    assert ColumnBasis(7, 0).single.band == 7
    assert ColumnBasis(7, 2).single.band == 7
    assert Work(0, [Job((ColumnBasis(7, 2).double,)), Job((ColumnBasis(9, 0).single,))], []).bands == [14]
    assert EdgeLetters(5, 2, (HarmonicBlock((1, 2), 3),)).band == 13


@pytest.mark.parametrize("q", [1, 2, 3])
@pytest.mark.parametrize("M", [5, 25, 60])
def test_gram_matrix_of_the_lattice_is_right_relative_to_its_diagonal(M, q):
    """Every entry of Phi' W Phi, relative to sqrt(G_ii G_jj), is far better than what a posterior can notice."""
    rng = np.random.default_rng(M + q)
    bases = (ColumnBasis(M, q), ColumnBasis(3, q))
    columns = [ColumnRows(ColumnRequest(UNIT, basis), rng.uniform(-1.0, 1.0, 300)) for basis in bases]
    w, jobs = rng.uniform(0.0, 2.0, 300), [Job(tuple(basis.double for basis in bases))]
    found, written = (_gram(name, jobs, columns, w) for name in ("nufft", "dense"))
    size = np.sqrt(np.diagonal(written))
    assert np.abs((found - written) / np.outer(size, size)).max() < 1e-5
    phi = np.einsum("np,nq->npq", *(column.basis.evaluate(column.t) for column in columns)).reshape(300, -1)
    assert np.abs((found - phi.T @ (w[:, None] * phi)) / np.outer(size, size)).max() < 1e-5


def _gram(name, jobs, columns, w):
    term = TermRequest(tuple(range(len(columns))), tuple(column.request for column in columns))
    return term_gram(term, ENGINES[name].sum(columns, jobs, w, w)[0]).dense()
