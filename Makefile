# `make demo` and `make test` need Python 3.11 or newer and make; everything else they set up themselves, in .venv.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-lowest fuzz style types tests lint format experiments benchmarks clean

PYTHON ?= python3
VENV := .venv
LOWEST := .venv-lowest
BIN := $(VENV)/bin
INSTALL := -m pip install --quiet --disable-pip-version-check
JOBS ?= 2
# A process per core, with the tests of a file mostly in one of them: what they share is made once. Threads of a
# linear-algebra library within each would only wait for one another.
PYTEST := -m pytest -q -n $(JOBS) --dist worksteal

help:
	@echo "make demo         fit a year of flights from New York as a sum of eight effects, draw out/demo.png"
	@echo "make test         lint, types, import contracts and tests"
	@echo "make fuzz         random tables, models, files, texts and commands against the laws, for SECONDS=600"
	@echo "make test-lowest  the tests with the lowest versions that pyproject.toml allows"
	@echo "make lint         lint, types and import contracts, without the tests"
	@echo "make format       let ruff rewrite what it can"
	@echo "make experiments  the figures of the paper, one file after another"
	@echo "make benchmarks   speed against other implementations"
	@echo "make clean        forget the environment and everything made"

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py

# What takes a second goes first; types are checked beside the tests. The import contracts are among the tests.
test: style
	@$(MAKE) --no-print-directory -j 2 types tests

# The figures of a long run go to docs/reliability.md; programs that reproduce failures to out/fuzz.
SECONDS ?= 600
fuzz: $(VENV)/.dev
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/fuzz --seconds $(SECONDS) --jobs $(JOBS) --json out/fuzz.json

tests: $(VENV)/.dev
	OPENBLAS_NUM_THREADS=1 $(BIN)/python $(PYTEST)

# Old releases call what newer releases of their own dependencies deprecate: that is between the two of them.
test-lowest: $(LOWEST)/.dev
	OPENBLAS_NUM_THREADS=1 $(LOWEST)/bin/python $(PYTEST) -W ignore::DeprecationWarning

lint: style types
	$(BIN)/lint-imports --no-cache

style: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/pyright

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

experiments: $(VENV)/.dev
	@$(call run_all,experiments)

benchmarks: $(VENV)/.benchmarks
	@$(call run_all,benchmarks)

# Every file of a folder, one after another, with a line of progress; files that start with _ are helpers.
define run_all
set -e; files=$$(ls $(1)/[!_]*.py); total=$$(echo "$$files" | wc -l); n=0; \
for file in $$files; do n=$$((n + 1)); echo "[$$n/$$total] $$file"; $(BIN)/python "$$file"; done
endef

# One stamp per extra: installing again is left out until pyproject.toml changes.
$(VENV)/.%: pyproject.toml | $(BIN)/python
	$(BIN)/python $(INSTALL) --editable ".[$*]"
	@touch $@

$(LOWEST)/.dev: pyproject.toml tests/lowest.py | $(LOWEST)/bin/python
	$(LOWEST)/bin/python tests/lowest.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python $(INSTALL) --editable ".[dev]" --constraint $(LOWEST)/constraints.txt
	@touch $@

$(LOWEST)/bin/python: PYTHON := python3.11
$(BIN)/python $(LOWEST)/bin/python:
	@for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11 python; do \
	  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "setting up $(@:/bin/python=) with $$($$python --version)"; exec $$python -m venv $(@:/bin/python=); \
	  fi; \
	done; \
	echo "Python 3.11 or newer was expected and none was found; install one, or name it: make PYTHON=/path/to/python" >&2; \
	exit 1

clean:
	rm -rf $(VENV) $(LOWEST) build dist out experiments/results .pytest_cache .ruff_cache .hypothesis .import_linter_cache .jax_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
