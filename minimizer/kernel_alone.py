"""Hands over the kernel at fault: `kernel_repro.py`, proven alone, with what AddressSanitizer sees in it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from minimizer.case import Case, Value
from minimizer.folder import RunFolder
from minimizer.handover.kernel_repro import INPUTS, SCRIPT, KernelScript
from minimizer.handover.needs import ALLOCATOR
from minimizer.handover.plain import plain_candidates
from minimizer.liveness import prune
from minimizer.oracle.kernels import store_lines
from minimizer.oracle.recorded import KernelCase
from minimizer.oracle.requests import TASKS
from minimizer.oracle.sanitizer import read_report
from minimizer.pinpoint.fault import Fault
from minimizer.pinpoint.native import COMMAND, native_stack
from minimizer.pinpoint.search import TASKS as KERNEL_TASKS
from minimizer.pinpoint.search import Pinpointed
from minimizer.program import Program, Ref
from minimizer.sandbox import Sandbox, TaskError, WorkerLost
from minimizer.sandbox.asan import without_asan
from minimizer.verify import run_cold, run_warm_aloud

RUNS = 3
"""Fresh runs of the script, all of which must fail before it is claimed."""

WRITTEN_OUT = 48
"""Elements of a tensor that the script may write out."""

MOST_LINES = 2
"""Lines of a kernel that are quoted where it stores a wrong result."""

TRACEBACK = "Traceback (most recent call last)"

STEM = SCRIPT.removesuffix(".py")


@dataclass(frozen=True)
class Alone:
    """The fault with what the kernel's own script adds to it.

    `text` is the script, `note` a line about it for people, `stack` the native stack where it dies.
    """

    fault: Fault
    text: str = ""
    note: str = ""
    runs: int = 0
    failures: int = 0
    stack: str = ""

    @property
    def summary(self) -> dict[str, Any]:
        """For summary.json."""
        verified = {"runs": self.runs, "failures": self.failures} if self.runs else None
        return self.fault.summary | ({"repro_verified": verified} if verified else {})


def hand_over_kernel(
    sandbox: Sandbox,
    folder: RunFolder,
    store: Path,
    found: Pinpointed,
    case: Case,
    version: str,
    late: Callable[[], bool] = lambda: False,
) -> Alone:
    """Write the script of the kernel at fault and run it; it is removed when it does not fail every time.

    When it is `late`, AddressSanitizer and gdb, which cost minutes, are left to the reader.
    """
    for name in (SCRIPT, INPUTS):
        folder.remove(name)
    if found.fault.place != "kernel" or found.kernel is None:
        return Alone(found.fault)
    try:
        fault, script = _written(sandbox, folder, store, found.fault, found.kernel, case, version)
    except (TaskError, WorkerLost, ValueError) as problem:
        return Alone(found.fault, note=f"no {SCRIPT}: the kernel cannot be written out ({problem})"[:300])
    if script is None:
        return Alone(fault, note=f"no {SCRIPT}: what the kernel should compute is no part of the graph")
    alone = _proven(sandbox, folder, fault, script)
    return _seen_by_tools(folder.path, alone, script, late) if alone.text else alone


def _written(
    sandbox: Sandbox,
    folder: RunFolder,
    store: Path,
    fault: Fault,
    kernel: KernelCase,
    case: Case,
    version: str,
) -> tuple[Fault, KernelScript | None]:
    """Write the script; None where there is nothing to compare the kernel with."""
    way = fault.way if fault.way != "leave" else "die"
    if way == "compare" and (kernel.program is None or not any(arg.output for arg in kernel.args)):
        return fault, None
    wrong = ""
    if way == "compare":
        wrong, kernel = _compared(kernel, fault)
        stores = store_lines(kernel.source.code, wrong)
        fault = replace(fault, line="\n".join(f"line {n}: {text}" for n, text in stores[:MOST_LINES]))
    with _Clerk(sandbox, store.resolve()) as clerk:
        if kernel.program is not None and way == "compare":
            kernel = replace(kernel, program=clerk.plain(kernel.program, _inputs(kernel)))
        tensors = _tensors(kernel, way)
        codes = clerk.codes(tensors)
        saved = [(name, value) for name, value in tensors if codes[name] is None]
        if saved:
            clerk.save(saved, folder.path / INPUTS)
    script = KernelScript(
        kernel,
        codes,
        way,
        _title(fault),
        version,
        wrong,
        guard=fault.way == "leave",
        environment=_quiet(case),
    )
    folder.write(SCRIPT, script.text())
    return fault, script


def _title(fault: Fault) -> str:
    return f"{fault.kernel} alone: {fault.evidence}"[:300]


def _quiet(case: Case) -> tuple[tuple[str, str], ...]:
    """The case's environment, as far as a script can set it for itself."""
    environment = without_asan(case.settings.environment)
    return tuple((k, v) for k, v in environment if not k.startswith(ALLOCATOR))


def _compared(kernel: KernelCase, fault: Fault) -> tuple[str, KernelCase]:
    """The argument to compare, and the kernel with only that one as its reference program's output."""
    outputs = [arg for arg in kernel.args if arg.output]
    arg = next((arg for arg in outputs if arg.variable == fault.output), outputs[0])
    assert kernel.program is not None
    program = prune(replace(kernel.program, output=Ref(arg.output)))
    return arg.name, replace(kernel, program=program)


def _inputs(kernel: KernelCase) -> list[Value]:
    """The values of the reference program's inputs."""
    values = {arg.name: arg.before for arg in kernel.args if isinstance(arg.before, Value)} | dict(
        kernel.extra
    )
    assert kernel.program is not None
    return [values[i.name] for i in kernel.program.inputs]


