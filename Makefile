# Two commands matter: `make demo` and `make test`. Each makes .venv on first use and installs what it
# needs; the stamp files make a second run start at once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_READY := $(VENV)/.ready-demo
TEST_READY := $(VENV)/.ready-test
DOCS_READY := $(VENV)/.ready-docs
PAPER_READY := $(VENV)/.ready-paper
# Projects of their own in this clone: they are installed beside the package, not with it.
PROJECTS := -e ./harness -e ./paper
PROJECT_FILES := pyproject.toml harness/pyproject.toml paper/pyproject.toml
WORKERS ?= auto
CLUSTER_TESTS := tests/distributed/test_cluster.py
BENCH_VENV := .venv-bench
BENCH_BIN := $(BENCH_VENV)/bin
BENCH_READY := $(BENCH_VENV)/.ready
BENCH_KERNEL := $(BENCH_VENV)/.ready-kernel
ADELIE_VENV := .venv-bench-adelie
WHEELS_VENV := .venv-wheels
WHEELS_READY := $(WHEELS_VENV)/.ready
STUDY_VENV := .venv-study
STUDY_READY := $(STUDY_VENV)/.ready
BENCHOPT_VENV := .venv-benchopt
BENCHOPT_BIN := $(BENCHOPT_VENV)/bin
BENCHOPT_READY := $(BENCHOPT_VENV)/.ready
BENCHOPT_KERNEL := $(BENCHOPT_VENV)/.ready-kernel
BENCHOPT := PATH="$(abspath $(BENCHOPT_BIN)):$$PATH" OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 BENCHOPT_RAISE_ON_ERROR=1 benchopt
BENCH_ARGS ?=
BENCHOPT_ARGS ?= --config benchmarks/benchopt/small.yml
STUDY_ARGS ?=
DATA ?=
OUT ?= results
REPRODUCE_ARGS ?=
# What is tested a second time without the compiled kernel.
SOLVER_TESTS := tests/solvers tests/safety tests/kernel tests/test_path.py tests/test_follower.py
# The compiled kernel beside the package; without a C compiler the stamp is made all the same, and NumPy does the work.
KERNEL := $(VENV)/.ready-kernel

.PHONY: demo reproduce test test-long test-install wheels release-notes bench benchopt inference-study docs lint types unit clean

demo: $(DEMO_READY) $(KERNEL)
	$(BIN)/groupowl demo --out demo

# The paper's experiments on the data sets in a folder; make reproduce DATA=DIR REPRODUCE_ARGS="--quick" for five minutes.
reproduce: $(PAPER_READY)
	@test -n "$(DATA)" || { echo "name the folder with the data sets: make reproduce DATA=DIR"; exit 1; }
	$(BIN)/groupowl reproduce --data "$(DATA)" --out "$(OUT)" $(REPRODUCE_ARGS)

test: lint types unit

lint: $(TEST_READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(TEST_READY)
	$(BIN)/mypy

# One BLAS thread per test process: more of them only wait for each other. Tests on a cluster of worker processes need
# the cores for themselves.
unit: $(TEST_READY) $(KERNEL)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --ignore $(CLUSTER_TESTS)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 0 $(CLUSTER_TESTS)
	GROUPOWL_KERNEL=numpy OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) $(SOLVER_TESTS)

test-long: $(TEST_READY) $(KERNEL)
	$(BIN)/python tests/kernel/fuzz.py --tests
	$(BIN)/python tests/kernel/fuzz.py --minutes 10
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/long/conic_agreement.py
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/safety/campaign.py --out results/safety.json
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/safety/edges.py --out results/edges.json
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/long/large_file.py
	$(BIN)/pytest -n 0 -rs tests/test_array_api.py # with PyTorch, where it is installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pyright[nodejs]>=1.1.400'
	$(BIN)/pyright -p tests/typing --pythonpath $(BIN)/python
	$(MAKE) docs
	$(BIN)/python tests/long/site_layout.py docs/_build/html
	$(MAKE) test-install wheels
	$(BIN)/python tests/long/installation.py --dist dist --only wheel pure

# Source distribution and wheel in clean environments, and the lowest versions of what is required.
test-install: | $(BIN)/python
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/long/installation.py

