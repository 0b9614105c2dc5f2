"""How a pass talks: it yields a candidate and is sent back whether that was interesting.

The one search that most passes share is `fewest`. It finds needed items from the end, each by bisection:
with what is known to be needed held fixed, the shortest prefix of the rest that still fails ends in the next
needed item. That is log2(n) judgements per needed item however far apart the items lie, where halving and
complementing (ddmin) pays for every needed item again at each granularity. Needed items that lie side by side
cost one judgement each, since the search probes next to its last find first.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TypeVar

from minimizer.case import Case

T = TypeVar("T")

Proposals = Generator[Case, bool, None]


def attempt(candidate: Case | None) -> Generator[Case, bool, bool]:
    """Propose one candidate; False at once when there is none."""
    return False if candidate is None else (yield candidate)


def one_by_one(case: Case, options: Callable[[Case], Iterable[Case | None]]) -> Generator[Case, bool, Case]:
    """Take the first option that is interesting, and start over with what that gives, until none is."""
    current, again = case, True
    while again:
        again = False
        for candidate in options(current):
            if candidate is not None and (yield candidate):
                current, again = candidate, True
                break
    return current


def fewest(
    items: Sequence[T],
    build: Callable[[tuple[T, ...]], Case | None],
    *,
    needed: Sequence[T] = (),
) -> Generator[Case, bool, tuple[T, ...]]:
    """A small subset of the items whose case is interesting, given that all of them together are.

    `needed` items are kept in any case; they come after the others. The result is minimal when every superset
    of an interesting subset is interesting, and interesting in any case.
    """
    rest, sure = tuple(items), tuple(needed)
    beside = False
    while rest:
        if sure and (yield from attempt(build(sure))):
            return sure
        low, high, step = 0, len(rest), 1
        while high - low > 1:
            middle = max(low + 1, high - step) if beside else (low + high) // 2
            if (yield from attempt(build(rest[:middle] + sure))):
                high, step = middle, step * 2
            else:
                low, beside = middle, False
        beside = high == len(rest)
        rest, sure = rest[: high - 1], (rest[high - 1], *sure)
    return sure
