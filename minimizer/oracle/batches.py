"""Inputs are judged many at a time: a message for each would cost more than a small program.

Nobody notices but the clock. A batch ends after its first failure, and after a moment; what is left of it is
asked for again, in the same order. So the verdicts, and the inputs that one process sees one after the other,
are those of single judgements.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from minimizer.case import Values
from minimizer.oracle.verdict import Verdict

BATCH = 64
"""Sets of calls that are sent together."""

SLICE = 0.25
"""Seconds after which a worker answers with what it has: how late a search learns that its time is up."""

Calls = tuple[Values, ...]
"""Inputs that one loaded program is given, call after call."""

JudgeMany = Callable[[Sequence[Calls]], Sequence[Verdict]]
"""Verdicts on the first few of some sets of calls, in their order: at least one, none after a failure."""

T = TypeVar("T")


def judged(
    judge: JudgeMany, given: Iterable[tuple[T, Calls]], batch: int = BATCH
) -> Iterator[tuple[T, Calls, Verdict]]:
    """Each of the given sets of calls with its verdict, in their order; `T` is whatever comes with them.

    Up to `batch` of them are drawn, and perhaps judged, ahead of the one that is returned.
    """
    coming, waiting = iter(given), deque[tuple[T, Calls]]()
    while True:
        waiting.extend(islice(coming, batch - len(waiting)))
        if not waiting:
            return
        for verdict in judge([calls for _, calls in waiting]):
            yield (*waiting.popleft(), verdict)
