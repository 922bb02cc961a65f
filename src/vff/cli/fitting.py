"""``vff fit``, ``vff update``, ``vff forget``: models of rows; ``vff moments``, ``vff merge``: their statistics."""

import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from vff.cli.entry import Result
from vff.cli.failures import OutputError, UsageError
from vff.cli.files import (
    DataError,
    check_output,
    kinds_of,
    load_model,
    need_columns,
    open_for,
    open_rows,
    read_pairs,
)
from vff.cli.info import summary, summary_text
from vff.cli.options import domain, frequencies, texts
from vff.cli.progress import Reporter, duration
from vff.data import text_in
from vff.data.source import Source
from vff.estimators import GPClassifier, GPRegressor
from vff.estimators.saved_records import Description
from vff.estimators.saving import describe, save
from vff.kernels import normal_form
from vff.kernels.columns import ColumnError, Columns
from vff.kernels.formula import Formula
from vff.kernels.reading import parse_formula
from vff.likelihoods import AbstractLikelihood, binary_names, by_name, exposed_names
from vff.words import shortened, shown

_OF_ROWS = ("target", "terms", "weight", "noise_std", "offset", "likelihood", "exposure", "domain", "frequencies",
            "edges", "interactions", "hyperparameters", "types", "delimiter", "checkpoint")  # fmt: skip
Made = tuple[Any, Mapping[str, str], Mapping[str, Any]]
"""An estimator, units by column, and what a file should remember of where it comes from."""


def _written(options: Namespace) -> Result:
    """Make a model or statistics, write the file, and say what is in it."""
    make, ending = _MAKERS[options.command]
    out = check_output(options, (ending,))
    began = time.monotonic()
    with Reporter(quiet=options.quiet) as reporter:
        model, units, provenance = make(options, reporter)
        save(model, out, units=dict(units), provenance={name: value for name, value in provenance.items() if value})
        found = summary(model, describe(out))
    seconds = time.monotonic() - began
    if ending == ".vff":
        record = {"out": str(out), "seconds": round(seconds, 3), **found}
        return Result(record, f"{summary_text(record)}\n\nwrote {out} in {duration(seconds)}")
    parts = {"parts": list(options.parts)} if "parts" in options else {}
    count = f", of {len(options.parts)} part(s)" if parts else ""
    return Result({"out": str(out), **parts, **found}, f"{summary_text(found)}\nwrote {out}{count}")


fit = update = forget = moments = merge = _written


def _fitted(options: Namespace, reporter: Reporter) -> Made:
    """A model of rows in one or more files, or of statistics."""
    statistics = [name for name in options.data if name.lower().endswith(".vffm")]
    if not statistics:
        return _from_rows(options, reporter)
    if len(statistics) < len(options.data):
        raise UsageError("DATA was expected to be rows or statistics, found both; fit one kind at a time")
    given = [name for name in _OF_ROWS if getattr(options, name) is not None] + ["classify"] * options.classify
    if given:
        name = given[0].replace("_", "-")
        raise UsageError(f"--{name} is for rows, found it beside statistics, which have it settled; leave it out")
    reporter.phase("learning")
    model, before = _together(options.data)
    model.learn()
    return model, {**before.units, **_units_of(options)}, {**before.provenance, "data": list(options.data)}


def _from_rows(options: Namespace, reporter: Reporter) -> Made:
    """A model of rows, or of ``vff moments`` their sums."""
    units = _units_of(options)
    source = open_rows(options, reporter)
    model = _make_model(options, source, units)
    learn = model.fit
    if options.command == "moments":
        assert isinstance(model, GPRegressor)
        learn = model.collect
    reporter.phase("reading the rows")
    learn(source, options.target, sample_weight=options.weight)
    given = {
        name: getattr(options, name, None)
        for name in ("target", "weight", "noise_std", "offset", "terms", "missing", "faulty")
    }
    return model, units, {**given, "data": list(options.data)}


def _changed(options: Namespace, reporter: Reporter) -> Made:
    """A model with more rows or fewer."""
    model, before = load_model(options.model), describe(options.model)
    target, weight = options.target or before.target, options.weight or before.provenance.get("weight")
    if target is None:
        raise UsageError("--target was expected, since the model does not know its name; give --target COLUMN")
    source = open_for(model, options, reporter)
    need_columns(source, [(target, "--target"), *([(weight, "--weight")] if weight else [])])
    reporter.phase("reading the rows")
    change = model.partial_fit if options.command == "update" else model.forget
    change(source, target, sample_weight=weight)
    steps = [*before.provenance.get("steps", []), {"command": options.command, "data": list(options.data)}]
    return model, before.units, {**before.provenance, "target": target, "steps": steps}


def _merged(options: Namespace, reporter: Reporter) -> Made:
    """The sum of statistics."""
    reporter.phase("adding up statistics")
    model, before = _together(options.parts)
    return model, before.units, {**before.provenance, "data": list(options.parts)}


_MAKERS: dict[str, tuple[Callable[[Namespace, Reporter], Made], str]] = {
    "fit": (_fitted, ".vff"),
    "update": (_changed, ".vff"),
    "forget": (_changed, ".vff"),
    "moments": (_from_rows, ".vffm"),
    "merge": (_merged, ".vffm"),
}
"""What each command makes, and how the name of its file ends."""


def _together(paths: Sequence[str]) -> tuple[GPRegressor, Description]:
    """The statistics of all parts, refused when one is given twice, and what the first says of itself."""
    twice = next((path for number, path in enumerate(paths) if path in paths[:number]), None)
    if twice:
        raise UsageError(f"every part was expected once, found {twice} twice, whose rows would count double; drop one")
    total, described = _statistics(paths[0]), [describe(path) for path in paths]
    targets = dict.fromkeys(str(description.target) for description in described)
    if len(targets) > 1:
        raise DataError(f"parts of one target were expected, found {' and '.join(targets)}; merge those of one")
    for path in paths[1:]:
        total = total.merge(_statistics(path))
    return total, described[0]


