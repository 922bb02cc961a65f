# pyright: reportMissingImports=false, reportArgumentType=false, reportOperatorIssue=false
"""GPyTorch's SVGP in two_columns.py: ``python _two_columns_svgp.py FOLDER NLPD CAP`` prints one line of JSON.

The model of _additive_svgp.py (500 inducing points that move, Adam at 0.01, minibatches of 1024, float32) in epochs,
scored after every tenth of one.
"""

import json
import sys
from pathlib import Path
from typing import Any

from _additive_svgp import BATCH, INDUCING, RATE, build
from _additive_svgp import score as score_on
from _two_columns_race import Race, load


def train(race: Race, X: Any, y: Any, X_test: Any, y_test: Any) -> int:
    """Steps until the race is over."""
    import gpytorch
    import torch

    model, likelihood = build(X[torch.randperm(len(X))[:INDUCING]].clone())
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))
    optimiser = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=RATE)
    every, steps = max(1, len(X) // BATCH // 10), 0

    def nlpd() -> float:
        found = score_on(model.eval(), likelihood.eval(), X_test, y_test)["nlpd"]
        for part in (model, likelihood):
            part.train()
        return found

    while True:
        for batch in torch.randperm(len(X)).split(BATCH):
            optimiser.zero_grad()
            (-objective(model(X[batch]), y[batch])).backward()
            optimiser.step()
            steps += 1
            if steps % every == 0 and race.score(nlpd):
                return steps


def main() -> None:
    arrays = load(Path(sys.argv[1]))
    import gpytorch  # noqa: F401
    import torch

    torch.manual_seed(0)
    tensors = [torch.tensor(array, dtype=torch.float32) for array in arrays]
    race = Race(float(sys.argv[2]), float(sys.argv[3]))
    steps = train(race, *tensors)
    print(json.dumps(race.result() | {"steps": steps}))


if __name__ == "__main__":
    main()
