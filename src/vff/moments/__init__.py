"""The data pass: sums over rows of the letters of every column. It cannot name a kernel (theory §1 to §3).

What is summed, for terms whose features phi_s are products of single letters and psi_s of double ones, one letter per
column of the term:

    n                       rows
    weight                  sum w
    target                  sum w (y - offset)
    target_squared          sum w (y - offset)^2
    grams    s: (Q, ...)    sum w psi_s, an axis per column -> Phi_s' W Phi_s is a linear map of it (``gram.py``)
    projects s: (P_s,)      sum w (y - offset) phi_s
    blocks   s<t: (P_s,P_t) sum w phi_s phi_t'      the Gram matrix between two terms (``TermPair``)

``Moments`` adds, subtracts and scales; a pass for M harmonics holds the sums for every smaller M. ``offset`` is a
number near the mean of y that keeps the sums free of cancellation. How it is summed is an engine's business
(``engines``), and what the sums hold does not depend on it. A ``PassPlan`` names the engine of every set of axes, and
``run_pass`` goes through the rows once, in chunks; ``PreparedRows`` many times.
"""

from vff.moments.distinct import ColumnSummary, DistinctValues, distinct_values_of, extent_of, summarise_column
from vff.moments.engines.base import Choice, Cost, Engine, Job, Work, contract
from vff.moments.engines.choice import ENGINES, choose
from vff.moments.error_bars import NoisySums, run_noisy_pass
from vff.moments.few import MOST_FEW, FewRows
from vff.moments.gram import TermPair, gram_columns_adjoint, project_term, term_gram
from vff.moments.nodes import equivalent_weights, lattice_size
from vff.moments.noise_nodes import NODES
from vff.moments.operations import (
    LetterFunction,
    Tables,
    analyse,
    column_rows,
    combined,
    pair_functions,
    summed,
    synthesise,
)
from vff.moments.plan import PassPlan, RowBlock, distinct_values_for, plan_pass, summarise_columns
from vff.moments.rows import ColumnRequest, ColumnRows, Place, TermRequest, codes_of_levels, numbers, place_of
from vff.moments.run import Cells, PreparedRows, Whole, moments_of_arrays, moments_of_cells, run_pass
from vff.moments.sample import LARGEST_SAMPLE, Profile, Sample, merge_equal_rows, sample_of
from vff.moments.statistics import Harmonics, KeyedByPairs, MomentRequest, Moments, Pair
from vff.moments.written import WrittenStretch

__all__ = [
    "ENGINES",
    "LARGEST_SAMPLE",
    "MOST_FEW",
    "NODES",
    "Cells",
    "Choice",
    "ColumnRequest",
    "ColumnRows",
    "ColumnSummary",
    "Cost",
    "DistinctValues",
    "Engine",
    "FewRows",
    "Harmonics",
    "Job",
    "KeyedByPairs",
    "LetterFunction",
    "MomentRequest",
    "Moments",
    "NoisySums",
    "Pair",
    "PassPlan",
    "Place",
    "PreparedRows",
    "Profile",
    "RowBlock",
    "Sample",
    "Tables",
    "TermPair",
    "TermRequest",
    "Whole",
    "Work",
    "WrittenStretch",
    "analyse",
    "choose",
    "codes_of_levels",
    "column_rows",
    "combined",
    "contract",
    "distinct_values_for",
    "distinct_values_of",
    "equivalent_weights",
    "extent_of",
    "gram_columns_adjoint",
    "lattice_size",
    "merge_equal_rows",
    "moments_of_arrays",
    "moments_of_cells",
    "numbers",
    "pair_functions",
    "place_of",
    "plan_pass",
    "project_term",
    "run_noisy_pass",
    "run_pass",
    "sample_of",
    "summarise_column",
    "summarise_columns",
    "summed",
    "synthesise",
    "term_gram",
]
