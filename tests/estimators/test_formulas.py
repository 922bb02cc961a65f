"""A kernel that is text: the same model in Python, in the shell and in files, wherever the rows are."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import vff
from vff import Categorical, CoxProcess, GPClassifier, GPRegressor, Linear, Matern32, load, parse_kernel
from vff.cli.entry import main
from vff.data import column_kinds, open_rows
from vff.estimators import saving
from vff.estimators.formulas import for_rows
from vff.kernels.columns import ColumnError
from vff.likelihoods import Poisson
from vff.storage import FileError

TEXT = "s(hour) + te(lon, lat) + (1 | house) + cc(doy, 365.25) + x"
KERNEL = parse_kernel("s(hour) + te(lon, lat) + (1 | house) + cc(doy, 365.25) + s(x)")
SMALL: dict[str, Any] = {"frequencies": 3, "optimizer": None}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng, n = np.random.default_rng(0), 120
    numbers = {"hour": 24.0, "doy": 365.0, "lon": 5.0, "lat": 7.0, "x": 1.0, "log_n": 1.0}
    table = pd.DataFrame({name: rng.uniform(0.0, most, n) for name, most in numbers.items()})
    table["house"] = rng.choice(["ash", "birch"], n)
    return table.assign(y=np.sin(table.hour / 4) + (table.house == "ash") + 0.1 * rng.normal(size=n))


def test_it_is_kept_as_it_was_given(frame):
    model = GPRegressor(TEXT, **SMALL)
    assert model.get_params()["kernel"] is TEXT
    assert clone(model).kernel == TEXT
    assert "te(lon, lat)" in repr(model)
    model.fit(frame, "y")
    assert model.kernel is TEXT
    assert model.kernel_ == GPRegressor(KERNEL, **SMALL).fit(frame, "y").kernel_
    assert model.set_params(kernel="s(x)").fit(frame, "y").kernel_.columns == ("x",)


def test_a_search_chooses_between_texts(frame):
    search = GridSearchCV(
        GPRegressor(frequencies=4, hyperparameters="maximise"), {"kernel": ["s(x)", "s(hour) + (1 | house)"]}, cv=2
    )
    assert search.fit(frame.drop(columns="y"), frame.y).best_params_["kernel"] == "s(hour) + (1 | house)"


def _dask(frame: pd.DataFrame, folder: Path) -> Any:
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2)


def _duckdb(frame: pd.DataFrame, folder: Path) -> Any:
    pytest.importorskip("ibis")
    return pytest.importorskip("duckdb").connect().from_df(frame.round(1))


def _parquet(frame: pd.DataFrame, folder: Path) -> Any:
    pytest.importorskip("pyarrow")
    frame.to_parquet(folder / "rows.parquet")
    return str(folder / "rows.parquet")


SOURCES: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "polars": lambda frame, folder: pytest.importorskip("polars").DataFrame(frame.to_dict("list")),
    "arrow": lambda frame, folder: pytest.importorskip("pyarrow").table(frame.to_dict("list")),
    "chunks": lambda frame, folder: lambda: iter([frame[:60], frame[60:]]),
    "dask": _dask,
    "duckdb": _duckdb,
    "parquet": _parquet,
}


@pytest.mark.parametrize("source", SOURCES)
def test_it_means_the_same_wherever_rows_are(source, frame, tmp_path):
    rows = SOURCES[source](frame, tmp_path)
    text, same = (
        "s(hour) + house + s(x, by=house)",
        Matern32("hour") + Categorical("house") + parse_kernel("s(x) * cat(house)"),
    )
    model, other = (GPRegressor(kernel, **SMALL).fit(rows, "y") for kernel in (text, same))
    assert model.kernel_ == other.kernel_
    assert model.elbo_ == other.elbo_
    named = GPRegressor("house + .", **SMALL)._spec()
    others = {"hour", "doy", "lon", "lat", "x"}
    spec = for_rows(named, open_rows(SOURCES[source](frame, tmp_path)), "y", "log_n")
    assert spec.used is not None
    assert set(spec.used.columns) == {"house", *others}


def test_arrays_go_by_number(frame):
    X = frame[["hour", "x"]].to_numpy()
    model = GPRegressor("s(0) + (0 + 1 | 1)", **SMALL)
    with pytest.raises(ValueError, match=r"^kernel: at character 8, 1 or a column before \|"):
        model.fit(X, frame.y)
    assert (
        GPRegressor("s(0) + .", **SMALL).fit(X, frame.y).kernel_
        == GPRegressor(Matern32(0) + Matern32(1), **SMALL).fit(X, frame.y).kernel_
    )
    with pytest.raises(ColumnError, match="'hour', which is none; these have numbers from 0 to 1"):
        GPRegressor("s(hour)", **SMALL).fit(X, frame.y)
    chunks = GPRegressor("s(0) + s(1)", **SMALL).fit(lambda: iter([(X[:60], frame.y[:60]), (X[60:], frame.y[60:])]))
    np.testing.assert_allclose(
        chunks.predict(X), GPRegressor(Matern32(0) + Matern32(1), **SMALL).fit(X, frame.y).predict(X)
    )


def test_kinds_are_looked_at_when_they_are_asked_for(frame):
    kinds = column_kinds(
        open_rows(frame.assign(late=True, day=pd.Timestamp("2024-01-01"), odd=[object()] * len(frame)))
    )
    assert kinds is not None
    assert [kinds[name] for name in ("x", "house", "late", "day")] == ["number", "text", "boolean", "datetime"]
    assert "nothing" not in kinds
    assert len(kinds) == 11


def test_target_weights_and_exposure_are_no_terms(frame):
    rows = frame[["hour", "house", "x", "y", "log_n"]].assign(n=2.0)
    spec = GPRegressor(".", likelihood=Poisson(exposure="n"), offset="x")._spec()
    assert for_rows(spec, open_rows(rows), "y", "log_n").kernel == Matern32("hour") + Categorical("house")
    for text in ("s(hour) + y", "y ~ s(hour) + y"):
        with pytest.raises(ColumnError, match=r"^kernel: at character \d+, .* 'y', which is the target; leave it out"):
            GPRegressor(text).fit(rows, "y")
    weighted = GPRegressor("y ~ s(hour)", **SMALL).fit(rows, "y", sample_weight="log_n")
    assert weighted.target_name_ == "y"
    with pytest.raises(ValueError, match="terms alone was expected, found 'x' ~ before them"):
        GPRegressor("x ~ s(hour)").fit(rows, "y")
    with pytest.raises(ValueError, match="terms alone was expected, found 'y' ~ before them"):
        GPRegressor("y ~ s(hour)").fit(rows, rows.y)
    GPRegressor("y ~ s(hour)", **SMALL).fit(rows.drop(columns="y"), rows.y)


def test_an_offset_in_the_text_is_that_of_the_model(frame):
    def offset(text: str, **options: Any) -> Any:
        return for_rows(GPRegressor(text, **options)._spec(), open_rows(frame), "y", None)

    assert offset("s(x) + offset(log_n)").offset == "log_n"
    assert offset("s(x) + offset(log_n)", offset="log_n").offset == "log_n"
    assert offset("s(x)", offset="log_n").offset == "log_n"
    assert offset("s(x)").offset is None
    assert offset("offset(log_n) + .").kernel == offset(".", offset="log_n").kernel
    with pytest.raises(ValueError, match=r"offset\(log_n\), and the model has offset='x'; leave one"):
        offset("s(x) + offset(log_n)", offset="x")


def test_more_rows_mean_what_the_first_meant(frame):
    rows, text = frame[["hour", "house", "y"]], "hour + ."
    options = {**SMALL, "domain": {"hour": (0.0, 24.0)}}
    whole = GPRegressor(text, **options).partial_fit(rows, "y")
    parts = GPRegressor(text, **options).partial_fit(rows[:50], "y")
    parts.partial_fit(rows[50:].assign(more=1.0), "y")  # a column that was not there
    np.testing.assert_allclose(parts.predict(rows), whole.predict(rows), rtol=1e-8)
    collected = GPRegressor(text, **options).collect(rows[:50], "y").collect(rows[50:], "y").learn()
    np.testing.assert_allclose(collected.predict(rows), whole.predict(rows), rtol=1e-8)
    with pytest.raises(ValueError, match="keep the kernel, or fit all rows again"):
        parts.set_params(kernel="s(hour)").partial_fit(rows, "y")


def test_files_keep_the_text(frame, tmp_path):
    path = tmp_path / "model.vff"
    for text in (TEXT, "y ~ house + .", "s(hour) + (1 | house) + offset(log_n)"):
        model = GPRegressor(text, **SMALL).fit(frame, "y")
        model.save(path)
        again = load(path)
        assert isinstance(again, GPRegressor)
        assert again.kernel == text
        assert again.kernel_ == model.kernel_
        np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
        np.testing.assert_array_equal(again.fit(frame, "y").predict(frame), model.predict(frame))
    statistics = GPRegressor("house", **SMALL).collect(frame, "y")
    statistics.save(path)
    again = load(path)
    assert again.kernel == "house"
    assert saving.describe(path).kernel == "Categorical('house')"
    model = GPRegressor(Matern32("x"), **SMALL).fit(frame, "y")
    model.save(path)
    assert load(path).kernel == Matern32("x")


def test_files_whose_text_means_something_else_are_refused(frame, tmp_path):
    model = GPRegressor("s(hour)", **SMALL).fit(frame, "y")
    for text in ("s(x)", "nonsense(", "hour + x"):
        with pytest.raises(FileError, match="nothing was written"):
            model.set_params(kernel=text).save(tmp_path / "model.vff")


def test_classifiers_read_it(frame, tmp_path):
    path = tmp_path / "classes.vff"
    two = frame.assign(label=np.where(frame.y > 0.5, "high", "low"))
    few = two[["hour", "house", "label"]]
    for text in ("label ~ s(hour) + house", "s(hour) + ."):
        model = GPClassifier(text, **SMALL).fit(few, "label")
        assert model.kernel_ == GPClassifier(parse_kernel("s(hour) + (1 | house)"), **SMALL).fit(few, "label").kernel_
        model.save(path)
        assert load(path).kernel == text
        np.testing.assert_array_equal(load(path).predict(few), model.predict(few))
    three = few.assign(label=np.digitize(frame.y, [0.0, 1.0]))
    many = GPClassifier("house + .", **SMALL).fit(three, "label")
    assert [term.columns for term in vff.kernels.normal_form(many.estimators_[0].kernel_)] == [("house",), ("hour",)]
    many.save(path)
    assert load(path).kernel == "house + ."
    chunked = GPClassifier("label ~ house + .", **SMALL).fit(lambda: iter([few[:60], few[60:]]), "label")
    assert chunked.kernel_.terms[0].column == "house"
    grown = GPClassifier("s(hour) + house", domain={"hour": (0.0, 24.0)}, **SMALL)
    grown.partial_fit(few, "label", classes=["high", "low"]).partial_fit(few, "label")
    assert grown.kernel_.terms[1].column == "house"


def test_point_patterns_read_it(tmp_path):
    window = [(0, 1), (0, 1)]
    points = pd.DataFrame({"u": np.linspace(0.1, 0.9, 30), "v": np.linspace(0.9, 0.1, 30) ** 2})
    options: dict[str, Any] = {"grid": 8, "frequencies": 3}
    model = CoxProcess("te(u, v)", **options).fit(points, window=window)
    assert model.kernel_ == CoxProcess(Matern32("u") * Matern32("v"), **options).fit(points, window=window).kernel_
    saving.save(model, tmp_path / "points.vff")
    assert load(tmp_path / "points.vff").kernel == "te(u, v)"
    with pytest.raises(ValueError, match=r"offset\(u\), and points have none; give the exposure"):
        CoxProcess("s(v) + offset(u)", **options).fit(points, window=window)


def test_the_shell_reads_it(frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["--target", "y", "--frequencies", "2", "--out", "model.vff", "--force", "--quiet"]
    for text, columns in ((TEXT, list(frame)), ("y ~ house + .", ["x", "house", "y"])):
        frame[columns].to_csv("rows.csv", index=False)
        assert main(["fit", "rows.csv", "--terms", text, *words]) == 0
        shell = load("model.vff")
        assert shell.kernel == text
        python = GPRegressor(text, frequencies=2).fit("rows.csv", "y")
        assert python.kernel_ == shell.kernel_
        np.testing.assert_array_equal(python.predict("rows.csv"), shell.predict("rows.csv"))
    assert main(["update", "model.vff", "rows.csv", "--out", "more.vff", "--quiet"]) == 0
    assert load("more.vff").kernel == "y ~ house + ."


@pytest.mark.parametrize(
    ("text", "code", "sentence"),
    [
        ("s(x, k=20)", 2, "--terms: at character 6, .* give --frequencies x=20"),
        (
            "x ~ s(hour)",
            2,
            "--terms: at character 1, terms alone .* that of --target, which is 'y'; .* give --target x",
        ),
        ("s(hours)", 3, "terms: at character 3, .* perhaps 'hour' or 'house' was meant"),
        ("s(x) + y", 3, "terms: at character 8, .* which is the target"),
        ("s(x) - 1", 2, "--terms: at character 6, .*normalize_y=False"),
    ],
)
def test_the_shell_refuses_with_the_place(text, code, sentence, frame, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame.to_csv("rows.csv", index=False)
    assert main(["fit", "rows.csv", "--target", "y", "--terms", text, "--out", "model.vff"]) == code
    assert re.search(sentence, capsys.readouterr().err)


def test_what_stands_in_no_text(frame, tmp_path, monkeypatch):
    """Neighbours in a file are read for the shell, and the kernel is kept then."""
    monkeypatch.chdir(tmp_path)
    frame.to_csv("rows.csv", index=False)
    (tmp_path / "pairs.csv").write_text("one,other\nash,birch\n")
    words = ["--target", "y", "--frequencies", "3", "--out", "model.vff", "--quiet"]
    assert main(["fit", "rows.csv", "--terms", 'areas(house, "pairs.csv") + s(x)', *words]) == 0
    assert load("model.vff").kernel.terms[1] == Matern32("x")
    with pytest.raises(ValueError, match="files are read for a command line"):
        GPRegressor('areas(house, "pairs.csv")').fit(frame, "y")


def test_slopes_are_those_of_kernels(frame):
    model = GPRegressor("linear(x) + (1 + x | house)", **SMALL).fit(frame, "y")
    same = GPRegressor(Linear("x") + Linear("x", intercept=True) * Categorical("house"), **SMALL).fit(frame, "y")
    np.testing.assert_array_equal(model.predict(frame), same.predict(frame))
