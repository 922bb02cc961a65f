"""Numbers of saved models and statistics that somebody changed, with the checksum made right again.

A mutated file is refused when it is loaded, in one sentence, or what it holds answers with numbers. ``complaint`` says
what a file did instead. Plain functions of a ``numpy.random.Generator``, so that a seed says all.
"""

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vff import Categorical, GPClassifier, GPRegressor, Matern12, Matern32, load
from vff.storage import FileError, read_file, write_file

KINDS = ("model", "statistics")
Place = tuple[Any, Any]
"""A container of the tree, and the key or the index of a number in it."""


def numbers(tree: Any) -> Iterator[Place]:
    """Where the numbers of a tree are; an array is one place, in its container."""
    if isinstance(tree, dict | list):
        for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
            value = tree[key]
            if isinstance(value, np.ndarray) or (isinstance(value, int | float) and not isinstance(value, bool)):
                yield tree, key
            else:
                yield from numbers(value)


def _other(value: float, rng: np.random.Generator) -> float:
    """A number in the place of another."""
    others = [0.0, -value, 1e300, -1e300, np.nan, np.inf, -np.inf, 1e-300, -1.0, 1.0, value * 1e9, value * 1e-9]
    others += [value * (1.0 + 0.5 * rng.standard_normal()), value + 800.0, value - 800.0, 1e12, 1e5, 50.0]
    return float(others[rng.integers(len(others))])


def _bent_number(tree: Any, key: Any, rng: np.random.Generator) -> None:
    value = tree[key]
    if isinstance(value, int) and rng.uniform() < 0.7:  # sizes
        tree[key] = int(rng.choice([0, -1, 1, value + 1, value - 1, 2 * value, 10**6, 2**40]))
    else:
        tree[key] = _other(float(value), rng)


