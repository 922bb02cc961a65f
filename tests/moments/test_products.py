"""Terms of one and of several columns that share columns: one pass gives the sums of the definition, by any engine."""

from dataclasses import replace
from functools import reduce
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vff.basis import ColumnBasis, Interval, LevelBasis
from vff.linalg import DenseView
from vff.moments import (
    Choice,
    ColumnRequest,
    LetterFunction,
    MomentRequest,
    Moments,
    TermPair,
    TermRequest,
    column_rows,
    moments_of_arrays,
    pair_functions,
    plan_pass,
    project_term,
    run_pass,
    summed,
    synthesise,
)
from vff.moments import plan as module
from vff.moments.plan import term_pairs_of

ABC = LevelBasis(tuple("abcd"))
KINDS = ("integer", "continuous", "levels", "decimal")
TERMS = {
    "mains and their product": [
        ((0,), [ColumnBasis(3, 2)]),
        ((1,), [ColumnBasis(4, 1)]),
        ((0, 1), [ColumnBasis(2, 1), ColumnBasis(2, 2)]),
    ],
    "products that share a column, turned": [
        ((3, 0), [ColumnBasis(2, 0), ColumnBasis(1, 2)]),
        ((0, 1), [ColumnBasis(3, 1), ColumnBasis(1, 0)]),
        ((3,), [ColumnBasis(5, 1)]),
    ],
    "one column twice": [((0,), [ColumnBasis(2, 2)]), ((0,), [ColumnBasis(5, 0)]), ((0,), [ColumnBasis(3, 3)])],
    "the same letters in two pairs": [
        ((0,), [ColumnBasis(2, 1)]),
        ((1,), [ColumnBasis(3, 2)]),
        ((0,), [ColumnBasis(2, 1)]),
    ],
    "one product twice": [
        ((1, 0), [ColumnBasis(2, 1), ColumnBasis(1, 1)]),
        ((0, 1), [ColumnBasis(2, 0), ColumnBasis(3, 1)]),
    ],
    "with levels": [
        ((2,), [ABC]),
        ((2, 1), [ABC, ColumnBasis(2, 1)]),
        ((0, 2), [ColumnBasis(1, 1), ABC]),
        ((1,), [ColumnBasis(3, 2)]),
        ((3,), [ColumnBasis(1, 0)]),
    ],
    "of three": [
        ((1,), [ColumnBasis(2, 2)]),
        ((3, 1, 0), [ColumnBasis(1, 0), ColumnBasis(1, 1), ColumnBasis(1, 0)]),
        ((0, 3), [ColumnBasis(2, 1), ColumnBasis(1, 1)]),
    ],
    "levels among three": [
        ((1, 2, 0), [ColumnBasis(1, 1), ABC, ColumnBasis(1, 0)]),
        ((2, 3), [ABC, ColumnBasis(1, 0)]),
    ],
}


def _table(make_table, name, N, seed):
    """Only the columns that the terms use, numbered anew."""
    terms = TERMS[name]
    used = sorted({c for numbers, _ in terms for c in numbers})
    table = make_table(N, seed, tuple(KINDS[c] for c in used))
    return table.with_terms([([used.index(c) for c in numbers], bases) for numbers, bases in terms])


def _assert_is_the_definition(moments, table, offset, tolerance=1e-10):
    phi, w, residual = table.features, table.w, table.y - offset
    size = w.sum()
    atol = tolerance * size * max(1.0, np.abs(residual).max())
    np.testing.assert_allclose(moments.gram().dense(), phi.T @ (w[:, None] * phi), rtol=0, atol=tolerance * size)
    np.testing.assert_allclose(moments.project, phi.T @ (w * residual), rtol=0, atol=atol)
    np.testing.assert_allclose(np.concatenate(moments.features_sums), phi.T @ w, rtol=0, atol=tolerance * size)
    assert moments.n == w.size
    assert moments.weight == pytest.approx(size, rel=1e-12)
    assert moments.target == pytest.approx(np.sum(w * residual), abs=atol)
    assert moments.target_squared == pytest.approx(np.sum(w * residual**2), rel=1e-12)


@pytest.fixture(params=TERMS, ids=str)
def name(request):
    return request.param


@pytest.mark.parametrize("engine", ["auto", "dense", "nufft", "table"])
def test_every_engine_gives_the_gram_matrix_of_the_definition(engine, name, make_table):
    for N, seed in ((1, 0), (7, 1), (60, 2)):
        table = _table(make_table, name, N, seed)
        _assert_is_the_definition(table.read(engine, 2.0), table, 2.0)


