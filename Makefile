# What people type. CI runs these same targets (.ci/run), so that it and a laptop cannot differ.

.DEFAULT_GOAL := help
SHELL := /bin/bash

# The Pythons that pyproject.toml names. `make quick PY=3.12` takes that one, in a virtual environment of its own.
VERSIONS := 3.11 3.12 3.13
# Only a Python that starts counts: version managers leave shims of the name that do not.
first_of = $(shell for p in $(1); do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& command -v $$p && break; done)
# Shells find one version; pyenv may hold the others.
named = python$(1) $(wildcard $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions/$(1).*/bin/python$(1))
ifdef PY
VENV := .tox/python$(PY)
# Half of the work of an installation; tests import a small part of what they compile so.
NO_COMPILE := --no-compile
PYTHON := $(call first_of,$(call named,$(PY)))
else
VENV := .venv
PYTHON ?= $(call first_of,python3.13 python3.12 python3.11 python3 /usr/bin/python3)
endif
BIN := $(VENV)/bin
# A virtual environment is good for one lock and one folder: its scripts hold its path.
STAMP := $(VENV)/stamp-$(shell { cat requirements.lock; echo '$(CURDIR)'; } | sha256sum | cut -c1-16)

# Tests start hundreds of commands, and each of them would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) ## virtual environment .venv, from the hash-pinned requirements.lock

$(STAMP):
	@test -n "$(PYTHON)" || { echo "Python $(or $(PY),3.11 or later) with venv is needed (Debian: apt-get install python3-venv)"; exit 1; }
	@echo "setup: $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv --clear $(VENV)
	@echo "setup: $$(grep -c == requirements.lock) packages of requirements.lock, which takes about a minute"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes $(NO_COMPILE) -r requirements.lock
	@echo "setup: netprobe itself"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: pythons
pythons: ## those of the Pythons of pyproject.toml that this machine has
	@echo $(foreach version,$(VERSIONS),$(if $(call first_of,$(call named,$(version))),$(version)))

.PHONY: demo
demo: setup ## a small cluster of network namespaces with a firewall, probed and reported
	@sh tests/lab/packages.sh demo
	@$(BIN)/python demo/run.py

.PHONY: demo-shell
demo-shell: setup ## the demo's cluster, and a shell on its jump host, to try netprobe by hand
	@sh tests/lab/packages.sh demo
	@$(BIN)/python demo/shell.py

# Quick tests wait for a third of their time, labs for two thirds.
QUICK := -n auto --maxprocesses 4 -m "not lab and not slow" --ignore=tests/lab
SIDE_BY_SIDE := -n 10
# In a user namespace runs what has not the rights that it needs: a part of the tests, or a program.
IN_PARTS := $(BIN)/python -m tests.parts
WITH_RIGHTS := $(BIN)/python tests/lab/userns.py

.PHONY: quick
quick: setup ## the tests that take less than a minute; they need neither root nor packages
	$(BIN)/python -m pytest $(QUICK) $(PYTEST_ARGS)

# pytest rewrites each module of the tests once. In a new clone two processes do it before eight would do the same.
REWRITTEN := $(VENV)/tests-are-rewritten
$(REWRITTEN): | setup
	@for part in 'tests/[a-k]*/ tests/test_*.py' 'tests/[l-z]*/'; do \
		$(BIN)/python -m pytest --collect-only -qq $$part >/dev/null & done; wait; touch $@

.PHONY: test
test: setup lab-packages $(REWRITTEN) ## every test that this machine can run; says what it skips and why
	$(IN_PARTS) $(SIDE_BY_SIDE) $(PYTEST_ARGS)

# One lab of each kind, by what it asks of the machine: other users, daemons, captures, sshd, sudo, busybox, ufw ...
FEW_LABS := tests/agent/probers/datagram/test_rawip.py tests/agent/recorder/test_keeper.py tests/protocols/test_dns_servers.py \
	tests/vantage/test_sudo.py $(addprefix tests/lab/test_,lab_itself.py audit.py demo.py end_to_end_ssh.py evidence.py \
	http_services.py names.py request_rules.py runtime.py)

