# Two commands do all the set-up: `make demo` and `make test`. Both need python3 >= 3.11 and nothing else.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
DEMO   := demo-run
JOBS   ?= 2

# a CBC build that bfreplay refuses: tests hold that what it does is never believed
UNSAFE := .venv-unsafe-cbc

# the lowest version that pyproject.toml allows of every direct dependency
LOWEST := .venv-lowest

# the newest version of everything
NEWEST := .venv-newest
replay-newest: export NUMBA_CACHE_DIR = $(CURDIR)/$(NEWEST)/compiled
$(LOWEST)/%: export NUMBA_CACHE_DIR = $(CURDIR)/$(LOWEST)/compiled
test-lowest: export NUMBA_CACHE_DIR = $(CURDIR)/$(LOWEST)/compiled
# loops are to be compiled here, not interpreted; but for `describe`, the first command on the other versions
replay-newest: export BFREPLAY_COMPILE = wait
$(LOWEST)/%: export BFREPLAY_COMPILE = wait
compiled-%: export BFREPLAY_COMPILE = wait
# no golden replays, no searches, no sweeps, no browser, no documentation
FAST   := runs systems parity policies replay result_folders scalability workload datasets milp/backends milp/files \
          cli/test_jobs_fit_command.py cli/test_replay_command.py cli/test_report_command.py

.PHONY: demo help test test-slow test-all test-lowest replay-lowest replay-newest docs man parity lint compiled compiled-replay compiled-policies compiled-elasticflow compiled-ingest unsafe-cbc clean

demo: $(VENV)/.installed
	$(BIN)/bfreplay describe sample
	$(BIN)/bfreplay replay sample --jobs sample --out $(DEMO) --force
	$(BIN)/bfreplay report $(DEMO) -o $(DEMO).html --force

help:
	@echo "make demo         describe and replay the bundled log, leave a run folder and its report"
	@echo "make test         style, types, layering, and the tests that take little time, of nearly every kind"
	@echo "make test-slow    what make test leaves out for its time; CI runs both"
	@echo "make test-all     before a release: also the tests that only repeat a kind of check, three times the random examples,"
	@echo "                  and the sample on the lowest versions of all dependencies (make replay-lowest)"
	@echo "make replay-newest  the sample on the newest versions of all dependencies, in an environment of its own"
	@echo "make test-lowest  the fast half of the tests on those lowest versions; of tests/:"
	@echo "                  $(FAST)"
	@echo "make docs         build the documentation"
	@echo "make man          build the man page"
	@echo "make parity       compare with the recorded runs of the published systems, in minutes, and print docs/parity.md's table"

# style and types take one core, and so does compiling the inner loops, which else every worker would do by itself
test: $(VENV)/.installed-dev unsafe-cbc
	$(MAKE) --no-print-directory --output-sync -j2 lint compiled
	$(BIN)/python -m pytest -n $(JOBS) -m "not slow and not thorough"

test-slow: $(VENV)/.installed-dev unsafe-cbc
	$(BIN)/python -m pytest -n $(JOBS) -m "slow and not thorough"

test-all: lint unsafe-cbc replay-lowest
	$(BIN)/python -m pytest -n $(JOBS) --hypothesis-profile=thorough

test-lowest: $(LOWEST)/.installed-test
	$(LOWEST)/bin/python -m pytest -n $(JOBS) -m "not slow and not thorough" $(addprefix tests/,$(FAST))

replay-lowest: $(LOWEST)/.replayed

# no constraints: what `pip install` brings a user today
replay-newest: | $(VENV)/bin/python
	rm -rf $(NEWEST)
	$(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python -m pip --disable-pip-version-check --quiet install --upgrade -e .
	BFREPLAY_COMPILE=background $(NEWEST)/bin/bfreplay describe sample --json | $(NEWEST)/bin/python -m json.tool > /dev/null
	for solver in exact highs cbc; do $(NEWEST)/bin/bfreplay replay sample --jobs sample --window 2024-07-01 2024-07-02 \
	  --solver $$solver --json --quiet --out $(NEWEST)/run --force | $(NEWEST)/bin/python -m json.tool > /dev/null || exit 1; done
	$(NEWEST)/bin/bfreplay replay --cluster v100=2,k80=2 --jobs "gavel(n=4)" --curves sample \
	  --policy gavel.max_min_fairness_perf --json --quiet | $(NEWEST)/bin/python -m json.tool > /dev/null
	$(NEWEST)/bin/bfreplay report $(NEWEST)/run -o $(NEWEST)/run.html --force

# the tests build it too, elsewhere
docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -b html -E -W --keep-going -q -d docs/_build/doctrees docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html"

man: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -b man -W --keep-going -q -d docs/_build/doctrees-man docs docs/_build/man
	@echo "The man page is docs/_build/man/bfreplay.1"

parity: $(VENV)/.installed-dev
	$(BIN)/python -m tests.parity.print_table

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

compiled: compiled-replay compiled-ingest compiled-policies compiled-elasticflow

compiled-replay: $(VENV)/.installed-dev
	$(BIN)/bfreplay replay sample --jobs sample --window 2024-07-01 2024-07-02 --quiet > /dev/null

compiled-policies: compiled-replay
	$(BIN)/bfreplay replay sample --jobs sample --t-fwd auto --window 2024-07-01 2024-07-02 --quiet > /dev/null
	$(BIN)/bfreplay replay sample --jobs sample --policy look-ahead --window 2024-07-01 2024-07-02 --quiet > /dev/null
	for policy in gavel.fifo_perf bftrainer; do $(BIN)/bfreplay replay --cluster v100=2,k80=2 --jobs "gavel(n=4)" \
	  --curves sample --policy $$policy --quiet > /dev/null || exit 1; done

compiled-elasticflow: compiled-replay
	$(BIN)/bfreplay replay --cluster gpu=8 --jobs "elasticflow(n=4)" --curves sample --policy elasticflow.elasticflow \
	  --quiet > /dev/null

compiled-ingest: $(VENV)/.installed-dev
	printf '%s\n' 'JobIDRaw|State|Start|End|ElapsedRaw|TimelimitRaw|NNodes|NodeList' \
	  '1|COMPLETED|2024-01-01T00:00:00|2024-01-01T01:00:00|3600|60|1|n1' > $(VENV)/jobs.psv
	$(BIN)/bfreplay ingest slurm $(VENV)/jobs.psv --tz UTC > /dev/null

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

$(LOWEST)/.installed: pyproject.toml constraints-lowest.txt | $(VENV)/bin/python
	rm -rf $(LOWEST)
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip --disable-pip-version-check --quiet install -c constraints-lowest.txt -e .
	touch $@

$(LOWEST)/.installed-test: $(LOWEST)/.installed
	$(LOWEST)/bin/python -m pip --disable-pip-version-check --quiet install -c constraints-lowest.txt -e '.[test]'
	touch $@

# again after any change of the package, whose compiled loops are cached
$(LOWEST)/.replayed: $(LOWEST)/.installed $(shell find bfreplay -name '*.py')
	BFREPLAY_COMPILE=background $(LOWEST)/bin/bfreplay describe sample > /dev/null
	$(LOWEST)/bin/bfreplay replay sample --jobs sample --out $(LOWEST)/run --force
	$(LOWEST)/bin/bfreplay report $(LOWEST)/run -o $(LOWEST)/run.html --force
	touch $@

clean:
	rm -rf $(VENV) $(UNSAFE) $(LOWEST) $(NEWEST) $(DEMO) $(DEMO).html docs/_build
