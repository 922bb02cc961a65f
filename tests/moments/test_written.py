"""Rows whose features are written out: their sums and functions are those of the engines."""

from dataclasses import replace

import numpy as np
import pytest

from vff.basis import ColumnBasis, LevelBasis
from vff.moments import (
    LetterFunction,
    MomentRequest,
    PreparedRows,
    TermPair,
    combined,
    distinct_values_for,
    moments_of_arrays,
    pair_functions,
    plan_pass,
    summarise_column,
)
from vff.moments import run as run_module
from vff.moments import written as written_module
from vff.moments.operations import synthesise
from vff.moments.written import Layout, WrittenStretch, doubles_from, layout_of, square_from

LEVELS = LevelBasis(("a", "b", "c", "d"))
TERMS = [
    ((0,), (ColumnBasis(5, 3),)),
    ((2,), (LEVELS,)),
    ((1,), (ColumnBasis(4, 2),)),
    ((3,), (LEVELS,)),
    ((4,), (ColumnBasis(7, 0),)),
]
KINDS = ("continuous", "continuous", "levels", "levels", "decimal")
N = 300


def _prepared(table, monkeypatch: pytest.MonkeyPatch) -> PreparedRows:
    """By this way whatever it costs, in several stretches."""
    monkeypatch.setattr(written_module, "_FEWEST", 64)
    monkeypatch.setattr(written_module, "_LETTERS", 64)
    monkeypatch.setattr(run_module, "layout_of", lambda plan, n: Layout(plan.request))
    summaries = [summarise_column(table.y.size, lambda rows, x=x: x[rows]) for x in table.columns]
    distinct_values = distinct_values_for("auto", table.request, summaries, table.source)
    return PreparedRows(plan_pass(table.y.size, table.request, distinct_values), table.source)


@pytest.mark.parametrize("kept", [True, False])
def test_sums_are_those_of_the_engines(make_table, assert_equal, monkeypatch, rng, kept) -> None:
    table = make_table(N, 5, KINDS).with_terms(TERMS)
    if not kept:
        monkeypatch.setattr(run_module, "KEPT", 0)
    prepared = _prepared(table, monkeypatch)
    for _ in range(2):
        y, w = rng.normal(size=N), rng.uniform(-0.5, 2.0, N)
        found = prepared.sum(lambda rows, columns, w=w, y=y: (w[rows], w[rows] * y[rows]))
        expected = moments_of_arrays(table.request, table.columns, y, w, "dense")
        assert_equal(found, replace(expected, target_squared=0.0), 1e-10)
        assert all(isinstance(own, WrittenStretch) is kept for own in prepared._kept)


@pytest.mark.parametrize(("fewer", "most"), [(0, 0.7), (2, 0.0), (2, 1.0)])
def test_functions_are_those_of_the_engines(make_table, monkeypatch, rng, fewer, most) -> None:
    monkeypatch.setattr(written_module, "_MOST_OF", most)
    table = make_table(N, 5, KINDS).with_terms(TERMS)
    prepared, terms = _prepared(table, monkeypatch), table.request.terms
    terms = tuple(
        own if own.bases[0].detail is None else own.with_basis(0, own.bases[0].resized(own.bases[0].detail - fewer))
        for own in terms
    )
    request = MomentRequest(terms)
    linear = [LetterFunction(own.numbers, (own.bases[0].single,), rng.normal(size=own.size)) for own in terms]
    double = [
        LetterFunction(own.numbers, (own.bases[0].double,), rng.normal(size=own.bases[0].double.size)) for own in terms
    ]
    pairs = {(s, t): TermPair(terms[s], terms[t]) for s, t in table.request.pairs}
    blocks = {(s, t): rng.normal(size=(terms[s].size, terms[t].size)) for s, t in pairs}
    groups = [
        [(1.0, own) for own in linear],
        [*((-1.0, own) for own in double), *((2.0, own) for own in pair_functions(pairs, blocks))],
    ]
    tables: dict = {}
    for _, columns in prepared.chunks():
        assert isinstance(columns, WrittenStretch)
        found = combined(columns, request, groups, tables)
        for own, group in zip(found, groups, strict=True):
            values = synthesise(list(columns), [function for _, function in group], "dense")
            wanted = np.sum([weight * value for (weight, _), value in zip(group, values, strict=True)], axis=0)
            np.testing.assert_allclose(own, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())


def test_sums_of_features_are_averages_of_features(make_table, monkeypatch, rng) -> None:
    table = make_table(N, 5, KINDS).with_terms(TERMS)
    prepared, w, total = _prepared(table, monkeypatch), rng.uniform(size=N), 0.0
    for rows, columns in prepared.chunks():
        assert isinstance(columns, WrittenStretch)
        total = total + np.concatenate(columns.feature_sums(w[rows]))
    expected = moments_of_arrays(table.request, table.columns, np.ones(N), w, "dense")
    np.testing.assert_allclose(total, np.concatenate(expected.projects), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("basis", [ColumnBasis(6, 4), ColumnBasis(3, 0), ColumnBasis(100, 3), LEVELS])
def test_letters_are_the_same_letter_after_letter(basis, rng) -> None:
    t = rng.integers(0, 4, 50).astype(float) if basis is LEVELS else rng.uniform(-1.0, 1.0, 50)
    for letters in (basis.single, basis.double):
        np.testing.assert_allclose(letters.evaluate_transposed(t).T, letters.evaluate(t), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("basis", [ColumnBasis(6, 4), ColumnBasis(3, 0), ColumnBasis(20, 3)])
def test_double_letters_follow_from_their_gram_matrix(basis, rng) -> None:
    sums = rng.normal(size=basis.double.size)
    np.testing.assert_allclose(doubles_from(basis, basis.pairs(sums)), sums, rtol=1e-11, atol=1e-11)
    t = rng.uniform(-1.0, 1.0, 50)
    phi, psi = basis.single.evaluate(t), basis.double.evaluate(t)
    np.testing.assert_allclose(np.einsum("np,pq,nq->n", phi, square_from(basis, sums), phi), psi @ sums, atol=1e-10)


def test_it_is_chosen_for_few_features_of_rows_without_ties(make_table) -> None:
    def chosen(n: int, kinds: tuple[str, ...], terms: list, engine: str = "auto") -> bool:
        table = make_table(500, len(kinds), kinds).with_terms(terms)
        summaries = [summarise_column(table.y.size, lambda rows, x=x: x[rows]) for x in table.columns]
        values = distinct_values_for(engine, table.request, summaries, table.source)
        return layout_of(plan_pass(n, table.request, values, engine), n) is not None

    additive = [((d,), (ColumnBasis(12, 3),)) for d in range(4)]
    assert chosen(100_000, ("continuous",) * 4, additive)
    assert not chosen(100_000, ("continuous",) * 4, additive, "nufft")
    assert not chosen(1_000_000, ("integer",) * 4, additive)
    product = [((0, 1), (ColumnBasis(3, 1), ColumnBasis(3, 1))), *additive[2:]]
    assert not chosen(100_000, ("continuous",) * 4, product)
