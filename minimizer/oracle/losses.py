"""What a worker's end says about what it was judging.

A death in the stage where compiled code runs is the failure itself; a death anywhere else is not the
compiler's.
"""

from __future__ import annotations

from minimizer.oracle.sanitizer import read_report
from minimizer.oracle.verdict import EAGER_AGAIN, Failure, Verdict, crash_class
from minimizer.sandbox import Died, TimedOut, WorkerLost

COMPILED_STAGES = ("lower", "cxx", "package", "load", "run", "compare")
"""Stages in which the compiler or its output is at work, or in which memory that it wrote over is found."""

RUN_TIMEOUT = 15.0
"""Seconds for one compiled call, at least."""


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