.PHONY: few-labs
few-labs: setup lab-packages ## one lab of each kind: whether this login can run labs (tests/places.sh)
	$(IN_PARTS) $(SIDE_BY_SIDE) $(FEW_LABS) $(PYTEST_ARGS)

.PHONY: steady
steady: setup ## `make test` again and again, quiet and loaded in turn, COUNT=6 times; TESTS="path::test" COUNT=200; PLACE=user
	@$(BIN)/python -m tests.steady --count "$(COUNT)" --tests "$(TESTS)" --place "$(PLACE)" -- \
		$(IN_PARTS) $(SIDE_BY_SIDE) $(PYTEST_ARGS)

.PHONY: lab
lab: setup ## only the tests with real firewalls, and what `make test` leaves out; PART="names or seen": a part
	@sh tests/lab/packages.sh full
	NETPROBE_LAB_FULL=1 $(IN_PARTS) $(SIDE_BY_SIDE) -m "lab or full" $(if $(PART),-k "$(PART)") $(PYTEST_ARGS)
	$(if $(filter-out accuracy,$(PART)),,$(WITH_RIGHTS) $(BIN)/python -m tests.lab.accuracy)

.PHONY: reach
reach: setup lab-packages ## large estates and hosts that are hard to reach, in the long form (about an hour)
	$(BIN)/python -m tests.reach.runtime
	$(WITH_RIGHTS) $(BIN)/python -m tests.reach.coverage
	$(BIN)/python -m tests.reach.fleets
	$(BIN)/python -m tests.reach.agents
	$(BIN)/python -m tests.reach.batch_host
	$(BIN)/python -m tests.reach.batch
	@$(MAKE) --no-print-directory ansible-late
	$(BIN)/python -m tests.reach.ansible $(BIN) $$(ls -d $(ANSIBLE_LATE)/bin 2>/dev/null)

# A later release of ansible-core than that of requirements.lock, which needs a later Python than netprobe.
ANSIBLE_LATE := .tox/ansible-2.21
PYTHON_LATE ?= $(shell for p in python3.14 python3.13 python3.12; do \
	$$p -c 'import venv, ensurepip' 2>/dev/null && command -v $$p && break; done)

.PHONY: ansible-late
ansible-late:
	@test -n "$(PYTHON_LATE)" || echo "ansible-core 2.21: SKIPPED, it needs Python 3.12 or later"
	@test -z "$(PYTHON_LATE)" || test -x $(ANSIBLE_LATE)/bin/ansible-playbook || { \
		$(PYTHON_LATE) -m venv --clear $(ANSIBLE_LATE) \
		&& $(ANSIBLE_LATE)/bin/python -m pip install -q --disable-pip-version-check 'ansible-core~=2.21.0'; }

.PHONY: lab-packages
lab-packages: ## Debian packages that the labs use (root); it prints what it installs
	@sh tests/lab/packages.sh lab

.PHONY: matrices-drift
matrices-drift: setup ## rows of platforms' documents that have changed: DOCS=folder with checkouts, MATRICES="rke2 k3s"
	@test -n "$(DOCS)" || { echo "DOCS=folder is needed: checkouts of the documents' repositories (docs/write-a-matrix.md)"; exit 2; }
	@$(BIN)/python -m drift "$(DOCS)" $(MATRICES)

.PHONY: compose
compose: ## the lab of docker-compose.yml: up, run, verdicts compared, down; SKIPPED without Docker
	@compose/try.sh

.PHONY: bench
bench: setup ## side by side with nmap, masscan and fping; writes docs/performance.md (BENCH_ARGS=--full)
	@sh tests/lab/packages.sh bench
	$(BIN)/python -m bench $(BENCH_ARGS)

