"""The data pass: sums over rows of the letters of a basis. It cannot name a kernel (design Fact A).

What is summed, for one column with single alphabet phi and double alphabet psi (see ``vff.basis``):

    n                    rows
    weight               sum w
    target               sum w (y - offset)
    target_squared       sum w (y - offset)^2
    gram    (Q,)         sum w psi(x)           -> Phi' W Phi is a linear map of it (``gram.py``)
    project (P,)         sum w (y - offset) phi(x)

With M = 1, q = 0 and theta = pi (t + 1): gram = sum w [1, cos, cos 2, sin, sin 2], and

    Phi' W Phi =  sum w  [ 1        cos            sin         ]
                         [ cos   (1 + cos 2)/2   (sin 2)/2     ]
                         [ sin    (sin 2)/2     (1 - cos 2)/2  ]

``Moments`` adds, subtracts and scales; a pass for M harmonics holds the sums for every smaller M. ``offset`` is a
number near the mean of y that keeps the sums free of cancellation; ``Moments.recentred`` changes it.

How it is summed is an engine's business: ``sum_letters`` (rows -> moments) and its transpose ``evaluate_letters``
(coefficients -> rows). The four operations of design Fact C are made of these two, once, in ``operations.py``.
"""

from vff.moments.engines import ENGINES, Choice, Engine, choose_engine
from vff.moments.engines.lattice import sample_distinct
from vff.moments.gram import gram_adjoint, gram_matrix
from vff.moments.operations import evaluate_and_quad, read_rows
from vff.moments.statistics import MomentRequest, Moments

__all__ = [
    "ENGINES",
    "Choice",
    "Engine",
    "MomentRequest",
    "Moments",
    "choose_engine",
    "evaluate_and_quad",
    "gram_adjoint",
    "gram_matrix",
    "read_rows",
    "sample_distinct",
]
