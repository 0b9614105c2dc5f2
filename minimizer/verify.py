"""A repro is claimed only after it has shown the bug alone: a fresh process, an empty folder, no help."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

TIMEOUT = 240.0
"""Seconds for one run of a repro: an import, a cold compile, a call."""


@dataclass(frozen=True)
class Verified:
    """How often the repro showed the bug, and whether it is silent where nothing is compiled."""

    runs: int
    failures: int
    silent_in_eager: bool
    output: str

    @property
    def holds(self) -> bool:
        """Whether every run failed and eager did not."""
        return self.failures == self.runs and self.silent_in_eager


def run_alone(folder: Path, environment: dict[str, str], timeout: float = TIMEOUT) -> tuple[int | None, str]:
    """Run ``repro.py`` in a copy of its folder; exit status (None = killed at `timeout`) and output."""
    with tempfile.TemporaryDirectory(prefix="aoti-minimize-verify-") as alone:
        for item in folder.glob("repro*"):
            target = Path(alone) / item.name
            if item.is_dir():
                shutil.copytree(item, target)
            else:
                shutil.copy(item, target)
        process = subprocess.Popen(
            [sys.executable, "repro.py"],
            cwd=alone,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=timeout)
            return process.returncode, output
        except BaseException as problem:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            if isinstance(problem, subprocess.TimeoutExpired):
                return None, output
            raise


def verify(folder: Path, runs: int) -> Verified:
    """Run the folder's repro alone, `runs` times as it is and once with nothing compiled."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "TORCH_COMPILE_BACKEND")}
    environment["TMPDIR"] = tempfile.gettempdir()
    jobs = [environment] * runs + [{**environment, "TORCH_COMPILE_BACKEND": "eager"}]
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(lambda job: run_alone(folder, job), jobs))
    statuses = [status for status, _ in results]
    output = results[0][1] if runs else ""
    failures = sum(status == 1 for status in statuses[:-1])
    return Verified(runs, failures, statuses[-1] == 0, output[-5000:])
