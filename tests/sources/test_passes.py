"""A pass that is disturbed: bad files left out whole, states that are kept, the same bits after any interruption."""

import errno
import gzip
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import vff
from vff import GPRegressor, Matern32
from vff.data import FaultyPartWarning, SourceError
from vff.data import arrow as arrow_module
from vff.data import checkpoint as checkpoint_module
from vff.storage import FileError

ROWS, CHUNK = 400, 100
KERNEL = Matern32("x", variance=1.0, lengthscale=0.3) + Matern32("k", variance=1.0, lengthscale=4.0)
DOMAINS: list[Any] = ["auto", {"x": (0.0, 1.0), "k": (0.0, 9.0)}]
BOTH = pytest.mark.parametrize("domain", DOMAINS, ids=["two passes", "one pass"])


def table(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    x, k = rng.uniform(size=ROWS), rng.integers(0, 10, ROWS)
    return pa.table({"x": x, "k": k, "y": np.sin(6.0 * x) + 0.1 * k + 0.1 * rng.normal(size=ROWS)})


def write(path: Path, seed: int) -> Path:
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table(seed), path, row_group_size=50, write_page_checksum=True)
    elif path.suffix == ".gz":
        with gzip.open(path, "wb") as file:
            pyarrow.csv.write_csv(table(seed), file)
    else:
        pyarrow.csv.write_csv(table(seed), path)
    return path


@pytest.fixture(autouse=True)
def little_at_a_time(monkeypatch) -> None:
    """So that the first chunks of a small file are there before its damage is seen."""
    monkeypatch.setattr(arrow_module, "_BATCH_ROWS", 50)
    monkeypatch.setattr(arrow_module, "_BLOCK_BYTES", 4096)
    monkeypatch.setattr(arrow_module, "_BUFFER_BYTES", 1024)


@pytest.fixture
def folder(tmp_path) -> Path:
    """Three files."""
    (tmp_path / "data").mkdir()
    for number in range(3):
        write(tmp_path / "data" / f"{number}.parquet", number)
    return tmp_path / "data"


@pytest.fixture
def always(monkeypatch) -> None:
    """A state on the disk after every chunk."""
    monkeypatch.setattr(checkpoint_module, "_INTERVAL", -1.0)


def model(domain: Any = "auto", **options: Any) -> GPRegressor:
    return GPRegressor(KERNEL, frequencies=5, optimizer=None, noise_variance=0.01, domain=domain, **options)


def fit(data: Any, domain: Any = "auto", **handling: Any) -> GPRegressor:
    return model(domain).fit(vff.scan(data, chunk_rows=CHUNK, **handling), "y")


def bits(found: GPRegressor) -> list[bytes]:
    asked = table(99).select(["x", "k"])
    numbers = [np.array(found.elbo_), *found.predict(asked, return_std=True), *found.rows_.moments.projects]
    return [array.tobytes() for array in (*numbers, *found.rows_.moments.grams)]


def damage_pages(path: Path) -> None:
    """The head and the foot are whole, and so are the first row groups."""
    content = bytearray(path.read_bytes())
    middle = len(content) * 6 // 10
    content[middle : middle + 200] = bytes(200)
    path.write_bytes(content)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 6 // 10])


def other_columns(path: Path) -> None:
    pyarrow.parquet.write_table(table(5).rename_columns(["x", "q", "y"]), path)


DAMAGES = {"damaged pages": damage_pages, "cut short": cut_short, "other columns": other_columns}


@BOTH
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("damage", [name for name in DAMAGES if name != "other columns"])
def test_a_bad_file_is_left_out_whole(damage, place, domain, folder) -> None:
    DAMAGES[damage](folder / f"{place}.parquet")
    with pytest.warns(FaultyPartWarning, match=rf"left out: .*{place}\.parquet"):
        found = fit(str(folder), domain, faulty="skip")
    (folder / f"{place}.parquet").unlink()
    assert bits(found) == bits(fit(str(folder), domain))


