"""What a run is asked to do, how its time is shared out, and how it may end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from minimizer.variant import Wanted

NONE, FAILURE, UNUSABLE, MISUSE, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit statuses."""

FUZZ_SHARE = 0.5
"""Share of the budget after which the search for a failure ends."""

LEAST_SEARCH_SHARE = 0.15
"""Share of the budget that the search gets at least, however long opening and compiling took."""

STEADY_SHARE = 0.05
"""Share of the budget in which what was right is called in other manners."""

MILD_SHARE = 0.4
"""Share of the budget after which a lost error is taken as the finding."""

REGION_SHARE = 0.08
"""Share of the budget that mapping the failing sizes may take."""

REDUCE_SHARE = 0.8
"""Share of the budget after which nothing new is judged; the rest verifies the repro."""

OUTSIDE_SHARE = 0.25
"""Share of the budget that calls outside the contract may take, when they are asked for."""

LATEST_SHARE = 0.85
"""Share of the budget at which a candidate that is still being judged is given up."""

ABLATION_SHARE, ABLATION_UNTIL = 0.04, 0.85
"""Share of the budget that trying other settings may take, and the share after which none is tried."""

TOOLS_UNTIL = 0.9
"""Share of the budget after which no further tool is run on a repro that crashes."""

OPEN_SHARE = 0.5
"""Share of the budget after which a model file counts as one that does not come to an end."""

SIGNS_LIMIT = 10.0
"""Seconds that each short program may take that is compiled while a person waits for the whole."""

COMPILE_SHARE = 0.3
"""Share of the budget after which a compilation counts as one that does not end."""


class Unusable(Exception):
    """The target or the command cannot be used; the message says in one line what to do."""


SANITIZED_COMPILE = 400.0
"""Seconds that one compilation with AddressSanitizer may take, at least."""


@dataclass(frozen=True)
class Options:
    """What the command line asks for. `budget` in seconds; `passes` are names (empty = all).

    `environment` is that of every process in which something is compiled or run.
    """

    target: Path
    out: Path
    budget: float = 300.0
    seed: int = 0
    most_inputs: int = 2000
    resume: bool = False
    model: str = ""
    inputs: str = ""
    check_inputs: str = ""
    out_of_contract: bool = False
    config: tuple[tuple[str, object], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    passes: tuple[str, ...] = ()
    wanted: Wanted = Wanted()
    devices: bool = False
    fuzz_only: bool = False
    command: str = ""

    @property
    def search_share(self) -> float:
        """Share of the budget after which the search of the program as written ends."""
        others = 0.5 if self.wanted.asks else 0.3 if self.wanted.layouts != "none" else 0.0
        return (1 - others) * FUZZ_SHARE


@dataclass
class Clock:
    """How much of the budget is spent."""

    budget: float
    start: float = field(default_factory=time.monotonic)

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    def at(self, share: float) -> float:
        """The time, of the monotonic clock, when a share of the budget is spent."""
        return self.start + share * self.budget

    def past(self, share: float, *, least: float = 0.0) -> Callable[[], bool]:
        """Whether a share of the budget is spent, asked later; the share `least` is left from now on."""
        end = max(share, self.spent / self.budget + least) if least else share
        return lambda: self.spent > end * self.budget


@dataclass
class Meter:
    """What each step of a run cost, in CPU seconds; `read` gives those of all processes so far.

    >>> seconds = iter([1.0, 4.0, 4.5])
    >>> meter = Meter(lambda: next(seconds))
    >>> meter.mark("open"), meter.mark("compile"), meter.mark("open")
    (None, None, None)
    >>> meter.steps
    {'open': 1.5, 'compile': 3.0}
    """

    read: Callable[[], float]
    steps: dict[str, float] = field(default_factory=dict)
    _last: float = 0.0

    def mark(self, step: str) -> None:
        """Charge to a step what was used since the last mark."""
        now = self.read()
        self.steps[step] = self.steps.get(step, 0.0) + now - self._last
        self._last = now
