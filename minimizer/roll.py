"""Steps that repeat, rolled into a loop: forty lines ``y = 3.9 * y * (1 - y)`` become two.

A traced loop comes out unrolled, one line or more for each turn. Where the lines of one turn are those of the
turn before but for the names of what it made, they are printed as the loop that they were. Export unrolls it
again, so what is compiled does not change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from minimizer.fold import inline
from minimizer.layout import INDENT
from minimizer.program import Program

FEWEST = 6
"""Turns that are worth a loop."""

LONGEST = 12
"""Lines of a turn, at most."""

_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?![\w=])")
"""A name that is read or made: no attribute, and no keyword of a call."""

_LOOP = re.compile(r"for _ in range\(\d+\):")


@dataclass(frozen=True)
class _Turns:
    """`count` turns of `length` lines from line `start`.

    `carried` maps what a turn reads of the turn before, by its name in the first turn, to the line of a turn
    that makes it.
    """

    start: int
    length: int
    count: int
    carried: dict[str, int]


def laid_out(lines: Sequence[str], program: Program) -> list[str]:
    """The statements of a function with repeated steps rolled and short values folded, in loops too."""
    out: list[str] = []
    rest = inline(roll(lines), program)
    while rest:
        out.append(rest.pop(0))
        if _LOOP.fullmatch(out[-1]):
            size = next((k for k, line in enumerate(rest) if not line.startswith(INDENT)), len(rest))
            body, rest = [line.removeprefix(INDENT) for line in rest[:size]], rest[size:]
            outside = {name for line in [*out, *rest] for name in _NAME.findall(line)}
            # What is read outside is read more than once, as far as the body can tell.
            kept = ", ".join(2 * sorted({_made(line) for line in body} & outside))
            out += [INDENT + line for line in inline([*body, f"return {kept}"], program)[:-1]]
    return out


def roll(lines: Sequence[str]) -> list[str]:
    """The statements of a function with repeated steps as loops; lines without any are given back.

    >>> steps = [f"y{k + 1} = g(y{k})" for k in range(9)]
    >>> roll(["y0 = f(x)", *steps, "return y9"])
    ['y9 = f(x)', 'for _ in range(9):', '    y9 = g(y9)', 'return y9']
    """
    rolled = list(lines)
    start = 0
    while start < len(rolled):
        found = [t for length in range(1, LONGEST + 1) if (t := _turns(rolled, start, length))]
        best = max(found, key=lambda turns: turns.count * turns.length - turns.length, default=None)
        text = _looped(rolled, best) if best else None
        if best is None or text is None:
            start += 1
            continue
        before = len(rolled) - best.count * best.length - best.start
        rolled = text
        start = len(rolled) - before
    return rolled


def _made(line: str) -> str:
    """The name that a plain assignment makes; empty for any other line."""
    name, equals, text = line.partition(" = ")
    return name if equals and name.isidentifier() and not set("'\"") & set(text) else ""


def _turns(lines: Sequence[str], start: int, length: int) -> _Turns | None:
    """The turns of a length that begin at a line, if there are enough of them."""
    first = lines[start : start + length]
    if not all(map(_made, first)) or len(set(map(_made, first))) < length:
        return None
    carried: dict[str, int] = {}
    count = 1
    while True:
        at = start + count * length
        step = _step(first, lines[at - length : at], lines[at : at + length], carried)
        if step is None:
            break
        carried = step
        count += 1
    return _Turns(start, length, count, carried) if count >= FEWEST and carried else None


def _step(
    first: Sequence[str], before: Sequence[str], now: Sequence[str], carried: dict[str, int]
) -> dict[str, int] | None:
    """What is carried, when `now` is the turn after `before`; None when it is not."""
    if len(now) < len(first) or not all(map(_made, now)):
        return None
    made_first, made_before = [_made(line) for line in first], [_made(line) for line in before]
    made_now = [_made(line) for line in now]
    known = dict(carried)
    for k, (a, b) in enumerate(zip(first, now)):
        if _NAME.sub("_", a) != _NAME.sub("_", b):
            return None
        for old, new in zip(_NAME.findall(a), _NAME.findall(b)):
            if old in made_first[: k + 1] and old not in known:
                if new != made_now[made_first.index(old)]:
                    return None
            elif new in made_before:
                # What a turn makes must not be read as the turn before left it once it is made anew.
                line = made_before.index(new)
                if known.setdefault(old, line) != line or line < k:
                    return None
            elif old != new or old in known:
                return None
    return known


def _looped(lines: Sequence[str], turns: _Turns) -> list[str] | None:
    """The lines with the turns as a loop; None when something else reads what a turn in the middle made."""
    end = turns.start + turns.count * turns.length
    first, last = lines[turns.start : turns.start + turns.length], lines[end - turns.length : end]
    names = {_made(a): _made(b) for a, b in zip(first, last)}
    names |= {old: _made(last[line]) for old, line in turns.carried.items()}
    passing = {_made(line) for line in lines[turns.start : end - turns.length]}
    if any(name in passing for line in lines[end:] for name in _NAME.findall(line)):
        return None
    if len(set(turns.carried.values())) < len(turns.carried):
        return None
    head, tail = list(lines[: turns.start]), list(lines[end:])
    for old in turns.carried:
        head = _started(head, old, names[old], tail)
    body = [INDENT + _renamed(line, names) for line in first]
    return [*head, f"for _ in range({turns.count}):", *body, *tail]


def _started(head: list[str], old: str, new: str, tail: Sequence[str]) -> list[str]:
    """The lines before a loop, with the loop's variable set to what its first turn reads."""
    uses = [k for k, line in enumerate(head) if old in _NAME.findall(line)]
    only_for_the_loop = len(uses) == 1 and not any(old in _NAME.findall(line) for line in tail)
    if only_for_the_loop and _made(head[uses[0]]) == old:
        head[uses[0]] = _renamed(head[uses[0]], {old: new})
        return head
    return [*head, f"{new} = {old}"]


def _renamed(line: str, names: dict[str, str]) -> str:
    return _NAME.sub(lambda match: names.get(match[0], match[0]), line)
