"""Judging candidates: a program each, from source to verdict, with a time limit on all of it."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from minimizer.case import Case
from minimizer.oracle.losses import RUN_TIMEOUT, loss_verdict
from minimizer.oracle.requests import TASKS
from minimizer.oracle.verdict import Verdict
from minimizer.sandbox import Sandbox, TaskError, TimedOut, Worker, WorkerLost

PASSED = 400
"""Passing candidates that are remembered; the last ones are the nearest to the result."""


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
