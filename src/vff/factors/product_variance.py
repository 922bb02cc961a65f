"""The one variance of a product, from what was written for its factors."""

from collections.abc import Sequence
from math import prod

from vff.parameters import Between, Fixed
from vff.words import shown


def variance_of(variances: Sequence[float | None], name: str) -> float | None:
    """The product of the variances that were given; None when none was. ``name`` is what sentences call the product.

    It is one number, so it is held where all that were given are, and bounded where one of them is and the others are
    held. A bare one says nothing there.
    """
    given = [value for value in variances if value is not None]
    known = [value for value in given if isinstance(value, Fixed | Between)]
    bare = [value for value in given if not isinstance(value, Fixed | Between) and value != 1.0]
    bounded = [value for value in known if isinstance(value, Between)]
    if known and (bare or len(bounded) > 1):
        raise ValueError(
            f"a product has one variance, which is held or bounded as a whole; got {' and '.join(map(shown, given))} "
            f"for {name}: write it once, on the first factor"
        )
    if not given:
        return None
    if not known:
        return prod(given)
    held = prod([value for value in known if isinstance(value, Fixed)])
    return bounded[0].times(held) if bounded else Fixed(held)
