PYTHON ?= python3
BIN := .venv/bin

# Else each of hundreds of processes of the suite would compile the modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install lint format test test-all chaos bench bench-compare bench-files bench-peers up lock clean

help:
	@echo "make up       install, start all processes on this machine, print the address of the web page"
	@echo "make test     the test suite; TESTS=tests/unit/api runs a folder, PART=2 another part of the long tests"
	@echo "make test-all the suite with all long tests, every kill point and more judged sets (docs/testing.md)"
	@echo "make chaos    200 faults over 500 documents, SEED=… repeats a run (docs/reliability.md)"
	@echo "make lint     ruff, mypy --strict, import-linter"
	@echo "make bench-files FOLDERS=…  ingest folders of real files; pages per second of each step, memory"
	@echo "make bench    throughput, latency and memory as tables, and as JSON in .benchmarks/"
	@echo "make bench-compare REV=…  this checkout against another commit, in turns; fails on a loss above 15 %"
	@echo "make bench-peers SETS=…  the same documents in Callslip and in other systems: ratios, SETS is a folder of judged sets"
	@echo "make install  .venv with the locked dependencies"
	@echo "make format   rewrite the code as ruff wants it"
	@echo "make clean    remove .venv and what tests and builds left"
	@echo "make lock     resolve the dependencies of pyproject.toml into requirements*.lock"

install: .venv/installed

.venv/installed: requirements.lock requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Callslip needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@echo "Installing the locked dependencies into .venv (2.1 GB, once). This takes a few minutes ..."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

up: install
	@exec $(BIN)/callslip up

lint: install
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Many tests wait for processes to start or stop, so the suite runs on more processes than cores.
WORKERS ?= 4

# The suite, with one of six parts of the long tests; docs/testing.md describes them.
test: install
	$(if $(PART),CALLSLIP_TEST_PART=$(PART)) $(BIN)/python -m pytest -n $(WORKERS) $(TESTS)

test-all: install
	CALLSLIP_TEST_ALL=1 $(BIN)/python -m pytest -n $(WORKERS) $(TESTS)

FAULTS ?= 200
DOCUMENTS ?= 500

chaos: install
	CALLSLIP_CHAOS_FAULTS=$(FAULTS) CALLSLIP_CHAOS_DOCUMENTS=$(DOCUMENTS) CALLSLIP_CHAOS_SEED=$(SEED) $(BIN)/python -m pytest -n0 -s tests/chaos/test_seeded_faults.py -k hundreds

bench: install
	$(BIN)/python -m benchmarks.speed.bench

REV ?= main
ROUNDS ?= 6
ONLY ?= command start long short search memory

bench-compare: install
	$(BIN)/python -m benchmarks.compare $(REV) --rounds $(ROUNDS) --only $(ONLY)

bench-files: install
	$(BIN)/python -m benchmarks.speed.ingest $(FOLDERS)

bench-peers: install
	$(BIN)/python -m benchmarks.peers --data $(SETS)

lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra server --extra postgresql --extra s3 pyproject.toml -o requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra server --extra postgresql --extra s3 --extra langchain --extra llama-index --extra haystack --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info
