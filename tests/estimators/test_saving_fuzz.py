"""Files that were bent: each loads or is refused in a sentence, quickly, and with no more memory than its size allows.

``VFF_FUZZ=5000`` bends as many; without it some hundreds are. Half of the files are bent as bytes. The others are bent
in their header, with the checksum made right again, so that everything behind the checksum is reached. Last, numbers
that a file may hold are changed to others: it is refused, or answers with numbers (``tests/fuzz/mutated_files.py``).
"""

import copy
import hashlib
import json
import os
import struct
import sys
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from vff import parse_kernel
from vff.estimators.saving import describe, load
from vff.storage import FileError, read_file, write_file

sys.path.insert(0, str(Path(__file__).parent.parent / "fuzz"))
import mutated_files  # pyright: ignore[reportMissingImports]

DATA = Path(__file__).parent.parent / "data"
FILES = [DATA / "model_1.vff", DATA / "statistics_1.vff"]
COUNT = int(os.environ.get("VFF_FUZZ", "400"))
ROOM = 4 * 2**20  # bytes beside the file
START = struct.Struct("<8sIQ")
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 2**63, -(2**63), 10**30, 0.0, -0.0, 1e-308, 1e308, 0.5),
    *({"$float": "7ff8000000000000"}, {"$float": "fff0000000000000"}, {"$array": 0}, {"$array": 10**9}),
    *("", "x", "model", "Matern32(0)", "float64", "object", [], {}, [[]], {"float64": 1.0}, {"datetime64[s]": 1}),
    *({"Interval": {"a": 1.0, "b": 0.0}}, {"ColumnBasis": {"M": 10**9, "q": 10**9}}, {"tuple": [1, 2]}),
]


