# make demo   install into .venv, run the main job, say where the replay is
# make test   install what the tests need, then check style, layers, types and behaviour
# make test-all   the same with the tests that are marked slow: long plans and runs, clusters, notebooks, other robots
# make check  the same without what takes long: kernels, scenes, planning's parts, certificates of short runs
# make check-oldest, make check-newest   its tests with the oldest allowed and the newest versions of all dependencies
# make results table=DIR ...   the figures of docs/results.md and README from finished measurements (docs/_ext/results_page.py)
# make gallery   the picture of many plans in the README and that of both paces in the theory, made anew
# make schemas  the JSON Schemas of scenario, robot and experiment files, after a change of their keys
# make wheel   a wheel in dist/ with compiled kernels, for this platform, this Python and the Numba of constraints.txt
# make docs   the pages of docs/, with the reference, as HTML in docs/_build
PYTHON ?= python3
VENV := .venv
BIN = $(VENV)/bin
CONSTRAINTS := constraints.txt
# one thread per process; bytecode is kept, even where the shell forbids it: tests start mcplan some hundred times
ALONE := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
PYTEST = $(ALONE) $(BIN)/python -m pytest -n 2 --dist worksteal
WALK := walk --set parameters.distance=0.5 --physics contact

.PHONY: demo test test-all static check quick wheel check-oldest check-newest types kernels docs results schemas gallery install clean

demo: $(VENV)/.installed
	$(BIN)/mcplan run table_hand

test: static
	$(PYTEST) -m 'not slow'

test-all: static
	$(PYTEST)

static: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(MAKE) --no-print-directory -j 2 types kernels

types: $(VENV)/.installed-test
	$(BIN)/mypy

# A walk from start to report needs nearly all kernels, which two processes of it share out; of the workers of the tests each
# would compile what it comes to, often what the other one is at.
kernels: $(VENV)/.installed-test
	$(ALONE) $(BIN)/mcplan run $(WALK) --quiet --force -o runs/kernels > /dev/null

check: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(MAKE) --no-print-directory quick

quick: $(VENV)/.installed-test
	$(PYTEST) -q -m 'not slow' @tests/quick.txt

# Without mypy: of the same code, type hints of each version of a library let it say something else.
check-oldest:
	$(PYTHON) -m tests.oldest_versions > .oldest.txt
	$(MAKE) quick VENV=.venv-oldest CONSTRAINTS=.oldest.txt

check-newest:
	$(MAKE) quick VENV=.venv-newest CONSTRAINTS=/dev/null

# Its own cache, for processors from 2013 on; each of these runs comes to kernels that the others do not need.
KERNELS := build/kernels
wheel: $(VENV)/.installed-test
	rm -rf $(KERNELS)
	for run in "walk --set parameters.distance=0.5 --physics contact" "table_hand --physics mujoco" "kneel --physics qp"; do \
		$(ALONE) NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES= NUMBA_CACHE_DIR=$(CURDIR)/$(KERNELS) \
			$(BIN)/mcplan run $$run --quiet --force -o build/run > /dev/null || exit 1; done
	for folder in $(KERNELS)/mcplan/*; do rm -f $$folder/lock $$folder/sources; echo x86-64-v3 > $$folder/cpu; done
	MCPLAN_KERNELS=$(KERNELS)/mcplan $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build
	@echo docs/_build/index.html

MEASURED := $(foreach name,table plans robots pace walks bench pushes walking dynamic jumps laws faults,$(if $($(name)),$(name)=$($(name))))

results: $(VENV)/.installed
	$(BIN)/python docs/_ext/results_page.py docs/results.md README.md $(MEASURED)

schemas: $(VENV)/.installed
	$(BIN)/mcplan schema scenario -o stances/scenario.schema.json --force
	$(BIN)/mcplan schema robot -o mcplan/robot/bundled/robot.schema.json --force
	$(BIN)/mcplan schema experiment -o experiments/experiment.schema.json --force

gallery: $(VENV)/.installed
	$(BIN)/python docs/_ext/gallery.py demos/pictures/gallery.jpg
	$(BIN)/python docs/_ext/paces.py demos/pictures/paces.jpg

install: $(VENV)/.installed

clean:
	rm -rf $(VENV) runs docs/_build

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "mcplan needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Name another one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e .
	touch $@

# Bytecode of what is imported is made then, of a third of what is installed.
$(VENV)/.installed-test: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[test]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[docs]'
	touch $@
