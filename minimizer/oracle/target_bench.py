"""Judging a target: one compiled package, and inputs one after the other.

Inputs go to one long-lived worker, so a judgement costs a message; when it dies, the input that killed it is
known and the next worker loads the same package.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from minimizer.case import Value
from minimizer.contract import Misuse
from minimizer.oracle.batches import Calls
from minimizer.oracle.losses import RUN_TIMEOUT, loss_failure, loss_verdict
from minimizer.oracle.requests import TASKS, Brought, TargetInfo, TargetRequest
from minimizer.oracle.verdict import Failure, Verdict
from minimizer.sandbox import Sandbox, TimedOut, Worker, WorkerLost

OPEN_TIMEOUT = 300.0
"""Seconds for each of importing a model file, running it once and exporting it, unless the caller says so."""

Watch = Callable[[str, float], None]
"""Told now and then which stage a worker is in, and for how many seconds."""


def unwatched(stage: str, seconds: float) -> None:
    """Nobody watches."""


SLOWER = 20
"""How many times longer than eager, or than all of a judgement that ended, a compiled call may take."""


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
