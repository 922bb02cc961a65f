"""Methods of inference: those there are, and the choice among them. Chains are imported when they are run."""

from collections.abc import Iterable

from vff.inference.methods.collapsed import Collapsed
from vff.inference.methods.fit import Fit
from vff.inference.methods.integrated.method import Integrated
from vff.inference.methods.integrated.sites import IntegratedSites
from vff.inference.methods.natural.method import Natural
from vff.inference.methods.structured.method import Structured
from vff.inference.methods.task import FitTask, Method, Spec
from vff.registry import Registry
from vff.words import shown


def _refused(spec: Spec) -> str | None:
    if spec.covariance == "full":
        return None
    return (
        "inference='mcmc' samples the posterior as it is, without a covariance; got "
        f"covariance={shown(spec.covariance)}: leave it at 'full'"
    )


class CollapsedChains(Method):
    """Draws of hyperparameters, the function integrated out: sums over rows say all."""

    name = "collapsed chains"
    inference = "mcmc"
    needs = "sums"
    samples = True

    def accepts(self, spec: Spec) -> str | None:
        """Gaussian noise of one variance."""
        return _refused(spec) if spec.likelihood.conjugate else ""

    def fit(self, task: FitTask) -> Fit:
        """From where learning ends."""
        from vff.inference.methods.chains.collapsed_fit import sample_sum

        return sample_sum(task)


class Chains(Method):
    """Draws of hyperparameters and coefficients together."""

    name = "chains"
    inference = "mcmc"
    needs = "rows"
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


METHODS: Registry[Method] = Registry(
    "a method of inference",
    Integrated(),
    Collapsed(),
    IntegratedSites(),
    Natural(),
    Structured(),
    CollapsedChains(),
    Chains(),
)


def inferences() -> tuple[str, ...]:
    """The words by which users ask for methods."""
    return tuple(dict.fromkeys(method.inference for method in METHODS))


def choose(methods: Iterable[Method], spec: Spec) -> Method:
    """The first method that takes what is asked, or the sentence that says why none does."""
    refused: list[str] = []
    for method in methods:
        if method.inference == spec.inference:
            why = method.accepts(spec)
            if why is None:
                return method
            refused.append(why)
    raise ValueError(
        next(filter(None, refused), f"no method of inference takes inference={spec.inference!r} with these options")
    )
