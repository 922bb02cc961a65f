"""Rows in chunks make the model that the same rows make in memory, whatever they are cut into and wherever they lie."""

import gzip
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import vff
from vff import Categorical, GPClassifier, GPRegressor, Matern12, Matern32, SlidingWindow
from vff.estimators import fitting as fitting_module
from vff.moments import Moments
from vff.moments import sample as sample_module

N = 240
LATE = "z"  # a level that the first rows do not have


def make_table(n: int = N, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": rng.uniform(0.0, 1.0, n),
            "k": rng.integers(0, 12, n),
            "city": rng.choice(list("abc"), n),
            "at": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 40 * 24, n), unit="h"),
            "on": rng.random(n) < 0.4,
            "w": rng.integers(0, 3, n).astype(float),
            "days": rng.uniform(0.5, 2.0, n),
        }
    )
    frame.loc[n // 2 :, "city"] = frame.loc[n // 2 :, "city"].replace("a", LATE)
    frame.loc[n // 3 : n // 2, "w"] = 0.0
    mean = np.sin(6.0 * frame["x"]) + 0.3 * np.cos(frame["k"] / 2.0) + 0.5 * (frame["city"] == "b") + 0.4 * frame["on"]
    frame["y"] = 10.0 + mean + 0.2 * rng.normal(size=n)
    frame["count"] = rng.poisson(frame["days"] * np.exp(0.5 * mean)).astype(float)
    frame["label"] = np.where(mean + 0.3 * rng.normal(size=n) > 0.5, "yes", "no")
    frame["colour"] = np.array(["red", "green", "blue"])[np.digitize(mean + 0.3 * rng.normal(size=n), [0.0, 0.8])]
    return frame


TABLE = make_table()
KERNELS = {
    "one": Matern32("x"),
    "sum": Matern32("x") + Matern12("k"),
    "levels": Matern32("x") + Categorical("city"),
    "product": Matern32("x") + Matern32("x") * Categorical("city"),
    "two numbers": Matern32("x") * Matern32("k"),
    "times": Matern32("x") + Matern32("at"),
    "booleans": Matern32("x") + Categorical("on"),
}
DOMAINS: dict[str, Any] = {
    "x": (0.0, 1.0),
    "k": (0.0, 11.0),
    "at": (19_723.0, 19_763.0),  # days since 1970
}
SETTLED = {"frequencies": 6}


def columns(kernel: Any) -> list[str]:
    return [name for name in TABLE.columns if f"'{name}'" in repr(kernel)]


def domain_of(kernel: Any) -> dict[str, Any]:
    return {name: DOMAINS[name] for name in columns(kernel) if name in DOMAINS}


def cut(frame: pd.DataFrame, *cuts: int) -> list[pd.DataFrame]:
    bounds = [0, *sorted({c for c in cuts if 0 < c < len(frame)}), len(frame)]
    return [frame.iloc[a:b].reset_index(drop=True) for a, b in itertools.pairwise(bounds)]


def assert_same_sums(one: Any, other: Any, tolerance: float = 1e-12) -> None:
    """Statistics agree, with levels in the same order, relative to the size of the sums."""
    mine, theirs = one.rows_.moments, other.rows_.moments
    mine = Moments.zero(mine.request, theirs.offset) + mine  # in one pass, targets are measured from another offset
    assert one.rows_.binding == other.rows_.binding
    assert mine.request == theirs.request
    assert mine.n == theirs.n
    size = theirs.weight + abs(theirs.target_squared)
    for name in ("weight", "target", "target_squared"):
        assert abs(getattr(mine, name) - getattr(theirs, name)) < tolerance * size
    pairs = [*zip((*mine.grams, *mine.projects), (*theirs.grams, *theirs.projects), strict=True)]
    pairs += [(mine.blocks[key], theirs.blocks[key]) for key in theirs.blocks]
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * size)


def assert_same_model(one: Any, other: Any, frame: pd.DataFrame, tolerance: float = 1e-9) -> None:
    scale = max(1.0, float(np.std(TABLE["y"])))
    assert one.elbo_ == pytest.approx(other.elbo_, rel=tolerance, abs=tolerance * N)
    for mine, theirs in zip(one.predict(frame, return_std=True), other.predict(frame, return_std=True), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=tolerance * scale)


def at_given(kernel: Any = None, **options: Any) -> GPRegressor:
    """Hyperparameters from the data, held: nothing is left to the path of a climb."""
    return GPRegressor(kernel, optimizer=None, noise_variance=0.04, **options)


def held(kernel: Any) -> Any:
    """The kernel with its hyperparameters written."""
    text = {
        "one": Matern32("x", variance=1.0, lengthscale=0.3),
        "sum": Matern32("x", variance=1.0, lengthscale=0.3) + Matern12("k", variance=0.5, lengthscale=5.0),
        "levels": Matern32("x", variance=1.0, lengthscale=0.3) + Categorical("city", variance=0.3),
    }
    return next(value for name, value in text.items() if KERNELS[name] == kernel)


@pytest.mark.parametrize("given_domain", [False, True], ids=["two passes", "one pass"])
@pytest.mark.parametrize("name", KERNELS)
def test_chunks_have_the_sums_and_the_model_of_the_whole(name, given_domain) -> None:
    kernel = KERNELS[name]
    options = {"domain": domain_of(kernel)} if given_domain else {}
    options |= SETTLED if name == "product" else {}
    used = columns(kernel)
    whole = GPRegressor(kernel, **options).fit(TABLE[used], TABLE["y"])
    pieces = cut(TABLE[[*used, "y"]], 1, 50, 51, 130)
    chunked = GPRegressor(kernel, **options).fit(pieces, "y")
    assert_same_sums(chunked, whole)
    assert_same_model(chunked, whole, TABLE[used], 1e-8)
    assert chunked.target_name_ == "y"


@pytest.mark.parametrize("given_domain", [False, True], ids=["two passes", "one pass"])
@pytest.mark.parametrize("name", ["one", "sum", "levels"])
def test_at_given_hyperparameters_models_agree_to_nine_digits(name, given_domain) -> None:
    kernel = held(KERNELS[name])
    options = {"domain": domain_of(kernel)} if given_domain else {}
    used = columns(kernel)
    whole = at_given(kernel, **options).fit(TABLE[used], TABLE["y"], TABLE["w"])
    chunked = at_given(kernel, **options).fit(cut(TABLE[[*used, "y", "w"]], 7, 90, 110), "y", "w")
    assert_same_sums(chunked, whole)
    assert_same_model(chunked, whole, TABLE[used])


@settings(max_examples=12)
@given(
    cuts=st.lists(st.integers(1, N - 1), max_size=8),
    seed=st.integers(0, 10**6),
    name=st.sampled_from(["one", "sum", "levels"]),
    given_domain=st.booleans(),
    weighted=st.booleans(),
)
def test_any_partition_and_any_order(cuts, seed, name, given_domain, weighted) -> None:
    kernel = held(KERNELS[name])
    options = {"domain": domain_of(kernel)} if given_domain else {}
    used, weight = columns(kernel), "w" if weighted else None
    whole = at_given(kernel, **options).fit(TABLE[used], TABLE["y"], TABLE["w"] if weighted else None)
    mixed = TABLE[[*used, "y", "w"]].iloc[np.random.default_rng(seed).permutation(N)]
    pieces = cut(mixed, *cuts)
    chunked = at_given(kernel, **options).fit(lambda: iter(pieces), "y", weight)
    if not given_domain:  # in one pass levels keep the order in which they came
        assert_same_sums(chunked, whole)
    assert_same_model(chunked, whole, TABLE[used])


@pytest.mark.parametrize("given_domain", [False, True], ids=["two passes", "one pass"])
def test_without_a_kernel(given_domain) -> None:
    used = ["x", "k", "city"]
    options = {"domain": {name: DOMAINS[name] for name in ("x", "k")}} if given_domain else {}
    whole = GPRegressor(**options, **SETTLED).fit(TABLE[used], TABLE["y"])
    chunked = GPRegressor(**options, **SETTLED).fit(cut(TABLE[[*used, "y"]], 60, 61, 200), "y")
    assert_same_sums(chunked, whole)
    assert_same_model(chunked, whole, TABLE[used], 1e-8)


def write(frame: pd.DataFrame, path: Path) -> str:
    """A file of the format that its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if path.name.endswith(".gz"):
        with gzip.open(path, "wb") as file:
            pyarrow.csv.write_csv(table, file)
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=50)
    else:
        pyarrow.feather.write_feather(table, str(path))
    return str(path)


def in_folders(frame: pd.DataFrame, folder: Path) -> str:
    """A folder per city, whose name alone says which."""
    for city, part in frame.groupby("city"):
        write(part.drop(columns="city"), folder / f"city={city}" / "a.parquet")
    return str(folder)


@pytest.mark.parametrize("form", ["t.csv", "t.csv.gz", "t.parquet", "t.feather", "folders", "many.csv"])
@pytest.mark.parametrize("given_domain", [False, True], ids=["two passes", "one pass"])
def test_files_of_every_format(form, given_domain, tmp_path) -> None:
    kernel = Matern32("x") + Categorical("city") + Matern32("at")
    used = columns(kernel)
    options = {"domain": domain_of(kernel)} if given_domain else {}
    frame = TABLE[[*used, "y", "w"]]
    if form == "folders":
        path = in_folders(frame, tmp_path / "folders")
    elif form == "many.csv":
        for number, part in enumerate(cut(frame, 30, 100, 160)):
            write(part, tmp_path / "many" / f"{number}.csv")
        path = str(tmp_path / "many" / "*.csv")
    else:
        path = write(frame, tmp_path / form)
    whole = GPRegressor(kernel, **options, **SETTLED).fit(TABLE[used], TABLE["y"], TABLE["w"])
    chunked = GPRegressor(kernel, **options, **SETTLED).fit(vff.scan(path, chunk_rows=37), "y", "w")
    assert sorted(chunked.rows_.binding.columns[1].levels or ()) == ["a", "b", "c", LATE]
    assert chunked.elbo_ == pytest.approx(whole.elbo_, rel=1e-9)
    asked = TABLE[chunked.feature_names_in_.tolist()]  # names of folders come first
    np.testing.assert_allclose(chunked.predict(asked), whole.predict(TABLE[used]), rtol=0, atol=1e-8)


def counted(pieces: list[Any]) -> tuple[Callable[[], Iterator[Any]], list[int]]:
    """A source that counts how often it is opened."""
    opened: list[int] = []

    def source() -> Iterator[Any]:
        opened.append(len(opened))
        return iter(pieces)

    return source, opened


def test_rows_are_read_once_where_the_domain_is_given_and_else_twice() -> None:
    kernel = KERNELS["levels"]
    pieces = cut(TABLE[["x", "city", "y"]], 100)
    for domain, passes in (({"x": (0.0, 1.0)}, 1), ((0.0, 1.0), 1), ("auto", 2), ({}, 2)):
        source, opened = counted(pieces)
        at_given(held(kernel), domain=domain).fit(source, "y")
        assert len(opened) == passes, domain


def test_iterators_need_a_domain_and_gaussian_noise() -> None:
    pieces = cut(TABLE[["x", "y", "count", "label"]], 100)
    whole = at_given(held(KERNELS["one"]), domain=(0.0, 1.0)).fit(TABLE[["x"]], TABLE["y"])
    chunked = at_given(held(KERNELS["one"]), domain=(0.0, 1.0)).fit(iter(pieces), "y")
    assert_same_model(chunked, whole, TABLE[["x"]])
    with pytest.raises(ValueError, match="read twice, and an iterator gives them once; give domain= for every column"):
        GPRegressor(Matern32("x")).fit(iter(pieces), "y")
    again = "another likelihood than the Gaussian asks the rows again and again, and an iterator gives them once; pass"
    with pytest.raises(ValueError, match=again):
        GPRegressor(Matern32("x"), likelihood="poisson", domain=(0.0, 1.0)).fit(iter(pieces), "count")


def test_arrays_bring_their_targets_along() -> None:
    X, y, w = TABLE[["x", "k"]].to_numpy(float), TABLE["y"].to_numpy(), TABLE["w"].to_numpy()
    kernel = Matern32(0, variance=1.0, lengthscale=0.3) + Matern32(1, variance=1.0, lengthscale=4.0)
    whole = at_given(kernel).fit(X, y, w)
    chunked = at_given(kernel).fit([(X[a : a + 80], y[a : a + 80], w[a : a + 80]) for a in range(0, N, 80)])
    assert_same_sums(chunked, whole)
    np.testing.assert_allclose(chunked.predict(X), whole.predict(X), rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match=r"chunks without column names bring their targets .*; got y='y': leave it"):
        GPRegressor(kernel).fit([(X, y)], "y")
    with pytest.raises(ValueError, match=r"targets were expected beside the columns: give chunks as pairs \(X, y\)"):
        GPRegressor(kernel).fit(lambda: iter([X]))


def rows_of(a: int, b: int) -> tuple[pd.DataFrame, pd.Series]:
    return TABLE[["x", "city"]].iloc[a:b], TABLE["y"].iloc[a:b]


def growing() -> GPRegressor:
    return at_given(held(KERNELS["levels"]), domain={"x": (0.0, 1.0)})


def test_ways_to_add_rows_end_with_the_model_of_all() -> None:
    whole = growing().partial_fit(*rows_of(0, N))
    bit_by_bit = growing().partial_fit(*rows_of(0, 100))
    bit_by_bit.partial_fit([TABLE[["x", "city", "y"]].iloc[100:170], TABLE[["x", "city", "y"]].iloc[170:]], "y")
    one, other = growing().collect(*rows_of(0, 90)), growing().collect(*rows_of(90, N))
    collected = growing().collect(*rows_of(0, 90)).collect(*rows_of(90, N)).learn()
    merged = one.merge(other).learn()
    forgotten = growing().partial_fit(*rows_of(0, N))
    extra = make_table(50, 9)[["x", "city"]], make_table(50, 9)["y"]
    forgotten.partial_fit(*extra).forget(*extra)
    from_chunks = growing().collect(cut(TABLE[["x", "city", "y"]], 3, 200), "y").learn()
    for found in (bit_by_bit, collected, merged, forgotten, from_chunks):
        assert_same_model(found, whole, TABLE[["x", "city"]])
    assert_same_model(whole, growing().fit(*rows_of(0, N)), TABLE[["x", "city"]])


def test_a_window_is_the_model_of_its_batches() -> None:
    window = SlidingWindow(growing(), length=3)
    for start in range(0, N, 40):
        X, y = rows_of(start, start + 40)
        model = window.push(X, y) if start % 80 else window.push([X.assign(y=y)], "y")
        whole = growing().fit(*rows_of(max(0, start - 80), start + 40))
        assert len(window) == min(3, start // 40 + 1)
        assert_same_model(model, whole, X)
    assert model.rows_.moments.n == 120


def test_a_batch_that_is_refused_leaves_the_window_as_it_was() -> None:
    window = SlidingWindow(growing(), length=2)
    for start in (0, 40):
        model = window.push(*rows_of(start, start + 40))
    before = model.predict(TABLE[["x", "city"]][:80])
    X, y = rows_of(80, 120)
    with pytest.raises(ValueError, match="beyond the domain"):
        window.push(X.assign(x=7.0), y)
    assert len(window) == 2
    np.testing.assert_array_equal(window.model.predict(TABLE[["x", "city"]][:80]), before)


LIKELIHOODS: dict[str, Any] = {
    "poisson": (GPRegressor, {"likelihood": vff.likelihoods.Poisson(exposure="days")}, "count"),
    "two classes": (GPClassifier, {}, "label"),
    "three classes": (GPClassifier, {}, "colour"),
}


def latent(model: Any, frame: pd.DataFrame) -> np.ndarray:
    return model.predict_f(frame)[0]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_other_likelihoods_from_chunks(name, weighted) -> None:
    make, options, target = LIKELIHOODS[name]
    kernel, weight = Matern32("k") + Categorical("city"), "w" if weighted else None
    used = ["k", "city", "days"] if name == "poisson" else ["k", "city"]
    model = make(kernel, frequencies=4, **options)
    whole = make(kernel, frequencies=4, **options).fit(TABLE[used], TABLE[target], TABLE["w"] if weighted else None)
    chunked = model.fit(cut(TABLE[[*used, target, "w"]], 90, 91, 110), target, weight)
    assert chunked.elbo_ == pytest.approx(whole.elbo_, rel=1e-8)
    np.testing.assert_allclose(latent(chunked, TABLE[used]), latent(whole, TABLE[used]), rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_other_likelihoods_where_the_rows_do_not_fit(name, monkeypatch) -> None:
    """A sample leads the climb, and all rows, read again and again, have the last word."""
    frame = make_table(2000, 5)
    make, options, target = LIKELIHOODS[name]
    kernel, used = Matern32("x") + Categorical("city"), ["x", "city", "days"]
    used = used if name == "poisson" else used[:2]
    whole = make(kernel, frequencies=4, **options).fit(frame[used], frame[target])
    monkeypatch.setattr(sample_module, "LARGEST_SAMPLE", 500)
    monkeypatch.setattr(fitting_module, "LARGEST_SAMPLE", 500)
    chunked = make(kernel, frequencies=4, **options).fit(cut(frame[[*used, target]], 700, 1500), target)
    sampled = make(kernel, frequencies=4, **options).fit(frame[used], frame[target])
    spread = float(np.std(latent(whole, frame[used])))
    for found in (chunked, sampled):
        assert found.elbo_ == pytest.approx(whole.elbo_, rel=1e-5)
        assert np.abs(latent(found, frame[used]) - latent(whole, frame[used])).max() < 0.02 * spread


@pytest.mark.parametrize("given_domain", [False, True], ids=["two passes", "one pass"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("column", ["x", "y", "w"])
def test_bad_values_are_named_with_their_file_and_rows(column, value, given_domain, tmp_path) -> None:
    frame = TABLE[["x", "y", "w"]].copy()
    frame.loc[150, column] = value
    path = write(frame, tmp_path / "bad.parquet")
    model = GPRegressor(Matern32("x"), domain=(0.0, 1.0) if given_domain else "auto", missing="refuse")
    with pytest.raises(ValueError, match=r"bad\.parquet, rows 100 to 199: .*(NaN|inf).* first in row 150"):
        model.fit(vff.scan(path, chunk_rows=100), "y", "w")


@pytest.mark.parametrize("given_domain", [False, True], ids=["two passes", "one pass"])
def test_rows_with_something_missing_are_left_out_when_asked(given_domain, tmp_path) -> None:
    frame = TABLE[["x", "city", "y", "w"]].copy()
    frame.loc[[3, 100], "x"] = np.nan
    frame.loc[[7, 150], "y"] = np.inf
    frame.loc[9, "w"] = np.nan
    frame.loc[11, "city"] = None
    path = write(frame, tmp_path / "gaps.parquet")
    model = at_given(held(KERNELS["levels"]), domain={"x": (0.0, 1.0)} if given_domain else "auto")
    chunked = model.fit(vff.scan(path, chunk_rows=60, missing="drop"), "y", "w")
    complete = frame.drop(index=[3, 100, 7, 150, 9])
    whole = clone(model).fit(complete[["x", "city"]], complete["y"], complete["w"])
    assert chunked.rows_.moments.n == whole.rows_.moments.n
    assert_same_model(chunked, whole, complete[["x", "city"]])
    with pytest.raises(ValueError, match=r"gaps\.parquet, rows 0 to 59: "):
        model.fit(vff.scan(path, chunk_rows=60), "y", "w")


@pytest.mark.parametrize(
    ("kernel", "y", "weight", "error", "sentence"),
    [
        (Matern32("x"), "z", None, ValueError, "y names column 'z', and there are 'x', 'y', 'w'; name one of them"),
        (Matern32("x"), "y", "v", ValueError, "sample_weight names column 'v', and there are 'x', 'y', 'w'; name one"),
        (Matern32("q"), "y", None, ValueError, "the kernel asks for column 'q', and the source has 'x', 'y', 'w'; use"),
        (Matern32(0), "y", None, ValueError, "the kernel asks for column 0, and the source has 'x', 'y', 'w'; use"),
        (Matern32("y"), "y", None, ValueError, "the kernel has a term of 'y', which is the target; leave it out"),
        (Matern32("x"), TABLE["y"], None, TypeError, "y must be the name of a column .* got Series; name one of 'x'"),
        (Matern32("x"), None, None, ValueError, "requires y to be passed, but the target y is None"),
    ],
)
def test_names_that_are_not_there(kernel, y, weight, error, sentence) -> None:
    with pytest.raises(error, match=sentence) as caught:
        GPRegressor(kernel).fit([TABLE[["x", "y", "w"]]], y, weight)
    assert "\n" not in str(caught.value)


def test_too_few_rows() -> None:
    nobody = TABLE[["x", "y", "w"]].assign(w=0.0)
    for domain in ("auto", (0.0, 1.0)):
        model = GPRegressor(Matern32("x"), domain=domain)
        with pytest.raises(ValueError, match=r"X has 1 sample\(s\) and a minimum of 2 is required"):
            model.fit([nobody[:1]], "y")
        with pytest.raises(ValueError, match="sample_weight is zero for every row; at least two rows need a positive"):
            model.fit(cut(nobody, 100), "y", "w")
        with pytest.raises(ValueError, match="the source has no rows that can be used; at least two are needed"):
            model.fit([nobody[:0]], "y")


@pytest.mark.parametrize("given_domain", [False, True], ids=["two passes", "one pass"])
def test_engines_agree(given_domain) -> None:
    kernel = held(KERNELS["sum"])
    options = {"domain": domain_of(kernel)} if given_domain else {}
    used = columns(kernel)
    frame = TABLE.assign(x=TABLE["x"].round(1))
    pieces = cut(frame[[*used, "y"]], 80, 160)
    models = [at_given(kernel, engine=name, **options).fit(pieces, "y") for name in ("table", "dense", "nufft")]
    for other in models[1:]:
        assert_same_model(other, models[0], frame[used])


@pytest.mark.parametrize("name", ["regressor", "classifier"])
def test_a_model_of_files_is_saved_and_answers_bit_for_bit(name, tmp_path) -> None:
    path = write(TABLE[["x", "city", "y", "label"]], tmp_path / "t.csv")
    make, target = (GPRegressor, "y") if name == "regressor" else (GPClassifier, "label")
    model = make(KERNELS["levels"], frequencies=4).fit(path, target)
    model.save(tmp_path / "m.vff")
    again, asked = vff.load(tmp_path / "m.vff"), TABLE[["x", "city"]]
    for mine, theirs in zip(model.predict_f(asked), again.predict_f(asked), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert again.elbo_ == model.elbo_
    assert again.kernel_ == model.kernel_


def test_a_function_that_gives_other_rows_the_second_time_is_found_out() -> None:
    calls: list[int] = []

    def source() -> Iterator[Any]:
        calls.append(1)
        return iter(cut(TABLE[["x", "y"]].iloc[: N - len(calls)], 100))

    with pytest.raises(ValueError, match=r"chunks 0 to \d+ changed after the first pass"):
        GPRegressor(Matern32("x")).fit(source, "y")


def test_a_level_between_chunks_is_one_whatever_type_it_has() -> None:
    """1 in one chunk and 1.0 in the next are one level, and equal rows there are one row."""
    whole = TABLE[["k", "count"]].assign(k=TABLE["k"] % 3)
    pieces = cut(whole, 100)
    pieces[1] = pieces[1].astype({"k": float})
    kernel = Categorical("k")
    one = GPRegressor(kernel, likelihood="poisson").fit(whole[["k"]], whole["count"])
    other = GPRegressor(kernel, likelihood="poisson").fit(pieces, "count")
    assert other.elbo_ == pytest.approx(one.elbo_, rel=1e-8)


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chunk_rows=st.integers(1, 300))
def test_any_size_of_chunks_of_a_file(chunk_rows, tmp_path) -> None:
    path = tmp_path / "t.parquet"
    if not path.exists():
        write(TABLE[["x", "k", "y"]][:100], path)
    kernel = held(KERNELS["sum"])
    whole = at_given(kernel).fit(TABLE[["x", "k"]][:100], TABLE["y"][:100])
    chunked = at_given(kernel).fit(vff.scan(str(path), chunk_rows=chunk_rows), "y")
    assert_same_sums(chunked, whole)
    assert_same_model(chunked, whole, TABLE[["x", "k"]][:100])
