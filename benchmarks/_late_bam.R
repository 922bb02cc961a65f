# mgcv's side of late_flights.py: Rscript _late_bam.R FOLDER THREADS prints one line of JSON.
# FOLDER holds X.bin and y.bin to fit and X_test.bin and y_test.bin to score: doubles, column after column.
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
threads <- as.integer(arguments[2])

clock <- function() proc.time()[["elapsed"]]
worked <- function() sum(proc.time()[c("user.self", "sys.self")])
vector_of <- function(name) {
  path <- file.path(folder, name)
  readBin(path, "double", file.size(path) / 8)
}
frame_of <- function(suffix) {
  y <- vector_of(paste0("y", suffix, ".bin"))
  d <- as.data.frame(matrix(vector_of(paste0("X", suffix, ".bin")), length(y)))
  names(d) <- c("month", "day", "wd", "dep", "arr", "air", "dist", "age")
  d$y <- y
  d
}

started <- clock()
suppressPackageStartupMessages(library(mgcv))
imported <- clock() - started

train <- frame_of("")
formula <- y ~ s(month, k = 12) + s(day, k = 31) + s(wd, k = 7) + s(dep, k = 60) + s(arr, k = 60) + s(air, k = 60) +
  s(dist, k = 60) + s(age, k = 40)
started <- clock()
before <- worked()
model <- bam(formula, data = train, family = binomial, discrete = TRUE, nthreads = threads)
seconds <- clock() - started
cpu <- worked() - before

test <- frame_of("_test")
started <- clock()
p <- predict(model, test, type = "response", discrete = TRUE, n.threads = threads)
scoring <- clock() - started

cat(sprintf(
  paste0(
    '{"import": %.6f, "fit": %.6f, "cpu": %.6f, "log_loss": %.8f, "score_seconds": %.6f, "coefficients": %d, ',
    '"looks": %d, "version": "R %s.%s, mgcv %s", "blas": "%s"}\n'
  ),
  imported, seconds, cpu, -mean(ifelse(test$y > 0.5, log(p), log1p(-p))), scoring, length(coef(model)),
  as.integer(model$iter), R.version$major, R.version$minor, packageVersion("mgcv"), extSoftVersion()[["BLAS"]]
))
