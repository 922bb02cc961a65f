"""Neighbours in every form that users have them in, and what is said of those that are none."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

from vff import Areas, GPRegressor, Matern32, Ordered, parse_kernel
from vff.factors.graph.neighbours import Neighbours
from vff.factors.graph.spectrum import Spectrum
from vff.kernels import write_kernel

PAIRS = [("b", "a"), ("b", "c"), ("d", "c")]
NEAR = np.array([[0, 1, 0, 0, 0], [1, 0, 1, 0, 0], [0, 1, 0, 1, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]])
NAMES = ["a", "b", "c", "d", "e"]


class Polygons:
    """What is asked of a GeoDataFrame: its index, and which of its geometries meet."""

    index = pd.Index(NAMES)
    geometry = "polygons"

    class sindex:  # as geopandas calls it
        @staticmethod
        def query(geometry, predicate):
            assert (geometry, predicate) == ("polygons", "intersects")
            return np.nonzero(NEAR + np.eye(5, dtype=int))


FORMS = {
    "pairs": ([*PAIRS, ("a", "b")], ["e"]),
    "an iterator": (iter(PAIRS), ["e"]),
    "an array of pairs": (np.array(PAIRS), ["e"]),
    "lists": ({"a": ["b"], "b": ("a", "c"), "d": {"c"}, "e": []}, None),
    "a matrix": (NEAR, NAMES),
    "a matrix with a diagonal": (NEAR + np.eye(5), NAMES),
    "a sparse matrix": (sparse.csr_array(NEAR), NAMES),
    "an old sparse matrix": (sparse.coo_matrix(NEAR), np.array(NAMES)),
    "booleans": (NEAR > 0, NAMES),
    "a frame with names": (pd.DataFrame(NEAR, index=NAMES, columns=NAMES), None),
    "a frame of pairs": (pd.DataFrame(PAIRS, columns=["from", "to"]), ["e"]),
    "a polars frame of pairs": (pl.DataFrame(PAIRS, schema=["from", "to"], orient="row"), ["e"]),
    "polygons": (Polygons(), None),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_are_one(form):
    given, levels = FORMS[form]
    kernel = Areas("x", given, levels=levels)
    assert kernel == Areas("x", {"a": ["b"], "b": ["c"], "c": ["d"], "e": []})
    assert kernel.neighbours is not None
    np.testing.assert_array_equal(kernel.neighbours.adjacency.toarray(), NEAR)
    assert [list(own) for own in kernel.neighbours.components] == [[0, 1, 2, 3], [4]]
    assert hash(kernel) == hash(Areas("x", PAIRS, levels=["e"]))


def test_polygons_of_geopandas():
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    boxes = [shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1), shapely.box(2, 1, 3, 2), shapely.box(7, 7, 8, 8)]
    frame = geopandas.GeoDataFrame({"name": list("abcd")}, geometry=boxes).set_index("name")
    assert Areas("x", frame) == Areas("x", [("a", "b"), ("b", "c")], levels=["d"])


def test_numbers_are_levels_too():
    kernel = Areas("zip", np.array([[3, 1], [10, 2], [1, 2]]))
    assert kernel.levels_named == (1, 2, 3, 10)
    assert repr(kernel) == "Areas('zip', neighbours={1: [2, 3], 2: [10]})"


@pytest.mark.parametrize(
    ("given", "levels", "sentence"),
    [
        ("ab", None, "neighbours: pairs .* were expected, found 'ab'; give one"),
        (7, None, "neighbours: pairs .* were expected, found 7; give one"),
        ([("a", "b", "c")], None, "pairs of levels were expected, found \\('a', 'b', 'c'\\); give"),
        (["ab"], None, "pairs of levels were expected, found 'ab'; give"),
        ([("a", "a")], None, "'a' is next to itself; leave the pair out"),
        ([("a", None)], None, "levels are named by text or numbers, found None; convert"),
        ([("a", np.nan)], None, "levels are named by text or numbers, found nan; convert"),
        ({"a": "b"}, None, "a list of the neighbours of 'a' was expected, found 'b'; write"),
        ({"a": 3}, None, "a list of the neighbours of 'a' was expected, found 3; write"),
        (NEAR, None, "a level for every row was expected, found 5 by 5 with 0 levels; give levels"),
        (sparse.csr_array(NEAR[:4]), NAMES, "found 4 by 5 with 5 levels; give levels"),
        (0.5 * NEAR, NAMES, "a symmetric matrix of zeros and ones was expected, found the entry 0.5; give"),
        (np.triu(NEAR), NAMES, "found entries that differ from their mirror images; give"),
        (pd.DataFrame(NEAR, columns=NAMES), None, "or of two columns, was expected, found 5 rows and the columns 'a'"),
        ([], None, "different levels were expected, found"),
    ],
)
def test_what_is_no_neighbours_is_refused(given, levels, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        Areas("x", given, levels=levels)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Areas("x"), r"Areas\('x'\) needs neighbours; write Areas\('x', \[\('a', 'b'\)"),
        (lambda: Areas("x", PAIRS, kind="car"), "kind must be one of 'bym2', 'proper', got 'car'; leave it out"),
        (lambda: Areas("x", PAIRS, lengthscale=2.0), "kind='bym2' has no lengthscale, got 2.0; leave it out"),
        (lambda: Areas("x", PAIRS, kind="proper", ratio=2.0), "kind='proper' has no ratio, got 2.0; leave it out"),
        (lambda: Areas("x", PAIRS, ratio=-1.0), "ratio must be a positive number, got -1.0; leave"),
        (lambda: Ordered("x", "abc"), "levels must be a list of all levels in their order, got 'abc'; write"),
        (lambda: Ordered("x", ["a", "b", "a"]), "two or more different levels were expected, found 'a', 'b', 'a'"),
        (lambda: Ordered("x", ["a"]), "two or more different levels were expected, found 'a'; name"),
        (lambda: Ordered("x", ["a", "b"], variance=1.0)(["a"], ["c"]), "among 'a', 'b' were expected, found 'c'; drop"),
        (lambda: Ordered("x", variance=1.0)([1], [1]), "does not know its levels yet; give levels"),
        (lambda: Areas("x", PAIRS) * Ordered("x", NAMES), "levels are told apart once; keep one"),
        (lambda: Neighbours(("a", "b"), ((1, 0),)), "pairs of positions among 2 levels, in order, were expected"),
        (lambda: Neighbours(("a", "b"), ((0, 2),)), "pairs of positions among 2 levels, in order, were expected"),
    ],
)
def test_mistakes_have_a_sentence(make, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        make()


def test_kernels_are_copied_cloned_and_searched():
    kernel = Areas("x", PAIRS, variance=2.0) + Ordered("g", ["low", "high"]) * Matern32("t")
    for again in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel)), clone(kernel)):
        assert again == kernel
        assert hash(again) == hash(kernel)
    model = clone(GPRegressor(kernel)).set_params(kernel__x__ratio=3.0)
    assert model.kernel.terms[0].ratio == 3.0
    assert model.kernel.terms[0].neighbours == kernel.terms[0].neighbours
    proper = clone(Areas("x", PAIRS)).set_params(kind="proper", lengthscale=2.0)
    assert proper == Areas("x", PAIRS, kind="proper", lengthscale=2.0)


def test_long_graphs_are_written_whole_and_shown_short():
    names = [f"it's {n}" for n in range(40)]
    kernel = Areas("x", pairwise(names)) + Ordered("g", range(40))
    assert repr(kernel) == "Areas('x', neighbours=<40 levels, 39 pairs>) + Ordered('g', levels=<40 levels>)"
    assert parse_kernel(write_kernel(kernel)) == kernel
    assert write_kernel(Ordered("g", [1, "a", 2.5])) == "Ordered('g', levels=[1, 'a', 2.5])"


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("Areas('x', neighbours='a')", 1, "neighbours: pairs"),
        ("Areas('x', neighbours=a)", 23, r"a text in quotes, a number, True, False, \[ or \{ was expected, found a"),
        ("Areas('x', neighbours={'a'})", 27, ": was expected, found }"),
        ("Areas('x', neighbours={'a': [})", 30, "a text in quotes, a number"),
        ("Areas('x', neighbours={['a']: 1})", 24, r"a text in quotes or a number was expected, found \["),
        ("Areas('x', neighbours=[['a', 'b'] 'c'])", 35, ", or ] was expected, found 'c'"),
        ("Areas('x', neighbours=[[[['a']]]])", 26, r"was expected, found \["),
        ("Areas('x', neighbours=[['a', 'b'])", 34, r", or ] was expected, found \)"),
        ("Matern32('x', variance=[1])", 24, r"a number was expected, found \["),
    ],
)
def test_mistakes_in_texts_are_placed(text, place, expected):
    with pytest.raises((TypeError, ValueError), match=expected) as caught:
        parse_kernel(text)
    assert f"at character {place}," in str(caught.value)


def test_eigenvectors_are_those_of_the_laplacian():
    graph = Neighbours.of(["i", "j"], [*PAIRS, (1, 2), (2, 3), (1, 3)])
    own, W = Spectrum.of(graph), graph.adjacency.toarray()
    L = np.diag(W.sum(axis=1)) - W
    np.testing.assert_allclose((own.V * own.waves) @ own.V.T, L, atol=1e-13)
    np.testing.assert_allclose(own.V.T @ own.V, np.eye(len(L)), atol=1e-13)
    assert sorted(own.sizes) == [1, 1, 3, 4]
    assert np.count_nonzero(own.waves == 0.0) == 4
    field = (own.V * own.walk) @ own.V.T
    for places in graph.components:
        part = field[np.ix_(places, places)]
        assert np.exp(np.log(np.diagonal(part)).mean()) == pytest.approx(1.0)
        assert places.size == 1 or np.abs(part.sum(axis=1)).max() < 1e-12


def test_neighbours_stand_where_python_has_them():
    assert parse_kernel("Areas('x', [['a', 'b']])") == parse_kernel("Areas('x', neighbours=[['a', 'b']])")
