# Every target sets up what it needs: a fresh machine needs only Python 3.11 or newer and make.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help setup demo test thorough check format bench torture docs results package lock clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(READY)  ## create .venv and install what the lock file pins

$(READY): requirements.lock pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit("autosf needs Python 3.11 or newer, found %s.%s" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || "$(PYTHON)" -m venv .venv
	@echo "Installing into .venv (once; about two minutes) ..." >&2
	@$(BIN)/python -m pip install -qq --no-compile "$$(grep '^torch==' requirements.lock)"  # by its exact pin first: a CPU build at hand is taken
	@$(BIN)/python -m pip install -qq --no-compile -r requirements.lock
	@$(BIN)/python -m compileall -q -j 0 .venv/lib >/dev/null 2>&1 || true  # by all cores at once, which pip does not; some are not meant to compile
	@$(BIN)/python -m pip install -qq --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY)  ## see what it does
	@$(BIN)/autosf demo

test: $(READY)  ## all tests
	@$(BIN)/pytest -n auto --dist worksteal --durations=15

thorough: $(READY)  ## all tests with all their examples, longer by some minutes
	@AUTOSF_THOROUGH=1 $(BIN)/pytest -n auto --dist worksteal --durations=15

check: $(READY)  ## format, lint, types, fast tests
	@$(BIN)/ruff format --check src tests benchmarks
	@$(BIN)/ruff check src tests benchmarks
	@$(BIN)/mypy
	@$(BIN)/pytest -n auto -m "not slow and not browser and not cluster"

format: $(READY)  ## rewrite the code in the house format
	@$(BIN)/ruff format src tests benchmarks
	@$(BIN)/ruff check --fix src tests benchmarks

bench: $(READY)  ## speed beside a plain version, as ratios measured in one run (ONLY=algebra for one)
	@$(BIN)/python -m benchmarks $(ONLY)

torture: $(READY)  ## kill searches 50 times at random moments and compare what they come to (five minutes)
	@$(BIN)/python -m benchmarks.torture

docs: $(READY)  ## build the site into build/site, any warning an error
	@$(BIN)/zensical build --strict

results: $(READY)  ## rebuild the tables of docs/results from their records
	@$(BIN)/python -m benchmarks.results

package: $(READY)  ## build wheel and sdist; install the wheel into an empty environment, without extras, and try it there
	@rm -rf dist .venv-package && "$(PYTHON)" -m venv .venv-package
	@$(BIN)/python -m build --no-isolation . >/dev/null && ls dist
	@.venv-package/bin/python -m pip install -qq "$$(grep '^torch==' requirements.lock)"
	@.venv-package/bin/python -m pip install -qq dist/*.whl
	@.venv-package/bin/python benchmarks/minimal_install.py
	@rm -rf .venv-package

lock:  ## pin the newest versions the ranges admit
	@rm -rf .venv-lock && "$(PYTHON)" -m venv .venv-lock
	@.venv-lock/bin/python -m pip install -qq "$$(grep '^torch==' requirements.lock)"
	@.venv-lock/bin/python -m pip install -qq ".[web,ray,pykeen,rdf,mlflow,tensorboard,dev]"
	@(sed -n '/^#/p' requirements.lock; .venv-lock/bin/python -m pip freeze --exclude autosf --exclude pip | sed -E 's/(==[^+]+)\+.*/\1/') > requirements.lock.new
	@mv requirements.lock.new requirements.lock && rm -rf .venv-lock

clean:  ## remove what the other targets made
	rm -rf .venv .venv-lock .venv-package .cache build dist .pytest_cache .mypy_cache .ruff_cache
