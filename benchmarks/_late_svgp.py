# pyright: reportMissingImports=false, reportArgumentType=false, reportOperatorIssue=false
"""GPyTorch's side of late_flights.py: ``python _late_svgp.py FOLDER GOAL SECONDS`` prints one line of JSON.

Stochastic variational classification as in GPyTorch's tutorials: 500 inducing points that move, a Cholesky factor for
their covariance, a Matérn-3/2 with a lengthscale per column, Bernoulli likelihood, Adam at 0.01, minibatches of 1024,
float32. It trains until its log-loss on a part of the test rows reaches GOAL, or SECONDS are over; the time that
looking takes is not counted.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from _additive_svgp import BATCH, INDUCING, RATE, build

EVERY = 250  # steps between looks
LOOKED_AT = 20_000


def log_loss(model: Any, likelihood: Any, X: Any, y: Any) -> float:
    import torch

    losses = []
    model.eval()
    with torch.no_grad():
        for rows, target in zip(X.split(8 * BATCH), y.split(8 * BATCH), strict=True):
            p = likelihood(model(rows)).probs.double().clamp(1e-7, 1 - 1e-7)
            losses.append(-torch.where(target > 0.5, torch.log(p), torch.log1p(-p)))
    model.train()
    return float(torch.cat(losses).mean())


def train(X: Any, y: Any, test: tuple[Any, Any], goal: float, patience: float) -> dict[str, float]:
    import gpytorch
    import torch

    order = torch.randperm(X.shape[0])
    model, _ = build(X[order[:INDUCING]].clone())
    likelihood = gpytorch.likelihoods.BernoulliLikelihood()
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=X.shape[0])
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    seconds, steps, loss = 0.0, 0, float("inf")
    while seconds < patience and loss > goal:
        started = time.perf_counter()
        for batch in torch.randperm(X.shape[0])[: EVERY * BATCH].split(BATCH):
            optimiser.zero_grad()
            (-objective(model(X[batch]), y[batch])).backward()
            optimiser.step()
        seconds, steps = seconds + time.perf_counter() - started, steps + EVERY
        loss = log_loss(model, likelihood, test[0][:LOOKED_AT], test[1][:LOOKED_AT])
        print(f"SVGP: {steps} steps, {seconds:.0f} s, log-loss {loss:.4f}", file=sys.stderr, flush=True)
    return {"fit": seconds, "looks": steps, "log_loss": log_loss(model, likelihood, *test), "coefficients": INDUCING}


def main() -> None:
    folder, goal, patience = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    started = time.perf_counter()
    import gpytorch  # noqa: F401
    import torch

    imported = time.perf_counter() - started
    torch.manual_seed(0)
    centre, spread = X.mean(0), X.std(0)

    def tensors(X: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        return torch.tensor((X - centre) / spread, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)

    test = tensors(np.load(folder / "X_test.npy"), np.load(folder / "y_test.npy"))
    worked = time.process_time()
    found = train(*tensors(X, y), test, goal, patience)
    print(json.dumps(found | {"import": imported, "cpu": time.process_time() - worked, "score_seconds": float("nan")}))


if __name__ == "__main__":
    main()
