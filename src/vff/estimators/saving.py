"""Models and statistics as files: everything a fitted estimator knows, and of the rows it has seen their sums.

A file holds the sums over the rows, the posterior and the record of the fit, so that a loaded model answers with the
same bits and takes more rows as if it had never left. Rows themselves are not in it, with one exception: where a model
of one column has a domain that is smaller than its data, the rows beyond it cannot be summed, and the file holds their
distances, weights and targets; ``rows_beyond`` of its description counts them. Levels of categories and labels of
classes are in the file by name.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from vff.estimators.base import AdditiveModel
from vff.estimators.classifier import GPClassifier
from vff.estimators.cox import CoxProcess, PatternOnGrid
from vff.estimators.fitting import Fitted
from vff.estimators.formulas import in_file
from vff.estimators.pattern import Space
from vff.estimators.regressor import GPRegressor
from vff.estimators.saved_checks import check_estimator, check_fit, check_kernel, check_member, check_pattern, demand
from vff.estimators.saved_errors import check_error_bars
from vff.estimators.saved_records import Description, Labels, Pattern, Saved, described_kernel, description_of
from vff.estimators.upgrade import HELD, upgraded, with_constant, with_shares
from vff.inference import Samples
from vff.kernels import parse_kernel, write_kernel
from vff.storage import VERSION, Codec, Content, FileError, check_replaceable, read_file, write_file
from vff.words import LONGEST_PATH, shortened, shown

Model = GPRegressor | GPClassifier | CoxProcess
_CLASSES: dict[str, type[Model]] = {kind.__name__: kind for kind in (GPRegressor, GPClassifier, CoxProcess)}
_FRAMES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}
_APART = ("kernel", "likelihood", "priors")  # parameters with a type of their own
_LABELS = re.compile(r"[<>|=]?(?:[biuf][0-9]{1,2}|U[0-9]{1,9}|O)")
_ROOM = 2**18  # characters of labels, which NumPy makes as long as the longest
_CODEC = Codec("vff", {"Samples": Samples, "Saved": Saved})


def save(
    model: Model,
    path: str | os.PathLike[str],
    *,
    units: Mapping[Any, str] | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted model, or the statistics of one that has summed rows and not learnt yet, to one file.

    ``units`` are texts by column, or by the name of the target. ``provenance`` is a dictionary of plain values. What
    ``load`` would refuse is not written.
    """
    _check_path(path, "save")
    check_replaceable(path)
    saved = _saved(model)
    given = getattr(model, "units_", None) if units is None else units
    about = description_of(model, saved, dict(given or {}), dict(provenance or {}))
    record = {"about": _CODEC.encode(about, Description), "model": _CODEC.encode(saved, Saved)}
    kind = _kind_of(saved)
    try:
        _restored(Content(kind, VERSION, record))
    except Exception as error:
        said = _sentence(error).rsplit("; ", 1)[0]
        raise FileError(
            f"{path}: a model that can be loaded again was expected, and this one cannot: {said}; nothing was written: "
            "fit it again, then save it"
        ) from error
    write_file(path, kind, record)


def load(path: str | os.PathLike[str]) -> Model:
    """The model that a file holds. Files from elsewhere are safe to load: they hold numbers and names alone.

    Parameters
    ----------
    path : str or Path
        Of a file that ``save`` has written.

    Returns
    -------
    GPRegressor, GPClassifier or CoxProcess
        Fitted; it predicts the same bits, and ``partial_fit`` goes on with it.

    Examples
    --------
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> model = vff.GPRegressor(frequencies=10).fit(X, np.sin(X[:, 0]))
    >>> model.save("sine.vff")
    >>> bool((vff.load("sine.vff").predict(X) == model.predict(X)).all())
    True
    """
    content = _read(path, "load")
    try:
        described, model = _restored(content)
    except ImportError as error:
        raise FileError(f"{path}: {error}") from error
    except Exception as error:
        raise FileError(f"{path}: a model of vff was expected, and its record cannot be: {_sentence(error)}") from error
    if described.units:
        vars(model)["units_"] = described.units
    if described.target is not None:
        vars(model)["target_name_"] = described.target
    return model


def describe(path: str | os.PathLike[str]) -> Description:
    """What a file says about itself, without the model."""
    content = _read(path, "describe")
    try:
        return _CODEC.decode(_parts(content)[0], Description)
    except Exception as error:
        raise FileError(f"{path}: a description was expected, and it cannot be: {_sentence(error)}") from error


def _check_path(path: Any, what: str) -> None:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"{what} was expected to be given the path of a file, found {shown(path)}; give a text or a Path"
        )


