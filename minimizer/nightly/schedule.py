"""Fair shares of a night: every target gets time, one that changed or found something gets more.

Shares are kept as debts over nights. A night too short for all targets takes those first that have had least
for their weight, so that no target is left out for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEAST = 120.0
"""Seconds below which a run is not worth starting: a compilation, a search and a reduction."""

MOST = 1800.0
"""Seconds of one run; a target that is owed more gets further runs with other seeds."""

REPLAY_SHARE = 0.3
"""Share of a night after which recorded failures are no longer replayed."""

TARGET_SHARE = 0.4
"""Share of what the replays leave that goes to targets; generated programs and findings get the rest."""


@dataclass(frozen=True)
class Standing:
    """What is known of a target: seconds it has had on earlier nights, and what makes it worth more."""

    name: str
    had: float = 0.0
    changed: bool = False
    found: bool = False

    @property
    def weight(self) -> float:
        """1, and 1 more for each reason."""
        return 1.0 + self.changed + self.found


@dataclass(frozen=True)
class Slice:
    """One run of a target for so many seconds."""

    target: str
    seconds: float
    turn: int


def slices(standings: Sequence[Standing], total: float) -> list[Slice]:
    """Runs for the targets that fit into `total` seconds, most owed first; equal debts in order of name.

    >>> [(s.target, s.seconds) for s in slices([Standing("a"), Standing("b", changed=True)], 900.0)]
    [('b', 600.0), ('a', 300.0)]
    """
    ranked = sorted(standings, key=lambda s: (s.had / s.weight, -s.weight, s.name))
    while ranked and total * min(s.weight for s in ranked) / sum(s.weight for s in ranked) < LEAST:
        if len(ranked) == 1:
            return []
        ranked.pop()
    whole = sum(s.weight for s in ranked)
    found = []
    for standing in ranked:
        owed = total * standing.weight / whole
        turns = max(1, -int(-owed // MOST))
        found += [Slice(standing.name, owed / turns, turn) for turn in range(turns)]
    return sorted(found, key=lambda s: s.turn)
