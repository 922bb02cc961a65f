"""Markov chains over hyperparameters, and over the function where noise is not Gaussian."""

from typing import Literal

from vff.inference.methods.fit import Fit
from vff.inference.methods.task import FitTask, Spec
from vff.words import shown


def _refused(spec: Spec) -> str | None:
    if spec.covariance == "full":
        return None
    return (
        "inference='mcmc' samples the posterior as it is, without a covariance; got "
        f"covariance={shown(spec.covariance)}: leave it at 'full'"
    )


class CollapsedChains:
    """Draws of hyperparameters, the function integrated out: sums over rows say all."""

    name = "collapsed chains"
    inference = "mcmc"
    needs: Literal["sums"] = "sums"
    samples = True

    def accepts(self, spec: Spec) -> str | None:
        """Gaussian noise of one variance."""
        return _refused(spec) if spec.likelihood.conjugate else ""

    def fit(self, task: FitTask) -> Fit:
        """From where learning ends."""
        from vff.inference.methods.chains.collapsed_fit import sample_sum

        return sample_sum(task)


class Chains:
    """Draws of hyperparameters and coefficients together."""

    name = "chains"
    inference = "mcmc"
    needs: Literal["rows"] = "rows"
    samples = True

    def accepts(self, spec: Spec) -> str | None:
        """Any other likelihood, when no more rows will come."""
        if spec.likelihood.conjugate:
            return ""
        if spec.growing and spec.covariance == "full":
            return (
                "partial_fit keeps sums of rows, and inference='mcmc' needs the rows themselves unless noise is "
                "Gaussian; use inference='variational', or fit all rows together"
            )
        return _refused(spec)

    def fit(self, task: FitTask) -> Fit:
        """From a fit by natural gradients with few features."""
        from vff.inference.methods.chains.fit import sample_likelihood

        return sample_likelihood(task)
