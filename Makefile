# Two commands do all the set-up: `make demo` and `make test`. `make help` lists the rest.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
PY := $(VENV)/bin/python
ROOT ?= .rootstock
MODEL ?= tiny
ENGINE ?= torch
EXIT ?=
FROM ?=
# Writing documents starts no service and reads no secret: the settings must only be well formed.
OFFLINE := DATABASE_URL=postgresql://nobody@localhost/none BROKER_URL=redis://localhost ROOTSTOCK_OBJECT_STORE_URL=file:///none \
	ROOTSTOCK_SECRET_KEY=00000000000000000000000000000000 ROOTSTOCK_PUBLIC_ORIGIN=http://localhost
ONLY ?=
SIZE ?= large
SEED ?= 0

.DEFAULT_GOAL := help
.PHONY: help install frontend runner pins engine-torch engine-vllm model demo up down status test test-unit test-all clients client-contract verifiers-examples gates bench gpu-check screenshots lint format type openapi migrations clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(VENV)/.installed: pyproject.toml
	@echo "== installing into $(VENV) with $(PYTHON)"
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --disable-pip-version-check --progress-bar on -e '.[server,trainer,embedded,models,dev]'
	@touch $@

install: $(VENV)/.installed ## Make the virtual environment and install everything into it

frontend: $(VENV)/.installed ## Build the dashboard (system Node 20 or newer, else the Node wheel)
	@$(PY) -m workers.embedded.frontend

runner: $(VENV)/.installed ## Build the environment runner's bases (verifiers and renderers, pinned, for each interface)
	@$(PY) -m trainer.sandboxing.prepare --runner-dir $(ROOT)/runner

pins: install ## Resolve anew what the runner's bases hold, into trainer/sandboxing/pins
	@$(PY) -m trainer.sandboxing.pin

engine-torch: install

engine-vllm: install ## Install vLLM for CPU into its own environment (2.5 GB, once)
	@$(PY) -m trainer.inference.vllm.prepare --folder $(if $(ROOTSTOCK_VLLM_DIR),$(ROOTSTOCK_VLLM_DIR),$(ROOT)/vllm)

model: install ## Fetch the base model MODEL, where it does not ship with the package (once)
	@$(PY) -m trainer.models.fetch $(MODEL) --to $(if $(ROOTSTOCK_MODELS_DIR),$(ROOTSTOCK_MODELS_DIR),$(ROOT)/models)

demo: install frontend runner model engine-$(ENGINE) ## Two teams train on one copy of a model, deploy, call and pay; EXIT=1 stops at the end; ENGINE=vllm
	@$(PY) examples/demo --root $(ROOT) --model $(MODEL) --engine $(ENGINE) --seed $(SEED) $(if $(EXIT),--exit,)

up: install frontend runner model engine-$(ENGINE) ## Start the one-machine stack and leave it running
	@$(PY) -m workers.embedded up --root $(ROOT) --model $(MODEL) --engine $(ENGINE)

down: ## Stop a stack that stayed up
	@$(PY) -m workers.embedded down --root $(ROOT)

status: ## Show the services of the stack
	@$(PY) -m workers.embedded status --root $(ROOT)

clients: install ## Install the public clients that the contract is held to, each into its own environment (once)
	@$(PY) -m tests.e2e.client_contract.clients

client-contract: install frontend runner clients ## The public clients, unmodified, against a live stack, into reports/client-contract.json
	@OMP_NUM_THREADS=1 $(PY) -m pytest tests/e2e/client_contract -p no:cacheprovider

verifiers-examples: install frontend runner ## The examples of the verifiers project in the clone FROM, as they are, into reports/verifiers-examples.json
	@test -n "$(FROM)" || { echo "say where a clone of the verifiers project is: make verifiers-examples FROM=FOLDER"; exit 2; }
	@OMP_NUM_THREADS=1 $(PY) -m tests.verifiers_examples --from $(FROM) --only "$(ONLY)"

test: install frontend runner ## Every suite but the heavy ones
	@$(PY) tests/suites.py

test-unit: install ## Unit tests alone
	@$(PY) tests/suites.py unit

test-all: install frontend runner clients ## Every suite, the heavy ones too; a skip fails it when CI=true
	@$(PY) tests/suites.py --heavy

bench: install ## Speed as ratios to peers, into reports/bench.json and docs/benchmarks.md; ONLY=P1,P6.4m
	@OMP_NUM_THREADS=1 $(PY) -m tests.bench $(if $(ONLY),--only $(ONLY),)

gpu-check: install ## One GPU in under eight minutes, into reports/gpu.json and docs/gpu.md; says so where there is none
	@$(PY) -m tests.bench.gpu

curves: install ## Train the tiny model by every algorithm, into docs/figures and docs/algorithms.md; ONLY=grpo,experts
	@OMP_NUM_THREADS=1 $(PY) -m tests.numerics.curves $(if $(ONLY),--only $(ONLY),)

gates: install frontend runner ## Reliability and security figures into reports/gates.json; ONLY=R5 SIZE=small SEED=1
	@$(PY) -m tests.gates --size $(SIZE) --seed $(SEED) $(if $(ONLY),--only $(ONLY),)

screenshots: install frontend runner ## Take the pictures in docs/images from a stack that trains two teams; needs Chromium
	@$(PY) -m tests.e2e.browser.screenshots

lint: install ## Style and import rules
	@$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check . && $(VENV)/bin/lint-imports

format: install ## Rewrite the code in the house format
	@$(VENV)/bin/ruff check --fix . && $(VENV)/bin/ruff format .

type: install ## Strict types in contracts, core and billing
	@$(VENV)/bin/mypy -p trainer.contracts -p trainer.core -p controlplane.core -p controlplane.billing

migrations: install ## Write migrations for changed models
	@$(OFFLINE) $(PY) platform/manage.py makemigrations

openapi: install ## Write docs/openapi.json from the code
	@$(OFFLINE) $(PY) platform/manage.py spectacular --format openapi-json --file docs/openapi.json

clean: down ## Stop the stack and remove what it made
	@rm -rf $(ROOT) reports frontend/dist