@BOTH
def test_a_file_with_other_columns_is_left_out(domain, folder) -> None:
    other_columns(folder / "1.parquet")
    with pytest.warns(FaultyPartWarning, match=r"left out: expected column 'k' in every file, found none .*1\.parquet"):
        found = fit(str(folder), domain, faulty="skip")
    (folder / "1.parquet").unlink()
    assert bits(found) == bits(fit(str(folder), domain))


@BOTH
@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
def test_a_packed_file_that_is_cut_is_left_out(share, domain, tmp_path) -> None:
    for number in range(3):
        write(tmp_path / f"{number}.csv.gz", number)
    bad = tmp_path / "1.csv.gz"
    bad.write_bytes(bad.read_bytes()[: int(bad.stat().st_size * share)])
    with pytest.warns(FaultyPartWarning, match=r"left out: .*1\.csv\.gz"):
        found = fit(str(tmp_path / "*.gz"), domain, faulty="skip")
    bad.unlink()
    assert bits(found) == bits(fit(str(tmp_path / "*.gz"), domain))


@BOTH
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_bad_file_is_refused_by_name(damage, domain, folder) -> None:
    DAMAGES[damage](folder / "2.parquet")
    with pytest.raises(SourceError, match=r"2\.parquet"):
        fit(str(folder), domain)


def test_the_first_chunks_of_a_damaged_file_do_read(folder) -> None:
    """Else the tests above would show nothing."""
    damage_pages(folder / "1.parquet")
    seen: list[str] = []
    with pytest.raises(SourceError):
        fit(str(folder), report=lambda progress: seen.append(Path(progress.part).name))
    assert seen.count("1.parquet") >= 2


def test_a_file_that_goes_bad_between_the_passes_is_no_reason_to_go_on(folder) -> None:
    """What was settled by its rows would not be what the others settle."""

    def report(progress: Any) -> None:
        if progress.phase == "looking at the columns" and progress.rows == 3 * ROWS:
            cut_short(folder / "1.parquet")

    with (
        pytest.warns(FaultyPartWarning, match=r"1\.parquet"),
        pytest.raises(ValueError, match=r"1\.parquet changed after the first pass"),
    ):
        fit(str(folder), faulty="skip", report=report)


class Stopper:
    """Raises KeyboardInterrupt at the n-th chunk."""

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0

    def __call__(self, progress: Any) -> None:
        self.count += 1
        if self.count == self.at:
            raise KeyboardInterrupt


@BOTH
@pytest.mark.parametrize("at", [1, 2, 4, 5, 9, 12, 13, 16, 20, 24])
def test_interrupted_at_any_chunk_and_resumed(at, domain, folder, tmp_path, always) -> None:
    expected = bits(fit(str(folder), domain))
    state = str(tmp_path / "state")
    if domain == "auto" or at <= 12:
        with pytest.raises(KeyboardInterrupt):
            fit(str(folder), domain, checkpoint=state, report=Stopper(at))
        assert at == 1 or os.path.exists(state)
    seen: list[Any] = []
    assert bits(fit(str(folder), domain, checkpoint=state, report=seen.append)) == expected
    assert len(seen) <= (24 if domain == "auto" else 12) - (at - 1 if domain == "auto" or at <= 12 else 0)
    assert os.listdir(tmp_path) == ["data"]


def test_interrupted_at_every_other_chunk(folder, tmp_path, always) -> None:
    expected, state = bits(fit(str(folder))), str(tmp_path / "state")
    for _ in range(40):
        try:
            found = fit(str(folder), checkpoint=state, report=Stopper(2))
        except KeyboardInterrupt:
            continue
        break
    assert bits(found) == expected