def test_every_engine_for_every_set(name, make_table):
    table = _table(make_table, name, 50, 3)
    plan = plan_pass(50, table.request, table.distinct_values)
    for asked in ("dense", "nufft", "table", "grouped"):
        sets = []
        for one in plan.sets:
            smooth = all(isinstance(table.request.columns[c].basis, ColumnBasis) for c in one.columns)
            ours = "dense" if asked == "nufft" and not (smooth and len(one.columns) <= 3) else asked
            sets.append(replace(one, choice=Choice(ours, ours)))
        moments, _ = run_pass(replace(plan, sets=tuple(sets)), table.source, 3.0)
        _assert_is_the_definition(moments, table, 3.0)


@pytest.mark.parametrize("which", ["mains and their product", "of three", "one product twice"])
def test_a_full_lattice_is_a_grid(which, make_table, assert_equal):
    """Every combination of values once, in any order of the rows; pairs of three columns are met many times."""
    table = _table(make_table, which, 10, 4)
    lattices = [np.linspace(0.5, 4.5, 4 + c) for c in range(table.request.n_columns)]
    points = np.array(list(product(*lattices)))
    rng = np.random.default_rng(0)
    for order in (np.arange(len(points)), rng.permutation(len(points))):
        full = replace(
            table,
            columns=list(np.ascontiguousarray(points[order].T)),
            y=rng.normal(size=len(points)),
            w=rng.uniform(0.0, 2.0, len(points)),
        )
        found = full.read("grid", 1.0)
        _assert_is_the_definition(found, full, 1.0)
        assert_equal(found, full.read("table", 1.0), 1e-13)
    plan = plan_pass(len(points), full.request, full.distinct_values, "grid")
    reasons = [one.choice.reason for one in (*plan.sets, *plan.alone) if one.choice]
    assert all(reason.startswith(f"grid: {len(points)} rows are all combinations of 4 x 5") for reason in reasons)
    with pytest.raises(ValueError, match="needs every combination of their values exactly once"):
        full.rows(slice(1, None)).read("grid")


@pytest.mark.parametrize("engine", ["auto", "dense", "nufft", "table"])
@settings(max_examples=6)
@given(cuts=st.lists(st.integers(0, 40), max_size=3), seed=st.integers(0, 10**6), which=st.sampled_from(sorted(TERMS)))
def test_any_split_of_the_rows_adds_up_and_can_be_taken_back(engine, make_table, assert_equal, cuts, seed, which):
    table = _table(make_table, which, 40, seed)
    whole, total = table.read(engine, 3.0), Moments.zero(table.request, 3.0)
    parts = [table.rows(slice(*ends)).read(engine, 3.0) for ends in pairwise([0, *sorted(cuts), 40])]
    for part in parts:
        total = total + part
    assert_equal(total, whole, 1e-12)
    for part in parts[1:]:
        total = total - part
    assert_equal(total, parts[0], 1e-11 * max(1.0, whole.weight / max(parts[0].weight, 1.0)))


@pytest.mark.parametrize("engine", ["auto", "dense", "nufft", "table"])
@pytest.mark.parametrize("chunk", [1, 17, 39])
def test_the_length_of_a_chunk_does_not_matter(engine, chunk, name, make_table, assert_equal, monkeypatch):
    table = _table(make_table, name, 40, 5)
    whole = table.read(engine, 3.0)
    for constant in ("_CHUNK", "_CHUNK_OF_FEW", "_CHUNK_OF_SEVERAL"):
        monkeypatch.setattr(module, constant, chunk)
    assert_equal(table.read(engine, 3.0), whole, 1e-12)


def test_rows_outside_of_one_place_count_nowhere(name, make_table, assert_equal):
    table = _table(make_table, name, 40, 6)
    far = {"integer": 11.0, "continuous": -6.5, "levels": -1.0, "decimal": 5.1}
    inside = np.ones(40, bool)
    for c, kind in enumerate(KINDS[i] for i in sorted({c for numbers, _ in TERMS[name] for c in numbers})):
        table.columns[c][3 * c + 1], inside[3 * c + 1] = far[kind], False
    for engine in ("auto", "dense", "nufft", "table"):
        assert_equal(table.read(engine, 3.0), table.rows(inside).read("dense", 3.0), 1e-10)


def test_recentring_scaling_and_other_units(name, make_table, assert_equal):
    table = _table(make_table, name, 40, 7)
    moments = table.read("dense", 3.0)
    assert_equal(moments.recentred(-11.0), table.read("dense", -11.0), 1e-12)
    assert_equal(moments.scaled(0.3), replace(table, w=0.3 * table.w).read("dense", 3.0), 1e-13)
    assert_equal(moments.in_units(0.4), replace(table, y=(table.y - 3.0) / 0.4).read("dense", 0.0), 1e-13)
    assert_equal(moments - moments, Moments.zero(table.request, 3.0), 1e-300)


