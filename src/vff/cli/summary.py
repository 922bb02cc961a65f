"""A model in words: a record for programs, and tables for people."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from vff.cli.failures import in_shell_words
from vff.estimators.saved_records import Description
from vff.kernels import normal_form, write_kernel
from vff.report.text import table

Units = Mapping[str, str]


def summary(model: Any, description: Description) -> dict[str, Any]:
    """What was learnt, in the user's units, and what the file says about itself."""
    record: dict[str, Any] = {
        "model": description.estimator,
        "target": description.target,
        "units": description.units,
        "rows": description.rows,
        "dropped": model.functions_[0].statistics_.left_out,
        "weight": description.weight,
        "columns": [asdict(column) for column in description.columns],
        "features": description.features,
        "elbo": description.elbo,
        "notes": list(description.notes),
        "provenance": {
            "created": description.created,
            "vff": description.vff,
            "numpy": description.numpy,
            **description.provenance,
        },
    }
    if len(model.functions_) > 1:
        each = zip(model.classes_, model.functions_, strict=True)
        return record | {"learnt": True, "classes": {label_text(label): _learnt(one) for label, one in each}}
    if hasattr(model, "classes_"):
        record["labels"] = [label_text(label) for label in model.classes_]
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
        "kernel": write_kernel(model.kernel_),
        "likelihood": type(model.likelihood_).__name__,
        "scale": model.likelihood_.scale_name,
        "parameters": {name: float(value) for name, value in model.likelihood_.values.items()},
        "domain": {str(column): list(ends) for column, ends in model.domain_.items()},
        "frequencies": {str(key): value for key, value in model.frequencies_.items()},
    }


def _term(term: Any, bound: Any, learnt: Any) -> dict[str, Any]:
    lengths = iter(learnt.lengthscales)
    return {
        "term": bound.name,
        "kernel": " * ".join(type(factor).__name__ for factor in term.factors),
        "sd": math.sqrt(learnt.variance),
        "lengthscales": {
            str(leaf.column) if name == "lengthscale" else f"{name} of {leaf.column}": next(lengths)
            for leaf in term.factors
            for name in leaf.given
        },
        "share": learnt.variance_share,
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
            lines += ["", f"class {label} against the rest", _terms_table(one["terms"], days | units, "")]
    elif record["learnt"]:
        unit = units.get(record["target"], "") if record["scale"] == "y" else ""
        lines += ["", _terms_table(record["terms"], days | units, unit), ""]
        lines += [f"{record['likelihood']} likelihood" + _parameters(record), f"bound on log p(y): {_nats(record)}"]
    else:
        lines += [f"sums over the rows, not learnt yet, for {', '.join(term['term'] for term in record['terms'])}"]
    lines += [f"note: {in_shell_words(note)}" for note in record.get("notes", ())]
    return "\n".join(lines)


def label_text(label: Any) -> str:
    """A class as it is written; whole numbers of a CSV file are read as 2.0, and were 2."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def named(column: str, units: Units) -> str:
    """A column with its unit, as labels have it."""
    return f"{column} ({units[column]})" if column in units else column


def _terms_table(terms: list[dict[str, Any]], units: Units, unit: str) -> str:
    rows = [
        {
            "term": term["term"],
            "kernel": term["kernel"],
            "lengthscale": ", ".join(_quantity(v, units.get(c, "")) for c, v in term["lengthscales"].items()) or "-",
            "prior sd": _quantity(term["sd"], unit),
            "share of variance": f"{100 * term['share']:.3g} %" if term["supported"] else "no effect",
            "coefficients": f"{term['effective']:.1f}",
        }
        for term in terms
    ]
    return table(rows)


def _quantity(value: float, unit: str) -> str:
    return f"{value:.4g} {unit}".rstrip()


def _parameters(record: Mapping[str, Any]) -> str:
    """What was learnt of the likelihood, in the units of the target."""
    if record["scale"] == "y" and [*record["parameters"]] == ["variance"]:
        noise = math.sqrt(record["parameters"]["variance"])
        return f": noise of sd {_quantity(noise, record['units'].get(record['target'], ''))}"
    values = ", ".join(f"{name} {value:.4g}" for name, value in record["parameters"].items())
    return f": {values}" if values else ""


def _nats(record: Mapping[str, Any]) -> str:
    elbo = record["elbo"]
    return "not known after rows came in pieces" if elbo is None or math.isnan(elbo) else f"{elbo:,.1f} nats"
