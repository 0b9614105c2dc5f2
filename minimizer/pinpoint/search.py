"""Gathers the evidence: records a run of the reduced program, examines it, and runs kernels guarded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from minimizer.case import Case
from minimizer.oracle.kernels import KernelSource
from minimizer.oracle.recorded import LOG, Examination, KernelCase, Recording, Step, read_recording
from minimizer.oracle.sanitizer import Access, read_report
from minimizer.oracle.verdict import Failure
from minimizer.pinpoint.fault import (
    Fault,
    before_any_kernel,
    broken_bound,
    choose,
    from_compiler,
    from_death,
    raising_line,
)
from minimizer.sandbox import Died, Sandbox, TaskError, TimedOut, WorkerLost
from minimizer.sandbox.asan import without_asan

TASKS = "minimizer.oracle.kernel_tasks:"
"""Prefix of the tasks that are asked here."""

TIMEOUT = 240.0
"""Seconds for compiling and examining a reduced program."""

RUN_TIMEOUT = 30.0
"""Seconds after which one call of a recorded run counts as one that does not come back."""

NO_RETURN = "it does not come back"
PAST_THE_END = "it accesses memory past the end of a buffer"

MOST_GUARDED = 8
"""Launches that are run guarded, the last ones first."""


@dataclass(frozen=True)
class Pinpointed:
    """The fault, and the kernel at fault as a case of its own where its launch was recorded."""

    fault: Fault
    kernel: KernelCase | None = None


class _Witness:
    """Asks about one case, in a worker that is replaced when it dies."""

    def __init__(self, sandbox: Sandbox, case: Case, store: Path) -> None:
        self.sandbox, self.case, self.store = sandbox, case, store
        self.worker: Any = None

    def ask(self, task: str, *args: Any, **limits: Any) -> Any:
        if self.worker is None or not self.worker.alive:
            self.worker = self.sandbox.worker(self.case.settings.environment)
        given = (self.case, str(self.store.resolve()), *args)
        return self.worker.call(TASKS + task, *given, timeout=TIMEOUT, **limits)

    def close(self) -> None:
        if self.worker is not None:
            self.worker.close()


def pinpoint(sandbox: Sandbox, case: Case, store: Path, failure: Failure, cause: str = "") -> Pinpointed:
    """Where the failure of a reduced case is made. `cause` is what is known of a custom operator's part."""
    fault = before_any_kernel(failure)
    if fault is not None:
        return Pinpointed(fault)
    witness = _Witness(sandbox, case, store)
    try:
        if failure.stage == "cxx":
            kernels: dict[str, str] = witness.ask("aoti_code")
            fault = from_compiler(failure, kernels)
            if not fault.kernel:
                return Pinpointed(fault)
            calls: dict[str, tuple[str, ...]] = witness.ask("calls_by_kernel")
            fault = replace(fault, calls=calls.get(fault.kernel) or fault.calls)
            source = KernelSource.of_code(fault.kernel, kernels[fault.kernel])
            return Pinpointed(fault, KernelCase(source, fault.calls, (), None))
        return _at_run(witness, failure, cause)
    except (TaskError, WorkerLost) as problem:
        return Pinpointed(Fault("unknown", f"the program cannot be examined ({problem})"))
    finally:
        witness.close()


def _at_run(witness: _Witness, failure: Failure, cause: str) -> Pinpointed:
    how, recording, access = _record(witness)
    if recording is None:
        return Pinpointed(Fault("unknown", f"Inductor's Python wrapper cannot be used here: {how}"))
    fault = _guarded(witness, recording) if memory_like(failure) or how else None
    if fault is None and how:
        fault = from_death(recording, how, _way(how, access))
    elif fault is None:
        seen: Examination = witness.ask("examine", recording)
        fault = choose(failure, recording, seen)
        if fault.stage:
            fault = _with_operators(witness, fault)
    if fault.place == "C++ wrapper" and witness.case.settings.path != "aoti":
        fault = replace(fault, place="front end of torch.compile")
    if cause == "custom op" and fault.place not in ("kernel", "custom op"):
        fault = replace(fault, place="custom op", evidence=f"its shape function is wrong ({fault.evidence})")
    kernel = _isolated(witness, recording, fault.step) if fault.place == "kernel" and fault.step else None
    if kernel is not None:
        fault = replace(fault, calls=kernel.calls or fault.calls)
    if kernel is not None and fault.way == "compare" and _leaves(witness, kernel):
        fault = replace(fault, way="leave", evidence=f"{PAST_THE_END}; {fault.evidence}")
    if kernel is not None and how and not fault.line:
        fault = replace(fault, line=raising_line(kernel.source.code, how))
    if access is not None and kernel is not None:
        fault = replace(fault, sanitizer=f"AddressSanitizer: {access.text}", line=_line(kernel, access))
    return Pinpointed(fault, kernel)