def _statistics(path: str) -> GPRegressor:
    model = load_model(path, learnt=False)
    if not isinstance(model, GPRegressor) or hasattr(model, "kernel_"):
        raise OutputError(f"statistics of 'vff moments' were expected, found a fitted model in {path}; leave it out")
    return model


def _make_model(options: Namespace, source: Source, units: dict[str, str]) -> GPRegressor | GPClassifier:
    """The estimator that the options describe."""
    if options.target is None:
        raise UsageError("--target was expected to name the column to explain, found none; give --target COLUMN")
    roles = {options.target: "the target"}
    for option in ("weight", "exposure", "offset", "noise_std"):
        if getattr(options, option, None):
            roles[getattr(options, option)] = f"the {option.replace('_', '-')}"
    need_columns(source, [(name, f"--{role.split()[-1]}") for name, role in roles.items()])
    kinds = kinds_of(source)
    if kinds[options.target] == "text" and not getattr(options, "classify", False):
        raise DataError(
            f"--target was expected to hold numbers, and {shown(options.target)} holds text; give --classify if these "
            "are labels, and write 1.5 for 1,5 if these are numbers"
        )
    choices: dict[str, Any] = {
        "domain": domain(options.domain),
        "frequencies": frequencies(options.frequencies),
        "edges": "auto" if options.edges is None else options.edges,
        "interactions": getattr(options, "interactions", None),
        "hyperparameters": getattr(options, "hyperparameters", None) or "auto",
        "missing": options.missing or "effect",
        "offset": options.offset,
    }
    (formula, whole), likelihood = _formula(options, source, kinds, roles), _likelihood(options)
    _check_units(units, formula, roles)
    kernel = options.terms  # None is the same terms, and a text with too many values for levels is refused
    if options.command == "moments":
        _need_domains(options, formula, choices["domain"])
    if not whole:
        kernel, choices["offset"] = formula.kernel, formula.offset
    if getattr(options, "classify", False):
        if options.noise_std:
            raise UsageError("--noise-std is for numbers, found it beside --classify; leave one of them out")
        return GPClassifier(kernel, likelihood=likelihood or "logit", **choices)
    return GPRegressor(kernel, likelihood=likelihood or "gaussian", noise_std=options.noise_std, **choices)


def _formula(options: Namespace, source: Source, kinds: dict[str, str], roles: dict[str, str]) -> tuple[Formula, bool]:
    """What the terms mean, and whether the text says it all: a file of neighbours is read once."""
    files = []

    def read(path: str, kind: str) -> Any:
        files.append(path)
        return read_pairs(path, kind)

    columns = Columns(dict(kinds), dict(roles), target=options.target, look=partial(text_in, source))
    try:
        return parse_formula(options.terms or ".", columns, terms=True, read=read), not files
    except (ColumnError, DataError):
        raise
    except ValueError as error:
        raise UsageError(f"--{error}") from error


def _likelihood(options: Namespace) -> str | AbstractLikelihood | None:
    name, exposure = getattr(options, "likelihood", None), getattr(options, "exposure", None)
    if getattr(options, "classify", False):
        labels = [own for own in binary_names() if own != "bernoulli"]  # which is a logit by a name for numbers
        if name is not None and name not in labels:
            raise UsageError(
                f"--classify takes --likelihood {' or '.join(labels)}, found {name}; leave one of them out"
            )
        if exposure:
            raise UsageError("--exposure is for counts, found it beside --classify; leave one of them out")
        return name
    counts = exposed_names()
    if exposure and name not in counts:
        found = f"found {name or 'gaussian'}"
        raise UsageError(f"--exposure needs --likelihood {' or '.join(counts)}, {found}; give one of these")
    return by_name(name, exposure=exposure) if exposure and name else name


def _units_of(options: Namespace) -> dict[str, str]:
    """Units by column, the target among them."""
    return texts(options.units, "--units", "hour=h, load=kW")


def _check_units(units: dict[str, str], formula: Formula, roles: dict[str, str]) -> None:
    """Before the rows are read, since it is after they were that units are kept."""
    used = dict.fromkeys(str(column) for term in normal_form(formula.kernel) for column in term.columns)
    offset = [] if formula.offset is None else [str(formula.offset)]
    known = [*used, *offset, *(name for name, role in roles.items() if role != "the weight")]
    unknown = [name for name in units if name not in known]
    if unknown:
        raise ColumnError(
            f"--units was expected to name columns of the model, found {shown(unknown[0])}; it has "
            f"{', '.join(map(shortened, known[:12]))}"
        )


def _need_domains(options: Namespace, formula: Formula, domain: Any) -> None:
    """Refuse statistics whose domain would be that of the rows at hand, and fit no other part."""
    if options.terms is None:
        raise UsageError("--terms was expected, so that all parts have the same; write it as in --terms 'hour + zone'")
    factors = [factor for term in normal_form(formula.kernel) for factor in term.factors]
    given = [factor.columns for factor in factors if "domain" in factor.factor.options]
    smooth = dict.fromkeys(str(column) for columns in given for column in columns)
    known = domain if isinstance(domain, dict) else {}
    missing = [name for name in smooth if name not in known]
    if missing:
        raise UsageError(
            f"--domain was expected to hold every column of numbers, so that parts add up, and {shown(missing[0])} is "
            f"missing; write it as in --domain '{missing[0]}=0:24'"
        )
