"""Text → what is known about it, the cause first.

One table of families; a text is searched for a family only where one of its words occurs, so a large log
costs little more than reading it. Logs are read in pieces with an overlap and long lines are cut, so memory
and the time of every pattern are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TextIO

from minimizer.explain import (
    bounds,
    compilers,
    cuda,
    debuggers,
    input_checks,
    memory_tools,
    packages,
    printer,
    sanitizer,
)
from minimizer.explain.family import Explanation, Family

FAMILIES: tuple[Family, ...] = (
    *sanitizer.FAMILIES,
    *memory_tools.FAMILIES,
    *debuggers.FAMILIES,
    *bounds.FAMILIES,
    *input_checks.FAMILIES,
    *printer.FAMILIES,
    *compilers.FAMILIES,
    *packages.FAMILIES,
    *cuda.FAMILIES,
)
"""Every family of messages that is known."""

LONGEST_LINE = 4_000
"""Characters of a line that are looked at."""

PIECE = 1 << 20
"""Characters of a log that are searched at a time."""

OVERLAP = 1 << 14
"""Characters that two neighbouring pieces share: more than the longest message."""

MOST = 50
"""Different messages of one family that are kept; more are counted only."""

_NOISE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|^\[(?:rank|default)\d+\]:\s?", re.M)
"""Colours, and what torchrun puts before each line."""

TRAIL_RANK, QUIET_RANK = 16, 80
"""Where the printer's trail stands when it names a kernel, and when it says that all went well."""


@dataclass(frozen=True)
class Found:
    """One message: what it says as facts, its line in the log (from 1), and how often it occurs."""

    family: str
    rank: int
    fact: Any
    explanation: Explanation
    line: int
    count: int = 1


def pieces(stream: Iterable[str]) -> Iterator[tuple[int, str, int]]:
    """A log as (line number of the first line, text, characters at the start that the last piece had too)."""
    kept: list[str] = []
    size = shared = 0
    first = number = 1
    for line in stream:
        line = f"{line.rstrip(chr(10))[:LONGEST_LINE]}\n"
        kept.append(line)
        size += len(line)
        number += 1
        if size >= PIECE:
            yield first, "".join(kept), shared
            tail: list[str] = []
            shared = 0
            while kept and shared < OVERLAP:
                tail.append(kept.pop())
                shared += len(tail[-1])
            kept = tail[::-1]
            first, size = number - len(kept), shared
    if kept:
        yield first, "".join(kept), shared


class _Bounded:
    """A text stream in lines of bounded length, whatever it holds."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[str]:
        inside = False
        while piece := self._stream.readline(PIECE):
            if not inside:
                yield piece
            inside = not piece.endswith("\n")


def search(stream: Iterable[str]) -> list[Found]:
    """Everything known in a log, cause first.

    Messages that say the same are counted once, at their first line.
    """
    found: dict[tuple[str, Any], Found] = {}
    kept: dict[str, int] = {}
    trailing = printer.Trailing()
    printed = 0
    for first, raw, shared in pieces(stream):
        text = _NOISE.sub("", raw) if "\x1b" in raw or "]:" in raw else raw
        shared = max(0, shared - (len(raw) - len(text))) if shared else 0
        if any(word in text for word in (*printer.WORDS, "aoti_model_inputs")):
            for at, launch in printer.launches(text):
                if at >= shared:
                    printed = printed or first + text.count("\n", 0, at)
                    trailing.take(launch)
        for family in FAMILIES:
            if not any(word in text for word in family.words):
                continue
            for at, fact in family.parse(text):
                if at < shared:
                    continue
                key = (family.name, fact)
                known = found.get(key)
                if known is not None:
                    found[key] = replace(known, count=known.count + 1)
                elif kept.get(family.name, 0) < MOST:
                    kept[family.name] = kept.get(family.name, 0) + 1
                    line = first + text.count("\n", 0, at)
                    found[key] = Found(family.name, family.rank, fact, family.explain(fact), line)
    trail = trailing.trail()
    explained = printer.explain_trail(trail)
    if explained is not None:
        rank = TRAIL_RANK if trail.open or trail.bad else QUIET_RANK
        found["printer", trail] = Found("printer", rank, trail, explained, printed)
    return _merged(sorted(found.values(), key=lambda f: (f.rank, f.line)))


def search_text(text: str) -> list[Found]:
    """Everything known in a short text, cause first."""
    return search(text.splitlines())


def search_stream(stream: TextIO) -> list[Found]:
    """Everything known in an open log, cause first."""
    return search(_Bounded(stream))


def _merged(found: list[Found]) -> list[Found]:
    """One entry for messages that differ in threads only: thousands of threads fail the same assertion."""
    merged: dict[tuple[Any, ...], Found] = {}
    for f in found:
        e = f.explanation
        place = tuple(pair for pair in e.where if pair[0] not in ("block", "thread", "address", "bytes"))
        key = (e.name, e.says, e.means, place)
        known = merged.get(key)
        merged[key] = f if known is None else replace(known, count=known.count + f.count)
    return list(merged.values())
