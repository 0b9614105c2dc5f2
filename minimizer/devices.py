"""Compile on one device, load for another, feed from a third: what does each combination do?

AOTI promises the right answer where all three agree. Where they do not, it should refuse in words; what it
does instead (a silent wrong answer, a dead process) depends on the program. So every cell of the matrix is
run in a process of its own, and judged by that promise: a clear refusal or the right answer. `meta` is a
device type on every machine, so there are cells to try without an accelerator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from minimizer.console import one_line
from minimizer.oracle.requests import DEVICE_TASKS, TargetRequest
from minimizer.sandbox import Died, Sandbox, TaskError, TimedOut, WorkerLost

if TYPE_CHECKING:
    from minimizer.run import Run

CHECKED = (("AOTI_RUNTIME_CHECK_INPUTS", "1"),)
"""AOTI's own check of inputs, off by default."""

TIMEOUT = 120.0


@dataclass(frozen=True)
class Cell:
    """Where a program is compiled, the device index it is loaded with (-1: none given), where inputs are."""

    compiled: str
    loaded: int
    given: str

    @property
    def promised(self) -> bool:
        """Whether AOTI promises the right answer here."""
        kind, _, index = self.compiled.partition(":")
        other, _, at = self.given.partition(":")
        if kind != other or kind == "meta":  # nothing is stored there, so nothing can be right
            return False
        if kind != "cuda":
            return self.loaded < 0
        return int(at or 0) == (self.loaded if self.loaded >= 0 else int(index or 0))

    def __str__(self) -> str:
        loaded = "" if self.loaded < 0 else f", loaded with device index {self.loaded}"
        return f"{self.compiled} package{loaded}, {self.given} inputs"


@dataclass(frozen=True)
class Outcome:
    """What a cell did: ``right``, ``refused``, ``wrong`` or ``died``, and what was said.

    `checked` is the same with AOTI's own check of inputs, where it was tried.
    """

    what: str
    said: str = ""
    checked: str = ""


def keeps_promise(cell: Cell, outcome: Outcome) -> bool:
    """The right answer where it is promised; elsewhere that or a refusal."""
    return outcome.what == "right" or (outcome.what == "refused" and not cell.promised)


def cells(devices: Sequence[str], compiled: str) -> Iterator[Cell]:
    """All ways to load and feed what was compiled on one of the devices.

    >>> [str(cell) for cell in cells(["cpu", "meta"], "cpu")][:2]
    ['cpu package, cpu inputs', 'cpu package, meta inputs']
    """
    same = [d for d in devices if d.partition(":")[0] == compiled.partition(":")[0]]
    indices = range(len(same)) if compiled != "meta" else ()
    for loaded in (-1, *indices):
        for given in devices:
            yield Cell(compiled, loaded, given)


Environment = tuple[tuple[str, str], ...]
Compile = Callable[[str], tuple[Path | None, Outcome]]
Try = Callable[[Cell, Path, bool], Outcome]


def matrix(devices: Sequence[str], compile_on: Compile, attempt: Try) -> Iterator[tuple[Cell, Outcome]]:
    """Every cell and what it did; a device that cannot be compiled for has one cell.

    What breaks the promise is tried once more with AOTI's own check of inputs.
    """
    for compiled in devices:
        package, outcome = compile_on(compiled)
        if package is None:
            yield Cell(compiled, -1, compiled), outcome
            continue
        for cell in cells(devices, compiled):
            found = attempt(cell, package, False)
            if not keeps_promise(cell, found) and not cell.promised:
                checked = attempt(cell, package, True)
                found = Outcome(found.what, found.said, checked.what)
            yield cell, found


class _Workers:
    """The matrix run for real: a process for each attempt."""

    def __init__(
        self, sandbox: Sandbox, request: TargetRequest, package: Path, environment: Environment
    ) -> None:
        self.sandbox = sandbox
        self.request = request
        self.package = package
        self.environment = environment

    def ask(self, task: str, *args: object, checked: bool = False) -> Outcome:
        """What a worker says, or how it ended."""
        worker = self.sandbox.worker(self.environment + (CHECKED if checked else ()))
        try:
            what, said = worker.call(DEVICE_TASKS + task, self.request, *args, timeout=TIMEOUT)
            return Outcome(what, one_line(said, 200))
        except TaskError as problem:
            return Outcome("refused", one_line(problem.message, 200))
        except WorkerLost as lost:
            return Outcome("died", _end(lost))
        finally:
            worker.close()

    def compile_on(self, device: str) -> tuple[Path | None, Outcome]:
        """A package for a device; that for the CPU is there already."""
        if device == "cpu":
            return self.package, Outcome("right")
        package = self.package.with_name(f"{device.replace(':', '_')}.pt2")
        outcome = self.ask("compile_on", device, str(package))
        return (package if outcome.what == "right" else None), outcome

    def attempt(self, cell: Cell, package: Path, checked: bool) -> Outcome:
        """Load and call once."""
        return self.ask("run_on", str(package), cell.loaded, cell.given, checked=checked)


def _end(lost: WorkerLost) -> str:
    if isinstance(lost, TimedOut):
        return f"no answer within {lost.seconds:.0f} s"
    return lost.signal if isinstance(lost, Died) else str(lost)


def survey(run: Run) -> None:
    """Try every combination of the machine's devices, say which break the promise, and note all."""
    devices: list[str] = run.ask(DEVICE_TASKS + "devices")
    workers = _Workers(run.sandbox, run.request, run.package, run.options.environment)
    rows = list(matrix(devices, workers.compile_on, workers.attempt))
    broken = [(cell, found) for cell, found in rows if not keeps_promise(cell, found)]
    lines = [f"{len(rows)} combinations of {', '.join(devices)} · {len(rows) - len(broken)} as promised"]
    lines += [f"{cell}: {in_words(found)}" for cell, found in broken]
    run.console.say("devices", "\n".join(lines))
    run.note(devices=tuple(_row(cell, found) for cell, found in rows))


def in_words(found: Outcome) -> str:
    """An outcome for a person to read."""
    said = f" ({found.said})" if found.said else ""
    checked = f"; {found.checked} with AOTI_RUNTIME_CHECK_INPUTS=1" if found.checked else ""
    return f"{found.what}{said}{checked}"


def _row(cell: Cell, found: Outcome) -> dict[str, object]:
    return {
        "compiled": cell.compiled,
        "loaded": cell.loaded,
        "inputs": cell.given,
        "promised": cell.promised,
        "outcome": in_words(found),
        "kept": keeps_promise(cell, found),
    }
