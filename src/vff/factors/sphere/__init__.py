"""Functions on the globe: spherical harmonics of two columns, with a diagonal prior (theory §20)."""

from vff.factors.registry import Kind
from vff.factors.sphere.basis import Globe, SphereBasis, SphericalLetters
from vff.factors.sphere.factor import Sphere, SphereFactor, SpherePrior

KIND = Kind("sphere", (Sphere,), SphereFactor, SpherePrior, SphereBasis, Globe, (SphericalLetters,))

__all__ = ["KIND"]
