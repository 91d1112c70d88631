# Everything from a checkout. Each target sets up what it needs and is quick when it is there.
#
#   make run      vet a real server and print the report
#   make test     set up the same and pass the tests
#   make check    lint, types, imports, unit tests (no Docker)
#   make gate     how well the checks of definitions do on labelled entries, by class
#   make bench    timings, as ratios within one run
#   make survey   start the corpus of real servers, and write docs/survey.md (resumable; JOBS=1..4)
#   make score    known faults and benign servers, and write docs/score.md (resumable; JOBS=1..4)
#   make samples  the faulty sample servers and their twins, and write docs/samples.md
#   make field    all attacks from the field and their twins; `make test` runs half of them
#   make clean    remove what dead runs left on the engine
#
# ENGINE=no refuses the installation of a Docker engine. TARGET=… chooses what `make run` vets.

PYTHON ?= python3
ENGINE ?= yes
JOBS   ?= 2
TARGET ?= pypi:mcp-server-time
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SANDBOXED = $(BIN)/python -m pytest tests --ignore=tests/unit --docker=require --durations=10

.PHONY: setup venv engine images run test check lint unit gate bench survey score samples field clean

setup: venv engine images

venv: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) .ci/make_venv.py $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

engine: venv
	@HARNESS_ENGINE_SETUP=$(ENGINE) $(BIN)/harness doctor --fix --quiet

images: engine
	@$(BIN)/harness images build --quiet

run: setup
	$(BIN)/harness run $(TARGET)

# Images are made while lint and unit tests run: the first waits for packages, the second for nothing. Runs of servers
# wait for one another more than for a core, so two files of tests go side by side; what needs the machine alone follows.
test: venv
	$(MAKE) --jobs=2 --output-sync=line images check
	@failed=0; \
	$(SANDBOXED) -m 'not field and not alone' --numprocesses=2 --dist=loadfile || failed=1; \
	$(SANDBOXED) -m alone || failed=1; \
	exit $$failed

check: lint unit

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: venv
	$(BIN)/python -m pytest tests/unit

gate: venv
	$(BIN)/python -m tests.definitions_gate

bench: setup
	$(BIN)/python -m tests.bench

survey: setup
	$(BIN)/python -m tests.survey --jobs $(JOBS)

score: setup
	$(BIN)/python -m tests.score --jobs $(JOBS)

samples: setup
	$(BIN)/python -m tests.score.samples --jobs $(JOBS)

field: setup
	$(BIN)/python -m pytest tests/e2e/test_field_attacks.py --docker=require

clean: venv
	$(BIN)/harness clean
