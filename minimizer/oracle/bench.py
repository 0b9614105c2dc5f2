"""The caller's side of judging: workers, time limits, and what a worker's death means.

A death in the stage where compiled code runs is the failure itself; a death anywhere else is not the
compiler's. Inputs go to one long-lived worker, so a judgement costs a message; when it dies, the input that
killed it is known and the next worker loads the same package.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from minimizer.case import Case, Value
from minimizer.contract import Misuse
from minimizer.oracle.batches import Calls
from minimizer.oracle.requests import TASKS, Brought, TargetInfo, TargetRequest
from minimizer.oracle.sanitizer import read_report
from minimizer.oracle.verdict import EAGER_AGAIN, Failure, Verdict, crash_class
from minimizer.sandbox import Died, Sandbox, TaskError, TimedOut, Worker, WorkerLost

PASSED = 400
"""Passing candidates that are remembered; the last ones are the nearest to the result."""

OPEN_TIMEOUT = 300.0
"""Seconds for each of importing a model file, running it once and exporting it, unless the caller says so."""

Watch = Callable[[str, float], None]
"""Told now and then which stage a worker is in, and for how many seconds."""


def unwatched(stage: str, seconds: float) -> None:
    """Nobody watches."""


COMPILED_STAGES = ("lower", "cxx", "package", "load", "run", "compare")
"""Stages in which the compiler or its output is at work, or in which memory that it wrote over is found."""

RUN_TIMEOUT = 15.0
"""Seconds for one compiled call, at least."""

SLOWER = 20
"""How many times longer than eager, or than all of a judgement that ended, a compiled call may take."""


def loss_verdict(lost: WorkerLost, *, used: bool = False) -> Verdict:
    """What a worker's end says about the input it was judging.

    `used` tells that compiled code had run in it before: a broken heap is then taken for its work, wherever
    it is noticed.
    """
    late = (
        (used or lost.stage == EAGER_AGAIN)
        and isinstance(lost, Died)
        and crash_class(lost.signal, lost.output) == "memory"
    )
    if lost.stage not in COMPILED_STAGES and not late:
        return Verdict("invalid", reason=f"eager: {lost}")
    if isinstance(lost, TimedOut) and lost.stage == "compare":
        # No compiled code is at work there: eager and the free executions are, many times over.
        return Verdict("invalid", reason=f"comparing takes too long: {lost}")
    if isinstance(lost, Died) and lost.signal == "SIGKILL":
        # No program does this to itself: the kernel takes what needs more memory than there is.
        return Verdict("invalid", reason=f"killed from outside, probably for its memory: {lost}")
    return Verdict("fail", loss_failure(lost))


def loss_failure(lost: WorkerLost) -> Failure:
    """A death as a crash, a silence as a hang."""
    stage = lost.stage if lost.stage in ("lower", "cxx", "package", "load") else "run"
    if isinstance(lost, TimedOut):
        message = f"no answer within {lost.seconds:.0f} s in stage {stage!r}"
        return Failure("hang", stage, message, "", lost.output)
    assert isinstance(lost, Died)
    access = read_report(lost.output)
    if access is not None:
        return Failure("memory_error", stage, access.text, lost.signal, lost.output, op=access.function)
    last = [line for line in lost.output.splitlines() if line.strip()]
    reason = next((line for line in last if "what():" in line or "terminate called" in line), "")
    reason = reason or next((line for line in reversed(last) if "free()" in line or "corrupt" in line), "")
    message = f"the process ended with {lost.signal}" + (f": {reason.strip()[:300]}" if reason else "")
    return Failure("crash", stage, message, lost.signal, lost.output)


def _here() -> Path | None:
    """The current folder, where a person's own paths lead; None when it has been removed."""
    with contextlib.suppress(OSError):
        return Path.cwd()
    return None