def test_interrupted_while_it_learns(folder, tmp_path, monkeypatch) -> None:
    """All sums are there, of one pass and of the other; also where a file was left out."""
    cut_short(folder / "1.parquet")
    state = str(tmp_path / "state")
    with monkeypatch.context() as patch:
        patch.setattr("vff.estimators.fitting.learnt", _interrupt)
        with pytest.warns(FaultyPartWarning), pytest.raises(KeyboardInterrupt):
            fit(str(folder), checkpoint=state, faulty="skip")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FaultyPartWarning)
        found = fit(str(folder), checkpoint=state, faulty="skip")
    (folder / "1.parquet").unlink()
    assert bits(found) == bits(fit(str(folder)))


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def interrupted(folder: Path, state: str, at: int, domain: Any = "auto", **handling: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        fit(str(folder), domain, checkpoint=state, report=Stopper(at), **handling)


@BOTH
@pytest.mark.parametrize("at", [6, 12])
def test_a_file_that_changed_since_is_refused(at, domain, folder, tmp_path, always) -> None:
    state = str(tmp_path / "state")
    interrupted(folder, state, at, domain)
    write(folder / "0.parquet", 7)
    with pytest.raises(ValueError, match=r"0\.parquet is not what it was when its rows were summed, .* delete the"):
        fit(str(folder), domain, checkpoint=state)


@BOTH
def test_the_current_file_is_begun_anew_when_it_changed(domain, folder, tmp_path, always) -> None:
    state = str(tmp_path / "state")
    interrupted(folder, state, 7, domain)
    write(folder / "1.parquet", 7)
    assert bits(fit(str(folder), domain, checkpoint=state)) == bits(fit(str(folder), domain))


@pytest.mark.parametrize("at", [9, 15])
def test_a_file_that_is_gone_is_missed(at, folder, tmp_path, always) -> None:
    state = str(tmp_path / "state")
    interrupted(folder, state, at)
    (folder / "0.parquet").unlink()
    with pytest.raises(ValueError, match=r"0\.parquet is in the sums that the checkpoint has, and no longer among"):
        fit(str(folder), checkpoint=state)


def test_a_file_that_came_later_is_refused(folder, tmp_path, always) -> None:
    state = str(tmp_path / "state")
    interrupted(folder, state, 15)
    write(folder / "3.parquet", 3)
    with pytest.raises(ValueError, match=r"3\.parquet came after the checkpoint was complete; delete the checkpoint"):
        fit(str(folder), checkpoint=state)


def test_the_state_of_another_fit_is_refused(folder, tmp_path, always) -> None:
    state = str(tmp_path / "state")
    interrupted(folder, state, 6)
    other = r"the checkpoint .*state belongs to another fit \(.*\) than this one \(.*\); delete it to begin anew"
    source = vff.scan(str(folder), chunk_rows=CHUNK, checkpoint=state)
    for wrong in (GPRegressor(Matern32("x")), model(DOMAINS[1]), model(engine="dense")):
        with pytest.raises(ValueError, match=other):
            wrong.fit(source, "y")
    with pytest.raises(ValueError, match=other):
        model().fit(source, "y", "k")
    with pytest.raises(ValueError, match=other):
        model().partial_fit(source, "y")
    with pytest.raises(ValueError, match=other):  # so many chunks of another size are other rows
        model().fit(vff.scan(str(folder), chunk_rows=50, checkpoint=state), "y")
    assert bits(model().fit(source, "y")) == bits(fit(str(folder)))


def test_a_checkpoint_is_for_gaussian_noise(folder, tmp_path) -> None:
    poisson = GPRegressor(Matern32("x"), likelihood="poisson")
    with pytest.raises(ValueError, match="a checkpoint keeps sums over the rows, which say all with Gaussian noise"):
        poisson.fit(vff.scan(str(folder), checkpoint=str(tmp_path / "state")), "k")


@pytest.mark.parametrize("call", ["replace", "fsync"])
def test_a_full_disk_leaves_the_old_state_and_the_fit_goes_on(call, folder, tmp_path, always, monkeypatch) -> None:
    expected, state = bits(fit(str(folder))), tmp_path / "state"
    interrupted(folder, str(state), 6)
    before = state.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, call, _full)
        with pytest.warns(UserWarning, match=r"state could not be written \(No space left on device\); the state befo"):
            interrupted(folder, str(state), 3)
    assert state.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["data", "state"]
    with monkeypatch.context() as patch:
        patch.setattr(os, call, _full)
        with pytest.warns(UserWarning, match="could not be written"):
            assert bits(fit(str(folder), checkpoint=str(state))) == expected


