"""``vff info``: what is in a model, in statistics or in a file of data, as a record for programs and as tables."""

import math
import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from vff.cli.entry import Result
from vff.cli.failures import in_shell_words
from vff.cli.files import kinds_of, load_model, open_rows
from vff.data.checks import label_text
from vff.estimators.saved_records import Description
from vff.estimators.saving import describe
from vff.kernels import normal_form, write_kernel
from vff.report.text import table
from vff.storage.container import MAGIC

_OURS = (".vff", ".vffm")
_DESCRIBED = ("model", "target", "units", "rows", "dropped", "weight", "columns", "features", "elbo", "notes")
_NOTHING = 1e-6
_OF_TARGET, _OF_FUNCTION = "share of variance", "share of var(f)"
_WITH_ERRORS = "ErrorBars"
Units = Mapping[str, str]


def info(options: Namespace) -> Result:
    """Say what a file holds."""
    return _of_model(options.file) if _is_ours(options.file) else _of_data(options)


def _is_ours(path: str) -> bool:
    """By the ending, or by how the file begins when it was renamed."""
    if Path(path).suffix.lower() in _OURS:
        return True
    if not Path(path).is_file():
        return False
    with open(path, "rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def _of_model(path: str) -> Result:
    record = {"file": path, **summary(load_model(path, learnt=False), describe(path))}
    frequencies = ", ".join(f"{term} {count}" for term, count in record.get("frequencies", {}).items())
    choices = f"{record['features']:,} features" + (f"; frequencies: {frequencies}" if frequencies else "")
    provenance = table([(name, _words(value)) for name, value in record["provenance"].items()])
    return Result(record, "\n\n".join([summary_text(record), _columns_text(record), choices, provenance]))


def _columns_text(record: Mapping[str, Any]) -> str:
    domain = record.get("domain", {})
    rows = [
        {
            "column": column["name"],
            "holds": column["kind"] or "-",
            "unit": column["unit"] or "-",
            "levels": "-" if column["levels"] is None else str(column["levels"]),
            "domain": " to ".join(_end(end, column["kind"]) for end in domain.get(column["name"], ())) or "-",
        }
        for column in record["columns"]
    ]
    return table(rows)


def _end(value: float, kind: str | None) -> str:
    """An end of a domain: times are counted in days since 1970."""
    if kind != "datetime":
        return f"{value:.6g}"
    return (datetime(1970, 1, 1) + timedelta(days=value)).isoformat(sep=" ", timespec="minutes")


def _words(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value))
    if isinstance(value, Mapping):
        return " ".join(_words(item) for item in value.values())
    return str(value)


def _of_data(options: Namespace) -> Result:
    source = open_rows(Namespace(data=[options.file], types=options.types, delimiter=options.delimiter), None)
    kinds, parts = kinds_of(source), [part.name for part in source.parts()]
    record = {"file": options.file, "rows": source.n_rows, "files": parts, "columns": kinds}
    rows = "rows are not counted before they are read" if source.n_rows is None else f"{source.n_rows:,} rows"
    listed = table([{"column": name, "holds": kind} for name, kind in kinds.items()])
    return Result(record, f"{options.file}: {len(parts)} file(s), {rows}, {len(kinds)} columns\n\n{listed}")


def summary(model: Any, description: Description) -> dict[str, Any]:
    """What was learnt, in the user's units, and what the file says about itself."""
    known = asdict(description) | {"model": description.estimator, "dropped": model.functions_[0].statistics_.left_out}
    record: dict[str, Any] = {name: known[name] for name in _DESCRIBED}
    record["provenance"] = {name: known[name] for name in ("created", "vff", "numpy")} | description.provenance
    labels = [label_text(label) for label in getattr(model, "_labels", ())]
    if len(model.functions_) > 1:
        classes = {label: _learnt(one) for label, one in zip(labels, model.functions_, strict=True)}
        return record | {"learnt": True, "classes": classes}
    if labels:
        record["labels"] = labels
    if not hasattr(model, "statistics_"):  # a point pattern, which has a model of its cells
        return record | summary(model.model_, description) | {"model": description.estimator}
    if not hasattr(model, "kernel_"):
        return record | {"learnt": False, "terms": [{"term": term.name} for term in model.statistics_.terms]}
    return record | _learnt(model)


