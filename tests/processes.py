"""For tests that start and lose processes: where workers find the tests' tasks, and who is still there."""

import os
import time
from pathlib import Path

TESTS = str(Path(__file__).parent)
ENVIRONMENT = (("PYTHONPATH", os.pathsep.join(filter(None, [TESTS, os.environ.get("PYTHONPATH", "")]))),)


def runs(pid):
    """Whether a process is there and not just waiting to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def all_gone(pids):
    """Whether all processes end; a kill needs a moment to arrive."""
    for _ in range(500):
        if not any(map(runs, pids)):
            return True
        time.sleep(0.02)
    return False
