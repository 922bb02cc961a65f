# pyright: reportMissingImports=false, reportArgumentType=false, reportOperatorIssue=false
"""GPyTorch's KISS-GP in two_columns.py: ``python _two_columns_kiss.py FOLDER NLPD CAP [GRID]`` prints one line of JSON.

The model of GPyTorch's own tutorial on structured kernel interpolation: an exact process whose kernel, a product of a
Matérn-3/2 per column, is interpolated from a grid (61 x 61); conjugate gradients, Adam at 0.1, float32; scored after
every step, with the fast variances of the same tutorial.
"""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

from _two_columns_race import Race, load, mean_nlpd

RATE = 0.1


def build(X: Any, y: Any, likelihood: Any, grid: int) -> Any:
    import gpytorch

    class Interpolated(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            matern = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=2))
            bounds = [(0.0, 1.0)] * 2
            self.covar_module = gpytorch.kernels.GridInterpolationKernel(
                matern, grid_size=grid, num_dims=2, grid_bounds=bounds
            )

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    return Interpolated()


def train(race: Race, grid: int, X: Any, y: Any, X_test: Any, y_test: Any) -> int:
    """Steps until the race is over."""
    import gpytorch
    import torch

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model, steps = build(X, y, likelihood, grid), 0
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)

    def nlpd() -> float:
        for part in (model, likelihood):
            part.eval()
        with torch.no_grad(), gpytorch.settings.fast_pred_var():
            marginal = likelihood(model(X_test))
            found = mean_nlpd(marginal.mean.numpy(), marginal.variance.numpy(), y_test.numpy())
        for part in (model, likelihood):
            part.train()
        return found

    while True:
        optimiser.zero_grad()
        (-objective(model(X), y)).backward()
        optimiser.step()
        steps += 1
        if race.score(nlpd):
            return steps


def main() -> None:
    arrays = load(Path(sys.argv[1]))
    import gpytorch  # noqa: F401
    import torch

    warnings.filterwarnings("ignore", category=UserWarning, module="linear_operator")
    torch.manual_seed(0)
    tensors = [torch.tensor(array, dtype=torch.float32) for array in arrays]
    race = Race(float(sys.argv[2]), float(sys.argv[3]))
    steps = train(race, int(sys.argv[4]) if len(sys.argv) > 4 else 61, *tensors)
    print(json.dumps(race.result() | {"steps": steps}))


if __name__ == "__main__":
    main()
