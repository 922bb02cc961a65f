"""What users are told: every public class, function and method is described in numpydoc, and its example runs."""

import contextlib
import doctest
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vff

ROOMS = ("vff", "vff.kernels", "vff.likelihoods", "vff.priors", "vff.plot", "vff.baselines", "vff.datasets")
WITH_METHODS = ("vff", "vff.baselines")

# What inference asks of likelihoods; users do not call it.
FOR_INFERENCE = {
    "Expected",
    "Location",
    "Mixture",
    "Parameter",
    "best_constant",
    "binary_names",
    "exposed_names",
    "parameter_derivatives",
    "row_modes",
}
# What fits and scikit-learn ask of kernels; users add, multiply and call them.
FOR_FITS = {
    "bare", "clash", "factor_in", "for_columns", "get_params", "over", "set_params", "settled", "text", "unnamed"
}  # fmt: skip
FOR_FITS |= {"unsettled", "with_values"}

SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
NAMES = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: :.*)?$", re.MULTILINE)


def public() -> Iterator[tuple[str, Any]]:
    """Every public thing once, under the first name that users know it by; a docstring that is inherited, too."""
    seen: set[Any] = set()
    for room in ROOMS:
        for name in import_module(room).__all__:
            own = getattr(import_module(room), name)
            if not (inspect.isclass(own) or inspect.isfunction(own)) or name in FOR_INFERENCE or id(own) in seen:
                continue
            seen.add(id(own))
            yield f"{room}.{name}", own
            if inspect.isclass(own) and room in WITH_METHODS:
                for method, function in methods(own):
                    text = described_in(own, method) or function
                    if text not in seen:
                        seen.add(text)
                        yield f"{room}.{name}.{method}", function


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """The methods that a class has from this library, its own and inherited ones."""
    for name in dir(kind):
        home = next((base for base in kind.__mro__ if name in vars(base)), object)
        ours = home.__module__.startswith("vff") and not name.startswith("_") and name not in FOR_FITS
        if ours:
            function = getattr(vars(home)[name], "fn", vars(home)[name])  # behind scikit-learn's available_if
            if inspect.isfunction(function):
                yield name, function


def described_in(kind: type, name: str) -> str:
    """The docstring of a method; one that overrides another without one has that of the other."""
    texts = (vars(base)[name].__doc__ for base in kind.__mro__ if name in vars(base))
    return inspect.cleandoc(next(filter(None, texts), ""))


PUBLIC = dict(public())


def described(path: str) -> str:
    """The docstring."""
    *_, parent, name = path.split(".")
    owner = getattr(vff, parent, None) or getattr(vff.baselines, parent, None)
    return described_in(owner, name) if inspect.isclass(owner) else inspect.getdoc(PUBLIC[path]) or ""


def sections(text: str) -> dict[str, str]:
    """The parts of a docstring by their titles; what is before them is called Summary."""
    titles = list(SECTION.finditer(text))
    starts, ends = [title.end() for title in titles], [*(title.start() for title in titles), len(text)]
    found = {"Summary": text[: ends[0]].strip()}
    parts = zip(titles, starts, ends[1:], strict=True)
    return found | {title[1]: text[start:end].strip("\n") for title, start, end in parts}


def named(section: str) -> list[str]:
    """The names that a section describes, in its order; ``a, b : int`` are two."""
    return [name.lstrip("*") for names in NAMES.findall(section) for name in names.split(", ")]


def signature(own: Any) -> list[str]:
    """The arguments that a user may give."""
    if inspect.isclass(own) and own.__init__ in (object.__init__, Exception.__init__, UserWarning.__init__):
        own = own.__new__ if issubclass(own, tuple) else None
    if own is None or inspect.isabstract(own) or getattr(own, "_is_protocol", False):
        return []
    return [name for name in inspect.signature(own).parameters if name not in ("self", "_cls")]


def gives(own: Any) -> bool:
    return inspect.isfunction(own) and inspect.signature(own).return_annotation not in (None, "None")


@pytest.mark.parametrize("path", PUBLIC)
def test_sections_are_complete(path: str) -> None:
    own, found = PUBLIC[path], sections(described(path))
    assert found["Summary"].split("\n")[0].endswith("."), "the first line is a sentence of its own"
    asked = signature(own)
    told = named(found.get("Parameters", "") or (found.get("Attributes", "") if inspect.isclass(own) else ""))
    assert told[: len(asked)] == asked, "all parameters are described, in their order"
    if "Parameters" in found:
        assert told == asked, "nothing else is"
    assert ("Returns" in found) == gives(own), "what comes back is described, where something does"
    assert ">>>" in found.get("Examples", ""), "there is an example"


@pytest.mark.parametrize("path", PUBLIC)
def test_example_runs(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.suppress(ImportError):
        import matplotlib

        matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    example = doctest.DocTestParser().get_doctest(described(path), {"np": np, "vff": vff}, path, path, 0)
    said: list[str] = []
    doctest.DocTestRunner(optionflags=flags, verbose=False).run(example, out=said.append)
    assert not said, "".join(said)
    with contextlib.suppress(ImportError):
        from matplotlib import pyplot

        pyplot.close("all")