def _learnt(model: Any) -> dict[str, Any]:
    """Hyperparameters of one function."""
    terms = zip(normal_form(model.kernel_), model.statistics_.terms, model.fit_.terms, strict=True)
    return {
        "learnt": True,
        "terms": [_term(*each) for each in terms],
        "coefficients": _coefficients(model),
        "kernel": write_kernel(model.kernel_),
        "likelihood": type(model.likelihood_).__name__,
        "scale": model.likelihood_.scale_name,
        "parameters": {name: float(value) for name, value in model.likelihood_.values.items()},
        "hyperparameters": {
            "averaged": model.samples_ is not None,
            "doubt": model.fit_.doubt,
            "asked": getattr(model, "hyperparameters", "auto"),
        },
        "learning": _how_it_ended(model.fit_),
        "domain": {str(column): list(ends) for column, ends in model.domain_.items()},
        "frequencies": {str(key): value for key, value in model.frequencies_.items()},
        **_interactions(model),
    }


def _how_it_ended(fit: Any) -> dict[str, Any]:
    """What learning took, and where it stopped; numbers that are not known, of a fit of an older version, are None."""
    optima = [own.optimum for own in fit.history]
    last, names = optima[-1], [term.name for term in fit.terms]
    return {
        "steps": sum(own.steps for own in optima),
        "evaluations": sum(own.evaluations for own in optima),
        "converged": last.converged,
        "last_gain": None if np.isnan(last.gained) else last.gained,
        "left": None if np.isnan(last.slope) else 0.5 * last.slope**2,
        "at_bounds": [_with_its_term(end, names) for end in last.ends],
    }


def _with_its_term(end: str, names: Sequence[str]) -> str:
    """``lengthscale 1 0 at its upper bound``, as learning says it, with the name of term 1."""
    found = re.fullmatch(r"(\D+?) (\d+)( \d+)? at (.*)", end)
    if found is None or int(found[2]) >= len(names):
        return end
    return f"{found[1]} of {names[int(found[2])]} at {found[4]}"


def _interactions(model: Any) -> dict[str, Any]:
    """Which pairs were tried, where that was asked for."""
    tried = getattr(model, "interactions_", None)
    if tried is None:
        return {}
    pairs = [{"interaction": pair.name, **asdict(pair), "columns": list(map(str, pair.columns))} for pair in tried]
    return {"interactions": {"pairs": pairs, "needed": tried.needed, "most": tried.most, "text": repr(tried)}}


def _coefficients(model: Any) -> list[dict[str, Any]]:
    """The constant and slopes; not those of levels, which may be many."""
    found = model.coefficients(levels=False)
    every = ({name: float(value) for name, value in found[own]._asdict().items()} for own in found.names)
    return [{"coefficient": name, **own} for name, own in zip(found.names, every, strict=True)]


def _term(term: Any, bound: Any, learnt: Any) -> dict[str, Any]:
    lengths = iter(learnt.lengthscales)
    return {
        "term": bound.name,
        "kernel": " * ".join(type(factor).__name__ for factor in term.factors),
        "sd": math.sqrt(learnt.variance),
        "lengthscales": {
            leaf.name if name == "lengthscale" else f"{name} of {leaf.name}": next(lengths)
            for leaf in term.factors
            for name in leaf.given
        },
        "share": learnt.variance_share,
        "concurvity": learnt.concurvity,
        "effective": learnt.edf,
        "supported": learnt.active,
    }


def summary_text(record: Mapping[str, Any]) -> str:
    """The record as lines and tables."""
    units = record["units"]
    days = {column["name"]: "days" for column in record["columns"] if column["kind"] in ("datetime", "duration")}
    lines = [f"{record['model']} of {named(record['target'] or 'a target', units)}, {record['rows']:,} rows"]
    if "classes" in record:
        for label, one in record["classes"].items():
            lines += ["", f"class {label} against the rest", _terms_table(one["terms"], days | units, "", _OF_FUNCTION)]
            lines += _tried(one)
    elif record["learnt"]:
        unit = units.get(record["target"], "") if record["scale"] == "y" else ""
        share = _OF_TARGET if record["likelihood"] in ("Gaussian", _WITH_ERRORS) else _OF_FUNCTION
        lines += ["", _terms_table(record["terms"], days | units, unit, share), *_tried(record), ""]
        if len(record["coefficients"]) > 1:
            lines += [table([_row(own) for own in record["coefficients"]]), ""]
        name = "Gaussian" if record["likelihood"] == _WITH_ERRORS else record["likelihood"]
        lines += [f"{name} likelihood" + _parameters(record), f"bound on log p(y): {_nats(record)}"]
        lines += [f"hyperparameters: {_how_known(**record['hyperparameters'])}"]
        lines += [f"learning: {_in_words(**record['learning'])}"] if record["learning"]["steps"] else []
    else:
        lines += [f"sums over the rows, not learnt yet, for {', '.join(term['term'] for term in record['terms'])}"]
    lines += [f"note: {in_shell_words(note)}" for note in record.get("notes", ())]
    return "\n".join(lines)