class TargetBench:
    """Judges inputs of a model file against one compiled package."""

    def __init__(
        self,
        sandbox: Sandbox,
        request: TargetRequest,
        package: Path,
        environment: tuple[tuple[str, str], ...] = (),
        *,
        info: TargetInfo | None = None,
    ) -> None:
        self._sandbox = sandbox
        self.info = info
        self.request = request
        self.package = package
        self._environment = environment
        self._worker: Worker | None = None
        self._loaded = False
        self._used = False
        self.open_timeout = OPEN_TIMEOUT
        self.watch: Watch = unwatched
        self.timeout = 60.0
        self.run_timeout = RUN_TIMEOUT
        self.workers = 0

    def _fresh(self) -> Worker:
        self.close()
        self._worker = self._sandbox.worker(self._environment, directory=_here())
        self._loaded = self._used = False
        self.workers += 1
        return self._worker

    def open(self) -> TargetInfo:
        """Open the target in a fresh worker. Raises TaskError (``Unusable``) and WorkerLost."""
        worker = self._fresh()
        each = dict.fromkeys(("import", "eager", "export"), self.open_timeout)
        total = 2 * self.open_timeout
        self.info = worker.call(
            TASKS + "open_target", self.request, timeout=total, stage_timeout=each, watch=self.watch
        )
        assert self.info is not None
        return self.info

    def compile(self, timeout: float, level: str = "full") -> Failure | None:
        """Compile the package, or as far as a level; the failure when that fails."""
        worker = self._ready(load=False)
        try:
            failure: Failure | None = worker.call(
                TASKS + "compile_target", str(self.package), level, timeout=timeout, watch=self.watch
            )
        except WorkerLost as lost:
            return loss_failure(lost)
        self._loaded = failure is None and level == "full"
        return failure

    def _ready(self, *, load: bool = True) -> Worker:
        if self._worker is None or not self._worker.alive:
            if self.info is None:
                self.open()
            else:
                self._fresh().call(
                    TASKS + "reopen_target", self.request, self.info.stateful, timeout=self.open_timeout
                )
        assert self._worker is not None
        if load and not self._loaded:
            failure = self._worker.call(TASKS + "load_target", str(self.package), timeout=self.open_timeout)
            if failure is not None:
                raise LoadFailed(failure)
            self._loaded = True
        return self._worker

    def generated_code(self) -> str:
        """The C++ text of the package; empty where there is none."""
        if not self.package.exists():
            return ""
        text: str = self._ready(load=False).call(
            TASKS + "generated_code", str(self.package), timeout=self.open_timeout
        )
        return text

    def judge(self, *calls: Sequence[Value], plainly: bool = False, manner: str = "") -> Verdict:
        """Judge inputs, given call after call, dead and silent workers included.

        `plainly` as in `Session.judge`: for inputs that have been found to fail within the contract.
        """
        return self._judge([tuple(map(tuple, calls))], plainly, manner)[0]

    def judge_many(self, batch: Sequence[Calls]) -> list[Verdict]:
        """Judge sets of calls: a `batches.JudgeMany`."""
        return self._judge(batch, False, "")

    def _judge(self, batch: Sequence[Calls], plainly: bool, manner: str) -> list[Verdict]:
        try:
            return self._judged(batch, plainly, manner)
        except LoadFailed as problem:
            return [Verdict("fail", problem.failure)]
        except WorkerLost as lost:
            used = self._used or lost.item > 0
            # What was right before is judged again: its verdicts were lost with the worker.
            before: list[Verdict] = []
            while len(before) < lost.item:
                before += self._judge(batch[len(before) : lost.item], plainly, manner)
                if before[-1].failed:
                    return before
            return [*before, self._of_loss(lost, batch[lost.item], used, plainly, manner)]

    def _judged(self, batch: Sequence[Calls], plainly: bool, manner: str) -> list[Verdict]:
        """The verdicts of a worker. Raises WorkerLost and LoadFailed."""
        worker = self._ready()
        started = time.monotonic()
        verdicts: list[Verdict] = worker.call(
            TASKS + "judge_inputs",
            batch,
            self.request.store,
            plainly,
            manner,
            timeout=self.timeout,
            stage_timeout={"run": self.run_timeout},
        )
        self._used = True
        self._allow((time.monotonic() - started) / len(verdicts))
        return verdicts

    def _of_loss(self, lost: WorkerLost, calls: Calls, used: bool, plainly: bool, manner: str) -> Verdict:
        """What a worker's end says of the calls that it was at; `used` as in `loss_verdict`."""
        verdict = loss_verdict(lost, used=used)
        if plainly or not verdict.failed:
            return verdict
        limit = self.run_timeout
        verdict = self._after_loss(verdict, calls)
        if verdict.failed and isinstance(lost, TimedOut) and self.run_timeout > 2 * limit:
            return self.judge(*calls, plainly=plainly, manner=manner)  # eager is as slow
        return verdict

    def _allow(self, took: float) -> None:
        """Give calls more time, when something that ended took so many seconds."""
        self.timeout = max(self.timeout, SLOWER * took)
        self.run_timeout = max(self.run_timeout, SLOWER * took)

    def _after_loss(self, verdict: Verdict, calls: Calls) -> Verdict:
        """A verdict on compiled code that took its process along or did not end, once the contract is asked.

        Where eager alone, in a process of its own, is lost as well on these calls, nothing is claimed.
        """
        rejected = self.guards_reject(calls[-1])
        if rejected:
            return Verdict("invalid", reason=f"out of contract: {rejected}")
        started = time.monotonic()
        try:
            problem: str = self._ready(load=False).call(
                TASKS + "eager_problem", calls, self.request.store, timeout=self.timeout
            )
        except WorkerLost as lost:
            return Verdict("invalid", reason=f"eager: {lost}")
        self._allow(time.monotonic() - started)
        return replace(verdict, reason=problem)

    def ask(self, task: str, values: Sequence[Sequence[Value]], *, timeout: float) -> Any:
        """What another task says of inputs, with the package loaded. Raises TaskError and WorkerLost."""
        return self._ready().call(task, tuple(map(tuple, values)), self.request.store, timeout=timeout)

    def call_open(self, task: str, *args: object) -> Any:
        """The answer of a task to a worker that has the target open. Raises TaskError and WorkerLost."""
        limits = {"run": self.run_timeout}
        return self._ready(load=False).call(task, *args, timeout=self.timeout, stage_timeout=limits)

    def guards_reject(self, values: Sequence[Value]) -> str:
        """Why the exported program refuses these inputs; empty when it accepts them."""
        try:
            reason: str = self._ready(load=False).call(
                TASKS + "check_guards", tuple(values), self.request.store, timeout=self.timeout
            )
        except WorkerLost as lost:
            return f"the guards cannot be evaluated: {lost}"
        return reason

    def person_inputs(self, name: str) -> Brought | Misuse:
        """The inputs that a person named, or how their form is wrong. Raises TaskError (``Unusable``)."""
        answer: Brought | Misuse = self._ready(load=False).call(
            TASKS + "person_inputs", self.request, name, timeout=self.open_timeout
        )
        return answer

    def save_program(self, file: str) -> None:
        """Write the exported program to a file, with the example inputs in it."""
        self._ready(load=False).call(TASKS + "save_program", file, timeout=self.timeout)

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None
        self._loaded = False


