"""Ways to sum letters over rows, and the choice between them.

A new engine is one file with a class (``base.Engine``) and an entry in ``ENGINES``, or ``ENGINES.registered(...)``:

    cost         what it would take, or why it cannot
    accumulator  rows, chunk by chunk -> sums of weights times products of letters
    evaluate     its transpose: coefficients of letters -> values at rows

``table`` counts rows per combination of distinct values and meets the letters when all rows are read; ``nufft`` spreads
rows on a lattice instead and then does the same, or asks for transforms when a column is alone; ``grid`` knows columns
that are equally spaced; ``grouped`` takes the rows of every value of one column together and writes out the letters of
the others; ``dense`` writes all letters out.
"""
