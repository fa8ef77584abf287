# Two commands do all the set-up: `make demo` and `make test`. Both need python3 >= 3.11 and nothing else.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
DEMO   := demo-run
JOBS   ?= 2

# a CBC build that bfreplay refuses: tests hold that what it does is never believed
UNSAFE := .venv-unsafe-cbc

.PHONY: demo test docs lint unsafe-cbc clean

demo: $(VENV)/.installed
	$(BIN)/bfreplay describe sample
	$(BIN)/bfreplay replay sample --jobs sample --out $(DEMO) --force
	$(BIN)/bfreplay report $(DEMO) -o $(DEMO).html --force

test: lint unsafe-cbc
	$(BIN)/python -m pytest -n $(JOBS)

# the tests build it too, elsewhere
docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -b html -E -W --keep-going -q -d docs/_build/doctrees docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html"

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

$(VENV)/.installed-docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[docs]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.installed $(VENV)/.installed-docs

unsafe-cbc: $(UNSAFE)/.installed

$(UNSAFE)/.installed: tests/milp/unsafe-cbc-requirements.txt | $(VENV)/bin/python
	$(PYTHON) -m venv $(UNSAFE)
	$(UNSAFE)/bin/python -m pip --disable-pip-version-check --quiet install -r $<
	touch $@

clean:
	rm -rf $(VENV) $(UNSAFE) $(DEMO) $(DEMO).html docs/_build
