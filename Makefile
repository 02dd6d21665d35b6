# Everything a developer needs; `make` alone lists it.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.setup-done

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-long lint bench bench-long docs clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY)  ## make .venv with pinned packages and fetch the Iceberg jar

$(READY): pyproject.toml constraints.txt scripts/setup.sh
	PYTHON="$(PYTHON)" VENV="$(VENV)" scripts/setup.sh
	@touch $@

demo: setup  ## start a database, mirror it into Iceberg, compare every row
	$(BIN)/icestream demo

test: setup lint  ## lint, types and all tests that fit into minutes
	$(BIN)/pytest -m "not long"

test-long: setup lint  ## also the whole crash matrix and the long random runs
	$(BIN)/pytest

lint: setup  ## formatting, lint rules, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: setup  ## measure speed and memory, write a report
	$(BIN)/python bench/run.py

bench-long: setup  ## large copies, many tables for minutes, a huge transaction
	$(BIN)/python bench/run.py --only copies,many-tables,huge-transaction

docs: setup  ## write the generated reference pages
	mkdir -p docs/reference
	$(BIN)/icestream config reference > docs/reference/settings.md

clean:  ## remove what setup, tests and the demo made here
	rm -rf $(VENV) .icestream .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build spark-warehouse \
	  bench/out bench/.venv-duckdb bench/.venv-ingestr
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
