"""Files of earlier format versions: their trees as the records of now have them, before these are made.

Version 1 took the constant of the function for known (``saved_constant`` works out what is missing). Up to version 2 a
fit under a likelihood that is not Gaussian had all that is peculiar to it in a record of its own, ``Climb``.
"""

from typing import Any

Tree = Any


def upgraded(tree: Tree, version: int) -> Tree:
    """The record ``Saved`` of a file of some version."""
    if version >= 3:
        return tree
    saved = dict(tree["Saved"])
    saved["members"] = [upgraded(member, version) for member in saved["members"]]
    if saved["fit"] is not None:
        saved["fit"] = {"Fit": _fit(dict(saved["fit"]["Fit"]), saved["rows"]["Rows"])}
    return {"Saved": saved}


def _fit(fit: dict[str, Tree], rows: dict[str, Tree]) -> dict[str, Tree]:
    climb, samples = fit.pop("climb", None), fit.get("samples")
    if climb is None:
        beyond = sum(tail["TailRows"]["r"].size for tail in rows["tails"])
        more = {
            "method": "collapsed" if samples is None else "collapsed chains",
            "likelihood": {"Gaussian": {"variance": fit["noise_variance"]}},
            "n": rows["moments"]["Moments"]["n"] + beyond,
            "bounds": [fit["elbo"]],
            "visits": 1,
        }
        return fit | more
    own = climb["Climb"]
    direct = fit["solver"] in ("direct", "iterative")
    method = "natural" if direct else "structured" if samples is None else "chains"
    more = {
        "method": method,
        "likelihood": own["likelihood"],
        "n": own["rows"],
        "bounds": own["bounds"],
        "visits": own["visits"],
        "memory": {"SiteMemory": _memory(own)} if direct else None,
        "engine": own.get("choice"),
    }
    return fit | more


def _memory(climb: dict[str, Tree]) -> dict[str, Tree]:
    names = {"asked": "likelihood", "constant": "intercept", "anchor": "intercept_prior"}
    kept = ("asked", "sums", "psi", "information", "constant", "anchor", "units")
    return {names.get(name, name): climb.get(name, 0.0) for name in kept}