def _read(path: Any, what: str) -> Content:
    _check_path(path, what)
    try:
        return read_file(path, ("model", "statistics"))
    except FileNotFoundError as error:
        said = f"{shortened(path, LONGEST_PATH)}: a file that save has written was expected, found nothing"
        missing = FileNotFoundError(f"{said}; check the path")
        missing.errno = error.errno
        raise missing from error


def _sentence(error: Exception) -> str:
    """What an error says, on one line, with what to do."""
    said = f"{' '.join(str(error).split()) or type(error).__name__:.300}"
    return said if "; " in said else f"{said}; write it anew with save"


def _kind_of(saved: Saved) -> str:
    return "model" if saved.fit is not None or saved.members else "statistics"


def _restored(content: Content) -> tuple[Description, Model]:
    """What a record stands for, when all in it fits together."""
    about, tree = _parts(content)
    described = _CODEC.decode(about, Description)
    saved = _CODEC.decode(upgraded(tree, content.version), Saved)
    expected, count = _kind_of(saved), len(described.columns)
    if content.kind != expected:
        raise FileError(f"a {expected} was expected, found a file of kind {content.kind!r}")
    demand(saved.n_features == count, f"{count} columns, as the file describes,", saved.n_features)
    with np.errstate(all="ignore"):
        model = _loaded(saved)
    kernel = described_kernel(model, saved)
    text = None if kernel is None else write_kernel(kernel)
    demand(described.kernel == text, f"a description of the kernel {text!s:.100}", described.kernel)
    return described, model


def _parts(content: Content) -> tuple[Any, Any]:
    record = content.record
    if not isinstance(record, dict) or set(record) != {"about", "model"}:
        raise FileError("a record with about and model was expected, found another; write the file anew with save")
    return record["about"], record["model"]


# --- writing ---------------------------------------------------------------------------------------------------------


def _saved(model: Any) -> Saved:
    if type(model) not in _CLASSES.values():
        raise TypeError(f"save takes a {', '.join(_CLASSES)} of vff, got {type(model).__name__}; give it one of these")
    members = [one for one in getattr(model, "functions_", ()) if one is not model]
    if not members and not hasattr(model, "statistics_"):
        raise ValueError(
            f"this {type(model).__name__} has seen no rows, so that there is nothing to save; fit it first"
        )
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name not in _APART}
    if not isinstance(parameters["random_state"], int | np.integer | None):
        parameters["random_state"] = None
    fit, names = getattr(model, "fit_", None), getattr(model, "feature_names_in_", None)
    if fit is not None and fit.samples is not None:  # targets are rows
        fit = replace(fit, samples=replace(fit.samples, y=None))
    rows = getattr(model, "statistics_", None)
    if rows is not None and fit is None:  # a file of sums is given away as such
        rows = replace(rows, few=None)
    kernel: Any = model.kernel
    classes = getattr(model, "classes_", None)
    if classes is not None and classes.dtype.kind == "U":  # which may have room for more than it holds
        classes = np.array(classes.tolist(), np.str_)
    return Saved(
        type(model).__name__,
        None if isinstance(kernel, str | None) else write_kernel(kernel),
        getattr(model, "likelihood", None),
        model.priors,
        parameters,
        model.n_features_in_,
        None if names is None else tuple(map(str, names)),
        rows,
        fit,
        getattr(model, "timing_", None),
        None if classes is None else Labels(classes.dtype.str, tuple(classes.tolist())),
        tuple(map(_saved, members)),
        _pattern(model) if isinstance(model, CoxProcess) else None,
        kernel if isinstance(kernel, str) else None,
        getattr(model, "interactions_", None),
    )


def _pattern(model: CoxProcess) -> Pattern:
    space, frame = model._space, model._space.frame
    library = None if frame is None else frame.__module__.split(".")[0]
    if library is not None and library not in _FRAMES:
        raise FileError(
            f"points of a {library} table were fitted, and a file knows {', '.join(_FRAMES)}; use one of these"
        )
    return Pattern(
        space.columns, space.kinds, library, model.window_, model.grid_, model.counts_, model.exposure_,
        model.inference_, model.notes_,
    )  # fmt: skip


# --- reading ---------------------------------------------------------------------------------------------------------


