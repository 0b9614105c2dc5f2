from pathlib import Path

import pytest

from minimizer.oracle.requests import PRELOAD
from minimizer.sandbox import Sandbox


@pytest.fixture(scope="session")
def repo() -> Path:
    """Root of the checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def bench(repo) -> Path:
    """A folder of further models beside the checkout; tests that want it are skipped without it."""
    folder = repo.parent / "shared" / "bench"
    if not folder.is_dir():
        pytest.skip("no ../shared/bench beside the checkout")
    return folder


@pytest.fixture(scope="session")
def sandbox():
    """Processes for all tests that need some; importing torch is paid for once."""
    with Sandbox(PRELOAD) as sandbox:
        yield sandbox
