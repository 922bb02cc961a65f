"""Pictures of fits: ``vff.plot.fit(model, X, y)``."""

from vff.report import fit

__all__ = ["fit"]
