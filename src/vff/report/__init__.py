"""Pictures and tables of fits. The only room that knows matplotlib, and it imports it when something is drawn."""

from vff.report.curve import fit
from vff.report.effects import effects
from vff.report.intensity import intensity
from vff.report.maps import map
from vff.report.text import table

__all__ = ["effects", "fit", "intensity", "map", "table"]
