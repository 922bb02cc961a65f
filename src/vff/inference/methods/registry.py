"""Methods of inference: what one is, those there are, and the choice among them."""

from collections.abc import Iterable
from typing import Literal, Protocol

from vff.inference.methods.chains.method import Chains, CollapsedChains
from vff.inference.methods.collapsed import Collapsed
from vff.inference.methods.fit import Fit
from vff.inference.methods.natural.method import Natural
from vff.inference.methods.structured.method import Structured
from vff.inference.methods.task import FitTask, Spec
from vff.registry import Registry


class Method(Protocol):
    """A way from rows to a posterior."""

    @property
    def name(self) -> str:
        """As a fit reports it."""
        ...

    @property
    def inference(self) -> str:
        """The word by which users ask for it."""
        ...

    @property
    def needs(self) -> Literal["sums", "visits", "rows"]:
        """Of the rows: their sums, all of them asked again and again wherever they are, or in memory."""
        ...

    @property
    def samples(self) -> bool:
        """Whether it leaves draws, and has the options of Markov chains."""
        ...

    def accepts(self, spec: Spec) -> str | None:
        """None, or in one sentence why not; an empty one where another method is meant."""
        ...

    def fit(self, task: FitTask) -> Fit:
        """The posterior, and what was learnt on the way."""
        ...


METHODS: Registry[Method] = Registry(
    "a method of inference", Collapsed(), Natural(), Structured(), CollapsedChains(), Chains()
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
