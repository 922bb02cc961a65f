"""Model and statistics files: read, written whole, and what they say about themselves."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vff.cli.failures import OutputError

if TYPE_CHECKING:
    from vff.estimators.saved_records import Description


def load_model(path: str, *, learnt: bool = True) -> Any:
    """The estimator in a file; refused when it is statistics where a model is needed."""
    from vff.estimators.saving import load

    if not os.path.isfile(path):
        found = "a folder" if os.path.isdir(path) else "nothing"
        raise OutputError(f"a file of 'vff fit' or 'vff moments' was expected, found {found} at {path}; check the path")
    model = load(path)
    if learnt and not hasattr(model, "predict"):
        raise OutputError(
            f"a regressor or a classifier was expected, found a {type(model).__name__} in {path}; use Python"
        )
    if learnt and not hasattr(model.functions_[0], "posterior_"):
        raise OutputError(
            f"a model was expected, found statistics in {path}; run 'vff fit {path} --out model.vff' first"
        )
    return model


def about(path: str | Path) -> "Description":
    """What the file says about itself."""
    from vff.estimators.saving import describe

    return describe(path)


def save_model(model: Any, path: Path, units: Mapping[str, str], provenance: Mapping[str, Any]) -> "Description":
    """Write the file, which appears whole or not at all; what it says about itself."""
    from vff.estimators.saving import save

    save(model, path, units=dict(units), provenance={name: value for name, value in provenance.items() if value})
    return about(path)
