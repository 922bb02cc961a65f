"""What holds for every registered kind of source: rows, sums, predictions, missing values, faults, interruptions.

A file that registers a kind of its own imports these tests and says which cases they run over, by a
``pytest_generate_tests`` of its own.
"""

from pathlib import Path
from typing import Any

import dask
import numpy as np
import pandas as pd
import pytest
from tests.makers.sources import CUTS, MAKERS, Case, N, cut, table

import vff
from vff import Categorical, GPClassifier, GPRegressor, Matern12, Matern32
from vff.data import SOURCES, FaultyPartWarning, Kind, Source, SourceError, Table, open_rows
from vff.data import checkpoint as checkpoint_module
from vff.data.opening import kind_of
from vff.estimators.tasks import Sum
from vff.moments import Moments

FRAME = table()
HELD = Matern32("x", variance=1.0, lengthscale=0.3) + Matern12("k", variance=0.5, lengthscale=5.0)
KERNEL = HELD + Categorical("g", variance=0.3)
FEW = {"frequencies": 6}


def over(metafunc: pytest.Metafunc, every: tuple[Case, ...]) -> None:
    """Run a law over these cases."""
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", every, ids=[own.text for own in every])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    over(metafunc, MAKERS)


@pytest.fixture(autouse=True)
def _here() -> Any:
    with dask.config.set(scheduler="synchronous"):
        yield


def model(**options: Any) -> GPRegressor:
    """Hyperparameters held: nothing is left to the path of a search."""
    return GPRegressor(KERNEL, noise_variance=0.04, optimizer=None, **FEW, **options)


MEMORY = model().fit(FRAME, "y")


def rounded(frame: pd.DataFrame) -> pd.DataFrame:
    """As databases can group it."""
    return frame.assign(x=frame["x"].round(2))


def small(source: Source) -> Source:
    return source.with_options(chunk_rows=60)


def tables(source: Source) -> list[list[Any]]:
    return [[chunk.table.raw(i) for i in range(chunk.table.n_columns)] for chunk in source.chunks()]


def column(source: Source, name: str) -> np.ndarray:
    return np.concatenate([np.asarray(chunk.table.raw(chunk.table.index(name))) for chunk in source.chunks()])


def assert_same_sums(one: Any, other: Any, tolerance: float = 1e-12) -> None:
    mine, theirs = one.rows_.moments, other.rows_.moments
    mine = Moments.zero(mine.request, theirs.offset) + mine
    assert [column.levels for column in one.rows_.binding.columns] == [
        column.levels for column in other.rows_.binding.columns
    ]
    assert (mine.request, mine.n) == (theirs.request, theirs.n)
    size = theirs.weight + abs(theirs.target_squared)
    pairs = [*zip((*mine.grams, *mine.projects), (*theirs.grams, *theirs.projects), strict=True)]
    pairs += [(mine.blocks[key], theirs.blocks[key]) for key in theirs.blocks]
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * size)


def test_every_kind_has_a_maker() -> None:
    assert {kind.name for kind in SOURCES} == {case.kind for case in MAKERS}


def test_a_kind_opens_what_is_its_own(case: Case, tmp_path: Path) -> None:
    data = case.make(FRAME, tmp_path)
    assert kind_of(data).name == case.kind
    assert next(kind.name for kind in SOURCES if kind.opens(data)) == case.kind
    source = open_rows(data)
    assert open_rows(source) is source
    assert set(FRAME.columns) <= set(source.names or ())
    assert source.n_rows in (None, N)
    for name, kind in {"x": Kind.NUMBER, "g": Kind.TEXT, "y": Kind.NUMBER}.items():
        assert source.kinds.get(name, kind).family == kind


def test_the_same_chunks_twice_and_all_rows_in_order(case: Case, tmp_path: Path) -> None:
    source = small(open_rows(case.make(FRAME, tmp_path)))
    first, second = tables(source), tables(source)
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        for mine, theirs in zip(one, other, strict=True):
            np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))
    np.testing.assert_array_equal(column(source, "x"), FRAME["x"])
    np.testing.assert_array_equal(column(source, "g"), FRAME["g"])


def test_chunks_are_not_larger_than_asked_for(case: Case, tmp_path: Path) -> None:
    if case.kind == "dask":
        pytest.skip("a partition is a chunk")
    source = vff.scan(case.make(FRAME, tmp_path), chunk_rows=60)
    assert max(chunk.n_rows for chunk in source.chunks()) <= 60


