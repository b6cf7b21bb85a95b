# Few verbs. Each makes the virtual environment by itself when it is missing or pyproject.toml has changed.

PYTHON ?= python3
WORKERS ?= auto
AGENT ?= examples.echo.agent:agent
ARGS ?=

VENV := .venv
READY := $(VENV)/.ready
PY := $(VENV)/bin/python

.DEFAULT_GOAL := help
.PHONY: help demo test lint types generate bench peers run rows docs

help: ## what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(READY) ## two agents at work, a server killed in mid-task, and nothing lost
	$(PY) -m examples.demo

test: $(READY) ## everything: style, types, rooms, tests, and the requirements without a test
	$(PY) -m pytest -q -n $(WORKERS) --maxprocesses=4 --dist worksteal --requirements $(ARGS)

lint: $(READY) ## style and rooms only
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(VENV)/bin/lint-imports --no-logo

types: $(READY) ## mypy --strict
	$(PY) -m mypy

generate: $(READY) ## types, tables and schemas from the protos
	$(PY) -m tools.generate

bench: $(READY) ## what it costs, next to a bare ASGI app and a2a-sdk, and how costs grow (5 minutes)
	$(PY) -m bench --markdown $(ARGS)

peers: $(READY) ## the environments of other implementations; tests and bench make them by themselves
	$(PY) -m tools.peers

run: $(READY) ## serve an agent: make run AGENT=examples.travel.agent:agent ARGS='--port 9000'
	$(PY) -m dragoman run $(AGENT) $(ARGS)

rows: $(READY) ## the requirements without a test, without running one
	@$(PY) -m tests.requirements.rows

docs: $(READY) ## the documentation as a site, into site/
	$(VENV)/bin/zensical build --clean --strict

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.x")'
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --upgrade 'pip>=25.1'
	@$(PY) -m pip install --quiet --editable '.[all]' --group dev
	@touch $@
