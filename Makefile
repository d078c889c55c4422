# One command each: an environment in .venv is made at first use and renewed when what it is made from changes.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install -q -c constraints.txt

.PHONY: demo test test-full lint clean
.DELETE_ON_ERROR:

demo: .venv/.run
	OMP_NUM_THREADS=1 $(BIN)/python -m torch.distributed.run --standalone --nproc_per_node=2 examples/ddp_multi_gpu.py --demo

test: lint
	$(BIN)/python -m pytest -q -m "not full"

test-full: lint
	$(BIN)/python -m pytest -q

lint: .venv/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache */.ruff_cache .hypothesis MUJOCO_LOG.TXT

.venv/.run: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) -e .
	touch $@

.venv/.test: .venv/.run tests/robots.txt
	$(PIP) -e '.[test,dev]'
	$(PIP) --no-deps -r tests/robots.txt
	touch $@