def test_the_statistics_are_those_of_memory(case: Case, tmp_path: Path) -> None:
    frame = rounded(FRAME)
    found = model().fit(case.make(frame, tmp_path), "y", sample_weight="w")
    whole = model().fit(frame.drop(columns=["y", "w"]), frame["y"], sample_weight=frame["w"])
    assert_same_sums(found, whole)
    assert found.elbo_ == pytest.approx(whole.elbo_, rel=1e-11)
    assert found.target_name_ == "y"


def test_what_is_learnt_is_what_memory_teaches(case: Case, tmp_path: Path) -> None:
    frame, kernel = rounded(FRAME), Matern32("x") + Categorical("g")
    found, whole = GPRegressor(kernel, **FEW).fit(case.make(frame, tmp_path), "y"), GPRegressor(kernel, **FEW)
    whole.fit(frame[["x", "g"]], frame["y"])
    assert found.elbo_ == pytest.approx(whole.elbo_, rel=1e-9)


def test_rows_are_added_from_anywhere(case: Case, tmp_path: Path) -> None:
    frame, options = rounded(FRAME), {"domain": {"x": (0.0, 1.0), "k": (0.0, 11.0)}}
    parts = model(**options).partial_fit(frame[:100], "y")
    parts.partial_fit(case.make(frame[100:].reset_index(drop=True), tmp_path), "y")
    whole = model(**options).fit(frame, "y")
    assert parts.rows_.moments.n == N
    assert parts.elbo_ == pytest.approx(whole.elbo_, rel=1e-9)


def answers(own: GPRegressor, X: Any) -> list[np.ndarray]:
    effects = own.effects(X)
    return [
        own.predict(X), *own.predict(X, return_std=True), *own.predict_f(X), own.predict_quantiles(X), effects.mean,
        effects.std, *own.predict_derivative(X, "x"), own.log_predictive_density(X, "y"), np.array(own.score(X, "y")),
        np.array(own.score(X, "y", sample_weight="w")),
    ]  # fmt: skip


