# Penstock. `make demo` and `make test` set everything up by themselves.
VENV := .venv
BIN := $(VENV)/bin
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

EXTRAS := $(foreach extra,local protobuf redis lake search mysql mongodb erasure zeromq,--extra $(extra))

.DEFAULT_GOAL := help
.PHONY: help setup servers docs demo test quick lint check bench bench-large verify chaos soak lock clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Virtual environment, packages, Java and jars; seconds the second time
	@scripts/setup.sh

servers: setup # Redis, MariaDB, Prometheus and an S3 server, which only tests need
	@scripts/setup.sh servers

demo: setup ## Capture, fraud in real time and a shop's views, killed on the way, every result checked
	@$(BIN)/penstock demo platform

test: lint servers ## Lint, examples and all tests but the long ones
	$(BIN)/pytest -q --doctest-modules src/penstock
	@scripts/test.sh

check: lint ## Lint, format, types, layers, examples in code and docs
	$(BIN)/pytest -q --doctest-modules src/penstock tests/docs

quick: lint ## Lint and unit tests, in two minutes
	$(BIN)/pytest -q -m "not long" -n 2 tests/unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup ## Benchmarks, side by side with the plain clients
	$(BIN)/python -m bench

bench-large: setup ## Joins and enrichment beside 50 million rows, a view of 50 million archived events
	$(BIN)/python -m bench joins-large enrichment-large sourcing-large

docs: setup ## The docs as a site in build/site, every link checked
	@scripts/setup.sh docs
	@$(VENV)/docs/bin/python -m scripts.docs

verify: servers ## Long correctness runs
	@scripts/setup.sh docs
	$(BIN)/pytest -m long

chaos: servers ## 300 faults on a seeded schedule against a pipeline; make chaos SEED=7 FAULTS=100
	$(BIN)/python -m tests.chaos --faults $(or $(FAULTS),300) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m tests.derived --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m tests.sourcing --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m tests.capture --minutes $(or $(MINUTES),20) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m tests.capture --database mariadb --minutes $(or $(MINUTES),20) $(if $(SEED),--seed $(SEED))

soak: setup ## State and memory over 20 minutes with a moving key space, drawn into docs/pictures/flat.svg
	$(BIN)/python -m bench.flat

lock: setup ## Pin every package again, from pyproject.toml
	printf 'setuptools>=77\nuv\n' | $(COMPILE) --upgrade --no-annotate - --output-file requirements/build.txt
	$(COMPILE) --upgrade pyproject.toml $(EXTRAS) --group dev --output-file requirements/dev.txt
	printf 'moto[s3]\nflask\nflask-cors\n' | $(COMPILE) --upgrade --no-annotate - --output-file requirements/s3-server.txt
	printf 'mkdocs-material\nmkdocstrings-python\nmmdc\nruff\n' | $(COMPILE) --upgrade --no-annotate - --output-file requirements/docs.txt
	$(COMPILE) --upgrade pyproject.toml $(EXTRAS) --constraint requirements/dev.txt --output-file requirements/runtime.txt

clean: ## Stop the services and remove all that was made here; the jar cache of the user stays
	@if [ -x $(BIN)/penstock ] && [ -d .penstock ]; then $(BIN)/penstock down; fi
	rm -rf $(VENV) .penstock build dist spark-warehouse
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache src/*.egg-info
	find bench scripts src tests -name __pycache__ -type d -prune -exec rm -rf {} +
