"""The project keeps its own promises: public names, imports, sizes, and everything the README shows."""

import ast
import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import vff
from vff.likelihoods import LIKELIHOODS, unregister

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "vff").rglob("*.py"))
PAGES = sorted((ROOT / "docs").glob("*.md"))
ROOMS = sorted(path.parent.name for path in (ROOT / "src" / "vff").glob("*/__init__.py"))


def python(program: str) -> str:
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT / "src").stdout.strip()


def test_the_public_surface_is_the_list() -> None:
    assert vff.__all__ == sorted(vff.__all__)
    assert set(vff.__dir__()) == {*vff.__all__, "__version__"}
    for name in vff.__all__:
        assert getattr(vff, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'; it has"):
        vff.nonsense  # noqa: B018


@pytest.mark.parametrize("room", [*ROOMS, "plot"])
def test_every_room_lists_what_it_offers(room: str) -> None:
    module = importlib.import_module(f"vff.{room}")
    assert module.__doc__
    # ruff sorts __all__ by its own rule (RUF022); here only that it is complete and real
    assert len(set(module.__all__)) == len(module.__all__)
    defined = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("vff.") and name not in ROOMS
    }
    assert defined <= set(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_the_version_is_said_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert (ROOT / project["tool"]["hatch"]["version"]["path"]).samefile(vff.__file__)
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == vff.__version__


def test_citations_of_the_theory_lead_somewhere() -> None:
    text = (ROOT / "docs" / "theory.md").read_text()
    known = {f"§{number}" for number in re.findall(r"^## (\d+)\.", text, re.MULTILINE)}
    equations = re.findall(r"  \((\d+\.\d+)\)$", text, re.MULTILINE)
    assert len(set(equations)) == len(equations)
    known |= {f"({number})" for number in equations}
    cited = [
        (path.name, place)
        for path in (ROOT / "src").rglob("*.py")
        for place in re.findall(r"[Tt]heory,? (§\d+|\(\d+\.\d+\))", path.read_text())
    ]
    assert not [one for one in cited if one[1] not in known]


def test_importing_vff_imports_nothing_heavy() -> None:
    heavy = ("numpy", "scipy", "sklearn", "jax", "matplotlib", "pandas", "finufft")
    assert python(f"import sys, vff; print([name for name in {heavy} if name in sys.modules])") == "[]"


def test_importing_the_regressor_draws_and_compiles_nothing() -> None:
    heavy = ("jax", "matplotlib", "finufft")
    program = f"import sys; from vff import GPRegressor, plot; print([name for name in {heavy} if name in sys.modules])"
    assert python(program) == "[]"


def test_imports_point_downwards() -> None:
    pytest.importorskip("importlinter")
    program = "import sys; from importlinter.cli import lint_imports_command as c; sys.argv = ['x', '--no-cache']; c()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < 60, node.name


def blocks_of(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


RUN = ["README.md", *(page for page in (f"docs/{path.name}" for path in PAGES) if blocks_of(page))]


@pytest.mark.parametrize("page", RUN)
def test_pages_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of a page, one after another, as a reader would type them."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    known = list(LIKELIHOODS)
    for block in blocks_of(page):
        exec(compile(block, page, "exec"), names)
    for kind in [kind for kind in LIKELIHOODS if kind not in known]:
        unregister(kind)
    pyplot.close("all")


@pytest.mark.parametrize(
    "page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in PAGES)]
)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    source = ROOT / page
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", source.read_text()):
        assert (source.parent / target).exists(), target


def test_rooms_in_the_architecture_are_the_rooms() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert [room for room in ROOMS if f"`{room}`" not in text] == []
