"""Models as files: the same bits after a round trip, no rows in them, and no file that does anything else than fail."""

import dataclasses
import errno
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import vff
from vff import Categorical, CoxProcess, GPClassifier, GPRegressor, Matern12, Matern32, Matern52
from vff.estimators.saved_records import Saved
from vff.estimators.saving import _CODEC, _saved, describe, load, save
from vff.inference.learning import solver as solvers_module
from vff.likelihoods import Binomial, Custom, Gaussian, Poisson, StudentT
from vff.priors import LogNormal
from vff.storage import FileError, read_file, write_file
from vff.storage.codec import is_record, stored_fields

mpl.use("Agg")

N = 160
FEW = {"frequencies": 5}


def rows(seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    times = np.datetime64("2024-01-01T00:00:00") + rng.integers(0, 300, N) * np.timedelta64(1, "D")
    frame = pd.DataFrame(
        {
            "a": rng.uniform(0.0, 3.0, N),
            "b": rng.uniform(-1.0, 1.0, N),
            "when": times,
            "group": rng.choice(["x", "y", "ü"], N),
            "size": rng.integers(1, 4, N).astype(float),
        }
    )
    frame.loc[frame.index[:4], "a"] = [0.0, 3.0, 0.0, 3.0]
    frame.loc[frame.index[:4], "b"] = [-1.0, 1.0, 1.0, -1.0]
    frame.loc[frame.index[:4], "group"] = ["x", "y", "ü", "x"]
    f = np.sin(2.0 * frame["a"]) + frame["b"] * (frame["group"] == "x")
    return frame, f.to_numpy() + 0.2 * rng.standard_normal(N)


def regressor(kernel: Any, likelihood: Any = "gaussian", target: Callable[..., Any] = lambda y: y, **how: Any) -> Any:
    X, y = rows()
    return GPRegressor(kernel, likelihood=likelihood, **{**FEW, **how}).fit(X, target(y))


def counts(y: np.ndarray) -> np.ndarray:
    return np.random.default_rng(3).poisson(np.exp(y / 2)).astype(float)


def beyond() -> GPRegressor:
    X, y = rows()
    return GPRegressor(Matern32("a"), domain=(0.5, 2.5), frequencies=6).fit(X, y)


def classifier(levels: int, **how: Any) -> GPClassifier:
    X, y = rows()
    labels = np.array(["low", "mid", "top"])[np.digitize(y, [0.0, 0.8] if levels == 3 else [0.3])]
    return GPClassifier(Matern32("a") + Categorical("group"), **{**FEW, **how}).fit(X, labels)


def statistics() -> GPRegressor:
    """What is there before learning."""
    model = regressor(Matern32("a") + Categorical("group"))
    bare = GPRegressor(Matern32("a") + Categorical("group"), **FEW)
    bare.statistics_, bare.n_features_in_, bare.feature_names_in_ = (
        model.rows_,
        model.n_features_in_,
        model.feature_names_in_,
    )
    return bare


def cox(table: bool, **how: Any) -> CoxProcess:
    rng = np.random.default_rng(1)
    points: Any = np.sort(rng.beta(2.0, 3.0, 80))
    points = pd.DataFrame({"t": points}) if table else points
    return CoxProcess(grid=32, frequencies=5, random_state=0, **how).fit(points, window=(0.0, 1.0))


def iterative() -> GPRegressor:
    """As a model of many features, of few: the solver is chosen when learning, and never again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solvers_module, "LARGEST_DIRECT", 300)
        kernel = Matern32("a", lengthscale=0.3, variance=1.0) * Matern32("b", lengthscale=0.3)
        how = {"frequencies": {"a * b": 10}, "noise_variance": 0.1, "optimizer": None}
        model = regressor(kernel + Categorical("group", variance=1), **how)
    assert model.solver_ == "iterative"
    return model


SHORT = {"inference": "mcmc", "draws": 12, "warmup": 25, "chains": 2, "random_state": 0}
MAKERS: dict[str, Callable[[], Any]] = {
    "one column": lambda: regressor(Matern52("a"), frequencies="auto"),
    "rows beyond": beyond,
    "sum": lambda: regressor(Matern32("a") + Matern12("when") + Categorical("group"), domain={"a": (0, 3.0)}),
    "product": lambda: regressor(Matern32("a") * Matern32("b") + Matern32("a") * Categorical("group")),
    "levels of times": lambda: regressor(Categorical("when") + Matern32("b")),
    "shared column": lambda: regressor(Matern32("a") + Matern52("a"), frequencies={"a": 4, "a_2": np.int64(6)}),
    "held": lambda: regressor(Matern32("a", lengthscale=1, variance=2.0), noise_variance=0.1, optimizer=None),
    "text": lambda: regressor("a + (1 | group)"),
    "error bars": lambda: regressor(Matern32("a") + Matern32("b"), noise_std="size"),
    "pairs": lambda: regressor(Matern32("a") + Matern32("b") + Categorical("group"), interactions=1),
    "student-t": lambda: regressor(Matern32("a") + Matern32("b"), StudentT(df=5)),
    "poisson": lambda: regressor(Matern32("a") * Matern32("b"), Poisson(exposure="size"), counts),
    "binomial": lambda: regressor(Matern32("a"), Binomial("size"), lambda y: (y > 0).astype(float)),
    "ordinal": lambda: regressor(Matern32("b"), "ordinal", lambda y: np.digitize(y, [-0.3, 0.5]).astype(float)),
    "kronecker": lambda: regressor(Matern32("a") * Matern32("b"), "poisson", counts, covariance="kronecker"),
    "factorised": lambda: regressor(Matern32("a") + Categorical("group"), "poisson", counts, covariance="factorised"),
    "iterative": iterative,
    "two classes": lambda: classifier(2),
    "three classes": lambda: classifier(3, likelihood="probit"),
    "chains": lambda: regressor(Matern32("a") + Matern32("b"), priors={"lengthscale": LogNormal(1.0, 0.5)}, **SHORT),
    "chains of counts": lambda: regressor(Matern32("a"), Poisson(exposure="size"), counts, **SHORT),
    "cox": lambda: cox(False),
    "cox of a frame": lambda: cox(True),
    "statistics": statistics,
}
MADE: dict[str, Any] = {}


def made(name: str) -> Any:
    if name not in MADE:
        MADE[name] = MAKERS[name]()
    return MADE[name]


def fresh(name: str) -> Any:
    """A model that a test may change; the same every time."""
    return MAKERS[name]()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.vff"


def there_and_back(model: Any, path: Path) -> Any:
    save(model, path)
    return load(path)


def same(one: Any, other: Any) -> bool:
    """Bit by bit, whatever it is."""
    if dataclasses.is_dataclass(one) and not isinstance(one, type):
        names = [*stored_fields(type(one))] if is_record(type(one)) else []
        return type(one) is type(other) and all(same(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        layout = one.dtype == other.dtype and one.shape == other.shape
        return layout and (one.tolist() == other.tolist() if one.dtype == object else one.tobytes() == other.tobytes())
    if isinstance(one, float):
        return type(one) is type(other) and np.float64(one).tobytes() == np.float64(other).tobytes()
    return type(one) is type(other) and (one == other or one is other)


def questions(model: Any) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    X, y = rows(7)
    X, y = X.iloc[:40], y[:40]
    if isinstance(model, CoxProcess):
        yield "intensity", lambda one: tuple(one.intensity(random_state=3))
        yield "expected", lambda one: tuple(one.expected_count((0.2, 0.7), n_samples=50, random_state=3))
        yield "points", lambda one: one.sample_points(2, random_state=3)
        return
    if isinstance(model, GPClassifier):
        yield "proba", lambda one: one.predict_proba(X)
        yield "predict", lambda one: one.predict(X)
        yield "density", lambda one: one.log_predictive_density(X, one.predict(X))
    else:
        target = counts(y) if model.likelihood_.discrete else y
        target = np.minimum(target, 1.0) if "Ordinal" in repr(model.likelihood_) or model.likelihood_.column else target
        yield "predict", lambda one: one.predict(X, return_std=True)
        yield "quantiles", lambda one: one.predict_quantiles(X, [0.1, 0.9])
        yield "density", lambda one: one.log_predictive_density(X, target)
        yield "joint", lambda one: one.predict_f(X, full_covariance=True)
    yield "f", lambda one: one.predict_f(X)
    yield "f of many", lambda one: one.predict_f(pd.concat([X, X, X]))
    if not hasattr(model, "estimators_"):
        yield "effects", lambda one: tuple(one.effects(X))
        yield "y", lambda one: one.sample_y(X, 3, random_state=5)
        yield "drawn f", lambda one: one.sample_f(X, 3, random_state=5)


FITTED = [name for name in MAKERS if name != "statistics"]


@pytest.mark.filterwarnings("ignore::vff.ExtrapolationWarning")
@pytest.mark.parametrize("name", FITTED)
def test_a_loaded_model_answers_with_the_same_bits(name, path):
    model = made(name)
    loaded = there_and_back(model, path)
    for what, ask in questions(model):
        assert same(ask(model), ask(loaded)), what


@pytest.mark.parametrize("name", MAKERS)
def test_a_loaded_model_has_the_same_attributes(name, path):
    model = made(name)
    loaded = there_and_back(model, path)
    assert sorted(vars(model)) == sorted(vars(loaded))
    skipped = {"points_", "samples_", "fit_", "model_", "estimators_", "posterior_", "_space"}
    for attribute, value in vars(model).items():
        if attribute not in skipped and not attribute.startswith("_"):
            assert same(value, getattr(loaded, attribute)) or value == getattr(loaded, attribute), attribute
    assert repr(model) == repr(loaded)


@pytest.mark.parametrize("name", MAKERS)
def test_a_second_round_trip_changes_no_byte_of_the_model(name, path, tmp_path):
    save(made(name), path)
    save(load(path), tmp_path / "again")
    first, second = read_file(path, ("model", "statistics")), read_file(tmp_path / "again", ("model", "statistics"))
    assert same(first.record["model"], second.record["model"])


def more() -> tuple[pd.DataFrame, np.ndarray]:
    X, y = rows(11)
    return X.iloc[4:60], y[4:60]


@pytest.mark.filterwarnings("ignore::vff.ExtrapolationWarning")
@pytest.mark.parametrize("name", ["one column", "rows beyond", "sum", "product", "poisson", "student-t", "iterative"])
def test_a_loaded_model_takes_more_rows_as_if_it_had_never_left(name, path):
    X, y = more()
    y = counts(y) if name == "poisson" else y
    one = fresh(name)
    if name != "rows beyond":
        one.domain_  # noqa: B018  settled by the first rows, so that those to come must lie inside
        low = {column: X[column].clip(*ends) for column, ends in one.domain_.items() if column != "when"}
        X = X.assign(**low, when=X["when"].clip(rows()[0]["when"].min(), rows()[0]["when"].max()))
    other = there_and_back(one, path)
    ask = [model.partial_fit(X, y).predict_f(rows(7)[0]) for model in (one, other)]
    assert same(*ask)
    assert same(one.rows_, other.rows_)


def test_a_loaded_model_merges_as_if_it_had_never_left(path):
    X, y = more()
    X.iloc[:2, 0], X["group"] = [0.0, 3.0], "x"
    second = GPRegressor(Matern32("a") + Categorical("group"), domain=(0.0, 3.0), **FEW).fit(X, y)
    first = regressor(Matern32("a") + Categorical("group"), domain=(0.0, 3.0))
    loaded, other = there_and_back(first, path), there_and_back(second, path)
    plain, after = first.merge(second), loaded.merge(other)
    assert same(plain.fit_, after.fit_)


def test_a_classifier_takes_more_rows_after_loading(path):
    X, _ = more()
    one = fresh("two classes")
    X = X.assign(a=X["a"].clip(*one.domain_["a"]))
    other = there_and_back(one, path)
    labels = np.where(X["b"] > 0, "low", "mid")
    assert same(*(model.partial_fit(X, labels).predict_proba(X) for model in (one, other)))


def test_effects_of_a_loaded_model_are_drawn(path):
    figure = vff.plot.effects(there_and_back(made("sum"), path))
    assert figure is not None
    mpl.pyplot.close("all")  # pyright: ignore[reportAttributeAccessIssue]


def test_draws_go_to_arviz_after_loading_without_the_targets(path):
    pytest.importorskip("arviz")
    model = made("chains")
    loaded = there_and_back(model, path)
    assert loaded.samples_.y is None
    assert model.samples_.y is not None
    one, other = model.to_arviz(), loaded.to_arviz()
    for name in model.samples_.values:
        assert same(model.samples_.values[name], loaded.samples_.values[name])
    assert list(one["posterior"].data_vars) == list(other["posterior"].data_vars)


def arrays_of(tree: Any) -> Iterator[np.ndarray]:
    if isinstance(tree, np.ndarray):
        yield tree
    elif isinstance(tree, dict | list):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from arrays_of(part)


@pytest.mark.parametrize("name", ["sum", "poisson", "chains", "chains of counts", "kronecker", "cox", "three classes"])
def test_no_row_is_in_the_file(name, path):
    save(made(name), path)
    X, y = rows()
    private = {*y.tolist(), *X["a"][4:].tolist(), *X["b"][4:].tolist()}
    if name == "cox":
        private = set(made(name).points_.ravel().tolist())
    record = read_file(path, ("model",)).record
    held = [array.ravel().tolist() for array in arrays_of(record)]
    assert not [value for values in held for value in values if value in private]
    assert not [value for value in numbers_of(record) if value in private - {0.0, 1.0}]


def numbers_of(tree: Any) -> Iterator[float]:
    if isinstance(tree, float):
        yield tree
    elif isinstance(tree, dict | list):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from numbers_of(part)


def test_the_file_describes_itself(path):
    model = made("sum")
    model.target_name_ = "height"
    save(model, path, units={"a": "m", "height": "cm"}, provenance={"run": 7, "parts": ("x", 1.5)})
    del model.target_name_
    found = describe(path)
    assert [column.name for column in found.columns] == ["a", "b", "when", "group", "size"]
    assert [column.kind for column in found.columns] == ["number", None, "datetime", "text", None]
    assert (found.columns[0].unit, found.columns[3].levels, found.target) == ("m", 3, "height")
    assert found.provenance == {"run": 7, "parts": ("x", 1.5)}
    assert (found.rows, found.weight, found.rows_beyond) == (N, float(N), 0)
    assert (found.vff, found.numpy) == (vff.__version__, np.__version__)
    assert found.kernel is not None
    assert vff.parse_kernel(found.kernel) == model.kernel_
    again = load(path)
    assert again.units_ == {"a": "m", "height": "cm"}
    save(again, path)
    assert (describe(path).units, describe(path).target) == (again.units_, "height")


@pytest.mark.parametrize(
    ("name", "likelihood"), [("cox", "Poisson"), ("three classes", "Bernoulli"), ("sum", "Gaussian")]
)
def test_the_likelihood_is_described(name, likelihood, path):
    save(made(name), path)
    assert describe(path).likelihood.startswith(likelihood)


def test_rows_beyond_the_domain_are_counted(path):
    save(made("rows beyond"), path)
    X, _ = rows()
    outside = int(((X["a"] < 0.5) | (X["a"] > 2.5)).sum())
    assert (describe(path).rows_beyond, describe(path).rows) == (outside, N)


def test_statistics_are_a_kind_of_their_own(path):
    save(statistics(), path)
    assert read_file(path, ("statistics",)).kind == "statistics"
    loaded = load(path)
    assert not hasattr(loaded, "fit_")
    assert same(loaded.rows_, statistics().rows_)


def test_a_generator_is_not_kept_and_the_file_says_so(path):
    model = regressor(Matern32("a"), random_state=np.random.RandomState(0))
    save(model, path)
    assert load(path).random_state is None
    assert "random_state" in describe(path).notes[-1]
    assert there_and_back(regressor(Matern32("a"), random_state=3), path).random_state == 3


def test_what_cannot_be_written_is_refused_in_a_sentence(path):
    with pytest.raises(ValueError, match="seen no rows"):
        save(GPRegressor(), path)
    with pytest.raises(TypeError, match="save takes a GPRegressor"):
        save("model", path)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="units names 'c'"):
        save(made("sum"), path, units={"c": "m"})
    custom = Custom(lambda y, f: -0.5 * (y - f) ** 2)
    model = fresh("held")
    model.likelihood = custom
    with pytest.raises(FileError, match="function of your own, as a Custom likelihood"):
        save(model, path)
    assert not path.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_a_model_does_not_take_the_place_of_a_pipe(tmp_path):
    pipe = tmp_path / "ff"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match=r"ff: a file was expected, found a folder or a device; name another path"):
        made("sum").save(pipe)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_paths_that_are_none(tmp_path):
    sentence = "the path of a file, found None; give a text or a Path"
    for act in (made("sum").save, load, describe):
        with pytest.raises(TypeError, match=sentence):
            act(None)  # pyright: ignore[reportArgumentType]
    for act in (load, describe):
        with pytest.raises(FileNotFoundError, match=r"nope\.vff: .* expected, found nothing; check the path") as caught:
            act(tmp_path / "nope.vff")
        assert caught.value.errno == errno.ENOENT


def records_in(value: Any) -> Iterator[Any]:
    """All records that a value is made of, itself first."""
    if is_record(type(value)):
        yield value
        parts: Any = [getattr(value, name) for name in stored_fields(type(value))]
    elif isinstance(value, dict):
        parts = value.values()
    else:
        parts = value if isinstance(value, tuple | list) else ()
    for part in parts:
        yield from records_in(part)


def changed(value: Any) -> Any:
    """Another value of the same type."""
    if is_record(type(value)):
        others = {name: changed(getattr(value, name)) for name in stored_fields(type(value))}
        return next((with_field(value, name, other) for name, other in others.items() if other is not None), None)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return 0.5 if value != value else type(value)(value + 1)
    if isinstance(value, str):
        return value + "'"
    if isinstance(value, np.ndarray):
        return ~value if value.dtype == bool else value + 1
    if isinstance(value, dict):
        return {key: changed(part) for key, part in value.items()} if value else None
    if isinstance(value, tuple | list):
        last = changed(value[-1]) if value else None
        return None if last is None else type(value)([*value[:-1], last])
    return frozenset({"another"}) if isinstance(value, frozenset) else None


def with_field(record: Any, name: str, value: Any) -> Any:
    """Whatever the record would say to it."""
    if isinstance(record, tuple):
        return record._replace(**{name: value})  # pyright: ignore[reportAttributeAccessIssue]
    copy = object.__new__(type(record))
    for own in dataclasses.fields(record):
        object.__setattr__(copy, own.name, getattr(record, own.name))
    object.__setattr__(copy, name, value)
    return copy


def test_every_field_of_every_record_is_written():
    seen: set[tuple[str, str]] = set()
    for name in MAKERS:
        for record in records_in(_saved(made(name))):
            kind = type(record)
            for own in stored_fields(kind):
                value = getattr(record, own)
                other = changed(value)
                if (kind.__name__, own) in seen or other is None:
                    continue
                hint = get_type_hints(kind, localns=dict(_CODEC.names))[own]
                assert not same(_CODEC.encode(value, hint), _CODEC.encode(other, hint)), (kind, own)
                assert own in next(iter(_CODEC.encode(record, kind).values()))
                seen.add((kind.__name__, own))
    assert {("Moments", own) for own in stored_fields(type(made("sum").rows_.moments))} <= seen
    assert {("Saved", own) for own in stored_fields(Saved)} <= seen


def test_only_memories_are_left_out():
    """Fields that do not compare: a new one must be something that is worked out again."""
    left = set()
    for module in {inspect.getmodule(type(record)) for record in records_in(made("sum").fit_)}:
        for _, kind in inspect.getmembers(module, dataclasses.is_dataclass):
            left |= {f"{kind.__name__}.{own.name}" for own in dataclasses.fields(kind) if not own.compare}
    assert left <= {"DistinctValues.remembered", "ColumnRows.remembered"}


def test_a_file_of_another_kind_is_refused(path):
    save(made("held"), path)
    with pytest.raises(FileError, match="of kind statistics was expected, found 'model'"):
        read_file(path, ("statistics",))
    record = read_file(path, ("model",)).record
    write_file(path, "statistics", record)
    with pytest.raises(FileError, match=r"model.vff: .*kind 'statistics'"):
        load(path)
    write_file(path, "model", {"about": record["about"]})
    with pytest.raises(FileError, match="about and model"):
        load(path)


@pytest.mark.parametrize("likelihood", [Gaussian(0.1), "gaussian", Poisson(exposure=2)])
def test_likelihoods_come_back_as_they_were_given(likelihood, path):
    model = fresh("held")
    model.likelihood = likelihood
    assert there_and_back(model, path).likelihood == likelihood