class LoadFailed(Exception):
    """The package was compiled and cannot be loaded."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class OutOfBudget(Exception):
    """A judgement was ended because no time is left: nothing is known of the case."""


@dataclass(frozen=True)
class _Warm:
    """A process that has a program compiled, and which."""

    key: str
    worker: Worker
    package: Path
    """A program with state is loaded from it again."""


def _end(warm: _Warm) -> None:
    warm.worker.close()
    warm.package.unlink(missing_ok=True)


def _program_key(case: Case, level: str) -> str:
    return f"{level} {case.program.fingerprint} {case.settings}"


class CaseBench:
    """Judges candidates, each from source to verdict in a process of its own.

    Candidates that differ in their inputs only share a compiled program: the process that has it stays for
    the next one, until it dies or another program comes along. At the time `until` (of the monotonic clock)
    a judgement under way is ended and raises OutOfBudget.
    """

    def __init__(self, sandbox: Sandbox, store: Path) -> None:
        self._sandbox = sandbox
        self.store = store
        self._packages = itertools.count(1)
        self._warm: _Warm | None = None
        self._lock = threading.Lock()
        self._at_work: set[Worker] = set()
        self.until = math.inf
        self.compiles = 0
        self.judged = 0
        self.timeout = 120.0
        self.errors: list[str] = []
        self.passed: deque[Case] = deque(maxlen=PASSED)

    def judge(self, case: Case, level: str = "full", *, fresh: bool = False) -> Verdict:
        """Judge a case at a level of `stages.LEVELS`; `fresh` asks for a new process and a new compile."""
        (verdict,) = self._take([self._judge_in_turn([case], level, self._warm, fresh=fresh)], [[case]])
        return verdict[0]

    def judge_many(self, cases: Sequence[Case], level: str = "full") -> list[Verdict]:
        """Judge cases side by side, one process for each distinct program; the verdicts in their order.

        The process that is kept is that of the first case.
        """
        together: dict[str, list[Case]] = {}
        for case in cases:
            together.setdefault(_program_key(case, level), []).append(case)
        groups = list(together.values())
        with ThreadPoolExecutor(len(groups)) as pool:
            jobs = [
                pool.submit(self._judge_in_turn, group, level, None if k else self._warm)
                for k, group in enumerate(groups)
            ]
            try:
                answers = [job.result() for job in jobs]
            except BaseException:
                for job in jobs:
                    job.cancel()
                with self._lock:
                    for worker in self._at_work:
                        worker.kill()  # each thread then learns that its worker died, and ends
                self._warm = None
                raise
        given = self._take(answers, groups)
        found = {id(case): v for group, vs in zip(groups, given, strict=True) for case, v in zip(group, vs)}
        return [found[id(case)] for case in cases]

    def _take(
        self, answers: Sequence[tuple[list[Verdict], _Warm | None]], groups: Sequence[Sequence[Case]]
    ) -> list[list[Verdict]]:
        """Note verdicts and keep the first process."""
        for _, warm in answers[1:]:
            if warm is not None:
                _end(warm)
        self._warm = answers[0][1]
        for (verdicts, _), cases in zip(answers, groups, strict=True):
            self.judged += len(cases)
            self.passed += [c for c, v in zip(cases, verdicts, strict=True) if v.status == "pass"]
        return [verdicts for verdicts, _ in answers]

    def _judge_in_turn(
        self, cases: Sequence[Case], level: str, warm: _Warm | None, *, fresh: bool = False
    ) -> tuple[list[Verdict], _Warm | None]:
        """Judge cases of one program; the verdicts and the process that has the program compiled."""
        verdicts: list[Verdict] = []
        for case in cases:
            key = _program_key(case, level)
            if warm is not None and (fresh or warm.key != key or not warm.worker.alive):
                _end(warm)
                warm = None
            if warm is not None:
                asked = self._ask(warm.worker, "judge_again", case.sequence, case.settings.manner)
                verdicts.append(asked)
                continue
            worker = self._sandbox.worker(case.settings.environment, own_cache=fresh)
            package = self._sandbox.scratch / f"candidate-{next(self._packages)}.pt2"
            verdict = self._ask(worker, "judge_case", case, str(self.store), str(package), level)
            with self._lock:
                self.compiles += level != "lower"
            verdicts.append(verdict)
            # What was compiled just in time cannot be given its first state again.
            levels = ("full",) if case.program.may_keep_state else ("jit", "full")
            made = _Warm(key, worker, package)
            if worker.alive and level in levels and verdict.status in ("pass", "fail") and not fresh:
                warm = made
            else:
                _end(made)
        if warm is not None and not warm.worker.alive:
            _end(warm)
            warm = None
        return verdicts, warm

    def _ask(self, worker: Worker, task: str, *args: object) -> Verdict:
        with self._lock:
            self._at_work.add(worker)
        timeout = min(self.timeout, max(0.0, self.until - time.monotonic()))
        try:
            limits = {"run": RUN_TIMEOUT, "compare": RUN_TIMEOUT}
            verdict: Verdict = worker.call(TASKS + task, *args, timeout=timeout, stage_timeout=limits)
            return verdict
        except WorkerLost as lost:
            if isinstance(lost, TimedOut) and time.monotonic() >= self.until:
                raise OutOfBudget from lost
            return loss_verdict(lost, used=task == "judge_again")
        except TaskError as problem:
            self.errors.append(problem.traceback)
            return Verdict("invalid", reason=f"cannot be judged: {problem}"[:500])
        finally:
            with self._lock:
                self._at_work.discard(worker)

    def close(self) -> None:
        """End the process that is kept."""
        if self._warm is not None:
            _end(self._warm)
            self._warm = None
