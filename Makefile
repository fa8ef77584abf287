# Two commands do all the set-up: `make demo` and `make test`. Both need python3 >= 3.11 and nothing else.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
DEMO   := demo-run
JOBS   ?= 2

# a CBC build that bfreplay refuses: tests hold that what it does is never believed
UNSAFE := .venv-unsafe-cbc

.PHONY: demo test lint unsafe-cbc clean

demo: $(VENV)/.installed
	$(BIN)/bfreplay describe sample
	$(BIN)/bfreplay replay sample --jobs sample --out $(DEMO) --force

test: lint unsafe-cbc
	$(BIN)/python -m pytest -n $(JOBS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "bfreplay needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e .
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.installed

unsafe-cbc: $(UNSAFE)/.installed

$(UNSAFE)/.installed: tests/milp/unsafe-cbc-requirements.txt | $(VENV)/bin/python
	$(PYTHON) -m venv $(UNSAFE)
	$(UNSAFE)/bin/python -m pip --disable-pip-version-check --quiet install -r $<
	touch $@

clean:
	rm -rf $(VENV) $(UNSAFE) $(DEMO)
