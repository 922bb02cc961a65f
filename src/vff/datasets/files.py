"""What every loader returns; and small files of numbers, found, checked and downloaded.

The checksum is taken of the numbers, as little-endian float64 in row order, and not of the text: line ends, comments
and the number of printed digits do not matter, and every number does.
"""

import hashlib
import os
import warnings
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

import numpy as np

from vff.storage import written_whole

VARIABLE = "VFF_DATA"
REPOSITORY = "https://github.com/jameshensman/VFF"
BASE_URL = "https://raw.githubusercontent.com/jameshensman/VFF/master"
_TIMEOUT = 30.0  # seconds
_LARGEST = 2**22  # bytes; the files have some 20 kB


@dataclass(frozen=True)
class Dataset:
    """A table, its target, and what a reader should know about them.

    Attributes
    ----------
    X : array (N, D)
        Inputs.
    y : array (N,)
        Target.
    names : tuple of str
        Of the columns of X, with their units.
    target : str
        Name of y, with its unit.
    description : str
        A few sentences on what was measured.
    source : str
        Who collected the data, and where they can be had.
    licence : str
        On what terms.
    dropped : int
        Rows left out because a value was missing.

    Examples
    --------
    >>> vff.datasets.load_coal()
    Dataset(191 rows; disasters against year; 0 incomplete rows left out)
    """

    X: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]
    target: str
    description: str
    source: str
    licence: str
    dropped: int = 0

    def __repr__(self) -> str:
        columns = ", ".join(self.names)
        return f"Dataset({len(self.y)} rows; {self.target} against {columns}; {self.dropped} incomplete rows left out)"


@dataclass(frozen=True)
class NumberFile:
    """A comma-separated file of numbers that is known by its content."""

    name: str
    """Its name in a data folder."""
    path: str
    """Its path in the authors' repository."""
    shape: tuple[int, int]
    sha256: str
    """Of the numbers as little-endian float64."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Where it may stand in a folder: under its name here, under the authors', or in a copy of their repository."""
        return self.name, Path(self.path).name, self.path


def load(file: NumberFile) -> np.ndarray:
    """The numbers of a file, (N, D), from the folder VFF_DATA, the cache, or the authors' repository."""
    for folder in folders():
        for alias in file.aliases:
            if (folder / alias).is_file():
                remedy = "delete it to download it again, or put an unchanged copy in its place"
                return _checked(file, (folder / alias).read_bytes(), str(folder / alias), remedy)
    return _download(file)


def cache_folder() -> Path:
    """Where downloads are kept."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "vff"


def folders() -> list[Path]:
    """Where files are looked for: the folder named by VFF_DATA, if it is, then the cache."""
    named = os.environ.get(VARIABLE)
    if not named:
        return [cache_folder()]
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{VARIABLE} names {named!r}, where a folder was expected and none was found; correct it, or unset it to "
            "use the download"
        )
    return [folder, cache_folder()]


def _checked(file: NumberFile, content: bytes, where: str, remedy: str) -> np.ndarray:
    """The numbers of ``content``, or a sentence on what is wrong with it and how to mend it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an empty file; its shape is refused below
            numbers = np.loadtxt(content.decode("utf-8").splitlines(), delimiter=",", ndmin=2)
    except ValueError as error:
        raise ValueError(f"{where} should hold comma-separated numbers and does not ({error}); {remedy}") from None
    if numbers.shape != file.shape:
        raise ValueError(f"{where} should hold {_size(file.shape)} numbers and holds {_size(numbers.shape)}; {remedy}")
    found = hashlib.sha256(np.ascontiguousarray(numbers, "<f8").tobytes()).hexdigest()
    if found != file.sha256:
        raise ValueError(
            f"the numbers in {where} have the SHA-256 checksum {found} where {file.sha256} was expected: they are not "
            f"the data set this loader knows; {remedy}"
        )
    return numbers


def _size(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _download(file: NumberFile) -> np.ndarray:
    url = f"{BASE_URL}/{file.path}"
    by_hand = f"copy {file.path} from {REPOSITORY} into a folder and set {VARIABLE} to that folder"
    try:
        with urlopen(url, timeout=_TIMEOUT) as response:
            content = response.read(_LARGEST)
    except (OSError, HTTPException) as error:  # URLError is an OSError
        raise FileNotFoundError(
            f"{file.name} is in neither the folder {VARIABLE} nor the cache {cache_folder()}, and {url} could not be "
            f"read ({error}); {by_hand}"
        ) from error
    numbers = _checked(file, content, url, f"nothing of it was kept; {by_hand}")
    _keep(content, cache_folder() / file.name)
    return numbers


def _keep(content: bytes, target: Path) -> None:
    """Write a checked file whole or not at all; a cache that cannot be written is no reason to fail."""
    with suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(target) as draft:
            draft.write_bytes(content)
