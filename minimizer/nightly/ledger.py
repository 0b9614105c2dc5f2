"""The night's ledger: one line for each thing that happened, written before anything builds on it.

A night that is killed leaves a readable ledger; at worst the last line is torn, and is then left out. What is
known at any moment is a fold over the lines, so going on after a kill and never having been killed are the
same thing.

The kinds of events (``did``), each with its fields:
``begin`` at, budget, seed, first_program, files · ``resume`` at · ``replayed`` name, outcome, said
· ``target`` name, key, seconds, status · ``programs`` first, count, judged, refused, inputs,
compiles, cpu_seconds · ``suspect`` id, path, kind, calls, classes, operators, message · ``finding``
id, bucket, kind, signature, calls, classes, nodes, message, run, verified, program ·
``unconfirmed`` id, why · ``duplicate`` id, of · ``lost`` key, why · ``end`` at.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minimizer.buckets import Seen
from minimizer.nightly.units import Event
from minimizer.oracle.verdict import SEVERITY

FILE = "night.jsonl"


class Ledger:
    """The events of a night, on disk as soon as they are known."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.state = NightState()
        self._torn = path.exists() and path.read_bytes()[-1:] not in (b"", b"\n")
        for event in read_events(path):
            self.state.take(event)

    def write(self, events: Iterable[Event]) -> None:
        """Add events to the file, then to the state."""
        new = list(events)
        if not new:
            return
        text = "".join(json.dumps(event) + "\n" for event in new)
        with self._path.open("ab") as file:
            file.write((("\n" if self._torn else "") + text).encode())
            file.flush()
            os.fsync(file.fileno())
        self._torn = False
        for event in new:
            self.state.take(event)


def read_events(path: Path) -> list[Event]:
    """The events of a file; lines that are not whole are left out, no file has none."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and isinstance(event.get("did"), str):
            found.append(event)
    return found


@dataclass
class NightState:
    """What is known of a night so far."""

    begun: Event | None = None
    ended: Event | None = None
    replayed: dict[str, Event] = field(default_factory=dict)
    targets: dict[str, Event] = field(default_factory=dict)
    programs: dict[int, Event] = field(default_factory=dict)
    suspects: dict[str, Event] = field(default_factory=dict)
    findings: dict[str, Event] = field(default_factory=dict)
    duplicates: dict[str, list[str]] = field(default_factory=dict)
    unconfirmed: dict[str, Event] = field(default_factory=dict)
    lost: list[Event] = field(default_factory=list)
    settled: set[str] = field(default_factory=set)

    def take(self, event: Event) -> None:
        """Learn one event. The same event twice is known once; what is not understood is left out."""
        match event["did"]:
            case "begin":
                self.begun = self.begun or event
            case "resume":
                self.ended = None
            case "end":
                self.ended = event
            case "replayed":
                self.replayed[event["name"]] = event
            case "target":
                self.targets[event["key"]] = event
            case "programs":
                self.programs[event["first"]] = event
            case "suspect":
                self.suspects.setdefault(event["id"], event)
            case "finding":
                self._finding(event)
            case "unconfirmed":
                self.unconfirmed[event["id"]] = event
                self.settled.add(event["id"])
            case "duplicate":
                self._duplicate(event["id"], event["of"])
            case "lost":
                self.lost.append(event)

    def _finding(self, event: Event) -> None:
        if event["id"] in self.settled:
            return
        self.settled.add(event["id"])
        bucket = event["bucket"]
        if bucket in self.findings:
            self._duplicate(event["id"], bucket)
        else:
            self.findings[bucket] = event

    def _duplicate(self, who: str, of: str) -> None:
        self.settled.add(who)
        known = self.duplicates.setdefault(of, [])
        if who not in known:
            known.append(who)

    @property
    def pending(self) -> list[Event]:
        """Suspects that nobody has looked into yet: worst first, then those with the fewest calls.

        A lost error is common and seldom worth the time that a crash or a wrong value is.
        """
        waiting = [s for name, s in self.suspects.items() if name not in self.settled]
        return sorted(waiting, key=lambda s: (-SEVERITY.get(s.get("kind", ""), 0), len(s.get("calls", ()))))

    @property
    def next_program(self) -> int:
        """The first program of the stream that has not been judged."""
        start = int(self.begun.get("first_program", 0)) if self.begun else 0
        return max([start, *(first + int(e["count"]) for first, e in self.programs.items())])

    @property
    def seen(self) -> list[tuple[str, Seen]]:
        """The buckets so far with what tells that another program shows them too."""
        return [(bucket, seen_in(event)) for bucket, event in self.findings.items()]

    def total(self, name: str) -> float:
        """The sum of a figure over all generated programs."""
        return sum(float(event.get(name, 0)) for event in self.programs.values())


def seen_in(event: Event) -> Seen:
    """What an event says of the program that it speaks of."""
    calls, classes = event.get("calls", ()), event.get("classes", ())
    return Seen(str(event.get("kind", "")), frozenset(_texts(calls)), frozenset(_texts(classes)))


def _texts(items: Any) -> Sequence[str]:
    return [str(item) for item in items] if isinstance(items, (list, tuple)) else []