def _full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_damaged_state_is_refused(folder, tmp_path, always) -> None:
    state = tmp_path / "state"
    interrupted(folder, str(state), 6)
    whole = state.read_bytes()
    rng = np.random.default_rng(0)
    for place in (0, 9, 40, *rng.integers(0, len(whole), 12).tolist(), len(whole) - 1):
        damaged = bytearray(whole)
        damaged[place] ^= 0x55
        state.write_bytes(damaged)
        with pytest.raises(FileError, match=r"state: .* was expected, found"):
            fit(str(folder), checkpoint=str(state))
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        state.write_bytes(whole[:length])
        with pytest.raises(FileError, match=r"state: .* was expected, found"):
            fit(str(folder), checkpoint=str(state))


def test_a_damaged_state_is_to_be_deleted_and_not_to_be_copied_again(folder, tmp_path, always) -> None:
    state = tmp_path / "state"
    interrupted(folder, str(state), 6)
    whole = state.read_bytes()
    for damaged in (whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1]), whole[:20] + b"x" + whole[21:]):
        state.write_bytes(damaged)
        with pytest.raises(FileError, match=r"state: .* was expected, found .*; delete the file to begin anew$"):
            fit(str(folder), checkpoint=str(state))
    state.write_bytes(b"my notes, which are no checkpoint and not to be deleted by advice" * 2)
    with pytest.raises(FileError, match=r"found something else; name another file for the checkpoint, or delete"):
        fit(str(folder), checkpoint=str(state))


@pytest.mark.parametrize("domain", DOMAINS, ids=["two passes", "one pass"])
def test_a_state_that_could_not_be_written_is_refused_before_a_row_is_read(domain, folder, tmp_path) -> None:
    seen: list[Any] = []
    state = tmp_path / "nowhere" / "state"
    with pytest.raises(FileNotFoundError) as caught:
        fit(str(folder), domain, checkpoint=str(state), report=seen.append)
    expected = f"a folder to write to was expected, found none at {state.parent}; make it, or name another"
    assert str(caught.value) == f"{state}: {expected}"
    with pytest.raises(NotADirectoryError, match="a folder to write to was expected, found none at"):
        fit(str(folder), domain, checkpoint=str(folder / "0.parquet" / "state"), report=seen.append)
    with pytest.raises(FileError, match="a file was expected, found a folder"):
        fit(str(folder), domain, checkpoint=str(tmp_path), report=seen.append)
    assert not seen


def test_half_written_states_go_with_the_last(folder, tmp_path) -> None:
    for name in (".state.0123456789ab", ".state.mine", "state2"):
        (tmp_path / name).touch()
    fit(str(folder), checkpoint=str(tmp_path / "state"))
    assert sorted(os.listdir(tmp_path)) == [".state.mine", "data", "state2"]


def test_rows_added_to_an_earlier_fit_go_on_from_their_own_state(folder, tmp_path, always) -> None:
    more = tmp_path / "more"
    shutil.copytree(folder, more)
    write(more / "1.parquet", 8)
    state = str(tmp_path / "state")

    def grown(**handling: Any) -> GPRegressor:
        first = model(DOMAINS[1]).partial_fit(vff.scan(str(folder), chunk_rows=CHUNK), "y")
        return first.partial_fit(vff.scan(str(more), chunk_rows=CHUNK, **handling), "y")

    with pytest.raises(KeyboardInterrupt):
        grown(checkpoint=state, report=Stopper(7))
    seen: list[Any] = []
    assert bits(grown(checkpoint=state, report=seen.append)) == bits(grown())
    assert seen[0].resumed == 600
