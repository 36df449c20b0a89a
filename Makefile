# make setup once, then check and test; `make claim-NAME` measures what the docs state (FULL=1: the whole evidence).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: setup check test test-all demo clean

# torch first and by exact version: a plain `torch` would pull gigabytes of CUDA onto a machine without a GPU.
setup:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet --editable '.[cluster,compare,hub,onnx,report,dev]'
	@if [ -d .git ] && [ -z "$$CI" ]; then $(BIN)/pre-commit install; fi

check:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/pytest -q tests/test_architecture.py

test:
	$(BIN)/pytest -q

test-all:
	$(BIN)/pytest -q -m 'not gpu and not network'

demo:
	$(BIN)/python examples/digits.py reverse

claim-%:
	@$(BIN)/python claims/$*.py $(if $(FULL),--full)

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