def _loaded(saved: Saved) -> Any:
    kind = _CLASSES[saved.estimator]
    parameters = {**saved.parameters, "priors": saved.priors}
    parameters["kernel"] = saved.formula if saved.kernel is None else parse_kernel(saved.kernel)
    if kind is not CoxProcess:
        parameters["likelihood"] = saved.likelihood
    unknown = set(parameters) - set(kind._get_param_names())
    if unknown:
        raise FileError(f"parameters of {saved.estimator} were expected, found {sorted(unknown)}")
    model: Any = kind(**parameters)
    fill = _fill_cox if saved.pattern is not None else _fill_classes if saved.members else _fill
    fill(model, saved)
    demand(saved.n_features >= 1, "a number of columns", saved.n_features)
    demand(
        saved.names is None or len(saved.names) == saved.n_features,
        f"names for {saved.n_features} columns",
        saved.names,
    )
    model.n_features_in_ = saved.n_features
    if saved.names is not None:
        model.feature_names_in_ = np.array(saved.names, dtype=object)
    return model


def _fill(model: AdditiveModel, saved: Saved) -> None:
    rows, fit = saved.rows, saved.fit
    if rows is None or isinstance(model, CoxProcess):
        raise FileError("sums over rows were expected, found none")
    check_estimator(saved, rows, in_file(model.kernel, saved))
    check_error_bars(rows, fit)
    if fit is None:
        vars(model)["statistics_"] = rows
        return
    check_fit(fit, rows)
    whole = with_shares(with_constant(fit, model._centred()), rows)
    if whole.posterior is not fit.posterior:
        check_fit(whole, rows)
    model._store(Fitted(rows, whole, saved.timing or {}, saved.interactions), lambda message: None)
    if isinstance(model, GPClassifier):
        model.classes_ = _labels(saved.classes, 2)


def _labels(saved: Labels | None, count: int) -> np.ndarray:
    """So many labels, and no more memory than they need: a type of two words could ask for gigabytes."""
    if saved is None:
        raise FileError("the classes of a classifier were expected, found none")
    values = saved.values
    demand(len(values) == count, f"{count} classes", len(values))
    demand(_LABELS.fullmatch(saved.dtype) is not None, "labels of text or numbers", saved.dtype)
    dtype = np.dtype(saved.dtype)
    if dtype.kind == "U":
        demand(all(isinstance(value, str) for value in values), "labels of text", values)
        lengths = [max(1, len(value)) for value in values]
        demand(dtype.itemsize == 4 * max(lengths), f"labels of {max(lengths)} characters", saved.dtype)
        demand(count * max(lengths) <= 4 * sum(lengths) + _ROOM, "labels of similar length", max(lengths))
    labels = np.empty(count, dtype)
    labels[:] = values
    if len(set(labels.tolist())) < labels.size:
        raise FileError("classes that differ were expected, found one of them twice")
    return labels


def _fill_classes(model: Any, saved: Saved) -> None:
    count = len(saved.members)
    demand(isinstance(model, GPClassifier) and count >= 3, "a model for every one of three or more classes", count)
    model.classes_ = _labels(saved.classes, count)
    members = [_member(model, own, "GPClassifier") for own in saved.members]
    for own in saved.members:
        demand(own.n_features == saved.n_features, f"{saved.n_features} columns", own.n_features)
    model._gather(members, model.classes_)


def _member(model: Any, member: Saved, estimator: str) -> Any:
    """One of the models that a model is made of; the kernel that the whole prints is that of its parts."""
    loaded = _loaded(check_member(member, estimator))
    check_kernel(in_file(model.kernel, member), member.rows, member.interactions)
    return loaded


def _fill_cox(model: Any, saved: Saved) -> None:
    pattern = saved.pattern
    if pattern is None or not isinstance(model, CoxProcess) or len(saved.members) != 1:
        raise FileError("a Cox process with the model of its cells was expected, found another")
    check_pattern(pattern)
    (member,), count = saved.members, len(pattern.columns)
    inner = _member(model, member, "GPRegressor")
    demand(saved.n_features == count, f"{count} columns", saved.n_features)
    demand(member.n_features == saved.n_features + 1, "the coordinates and an exposure", member.n_features)
    space = Space(pattern.columns, pattern.kinds, _frame(pattern.frame))
    found = PatternOnGrid(space, pattern.window, pattern.grid, pattern.counts, pattern.exposure)
    notes = (*pattern.notes, *(note for note in inner.notes_ if note == HELD and HELD not in pattern.notes))
    model._store(np.empty((0, count)), found, inner, pattern.inference, notes)


def _frame(library: str | None) -> type | None:
    """The class of tables in which rows are handed to the model of the cells."""
    if library is None:
        return None
    if library not in _FRAMES:
        raise FileError(f"a table of {', '.join(_FRAMES)} was expected, found {library!r:.80}")
    try:
        return getattr(import_module(library), _FRAMES[library])
    except ImportError as error:
        raise ImportError(
            f"the model was fitted to a table of {library}, which is not installed; install it"
        ) from error
