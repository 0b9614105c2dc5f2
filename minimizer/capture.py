"""Is it there every time? A failure is replayed in fresh processes before anything is built on it.

A failure that comes and goes cannot be reduced: luck would pass for progress. So what does not fail every
time is taken up a ladder of settings, each known to make some kind of flakiness deterministic, and the first
rung on which it always fails becomes part of the case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from minimizer.oracle.verdict import UNSAID, Failure, Signature, Verdict, thrown

RUNS = 5
"""Fresh processes per rung."""


@dataclass(frozen=True)
class Rung:
    """One step of the ladder: variables set before torch is imported, and more calls in one process.

    `extra_calls` follow with the same inputs; `before` calls come first, with the inputs that the program
    had been given last when it failed.
    A rung with a `device` is for targets on that type of device.
    """

    name: str
    environment: tuple[tuple[str, str], ...] = ()
    extra_calls: int = 0
    before: int = 0
    device: str = ""

    @property
    def command(self) -> str:
        """The same from a shell."""
        return " ".join(f"{key}={value}" for key, value in self.environment)


CALLED_AGAIN = Rung("called 10 times", extra_calls=9)
OVERWRITTEN = Rung("freed memory overwritten", (("MALLOC_PERTURB_", "165"),))
CHECKED = Rung(
    "heap checked at every call",
    (("LD_PRELOAD", "libc_malloc_debug.so.0"), ("MALLOC_CHECK_", "3"), *OVERWRITTEN.environment),
    extra_calls=9,  # since glibc 2.34 the library checks; before, malloc itself did
)

LADDER = (
    Rung("as it is"),
    Rung("allocations not cached", (("PYTORCH_NO_CUDA_MEMORY_CACHING", "1"),), device="cuda"),
    Rung("launches synchronous", (("CUDA_LAUNCH_BLOCKING", "1"),), device="cuda"),
    Rung(
        "allocations not cached, launches synchronous",
        (("PYTORCH_NO_CUDA_MEMORY_CACHING", "1"), ("CUDA_LAUNCH_BLOCKING", "1")),
        device="cuda",
    ),
    CALLED_AGAIN,
    Rung("one thread", (("OMP_NUM_THREADS", "1"),)),
    OVERWRITTEN,
    Rung("freed memory overwritten, one thread", (*OVERWRITTEN.environment, ("OMP_NUM_THREADS", "1"))),
    CHECKED,
)


BEFORE = (1, 4, 16, 64)
"""Numbers of earlier inputs to try, where the failing ones alone do not fail."""


def ladder(devices: Sequence[str]) -> tuple[Rung, ...]:
    """The rungs for a target on some devices (``cpu``, ``cuda:0``)."""
    types = {device.partition(":")[0] for device in devices}
    return tuple(rung for rung in LADDER if not rung.device or rung.device in types)


@dataclass(frozen=True)
class Step:
    """What one rung did to the failure rate."""

    rung: Rung
    runs: int
    failures: int


@dataclass(frozen=True)
class Determinism:
    """How often the failure showed on the rung that was settled on, and as what.

    `steps` are all rungs that were tried.
    """

    rung: Rung
    runs: int
    failures: int
    failure: Failure
    steps: tuple[Step, ...] = ()

    @property
    def summary(self) -> dict[str, Any]:
        """For summary.json. With more than one rung, each with its rate and command."""
        known: dict[str, Any] = {"runs": self.runs, "failures": self.failures, "rung": self.rung.name}
        if len(self.steps) > 1:
            known["ladder"] = [
                {
                    "rung": step.rung.name,
                    "runs": step.runs,
                    "failures": step.failures,
                    "command": f"{step.rung.command} python repro.py".strip(),
                }
                for step in self.steps
            ]
        return known

    @property
    def certain(self) -> bool:
        """Whether every run failed."""
        return self.failures == self.runs

    @property
    def repeats(self) -> int:
        """How many runs tell a fixed case from a lucky one with 99 % confidence."""
        if self.certain or not self.failures:
            return 1
        miss = 1 - self.failures / self.runs
        return min(20, max(1, math.ceil(math.log(0.01) / math.log(miss))))


def capture(
    failure: Failure,
    replay: Callable[[Rung], Verdict],
    *,
    runs: int = RUNS,
    devices: Sequence[str] = ("cpu",),
    give_up: Callable[[], bool] = lambda: False,
    before: int = 0,
) -> Determinism:
    """Climb the ladder until the failure shows in every run; else settle on the rung where it shows most.

    `before` is how many earlier inputs are known.
    """
    best: Determinism | None = None
    remembered = [Rung(f"after {n} other inputs", before=n) for n in BEFORE if n < 4 * before]
    first, *others = ladder(devices)
    steps: list[Step] = []
    for rung in (first, *remembered, *others):
        if best is not None and give_up():
            break
        seen, done = _replays(failure.signature, rung, replay, runs)
        steps.append(Step(rung, done, seen.failures if seen else 0))
        if seen is None:
            continue
        if best is None or seen.failures > best.failures:
            best = seen
        if seen.certain:
            break
    return replace(best or Determinism(LADDER[0], runs, 0, failure), steps=tuple(steps))


def _replays(
    wanted: Signature, rung: Rung, replay: Callable[[Rung], Verdict], runs: int
) -> tuple[Determinism | None, int]:
    """What a rung gives, None where it shows nothing at all; and how many runs that took."""
    failures: list[Failure] = []
    for done in range(1, runs + 1):
        verdict = replay(rung)
        if verdict.failure is not None and alike(verdict.failure.signature, wanted):
            failures.append(verdict.failure)
        elif done >= 2 and not failures:
            return (Determinism(rung, done, 0, verdict.failure) if verdict.failure else None), done
    if not failures:
        return None, runs
    told = next((f for f in failures if f.signature.text != UNSAID), failures[0])
    return Determinism(rung, runs, len(failures), told), runs


def alike(a: Signature, b: Signature) -> bool:
    """Whether a failure `a` counts as the failure `b` that is wanted.

    Wrong values that are not finite (NaN for a number) may be traced back to wrong ordinary numbers, from
    which they came; never the other way. Where two threads throw at once, the process may end before either
    has said why: that counts as any uncaught exception.
    """
    if a == b:
        return True
    if a.kind == b.kind == "crash":
        return UNSAID in (a.text, b.text) and a.stage == b.stage and thrown(a.text) and thrown(b.text)
    return a.kind == b.kind == "wrong_value" and b.text == NOT_FINITE and a.text == "values"


NOT_FINITE = "values: not finite"
