"""What a person sees while something takes long: the stage, for how long, and whether it looks stuck.

On a terminal a live line; elsewhere a line after half a minute, and after that ever more seldom. A compiler
that is still busy with a program of which it compiled the first tenth in no time is suspicious, and that is
measured and said long before the time limit decides.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from minimizer.console import Bar, Console
from minimizer.oracle.target_bench import TargetBench, unwatched

FIRST = 30.0
"""Seconds of waiting after which something is said."""

SUSPICIOUS = 40.0
"""Seconds in one stage of a compilation after which its first calls are compiled alone, to compare."""

STAGES = {
    "": "starting",
    "import": "importing the model",
    "eager": "running it in eager",
    "export": "exporting it",
    "lower": "lowering and generating code",
    "cxx": "compiling C++",
    "package": "linking the package",
    "load": "loading the package",
}


@dataclass
class Waiting:
    """Told every half second or so how long a stage has taken; says so when that is worth saying.

    `evidence()` is asked once, when lowering takes suspiciously long: what shorter programs take, in words
    (empty: not known).
    """

    label: str
    console: Console
    bar: Bar
    evidence: Callable[[], str] | None = None
    _next: float = field(default=FIRST)
    _asked: bool = False

    def __call__(self, stage: str, seconds: float) -> None:
        """`stage` has taken so many seconds."""
        words = STAGES.get(stage, stage)
        self.bar.at(int(seconds), f"s {words}")
        if stage == "lower" and seconds >= SUSPICIOUS and self.evidence is not None and not self._asked:
            self._asked = True
            seen = self.evidence()
            if seen:
                self.console.say(self.label, f"{words} has taken {seconds:.0f} s; {seen}")
                return
        if seconds >= self._next and not self.console.live:
            self.console.say(self.label, f"{words} for {seconds:.0f} s")
            self._next = 2 * seconds


@contextlib.contextmanager
def waiting(
    bench: TargetBench, label: str, console: Console, evidence: Callable[[], str] | None = None
) -> Iterator[None]:
    """Let the person see what a bench's worker is at."""
    with console.bar(label) as bar:
        bench.watch = Waiting(label, console, bar, evidence)
        try:
            yield
        finally:
            bench.watch = unwatched
