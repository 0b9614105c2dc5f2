"""The generated kernel at fault.

After reduction the program is a handful of calls, so its generated code usually holds one kernel: then that
is the one, and the evidence is that there is no other. With several, none is named here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minimizer.case import Case
from minimizer.oracle.requests import TASKS
from minimizer.oracle.verdict import Failure
from minimizer.sandbox import Sandbox, TaskError, WorkerLost


@dataclass(frozen=True)
class Kernel:
    """A generated kernel and the operator calls that it was generated from."""

    name: str
    language: str
    nodes: tuple[str, ...]

    @property
    def text(self) -> str:
        """For the terminal."""
        return f"{self.name} (from {', '.join(self.nodes)}; the only kernel of the reduced program)"

    @property
    def summary(self) -> dict[str, Any]:
        """For summary.json."""
        return {"name": self.name, "language": self.language, "nodes": list(self.nodes)}


def find_kernel(sandbox: Sandbox, case: Case, store: Path, failure: Failure) -> Kernel | None:
    """The kernel at fault, or None when that is not known."""
    if failure.stage in ("export", "lower", "package", "load"):
        return None
    worker = sandbox.worker(case.settings.environment)
    try:
        kernels: list[tuple[str, tuple[str, ...]]] = worker.call(
            TASKS + "kernels_of", case, str(store.resolve()), timeout=120.0
        )
    except (TaskError, WorkerLost):
        return None
    finally:
        worker.close()
    if len(kernels) != 1:
        return None
    name, nodes = kernels[0]
    return Kernel(name, "C++", nodes)
