# make setup once, then check and test; `make claim-NAME` measures what the docs state (FULL=1: the whole evidence).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CI_TESTS := not long and not gpu and not network
unexport PYTHONDONTWRITEBYTECODE # else each process of the tests compiles package and tests anew

.PHONY: setup constraints web check test test-all test-long test-web docs release coverage mutants fuzz demo web-demo clean

# torch by exact version: a plain `torch` would pull gigabytes of CUDA onto a machine without a GPU. What is imported is compiled then.
setup:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile --constraint release/constraints.txt torch==2.13.0 --editable '.[all,docs,dev]'
	@if [ -d .git ] && [ -z "$$CI" ]; then $(BIN)/pre-commit install; fi

# The newest of everything, tried by the tests and then written down.
constraints:
	$(BIN)/pip install --quiet --upgrade --upgrade-strategy eager torch==2.13.0 --editable '.[all,docs,dev]'
	sed -i '2,$$d' release/constraints.txt && $(BIN)/pip freeze --exclude-editable | grep -v '^torch==' >> release/constraints.txt

# The page of `limelight serve`; needs Node.js 20.19 or newer. Playwright's own browsers are not downloaded: the tests use the system's Chromium.
web:
	cd web && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --no-audit --no-fund --loglevel=error && npm run build

test-web:
	cd web && npm run check && npm test && npm run flows

check:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/pytest -q -m "" tests/test_architecture.py

# What runs in this process and takes less than a second: 90 seconds on two cores. Two processes, each with one thread.
test:
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 2 --dist worksteal

# Evidence at full size, and four hundred examples where CI draws a hundred: before a release.
test-long:
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 2 --dist loadfile --hypothesis-profile nightly -m 'not gpu and not network'

# What fails is run once more, alone: a test that waits for clocks may fail beside others on a busy machine. Its name stays in the output, to be mended.
test-all:
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m '$(CI_TESTS)' || \
	OMP_NUM_THREADS=1 $(BIN)/pytest -q --last-failed --last-failed-no-failures none -m '$(CI_TESTS)'

# The site, from docs/ and the code, with a translator on its first page if `make web-demo` ran before: open dist/docs/index.html. Ends with 1 if a link leads nowhere.
docs:
	$(BIN)/python docs/site/build.py

# Wheel, sdist, lock, list of parts and checksums, tried in a clean environment.
release:
	$(BIN)/python release/make.py

coverage:
	$(BIN)/python benchmarks/coverage_gate.py

mutants:
	$(BIN)/python benchmarks/mutation_score.py --count 300

# Strangers from a seed: texts, documents, requests, kills, clocks, damage. SEED=2 draws other cases; MINUTES=1 for each of the six.
fuzz:
	@mkdir -p build; for trial in texts documents requests kills clock run-damage; do \
	$(BIN)/python benchmarks/campaign.py $$trial --seed $(or $(SEED),1) --minutes $(or $(MINUTES),10) --journal build/fuzz-$$trial-$(or $(SEED),1).jsonl \
	|| found=1; done; exit $${found:-0}

demo:
	$(BIN)/python examples/digits.py reverse

# The number-words demo as a folder that translates in a browser; `make docs` puts it into the first page.
web-demo:
	$(BIN)/limelight demo --no-open -o build/demo
	$(BIN)/limelight export build/demo/en-de --to web --quantize uint8 -o site/try

claim-%:
	@$(BIN)/python claims/$*.py $(if $(FULL),--full)

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
