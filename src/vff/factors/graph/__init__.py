"""Levels that know their neighbours: areas of a map, and levels in an order (theory §17)."""

from vff.factors.graph.factor import GraphFactor, GraphPrior
from vff.factors.graph.leaf import Areas, Ordered
from vff.factors.levels.basis import Codes, LevelBasis
from vff.factors.registry import Kind

KIND = Kind("graph", (Areas, Ordered), GraphFactor, GraphPrior, LevelBasis, Codes)

__all__ = ["KIND"]
