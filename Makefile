# Two commands matter: `make run` and `make test`. Both install what they need on a machine with Python, make and git.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: help run test check bench chaos-backup chaos-jobs chaos-files chaos-messaging chaos-rotation soak docs browser clean

help:  ## show what there is to do
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-15s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Keystead needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing Keystead and its tools into .venv (a minute or two, once)..."
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

run: $(STAMP)  ## the whole backend with a living town in it; prints a login link
	@$(BIN)/keystead up --demo

# Tests wait more than they work, so twice as many processes as cores. All is compiled first, on the core that the type
# checker leaves idle; otherwise each process would do it.
test: $(STAMP) browser  ## everything that must hold: linters, types, floors, all tests
	@{ $(BIN)/python -m compileall -qq src; $(BIN)/python -m pytest --collect-only -qq; } > /dev/null 2>&1 & \
		$(MAKE) --no-print-directory check && wait
	$(BIN)/python -m pytest -q -n 4 --dist loadgroup

check: $(STAMP)  ## ruff, strict types, import floors
	$(BIN)/ruff check src tests bench docs
	$(BIN)/mypy
	$(BIN)/lint-imports

browser: $(STAMP)
	@$(BIN)/python tests/browser.py

bench: $(STAMP)  ## ours beside the peers, in one run; ONLY=wire for one suite
	$(BIN)/python -m bench $(if $(ONLY),--only $(ONLY))

chaos-jobs: $(STAMP)  ## kill workers, producer and server 200 times while 10,000 jobs run; minutes
	$(BIN)/python -m tests.faults.jobs_chaos

chaos-files: $(STAMP)  ## save 20,000 files while writers, sweepers and the server are killed; minutes
	$(BIN)/python -m tests.faults.files_chaos

chaos-messaging: $(STAMP)  ## kill all parts 200 times while 10,000 messages go out, on one server, then on a cluster; hours
	$(BIN)/python -m tests.faults.messaging_chaos
	$(BIN)/python -m tests.faults.messaging_chaos --lanes 2

chaos-backup: $(STAMP)  ## take backups under load, restore each of them and judge it; minutes
	$(BIN)/python -m tests.faults.backup_chaos
	$(BIN)/python -m tests.faults.backup_chaos --lanes 2

chaos-rotation: $(STAMP)  ## kill counters and rotators of statistics, on both databases; minutes
	$(BIN)/python -m tests.faults.rotation_chaos

soak: $(STAMP) browser  ## keep pages of the dashboard open for an hour: nothing may grow; MINUTES=3 SPEED=20 for the same in short
	$(BIN)/python -m tests.faults.dashboard_soak --minutes $(or $(MINUTES),60) --speed $(or $(SPEED),1)

docs: $(STAMP)  ## write the generated pages anew, and build the documentation as a site under build/site
	$(BIN)/python -m keystead.cli.docs
	$(BIN)/python docs/site/build.py

clean:  ## remove what was installed and built
	rm -rf .venv bench/.venv-peers bench/out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build