def split(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Header, and arrays from the first multiple of 64 on."""
    length = START.unpack(data[: START.size])[2]
    end = START.size + length
    return json.loads(data[START.size : end]), data[end + -end % 64 : -32]


def joined(header: Any, rest: bytes) -> bytes:
    text = json.dumps(header).encode()
    body = START.pack(b"\x89VFF\r\n\x1a\n", 1, len(text)) + text
    body += bytes(-len(body) % 64) + rest
    return body + hashlib.sha256(body).digest()


def places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key in it."""
    if isinstance(tree, dict | list):
        for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
            yield tree, key
            yield from places(tree[key])


def bend_value(header: Any, random: Random) -> None:
    tree, key = random.choice(list(places(header)))
    tree[key] = copy.deepcopy(random.choice(VALUES))


def bend_number(header: Any, random: Random) -> None:
    found = [(tree, key) for tree, key in places(header) if type(tree[key]) in (int, float)]
    tree, key = random.choice(found)
    tree[key] = random.choice([tree[key] + 1, tree[key] - 1, -tree[key], tree[key] * 1000, float(tree[key])])


def bend_name(header: Any, random: Random) -> None:
    tree, key = random.choice([(tree, key) for tree, key in places(header) if isinstance(tree, dict)])
    other = random.choice([key + "x", "a", "M", "Sum", "GPClassifier", "CoxProcess", "LevelBasis", "Categorical"])
    tree[other] = tree.pop(key)


def bend_away(header: Any, random: Random) -> None:
    tree, key = random.choice(list(places(header)))
    del tree[key]


def bend_twice(header: Any, random: Random) -> None:
    tree, key = random.choice([(tree, key) for tree, key in places(header) if isinstance(tree, list)])
    tree.insert(key, copy.deepcopy(tree[key]))


def bend_exchange(header: Any, random: Random) -> None:
    (one, first), (other, second) = random.sample(list(places(header)), 2)
    one[first], other[second] = copy.deepcopy(other[second]), copy.deepcopy(one[first])


def bend_shape(header: Any, random: Random) -> None:
    layout = random.choice(header["arrays"])
    what = random.choice(["shape", "order", "dtype", "turn", "flat"])
    if what == "turn":
        layout["shape"] = layout["shape"][::-1]
    elif what == "flat":
        layout["shape"], layout["order"] = [int(np.prod(layout["shape"]))], [0]
    elif what == "dtype":
        layout["dtype"] = random.choice(["float64", "int64", "bool", "uint8", "float32"])
    elif layout[what]:
        place = random.randrange(len(layout[what]))
        layout[what][place] = random.choice([0, 1, -1, 2**20, 2**40, 2**62, layout[what][place] * 2, 1.0, "1"])


BENDS: list[Callable[[Any, Random], None]] = [
    bend_value, bend_value, bend_number, bend_number, bend_name, bend_away, bend_twice, bend_exchange, bend_shape,
]  # fmt: skip


def bent_header(data: bytes, random: Random) -> bytes:
    header, rest = split(data)
    for _ in range(random.choice([1, 1, 1, 2, 5])):
        with suppress(LookupError, TypeError, ValueError):  # what was bent before may leave nothing to bend
            random.choice(BENDS)(header, random)
    return joined(header, rest)


def bent_arrays(data: bytes, random: Random) -> bytes:
    """Numbers of the arrays that cannot be, with a checksum that says nothing against them."""
    header, rest = split(data)
    raw = bytearray(rest)
    for _ in range(random.choice([1, 3])):
        place = 8 * random.randrange(len(raw) // 8)
        raw[place : place + 8] = struct.pack("<d", random.choice([np.nan, np.inf, -1.0, 1e300, 0.0, -1e-300]))
    return joined(header, bytes(raw))


def bent_bytes(data: bytes, random: Random) -> bytes:
    raw, (low, high) = bytearray(data), sorted(random.sample(range(len(data)), 2))
    what = random.choice(["flip", "cut", "insert", "swap", "remove", "start"])
    if what == "flip":
        for _ in range(random.choice([1, 1, 8])):
            raw[random.randrange(len(raw))] ^= 1 << random.randrange(8)
    elif what == "cut":
        del raw[low:]
    elif what == "insert":
        raw[low:low] = random.randbytes(random.choice([1, 8, 64, 1000]))
    elif what == "swap":
        width = min(high - low, len(raw) - high, random.choice([1, 8, 64, 4096]))
        raw[low : low + width], raw[high : high + width] = raw[high : high + width], raw[low : low + width]
    elif what == "remove":
        del raw[low:high]
    else:
        raw[random.randrange(START.size)] = random.randrange(256)
    return bytes(raw)


def bent(number: int) -> tuple[str, bytes]:
    random = Random(number)
    path = random.choice(FILES)
    way = [bent_bytes, bent_header, bent_header, bent_header, bent_arrays][number % 5]
    return f"{number}: {way.__name__} of {path.name}", way(path.read_bytes(), random)


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """What is imported and remembered once is no part of a file's memory."""
    for path in FILES:
        load(path)
        describe(path)
    parse_kernel("Matern32(0)")


def refused(path: Path, ask: Callable[[Path], Any]) -> tuple[Any, FileError | None, int]:
    """What came of it, and the bytes that it took at its peak."""
    tracemalloc.start()
    try:
        return ask(path), None, tracemalloc.get_traced_memory()[1]
    except FileError as error:
        return None, error, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def questions() -> np.ndarray:
    return np.column_stack([np.linspace(0.05, 0.95, 9), np.arange(9) % 3])


def test_bent_files_load_or_are_refused(tmp_path):
    path, loaded, answered = tmp_path / "bent.vff", 0, 0
    for number in range(COUNT):
        name, data = bent(number)
        path.write_bytes(data)
        model, error, peak = refused(path, load)
        assert peak <= 2 * len(data) + ROOM, f"{name} took {peak} bytes for {len(data)}"
        if error is not None:
            said = str(error)
            assert said.startswith(f"{path}: ")
            assert len(said.splitlines()) == 1
            assert len(said) < 600 + len(str(path)), said
        loaded += model is not None
        if hasattr(model, "fit_"):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                answered += ask(model, name)
    print(f"{COUNT} files: {loaded} loaded, {COUNT - loaded} refused, {answered} answered")
    assert 0 < loaded < COUNT


def ask(model: Any, name: str) -> bool:
    """A model that was loaded predicts, or says in a sentence that the table is another."""
    try:
        mean, variance = model.predict_f(questions())
    except ValueError as error:
        assert "X" in str(error), name  # noqa: PT017
        return False
    assert mean.shape == variance.shape == (9,), name
    return True


@pytest.mark.parametrize("number", range(60))
def test_bent_files_describe_themselves_or_are_refused(number, tmp_path):
    path = tmp_path / "bent.vff"
    path.write_bytes(bent(10**6 + number)[1])
    refused(path, describe)


def test_files_of_version_1_load_for_ever():
    model, other = load(FILES[0]), load(FILES[1])
    expected = np.loadtxt(DATA / "model_1_answers.csv", delimiter=",")
    np.testing.assert_allclose(np.column_stack(model.predict_f(questions())), expected, rtol=1e-9, atol=1e-12)
    assert describe(FILES[0]).columns[0].unit == "m"
    assert describe(FILES[0]).target == "height"
    assert other.rows_.moments.n == 60
    assert sum(path.stat().st_size for path in FILES) <= 60_000


MUTATED = ("gaussian", "poisson", "poisson sum", "two kroneckers", "statistics", "statistics beyond")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Any]]:
    return mutated_files.written(tmp_path_factory.mktemp("mutated"), MUTATED)


