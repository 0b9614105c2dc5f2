"""A compilation that does not end: is it stuck, or does it just need long?

Told by growth. Prefixes of the program are compiled under a limit. The compiler blows up where its time grows
faster than the cube of the length: between the last two prefixes that end, or from the last one to the first
that does not, which is then a shorter program on which it hangs. Otherwise it is merely slow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.55, 0.75)
"""Prefixes tried, shortest first, until one does not end."""

POLYNOMIAL = 3
"""Growth up to this power of the length is slow, not stuck."""


@dataclass(frozen=True)
class Point:
    """A prefix of `nodes` calls; `seconds` is None when its compilation did not end."""

    nodes: int
    seconds: float | None


@dataclass(frozen=True)
class Growth:
    """The curve, and the shortest prefix that does not compile in time (None when there is none)."""

    points: tuple[Point, ...]
    limit: float
    blows_up: bool

    @property
    def shortest(self) -> int | None:
        """Calls in the shortest prefix that did not end."""
        return next((p.nodes for p in self.points if p.seconds is None), None)

    @property
    def text(self) -> str:
        """``6 nodes 0.3 s · 12 nodes 4.1 s · 24 nodes more than 30 s``."""
        parts = []
        for point in self.points:
            took = f"more than {self.limit:.0f} s" if point.seconds is None else f"{point.seconds:.1f} s"
            parts.append(f"{point.nodes} nodes {took}")
        return " · ".join(parts)


def measure(total: int, compile_prefix: Callable[[int], float | None], limit: float) -> Growth:
    """Compile growing prefixes of `total` calls until one takes more than `limit` seconds.

    `compile_prefix(nodes)` gives seconds, or None when it was ended at the limit.

    >>> measure(100, lambda n: 2.0 ** n / 1000 if n < 15 else None, 30.0).shortest
    20
    """
    points: list[Point] = []
    for nodes in dict.fromkeys([max(1, round(f * total)) for f in FRACTIONS] + [total]):
        points.append(Point(nodes, compile_prefix(nodes)))
        if points[-1].seconds is None:
            break
    return Growth(tuple(points), limit, _blows_up(points, limit))


def _blows_up(points: Sequence[Point], limit: float) -> bool:
    if len(points) < 2 or points[-1].seconds is not None:
        return False
    base = points[0].seconds or 0.0
    ended = [(p.nodes, p.seconds - base) for p in points[1:] if p.seconds is not None]
    if not ended:
        return base * (points[1].nodes / points[0].nodes) ** POLYNOMIAL < limit
    nodes, seconds = ended[-1]
    if seconds * (points[-1].nodes / nodes) ** POLYNOMIAL < limit:
        return True
    if len(ended) < 2:
        return False
    before, took = ended[-2]
    return seconds > max(took, 0.1) * (nodes / before) ** POLYNOMIAL
