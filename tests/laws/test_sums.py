"""What holds for random sums of random products of all kinds of factors there are."""

from functools import reduce
from operator import add, mul
from unittest.mock import patch

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.linalg import cho_factor, cho_solve
from tests.makers.factors import Case, cases
from tests.makers.solvers import solved

from vff import GPRegressor
from vff.inference import SumModel
from vff.inference.learning.levels import crossing, eliminable
from vff.inference.learning.solver import SOLVERS
from vff.inference.methods.chains.density import Sums, white_bound
from vff.inference.methods.chains.points import shapes_of
from vff.inference.model.scale import Units, standardised
from vff.kernels import Kernel

EVERY = cases()
NOISE = 0.3
H = 1e-5
some_models = settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@st.composite
def sums_of_products(draw: st.DrawFn) -> tuple[tuple[int, ...], ...]:
    """Numbers of cases, by term and factor; every case has a column of its own, which terms may share."""
    numbers = st.integers(0, len(EVERY) - 1)
    factors = st.lists(numbers, min_size=1, max_size=2, unique=True).map(tuple)
    return tuple(draw(st.lists(factors, min_size=1, max_size=3)))


class Drawn:
    """A model at its makers' values, and a table for it whose rows lie inside all domains."""

    def __init__(self, terms: tuple[tuple[int, ...], ...], n: int = 45):
        rng = np.random.default_rng(len(terms) + sum(sum(term) for term in terms))
        used = sorted({number for term in terms for number in term})
        self.columns = {number: EVERY[number].column(rng, n) for number in used}
        tables = [EVERY[number].table(column, f"c{number}") for number, column in self.columns.items()]
        self.frame = pd.DataFrame({name: column for table in tables for name, column in table.items()})
        self.kernel: Kernel = reduce(add, (reduce(mul, map(self._leaf, term)) for term in terms))
        self.K = sum(reduce(mul, map(self._matrix, term)) for term in terms)
        self.y = np.linalg.cholesky(self.K + NOISE * np.eye(n)) @ rng.standard_normal(n)

    @staticmethod
    def _leaf(number: int):
        return EVERY[number].on(f"c{number}")

    def _matrix(self, number: int) -> np.ndarray:
        column = self.columns[number]
        return EVERY[number].leaf(column, column)

    @property
    def evidence(self) -> float:
        factor = cho_factor(self.K + NOISE * np.eye(self.y.size), lower=True)
        half = self.y @ cho_solve(factor, self.y) + self.y.size * np.log(2.0 * np.pi)
        return -0.5 * half - float(np.log(np.diagonal(factor[0])).sum())

    def fitted(self, frequencies: int = 4) -> GPRegressor:
        """At held hyperparameters, without a constant."""
        held = {"noise_variance": NOISE, "optimizer": None, "normalize_y": False}
        return GPRegressor(self.kernel, frequencies=frequencies, **held).fit(self.frame, self.y)

    def inner(self, frequencies: int = 4) -> tuple[SumModel, np.ndarray]:
        """What learning sees, at the same values."""
        rows, target = (fit := self.fitted(frequencies)).statistics_, fit.fit_.target
        moments, tails = standardised(rows.moments, rows.tails, target)
        terms = tuple(term.inner for term in rows.terms)
        model = SumModel(terms, moments, tails)
        units = Units.of(target, terms, moments.request)
        values = [value for own in units.inner(term.given for term in rows.terms) for value in own.values()]
        return model, np.log([*values, NOISE / target.scale**2])


def shown(terms: tuple[tuple[int, ...], ...]) -> str:
    return " + ".join(" * ".join(EVERY[number].name for number in term) for term in terms)


@given(sums_of_products())
@some_models
def test_bounds_hold_the_evidence_of_the_dense_kernel(terms):
    drawn = Drawn(terms)
    evidence, model = drawn.evidence, drawn.fitted()
    if any(EVERY[number].basis.scattered for term in terms for number in term):
        assert np.isnan(model.fit_.upper_bound)  # y of uncertain inputs is not Gaussian, and no kernel has its evidence
    else:
        assert model.elbo_ <= evidence + 1e-7 * abs(evidence), shown(terms)
        assert model.fit_.upper_bound >= evidence - 1e-7 * abs(evidence), shown(terms)
    finer = drawn.fitted(8)
    assert finer.elbo_ >= model.elbo_ - 1e-7 * abs(evidence), shown(terms)


@given(sums_of_products())
@some_models
def test_gradients_are_those_of_the_bound(terms):
    model, theta = Drawn(terms).inner()
    got = model.pull_back(theta, model.at(theta).cotangents)
    for n in range(theta.size):
        step = H * (np.arange(theta.size) == n)
        central = (model.at(theta + step).elbo - model.at(theta - step).elbo) / (2 * H)
        assert got[n] == pytest.approx(central, rel=1e-4, abs=1e-4), (shown(terms), model.keys[n])


@given(sums_of_products())
@some_models
def test_chains_see_the_same_bound_and_slopes(terms):
    """In white variables, written in JAX, where the direct solver has it in coefficients."""
    model, theta = Drawn(terms).inner(2)
    form, shapes = model.at(theta), shapes_of(model.terms, model.moments.request)
    with jax.enable_x64(True):
        sums = Sums.of(model.moments, None, model.varying)
        value, slope = jax.value_and_grad(lambda t: white_bound(shapes, sums, t))(jax.numpy.asarray(theta))
    assert float(value) == pytest.approx(form.elbo, rel=1e-6, abs=1e-6), shown(terms)
    np.testing.assert_allclose(np.asarray(slope), model.pull_back(theta, form.cotangents), rtol=1e-3, atol=1e-3)


def _offered(solver, model) -> bool:
    """Solvers say themselves what they are not for, beside what costs too much."""
    request = model.moments.request
    if solver.name == "eliminating":
        return eliminable(request, model.exchangeable) is not None
    if solver.name == "crossed":
        return crossing(request, model.exchangeable) is not None
    if solver.name == "low-rank":
        return model.gram_root.error < 1e-9
    scattered = any(basis.scattered for term in request.terms for basis in term.bases)
    return not (solver.name == "iterative" and scattered)


@given(sums_of_products())
@some_models
def test_solvers_agree(terms):
    with patch("vff.moments.gram.SPARSE_FROM", 1):
        assert_solvers_agree(terms)


def assert_solvers_agree(terms):
    model, theta = Drawn(terms, 80).inner(3)
    direct = model.at(theta)
    for solver in SOLVERS:
        if not _offered(solver, model):
            continue
        form = solved(solver, model, theta)
        assert form.elbo == pytest.approx(direct.elbo, rel=1e-5, abs=6.0 * form.error + 1e-4), shown(terms)
        b = model.equations(model.unpack(theta)).G.dense() @ (form.mean - direct.mean)
        assert np.abs(b).max() < 1e-3 * max(1.0, np.abs(direct.b).max()), shown(terms)


def test_every_case_can_be_drawn():
    for number, case in enumerate(EVERY):
        assert isinstance(case, Case)
        Drawn(((number,),), 12)