def _tensors(kernel: KernelCase, way: str) -> list[tuple[str, Value]]:
    found = [(arg.name, arg.before) for arg in kernel.args if isinstance(arg.before, Value) and not arg.alias]
    wanted = [(name, value) for name, value in found if _is_read(kernel, name)]
    if kernel.program is not None and way == "compare":
        needed = {i.name for i in kernel.program.inputs}
        wanted += [item for item in kernel.extra if item[0] in needed]
    return wanted


def _is_read(kernel: KernelCase, name: str) -> bool:
    """Whether what an argument holds before the call matters: of mere outputs it does not."""
    inputs = {i.name for i in kernel.program.inputs} if kernel.program is not None else set()
    return name in inputs or not name.startswith("out_ptr")


class _Clerk:
    """One worker that answers questions about tensors and small programs."""

    def __init__(self, sandbox: Sandbox, store: Path) -> None:
        self.store = str(store)
        self.worker = sandbox.worker()

    def __enter__(self) -> _Clerk:
        return self

    def __exit__(self, *_: object) -> None:
        self.worker.close()

    def codes(self, tensors: Sequence[tuple[str, Value]]) -> dict[str, str | None]:
        values = [value for _, value in tensors]
        codes = self.worker.call(TASKS + "tensors_as_code", values, self.store, WRITTEN_OUT, timeout=60.0)
        return dict(zip((name for name, _ in tensors), codes, strict=True))

    def save(self, tensors: Sequence[tuple[str, Value]], file: Path) -> None:
        self.worker.call(TASKS + "save_tensors", list(tensors), self.store, str(file.resolve()), timeout=60.0)

    def plain(self, program: Program, values: Sequence[Value]) -> Program:
        """The program spelled as a person would, as far as it gives the very same."""
        best, candidates = program, plain_candidates(program)
        try:
            candidate = next(candidates)
            while True:
                same = self._same(program, candidate, values)
                best = candidate if same else best
                candidate = candidates.send(same)
        except StopIteration:
            return best

    def _same(self, one: Program, other: Program, values: Sequence[Value]) -> bool:
        try:
            return bool(
                self.worker.call(KERNEL_TASKS + "same_answer", one, other, values, self.store, timeout=30.0)
            )
        except TaskError:
            return False


def _proven(sandbox: Sandbox, folder: RunFolder, fault: Fault, script: KernelScript) -> Alone:
    """Run the script alone, as often as it takes to claim it."""
    runs = [run_cold(folder.path, STEM)]
    runs += [run_warm_aloud(folder.path, sandbox, "", STEM) for _ in range(RUNS - 1)]
    failures = sum(status == 1 and TRACEBACK not in output for status, output in runs)
    broken = next((output for _, output in runs if TRACEBACK in output), "")
    if failures < RUNS:
        for name in (SCRIPT, INPUTS):
            folder.remove(name)
        if broken:  # a fault of the script, which is ours, is no fault of the kernel
            last = broken.strip().splitlines()[-1][:200]
            return Alone(fault, note=f"no {SCRIPT}: it cannot be run by itself ({last})")
        said = f"by itself the kernel fails in {failures} of {RUNS} fresh runs, so no {SCRIPT} is handed over"
        return Alone(fault, note=said, runs=RUNS, failures=failures)
    said = f"{folder.path / SCRIPT} · fails {RUNS} of {RUNS} fresh runs"
    return Alone(fault, script.text(), said, RUNS, failures)


def _seen_by_tools(folder: Path, alone: Alone, script: KernelScript, late: Callable[[], bool]) -> Alone:
    """With what AddressSanitizer says where memory is in question, and the native stack where it dies."""
    evidence = alone.fault.evidence
    memory = alone.fault.way in ("leave", "asan") or "SIGSEGV" in evidence or "SIGBUS" in evidence
    if not memory and script.way != "die":
        return alone
    if late():
        more = f"not run for want of time: python {SCRIPT} --asan" if memory else "no time for gdb"
        return replace(alone, note=f"{alone.note}\n{more}")
    fault = _under_asan(folder, alone.fault) if memory else alone.fault
    return replace(alone, fault=fault, stack=stack_of(folder, STEM) if script.way == "die" else "")


def stack_of(folder: Path, stem: str) -> str:
    """Where the process that a script starts dies, seen once under gdb; that gdb is missing where it is."""
    if shutil.which(COMMAND[0]) is None:
        return "no native stack: gdb is not installed"
    _, output = run_cold(folder, stem, "child", under=COMMAND)
    return native_stack(output)


def _under_asan(folder: Path, fault: Fault) -> Fault:
    """What AddressSanitizer says of the kernel alone, and which line of it."""
    _, output = run_cold(folder, STEM, "--asan")
    access = read_report(output)
    if access is None:
        return replace(fault, sanitizer="AddressSanitizer sees nothing in either build")
    build = re.search(r"AddressSanitizer, (\w+) build: [\w-]+$", output, re.MULTILINE)
    line = re.search(r"^(line \d+) of the \w+ kernel(: .*)$", output, re.MULTILINE)
    where = f" ({build[1]} build)" if build else ""
    report = output[output.index("ERROR: AddressSanitizer") :][:2500]
    return replace(
        fault,
        line=line[1] + line[2] if line else fault.line,
        sanitizer=f"AddressSanitizer{where}: {access.text}\n{report}",
    )
