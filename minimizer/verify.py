"""A repro is claimed only after it has shown the bug alone: a fresh process, an empty folder, no help."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from minimizer.sandbox import Died, Sandbox, TimedOut
from minimizer.sandbox.interpreter import run_python

BACKEND = "TORCH_COMPILE_BACKEND"

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

    @property
    def wavers(self) -> bool:
        """Whether it fails now and then."""
        return 0 < self.failures < self.runs and self.silent_in_eager


def _alone(folder: Path, stem: str) -> tempfile.TemporaryDirectory[str]:
    """A folder with nothing in it but the repro and what lies beside it under its name."""
    alone = tempfile.TemporaryDirectory(prefix="aoti-minimize-verify-")
    for item in folder.glob(f"{stem}*"):
        target = Path(alone.name) / item.name
        if item.is_dir():
            shutil.copytree(item, target)
        else:
            shutil.copy(item, target)
    return alone


HEADERS = "precompiled_headers"
"""What of Inductor's own folder is shared with a fresh run: made from torch's headers, and slow to make."""


def _temporary_folder(alone: Path) -> Path:
    """A temporary folder that goes with the run: a package that crashes does not remove what it unpacked.

    Nothing that was compiled before is found in it, but for precompiled headers.
    """
    own = alone / ".temporary"
    own.mkdir()
    for cache in Path(tempfile.gettempdir()).glob("torchinductor_*"):
        (cache / HEADERS).mkdir(exist_ok=True)
        (own / cache.name).mkdir()
        (own / cache.name / HEADERS).symlink_to(cache / HEADERS)
    return own


def run_cold(
    folder: Path,
    stem: str = "repro",
    *options: str,
    under: Sequence[str] = (),
    extra: Mapping[str, str] | None = None,
    python: str = sys.executable,
) -> tuple[int | None, str]:
    """Run ``STEM.py`` alone in a new interpreter; exit status (None = killed at `TIMEOUT`) and output.

    `extra` adds to the environment, `python` is the interpreter.
    """
    not_given = ("PYTHONPATH", BACKEND, "TORCHINDUCTOR_CACHE_DIR")
    environment = {k: v for k, v in os.environ.items() if k not in not_given}
    with _alone(folder, stem) as alone:
        environment["TMPDIR"] = str(_temporary_folder(Path(alone)))
        environment |= dict(extra or {})
        return run_python(f"{stem}.py", Path(alone), TIMEOUT, environment, options, under, python)


def run_warm(folder: Path, sandbox: Sandbox, backend: str, stem: str = "repro") -> int | None:
    """Run ``STEM.py`` alone in a process that has torch imported already; its exit status."""
    return run_warm_aloud(folder, sandbox, backend, stem)[0]


def run_warm_aloud(
    folder: Path, sandbox: Sandbox, backend: str, stem: str = "repro"
) -> tuple[int | None, str]:
    """As `run_warm`, with the end of what was printed."""
    with _alone(folder, stem) as alone:
        worker = sandbox.worker(directory=Path(alone), own_cache=True)
        try:
            status: int = worker.call(
                "minimizer.sandbox.worker:run_script", f"{stem}.py", backend, timeout=TIMEOUT
            )
            return status, worker.output
        except Died as lost:
            return lost.code, lost.output
        except TimedOut as lost:
            return None, lost.output
        finally:
            worker.close()


def verify(folder: Path, sandbox: Sandbox, runs: int) -> Verified:
    """Run the folder's repro alone, the first time in a new interpreter, and once with nothing compiled."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        cold = pool.submit(run_cold, folder)
        statuses = [run_warm(folder, sandbox, "") for _ in range(runs - 1)]
        silent = run_warm(folder, sandbox, "eager") == 0
        first, output = cold.result()
    failures = sum(status == 1 for status in (first, *statuses))
    return Verified(runs, failures, silent, output[-5000:])
