"""``vff moments`` and ``vff merge``: statistics of rows, made where the rows are and added elsewhere."""

from argparse import Namespace
from collections.abc import Sequence

from vff.cli.building import make_model, need_domains, provenance_of, units_of
from vff.cli.failures import OutputError, UsageError
from vff.cli.models import about, load_model, save_model
from vff.cli.progress import Reporter
from vff.cli.results import Result, check_checkpoint, check_output
from vff.cli.rows import DataError, open_rows
from vff.cli.summary import summary, summary_text
from vff.estimators import GPRegressor
from vff.estimators.saved_records import Description


def moments(options: Namespace) -> Result:
    """Sum up rows."""
    out, units = check_output(options.out, options.data, (".vffm",), force=options.force), units_of(options)
    check_checkpoint(options)
    with Reporter(quiet=options.quiet) as reporter:
        reporter.phase("looking at the files")
        source = open_rows(options, reporter)
        model = make_model(options, source, units)
        need_domains(model)
        assert isinstance(model, GPRegressor)
        reporter.phase("reading the rows")
        model.collect(source, options.target, sample_weight=options.weight)
        description = save_model(model, out, units, provenance_of(options))
    record = {"out": str(out), **summary(model, description)}
    return Result(record, f"{summary_text(record)}\nwrote {out}")


def merge(options: Namespace) -> Result:
    """Add up statistics."""
    out = check_output(options.out, options.parts, (".vffm",), force=options.force)
    with Reporter(quiet=options.quiet) as reporter:
        reporter.phase("adding up statistics")
        model, before = merged(options.parts)
        description = save_model(model, out, before.units, {**before.provenance, "data": list(options.parts)})
    record = {"out": str(out), "parts": list(options.parts), **summary(model, description)}
    return Result(record, f"{summary_text(record)}\nwrote {out}, of {len(options.parts)} part(s)")


def merged(paths: Sequence[str]) -> tuple[GPRegressor, Description]:
    """The statistics of all parts together, refused when one is given twice, and what the first says of itself."""
    twice = next((path for place, path in enumerate(paths) if path in paths[:place]), None)
    if twice:
        raise UsageError(f"every part was expected once, found {twice} twice, whose rows would count double; drop one")
    total, described = _statistics(paths[0]), [about(path) for path in paths]
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