.PHONY: lint
lint: setup ## format, rules, types, layers, and the agent's Python floor: all of them, then fail
	@status=0; \
	for command in "ruff format --check ." "ruff check ." mypy lint-imports \
		"vermin --quiet --no-tips --violations --eval-annotations -t=3.6- netprobe/agent"; do \
		echo "$(BIN)/$$command"; $(BIN)/$$command || status=1; \
	done; exit $$status

.PHONY: format
format: setup ## format and repair what can be repaired
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: docs
docs: setup ## print the generated pages and schemas again
	NETPROBE_REWRITE=docs $(BIN)/python -m pytest -q -m "not lab" -k "fresh or docs" tests

.PHONY: pages-size
pages-size: setup ## how much of each page is written by hand, and how much is printed from code
	@$(BIN)/python -m pages.printed

.PHONY: golden
golden: setup ## rewrite golden files; read the diff before you commit it
	NETPROBE_REWRITE=golden $(BIN)/python -m pytest -q tests/report tests/estate tests/pages/test_formats.py

# The site's programs are in an environment of their own: few people build it.
SITE_VENV := .tox/site
SITE_STAMP := $(SITE_VENV)/stamp-$(shell sha256sum <requirements-site.lock | cut -c1-16)
$(SITE_STAMP):
	@echo "site: $(SITE_VENV) with the $$(grep -c == requirements-site.lock) packages of requirements-site.lock"
	@$(PYTHON) -m venv --clear $(SITE_VENV)
	@$(SITE_VENV)/bin/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements-site.lock
	@touch $@

.PHONY: picture
picture: setup lab-packages ## the README's picture: the report's page of a run in the demo's cluster
	@rm -rf build/picture && echo 'netprobe run -q --matrix deckhouse-nodes -o html=report.html' \
		| $(BIN)/python demo/shell.py build/picture; test -s build/picture/report.html
	$(BIN)/python -m pages.picture build/picture/report.html docs/report.png

.PHONY: site
site: setup $(SITE_STAMP) ## the pages as a site with search, in build/site/site; it needs no network to be read
	@rm -rf build/site && $(BIN)/python -m pages.site build/site
	@cd build/site && NO_MKDOCS_2_WARNING=1 $(CURDIR)/$(SITE_VENV)/bin/mkdocs build --strict --quiet
	@echo "open build/site/site/index.html"

.PHONY: lock
lock: ## make requirements.lock and requirements-site.lock again from pyproject.toml
	@work=$$(mktemp -d) && trap 'rm -rf $$work' EXIT && $(PYTHON) -m venv $$work/venv \
	&& $$work/venv/bin/python -m pip install --quiet uv \
	&& for kind in "requirements.lock --extra dev pyproject.toml" "requirements-site.lock --group site"; do \
		set -- $$kind; lock=$$1; shift; \
		$$work/venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
			--no-emit-index-url --no-header "$$@" -o $$work/lock \
		&& { echo "# Made by \`make lock\` from pyproject.toml, for Python 3.11 and later."; cat $$work/lock; } >$$lock \
		|| exit 1; done

.PHONY: onefile
onefile: setup ## one file that needs neither Python nor packages: dist/netprobe-VERSION-ARCH.run (ARCH=aarch64)
	@$(BIN)/python -m release onefile $(ARCH)

.PHONY: dist
dist: setup ## everything of a release, into dist/ (docs/release.md)
	@$(BIN)/python -m release dist

.PHONY: lock-debian
lock-debian: setup ## pin what Debian 12 offers today of the packages that travel: release/debian.lock
	@$(BIN)/python -m release lock-debian

.PHONY: collection
collection: setup ## the collection for Ansible, as one file that installs without a network
	@$(BIN)/ansible-galaxy collection build --force --output-path dist ansible_collections/netprobe/preflight

.PHONY: clean
clean: ## everything that can be made again
	rm -rf $(VENV) .tox dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
