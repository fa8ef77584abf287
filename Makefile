# Two commands do all the set-up: `make demo` and `make test`. Both need python3 >= 3.11 and nothing else.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
DEMO   := demo-run
JOBS   ?= 2

.PHONY: demo test lint clean

demo: $(VENV)/.installed
	$(BIN)/bfreplay describe sample
	$(BIN)/bfreplay replay sample --jobs sample --out $(DEMO) --force

test: lint
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

clean:
	rm -rf $(VENV) $(DEMO)
