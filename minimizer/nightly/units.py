"""The work of a night in pieces, as data: any process on any machine that sees the folders can do one.

A unit is (what, setting, seed range); what came of it is a list of events, plain JSON objects. A unit that is
lost has written what it had until then, and is given out again only for what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

Event = dict[str, Any]
"""One thing that happened; ``did`` says what. `minimizer.nightly.ledger` lists the kinds."""


@dataclass(frozen=True)
class Replays:
    """Judge recorded failures again; `folders` are those of the recordings."""

    folders: tuple[str, ...]

    @property
    def key(self) -> str:
        """Names the unit within its night."""
        return f"replays-{self.folders[0].rpartition('/')[2]}"

    @property
    def limit(self) -> float:
        """Seconds after which the unit is given up."""
        return 300.0 + 180.0 * len(self.folders)


@dataclass(frozen=True)
class Target:
    """Search one model file for `seconds` with a seed, and reduce what is found."""

    name: str
    path: str
    out: str
    seconds: float
    seed: int
    checked: str = ""

    @property
    def key(self) -> str:
        """Names the unit within its night."""
        return f"{self.name}-{self.seed}"

    @property
    def limit(self) -> float:
        """Seconds after which the unit is given up."""
        return 2.0 * self.seconds + 300.0


@dataclass(frozen=True)
class Programs:
    """Generate and judge programs `first` to `first + count` of the stream that a seed gives.

    `without` names operators that are known to fail and are left out of chains; `folder` is where the
    programs that failed are written.
    """

    first: int
    count: int
    seed: int
    folder: str
    without: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Names the unit within its night."""
        return f"programs-{self.first}"

    @property
    def limit(self) -> float:
        """Seconds after which the unit is given up."""
        return 600.0 + 6.0 * self.count


Unit = Replays | Target | Programs

_KINDS = {"replays": Replays, "target": Target, "programs": Programs}


def unit_to_json(unit: Unit) -> dict[str, Any]:
    """Plain JSON data for a unit."""
    kind = next(name for name, cls in _KINDS.items() if isinstance(unit, cls))
    return {"unit": kind, **asdict(unit)}


def unit_from_json(plain: Mapping[str, Any]) -> Unit:
    """Read back what `unit_to_json` wrote. Raises ValueError when it did not."""
    fields = {k: tuple(v) if isinstance(v, list) else v for k, v in plain.items() if k != "unit"}
    try:
        unit: Unit = _KINDS[plain["unit"]](**fields)
    except (KeyError, TypeError) as problem:
        raise ValueError(f"not a unit of work: {problem}") from problem
    return unit
