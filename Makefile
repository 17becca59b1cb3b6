# Two commands matter: `make demo` and `make test`. Each makes .venv on first use and installs what it
# needs; the stamp files make a second run start at once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_READY := $(VENV)/.ready-demo
TEST_READY := $(VENV)/.ready-test
WORKERS ?= auto

.PHONY: demo test lint types unit clean

demo: $(DEMO_READY)
	$(BIN)/groupowl demo --out demo

test: lint types unit

lint: $(TEST_READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(TEST_READY)
	$(BIN)/mypy

unit: $(TEST_READY)
	$(BIN)/pytest -n $(WORKERS)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "groupowl needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(DEMO_READY): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cli,plot]'
	@touch $@

# The test extra contains the demo's, so the demo is ready as well.
$(TEST_READY): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $(DEMO_READY) $@

clean:
	rm -rf $(VENV) demo build dist .mypy_cache .ruff_cache .pytest_cache
