"""The command line from its words to its exit codes, on small files."""

import errno
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from vff import __version__
from vff.cli import main
from vff.cli.answers import TableWriter
from vff.cli.pages import PAGES

ROOT = Path(__file__).parents[2]
ROWS = 600
DOMAIN = "hour=0:24, outdoors=-20:45"


def loads(rows: int, seed: int = 0) -> pa.Table:
    """Loads with known effects."""
    rng = np.random.default_rng(seed)
    hour, outdoors, house = rng.uniform(0, 24, rows), rng.uniform(-5, 30, rows), rng.integers(3, size=rows)
    load = 3 * np.sin(hour / 4) + 0.01 * (outdoors - 18) ** 2 + 2.0 * (house == 2)
    names = np.array(["north", "south", "villa"])[house]
    columns = {"id": np.arange(rows), "hour": hour, "outdoors": outdoors, "house": names}
    return pa.table({**columns, "load": load + rng.normal(0, 0.3, rows), "w": rng.integers(1, 3, rows).astype(float)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table as CSV and as Parquet, two halves of it, new rows, and a model of all."""
    where = tmp_path_factory.mktemp("cli")
    table = loads(ROWS)
    pa.csv.write_csv(table, where / "loads.csv")
    pa.parquet.write_table(table, where / "loads.parquet")
    for number in range(2):
        pa.parquet.write_table(table.slice(number * ROWS // 2, ROWS // 2), where / f"half{number}.parquet")
    pa.csv.write_csv(loads(50, seed=1), where / "new.csv")
    assert main([*fit_words(where), "--out", f"{where}/load.vff", "--quiet"]) == 0
    return where


def fit_words(where: Path, data: str = "loads.csv", command: str = "fit") -> list[str]:
    words = [command, *(str(path) for path in sorted(where.glob(data))), "--target", "load"]
    return [*words, "--terms", "hour + outdoors + house", "--domain", DOMAIN, "--frequencies", "12"]


class Ran:
    """The outcome of a command."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def record(self) -> dict:
        assert self.out.count("\n") == 1
        return json.loads(self.out)


@pytest.fixture
def vff(capsys: pytest.CaptureFixture[str]):
    """Run a command in this process."""

    def run(*words: object) -> Ran:
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Ran(code, *capsys.readouterr())

    return run


def refused(ran: Ran, code: int) -> str:
    """The one line of an error."""
    assert ran.code == code, ran.err
    assert ran.out == ""
    lines = [line for line in ran.err.splitlines() if not line.startswith("vff: warning:")]
    assert len(lines) == 1
    assert lines[0].startswith("vff: error: ")
    assert "Traceback" not in ran.err
    return lines[0].removeprefix("vff: error: ")


# --- what works ------------------------------------------------------------------------------------------------------


def test_fit_says_what_it_found(vff, folder, tmp_path):
    words = [*fit_words(folder, "loads.parquet"), "--units", "hour=h, load=kW"]
    ran = vff(*words, "--out", tmp_path / "m.vff")
    assert ran.code == 0, ran.err
    assert f"GPRegressor of load (kW), {ROWS} rows" in ran.out
    assert "lengthscale" in ran.out
    assert " h " in ran.out
    assert f"wrote {tmp_path / 'm.vff'}" in ran.out
    record = vff(*words, "--out", tmp_path / "m.vff", "--force", "--json").record
    assert [term["term"] for term in record["terms"]] == ["hour", "outdoors", "house"]
    assert record["rows"] == ROWS
    assert record["target"] == "load"


@pytest.mark.parametrize(("how", "said"), [("integrate", "averaged over"), ("maximise", "taken for known")])
def test_hyperparameters_are_averaged_over_or_taken_for_known(vff, folder, tmp_path, how, said):
    ran = vff(*fit_words(folder, "loads.parquet"), "--hyperparameters", how, "--out", tmp_path / "m.vff")
    assert ran.code == 0, ran.err
    assert f"hyperparameters: {said}" in ran.out


def test_csv_and_parquet_give_the_same_model(vff, folder, tmp_path):
    records = [
        vff(*fit_words(folder, name), "--out", tmp_path / f"{number}.vff", "--json").record
        for number, name in enumerate(["loads.csv", "loads.parquet", "half*.parquet"])
    ]
    for record in records[1:]:
        assert record["elbo"] == pytest.approx(records[0]["elbo"], rel=1e-6)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predictions(vff, folder, tmp_path, ending):
    out = tmp_path / f"p.{ending}"
    ran = vff(
        "predict", folder / "load.vff", folder / "new.csv", "--keep", "id, load", "--out", out, "--chunk-rows", 20
    )
    assert ran.code == 0, ran.err
    read = pa.csv.read_csv if ending == "csv" else pa.parquet.read_table
    table = read(out)
    assert table.column_names == ["id", "load", "mean", "sd", "lower", "upper"]
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    np.testing.assert_array_equal(columns["id"], np.arange(50))
    assert np.sqrt(np.mean((columns["mean"] - columns["load"]) ** 2)) < 0.5
    np.testing.assert_allclose(columns["upper"] - columns["mean"], 1.959964 * columns["sd"], rtol=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir()) == [out.name]


def test_the_level_sets_the_interval(vff, folder, tmp_path):
    vff("predict", folder / "load.vff", folder / "new.csv", "--out", tmp_path / "p.csv", "--level", "0.5")
    table = pa.csv.read_csv(tmp_path / "p.csv")
    width = table.column("upper").to_numpy() - table.column("lower").to_numpy()
    np.testing.assert_allclose(width, 2 * 0.6744898 * table.column("sd").to_numpy(), rtol=1e-5)


def test_counts_with_an_exposure(vff, tmp_path):
    rng = np.random.default_rng(0)
    x, days = rng.uniform(0, 1, 300), rng.uniform(1, 5, 300)
    visits = rng.poisson(days * np.exp(np.sin(6 * x)))
    pa.csv.write_csv(pa.table({"x": x, "days": days, "visits": visits}), tmp_path / "v.csv")
    options = ["--likelihood", "poisson", "--exposure", "days", "--frequencies", 8]
    ran = vff("fit", tmp_path / "v.csv", "--target", "visits", *options, "--out", tmp_path / "v.vff")
    assert ran.code == 0, ran.err
    assert "Poisson likelihood" in ran.out
    assert vff("predict", tmp_path / "v.vff", tmp_path / "v.csv", "--out", tmp_path / "p.csv").code == 0
    table = pa.csv.read_csv(tmp_path / "p.csv")
    assert np.all(table.column("lower").to_numpy() >= 0)
    assert np.corrcoef(table.column("mean").to_numpy(), visits)[0, 1] > 0.5


def test_labels(vff, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 300)
    label = np.where(x + rng.normal(0, 0.1, 300) > 0.5, "high", "low")
    pa.csv.write_csv(pa.table({"x": x, "label": label}), tmp_path / "c.csv")
    words = ["fit", tmp_path / "c.csv", "--target", "label", "--classify", "--frequencies", 8]
    assert vff(*words, "--out", tmp_path / "c.vff").code == 0
    ran = vff("predict", tmp_path / "c.vff", tmp_path / "c.csv", "--out", tmp_path / "p.csv")
    assert ran.code == 0, ran.err
    table = pa.csv.read_csv(tmp_path / "p.csv")
    assert table.column_names == ["P(high)", "P(low)", "predicted"]
    assert np.mean(table.column("predicted").to_numpy(zero_copy_only=False) == label) > 0.9


def test_three_classes(vff, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, 200)
    table = pa.table({"x": x, "kind": np.floor(x).astype(int)})
    pa.csv.write_csv(table, tmp_path / "c.csv")
    words = ["fit", tmp_path / "c.csv", "--target", "kind", "--classify", "--frequencies", 6]
    ran = vff(*words, "--out", tmp_path / "c.vff")
    assert ran.code == 0, ran.err
    assert "class 2 against the rest" in ran.out
    assert vff("predict", tmp_path / "c.vff", tmp_path / "c.csv", "--out", tmp_path / "p.csv").code == 0
    assert pa.csv.read_csv(tmp_path / "p.csv").column_names == ["P(0)", "P(1)", "P(2)", "predicted"]
    assert "found none" in refused(vff("effects", tmp_path / "c.vff", "--out", tmp_path / "e.csv"), 2)
    assert vff("effects", tmp_path / "c.vff", "--class", "1", "--out", tmp_path / "e.csv").code == 0


def test_parts_merge_to_the_model_of_all_rows(vff, folder, tmp_path):
    for number in range(2):
        words = fit_words(folder, f"half{number}.parquet", "moments")
        ran = vff(*words, "--out", tmp_path / f"part{number}.vffm")
        assert ran.code == 0, ran.err
        assert "not learnt yet" in ran.out
    parts = sorted(tmp_path.glob("part*.vffm"))
    assert vff("merge", *parts, "--out", tmp_path / "all.vffm", "--json").record["rows"] == ROWS
    assert "not learnt yet" in vff("info", tmp_path / "all.vffm").out
    record = vff("fit", tmp_path / "all.vffm", "--out", tmp_path / "m.vff", "--json").record
    whole = vff("info", folder / "load.vff", "--json").record
    assert record["elbo"] == pytest.approx(whole["elbo"], rel=1e-6)
    assert "found statistics" in refused(
        vff("predict", tmp_path / "all.vffm", folder / "new.csv", "--out", tmp_path / "p.csv"), 4
    )
    assert "twice" in refused(vff("merge", parts[0], parts[0], "--out", tmp_path / "x.vffm"), 2)


def test_rows_come_and_go(vff, folder, tmp_path):
    first = vff(*fit_words(folder, "half0.parquet"), "--out", tmp_path / "a.vff", "--json").record
    more = vff("update", tmp_path / "a.vff", folder / "half1.parquet", "--out", tmp_path / "b.vff", "--json").record
    assert more["rows"] == ROWS
    ran = vff("forget", tmp_path / "b.vff", folder / "half1.parquet", "--out", tmp_path / "c.vff", "--json")
    assert ran.record["rows"] == ROWS // 2
    assert ran.record["elbo"] == pytest.approx(first["elbo"], rel=1e-5)
    assert ran.record["provenance"]["steps"][-1]["command"] == "forget"


def test_effects_as_numbers(vff, folder, tmp_path):
    assert vff("effects", folder / "load.vff", "--out", tmp_path / "e.csv").code == 0
    table = pa.csv.read_csv(tmp_path / "e.csv").to_pydict()
    assert list(table) == ["term", "x", "effect", "sd"]
    found = {
        x: effect for term, x, effect in zip(table["term"], table["x"], table["effect"], strict=True) if term == "house"
    }
    assert found["villa"] - found["north"] == pytest.approx(2.0, abs=0.2)
    assert (
        vff("effects", folder / "load.vff", "--terms", "hour", "--out", tmp_path / "h.csv", "--json").record["rows"]
        == 200
    )


def test_effects_as_a_picture(vff, folder, tmp_path):
    pytest.importorskip("matplotlib.pyplot").switch_backend("agg")
    for ending in ("png", "svg"):
        ran = vff("effects", folder / "load.vff", "--out", tmp_path / f"e.{ending}", "--terms", "hour, house")
        assert ran.code == 0, ran.err
    assert (tmp_path / "e.png").read_bytes().startswith(b"\x89PNG")


def test_times_text_that_looks_like_numbers_and_odd_names(vff, tmp_path):
    rng = np.random.default_rng(0)
    days, zips = rng.uniform(0, 366, 300), rng.integers(10000, 10003, 300)
    time = np.datetime64("2024-01-01T00:00:00") + (86400 * days).astype("timedelta64[s]")
    y = np.sin(days / 60) + (zips == 10002) + rng.normal(0, 0.1, 300)
    table = pa.table({"time": time, "zip": zips, "on": rng.random(300) < 0.5, "y; z": y})
    pa.csv.write_csv(table, tmp_path / "t.csv", pa.csv.WriteOptions(delimiter=";"))
    words = ["--delimiter", ";", "--types", "zip=text", "--target", "y; z", "--terms", "time + zip + on", "--units"]
    domain = ["`y; z`=m", "--domain", "time=2023-12-01:2025-01-31", "--frequencies", "time=20"]
    ran = vff("fit", tmp_path / "t.csv", *words, *domain, "--out", tmp_path / "t.vff")
    assert ran.code == 0, ran.err
    assert " days " in ran.out
    assert "2023-12-01 00:00 to 2025-01-31 00:00" in vff("info", tmp_path / "t.vff").out
    # the model knows that zip is text, and says so to the reader of the file
    ran = vff("predict", tmp_path / "t.vff", tmp_path / "t.csv", "--delimiter", ";", "--out", tmp_path / "p.csv")
    assert (ran.code, ran.err) == (0, "")
    assert np.abs(pa.csv.read_csv(tmp_path / "p.csv").column("mean").to_numpy() - y).mean() < 0.15
    vff("effects", tmp_path / "t.vff", "--out", tmp_path / "e.csv")
    effects = pa.csv.read_csv(tmp_path / "e.csv").to_pydict()
    places = {
        term: [x for name, x in zip(effects["term"], effects["x"], strict=True) if name == term]
        for term in ("zip", "on")
    }
    assert places == {"zip": ["10000", "10001", "10002"], "on": ["False", "True"]}
    assert effects["x"][0].startswith("2024-01-0")


def test_info(vff, folder):
    ran = vff("info", folder / "load.vff")
    assert ran.code == 0, ran.err
    for word in ("GPRegressor of load", "Matern32", "house", "0 to 24", "features", "created", "loads.csv"):
        assert word in ran.out
    assert vff("info", folder / "loads.parquet", "--json").record["rows"] == ROWS
    data = vff("info", folder / "loads.csv", "--types", "id=text").out
    assert "rows are not counted" in data
    assert "house     text" in data
    assert "id        text" in data


def test_demo(vff, tmp_path):
    pytest.importorskip("matplotlib.pyplot").switch_backend("agg")
    ran = vff("demo", "--out", tmp_path / "demo", "--rows", 400)
    assert ran.code == 0, ran.err
    assert ran.out.count("$ vff ") == 3
    names = {path.name for path in (tmp_path / "demo").iterdir()}
    assert names == {"loads.csv", "load.vff", "predicted.csv", "effects.png"}
    assert "exists already" in refused(vff("demo", "--out", tmp_path / "demo"), 4)


def test_warnings_are_lines_and_part_of_the_record(vff, folder, tmp_path):
    beyond = loads(40, seed=2).set_column(1, "hour", pa.array(np.linspace(30, 200, 40)))
    pa.csv.write_csv(beyond, tmp_path / "beyond.csv")
    words = ["predict", folder / "load.vff", tmp_path / "beyond.csv", "--chunk-rows", 10, "--out", tmp_path / "p.csv"]
    ran = vff(*words, "--json")
    assert ran.code == 0
    assert len(ran.record["warnings"]) == 1
    assert ran.err.startswith("vff: warning: 10 of 10 rows lie outside the domain")
    assert ran.err.count("\n") == 1
    assert vff(*words, "--force", "--quiet").err == ""


# --- what does not ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "the following arguments are required: COMMAND; vff --help"),
        (["fit"], "required: DATA, --out; vff fit --help"),
        (["fti", "x"], "invalid choice"),
        (["fit", "{}/loads.csv", "--out", "m.vff"], "--target was expected"),
        (["fit", "{}/loads.csv", "--target", "load", "--out", "m.txt"], "--out must end in .vff"),
        (["fit", "{}/loads.csv", "--target", "load", "--terms", "hour +", "--out", "m.vff"], "--terms: at character 7"),
        (["fit", "{}/loads.csv", "--target", "load", "--domain", "hour", "--out", "m.vff"], "--domain was expected"),
        (["fit", "{}/loads.csv", "--target", "load", "--domain", "hour=9:3", "--out", "m.vff"], "hour=9:3"),
        (["fit", "{}/loads.csv", "--target", "load", "--types", "id=colour", "--out", "m.vff"], "found 'id=colour'"),
        (["fit", "{}/loads.csv", "--target", "load", "--domain", "n" * 10**5, "--out", "m.vff"], "100,002 characters"),
        (["n" * 10**5], "(100,002 characters)"),
        (["fit", "{}/loads.csv", "--target", "load", "--out", "m.vff", "--" + "n" * 10**5], " characters)"),
        (["fit", "{}/loads.csv", "--target", "load", "--frequencies", "hour=x", "--out", "m.vff"], "--frequencies"),
        (["fit", "{}/loads.csv", "--target", "load", "--exposure", "w", "--out", "m.vff"], "--exposure needs"),
        (["fit", "{}/loads.csv", "a.vffm", "--target", "load", "--out", "m.vff"], "found both"),
        (["fit", "a.vffm", "--target", "load", "--out", "m.vff"], "--target is for rows"),
        (["predict", "m.vff", "x.csv", "--level", "2", "--out", "p.csv"], "a number between 0 and 1"),
        (["predict", "{}/load.vff", "{}/new.csv", "--keep", "mean", "--out", "p.csv"], "found 'mean'"),
        (["predict", "{}/load.vff", "{}/new.csv", "--out", "{}/new.csv", "--force"], "one of the inputs"),
        (["fit", "{}", "--target", "load", "--out", "{}/load.vff", "--force"], "one of the inputs"),
        (["fit", "{}/loads.csv", "--target", "load", "--checkpoint", "{}/loads.csv", "--out", "m.vff"], "its own"),
        (["fit", "{}/loads.csv", "--target", "load", "--checkpoint", "m.vff", "--out", "m.vff"], "name of its own"),
        (["effects", "{}/load.vff", "--class", "a", "--out", "e.csv"], "--class is for models of more than two"),
        (["effects", "{}/load.vff", "--terms", "hours", "--out", "e.csv"], "found 'hours'"),
        (["moments", "{}/loads.csv", "--target", "load", "--terms", "hour", "--out", "m.vffm"], "'hour' is missing"),
    ],
)  # fmt: skip
def test_usage(vff, folder, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(vff(*(word.format(folder) for word in words)), 2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["fit", "nowhere.csv", "--target", "load", "--out", "m.vff"], "nowhere.csv"),
        (["fit", "{}/loads.csv", "--target", "lod", "--out", "m.vff"], "perhaps 'load' was meant"),
        (["fit", "{}/loads.csv", "--target", "n" * 10**5, "--out", "m.vff"], "(100,002 characters)"),
        (["fit", "n" * 10**5 + ".csv", "--target", "load", "--out", "m.vff"], "(100,006 characters)"),
        (["fit", "{}/loads.csv", "--target", "load", "--weight", "ww", "--out", "m.vff"], "--weight was expected"),
        (["fit", "{}/loads.csv", "--target", "load", "--terms", "huor", "--out", "m.vff"], "perhaps 'hour' was meant"),
        (["fit", "{}/loads.csv", "--target", "load", "--terms", "load", "--out", "m.vff"], "which is the target"),
        (["fit", "{}/loads.csv", "--target", "load", "--types", "x=text", "--out", "m.vff"], "'x'"),
        (["fit", "{}/loads.csv", "--target", "load", "--units", "x=m", "--out", "m.vff"], "--units was expected"),
        (["fit", "{}/loads.csv", "--target", "house", "--terms", "hour", "--out", "m.vff"], "give --classify"),
        (["predict", "{}/load.vff", "{}/p.csv", "--out", "p.csv"], "what the model uses"),
        (["info", "nowhere.parquet"], "nowhere.parquet"),
    ],
)  # fmt: skip
def test_bad_data(vff, folder, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    (folder / "p.csv").write_text("hour,house\n1,villa\n")
    try:
        assert sentence in refused(vff(*(word.format(folder) for word in words)), 3)
    finally:
        (folder / "p.csv").unlink()
    assert list(tmp_path.iterdir()) == []


def test_missing_values_are_unknown_refused_or_left_out(vff, folder, tmp_path):
    lines = (folder / "new.csv").read_text().splitlines()
    cells = lines[3].split(",")
    lines[3] = ",".join([cells[0], "", *cells[2:]])
    (tmp_path / "holes.csv").write_text("\n".join(lines) + "\n")
    words = ["predict", folder / "load.vff", tmp_path / "holes.csv", "--keep", "id", "--out", tmp_path / "p.csv"]
    assert "holes.csv, rows 2 to 51 (the header is row 1)" in refused(vff(*words, "--missing", "refuse"), 3)
    assert not (tmp_path / "p.csv").exists()
    ran = vff(*words)
    assert "1 of 50 rows are missing column" in ran.err
    assert pa.csv.read_csv(tmp_path / "p.csv").num_rows == 50
    (tmp_path / "p.csv").unlink()
    record = vff(*words, "--missing", "drop", "--json").record
    assert (record["rows"], record["dropped"]) == (49, 1)
    assert 2 not in pa.csv.read_csv(tmp_path / "p.csv").column("id").to_pylist()


def test_what_is_advised_about_columns_of_text_can_be_typed(vff, tmp_path):
    days = [f"2024-01-{n:02}" for n in range(1, 29)]
    for file, last in (("prices.csv", "oops"), ("good.csv", "3.5")):
        cells = [*(f"{n % 5}.5" for n in range(27)), last]
        lines = [
            "price,day,y",
            *(f"{cell},{day},{n % 7}" for n, (cell, day) in enumerate(zip(cells, days, strict=True))),
        ]
        (tmp_path / file).write_text("\n".join(lines) + "\n")
    words = ["fit", tmp_path / "prices.csv", "--target", "y", "--out", tmp_path / "m.vff"]
    said = refused(vff(*words), 3)
    assert "without --terms they are not taken for a category: convert the column, for instance with --types " in said
    assert said.endswith("--types price=number, or write --terms with cat(price) if they are codes")
    assert "with --types price=text" in refused(vff(*words, "--types", "price=number"), 3)
    assert vff(*words, "--types", "price=text").code == 0
    assert vff("fit", tmp_path / "good.csv", "--target", "y", "--out", tmp_path / "d.vff").code == 0
    words = ["predict", tmp_path / "d.vff", tmp_path / "good.csv", "--out", tmp_path / "p.csv"]
    said = refused(vff(*words, "--types", "day=text"), 3)
    assert said.endswith("fitted to times in it: convert the column, for instance with --types day=datetime")
    assert vff(*words, "--types", "day=datetime").code == 0


def test_rows_left_out_of_a_fit_are_counted(vff, tmp_path):
    lines = ["x,y", *(f"{n / 40},{n % 7}" for n in range(40)), ",3", "0.5,"]
    (tmp_path / "messy.csv").write_text("\n".join(lines) + "\n")
    said = "2 rows were left out because cells were missing or infinite"
    words = [tmp_path / "messy.csv", "--target", "y", "--missing", "drop"]
    ran = vff("fit", *words, "--out", tmp_path / "m.vff")
    assert f"note: {said}" in ran.out
    ran = vff("fit", *words, "--out", tmp_path / "m.vff", "--force", "--json")
    assert (ran.record["rows"], ran.record["dropped"]) == (40, 2)
    assert said in ran.record["notes"]
    assert f"note: {said}" in vff("info", tmp_path / "m.vff").out
    ran = vff("moments", *words, "--terms", "x", "--domain", "x=0:1", "--out", tmp_path / "s.vffm")
    assert f"note: {said}" in ran.out, ran.err
    assert vff("info", tmp_path / "s.vffm", "--json").record["dropped"] == 2


def test_faulty_files_are_refused_or_left_out(vff, folder, tmp_path):
    shutil.copy(folder / "half0.parquet", tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes((folder / "half1.parquet").read_bytes()[:-50])
    words = fit_words(tmp_path, "*.parquet")
    assert "b.parquet" in refused(vff(*words, "--out", tmp_path / "m.vff"), 3)
    ran = vff(*words, "--faulty", "skip", "--out", tmp_path / "m.vff", "--json")
    assert ran.code == 0, ran.err
    assert ran.record["rows"] == ROWS // 2
    assert "b.parquet" in ran.record["warnings"][0]
    words = ["predict", folder / "load.vff", *sorted(tmp_path.glob("*.parquet")), "--out", tmp_path / "p.csv"]
    assert "b.parquet" in refused(vff(*words), 3)
    ran = vff(*words, "--faulty", "skip", "--json")
    assert ran.record["rows"] == ROWS // 2
    assert "b.parquet" in ran.record["warnings"][0]


def test_files_that_cannot_be_used(vff, folder, tmp_path):
    model = folder / "load.vff"
    damaged = tmp_path / "damaged.vff"
    damaged.write_bytes(model.read_bytes()[:-200])
    assert "damaged.vff" in refused(vff("info", damaged), 4)
    assert "found nothing" in refused(vff("info", tmp_path / "none.vff"), 4)
    copy = shutil.copy(model, tmp_path / "copy.vff")
    words = [*fit_words(folder), "--out", copy]
    assert "exists already" in refused(vff(*words), 4)
    assert "does not exist" in refused(vff(*fit_words(folder), "--out", tmp_path / "no" / "m.vff"), 4)
    state = refused(vff(*fit_words(folder), "--out", tmp_path / "m2.vff", "--checkpoint", tmp_path / "no" / "state"), 4)
    expected = f"a folder to write to was expected, found none at {tmp_path}/no; make it, or name another"
    assert state == f"{tmp_path}/no/state: {expected}"
    assert vff(*words, "--force").code == 0


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_full_disk_is_told_of_the_file_that_was_to_be_written(vff, folder, tmp_path, monkeypatch, suffix):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(TableWriter, "write", full)
    out = tmp_path / f"p{suffix}"
    said = refused(vff("predict", folder / "load.vff", folder / "new.csv", "--out", out), 4)
    found = "room for a file was expected, found none (No space left on device)"
    assert said == f"{out}: {found}; make room, or name another place"
    assert list(tmp_path.iterdir()) == []


def raising(error: BaseException):
    def raise_it(*_: object, **__: object) -> None:
        raise error

    return raise_it


def test_a_package_that_is_not_there(vff, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "vff.plot.effects", raising(ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib"))
    )
    sentence = refused(vff("effects", folder / "load.vff", "--out", tmp_path / "e.png"), 5)
    assert sentence.endswith("pip install 'vff[plot]'")


def test_interrupted(vff, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("vff.estimators.GPRegressor.fit", raising(KeyboardInterrupt()))
    words = [*fit_words(folder), "--out", tmp_path / "m.vff"]
    assert refused(vff(*words), 130) == "interrupted; nothing was written"
    resumed = refused(vff(*words, "--checkpoint", tmp_path / "state"), 130)
    assert resumed == f"interrupted; run the same command again to go on from {tmp_path / 'state'}"
    assert vff(*words, "--json").record == {"error": "interrupted; nothing was written", "code": 130}


def test_faults_of_our_own(vff, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("vff.estimators.GPRegressor.fit", raising(RuntimeError("two\nlines")))
    words = [*fit_words(folder), "--out", tmp_path / "m.vff"]
    assert refused(vff(*words), 1).startswith("RuntimeError: two lines; this was not expected: run again with --debug")
    ran = vff(*words, "--debug")
    assert ran.code == 1
    assert "Traceback" in ran.err


def test_errors_as_json(vff, folder, tmp_path):
    ran = vff(*fit_words(folder), "--out", tmp_path / "m.txt", "--json")
    assert ran.code == ran.record["code"] == 2
    assert ran.record["error"].startswith("--out must end in .vff")
    assert ran.err == ""
    assert vff("fit", "--json").record["code"] == 2


def test_what_libraries_print_is_not_the_answer(vff, folder, monkeypatch):
    from vff.cli import info

    real = info.describe
    monkeypatch.setattr(info, "describe", lambda path: [print("noise"), real(path)][1])
    ran = vff("info", folder / "load.vff", "--json")
    assert ran.record["target"] == "load"
    assert ran.err == "noise\n"


# --- how it talks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", PAGES)
def test_help_teaches(vff, command):
    ran = vff(command, "--help")
    assert ran.code == 0
    assert "example" in ran.out
    assert f"  vff {command} " in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100


def test_help_and_version_import_nothing_heavy():
    heavy = ("numpy", "scipy", "sklearn", "jax", "pyarrow", "matplotlib")
    program = (
        "import sys; from vff.cli import main; "
        f"codes = main(['--help']), main(['fit', '--help']), main(['fit']), main(['--version']); "
        f"print(codes, [name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT / "src", check=True)
    assert done.stdout.splitlines()[-2:] == [f"vff {__version__}", "(0, 0, 2, 0) []"]


def test_a_process_of_its_own(folder):
    command = [sys.executable, "-m", "vff", "info", str(folder / "missing.vff")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "src")
    assert done.returncode == 4
    assert done.stdout == ""
    assert done.stderr.startswith("vff: error: ")
    assert done.stderr.count("\n") == 1


def test_arguments_out_of_place_are_not_repeated_whole(capsys):
    assert main(["merge", "a.vff", "b.vff", "--terms", " + ".join(["a"] * 3000)]) == 2
    assert len(capsys.readouterr().err) < 600
