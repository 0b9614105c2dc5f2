bin := $(or $(VENV),.venv)/bin

.PHONY: setup demo test fast lint format types

setup: ## the environment in .venv
	@scripts/setup

demo: ## find, reduce and replay one real failure
	@scripts/demo

test: ## everything continuous integration checks
	@scripts/test

fast: setup ## tests that compile nothing
	@$(bin)/python -m pytest -m "not compiles and not whole_run"

lint: setup
	@$(bin)/ruff check .
	@$(bin)/ruff format --check .

format: setup
	@$(bin)/ruff check --fix .
	@$(bin)/ruff format .

types: setup
	@$(bin)/mypy
