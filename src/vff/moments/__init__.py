"""The data pass: sums over rows of the letters of every column. It cannot name a kernel (design Fact A).

What is summed, for columns with single alphabets phi_s and double alphabets psi_s (see ``vff.basis``):

    n                       rows
    weight                  sum w
    target                  sum w (y - offset)
    target_squared          sum w (y - offset)^2
    grams    s: (Q_s,)      sum w psi_s             -> Phi_s' W Phi_s is a linear map of it (``gram.py``)
    projects s: (P_s,)      sum w (y - offset) phi_s
    blocks   s<t: (P_s,P_t) sum w phi_s phi_t'      the Gram matrix between two columns

With one column, M = 1, q = 0 and theta = pi (t + 1): gram = sum w [1, cos, cos 2, sin, sin 2], and

    Phi' W Phi =  sum w  [ 1        cos            sin         ]
                         [ cos   (1 + cos 2)/2   (sin 2)/2     ]
                         [ sin    (sin 2)/2     (1 - cos 2)/2  ]

``Moments`` adds, subtracts and scales; a pass for M harmonics holds the sums for every smaller M. ``offset`` is a
number near the mean of y that keeps the sums free of cancellation; ``Moments.recentred`` changes it.

How it is summed is an engine's business: ``sum_letters`` (rows -> moments) and its transpose ``evaluate_letters``
(coefficients -> rows), and the same for a pair of columns, ``sum_block`` and ``evaluate_block``. A ``ReadingPlan``
names the engine of every column and pair, and ``read`` walks the rows once, in chunks. A column with few distinct
values is summed per value, a pair of such columns per pair of values (a contingency table), and the features are met
only at the end; what the sums hold does not depend on the engine.
"""

from vff.moments.engines import ENGINES, PAIR_ENGINES, Choice, Engine, PairEngine, choose_engine, choose_pair
from vff.moments.gram import gram_adjoint, gram_matrix
from vff.moments.lattice import Codebook, Survey, codebook_of, survey
from vff.moments.operations import column_rows, evaluate_and_quad, evaluate_several, quad_of_pairs
from vff.moments.reading import ReadingPlan, Source, books_for, plan_reading, read, read_arrays, survey_columns
from vff.moments.rows import Basis, ColumnRequest, ColumnRows
from vff.moments.statistics import MomentRequest, Moments, Pair

__all__ = [
    "ENGINES",
    "PAIR_ENGINES",
    "Basis",
    "Choice",
    "Codebook",
    "ColumnRequest",
    "ColumnRows",
    "Engine",
    "MomentRequest",
    "Moments",
    "Pair",
    "PairEngine",
    "ReadingPlan",
    "Source",
    "Survey",
    "books_for",
    "choose_engine",
    "choose_pair",
    "codebook_of",
    "column_rows",
    "evaluate_and_quad",
    "evaluate_several",
    "gram_adjoint",
    "gram_matrix",
    "plan_reading",
    "quad_of_pairs",
    "read",
    "read_arrays",
    "survey",
    "survey_columns",
]
