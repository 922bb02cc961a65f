"""Diagnostics of chains against ArviZ, and against what theory says of autoregressive chains."""

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter

from vff.inference.methods.chains.diagnostics import bulk_ess, rank_normalised_rhat, summary, tail_ess


@pytest.fixture(scope="module")
def arviz() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it announces its next version
        return pytest.importorskip("arviz")


def autoregressive(rng: np.random.Generator, chains: int, draws: int, phi: float) -> np.ndarray:
    """x_n = φ x_(n-1) + √(1 - φ²) noise, stationary with unit variance."""
    noise = rng.standard_normal((chains, draws))
    noise[:, 1:] *= np.sqrt(1 - phi**2)
    return np.asarray(lfilter([1.0], [1.0, -phi], noise, axis=1))


def chains_of(kind: str, draws: int) -> np.ndarray:
    rng = np.random.default_rng(draws)
    x = autoregressive(rng, 4, draws, {"slow": 0.9, "alternating": -0.6}.get(kind, 0.0))
    if kind == "shifted":
        x[0] += 1.0
    if kind == "scaled":
        x[1] *= 4.0
    if kind == "heavy":
        x = np.tan(np.arctan(x) * 1.9)
    if kind == "ties":
        x = np.round(x)
    return x


def a_tail_is_empty(x: np.ndarray) -> bool:
    """Whether no draw of the halves is beyond a quantile, where ArviZ says that all draws are independent."""
    used = np.delete(x, x.shape[1] // 2, axis=1) if x.shape[1] % 2 else x
    return bool(np.any([np.all(used <= q) or np.all(used > q) for q in np.quantile(x, [0.05, 0.95])]))


@pytest.mark.parametrize("draws", [4, 5, 6, 7, 25, 100, 501])
@pytest.mark.parametrize("kind", ["iid", "slow", "alternating", "shifted", "scaled", "heavy", "ties"])
def test_diagnostics_are_those_of_arviz(arviz: Any, kind: str, draws: int) -> None:
    x = chains_of(kind, draws)
    assert rank_normalised_rhat(x) == pytest.approx(float(arviz.rhat(x, method="rank")), rel=1e-6)
    assert bulk_ess(x) == pytest.approx(float(arviz.ess(x, method="bulk")), rel=1e-6)
    tail = np.nan if a_tail_is_empty(x) else float(arviz.ess(x, method="tail", prob=(0.05, 0.95)))
    assert tail_ess(x) == pytest.approx(tail, rel=1e-6, nan_ok=True)


@pytest.mark.parametrize("chains", [1, 2, 3])
def test_few_chains_too(arviz: Any, chains: int) -> None:
    x = autoregressive(np.random.default_rng(chains), chains, 300, 0.5)
    assert bulk_ess(x) == pytest.approx(float(arviz.ess(x, method="bulk")), rel=1e-6)
    assert tail_ess(x) == pytest.approx(float(arviz.ess(x, method="tail", prob=(0.05, 0.95))), rel=1e-6)
    assert rank_normalised_rhat(x) < 1.1


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.5, 0.9])
def test_ess_of_an_autoregressive_chain(phi: float, rng: np.random.Generator) -> None:
    """The sum of φ^t over all lags gives S (1 - φ) / (1 + φ); with φ < 0 it exceeds S."""
    x = autoregressive(rng, 4, 20_000, phi)
    assert bulk_ess(x) == pytest.approx(x.size * (1 - phi) / (1 + phi), rel=0.1)
    assert rank_normalised_rhat(x) < 1.01


def test_diagnostics_do_not_depend_on_units_or_on_monotone_maps(rng: np.random.Generator) -> None:
    x = autoregressive(rng, 4, 400, 0.7)
    for y in (1e6 + 3.0 * x, np.exp(x)):
        assert bulk_ess(y) == pytest.approx(bulk_ess(x), rel=1e-9)
    assert rank_normalised_rhat(5.0 - 3.0 * x) == pytest.approx(rank_normalised_rhat(x), rel=1e-9)
    assert bulk_ess(x[::-1]) == pytest.approx(bulk_ess(x), rel=1e-9)


def test_rhat_sees_location_spread_and_drift(rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 500))
    shift, spread = x.copy(), x.copy()
    shift[0] += 1.0
    spread[0] *= 4.0
    drift = x[:1] + np.linspace(0.0, 3.0, 500)
    assert rank_normalised_rhat(x) < 1.01
    assert min(rank_normalised_rhat(y) for y in (shift, spread, drift)) > 1.05


def test_chains_that_say_nothing(rng: np.random.Generator) -> None:
    broken = rng.standard_normal((2, 50))
    broken[1, 7] = np.nan
    for x in (np.full((3, 20), 0.1), broken, np.where(np.isnan(broken), np.inf, broken)):
        assert np.isnan([rank_normalised_rhat(x), bulk_ess(x), tail_ess(x)]).all()
    stuck = np.repeat([[0.1], [0.2], [0.7]], 40, axis=1)
    assert rank_normalised_rhat(stuck) == np.inf
    assert bulk_ess(stuck) < 10
    rare = (rng.random((4, 100)) < 0.2).astype(float)  # all draws are at most the 95 % quantile
    assert np.isnan(tail_ess(rare))
    assert np.isfinite([rank_normalised_rhat(rare), bulk_ess(rare)]).all()


@pytest.mark.parametrize("shape", [(4, 3), (100,), (0, 10), (2, 10, 3)])
def test_refusals(shape: tuple[int, ...]) -> None:
    for diagnostic in (rank_normalised_rhat, bulk_ess, tail_ess, lambda x: summary({"x": x})):
        with pytest.raises(
            ValueError, match=r"expect draws of shape \(chains, draws\) .* but found shape .*; draw more"
        ):
            diagnostic(np.zeros(shape))


def test_summary_has_a_line_per_name(rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 1000))
    one, two = summary({"noise": x, "lengthscale": 10.0 + 2.0 * x})
    assert (one.name, two.name) == ("noise", "lengthscale")
    assert one.mean == pytest.approx(sum(x.ravel()) / x.size)
    assert two.sd == pytest.approx(2.0 * np.sqrt(sum((x.ravel() - one.mean) ** 2) / (x.size - 1)))
    assert np.mean(x <= one.quantile_5) == pytest.approx(0.05, abs=1e-3)
    assert two.quantile_95 == pytest.approx(10.0 + 2.0 * one.quantile_95)
    assert one[5:] == (bulk_ess(x), tail_ess(x), rank_normalised_rhat(x))
