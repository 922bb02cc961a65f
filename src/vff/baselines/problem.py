"""What every baseline says about how learning ended."""

from vff.inference import Optimum
from vff.parameters import PositiveVector


def notes(optimum: Optimum, layout: PositiveVector) -> tuple[str, ...]:
    """Sentences for the user about how learning ended."""
    said = [] if optimum.converged else [f"learning stopped before it converged: {optimum.message}"]
    if optimum.steps:
        for name, end in layout.at_bounds(optimum.theta[: len(layout.names)]).items():
            said.append(f"{name} ended at its {end} bound; the data do not determine it")
    return tuple(said)
