# lme4's side of by_level.py: Rscript _by_level_lme4.R FOLDER prints one line of JSON.
# FOLDER holds x.bin and y.bin, doubles, and g.bin, integers of four bytes.
folder <- commandArgs(trailingOnly = TRUE)[1]
vector_of <- function(name, what, bytes) {
  path <- file.path(folder, name)
  readBin(path, what, file.size(path) / bytes)
}
worked <- function() sum(proc.time()[c("user.self", "sys.self")])
suppressPackageStartupMessages(library(lme4))
d <- data.frame(x = vector_of("x.bin", "double", 8), y = vector_of("y.bin", "double", 8))
d$g <- vector_of("g.bin", "integer", 4)
before <- worked()
model <- lmer(y ~ x + (1 + x | g), data = d)
effects <- ranef(model, condVar = TRUE)
cpu <- worked() - before
v <- VarCorr(model)$g
cat(sprintf(
  '{"cpu": %.3f, "noise": %.8f, "intercept": %.8f, "slope": %.8f, "correlation": %.8f}\n',
  cpu, sigma(model)^2, v[1, 1], v[2, 2], v[1, 2] / sqrt(v[1, 1] * v[2, 2])
))
