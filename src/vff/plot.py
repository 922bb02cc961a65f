"""Pictures of fits.

``vff.plot.fit(model, X, y)`` of one column, ``vff.plot.map(model, X, y)`` of two, ``vff.plot.effects(model)`` of every
term of a sum, ``vff.plot.intensity(model)`` of a point pattern. Each returns a matplotlib Figure, draws on ``ax`` where
one panel is drawn, and leaves what it drew in ``figure.data``: a dictionary of arrays of equal length, as data frames
are made of.
"""

from vff.report import effects, fit, intensity, map

__all__ = ["effects", "fit", "intensity", "map"]
