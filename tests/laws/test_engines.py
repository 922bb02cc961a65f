"""What holds for every engine: sums are those of loops over rows, values those of the definition, one the transpose of
the other, rows may come in any pieces, and work that cannot be done is declined with a reason.

A file with an engine of its own imports these tests and says which cases they run over, by a ``pytest_generate_tests``
of its own.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.makers.engines import MAKERS, Case, cases, column, jobs_of

from vff import GPRegressor, Matern32
from vff.basis import ColumnBasis
from vff.moments import ENGINES, ColumnRows, Engine, Job, Work, choose
from vff.moments.engines.dense import DenseEngine


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", cases(), ids=str)


def test_every_engine_has_a_maker():
    assert set(ENGINES.names) == set(MAKERS)


def letters_of_row(job: Job, columns: list[ColumnRows], n: int) -> np.ndarray:
    """All products of letters of one row, by the definition."""
    product = np.ones(())
    for letters, one in zip(job.letters, columns, strict=True):
        product = np.multiply.outer(product, letters.evaluate(one.t[n : n + 1])[0])
    return product


def _looped(job, columns, strengths):
    total = np.zeros(job.shape)
    for n in range(strengths.size):
        total += strengths[n] * letters_of_row(job, columns, n)
    return total


def rows_of(columns, rows):
    """Some of the rows, of which nothing is known yet."""
    return [replace(one, x=one.x[rows], remembered={}) for one in columns]


def accumulated(engine: Engine, jobs, columns, w, weighted, cuts=()):
    """The sums when rows come in pieces."""
    sums = engine.accumulator(jobs, rows_of(columns, slice(0, 0)))
    for start, stop in pairwise([0, *sorted(cuts), w.size]):
        if start < stop:
            sums.add(rows_of(columns, slice(start, stop)), w[start:stop], weighted[start:stop])
    return [np.asarray(own) for own in sums.read()]


def assert_laws(engine: Engine, jobs, columns, w, y, seed=0, cuts=()):
    """Sums are the loops, values are the letters times coefficients, and the two maps are adjoint."""
    rng = np.random.default_rng(seed)
    found = accumulated(engine, jobs, columns, w, w * y, cuts)
    assert len(found) == len(jobs)
    coefficients = [rng.normal(size=job.shape) for job in jobs]
    values = engine.evaluate(columns, jobs, coefficients)
    size = np.abs(w).sum() * max(1.0, np.abs(y).max(initial=0.0))
    for job, sums, own, value in zip(jobs, found, coefficients, values, strict=True):
        strengths = w * y if job.targets else w
        assert sums.shape == job.shape
        np.testing.assert_allclose(sums, _looped(job, columns, strengths), rtol=0, atol=1e-10 * size)
        expected = [np.sum(letters_of_row(job, columns, n) * own) for n in range(w.size)]
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-10 * np.abs(own).sum())
        assert np.sum(sums * own) == pytest.approx(strengths @ value, abs=1e-11 * size * np.abs(own).sum())


@pytest.mark.parametrize("seed", [0, 1])
def test_sums_and_values_are_those_of_the_definition(case: Case, seed):
    rng, columns = np.random.default_rng(seed), case.columns(40, seed)
    assert_laws(ENGINES[case.engine], jobs_of(columns), columns, rng.uniform(0.0, 2.0, 40), rng.normal(size=40), seed)


def test_rows_may_come_in_any_pieces(case: Case):
    if case.in_order:
        return
    rng, columns = np.random.default_rng(7), case.columns(30, 7)
    assert_laws(
        ENGINES[case.engine], jobs_of(columns), columns, rng.uniform(0, 2, 30), rng.normal(size=30), 7, (3, 3, 17)
    )


def test_no_rows_sum_to_nothing(case: Case):
    columns = case.columns()
    jobs, none = jobs_of(columns), np.empty(0)
    for sums, job in zip(accumulated(ENGINES[case.engine], jobs, columns, none, none), jobs, strict=True):
        np.testing.assert_array_equal(sums, np.zeros(job.shape))


def test_one_weight_for_all_rows_counts_like_weights_written_out(case: Case):
    for N in (400, 3):  # more rows than values, and then fewer
        columns = case.columns(N)
        jobs, same = jobs_of(columns)[:1], np.broadcast_to(0.7, N)
        (short,), (long,) = (accumulated(ENGINES[case.engine], jobs, columns, w, w) for w in (same, same.copy()))
        np.testing.assert_allclose(short, long, rtol=0, atol=1e-12 * N)


def test_a_sum_is_an_accumulator_of_one_piece_and_functions_may_be_kept(case: Case):
    engine, columns, rng = ENGINES[case.engine], case.columns(), np.random.default_rng(3)
    jobs, w, y = jobs_of(columns), rng.uniform(size=40), rng.normal(size=40)
    for found, expected in zip(
        engine.sum(columns, jobs, w, w * y), accumulated(engine, jobs, columns, w, w * y), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    coefficients, kept = [rng.normal(size=job.shape) for job in jobs], {}
    for _ in range(2):
        again = engine.evaluate(columns, jobs, coefficients, kept)
        for found, expected in zip(again, engine.evaluate(columns, jobs, coefficients), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_work_has_a_cost_or_a_reason_against_it(case: Case):
    engine, columns = ENGINES[case.engine], case.columns(1000)
    for distinct_values in (True, False):
        some = columns if distinct_values else [replace(one, distinct=None) for one in columns]
        cost = engine.cost(Work(1000, jobs_of(columns), some))
        assert cost.reason
        assert cost.seconds is None or 0.0 <= cost.seconds < 60.0
        assert choose(Work(1000, jobs_of(columns), some)).reason


def test_an_engine_that_cannot_is_not_chosen():
    for kinds in (("slope",), ("slope", "continuous"), ("levels", "slope")):
        columns = [column(kind, 50_000, 1) for kind in kinds]
        work = Work(50_000, jobs_of(columns), columns)
        declined = ENGINES["nufft"].cost(work)
        assert declined.seconds is None
        assert "not trigonometric" in declined.reason
        assert choose(work).name != "nufft"


def test_names_of_engines_are_their_own():
    with (
        pytest.raises(ValueError, match="there is an engine called 'dense' already"),
        ENGINES.registered(ENGINES["dense"]),
    ):
        pass


class Named(DenseEngine):
    """Letters written out, under another name."""

    name = "named"


def test_an_engine_of_somebody_else_sums_and_evaluates(rng):
    x = rng.uniform(0.0, 1.0, (60, 2))
    y = np.sin(5.0 * x[:, 0]) + x[:, 1] ** 2
    kernel = Matern32(0) * Matern32(1) + Matern32(0)
    expected = GPRegressor(kernel, frequencies=3, engine="dense").fit(x, y)
    with ENGINES.registered(Named()):
        assert_laws(
            ENGINES["named"], jobs_of(own := Case("named", ("continuous", "slope")).columns()), own, y[:40], y[20:]
        )
        model = GPRegressor(kernel, frequencies=3, engine="named").fit(x, y)
        assert model.engine_ == "named"
        np.testing.assert_allclose(model.predict(x), expected.predict(x), rtol=1e-10)
    with pytest.raises(ValueError, match="engine"):
        GPRegressor(kernel, engine="named").fit(x, y)


SIZES = {"dense": (1, 2, 3, 4), "nufft": (1, 2, 3), "table": (1, 2, 3, 4), "grouped": (2, 3, 4)}
LARGEST_M = {1: 40, 2: 9, 3: 4, 4: 2}


@pytest.mark.parametrize(("name", "k"), [(name, k) for name in SIZES for k in SIZES[name]])
@settings(max_examples=12)
@given(data=st.data(), N=st.integers(1, 30), seed=st.integers(0, 10**6))
def test_sums_of_any_letters_of_any_columns(name, k, data, N, seed):
    """Single and double letters mixed at will, weights and targets, rows in any number of pieces."""
    kinds = data.draw(st.tuples(*[st.sampled_from(("integer", "decimal", "continuous", "constant"))] * k))
    bases = [ColumnBasis(data.draw(st.integers(1, LARGEST_M[k])), data.draw(st.integers(0, 5 - k))) for _ in kinds]
    columns = [column(kind, N, seed + d, basis) for d, (kind, basis) in enumerate(zip(kinds, bases, strict=True))]
    doubled = data.draw(st.lists(st.tuples(*[st.booleans()] * k), min_size=1, max_size=3))
    jobs = [
        Job(tuple(b.double if two else b.single for b, two in zip(bases, both, strict=True)), data.draw(st.booleans()))
        for both in doubled
    ]
    rng = np.random.default_rng(seed)
    cuts = data.draw(st.lists(st.integers(0, N), max_size=2))
    assert_laws(ENGINES[name], jobs, columns, rng.uniform(0.0, 2.0, N), rng.normal(size=N), seed, cuts)
