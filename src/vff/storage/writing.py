"""Files that appear when all of them is on the disk, and sentences for those that cannot."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vff.words import LONGEST_PATH, shortened

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


def temporary_beside(target: Path) -> Path:
    """A name in the same folder for what is to become a file."""
    return target.with_name(f".{target.name}.{secrets.token_hex(6)}")


def sync_folder(folder: Path) -> None:
    """So that the new name outlives a power cut; Windows does this by itself."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def is_full(error: OSError) -> bool:
    """Whether there was no room for a file."""
    return error.errno in _FULL


def unwritable(path: str | os.PathLike[str], error: OSError) -> OSError:
    """The same error with the path that the caller gave, since names on the way to it are nobody's, and with advice."""
    why, folder = error.strerror or str(error), Path(os.path.realpath(path)).parent
    if os.path.isdir(path):
        expected, advice = "the name of a file was expected, found a folder", "name a file in it"
    elif not os.path.isdir(folder):
        expected = f"a folder to write to was expected, found none at {shortened(folder, LONGEST_PATH)}"
        advice = "make it, or name another"
    elif is_full(error):
        expected, advice = f"room for a file was expected, found none ({why})", "make room, or name another place"
    elif error.errno in _FORBIDDEN:
        expected = f"leave to write in {shortened(folder, LONGEST_PATH)} was expected, found none ({why})"
        advice = "change its permissions, or name another place"
    else:
        expected, advice = f"a file that can be written was expected, found none ({why})", "name another"
    renamed = type(error)(f"{shortened(path, LONGEST_PATH)}: {expected}; {advice}")
    renamed.errno = error.errno
    return renamed


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Refuse what no file may take the place of: a pipe or a device is not put aside as an old file is.

    A folder is refused when it is written to.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # whoever writes will say so
        return
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OSError(
            f"{shortened(path, LONGEST_PATH)}: a file was expected, found a folder or a device; name another path"
        )


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that cannot be written to, before anybody works for what is to be written there."""
    check_replaceable(path)
    trial = temporary_beside(Path(os.path.realpath(path)))
    try:
        with open(trial, "xb"):
            pass
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with suppress(OSError):
            trial.unlink(missing_ok=True)


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A name to write to, which becomes ``path`` at the end, or nothing when something fails."""
    draft = path.with_name(f".{path.stem}.{secrets.token_hex(6)}.part{path.suffix}")
    try:
        yield draft
        os.replace(draft, path)
    except OSError as error:
        if is_full(error) or draft.name in str(error):  # and not one of the files that are read meanwhile
            raise unwritable(path, error) from error
        raise
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
