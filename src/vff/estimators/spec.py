"""All that a user asks of a fit, but the rows."""

from collections.abc import Callable
from dataclasses import dataclass

from vff.data import UsedColumns
from vff.estimators.named import columns_used, levels_used
from vff.estimators.options import check_choice
from vff.estimators.resolve import Options
from vff.estimators.sampling import ChainOptions, check_installed, check_plan
from vff.factors import Kernel
from vff.inference import METHODS, Method, Spec, choose, inferences


@dataclass(frozen=True)
class FitSpec(Spec):
    """What is asked of a fit."""

    kernel: Kernel | None = None
    options: Options = Options("auto", "auto", "auto")  # noqa: RUF009  a named tuple
    engine: str = "auto"
    optimizer: str | None = "lbfgs"
    centred: bool = True
    """Whether the function has a constant mean that the data determine."""
    noise: float | None = None
    """Where the variance of Gaussian noise starts; None: from the data."""
    batch: int | None = None
    chains: ChainOptions = ChainOptions()  # noqa: RUF009  a named tuple
    progress: Callable[[str], None] = lambda message: None

    @property
    def used(self) -> UsedColumns | None:
        """The columns that the model names."""
        if self.kernel is None:
            return None
        return UsedColumns(columns_used(self.kernel, self.likelihood), levels_used(self.kernel))

    def method(self) -> Method:
        """The method of inference for it; options that make no sense together are refused."""
        check_choice("inference", self.inference, inferences())
        method = choose(METHODS, self)
        if method.samples:
            check_installed()
            check_plan(self.chains)
        elif self.priors is not None:
            raise ValueError(
                "priors are for inference='mcmc': with inference='variational' the best hyperparameters are learnt and "
                "taken as known; set inference='mcmc', or leave priors=None"
            )
        return method
