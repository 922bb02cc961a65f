"""Finding, checking and downloading: every way it can go wrong has a sentence, and nothing is half-written."""

import dataclasses
import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from vff.datasets import files
from vff.datasets.files import NumberFile, cache_folder, load

NUMBERS = np.array([[1.0, 0.1], [2.0, -3.5], [0.25, 1e-300]])
TEXT = "# a comment\n1, 0.1\n2.0,-3.5\n0.25,1e-300\n"
FILE = NumberFile("toy.csv", "some/folder/toy_original", (3, 2), hashlib.sha256(NUMBERS.tobytes()).hexdigest())


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no VFF_DATA, and an authors' repository that is a folder."""
    monkeypatch.delenv("VFF_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(files, "BASE_URL", (tmp_path / "remote").as_uri())
    return tmp_path


def publish(root: Path, text: str = TEXT) -> None:
    target = root / "remote" / FILE.path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


@pytest.mark.parametrize("name", FILE.aliases)
def test_the_named_folder_comes_first(alone: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    folder = alone / "data"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text(TEXT)
    monkeypatch.setenv("VFF_DATA", str(folder))
    np.testing.assert_array_equal(load(FILE), NUMBERS)
    assert not cache_folder().exists()


def test_a_download_is_kept_and_used_again(alone: Path) -> None:
    publish(alone)
    np.testing.assert_array_equal(load(FILE), NUMBERS)
    assert [path.name for path in cache_folder().iterdir()] == ["toy.csv"]
    (alone / "remote" / FILE.path).unlink()
    np.testing.assert_array_equal(load(FILE), NUMBERS)


@pytest.fixture
def served(alone: Path) -> Iterator[str]:
    """The folder ``remote`` over HTTP on this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    (alone / "remote").mkdir(exist_ok=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(alone / "remote")))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_over_http(alone: Path, served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BASE_URL", served)
    publish(alone)
    np.testing.assert_array_equal(load(FILE), NUMBERS)


def test_a_missing_page_says_what_to_do(served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BASE_URL", served)
    with pytest.raises(FileNotFoundError, match=r"404.*copy some/folder/toy_original.*set VFF_DATA to that folder"):
        load(FILE)


def test_neither_folder_nor_network() -> None:
    with pytest.raises(FileNotFoundError, match=r"toy\.csv is in neither .*; copy .* and set VFF_DATA"):
        load(FILE)


def test_a_folder_that_is_not_there(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VFF_DATA", str(alone / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"VFF_DATA names .*nowhere.*; correct it"):
        load(FILE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT.replace("0.1", "0.2"), r"SHA-256 checksum .* was expected"),
        (TEXT[:-14], r"should hold 3 x 2 numbers and holds 2 x 2"),
        ("", r"should hold 3 x 2 numbers"),
        ("<html>sign in</html>", r"should hold comma-separated numbers and does not"),
    ],
    ids=["changed", "cut", "empty", "another page"],
)
class TestBadContent:
    def test_downloaded(self, alone: Path, text: str, message: str) -> None:
        publish(alone, text)
        with pytest.raises(ValueError, match=message + r".*; nothing of it was kept"):
            load(FILE)
        assert not cache_folder().exists()

    def test_in_the_cache(self, text: str, message: str) -> None:
        cache_folder().mkdir(parents=True)
        (cache_folder() / FILE.name).write_text(text)
        with pytest.raises(ValueError, match=message + r".*; delete it to download it again"):
            load(FILE)


def test_binary_rubbish(alone: Path) -> None:
    publish(alone)
    (alone / "remote" / FILE.path).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="comma-separated numbers"):
        load(FILE)


def test_an_interrupted_write_leaves_nothing(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(alone)

    def fail(draft: Path, target: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    np.testing.assert_array_equal(load(FILE), NUMBERS)
    assert list(cache_folder().iterdir()) == []


def test_the_checksum_is_of_the_numbers(alone: Path) -> None:
    publish(alone, "\r\n".join(f"{a:.18e},{b:.18e}" for a, b in NUMBERS))
    np.testing.assert_array_equal(load(FILE), NUMBERS)
    swapped = dataclasses.replace(FILE, shape=(2, 3))
    with pytest.raises(ValueError, match="2 x 3"):
        load(swapped)
