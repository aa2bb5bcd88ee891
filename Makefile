# Everything starts from Python 3.11+ (with venv) and make: each target sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
BACKEND ?= bubblewrap
REPORT ?= report-$(BACKEND).json
LIMIT ?= 0
STAMP := $(VENV)/.setup-done
MEMBERS := core $(wildcard backends/*) $(wildcard providers/*)
MANIFESTS := pyproject.toml $(wildcard $(addsuffix /pyproject.toml,$(MEMBERS)))
EDITABLE := $(foreach member,$(MEMBERS),-e ./$(member)) -e .

.DEFAULT_GOAL := help
.PHONY: help setup test lint types demo bench lock clean conformance conformance-root refusal userns-limit

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 25

setup: $(STAMP) ## Make .venv with everything, hash-checked; does nothing when nothing changed

$(STAMP): requirements.lock bootstrap.lock $(MANIFESTS)
	@$(PYTHON) -c 'import sys; sys.exit("Firsthand needs Python 3.11 or newer; this is %s. Next: make PYTHON=/path/to/python3.11" % sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "This Python has no venv. Next: install it (Debian and Ubuntu: apt install python3-venv)." >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r bootstrap.lock
	$(BIN)/uv pip install --quiet --python $(VENV) --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(VENV) --no-deps --no-build-isolation $(EDITABLE)
	@touch $@

test: lint types ## Run every check: ruff, mypy --strict, pytest
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

demo: $(STAMP) ## See it work: a sample project, a check in the sandbox, and a hostile check that is stopped
	$(BIN)/firsthand demo

bench: $(STAMP) ## Measure the claims, side by side with peers, as ratios
	$(BIN)/python benchmarks/run.py

lock: $(STAMP) ## Resolve the dependencies anew and write the lock files (names, versions, markers, hashes)
	$(BIN)/uv export --quiet --all-extras --all-groups --no-emit-workspace --no-header --no-annotate --output-file requirements.lock
	@grep -A 100000 '^uv==' requirements.lock | awk 'NR > 1 && /^[^ ]/ { exit } { print }' > bootstrap.lock

conformance: $(STAMP) ## Put BACKEND through the whole battery and keep the report in REPORT
	$(BIN)/firsthand conformance $(BACKEND) --out $(REPORT)

conformance-root: $(STAMP) ## The same as root
	sudo $(BIN)/firsthand conformance $(BACKEND) --out $(REPORT)

refusal: $(STAMP) ## On a machine that can't isolate: both commands must refuse with exit status 3
	$(BIN)/firsthand doctor --json > $(REPORT); test $$? -eq 3
	$(BIN)/firsthand demo; test $$? -eq 3

userns-limit: ## Set Ubuntu's limit on user namespaces to LIMIT (0 or 1)
	sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=$(LIMIT)

clean: ## Remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
