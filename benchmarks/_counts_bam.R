# mgcv's side of counts.py: Rscript _counts_bam.R FOLDER THREADS K prints one line of JSON.
# FOLDER holds X.bin, region.bin and y.bin to fit and the same with _test to score: doubles, column after column.
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
threads <- as.integer(arguments[2])
k <- as.integer(arguments[3])

clock <- function() proc.time()[["elapsed"]]
worked <- function() sum(proc.time()[c("user.self", "sys.self")])
vector_of <- function(name) {
  path <- file.path(folder, name)
  readBin(path, "double", file.size(path) / 8)
}
frame_of <- function(suffix) {
  y <- vector_of(paste0("y", suffix, ".bin"))
  d <- as.data.frame(matrix(vector_of(paste0("X", suffix, ".bin")), length(y)))
  names(d) <- c("x0", "x1", "x2", "x3")
  d$region <- factor(vector_of(paste0("region", suffix, ".bin")))
  d$y <- y
  d
}

started <- clock()
suppressPackageStartupMessages(library(mgcv))
imported <- clock() - started

train <- frame_of("")
smooth <- paste0("s(x", 0:3, ", k = ", k, ")", collapse = " + ")
formula <- as.formula(paste("y ~", smooth, "+ s(region, bs = 're')"))
started <- clock()
before <- worked()
model <- bam(formula, data = train, family = nb(), discrete = TRUE, nthreads = threads)
seconds <- clock() - started
cpu <- worked() - before

test <- frame_of("_test")
levels(test$region) <- levels(train$region)
mean <- predict(model, test, type = "response")
size <- model$family$getTheta(TRUE)

cat(sprintf(
  paste0(
    '{"import": %.6f, "fit": %.6f, "cpu": %.6f, "log_score": %.8f, "dispersion": %.8f, "coefficients": %d, ',
    '"looks": %d, "version": "R %s.%s, mgcv %s", "blas": "%s"}\n'
  ),
  imported, seconds, cpu, -mean(dnbinom(test$y, size = size, mu = mean, log = TRUE)), 1 / size, length(coef(model)),
  as.integer(model$iter), R.version$major, R.version$minor, packageVersion("mgcv"), extSoftVersion()[["BLAS"]]
))