# The source distribution, a wheel for each platform and the pure wheel, in dist/, all made on this machine, and looked
# into; so are the conda recipe and CITATION.cff.
wheels: $(WHEELS_READY)
	$(WHEELS_VENV)/bin/python tools/wheels.py
	$(WHEELS_VENV)/bin/python tests/long/archives.py dist
	$(WHEELS_VENV)/bin/twine check --strict dist/*
	$(WHEELS_VENV)/bin/check-wheel-contents dist
	$(WHEELS_VENV)/bin/cffconvert --validate -i CITATION.cff
	$(WHEELS_VENV)/bin/python tests/long/recipe.py

# The fragments of news/ become a section of the changelog, under __version__ and today's date.
release-notes: $(TEST_READY)
	$(BIN)/towncrier build --yes

$(WHEELS_READY):
	$(PYTHON) -m venv --clear $(WHEELS_VENV)
	$(WHEELS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		'build>=1.2' 'hatchling>=1.24' ziglang==0.14.1 twine check-wheel-contents cffconvert py-rattler-build
	@touch $@

# A site that needs no network, in docs/_build/html; whatever Sphinx warns of is an error, and so are broken links.
docs: $(DOCS_READY)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html
	@echo "docs/_build/html/index.html"

# groupowl against its peers, in an environment of its own: an hour at most, and "--resume" goes on; make bench
# BENCH_ARGS="--quick" for ten minutes, "--part small,losses" for some of it, "--against FOLDER" for this source tree beside
# that of another clone. R's glmnet takes part where it is installed (Debian: r-base-core r-cran-glmnet).
bench: $(BENCH_READY) $(BENCH_KERNEL)
	$(BENCH_BIN)/python -m benchmarks.peers $(BENCH_ARGS)

# The public benchmark in the format of benchopt, tested and run small, in a few minutes; its page is in
# benchmarks/benchopt/outputs. BENCHOPT_ARGS="--config FILE" runs something else.
benchopt: $(BENCHOPT_READY) $(BENCHOPT_KERNEL)
	$(BENCHOPT) test benchmarks/benchopt --skip-install
	$(BENCHOPT) run benchmarks/benchopt --no-display $(BENCHOPT_ARGS)

$(BENCHOPT_READY): pyproject.toml
	$(PYTHON) -m venv --clear $(BENCHOPT_VENV)
	$(BENCHOPT_BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[benchopt]'
	@touch $@

$(BENCHOPT_KERNEL): $(wildcard native/*) hatch_build.py | $(BENCHOPT_READY)
	$(BENCHOPT_BIN)/python hatch_build.py
	@touch $@

# What procedures promise about false discoveries, and what they keep: six hours at most, and a study that was stopped
# goes on, from the runs of benchmarks/results on another machine, too; make inference-study STUDY_ARGS="--quick" for ten
# minutes, "--render" for tables of what is there. Other packages take part where they can be installed.
inference-study: $(STUDY_READY) $(KERNEL)
	$(STUDY_VENV)/bin/python -m benchmarks.inference_study $(STUDY_ARGS)

$(STUDY_READY): pyproject.toml
	$(PYTHON) -m venv --clear $(STUDY_VENV)
	$(STUDY_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e . packaging # which hidimstat forgets
	for peer in hidimstat knockpy ipss; do \
		$(STUDY_VENV)/bin/python -m pip install --quiet --disable-pip-version-check $$peer \
			|| echo "$$peer cannot be installed and does not take part"; \
	done
	@touch $@

$(BENCH_READY): pyproject.toml harness/pyproject.toml
	$(PYTHON) -m venv --clear $(BENCH_VENV)
	$(BENCH_BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]' -e ./harness
	$(PYTHON) -m venv --clear $(ADELIE_VENV)
	$(ADELIE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[bench-adelie]' -e ./harness
	@touch $@

$(BENCH_KERNEL): $(wildcard native/*) hatch_build.py | $(BENCH_READY)
	$(BENCH_BIN)/python hatch_build.py
	@touch $@

$(KERNEL): $(wildcard native/*) hatch_build.py | $(BIN)/python
	$(BIN)/python hatch_build.py
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "groupowl needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(DEMO_READY): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cli,plot]'
	@touch $@

$(PAPER_READY): $(PROJECT_FILES) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cli,plot]' $(PROJECTS)
	@touch $(DEMO_READY) $@

# The test extra contains the demo's, so the demo is ready as well, and so is the paper's project.
$(TEST_READY): $(PROJECT_FILES) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]' $(PROJECTS)
	@touch $(DEMO_READY) $(PAPER_READY) $@

$(DOCS_READY): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) $(BENCH_VENV) $(ADELIE_VENV) $(WHEELS_VENV) $(STUDY_VENV) $(BENCHOPT_VENV) demo build dist .mypy_cache .ruff_cache .pytest_cache \
		docs/_build docs/api/generated docs/auto_gallery
