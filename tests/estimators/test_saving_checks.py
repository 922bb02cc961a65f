"""Files that are well formed and say what cannot be, models that no file may hold, memory that none may ask for."""

import copy
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from vff import Categorical, CoxProcess, GPClassifier, GPRegressor, Matern12, Matern32
from vff.estimators.saving import load, save
from vff.storage import FileError, read_file, write_file

N = 90
KINDS = ("model", "statistics")
GROUPS = ("x", "y")


def table(groups: tuple[str, ...] = GROUPS) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(size=N), "b": rng.uniform(size=N), "group": np.resize(groups, N)})
    return frame, np.sin(4.0 * frame["a"].to_numpy()) + 0.1 * rng.standard_normal(N)


def regressor(groups: tuple[str, ...] = GROUPS) -> GPRegressor:
    X, y = table(groups)
    return GPRegressor(Matern32("a") + Categorical("group"), frequencies=4, domain=(0.0, 1.0)).fit(X, y)


def indexed(column: int = 1) -> GPRegressor:
    X, y = table()
    return GPRegressor(Matern32(column), frequencies=4).fit(X[["b", "a"]].to_numpy(), y)


def classifier(count: int, width: int = 1) -> GPClassifier:
    X, _ = table()
    labels = np.array([f"{k}" for k in range(count)], f"U{width}")[np.arange(N) % count]
    return GPClassifier(Matern32("a"), frequencies=3, domain=(0.0, 1.0)).fit(X, labels)


def cox() -> CoxProcess:
    return CoxProcess(grid=16, frequencies=4, random_state=0).fit(np.linspace(0.01, 0.99, 40), window=(0.0, 1.0))


MAKERS: dict[str, Callable[[], Any]] = {
    "sum": regressor,
    "index": indexed,
    "two": lambda: classifier(2),
    "three": lambda: classifier(3),
    "cox": cox,
}
MADE: dict[str, Any] = {}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.vff"


def changed(name: str, path: Path, change: Callable[[Any], None]) -> Any:
    """A file whose checksum is right, and whose record somebody has written into."""
    if name not in MADE:
        MADE[name] = MAKERS[name]()
    save(MADE[name], path)
    content = read_file(path, KINDS)
    record = copy.deepcopy(content.record)
    change(record)
    write_file(path, content.kind, record)
    return record


def own(record: Any) -> dict[str, Any]:
    return record["model"]["Saved"]


def put(name: str, value: Any) -> Callable[[Any], None]:
    return lambda record: own(record).__setitem__(name, value)


def put_labels(dtype: str, values: list[Any]) -> Callable[[Any], None]:
    return put("classes", {"Labels": {"dtype": dtype, "values": values}})


def dictionaries(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    if isinstance(tree, dict | list):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from dictionaries(part)


def put_everywhere(field: str, value: Any) -> Callable[[Any], None]:
    def change(record: Any) -> None:
        found = [one for one in dictionaries(record["model"]) if field in one]
        assert found
        for one in found:
            one[field] = value

    return change


def put_members(field: str, value: Any) -> Callable[[Any], None]:
    return lambda record: own(record)["members"][0]["Saved"].__setitem__(field, value)


def describe_as(text: str) -> Callable[[Any], None]:
    return lambda record: record["about"]["Description"].__setitem__("kernel", text)


def more_columns(count: int) -> Callable[[Any], None]:
    def change(record: Any) -> None:
        columns = record["about"]["Description"]["columns"]
        columns += [copy.deepcopy(columns[0]) for _ in range(count)]

    return change


@pytest.mark.parametrize("name", MAKERS)
def test_what_nobody_changed_is_loaded(name, path):
    changed(name, path, lambda record: None)
    load(path)


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("sum", put("kernel", "Matern12('a') + Categorical('group')"), "the kernel .* that the rows were summed for"),
        ("sum", put("kernel", "Matern32('b') + Categorical('group')"), "the kernel .* that the rows were summed for"),
        ("sum", put("kernel", "Matern32('a')"), "the kernel .* that the rows were summed for"),
        ("three", put("kernel", "Matern32('b')"), "the kernel .* that the rows were summed for"),
        ("three", put_members("kernel", "Matern32('b')"), "the kernel .* that the rows were summed for"),
        ("cox", put("kernel", "Matern12(0)"), "the kernel .* that the rows were summed for"),
        ("sum", describe_as("Matern12('a')"), "a description of the kernel Matern32"),
        ("sum", put_everywhere("p", 0), "a Matérn of order 1|the functions of the term"),
        ("sum", put_everywhere("lengthscales", [12.0]), "a lengthscale of|a lengthscale for every"),
        ("sum", put("names", ["b", "a", "group"]), "column 'a' in place 0"),
        ("sum", put("names", ["a", "b"]), "names for 3 columns"),
        ("sum", put("n_features", 10**9), "3 columns, as the file describes"),
        ("index", put("n_features", 1), "2 columns, as the file describes"),
        ("index", more_columns(1), "3 columns, as the file describes"),
        ("three", put_members("n_features", 4), "names for 4 columns"),
        ("cox", put_members("n_features", 10**9), "the coordinates and an exposure"),
        ("two", put_labels("<U1", ["0"]), "2 classes"),
        ("two", put_labels("<U16000", ["0", "1"]), "labels of 1 characters"),
        ("two", put_labels("(9,9)f8", [0.0, 1.0]), "labels of text or numbers"),
        ("two", put_labels("f8,f8", [0.0, 1.0]), "labels of text or numbers"),
        ("two", put_labels("<U1", [0, 1]), "labels of text"),
        ("two", put_labels("<U1", ["1", "1"]), "one of them twice"),
        ("three", put_labels("<U1", ["0", "1"]), "3 classes"),
        ("three", lambda record: own(record).__setitem__("members", own(record)["members"][:2]), "three or more"),
    ],
)
def test_what_does_not_fit_together_is_refused(name, change, sentence, path):
    changed(name, path, change)
    with pytest.raises(FileError, match=f"model.vff: .*{sentence}") as caught:
        load(path)
    assert len(str(caught.value).splitlines()) == 1
    assert "; " in str(caught.value)


