# pyright: reportMissingImports=false, reportArgumentType=false, reportOperatorIssue=false
"""GPyTorch's side of additive.py, in a process of its own: ``python _additive_svgp.py FOLDER ROWS`` prints JSON.

The model is the one of GPyTorch's own tutorial on stochastic variational regression: inducing points that move, a
Cholesky factor for their covariance, Adam at 0.01, minibatches of 1024, float32; with a Matérn-3/2 with a lengthscale
per column. It is not additive: it is what its users would write for such a table.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

INDUCING, BATCH, RATE = 500, 1024, 0.01


def build(inducing: Any) -> tuple[Any, Any]:
    """The sparse process and its likelihood."""
    import gpytorch

    class SparseProcess(gpytorch.models.ApproximateGP):
        def __init__(self) -> None:
            law = gpytorch.variational.CholeskyVariationalDistribution(inducing.shape[0])
            super().__init__(gpytorch.variational.VariationalStrategy(self, inducing, law))
            self.mean_module = gpytorch.means.ConstantMean()
            matern = gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=inducing.shape[1])
            self.covar_module = gpytorch.kernels.ScaleKernel(matern)

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    return SparseProcess(), gpytorch.likelihoods.GaussianLikelihood()


def train(X: Any, y: Any) -> tuple[Any, Any, int]:
    """One epoch over shuffled rows; returns the model, the likelihood and the number of steps."""
    import gpytorch
    import torch

    order = torch.randperm(X.shape[0])
    model, likelihood = build(X[order[:INDUCING]].clone())
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=X.shape[0])
    optimiser = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=RATE)
    batches = order.split(BATCH)
    for batch in batches:
        optimiser.zero_grad()
        (-objective(model(X[batch]), y[batch])).backward()
        optimiser.step()
    return model.eval(), likelihood.eval(), len(batches)


def score(model: Any, likelihood: Any, X: Any, y: Any) -> dict[str, float]:
    """Mean squared error and negative log predictive density per row, in batches that fit in memory."""
    import torch

    started = time.perf_counter()
    squares, densities = [], []
    with torch.no_grad():
        for rows, target in zip(X.split(8 * BATCH), y.split(8 * BATCH), strict=True):
            marginal = likelihood(model(rows))
            mean, variance = marginal.mean, marginal.variance
            squares.append((mean - target) ** 2)
            densities.append(0.5 * (torch.log(2 * torch.pi * variance) + squares[-1] / variance))
    mse, nlpd = (float(torch.cat(parts).double().mean()) for parts in (squares, densities))
    return {"mse": mse, "nlpd": nlpd, "score_seconds": time.perf_counter() - started}


def main() -> None:
    folder, rows = Path(sys.argv[1]), int(sys.argv[2])
    X, y = np.load(folder / "X.npy")[:rows], np.load(folder / "y.npy")[:rows]
    started = time.perf_counter()
    import gpytorch  # noqa: F401
    import torch

    imported, worked = time.perf_counter(), time.process_time()
    torch.manual_seed(0)
    centre, spread = X.mean(0), X.std(0)
    inputs = torch.tensor((X - centre) / spread, dtype=torch.float32)
    model, likelihood, steps = train(inputs, torch.tensor(y, dtype=torch.float32))
    seconds = {"import": imported - started, "fit": time.perf_counter() - imported, "cpu": time.process_time() - worked}
    tested = torch.tensor((np.load(folder / "X_test.npy") - centre) / spread, dtype=torch.float32)
    found = score(model, likelihood, tested, torch.tensor(np.load(folder / "y_test.npy"), dtype=torch.float32))
    print(json.dumps(seconds | {"rows": y.size, "steps": steps} | found))


if __name__ == "__main__":
    main()
