# mgcv's side of labels.py: Rscript _labels_bam.R FOLDER THREADS K prints one line of JSON.
# FOLDER holds X.bin and y.bin to fit and X_test.bin and y_test.bin to score: doubles, column after column.
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
  d$y <- y
  d
}

started <- clock()
suppressPackageStartupMessages(library(mgcv))
imported <- clock() - started

train <- frame_of("")
columns <- setdiff(names(train), "y")
formula <- as.formula(paste("y ~", paste0("s(", columns, ", k = ", k, ")", collapse = " + ")))
started <- clock()
before <- worked()
model <- bam(formula, data = train, family = binomial, discrete = TRUE, nthreads = threads)
seconds <- clock() - started
cpu <- worked() - before

test <- frame_of("_test")
p <- predict(model, test, type = "response", discrete = FALSE)

cat(sprintf(
  paste0(
    '{"import": %.6f, "fit": %.6f, "cpu": %.6f, "log_loss": %.8f, "coefficients": %d, "looks": %d, ',
    '"version": "R %s.%s, mgcv %s", "blas": "%s"}\n'
  ),
  imported, seconds, cpu, -mean(ifelse(test$y > 0.5, log(p), log1p(-p))), length(coef(model)),
  as.integer(model$iter), R.version$major, R.version$minor, packageVersion("mgcv"), extSoftVersion()[["BLAS"]]
))