def test_some_of_the_terms_in_any_order(name, make_table):
    table = _table(make_table, name, 40, 8)
    moments, places, T = table.read("dense", 3.0), table.request.slices, len(table.request.terms)
    gram = moments.gram().dense()
    for kept in [(s,) for s in range(T)] + [pair for one in combinations(range(T), 2) for pair in (one, one[::-1])]:
        some = moments.terms(kept)
        which = np.concatenate([np.arange(gram.shape[0])[places[s]] for s in kept])
        assert some.request.terms == tuple(table.request.terms[s] for s in kept)
        np.testing.assert_array_equal(some.gram().dense(), gram[np.ix_(which, which)])
        np.testing.assert_array_equal(some.project, moments.project[which])
        assert (some.n, some.weight, some.target, some.offset) == (40, moments.weight, moments.target, 3.0)
    alone = moments.term(T - 1)
    assert alone.blocks == {}
    np.testing.assert_array_equal(alone.gram().dense(), gram[places[-1], places[-1]])


@settings(max_examples=15)
@given(data=st.data(), which=st.sampled_from(sorted(TERMS)), seed=st.integers(0, 10**6))
def test_fewer_harmonics_per_factor_are_read_off_one_pass(make_table, assert_equal, data, which, seed):
    table = _table(make_table, which, 30, seed)
    asked, terms = [], []
    for term in table.request.terms:
        wanted, bases = [], []
        for basis in term.bases:
            M = data.draw(st.none() | st.integers(1, basis.M)) if isinstance(basis, ColumnBasis) else None
            wanted.append(M)
            bases.append(ColumnBasis(M, basis.q) if M is not None and isinstance(basis, ColumnBasis) else basis)
        asked.append(wanted)
        terms.append((term.columns, bases))
    nested = table.read("dense", 3.0).restricted(asked)
    assert_equal(nested, table.with_terms(terms).read("dense", 3.0), 1e-12)
    assert nested.request.harmonics == table.with_terms(terms).request.harmonics


def test_more_harmonics_than_were_summed_are_refused(make_table):
    moments = _table(make_table, "of three", 10, 0).read("dense")
    with pytest.raises(ValueError, match="harmonics up to 2 were asked for; these sums stop at 1"):
        moments.restricted([[None], [None, 2, None], [None, None]])


@given(order=st.permutations(range(6)), seed=st.integers(0, 10**6))
@settings(max_examples=10)
def test_more_levels_of_a_factor_are_a_pass_over_the_larger_set(make_table, assert_equal, order, seed):
    table = _table(make_table, "with levels", 30, seed)
    many, c = tuple("abcdef"[i] for i in order), 2
    spread = table.read("dense", 3.0)
    for s, term in enumerate(table.request.terms):
        if c in term.columns:
            spread = spread.with_levels(s, term.columns.index(c), many)
    columns = list(table.columns)
    columns[c] = np.array([float(many.index("abcd"[int(code)])) for code in columns[c]])
    larger = [[LevelBasis(many) if basis == ABC else basis for basis in term.bases] for term in table.request.terms]
    terms = [(term.columns, bases) for term, bases in zip(table.request.terms, larger, strict=True)]
    direct = replace(table, columns=columns).with_terms(terms).read("dense", 3.0)
    assert_equal(spread, direct, 1e-12)


@pytest.mark.parametrize("engine", ["auto", "dense", "nufft", "table"])
def test_terms_and_pairs_make_up_the_whole_quadratic_form(engine, name, make_table, rng):
    """diag(Phi S Phi') from the double letters of every term and the letters of every pair."""
    table = _table(make_table, name, 40, 9)
    request, rows, phi = table.request, table.column_rows, table.features
    S = rng.normal(size=(request.size, request.size))
    S, places = S + S.T, request.slices
    term_pairs = {pair: one for some in term_pairs_of(request).values() for pair, one in some.items()}
    functions = []
    for s, term in enumerate(request.terms):
        letters = project_term(term.bases, DenseView(S[places[s], places[s]]))
        functions.append(LetterFunction(term.columns, tuple(basis.double for basis in term.bases), letters))
    own = np.sum(synthesise(rows, functions, engine), axis=0)
    blocks = {(s, t): S[places[s], places[t]] for s, t in request.pairs}
    total = own + 2.0 * summed(rows, pair_functions(term_pairs, blocks), engine)
    np.testing.assert_allclose(total, np.einsum("np,pq,nq->n", phi, S, phi), rtol=0, atol=1e-10 * np.abs(S).sum())


