"""Does it fail often enough? Asked of something that fails now and then, with as few runs as can be.

Wald's sequential probability ratio test (Annals of Mathematical Statistics 16, 1945): after each run, the
likelihood that the case fails as often as the original (well, half as often) is compared with the likelihood
that it hardly fails at all. A lucky pass does not acquit, and a lucky failure does not convict.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

CONFIDENCE = 0.999
"""Of a single decision: fifty in a row are all right 95 times in 100."""

MOST_RUNS = 1000
"""Runs after which the likelier answer is taken: a case in the grey zone between often and seldom."""

LEAST_RATE = 0.05
"""Original failures rarer than this are treated as if they showed this often: else no test would end."""


@dataclass(frozen=True)
class SequentialTest:
    """Tells a failure rate of `often` and more from one of `seldom` and less.

    >>> test = SequentialTest.like(0.5)
    >>> test.often, test.seldom
    (0.25, 0.05)
    >>> test.says(failures=5, runs=5), test.says(failures=0, runs=40), test.says(failures=1, runs=2)
    (True, False, None)
    """

    often: float
    seldom: float
    confidence: float = CONFIDENCE

    @classmethod
    def like(cls, rate: float) -> SequentialTest:
        """The test for cases that shall fail about as often as one that fails at `rate` (0 < rate < 1)."""
        often = max(rate, LEAST_RATE) / 2
        return cls(often, often / 5)

    def in_words(self) -> str:
        """What a decision means, for a person to read."""
        rates = f"{100 * self.often:.0f} % of runs or more, not {100 * self.seldom:.0f} % or fewer"
        return f"flaky: a candidate was run until it was {100 * self.confidence:g} % sure to fail in {rates}"

    def says(self, failures: int, runs: int) -> bool | None:
        """Whether so many failures in so many runs are those of a failing case; None when it is open."""
        ratio = failures * math.log(self.often / self.seldom)
        ratio += (runs - failures) * math.log((1 - self.often) / (1 - self.seldom))
        bound = math.log(self.confidence / (1 - self.confidence))
        if abs(ratio) >= bound:
            return ratio > 0
        return None if runs < MOST_RUNS else ratio > 0

    def decide(self, fails: Callable[[], bool]) -> bool:
        """Run until it is decided."""
        failures = runs = 0
        while (said := self.says(failures, runs)) is None:
            failures += fails()
            runs += 1
        return said
