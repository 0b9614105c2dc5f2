"""Pooled testing: many small programs in one compilation, separated only when that fails.

Nearly all programs pass, and most of the time of a compilation goes into what does not depend on the program.
So a pool is compiled as one. Wrong outputs name their program. A pool that cannot be compiled, or whose call
on its members' own inputs dies, is parted, as in the group testing of blood samples (Dorfman 1943). A call
that dies on other inputs is repeated with one member's inputs at a time: that needs no compilation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from minimizer.buckets import calls_of
from minimizer.case import Case, Value
from minimizer.input_space import InputSpace
from minimizer.nightly.joining import ALONE, side_by_side
from minimizer.oracle.losses import COMPILED_STAGES, RUN_TIMEOUT, loss_failure
from minimizer.oracle.verdict import EAGER_AGAIN, Failure, Severity, Verdict
from minimizer.sandbox import Sandbox, TaskError, Worker, WorkerLost

PRELOAD = "minimizer.nightly.warm"
TASKS = "minimizer.nightly.pool_tasks:"

ROUNDS = 28
"""Inputs tried on each member."""

MEMBER_ELEMENTS = 1 << 15
"""Elements of all inputs of a member together, at most: a round is for many programs."""

OPEN_TIMEOUT, COMPILE_TIMEOUT, ROUND_TIMEOUT = 120.0, 600.0, 120.0


@dataclass(frozen=True)
class Suspect:
    """A program that failed as a member of a pool, with the inputs on which it did and those it came with."""

    case: Case
    failure: Failure
    examples: tuple[Value, ...]


@dataclass
class PoolReport:
    """What came of the programs of a pool."""

    judged: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    suspects: list[Suspect] = field(default_factory=list)
    compiles: int = 0
    inputs: int = 0


class PoolBench:
    """Judges many programs at once, each pool compiled as a whole package."""

    def __init__(self, sandbox: Sandbox, store: Path, *, rounds: int = ROUNDS) -> None:
        self._sandbox = sandbox
        self._store = str(store.resolve())
        self._rounds = rounds
        self._count = 0
        self.report = PoolReport()

    def judge(self, cases: Sequence[Case]) -> None:
        """Judge the cases, each on its own values first; what comes of it is added to `report`."""
        waiting = [list(cases)]
        while waiting:
            members = waiting.pop()
            if members:
                waiting += self._attempt(members)

    def _attempt(self, cases: list[Case]) -> list[list[Case]]:
        """Judge one pool; the smaller pools to go on with when it fails as a whole."""
        self._count += 1
        attempt = _Attempt(self._sandbox, self._store, cases, self._count)
        try:
            failure = attempt.start(self.report) or attempt.examples(self.report)
            if failure is None:
                attempt.rounds(self._rounds, self.report)
                return []
        except TaskError as problem:
            failure = Failure("export_error", "export", f"cannot be judged: {problem}")
        except _Shrunk as shrunk:
            return [shrunk.left]
        finally:
            attempt.close()
        if len(cases) > 1:
            return parts(cases, failure)
        self.report.judged += 1
        if failure.stage == "export":
            self.report.refused[cases[0].key] = failure.message[:200]
        else:
            self.report.suspects.append(Suspect(cases[0], failure, cases[0].values))
        return []


def parts(cases: Sequence[Case], failure: Failure) -> list[list[Case]]:
    """Two pools for one that failed: those with calls that the failure names, else halves.

    A lowering error names an operator. The C++ compiler names the functions that it does not accept, and a
    kernel is called after the operators in it (``cpp_fused_lerp_mul_3``).
    """
    named = [case for case in cases if _is_named(case, failure)]
    if 0 < len(named) < len(cases):
        return [[c for c in cases if c not in named], named]
    middle = len(cases) // 2
    return [list(cases[:middle]), list(cases[middle:])]


def _is_named(case: Case, failure: Failure) -> bool:
    if failure.op and any(node.target == failure.op for node in case.program.nodes):
        return True
    kernels = [f"_{words}_" for words in _KERNEL.findall(failure.message)]
    return any(f"_{call}_" in kernel for call in calls_of(case.program) for kernel in kernels)


_KERNEL = re.compile(r"\bcpp_fused_(\w+)_\d+\b")


class _Shrunk(Exception):
    """Some members cannot be judged at all; `left` are the others."""

    def __init__(self, left: list[Case]) -> None:
        super().__init__("some members cannot be judged")
        self.left = left


class _Attempt:
    """One pool in one worker after the other."""

    def __init__(self, sandbox: Sandbox, store: str, cases: list[Case], number: int) -> None:
        self._sandbox = sandbox
        self._store = store
        self._cases = cases
        self._pool = side_by_side([case.program for case in cases])
        self._package = sandbox.scratch / f"pool-{number}.pt2"
        self._worker: Worker | None = None
        self._convicted: set[int] = set()
        self._lost_errors: dict[int, Suspect] = {}

    def close(self) -> None:
        """End the worker and remove the package."""
        if self._worker is not None:
            self._worker.close()
        self._package.unlink(missing_ok=True)

    def _open(self) -> tuple[Worker, list[str]]:
        if self._worker is not None:
            self._worker.close()
        self._worker = worker = self._sandbox.worker()
        said: list[str] = worker.call(
            TASKS + "open_pool", self._pool, self._cases, self._store, timeout=OPEN_TIMEOUT
        )
        return worker, said

    def start(self, report: PoolReport) -> Failure | None:
        """Compile and load; the failure of the pool as a whole. Raises _Shrunk."""
        try:
            worker, said = self._open()
            self._drop(said, report)
            failure: Failure | None = worker.call(
                TASKS + "compile_pool", str(self._package), timeout=COMPILE_TIMEOUT
            )
            report.compiles += 1
            if failure is not None and failure.stage == "export" and len(self._cases) > 1:
                self._drop(worker.call(TASKS + "export_alone", timeout=COMPILE_TIMEOUT), report)
            if failure is not None and failure.stage == "lower" and len(self._cases) > 1:
                self._convict_lowered(worker.call(TASKS + "lower_alone", timeout=COMPILE_TIMEOUT), report)
            return failure or worker.call(TASKS + "load_pool", str(self._package), timeout=OPEN_TIMEOUT)
        except WorkerLost as lost:
            if lost.stage in COMPILED_STAGES:
                return loss_failure(lost)
            return Failure("export_error", "export", f"before anything was compiled: {lost}")

    def _drop(self, said: Sequence[str], report: PoolReport) -> None:
        report.refused |= {case.key: reason for case, reason in zip(self._cases, said) if reason}
        if any(said):
            raise _Shrunk([case for case, reason in zip(self._cases, said) if not reason])

    def _convict_lowered(self, failures: Sequence[Failure | None], report: PoolReport) -> None:
        """Members for which no code can be generated alone either are suspects; the others go on."""
        for k, failure in enumerate(failures):
            if failure is not None:
                report.judged += 1
                self._convict(k, self._cases[k].values, failure, report)
        if any(failures):
            raise _Shrunk([case for case, failure in zip(self._cases, failures) if failure is None])

    def examples(self, report: PoolReport) -> Failure | None:
        """Judge every member on the inputs that it came with; the failure when that call ends badly.

        Every other call repeats some of these inputs: a member that dies on them is found by parting only.
        """
        given = [case.values for case in self._cases]
        try:
            verdicts = self._call("judge_round", given)
        except WorkerLost as lost:
            failure = loss_failure(lost)
            return replace(failure, stage="run") if failure.stage.startswith(ALONE) else failure
        except TaskError as problem:
            return Failure("runtime_error", "run", problem.message, problem.exception, problem.traceback)
        report.judged += len(self._cases)
        self._take(dict(enumerate(given)), dict(enumerate(verdicts)), report)
        return None

    def rounds(self, most: int, report: PoolReport) -> None:
        """Judge further inputs, one set for each member at a time."""
        inputs = [member_inputs(case, most) for case in self._cases]
        for turn in range(max(map(len, inputs), default=0)):
            given = [
                values[turn] if turn < len(values) and k not in self._convicted else None
                for k, values in enumerate(inputs)
            ]
            if any(values is not None for values in given):
                self._round(given, report)
        report.suspects += self._lost_errors.values()

    def _round(self, given: Sequence[Sequence[Value] | None], report: PoolReport) -> None:
        try:
            verdicts: list[Verdict | None] = self._call("judge_round", list(given))
        except WorkerLost as lost:
            blamed = _blamed(lost)
            if blamed is not None and given[blamed] is not None:
                self._convict(blamed, given[blamed] or (), loss_failure(lost), report)
                self._round([None if k == blamed else v for k, v in enumerate(given)], report)
            else:
                self._one_by_one(given, report)
            return
        except TaskError:
            self._one_by_one(given, report)
            return
        self._take(dict(enumerate(given)), dict(enumerate(verdicts)), report)

    def _take(
        self,
        given: Mapping[int, Sequence[Value] | None],
        verdicts: Mapping[int, Verdict | None],
        report: PoolReport,
    ) -> None:
        for k, values in given.items():
            verdict = verdicts[k]
            if values is not None and verdict is not None:
                report.inputs += 1
                if verdict.failure is not None:
                    self._convict(k, values, verdict.failure, report)

    def _one_by_one(self, given: Sequence[Sequence[Value] | None], report: PoolReport) -> None:
        """A call that ended badly, again with one member's inputs at a time."""
        for k, values in enumerate(given):
            if values is None or k in self._convicted:
                continue
            try:
                verdict = self._call("judge_alone", k, values)
            except WorkerLost as lost:
                if lost.stage in (*COMPILED_STAGES, EAGER_AGAIN, f"{ALONE}{k}"):
                    self._convict(k, values, loss_failure(lost), report)
                continue
            except TaskError:
                continue
            self._take({k: values}, {k: verdict}, report)

    def _call(self, task: str, *args: object) -> Any:
        """Ask the worker, a new one with the same package where the last one is gone."""
        if self._worker is None or not self._worker.alive:
            worker, _ = self._open()
            worker.call(TASKS + "load_pool", str(self._package), timeout=OPEN_TIMEOUT)
        assert self._worker is not None
        limits = {"run": RUN_TIMEOUT}
        return self._worker.call(TASKS + task, *args, timeout=ROUND_TIMEOUT, stage_timeout=limits)

    def _convict(self, k: int, values: Sequence[Value], failure: Failure, report: PoolReport) -> None:
        """A member that failed is done with: its other inputs would tell of the same failure.

        A lost error is kept until the last round. Empty inputs give many of them, and something worse in the
        same program would go unseen.
        """
        if failure.stage.startswith(ALONE):
            failure = replace(failure, stage="run")
        case = self._cases[k]
        suspect = Suspect(replace(case, values=tuple(values)), failure, case.values)
        if failure.severity == Severity.LOST_ERROR:
            self._lost_errors.setdefault(k, suspect)
            return
        self._convicted.add(k)
        self._lost_errors.pop(k, None)
        report.suspects.append(suspect)


def _blamed(lost: WorkerLost) -> int | None:
    """The member whose inputs were tried when a worker was lost, where that is known."""
    number = lost.stage.removeprefix(ALONE)
    return int(number) if lost.stage.startswith(ALONE) and number.isdigit() else None


def member_inputs(case: Case, most: int) -> list[tuple[Value, ...]]:
    """Further inputs to try on a member: the opening moves of a search, small ones only."""
    space = InputSpace(case.program)
    drawn = (space.values(draw) for draw in space.opening())
    small = (v for v in drawn if sum(value.numel for value in v) <= MEMBER_ELEMENTS)
    return list(islice(small, most))
