# lme4's side of levels.py: Rscript _levels_lme4.R FOLDER prints one line of JSON.
# FOLDER holds y.bin and g.bin, and item.bin where two columns of levels are crossed; else X.bin.
# X and y are doubles, column after column, levels integers of four bytes.
folder <- commandArgs(trailingOnly = TRUE)[1]

clock <- function() proc.time()[["elapsed"]]
worked <- function() sum(proc.time()[c("user.self", "sys.self")])
vector_of <- function(name, what, bytes) {
  path <- file.path(folder, name)
  readBin(path, what, file.size(path) / bytes)
}
# Most memory that this process has held, MiB; where the system does not say, not a number.
peak <- function() {
  if (!file.exists("/proc/self/status")) return(NaN)
  line <- grep("^VmHWM", readLines("/proc/self/status"), value = TRUE)
  as.numeric(gsub("[^0-9]", "", line)) / 1024
}

started <- clock()
suppressPackageStartupMessages(library(lme4))
imported <- clock() - started

y <- vector_of("y.bin", "double", 8)
crossed <- file.exists(file.path(folder, "item.bin"))
if (crossed) {
  d <- data.frame(item = vector_of("item.bin", "integer", 4))
  formula <- y ~ (1 | g) + (1 | item)
} else {
  d <- as.data.frame(matrix(vector_of("X.bin", "double", 8), length(y)))
  names(d) <- c("x0", "x1", "x2", "x3")
  formula <- y ~ x0 + x1 + x2 + x3 + (1 | g)
}
d$g <- vector_of("g.bin", "integer", 4)
d$y <- y

started <- clock()
before <- worked()
model <- lmer(formula, data = d)
fitted <- clock()
effects <- ranef(model, condVar = TRUE)
done <- clock()
cpu <- worked() - before

cat(sprintf(
  paste0(
    '{"import": %.6f, "fit": %.6f, "effects": %.6f, "cpu": %.6f, "peak": %s, "noise": %.10f, "level": %.10f, ',
    '"item": %s, ',
    '"version": "R %s.%s, lme4 %s"}\n'
  ),
  imported, fitted - started, done - fitted, cpu, format(peak()), sigma(model)^2, VarCorr(model)$g[1, 1],
  if (crossed) sprintf("%.10f", VarCorr(model)$item[1, 1]) else "null",
  R.version$major, R.version$minor, packageVersion("lme4")
))
