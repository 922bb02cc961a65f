"""What a fit costs: the pass over the rows, and one evaluation of the bound with its gradient, in Markdown.

    python benchmarks/costs.py [--rows 10000 100000 1000000 10000000] [--quick]

Continuous columns, uniform and independent, default edge functions (three for a Matérn-3/2). Three tables: against the
number of rows N, against the harmonics M, and against the number of columns d, in a sum or in a product. P is the
number of features. The pass sees the rows once; an evaluation sees P x P matrices only, and a fit makes some tens of
them. Each time is the best of a few.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from _machine import describe

from vff.basis import ColumnBasis, Interval
from vff.factors.interval.factor import MaternFactor
from vff.inference import SumModel, Term
from vff.linalg import threads_for
from vff.moments import ColumnRequest, MomentRequest, TermRequest, moments_of_arrays

EDGES = 3
SMOOTHNESS = MaternFactor(1)  # Matérn-3/2
ROWS = (10**4, 10**5, 10**6, 10**7)


class Case(NamedTuple):
    """A model and a number of rows."""

    kind: str
    """"sum" or "product"."""
    d: int
    M: int
    N: int

    @property
    def text(self) -> str:
        return "one column" if self.d == 1 else f"{self.kind} of {self.d} columns"

    @property
    def request(self) -> MomentRequest:
        column = ColumnRequest(Interval(0.0, 1.0), ColumnBasis(self.M, EDGES))
        if self.kind == "sum":
            return MomentRequest.of_columns([column] * self.d)
        return MomentRequest((TermRequest(tuple(range(self.d)), (column,) * self.d),))

    @property
    def terms(self) -> tuple[Term, ...]:
        return (Term((SMOOTHNESS,)),) * self.d if self.kind == "sum" else (Term((SMOOTHNESS,) * self.d),)


def cases(rows: Sequence[int], quick: bool) -> dict[str, list[Case]]:
    """By table; the last two have the same number of rows throughout."""
    N, few = (10**4 if quick else 10**6), 2 if quick else 9
    models = (("sum", 1, 30), ("sum", 4, 30), ("product", 2, 10))[:few]
    sizes = {"one": (16, 64, 256, 1024)[:few], "two": (5, 10, 20, 30)[:few], "sum": (1, 2, 4, 8)[:few]}
    return {
        "rows": [Case(*model, n) for model in models for n in rows],
        "harmonics": [
            *(Case("sum", 1, M, N) for M in sizes["one"]),
            *(Case("product", 2, M, N) for M in sizes["two"]),
        ],
        "columns": [
            *(Case("sum", d, 30, N) for d in sizes["sum"]),
            *(Case("product", d, 4, N) for d in (1, 2, 3)[:few]),
        ],
    }


def seconds_of(call: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def measure(case: Case) -> dict[str, str]:
    rng = np.random.default_rng(0)
    columns = list(rng.random((case.d, case.N)))
    y, w = rng.standard_normal(case.N) + np.sin(9.0 * sum(columns)), np.ones(case.N)
    request, found = case.request, []
    reading = seconds_of(lambda: found.append(moments_of_arrays(request, columns, y, w)), 3 if case.N < 10**7 else 2)
    model = SumModel(case.terms, found[-1])
    # variance 1 and lengthscales of 0.4 half ranges for every term, and the noise
    theta = np.log([value for term in case.terms for value in [1.0] + [0.4] * (len(term.names) - 1)] + [1.0])

    def evaluate() -> None:
        closed = model.at(theta)
        _ = closed.elbo
        model.pull_back(theta, closed.cotangents)

    with threads_for(request.size):  # as in a fit
        evaluate()
        step = seconds_of(evaluate, 10 if request.size < 2000 else 3)
    return {
        "model": case.text,
        "N": f"{case.N:,}",
        "M": str(case.M),
        "P": f"{request.size:,}",
        "pass s": f"{reading:.3f}",
        "µs per row": f"{1e6 * reading / case.N:.2f}",
        "bound and gradient ms": f"{1e3 * step:.1f}",
    }


def markdown(lines: Sequence[dict[str, str]]) -> str:
    """A table of the page, numbers to the right."""
    header = list(lines[0])
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *(list(line.values()) for line in lines)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--quick", action="store_true", help="few rows and small models, to see that it runs")
    options = parser.parse_args()
    print(describe(("numpy", "scipy", "finufft")), flush=True)
    rows = [n for n in options.rows if n <= 10**5] if options.quick else options.rows
    for title, planned in cases(rows, options.quick).items():
        lines = []
        for case in planned:
            print(f"{case.text}, M = {case.M}, {case.N:,} rows ...", file=sys.stderr, flush=True)
            lines.append(measure(case))
        print(f"\nAgainst {title}\n\n{markdown(lines)}", flush=True)


if __name__ == "__main__":
    main()
