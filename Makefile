# Everything here needs the environment of the README's test command.
BIN ?= .venv/bin

check:  ## linters, types, house laws
	$(BIN)/ruff check --no-cache . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

test:  ## the whole suite, with the coverage of the two rooms that must not be wrong
	$(BIN)/pytest -n auto --cov --cov-report= && \
	$(BIN)/coverage report --include='*/game/*,*/store/*' --fail-under=95

bench:  ## ratios measured in one run
	$(BIN)/python benchmarks/stacked.py

docs:  ## the site, in site/, and checks of it; needs the extra [docs]
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --clean
	$(BIN)/pytest -q tests/docs/built_site.py

lock:  ## lock/*.txt anew, after a change of constraints.txt or of a dependency in pyproject.toml
	$(BIN)/python tools/lock.py

.PHONY: check test bench docs lock