def test_predictions_are_those_of_memory(case: Case, tmp_path: Path) -> None:
    expected = answers(MEMORY, FRAME)
    data = case.make(FRAME, tmp_path)
    for X in (data, small(open_rows(data))):
        for mine, theirs in zip(answers(MEMORY, X), expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(MEMORY.sample_f(data, 2, 0), MEMORY.sample_f(FRAME, 2, 0))
    with pytest.raises(ValueError, match=r"^X has no column 'k', which the model was fitted to"):
        MEMORY.predict(open_rows(data).restricted(["x", "g"]) if case.kind != "table" else FRAME[["x", "g"]])


def test_rows_outside_are_counted_over_all_chunks(case: Case, tmp_path: Path) -> None:
    narrow = GPRegressor(Matern32("x", variance=1.0, lengthscale=0.1), noise_variance=0.04, optimizer=None, **FEW)
    narrow.fit(FRAME[FRAME.x < 0.5], "y")
    data, beyond = case.make(FRAME, tmp_path), int((narrow.posterior_.outside(FRAME[["x"]].to_numpy())).sum())
    with pytest.warns(vff.ExtrapolationWarning, match=rf"^{beyond} of {N} rows lie outside the domain"):
        narrow.predict(small(open_rows(data)))


def test_labels_from_anywhere(case: Case, tmp_path: Path) -> None:
    frame = rounded(FRAME)
    own = GPClassifier(Matern32("x", variance=1.0, lengthscale=0.3), optimizer=None, **FEW)
    data = case.make(frame, tmp_path)
    whole = own.fit(frame[["x"]], frame["label"]).predict_proba(frame)
    np.testing.assert_allclose(own.predict_proba(data), whole, rtol=1e-12)
    assert own.score(data, "label") == own.score(frame, "label")
    density = own.log_predictive_density(frame, "label")
    np.testing.assert_allclose(own.log_predictive_density(data, "label"), density, rtol=1e-12)
    np.testing.assert_allclose(own.fit(data, "label").predict_proba(frame), whole, atol=2e-4)


def test_missing_values_have_an_effect_are_refused_by_name_or_left_out(case: Case, tmp_path: Path) -> None:
    holes = rounded(FRAME)
    holes.loc[[3, 80, 200], "x"] = np.nan
    data = case.make(holes, tmp_path)
    with pytest.raises(ValueError, match=r"column 'x'.* contains N"):
        model().set_params(missing="refuse").fit(data, "y")
    refused = vff.scan(data, missing="refuse")
    with pytest.raises(ValueError, match=r"column 'x'.* contains N"):
        model().fit(refused, "y")
    with pytest.raises(ValueError, match=r"column 'x'.* contains NaN"):
        MEMORY.predict(refused)
    found = model().fit(data, "y")
    assert_same_sums(found, model().fit(holes, "y"))
    assert any("'x' is missing in 3 of" in note for note in found.notes_)
    with pytest.warns(vff.ExtrapolationWarning, match="3 of .* rows are missing column 'x', which the fit"):
        new = MEMORY.predict(data)
    assert len(new) == len(holes)
    complete = holes.dropna().reset_index(drop=True)
    kept = vff.scan(data, missing="drop")
    assert_same_sums(model().fit(kept, "y"), model().fit(complete, "y"))
    assert_same_sums(model().set_params(missing="drop").fit(data, "y"), model().fit(complete, "y"))
    np.testing.assert_allclose(MEMORY.predict(kept), MEMORY.predict(complete), rtol=1e-12)


def test_a_part_that_cannot_be_read_is_refused_or_left_out_whole(case: Case, tmp_path: Path) -> None:
    if case.damaged is None:
        pytest.skip("has no parts that could be damaged")
    data = case.damaged(FRAME, tmp_path)
    with pytest.raises(SourceError):
        model().fit(data, "y")
    with pytest.raises(SourceError):
        MEMORY.predict(data)
    first, _, third = cut(FRAME)
    rest = pd.concat([first, third], ignore_index=True)
    some = vff.scan(data, faulty="skip", chunk_rows=30)
    with pytest.warns(FaultyPartWarning):
        found = model().fit(some, "y")
    assert_same_sums(found, model().fit(rest, "y"))
    with pytest.warns(FaultyPartWarning):
        predicted = MEMORY.predict(some)
    np.testing.assert_allclose(predicted, MEMORY.predict(rest), rtol=1e-12)
    assert predicted.size == N - (CUTS[1] - CUTS[0])


def test_interrupted_anywhere_and_resumed_to_the_same_bits(case: Case, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(checkpoint_module, "_INTERVAL", -1.0)
    folder, state = tmp_path / "data", str(tmp_path / "state")
    folder.mkdir()
    data = case.make(FRAME, folder)

    def scanned(**more: Any) -> Source:
        return vff.scan(data, chunk_rows=30, **more)

    if not case.resumes:
        with pytest.raises(ValueError, match=r"leave checkpoint=? ?out"):
            model().fit(scanned(checkpoint=state), "y")
        return
    whole = model().fit(scanned(checkpoint=str(tmp_path / "another")), "y")
    plain, calls = Sum.__call__, []

    def interrupted(self: Sum, chunk: Any) -> Any:
        calls.append(chunk)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return plain(self, chunk)

    with monkeypatch.context() as patched:
        patched.setattr(Sum, "__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model().fit(scanned(checkpoint=state), "y")
    assert Path(state).exists()
    resumed = model().fit(scanned(checkpoint=state), "y")
    assert not Path(state).exists()
    for mine, theirs in zip(resumed.rows_.moments.grams, whole.rows_.moments.grams, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert resumed.elbo_ == whole.elbo_


def test_a_column_is_converted_once_per_chunk(case: Case, tmp_path: Path, monkeypatch) -> None:
    """In every pass, and of rows in memory once for all passes."""
    if case.kind == "database":
        pytest.skip("its rows stay where they are")
    converted: list[tuple[str, int]] = []
    plain = Table._kept

    def counted(self: Table, what: str, index: int, convert: Any) -> Any:
        def told() -> Any:
            converted.append((what, id(self.converted), index))  # type: ignore[arg-type]
            kept.append(self)
            return convert()

        return plain(self, what, index, told)

    kept: list[Table] = []  # so that no id is used again
    monkeypatch.setattr(Table, "_kept", counted)
    asked: list[str] = []
    monkeypatch.setattr("vff.data.table.finite_floats", _noted("numbers", asked, "vff.data.table.finite_floats"))
    monkeypatch.setattr("vff.data.table.encode", _noted("codes", asked, "vff.data.table.encode"))
    data = case.make(FRAME, tmp_path)
    model().fit(data, "y")
    assert len(converted) == len(set(converted))
    chunks = 1 if case.kind == "table" else 2 * sum(1 for _ in open_rows(data).chunks())
    assert asked.count("numbers") == 2 * chunks
    assert asked.count("codes") == chunks
    asked.clear()
    MEMORY.predict(data, return_std=True)
    rows = sum(1 for _ in open_rows(data).chunks())
    assert asked.count("numbers") == 2 * rows
    assert asked.count("codes") == rows


def _noted(what: str, asked: list[str], path: str) -> Any:
    module, _, name = path.rpartition(".")
    plain = getattr(__import__(module, fromlist=[name]), name)

    def noted(*args: Any, **how: Any) -> Any:
        asked.append(what)
        return plain(*args, **how)

    return noted
