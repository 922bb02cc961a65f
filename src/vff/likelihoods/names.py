"""The likelihoods there are, and what users may write for them. This file imports nothing, so that help is quick."""

from typing import NamedTuple


class Entry(NamedTuple):
    """One kind of likelihood."""

    kind: str
    """The name of its class."""
    module: str
    """Where that is."""
    names: tuple[str, ...] = ()
    """What stands for it in place of an object."""
    needs: str | None = None
    """The field without which there is no object."""


ENTRIES: list[Entry] = [
    Entry("Gaussian", "vff.likelihoods.gaussian", ("gaussian",)),
    Entry("Bernoulli", "vff.likelihoods.classes", ("bernoulli", "logit", "probit")),
    Entry("Poisson", "vff.likelihoods.counts", ("poisson",)),
    Entry("NegativeBinomial", "vff.likelihoods.counts", ("negative-binomial",)),
    Entry("StudentT", "vff.likelihoods.student_t", ("student-t",)),
    Entry("Gamma", "vff.likelihoods.gamma", ("gamma",)),
    Entry("Beta", "vff.likelihoods.beta", ("beta",)),
    Entry("Ordinal", "vff.likelihoods.ordinal", ("ordinal",)),
    Entry("Binomial", "vff.likelihoods.classes", ("binomial",), needs="trials"),
    Entry("Custom", "vff.likelihoods.custom", needs="function"),
]
"""In the order in which sentences name them."""


def likelihood_names() -> tuple[str, ...]:
    """Names that stand for a likelihood without anything more.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> vff.likelihoods.likelihood_names()[:3]
    ('gaussian', 'bernoulli', 'logit')
    """
    return tuple(name for entry in ENTRIES if entry.needs is None for name in entry.names)
