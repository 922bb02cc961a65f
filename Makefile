# `make demo` and `make test` need Python 3.11 or newer and make; everything else they set up themselves, in .venv.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test fuzz lint format experiments benchmarks clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
JOBS ?= 2

help:
	@echo "make demo         fit a year of flights from New York as a sum of eight effects, draw out/demo.png"
	@echo "make test         lint, types, import contracts and tests"
	@echo "make fuzz         random tables, models, files, texts and commands against the laws, for SECONDS=600"
	@echo "make lint         the same without the tests"
	@echo "make format       let ruff rewrite what it can"
	@echo "make experiments  the figures of the paper, one file after another"
	@echo "make benchmarks   speed against other implementations"
	@echo "make clean        forget the environment and everything made"

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py

# A process per core, with the tests of a file mostly in one of them: what they share is made once. Threads of a
# linear-algebra library within each would only wait for one another.
test: lint
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal

# The figures of a long run go to docs/reliability.md; programs that reproduce failures to out/fuzz.
SECONDS ?= 600
fuzz: $(VENV)/.dev
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/fuzz --seconds $(SECONDS) --jobs $(JOBS) --json out/fuzz.json

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-cache

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
	$(INSTALL) --editable ".[$*]"
	@touch $@

$(BIN)/python:
	@for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11 python; do \
	  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "setting up $(VENV) with $$($$python --version)"; exec $$python -m venv $(VENV); \
	  fi; \
	done; \
	echo "Python 3.11 or newer was expected and none was found; install one, or name it: make PYTHON=/path/to/python" >&2; \
	exit 1

clean:
	rm -rf $(VENV) build dist out experiments/results .pytest_cache .ruff_cache .hypothesis .import_linter_cache .jax_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
