# Answers glmnet_in_r.py on standard input and output, one line each, words separated by tabs:
#   load n d q loss file_of_X file_of_Y entries    data as doubles, by columns; of a sparse X (entries > 0) its values,
#                                           their rows from 0, and where the columns start
#   solve thresh file_of_lambdas            -> CPU seconds of one call, first class and number of lambdas
#   write file                              the last answer as doubles: features, then tasks, then lambdas
suppressPackageStartupMessages({library(Matrix); library(glmnet)})
families <- c(logistic = "binomial", poisson = "poisson", cox = "cox")
glmnet.control(fdev = 0, devmax = 1) # no early end of the path
least <- 0.05 # seconds: shorter calls are timed together, because R's clock has milliseconds
input <- file("stdin", "r")

doubles <- function(path, count) readBin(path, "double", count, endian = "little")
integers <- function(path, count) readBin(path, "integer", count, endian = "little")
design <- function(path, n, d, entries) {
  if (entries == 0) return(matrix(doubles(path, n * d), n, d))
  rows <- integers(paste0(path, ".rows"), entries)
  starts <- integers(paste0(path, ".starts"), d + 1)
  new("dgCMatrix", x = doubles(path, entries), i = rows, p = starts, Dim = c(n, d))
}
clock <- function() sum(proc.time()[1:2])

fit <- function(data, lambda, thresh) {
  common <- list(x = data$x, y = data$y, lambda = lambda, thresh = thresh, maxit = 1e8,
                 standardize = FALSE)
  if (data$kind != "cox") common$intercept <- FALSE # which it has not
  more <- switch(data$kind, multinomial = list(family = "multinomial", type.multinomial = "grouped"),
                 many = list(family = "mgaussian"), one = list(family = "gaussian"),
                 list(family = families[[data$kind]]))
  do.call(glmnet, c(common, more))
}

repeat {
  line <- readLines(input, 1)
  if (length(line) == 0) break
  words <- strsplit(line, "\t")[[1]]
  if (words[1] == "load") {
    size <- as.integer(words[2:4])
    x <- design(words[6], size[1], size[2], as.integer(words[8]))
    y <- matrix(doubles(words[7], size[1] * size[3]), size[1], size[3])
    kind <- if (words[5] != "squared") words[5] else if (size[3] > 1) "many" else "one"
    y <- switch(kind, multinomial = factor(max.col(y)), many = y,
                cox = cbind(time = abs(as.vector(y)), status = as.numeric(y > 0)), as.vector(y))
    data <- list(x = x, y = y, kind = kind, size = size)
    cat("ready\n")
  } else if (words[1] == "solve") {
    lambda <- doubles(words[3], 1e6)
    thresh <- as.numeric(words[2])
    invisible(gc())
    start <- clock()
    model <- fit(data, lambda, thresh)
    seconds <- clock() - start
    if (seconds < least) {
      count <- min(20, ceiling(least / max(seconds, 1e-3)))
      start <- clock()
      for (one in seq_len(count)) fit(data, lambda, thresh)
      seconds <- (clock() - start) / count
    }
    cat(seconds, length(model$lambda), "\n", sep = "\t")
  } else {
    beta <- if (is.list(model$beta)) model$beta else list(model$beta)
    output <- file(words[2], "wb")
    for (task in beta) writeBin(as.vector(as.matrix(task)), output, endian = "little")
    close(output)
    cat("written\n")
  }
  flush(stdout())
}