def _way(how: str, access: Access | None) -> str:
    if access is not None:
        return "asan"
    return "hang" if how == NO_RETURN else "die"


def _line(kernel: KernelCase, access: Access) -> str:
    """The line of the kernel that the sanitizer points at."""
    lines = kernel.source.code.splitlines()
    known = 0 < access.line <= len(lines)
    return f"line {access.line}: {lines[access.line - 1].strip()}" if known else ""


def memory_like(failure: Failure) -> bool:
    """Whether a failure may come from an access outside a buffer."""
    return failure.kind in ("crash", "memory_error", "nondeterministic")


def _record(witness: _Witness) -> tuple[str, Recording | None, Access | None]:
    """A recording of the run, how it ended where it did not report back, and what a sanitizer said."""
    log = witness.store / LOG
    log.unlink(missing_ok=True)
    try:
        answer = witness.ask("record", stage_timeout=_EachCall(run=RUN_TIMEOUT))
    except WorkerLost as lost:
        access = read_report(lost.output)
        ended = NO_RETURN if isinstance(lost, TimedOut) else f"the process ended with {_signal(lost)}"
        bound = broken_bound(lost.output)
        ended = f"{ended} ({bound})" if bound else ended
        ended = f"AddressSanitizer ends it ({access.text})" if access is not None else ended
        recording = read_recording(log.read_text().splitlines()) if log.exists() else None
        return ended, recording, access
    return ("", answer, None) if isinstance(answer, Recording) else (answer, None, None)


class _EachCall(dict[str, float]):
    """The same limit for every stage that is the launch of a call."""

    def get(self, stage: str, default: Any = None) -> Any:
        return super().get("run", default) if stage.startswith("launch ") else super().get(stage, default)


def _signal(lost: WorkerLost) -> str:
    return lost.signal if isinstance(lost, Died) else str(lost)


def _guarded(witness: _Witness, recording: Recording) -> Fault | None:
    """The first kernel, from the last launch on back, that leaves its buffers when no memory follows them."""
    steps: Sequence[Step] = [step for step in recording.steps if step.kernel]
    for step in reversed(steps[-MOST_GUARDED:]):
        kernel = _isolated(witness, recording, step.index)
        if kernel is not None and _leaves(witness, kernel):
            return Fault("kernel", PAST_THE_END, step.callee, "leave", kernel.calls, step.index)
    return None


def _leaves(witness: _Witness, kernel: KernelCase) -> bool:
    """Whether a kernel accesses memory past the end of a buffer: when that is made a fault, it dies of it."""
    worker = witness.sandbox.worker(without_asan(witness.case.settings.environment))
    try:
        worker.call(TASKS + "run_guarded", kernel, str(witness.store.resolve()), timeout=TIMEOUT)
    except Died as lost:
        return lost.stage.startswith("guarded") and lost.signal in ("SIGSEGV", "SIGBUS")
    except (TaskError, WorkerLost):
        return False
    finally:
        worker.close()
    return False


def _isolated(witness: _Witness, recording: Recording, index: int) -> KernelCase | None:
    try:
        kernel: KernelCase = witness.ask("isolate", recording, index)
        return kernel
    except (TaskError, WorkerLost):
        return None


def _with_operators(witness: _Witness, fault: Fault) -> Fault:
    """The fault with what the graphs say about it: which operators went, and which came in their place."""
    stages: list[tuple[str, tuple[str, ...]]] = witness.ask("operators_by_stage")
    position = next((k for k, (name, _) in enumerate(stages) if name == fault.stage), 0)
    old, new = stages[max(position - 1, 0)][1], stages[position][1]
    gone, came = ([n for n in one if n not in other] for one, other in ((old, new), (new, old)))
    if not gone and not came:
        return fault
    turned = f"it turned {', '.join(gone) or 'nothing'} into {', '.join(came) or 'nothing'}"
    return replace(fault, evidence=f"{fault.evidence}; {turned}")
