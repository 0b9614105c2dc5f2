"""Who is to blame: the compiler, or a custom operator that promises one thing and does another.

A custom operator comes with a fake function and a schema that the compiler believes. Where they disagree with
what the operator really does on the failing inputs, everything behind it was compiled for other tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from minimizer.case import Case
from minimizer.oracle.requests import Broken
from minimizer.sandbox import Sandbox, TaskError, WorkerLost
from minimizer.source import custom_namespaces

CHECK = "minimizer.oracle.custom_ops:check_operators"
TIMEOUT = 90.0
"""Seconds for running a reduced program's custom operators at a handful of sizes."""


@dataclass(frozen=True)
class Charge:
    """`cause` is ``compiler``, ``custom op`` or ``unknown``; `words` say what the operator does."""

    cause: str
    operator: str = ""
    words: str = ""

    @property
    def title(self) -> str:
        """One line for a report on the operator; empty when none is to blame."""
        return f"{self.operator} does not keep its word: {self.words}" if self.cause == "custom op" else ""


def charge(sandbox: Sandbox, case: Case, store: str) -> Charge:
    """Check the custom operators of a case, if it has any, before the compiler is blamed."""
    if not custom_namespaces(case.program):
        return Charge("compiler")
    worker = sandbox.worker(case.settings.environment)
    try:
        broken: list[Broken] = worker.call(CHECK, case, store, timeout=TIMEOUT)
    except (TaskError, WorkerLost):
        return Charge("unknown")
    finally:
        worker.close()
    return charged(broken)


def charged(broken: Sequence[Broken]) -> Charge:
    """What broken promises mean for a failure.

    A promise that holds on the failing inputs and breaks on others is said, and explains nothing yet.
    """
    if not broken:
        return Charge("unknown")
    worst = broken[0]
    kind, _, rest = worst.what.partition(": ")
    words = f"{rest} ({kind}, on {worst.inputs})"
    return Charge("custom op" if worst.at_failing_inputs else "unknown", worst.operator, words)
