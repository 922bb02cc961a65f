"""Two columns of levels at some ratios: everything that is asked of them, against dense algebra."""

import numpy as np
import pytest

from vff.inference.solvers.links import FactoredLinks, IteratedLinks, LinkedLevels, Links
from vff.linalg import NotPositiveDefinite, SparseBlock

FORMS = {"factored": lambda links, t: FactoredLinks(links, t), "iterated": lambda links, t: IteratedLinks(links, t, 64)}
RATIOS = [(0.3, 2.0), (1e-3, 1e-3), (50.0, 1e-4)]


def links_of(kind: str, L: int = 70, K: int = 40, N: int = 900) -> Links:
    rng = np.random.default_rng(3)
    u, i = rng.integers(0, L, N), rng.integers(0, K, N)
    if kind == "a level with half of all rows":
        u[: N // 2] = 0
    if kind == "a level with a row":
        u[u == 5] = 6
        u[0] = 5
    if kind == "a level without rows":
        u[u == 5], i[i == 7] = 6, 8
    if kind == "nested":
        u, L = K * i + rng.integers(0, 3, N), K * K
    if kind == "in two parts":
        i = np.where(u < L // 2, i % (K // 2), K // 2 + i % (K // 2))
    w = rng.uniform(0.5, 2.0, N)
    C = np.zeros((L, K))
    np.add.at(C, (u, i), w)
    return Links((C.sum(axis=1), C.sum(axis=0)), SparseBlock.of(C))


KINDS = ["", "a level with half of all rows", "a level with a row", "a level without rows", "nested", "in two parts"]


def dense(system: LinkedLevels) -> np.ndarray:
    (n, m), C = system.links.n, np.asarray(system.links.C)
    return np.block([[np.diag(n + system.t[0]), C], [C.T, np.diag(m + system.t[1])]])


@pytest.mark.parametrize("t", RATIOS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_solutions_volume_and_traces(kind, form, t):
    system = FORMS[form](links_of(kind), t)
    M, (L, K) = dense(system), system.links.C.shape
    inverse = np.linalg.inv(M)
    v = np.random.default_rng(1).normal(size=(L + K, 3))
    found = np.concatenate(system.solve((v[:L], v[L:])))
    np.testing.assert_allclose(found, inverse @ v, rtol=1e-6, atol=1e-8 * np.abs(inverse @ v).max())
    gain = np.linalg.slogdet(M)[1] - L * np.log(t[0]) - K * np.log(t[1])
    assert system.log_gain == pytest.approx(gain, rel=1e-9, abs=system.error + 1e-7)
    traces = np.trace(inverse[:L, :L]), np.trace(inverse[L:, L:])
    np.testing.assert_allclose(system.traces, traces, rtol=1e-7 if form == "factored" else 0.05)
    if form == "factored":
        places = slice(0, L), slice(L, L + K)
        squares = [[np.sum(inverse[a, b] ** 2) for b in places] for a in places]
        np.testing.assert_allclose(system.squares, squares, rtol=1e-6)


def test_what_is_written_out_is_what_takes_no_time(monkeypatch):
    links = links_of("")
    assert isinstance(links.at((1.0, 1.0)), FactoredLinks)
    monkeypatch.setattr("vff.inference.solvers.links.LARGEST_FACTORED", 3)
    found = links_of("").at((1.0, 1.0))
    assert isinstance(found, IteratedLinks)
    assert found.error <= 0.5


def test_sites_that_weigh_less_than_nothing_are_no_model():
    links = links_of("")
    with pytest.raises(NotPositiveDefinite, match="weigh less than nothing"):
        Links((links.n[0] - 100.0, links.n[1]), links.C).at((1.0, 1.0))