def _bent_array(tree: Any, key: Any, rng: np.random.Generator) -> None:
    array = np.array(tree[key])
    ways = ["entry", "entry", "entries", "all", "sign", "scale", "swap", "reverse", "turn", "shorter"]
    way = ways[rng.integers(len(ways))] if array.size else "shorter"
    if array.dtype != np.float64 and way in ("entry", "entries", "all", "scale"):
        way = "reverse"
    flat = array.reshape(-1)
    if way in ("entry", "entries"):
        for place in rng.integers(flat.size, size=1 if way == "entry" else 5):
            flat[place] = _other(float(flat[place]), rng)
    elif way == "all":
        flat[:] = _other(1.0, rng)
    elif way == "sign":
        array = -array if array.dtype != bool else ~array
    elif way == "scale":
        with np.errstate(over="ignore"):
            array = array * rng.choice([1e3, 1e-3, 1e9, 1e200])
    elif way == "swap":
        one, other = rng.integers(flat.size, size=2)
        flat[[one, other]] = flat[[other, one]]
    elif way == "reverse":
        array = array[::-1].copy()
    elif way == "turn":
        array = array.T.copy()
    else:
        array = array[: len(array) // 2].copy() if array.ndim else array
    tree[key] = array


def mutated(record: Any, rng: np.random.Generator) -> tuple[Any, str]:
    """A record with one to three of its numbers changed, and which."""
    record, said = copy.deepcopy(record), []
    paths = named(record["model"])
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        found = list(numbers(record["model"]))
        tree, key = found[rng.integers(len(found))]
        (_bent_array if isinstance(tree[key], np.ndarray) else _bent_number)(tree, key, rng)
        said.append(f"{paths.get((id(tree), key), key)} = {tree[key]!r:.60}")
    return record, "; ".join(" ".join(text.split()) for text in said)


def named(tree: Any, path: str = "") -> dict[tuple[int, Any], str]:
    """What every place of a tree is called."""
    names: dict[tuple[int, Any], str] = {}
    if isinstance(tree, dict | list):
        for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
            names[id(tree), key] = f"{path}.{key}"
            names |= named(tree[key], f"{path}.{key}")
    return names


def answers(model: Any, X: Any) -> dict[str, np.ndarray]:
    """What a model says at some rows; statistics are learnt from first."""
    if not hasattr(model, "fit_") and not hasattr(model, "estimators_"):
        model.learn()
    if isinstance(model, GPClassifier):
        return {"probabilities": model.predict_proba(X)}
    mean, sd = model.predict(X, return_std=True)
    f, variance = model.predict_f(X)
    return {
        "mean": mean,
        "sd": sd,
        "f": f,
        "variance of f": variance,
        "quantiles": model.predict_quantiles(X, (0.1, 0.9)),
        "effects": model.effects(X).std,
    }


def complaint(path: Path, X: Any) -> str | None:
    """What is wrong with how a mutated file was taken; None when it was refused, or answered with numbers."""
    try:
        model = load(path)
    except FileError as error:
        said = str(error)
        return None if len(said.splitlines()) == 1 and "; " in said else f"refused without a sentence: {said}"
    except Exception as error:
        return f"load raised {type(error).__name__}: {error}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = answers(model, X)
    except Exception as error:
        return f"asked, it raised {type(error).__name__}: {error}"
    wrong = [name for name, values in found.items() if not np.isfinite(values).all()]
    wrong += [f"negative {name}" for name in ("sd", "variance of f") if name in found and (found[name] < 0.0).any()]
    return f"it answered with no numbers: {', '.join(wrong)}" if wrong else None


def complaints(
    sources: dict[str, tuple[Path, Any]], seeds: Iterable[int], path: Path
) -> Iterator[tuple[int, str, str]]:
    """(seed, what was changed, what was wrong) of every mutation that was taken badly.

    ``sources`` are files with the rows to ask about, by name; ``path`` is where mutated ones are written.
    """
    contents = {name: read_file(own, KINDS) for name, (own, _) in sources.items()}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        name = list(sources)[rng.integers(len(sources))]
        record, said = mutated(contents[name].record, rng)
        write_file(path, contents[name].kind, record)
        wrong = complaint(path, sources[name][1])
        if wrong is not None:
            yield seed, f"{name}: {said}", wrong


def _models() -> dict[str, Callable[[], Any]]:
    """Small models of many kinds."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=40), rng.uniform(size=40), np.arange(40) % 3])
    f = np.sin(5.0 * X[:, 0]) + X[:, 1]
    y, counts = f + 0.1 * rng.standard_normal(40), rng.poisson(np.exp(f + 1.0)).astype(float)
    one, levels, product = Matern32(0), Categorical(2), Matern32(0) * Matern12(1)
    few: dict[str, Any] = {"frequencies": 3}
    settled: dict[str, Any] = {"frequencies": 3, "domain": (0.0, 1.0)}
    split: dict[str, Any] = {"likelihood": "poisson", "covariance": "two kroneckers", "frequencies": 2}
    return {
        "gaussian": lambda: GPRegressor(one + levels, **few).fit(X, y),
        "poisson": lambda: GPRegressor(one, likelihood="poisson", hyperparameters="maximise", **few).fit(X, counts),
        "poisson sum": lambda: GPRegressor(one + Matern12(1), likelihood="poisson", **few).fit(X, counts),
        "gamma": lambda: GPRegressor(product, likelihood="gamma", **few).fit(X, np.exp(y)),
        "student-t": lambda: GPRegressor(one, likelihood="student-t", **few).fit(X, y),
        "two kroneckers": lambda: GPRegressor(product, **split).fit(X, counts),
        "classifier": lambda: GPClassifier(one, **few).fit(X, y > y.mean()),
        "statistics": lambda: GPRegressor(one + levels, **settled).collect(X, y),
        "statistics of a product": lambda: GPRegressor(product, **settled).collect(X, y),
        "statistics beyond": lambda: GPRegressor(one, frequencies=3, domain=(0.1, 0.8)).collect(X[:, :1], y),
    }


def written(folder: Path, names: Sequence[str] | None = None) -> dict[str, tuple[Path, Any]]:
    """Files of these models, or of all, with rows to ask about."""
    ask = np.column_stack([np.linspace(-0.3, 1.3, 9), np.linspace(0.0, 1.0, 9), np.arange(9) % 3])
    models, files = _models(), {}
    for number, name in enumerate(models if names is None else names):
        model, path = models[name](), folder / f"{number}.vff"
        model.save(path)
        files[name] = path, ask[:, : model.n_features_in_]
    return files
