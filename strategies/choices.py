"""What is drawn is a list of choices: small numbers, 0 the simplest.

One description of an input, read through a `Pick`, serves three readers: Hypothesis, which climbs and
shrinks but is slow to draw; a plain random generator, which is fast; and a list of choices made before, so
that a random find can be shrunk by lowering its choices. Shrinking the
choices rather than the input keeps every candidate within the contract (MacIver and Donaldson, "Test-case
reduction via test-case generation", ECOOP 2020).
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from unittest import mock

from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

Pick = Callable[[int], int]
"""One choice: a number below the one given."""


def picking(draw: st.DrawFn) -> Pick:
    """Choices that Hypothesis makes, and shrinks towards 0."""
    return lambda count: draw(_below(count)) if count > 1 else 0


@contextlib.contextmanager
def pinned() -> Iterator[None]:
    """While this lasts, a seed alone decides what Hypothesis draws.

    Otherwise it mixes in constants that it finds in the source of whatever local modules happen to be loaded.
    """
    name = "_get_local_constants"
    if not hasattr(providers, name):  # versions that do not mix anything in
        yield
        return
    providers.CONSTANTS_CACHE.cache.clear()
    try:
        with mock.patch.object(providers, name, Constants):
            yield
    finally:
        providers.CONSTANTS_CACHE.cache.clear()


@lru_cache(maxsize=1024)
def _below(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


def chance(seed: str, made: list[int]) -> Pick:
    """Even random choices, each appended to `made`. The seed alone decides them.

    >>> made = []
    >>> pick = chance("0", made)
    >>> [pick(10), pick(10), pick(1)] == made
    True
    """
    generator = random.Random(seed)

    def pick(count: int) -> int:
        made.append(generator.randrange(count))
        return made[-1]

    return pick


def replayed(choices: Sequence[int]) -> Pick:
    """Choices made before, cut to what is allowed; 0 once they have run out.

    >>> pick = replayed([3, 9])
    >>> pick(5), pick(5), pick(5)
    (3, 4, 0)
    """
    left = iter(choices)
    return lambda count: min(next(left, 0), count - 1)


def lowered(choices: Sequence[int], holds: Callable[[Sequence[int]], bool]) -> list[int]:
    """The choices, each as low as it can be while `holds` stays true: 0, else by bisection, until none moves.

    >>> lowered([7, 80, 3], lambda choices: choices[1] >= 17)
    [0, 17, 0]
    """
    best = list(choices)
    while True:
        lower = best
        for place in range(len(best)):
            lower = _lowered_at(lower, place, holds)
        if lower == best:
            return best
        best = lower


def _lowered_at(choices: list[int], place: int, holds: Callable[[Sequence[int]], bool]) -> list[int]:
    """The choices with one of them lowered: to 0, or to the least that a bisection finds."""

    def at(number: int) -> list[int]:
        return [*choices[:place], number, *choices[place + 1 :]]

    if choices[place] == 0:
        return choices
    if holds(at(0)):
        return at(0)
    low, high = 0, choices[place]
    while high - low > 1:
        middle = (low + high) // 2
        if holds(at(middle)):
            high = middle
        else:
            low = middle
    return at(high)
