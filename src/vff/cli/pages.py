"""The texts of ``--help``: what each command is for, an example, units, and what its output means."""

ABOUT = """\
Gaussian processes for large tables, with honest uncertainty.

A model is a sum of effects: smooth functions of numbers and times, a value for
every level of a text, and products of these. The rows are read in pieces, once
for most models, so that files may be larger than memory."""

EXAMPLES = """\
examples:
  vff demo                                      a table with known effects, and all of it
  vff info loads.parquet                        columns, and what they hold
  vff fit loads.parquet --target load --terms "hour + outdoors * cat(house)" --out load.vff
  vff predict load.vff new.csv --out predicted.csv
  vff effects load.vff --out effects.png

exit codes:
  0 good, 1 a fault of vff itself, 2 the command is not understood, 3 the data or
  their columns do not fit, 4 a model, statistics or output file cannot be read or
  written, 5 a package is not installed, 130 interrupted"""

SUMMARIES = {
    "fit": "learn a model from rows, or from statistics",
    "predict": "predict new observations, with their uncertainty",
    "effects": "draw what every term adds, or write it as numbers",
    "info": "say what is in a model, in statistics or in a file of data",
    "update": "add rows to a model, without reading the old ones again",
    "forget": "take rows out of a model that has seen them",
    "moments": "sum up rows, to be merged and fitted elsewhere",
    "merge": "add the statistics of different rows",
    "demo": "make a table with known effects, fit it, predict and draw",
}

PAGES = {
    "fit": """\
terms:
  hour                     a smooth function of a number or a time; levels of a text
  hour + zone              effects that add up
  hour * zone              one function of both: a curve per zone. This is the product
                           of two kernels, and NOT R's hour + zone + hour:zone
  (hour + day) * zone      hour * zone + day * zone
  cat(zone)                levels, whatever the column holds
  smooth(hour, 5/2)        a smoother function: 1/2, 3/2 (default), 5/2, 7/2, 9/2
  Matern52(hour, lengthscale=2)   where learning starts, in the units of the column
  areas(region, "pairs.csv")      levels that know their neighbours: two names per
                           line below a header, or one for an area without any
  ordered(grade, levels=["low", "middle", "high"])   levels in an order
  s(hour), te(lon, lat), s(x, by=zone), cc(day, 365.25)   as mgcv writes them
  (1 | house), (1 + x | house), (x || house), (1 | a/b)   as lme4 writes them
  offset(log_n)            a column that is added as it is
  .                        every column that is not named otherwise
  `wind speed`             names with spaces or signs

interactions:
  --interactions auto fits the sum, looks at every pair of its terms, and lets the
  products that pay join it; what was tried is printed, and kept in the model.

units:
  Everything is in the units of your columns. Times count in days since 1970-01-01,
  durations in days. --units gives labels; it converts nothing.

examples:
  vff fit loads.parquet --target load --out load.vff
  vff fit 'year=*/*.parquet' --target load --terms "hour * day + cat(house)" \\
      --domain "hour=0:24" --units "hour=h, load=kW" --checkpoint pass.state --out load.vff
  vff fit visits.csv --target visits --likelihood poisson --exposure days --out visits.vff
  vff fit all.vffm --out load.vff""",
    "predict": """\
columns of the output, one row per row of DATA, in the same order:
  mean, sd       of a new observation, noise included, in the units of the target
  lower, upper   a new observation lies between them with probability --level
With labels instead: one column P(label) per class, and predicted, the most
probable one. --keep copies columns of DATA in front.

A missing number has the effect that the fit found for it, or one that is not
known where the fit saw none. With --missing drop, rows that have one are not in
the output: keep a column that tells rows apart. Beyond the domain of the model predictions go back
to the prior, and a warning says how many rows are there.

example:
  vff predict load.vff new/*.parquet --keep "house, time" --level 0.9 --out predicted.parquet""",
    "effects": """\
An effect is what a term adds to the prediction, centred on the rows of the fit:
in the units of the target, or on the scale of the link (a logit, a logarithm).

columns of the CSV:
  term     as 'vff info' names it
  x        where: a number in the units of the column, a date, or a level; of a
           product, both with ' * ' between them
  effect   posterior mean
  sd       posterior standard deviation, from the joint posterior of all terms

example:
  vff effects load.vff --terms "hour, outdoors" --out effects.pdf""",
    "info": """\
Of a model or statistics: rows, terms, hyperparameters in your units, notes, and
where it came from. Of data: columns, what they hold, rows where that is known.

A lengthscale is the distance over which a function keeps its value, in the units
of its column; the prior sd of a term is how far it could go, in those of the
target; its share is what it explains of the variance of the target (of that of
the latent function where noise is not Gaussian, rows weighted by what they tell;
shares of terms that offset one another sum to more than one).

examples:
  vff info load.vff
  vff info loads.csv --types "zip=text"
  vff info load.vff --json""",
    "update": """\
The result is that of all rows together (for Gaussian noise exactly so). The old
rows are not needed. New rows must lie in the domain of the model: give 'vff fit'
a --domain wide enough for rows to come.

example:
  vff update load.vff june.parquet --out load-june.vff""",
    "forget": """\
The rows are subtracted from the sums that the model keeps, and the rest is learnt
again: the result is that of a fit that never saw them. They must be the very rows
that were given before. For Gaussian noise.

example:
  vff forget load.vff withdrawn.csv --out load-without.vff""",
    "moments": """\
Statistics are all that learning needs of rows, for Gaussian noise, and are small:
rows stay where they are. Give every part the same --terms and the same --domain,
for every column of numbers, so that the parts add up.

example:
  vff moments site1.parquet --target load --terms "hour + cat(house)" \\
      --domain "hour=0:24" --out site1.vffm""",
    "merge": """\
The parts must be of different rows, with the same terms and domains. 'vff fit'
then learns from the sum.

example:
  vff merge site*.vffm --out all.vffm
  vff fit all.vffm --out load.vff""",
    "demo": """\
Writes a CSV file of loads that depend on the hour, the temperature outdoors and
the house in a known way, runs three commands on it, and shows them. It takes a
few seconds.

example:
  vff demo --out somewhere""",
}
