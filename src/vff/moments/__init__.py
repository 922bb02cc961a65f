"""The data pass: sums over rows of the letters of every column. It cannot name a kernel (design Fact A).

What is summed, for terms whose features phi_s are products of single letters and psi_s of double ones, one letter per
column of the term (see ``vff.basis``):

    n                       rows
    weight                  sum w
    target                  sum w (y - offset)
    target_squared          sum w (y - offset)^2
    grams    s: (Q, ...)    sum w psi_s, an axis per column -> Phi_s' W Phi_s is a linear map of it (``gram.py``)
    projects s: (P_s,)      sum w (y - offset) phi_s
    blocks   s<t: (P_s,P_t) sum w phi_s phi_t'      the Gram matrix between two terms (``coupling.py``)

With one column, M = 1, q = 0 and theta = pi (t + 1): gram = sum w [1, cos, cos 2, sin, sin 2], and

    Phi' W Phi =  sum w  [ 1        cos            sin         ]
                         [ cos   (1 + cos 2)/2   (sin 2)/2     ]
                         [ sin    (sin 2)/2     (1 - cos 2)/2  ]

``Moments`` adds, subtracts and scales; a pass for M harmonics holds the sums for every smaller M. ``offset`` is a
number near the mean of y that keeps the sums free of cancellation; ``Moments.recentred`` changes it.

How it is summed is an engine's business (``engines``): rows -> sums of letters, and its transpose, coefficients ->
rows, for any set of axes; a column by itself is a set of one. A ``ReadingPlan`` names the engine of every set, and
``read`` walks the rows once, in chunks; a ``Walk`` does so many times.
A column with few distinct values is summed per value, a set of such columns per combination of values (a contingency
table), continuous columns on a lattice that serves every letter, and the features are met only at the end; what the
sums hold does not depend on the engine.
"""

from vff.moments.cells import Cells, Whole, read_cells
from vff.moments.collapse import collapse
from vff.moments.coupling import Coupling
from vff.moments.engines import ENGINES, Choice, Cost, Engine, Job, Work, choose, contract
from vff.moments.gram import gram_columns_adjoint, gram_tensor, see_term
from vff.moments.lattice import Codebook, ColumnSummary, codebook_of, survey
from vff.moments.operations import (
    LetterFunction,
    Tables,
    column_rows,
    evaluate_letters,
    evaluate_several,
    pair_functions,
    sum_letters,
    summed,
)
from vff.moments.pairs import KeyedByPairs, Pair
from vff.moments.planning import ReadingPlan, Source, books_for, plan_reading, survey_columns
from vff.moments.quadrature import equivalent_weights, features_at_nodes, lattice_size
from vff.moments.reading import read, read_arrays
from vff.moments.rows import ColumnRequest, ColumnRows, TermRequest
from vff.moments.sample import LARGEST_SAMPLE, Profile, Sample, sample_of
from vff.moments.statistics import Harmonics, MomentRequest, Moments, joint
from vff.moments.walking import Walk

__all__ = [
    "ENGINES",
    "LARGEST_SAMPLE",
    "Cells",
    "Choice",
    "Codebook",
    "ColumnRequest",
    "ColumnRows",
    "ColumnSummary",
    "Cost",
    "Coupling",
    "Engine",
    "Harmonics",
    "Job",
    "KeyedByPairs",
    "LetterFunction",
    "MomentRequest",
    "Moments",
    "Pair",
    "Profile",
    "ReadingPlan",
    "Sample",
    "Source",
    "Tables",
    "TermRequest",
    "Walk",
    "Whole",
    "Work",
    "books_for",
    "choose",
    "codebook_of",
    "collapse",
    "column_rows",
    "contract",
    "equivalent_weights",
    "evaluate_letters",
    "evaluate_several",
    "features_at_nodes",
    "gram_columns_adjoint",
    "gram_tensor",
    "joint",
    "lattice_size",
    "pair_functions",
    "plan_reading",
    "read",
    "read_arrays",
    "read_cells",
    "sample_of",
    "see_term",
    "sum_letters",
    "summed",
    "survey",
    "survey_columns",
]
