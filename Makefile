PYTHON ?= python3
BIN := .venv/bin

.PHONY: help install lint format test test-code test-running bench bench-files up lock clean

help:
	@echo "make up       install, start everything on this machine, print the address of the page"
	@echo "make test     the whole test suite"
	@echo "make lint     ruff, mypy --strict, import-linter"
	@echo "make bench-files FOLDERS=…  a folder of real files: pages per second of each step, memory"
	@echo "make bench    throughput, latency and memory, printed as docs/performance.md has them"
	@echo "make install  .venv with the locked dependencies"
	@echo "make lock     resolve pyproject.toml into requirements*.lock again"

install: .venv/installed

.venv/installed: requirements.lock requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Callslip needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@echo "Installing the locked dependencies into .venv (about 1 GB, once) ..."
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

# Half of the suite waits for processes that were killed or started, half computes: at once they take
# two thirds of the time. The first shows how far it is, the second its output at its end.
test: install
	@$(MAKE) --no-print-directory --jobs=2 test-code test-running

test-code:
	$(BIN)/python -m pytest tests/unit tests/contract tests/acceptance

test-running:
	@log=$$(mktemp) && trap 'rm -f "$$log"' EXIT; \
	$(BIN)/python -m pytest tests/integration tests/chaos > "$$log" 2>&1; code=$$?; \
	cat "$$log"; exit $$code

bench: install
	$(BIN)/python -m evals.bench

bench-files: install
	$(BIN)/python -m evals.ingest $(FOLDERS)

lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra server --extra postgresql pyproject.toml -o requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra server --extra postgresql --extra langchain --extra llama-index --extra haystack --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info
