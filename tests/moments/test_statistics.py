"""Moments of many columns add, subtract, scale, move and shrink like the rows they stand for."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vff.basis import ColumnBasis, LevelBasis
from vff.moments import Moments


def test_rows_can_be_taken_back_out(make_table, assert_equal):
    table = make_table(60, 0)
    first, second = table.rows(slice(25)), table.rows(slice(25, 60))
    both = first.read(offset=3.0) + second.read(offset=-40.0)
    assert_equal(both, table.read(offset=3.0), 1e-12)
    assert_equal(both - second.read(offset=7.0), first.read(offset=3.0), 1e-11)


def test_nothing_is_neutral(make_table, assert_equal):
    table = make_table(30, 1)
    moments = table.read(offset=3.0)
    assert_equal(moments + Moments.zero(table.request, 8.0), moments, 0.0)
    assert_equal(moments - moments, Moments.zero(table.request, 3.0), 1e-300)


@given(factor=st.floats(1e-3, 1e3), seed=st.integers(0, 10**6))
def test_scaling_is_scaling_of_every_weight(make_table, assert_equal, factor, seed):
    table = make_table(40, seed)
    heavier = replace(table, w=factor * table.w)
    assert_equal(table.read("dense", 3.0).scaled(factor), heavier.read("dense", 3.0), 1e-12)


@given(old=st.floats(-50.0, 50.0), new=st.floats(-50.0, 50.0), seed=st.integers(0, 10**6))
def test_recentring_is_reading_with_another_offset(make_table, assert_equal, old, new, seed):
    table = make_table(40, seed)
    # target_squared may be a small difference of sums of the size of both offsets squared
    tolerance = 1e-12 * max(1.0, old**2, new**2)
    assert_equal(table.read("dense", old).recentred(new), table.read("dense", new), tolerance)


def test_other_units_are_other_targets(make_table, assert_equal):
    table = make_table(40, 2)
    scaled = replace(table, y=(table.y - 3.0) / 0.4)
    assert_equal(table.read(offset=3.0).in_units(0.4), scaled.read(offset=0.0), 1e-12)


def test_one_column_alone_is_a_pass_over_that_column(make_table, assert_equal):
    table = make_table(40, 3)
    moments = table.read("dense", 3.0)
    for s in range(5):
        alone = moments.term(s)
        assert alone.request.terms == (table.request.terms[s],)
        renumbered = replace(alone, request=table.only([s]).request)
        assert_equal(renumbered, table.only([s]).read("dense", 3.0), 1e-13)


def test_moments_of_different_columns_do_not_mix(make_table):
    table = make_table(10, 4)
    with pytest.raises(ValueError, match="sum different functions"):
        table.read() + table.only([0, 1]).read()


@given(
    large=st.tuples(*[st.integers(1, 12)] * 3),
    shares=st.tuples(*[st.none() | st.floats(0.0, 1.0)] * 3),
    q=st.tuples(*[st.integers(0, 4)] * 3),
    seed=st.integers(0, 10**6),
)
def test_fewer_harmonics_per_column_are_read_off_one_pass(make_table, assert_equal, large, shares, q, seed):
    table = make_table(50, seed, ("integer", "levels", "continuous", "decimal"))
    levels = LevelBasis(("a", "b", "c", "d"))
    small = [M if share is None else max(1, round(share * M)) for M, share in zip(large, shares, strict=True)]

    def bases(harmonics):
        first, *others = (ColumnBasis(*both) for both in zip(harmonics, q, strict=True))
        return [first, levels, *others]

    wanted = [None if share is None else M for M, share in zip(small, shares, strict=True)]
    asked = [wanted[0], None, *wanted[1:]]
    nested = table.with_bases(bases(large)).read("dense", 3.0).restricted([[M] for M in asked])
    assert_equal(nested, table.with_bases(bases(small)).read("dense", 3.0), 1e-12)


def test_more_harmonics_than_were_summed_are_refused(make_table):
    with pytest.raises(ValueError, match="harmonics up to 5 were asked for; these sums stop at 4"):
        make_table(20, 5).read().restricted([[None], [None], [5], [None], [None]])


@given(
    order=st.permutations(range(7)),
    known=st.integers(1, 4),
    seed=st.integers(0, 10**6),
)
def test_more_levels_are_a_pass_over_the_larger_set(make_table, assert_equal, order, known, seed):
    """Rows with levels a ... d only, read over a few levels, then spread over seven in any order."""
    table = make_table(50, seed, ("integer", "levels", "continuous"))
    table.columns[1][:] %= known
    few, names = tuple("abcd"[:known]), "abcdefg"
    many = tuple(names[i] for i in order)
    bases = [column.basis for column in table.request.columns]
    spread = table.with_bases([bases[0], LevelBasis(few), bases[2]]).read("dense", 3.0).with_levels(1, 0, many)
    codes = np.array([float(many.index(names[int(code)])) for code in table.columns[1]])
    larger = replace(table, columns=[table.columns[0], codes, table.columns[2]])
    direct = larger.with_bases([bases[0], LevelBasis(many), bases[2]]).read("dense", 3.0)
    assert_equal(spread, direct, 1e-12)
    assert spread.with_levels(1, 0, many) is spread