def _how_known(averaged: bool, doubt: float | None, asked: str) -> str:
    """Whether predictions average over what learning does not know, and why."""
    how = "averaged over" if averaged else "taken for known"
    how += "" if asked == "auto" else f", as hyperparameters={asked!r} asks"
    if doubt is None:
        return how if averaged or asked != "auto" else f"{how}; what not knowing them adds was not estimated"
    percent = f"{100 * doubt:.0f}" if doubt >= 0.1 else f"{100 * doubt:.1g}"
    return f"{how}; not knowing them {'adds' if averaged else 'would add'} about {percent} % to variances"


def _in_words(
    steps: int,
    evaluations: int,
    converged: bool,
    last_gain: float | None,
    left: float | None,
    at_bounds: Sequence[str],
) -> str:
    """How learning ended."""
    said = f"{steps} steps, {evaluations} evaluations of the bound"
    if last_gain is not None and left is not None:
        said += f"; the last step gained {last_gain:.1g} nats, {left:.1g} are left"
    said += "" if converged else "; it did not converge"
    return said + (f"; {', '.join(at_bounds)}" if at_bounds else "")


def _tried(record: Mapping[str, Any]) -> list[str]:
    """The table of pairs, below that of terms."""
    return ["", record["interactions"]["text"]] if "interactions" in record else []


def named(column: str, units: Units) -> str:
    """A column with its unit, as labels have it."""
    return f"{column} ({units[column]})" if column in units else column


def _terms_table(terms: list[dict[str, Any]], units: Units, unit: str, share: str) -> str:
    rows = [
        {
            "term": term["term"],
            "kernel": term["kernel"],
            "lengthscale": ", ".join(_value(name, v, units) for name, v in term["lengthscales"].items()) or "-",
            "prior sd": _quantity(term["sd"], unit),
            share: _share(term),
            "concurvity": _part(term["concurvity"]) if term["supported"] else "-",
            "coefficients": f"{term['effective']:.1f}",
        }
        for term in terms
    ]
    return "\n".join([table(rows), *_on_shares([term["share"] for term in terms])])


def _part(share: float | None) -> str:
    return "-" if share is None else f"{100 * (share if abs(share) > _NOTHING else 0.0):.3g} %"


def _share(term: Mapping[str, Any]) -> str:
    """A term that came to nothing may have margins of products."""
    share = term["share"]
    return "no effect" if not term["supported"] and (share is None or abs(share) < _NOTHING) else _part(share)


def _on_shares(shares: list[float | None]) -> list[str]:
    """What they add up to, and what a share below zero means where there is one."""
    known = [share for share in shares if share is not None]
    if len(known) < len(shares) or len(known) < 2:
        return []
    text = f"shares add up to {_part(sum(known))}"
    return [text + "; one below zero offsets others" if min(known) < -_NOTHING else text]


def _value(name: str, value: float, units: Units) -> str:
    """A lengthscale, known by its column; of others, what they are."""
    what, of, _ = name.rpartition(" of ")
    return _quantity(value, units.get(name, "")) if name in units or not of else f"{what} {value:.4g}"


def _row(own: Mapping[str, Any]) -> dict[str, str]:
    """One coefficient with its interval."""
    between = f"{own['lower']:.4g} to {own['upper']:.4g}"
    return {"coefficient": own["coefficient"], "mean": f"{own['mean']:.4g}", "95 % between": between}


def _quantity(value: float, unit: str) -> str:
    return f"{value:.4g} {unit}".rstrip()


def _parameters(record: Mapping[str, Any]) -> str:
    """What was learnt of the likelihood, in the units of the target."""
    if record["scale"] == "y" and [*record["parameters"]] == ["variance"]:
        noise = math.sqrt(record["parameters"]["variance"])
        beside = " beside the error bars" if record["likelihood"] == _WITH_ERRORS else ""
        return f": noise of sd {_quantity(noise, record['units'].get(record['target'], ''))}{beside}"
    values = ", ".join(f"{name} {value:.4g}" for name, value in record["parameters"].items())
    return f": {values}" if values else ""


def _nats(record: Mapping[str, Any]) -> str:
    elbo = record["elbo"]
    return "not known after rows came in pieces" if elbo is None or math.isnan(elbo) else f"{elbo:,.1f} nats"