def test_a_kernel_that_multiplies_out_is_refused_before_it_does(path):
    factors = "*".join(f"(Matern32('a{k}')+Matern32('b{k}'))" for k in range(200))
    for text in (factors, "+".join(["Matern32('a')"] * 20_000), "(" * 10**6):
        changed("sum", path, put("kernel", text))
        tracemalloc.start()
        with pytest.raises(FileError, match="at most"):
            load(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2 * path.stat().st_size + 4 * 2**20


@pytest.mark.parametrize("dtype", ["<U16000", "<U1", "|O", "<f8"])
def test_labels_take_no_more_memory_than_the_file(dtype, path):
    changed("two", path, put_labels(dtype, [f"{k}" for k in range(20_000)]))
    assert peak_of_refusal(path) < 20 * 2**20


def test_one_long_label_is_not_multiplied_by_many(path):
    def change(record: Any) -> None:
        saved = own(record)
        saved["members"] = saved["members"][:1] * 100
        put_labels("<U1000000", ["x" * 10**6, *map(str, range(99))])(record)

    changed("three", path, change)
    assert peak_of_refusal(path) < 40 * 2**20


def test_many_terms_without_sums_between_them_are_not_paired(path):
    def change(record: Any) -> None:
        for one in dictionaries(record["model"]):
            if set(one) == {"MomentRequest"}:
                one["MomentRequest"]["terms"] = one["MomentRequest"]["terms"][:1] * 1500
            if set(one) == {"Binding"}:
                first = one["Binding"]["terms"][0]["BoundTerm"]
                one["Binding"]["terms"] = [{"BoundTerm": {**first, "name": f"{k}"}} for k in range(1500)]
                one["Binding"]["columns"] = one["Binding"]["columns"][:1]
            if set(one) == {"Statistics"}:
                rows, term = one["Statistics"], "harmonics"
                rows[term], rows["highest_frequencies"] = rows[term][:1] * 1500, rows["highest_frequencies"][:1] * 1500
                rows["domain_from_data"], rows["ranges"] = rows["domain_from_data"][:1], rows["ranges"][:1]
            if "grams" in one:
                one["grams"], one["projects"] = one["grams"][:1] * 1500, one["projects"][:1] * 1500
                one["blocks"] = []
        own(record)["kernel"], own(record)["fit"] = None, None
        record["about"]["Description"]["kernel"] = None

    changed("sum", path, change)
    content = read_file(path, KINDS)
    write_file(path, "statistics", content.record)
    tracemalloc.start()
    load(path)  # nothing is wrong with it
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * 2**20


def peak_of_refusal(path: Path) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(FileError):
            load(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_labels_with_room_to_spare_are_written_without_it(path):
    model = classifier(3, width=500)
    save(model, path)
    loaded = load(path)
    assert isinstance(loaded, GPClassifier)
    assert loaded.classes_.dtype == "<U1"
    assert loaded.classes_.tolist() == model.classes_.tolist()


def test_columns_may_be_counted_from_the_end(path):
    model = indexed(-1)
    save(model, path)
    assert load(path).kernel == Matern32(-1)


def test_starting_values_may_change_after_the_fit(path):
    model = regressor()
    model.kernel = Matern32("a", lengthscale=0.5) + Categorical("group", variance=2.0)
    save(model, path)
    assert load(path).kernel == model.kernel


def other_rows(model: GPRegressor) -> None:
    model.statistics_ = regressor((*GROUPS, "z")).rows_


def other_kernel(model: GPRegressor) -> None:
    model.kernel = Matern12("a") + Categorical("group")


def huge_kernel(model: GPRegressor) -> None:
    model.kernel = sum((Matern32("a") for _ in range(1200)), start=Matern32("a"))


def other_names(model: GPRegressor) -> None:
    vars(model)["feature_names_in_"] = np.array(["b", "a", "group"], object)


def no_numbers(model: GPRegressor) -> None:
    model.rows_.moments.projects[0][:] = np.nan


@pytest.mark.parametrize("spoil", [other_rows, other_kernel, huge_kernel, other_names, no_numbers])
@pytest.mark.parametrize("old", [False, True])
def test_what_cannot_be_loaded_is_not_written(spoil, old, path):
    model = regressor()
    if old:
        save(model, path)
    before = path.read_bytes() if old else None
    spoil(model)
    with pytest.raises(ValueError, match=r"model\.vff: a model that can be loaded again was expected") as caught:
        save(model, path)
    assert len(str(caught.value).splitlines()) == 1
    assert str(caught.value).endswith("fit it again, then save it")
    assert (path.read_bytes() if path.exists() else None) == before
    assert len(list(path.parent.iterdir())) == old


def test_the_mode_of_an_old_file_is_kept(path):
    model = regressor()
    save(model, path)
    path.chmod(0o600)
    save(model, path)
    assert path.stat().st_mode & 0o777 == 0o600
