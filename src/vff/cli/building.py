"""From options to an estimator, before any row is read."""

from argparse import Namespace
from typing import Any

from vff.cli.failures import UsageError
from vff.cli.options import domain, frequencies, texts
from vff.cli.rows import DataError, kinds_of, need_columns
from vff.data.source import Source
from vff.estimators import GPClassifier, GPRegressor
from vff.kernels import Kernel, normal_form
from vff.kernels.formula import ColumnError, parse_terms
from vff.likelihoods import AbstractLikelihood, binary_names, by_name, exposed_names
from vff.words import shortened, shown


def make_model(options: Namespace, source: Source, units: dict[str, str]) -> GPRegressor | GPClassifier:
    """The estimator that the options describe."""
    if options.target is None:
        raise UsageError("--target was expected to name the column to explain, found none; give --target COLUMN")
    roles = {options.target: "the target"}
    for option in ("weight", "exposure"):
        if getattr(options, option, None):
            roles[getattr(options, option)] = f"the {option}"
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
    }
    kernel, likelihood = _kernel(options, kinds, roles), _likelihood(options)
    _check_units(units, kernel, roles)
    if options.terms is None:
        kernel = None  # the same terms, and a text with too many values for levels is refused
    if getattr(options, "classify", False):
        return GPClassifier(kernel, likelihood=likelihood or "logit", **choices)
    return GPRegressor(kernel, likelihood=likelihood or "gaussian", **choices)


def _kernel(options: Namespace, kinds: dict[str, str], roles: dict[str, str]) -> Kernel:
    try:
        return parse_terms(options.terms or ".", kinds, apart=roles)
    except ColumnError:
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


def units_of(options: Namespace) -> dict[str, str]:
    """Units by column, the target among them."""
    return texts(options.units, "--units", "hour=h, load=kW")


def _check_units(units: dict[str, str], kernel: Kernel, roles: dict[str, str]) -> None:
    """Before the rows are read, since it is after they were that units are kept."""
    used = dict.fromkeys(str(factor.column) for term in normal_form(kernel) for factor in term.factors)
    known = [*used, *(name for name, role in roles.items() if role != "the weight")]
    unknown = [name for name in units if name not in known]
    if unknown:
        raise ColumnError(
            f"--units was expected to name columns of the model, found {shown(unknown[0])}; it has "
            f"{', '.join(map(shortened, known[:12]))}"
        )


def provenance_of(options: Namespace) -> dict[str, Any]:
    """What a file should remember of the command that made it."""
    given = {name: getattr(options, name, None) for name in ("target", "weight", "terms", "missing", "faulty")}
    return {**given, "data": list(options.data)}


def need_domains(model: GPRegressor | GPClassifier) -> None:
    """Refuse statistics whose domain would be that of the rows at hand, and fit no other part."""
    if model.kernel is None:
        raise UsageError("--terms was expected, so that all parts have the same; write it as in --terms 'hour + zone'")
    factors = [factor for term in normal_form(model.kernel) for factor in term.factors]
    smooth = dict.fromkeys(str(factor.column) for factor in factors if "domain" in factor.factor.options)
    known = model.domain if isinstance(model.domain, dict) else {}
    missing = [name for name in smooth if name not in known]
    if missing:
        raise UsageError(
            f"--domain was expected to hold every column of numbers, so that parts add up, and {shown(missing[0])} is "
            f"missing; write it as in --domain '{missing[0]}=0:24'"
        )