def test_a_request_knows_its_columns_pairs_and_places(make_table):
    request = _table(make_table, "products that share a column, turned", 5, 0).request
    assert request.n_columns == 3
    assert [column.basis for column in request.columns] == [ColumnBasis(3, 2), ColumnBasis(1, 0), ColumnBasis(5, 1)]
    assert request.sizes == (5 * 5, 8 * 3, 12)
    assert request.slices == (slice(0, 25), slice(25, 49), slice(49, 61))
    assert request.pairs == ((0, 1), (0, 2), (1, 2))
    assert request.harmonics == ((2, 1), (3, 1), (5,))
    assert {tuple(axis.columns[0] for axis in axes): set(pairs) for axes, pairs in term_pairs_of(request).items()} == {
        (0, 2): {(0, 0), (0, 2)},
        (0, 1, 2): {(0, 1), (1, 2)},
        (0, 1): {(1, 1)},
        (2,): {(2, 2)},
    }


def test_a_pass_over_products_is_a_pass_over_every_set_once(make_table):
    table = _table(make_table, "mains and their product", 30, 0)
    plan = plan_pass(30, table.request, table.distinct_values)
    assert [one.columns for one in plan.alone] == [(0,), (1,)]
    (one,) = plan.sets
    assert one.columns == (0, 1)
    assert list(one.terms) == [2]
    assert {pair: isinstance(term_pair, TermPair) for pair, term_pair in one.term_pairs.items()} == dict.fromkeys(
        [(0, 1), (0, 2), (1, 2), (2, 2)], True
    )
    assert [job.targets for job in one.jobs] == [False] * 4 + [True]


def test_a_term_over_the_same_column_with_other_levels_is_refused(make_table):
    table = _table(make_table, "with levels", 5, 0)
    term = table.request.terms[0]
    other = TermRequest(term.columns, (replace(term.factors[0], basis=LevelBasis(("a", "z"))),))
    with pytest.raises(ValueError, match="a column has one set of levels"):
        _ = MomentRequest((*table.request.terms, other)).columns


@pytest.mark.parametrize("engine", ["auto", "dense", "nufft", "table"])
@pytest.mark.parametrize("N", [60, 3000])
def test_two_factors_may_read_one_column(engine, N, rng):
    """On domains of their own, as a season that changes does; beside terms on one of them, and on another column."""
    whole, part = Interval(0.0, 10.0), Interval(-5.0, 15.0)
    slow, fast = ColumnRequest(whole, ColumnBasis(2, 1)), ColumnRequest(part, ColumnBasis(3, 0))
    terms = (
        TermRequest((0, 0), (fast, slow)),
        TermRequest((0,), (ColumnRequest(whole, ColumnBasis(4, 2)),)),
        TermRequest((1, 0), (ColumnRequest(whole, ColumnBasis(1, 1)), fast)),
    )
    columns = [np.round(rng.uniform(0.0, 10.0, N), 1 if engine == "table" else 9), np.round(rng.uniform(0, 10, N), 1)]
    y, w = rng.normal(size=N), rng.uniform(0.0, 2.0, N)
    request = MomentRequest(terms)
    assert [axis.columns for axis in request.axes] == [(0,), (0,), (1,)]
    assert len(request.columns) == 2
    moments = moments_of_arrays(request, columns, y, w, engine)
    phi = np.concatenate([_features(term, columns) for term in terms], axis=1)
    np.testing.assert_allclose(moments.gram().dense(), phi.T @ (w[:, None] * phi), rtol=0, atol=1e-10 * w.sum())
    np.testing.assert_allclose(moments.project, phi.T @ (w * y), rtol=0, atol=1e-10 * w.sum())
    rows = [column_rows(request.columns[c], x) for c, x in enumerate(columns)]
    S = rng.normal(size=(request.size, request.size))
    S, places = S + S.T, request.slices
    term_pairs = {(s, t): TermPair(terms[s], terms[t]) for s, t in request.pairs}
    functions = pair_functions(term_pairs, {(s, t): 2.0 * S[places[s], places[t]] for s, t in request.pairs})
    for term, place in zip(terms, places, strict=True):
        term_pair, own = TermPair(term, term), S[place, place]
        functions.append(
            LetterFunction(term_pair.columns, term_pair.axis_letters, term_pair.letters(own), term_pair.domains)
        )
    expected = np.einsum("np,pq,nq->n", phi, S, phi)
    np.testing.assert_allclose(summed(rows, functions), expected, rtol=0, atol=1e-10 * np.abs(S).sum())


def _features(term: TermRequest, columns: list[np.ndarray]) -> np.ndarray:
    both = zip(term.columns, term.factors, strict=True)
    written = [factor.basis.evaluate(factor.domain.to_unit(columns[c])) for c, factor in both]
    return np.array([reduce(np.kron, [own[n] for own in written]) for n in range(columns[0].size)])
