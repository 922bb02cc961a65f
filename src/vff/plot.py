"""Pictures of fits.

``vff.plot.fit(model, X, y)`` of one column, ``vff.plot.map(model, X, y)`` of two, ``vff.plot.effects(model)`` of every
term of a sum, ``vff.plot.intensity(model)`` of a point pattern.
"""

from vff.report import effects, fit, intensity, map

__all__ = ["effects", "fit", "intensity", "map"]
