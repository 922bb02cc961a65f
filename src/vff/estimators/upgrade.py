"""Files of earlier format versions: their trees as the records of now have them, before these are made.

Up to version 4 the share of a term was the variance of its effect, which does not add up with others'. Up to version 3
posteriors had with them what follows from their terms. Up to version 2 a fit under a likelihood that is not Gaussian
had all that is peculiar to it in a record of its own, ``Climb``; and there was a posterior, and a term of one, for
every kind of covariance. Version 1 took the constant c0 of the function for known. With sites of precision s at the
rows, h = Phi' S 1, and A the precision of the coefficients,

    var c0 = 1 / (sum s - h'A^-1 h + 1 / reach^2),      df(x)/dc0 = 1 - phi(x)'A^-1 h

and the mean of c0 is what targets are measured from in such a file.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from vff.estimators.statistics import Statistics
from vff.inference import LARGEST_DIRECT, REACH, Fit, InterceptPosterior, shares_of_sums

HELD = (
    "the file was written by a vff that took the constant of the function for known, so that its variances and "
    "intercept_std_ leave out how well that is known; fit the rows again to have it in them"
)
Tree = Any
_RECORDS = {"Rows": "Statistics", "Survey": "ColumnSummary"}
_FIELDS = {
    "Statistics": {"hugging": "domain_from_data", "extents": "ranges", "details": "highest_frequencies"},
    "TermFit": {"share": "variance_share", "effective": "edf", "supported": "active"},
    "Milestone": {"missed": "bound_gap"},
    "IterativeForm": {"constant": "intercept"},
    "ColumnRequest": {"place": "domain"},
    "Samples": {"asked": "likelihood"},
    "TermProcess": {"transform": None},
    **{kind: {"request": None} for kind in ("Direct", "Averaged", "Pieces", "Probed")},
}
"""New names of fields; None for those that are no more."""


def upgraded(tree: Tree, version: int) -> Tree:
    """The record ``Saved`` of a file of some version."""
    if version >= 5:
        return tree
    if version < 4:
        tree = _renamed(tree) if version == 3 else _saved(_renamed(tree))
    return _without_shares(tree)


def _without_shares(tree: Tree) -> Tree:
    """Shares of several terms are taken again, from sums (``with_shares``)."""
    saved = dict(tree["Saved"])
    saved["members"] = list(map(_without_shares, saved["members"]))
    if saved["fit"] is not None:
        fit = dict(saved["fit"]["Fit"])
        if len(fit["terms"]) > 1:
            fit["terms"] = [{"TermFit": term["TermFit"] | {"variance_share": None}} for term in fit["terms"]]
        saved["fit"] = {"Fit": fit}
    return {"Saved": saved}


def _renamed(tree: Tree) -> Tree:
    """Records and fields by the names that they have now."""
    if isinstance(tree, list):
        return [_renamed(part) for part in tree]
    if not isinstance(tree, dict):
        return tree
    named = {_RECORDS.get(name, name): _renamed(part) for name, part in tree.items()}
    for record, fields in ((named[name], _FIELDS[name]) for name in named if name in _FIELDS):
        for old in fields.keys() & record.keys():
            value, new = record.pop(old), fields[old]
            record |= {} if new is None else {new: value}
    return named


def _saved(tree: Tree) -> Tree:
    saved = dict(tree["Saved"])
    saved["members"] = list(map(_saved, saved["members"]))
    if saved["fit"] is not None:
        saved["fit"] = {"Fit": _fit(dict(saved["fit"]["Fit"]), saved["rows"]["Statistics"])}
    return {"Saved": saved}


def _fit(fit: dict[str, Tree], rows: dict[str, Tree]) -> dict[str, Tree]:
    climb, samples = fit.pop("climb", None), fit.get("samples")
    fit["posterior"] = {"Posterior": _posterior(fit["posterior"])}
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
    own, names = climb["Climb"], {"asked": "likelihood", "constant": "intercept", "anchor": "intercept_prior"}
    kept = ("asked", "sums", "psi", "information", "constant", "anchor", "units")
    memory = {names.get(name, name): own.get(name, 0.0) for name in kept}
    direct = fit["solver"] in ("direct", "iterative")
    method = "natural" if direct else "structured" if samples is None else "chains"
    more = {
        "method": method,
        "likelihood": own["likelihood"],
        "n": own["rows"],
        "bounds": own["bounds"],
        "visits": own["visits"],
        "memory": {"SiteMemory": memory} if direct else None,
        "engine": own.get("choice"),
    }
    return fit | more


def _posterior(tree: Tree) -> dict[str, Tree]:
    ((kind, own),) = tree.items()
    terms = [next(iter(term.values())) for term in own["terms"]]
    coefficients = [term["coefficients"]["TermCoefficients"] for term in terms]
    names = ("variance", "columns", "factors")
    parts = {"terms": [{"TermProcess": {name: term[name] for name in names}} for term in terms]}
    found = {name: _joined(coefficients, name) for name in ("mean", "centre", "centre_covariance")}
    found["intercept"] = own.get("constant")
    if kind == "ProbedPosterior":
        probes = {name: _joined(terms, name) for name in ("away", "signs")}
        return found | {"covariance": {"Probed": parts | {"form": own["form"]} | probes}}
    if kind == "StructuredPosterior":
        roots = [term["pieces"] for term in terms], [term["whiteners"] for term in terms]
        return found | {"covariance": {"Pieces": parts | dict(zip(("roots", "whiteners"), roots, strict=True))}}
    taken = [one["explained"] for one in coefficients]
    if kind == "SumPosterior":
        return found | {"covariance": {"Direct": parts | {"taken": taken, "shared": own["shared"]}}}
    return _sampled(own, parts, found, taken)


def _joined(records: list[dict[str, Tree]], name: str) -> np.ndarray:
    return np.concatenate([record[name] for record in records])


def _sampled(
    own: dict[str, Tree], parts: dict[str, Tree], found: dict[str, Tree], taken: list[np.ndarray]
) -> dict[str, Tree]:
    """Draws, whose first term had the constant in it."""
    draws, levels, sizes = own["coefficients"], own["level"], [len(block) for block in taken]
    ends = np.cumsum(sizes)
    places = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    one = np.append(own["one"], np.zeros(ends[-1] - own["one"].size))
    known = own.get("with_level")
    together, variance = draws.T @ levels / len(levels), float(np.mean(levels**2))
    if known is not None:
        together, variance = known[:-1], float(known[-1])
    rest = [next(iter(term.values()))["coefficients"] for term in own["rest"]["SumPosterior"]["terms"]]
    shared = own["moments"]["SumPosterior"]["shared"]
    if variance > 0.0:
        root, answer = together / np.sqrt(variance), one - together / variance
        taken = [block + np.outer(root[own], root[own]) for block, own in zip(taken, places, strict=True)]
        shared = [[key, block - np.outer(root[places[key[0]]], root[places[key[1]]])] for key, block in shared]
        lost = [root[own] * float(root[own] @ found["centre"][own]) for own in places]
        found["centre_covariance"] = found["centre_covariance"] - np.concatenate(lost)
        found["intercept"] = {"ConstantPosterior": {"mean": 0.0, "variance": variance, "answer": answer}}
        draws = draws - np.multiply.outer(levels, one)
    kept = {"carried": [term["TermCoefficients"]["explained"] for term in rest], "coefficients": draws}
    covariance = parts | {"taken": taken, "shared": shared} | kept | {"intercepts": levels}
    return found | {"covariance": {"Averaged": covariance}}


def with_shares(fit: Fit, rows: Statistics) -> Fit:
    """The fit with shares of its terms that add up, where its file has none and the sums are there to say."""
    sums = rows.moments if fit.from_sums else None if fit.memory is None else fit.memory.sums
    known = all(term.variance_share is not None for term in fit.terms)
    if known or sums is None or not sums.weight > 0.0 or fit.posterior.request.size > LARGEST_DIRECT:
        return fit
    scale = fit.target.scale if fit.from_sums else None
    shares = shares_of_sums(fit.posterior, sums, rows.binding.sources, scale)
    terms = (replace(term, variance_share=float(share)) for term, share in zip(fit.terms, shares, strict=True))
    return replace(fit, terms=tuple(terms))


def with_constant(fit: Fit, centred: bool) -> Fit:
    """The fit with what is not known of its constant, or else a note that this is missing."""
    # the posterior may speak of the constant, or the likelihood have a location in place of one
    located = not fit.from_sums and (fit.samples is not None or fit.likelihood.locates)
    if not centred or fit.posterior.intercept is not None or located:
        return fit
    intercept = _constant_of(fit)
    if intercept is not None:
        return replace(fit, posterior=replace(fit.posterior, intercept=intercept))
    return fit if HELD in fit.notes else replace(fit, notes=(*fit.notes, HELD))


def _constant_of(fit: Fit) -> InterceptPosterior | None:
    """From the sums of the sites; None where these, or A^-1, are not in the file."""
    posterior = fit.posterior
    if fit.memory is None:
        return None
    sums = fit.memory.sums.restricted(posterior.request.harmonics)
    parts = zip(posterior.terms, sums.features_sums, strict=True)
    h = np.concatenate([term.transform.forward(raw) for term, raw in parts])
    answer = posterior.covariance.apply(h)
    if answer is None:
        return None
    precision = sums.weight - float(h @ answer) + REACH**-2
    return InterceptPosterior(0.0, 1.0 / precision, answer) if precision > 0.0 else None
