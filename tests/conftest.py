from collections import Counter
from pathlib import Path

import pytest

from minimizer.oracle.case_bench import CaseBench
from minimizer.oracle.requests import PRELOAD
from minimizer.sandbox import Sandbox

COSTS = {"whole_run": 100, "compiles": 10}
"""What a test with a mark takes, in tests without one."""


def pytest_collection_modifyitems(items):
    """Files that take long come first: several at a time, all end the sooner for it."""
    costs = Counter()
    for item in items:
        costs[item.path] += max([1, *(COSTS.get(mark.name, 1) for mark in item.iter_markers())])
    items.sort(key=lambda item: -costs[item.path])


@pytest.fixture(scope="session")
def repo() -> Path:
    """Root of the checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def sandbox():
    """Processes for all tests that need some; importing torch is paid for once."""
    with Sandbox(PRELOAD) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def bench(sandbox, tmp_path_factory):
    """Judges cases in those processes; no task may have ended in an error of our own."""
    bench = CaseBench(sandbox, tmp_path_factory.mktemp("store"))
    yield bench
    bench.close()
    assert bench.errors == []