def test_mutated_numbers_are_refused_or_answer_with_numbers(sources, tmp_path):
    found = list(mutated_files.complaints(sources, range(COUNT // 2), tmp_path / "mutated.vff"))
    assert not found, found[:3]


def set_to(*values: Any) -> Callable[[Any, str], None]:
    """Every place of this name, in turn, holds these values."""

    def change(tree: Any, name: str) -> None:
        found = [(own, key) for own, key in places(tree) if key == name]
        assert found
        for (own, key), value in zip(found, values * len(found), strict=False):
            own[key] = value(own[key]) if callable(value) else value

    return change


@pytest.mark.parametrize(
    ("name", "field", "change"),
    [
        ("poisson", "variance", set_to(1e12)),  # exp of half of it is the mean of y, away from the data
        ("poisson", "mean", set_to(lambda value: value + 800.0 if isinstance(value, float) else value)),
        ("poisson", "taken", set_to(lambda blocks: [-1e8 * own for own in blocks])),
        ("poisson", "taken", set_to(lambda blocks: [own - 30.0 for own in blocks])),  # nor is one that no prior has
        ("two kroneckers", "roots", set_to(lambda terms: [[[1e3 * L for L in one] for one in own] for own in terms])),
        ("statistics", "grams", set_to(lambda grams: [grams[0], -grams[1]])),
        ("statistics", "grams", set_to(lambda grams: [grams[0][::-1].copy(), grams[1]])),
        ("statistics", "projects", set_to(lambda projects: [-1e200 + projects[0], projects[1]])),
        ("statistics", "grams", set_to(lambda grams: [grams[0], 1e201 + grams[1]])),
        ("statistics", "offset", set_to(-1e300)),
        ("statistics", "weight", set_to(0.0)),
        ("statistics", "harmonics", set_to([[6], [None]])),
        ("statistics beyond", "w", set_to(lambda w: 0.0 * w)),
    ],
)
def test_numbers_that_the_arithmetic_cannot_take_are_refused(name, field, change, sources, tmp_path):
    source, X = sources[name]
    content = read_file(source, mutated_files.KINDS)
    change(content.record["model"], field)
    write_file(tmp_path / "mutated.vff", content.kind, content.record)
    assert mutated_files.complaint(tmp_path / "mutated.vff", X) is None
    if field != "w":  # weights of zero beyond the domain are no rows
        with pytest.raises(FileError, match=r"mutated\.vff: .* was expected, .*; "):
            load(tmp_path / "mutated.vff")
