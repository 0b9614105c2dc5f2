"""Whole inputs: sizes for every symbol together with a fill for every tensor.

A bug usually needs one unusual thing, sometimes two, hardly ever three. So before anything is drawn at
random, a fixed opening tries each telling size with plain values, each telling fill at the example's own
sizes, and then telling sizes with telling fills, the most telling pairs first. The opening is the same on
every run; what it does not find is left to a random search.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from hypothesis import assume
from hypothesis import strategies as st

from strategies.choices import Pick, picking
from strategies.sizes import Fits, Symbol, reclip, size_picker, sweep
from strategies.values import (
    SEEDED,
    Fill,
    Role,
    assignments,
    fill_picker,
    is_out_of_range,
    telling_fills,
)

OPENING = 400
"""Longest opening. Past this, random draws find as much per input."""

SINGLES = 24
"""Moves of one unusual thing before moves of two."""

ODD = 7
"""A stride that no contiguous dim of size 1 has, whatever the other sizes are likely to be."""

_PLACES = (*[(0, 0)] * 6, (1, 0), (0, ODD))
"""Storage offset and stride of dims of size 1, as often as they are drawn."""

Spec = tuple[str, Role]
"""One tensor input: its dtype (torch's name without the prefix) and what the program does with it."""

Move = tuple[dict[str, int], tuple[Fill, ...]]


@dataclass(frozen=True)
class Draw:
    """One description of all inputs: `(symbol, size)` pairs in symbol order, and a fill per tensor input.

    `offset` elements of each storage come before the first one, so that with 1 nothing is aligned; `ones` is
    the stride of dims of size 1 (0: as usual). A compiled program promises to take both, since neither is
    part of what it was exported with; code that loads aligned vectors, or compares strides that mean nothing,
    does not.

    >>> Draw((("n", 17),), (Fill("ones"),)).size_of
    {'n': 17}
    """

    sizes: tuple[tuple[str, int], ...]
    fills: tuple[Fill, ...]
    offset: int = 0
    ones: int = 0

    @property
    def size_of(self) -> dict[str, int]:
        """The sizes by symbol name."""
        return dict(self.sizes)


def opening(
    symbols: Sequence[Symbol],
    specs: Sequence[Spec],
    mined: Sequence[int] = (),
    fits: Fits | None = None,
) -> Iterator[Draw]:
    """The first inputs to try: deterministic, each once, most telling first, at most `OPENING` of them.

    Telling sizes with plain values (starting with the hints) and the hints with telling fills alternate;
    after `SINGLES` of them the hints and the smallest sizes lie out of place once (`Draw.offset`), and
    products of both join in, in order of the sum of their ranks. Products leave out empty sizes, where values
    do not matter, and out-of-range fills.

    >>> moves = opening([Symbol("n", 2, 9, 8)], [("bool", Role())])
    >>> [(draw.size_of["n"], draw.fills[0].kind) for draw in islice(moves, 5)]
    [(8, 'coin'), (8, 'zeros'), (2, 'coin'), (8, 'ones'), (9, 'coin')]
    """
    swept = list(sweep(symbols, mined, fits=fits))
    filled = list(assignments(specs))
    if not swept:
        return
    by_size = ((found, filled[0]) for found in swept)
    by_fill = ((swept[0], chosen) for chosen in filled[1:])
    full = [found for found in swept[1:] if all(found.values())]
    valid = [chosen for chosen in filled[1:] if not any(map(is_out_of_range, chosen))]
    moves = _in_turn(by_size, by_fill)
    yield from (Draw(tuple(sizes.items()), chosen) for sizes, chosen in islice(moves, SINGLES))
    ends = [swept[0], min(full, key=_volume, default=swept[0])] if specs else []
    placed = [Draw(tuple(sizes.items()), filled[0], offset=1, ones=ODD) for sizes in ends]
    yield from dict.fromkeys(placed)
    most = OPENING - SINGLES - len(set(placed))
    rest = islice(_in_turn(by_size, by_fill, _by_rank(full, valid)), most)
    yield from (Draw(tuple(sizes.items()), chosen) for sizes, chosen in rest)


def _volume(found: dict[str, int]) -> int:
    return sum(found.values())


def _in_turn(*lists: Iterator[Move]) -> Iterator[Move]:
    waiting = deque(lists)
    while waiting:
        turn = waiting.popleft()
        for move in islice(turn, 1):
            waiting.append(turn)
            yield move


def _by_rank(found: Sequence[dict[str, int]], chosen: Sequence[tuple[Fill, ...]]) -> Iterator[Move]:
    for total in range(len(found) + len(chosen) - 1):
        for rank in range(max(0, total - len(chosen) + 1), min(total + 1, len(found))):
            yield found[rank], chosen[total - rank]


def draws(
    symbols: Sequence[Symbol],
    specs: Sequence[Spec],
    mined: Sequence[int] = (),
    fits: Fits | None = None,
) -> st.SearchStrategy[Draw]:
    """Draws sizes and fills at random; half of the time, inputs that can share the first input's kind do.

    Shrinks sizes first (towards the low ends), then fills (towards zeros), then to where tensors usually lie.
    Inputs that were drawn alike may stay alike: all ones counts as no harder to read than ones beside zeros.

    >>> from hypothesis import find
    >>> find(draws([Symbol("n", 0, 64, 8)], [("int8", Role())]), lambda draw: draw.size_of["n"] >= 16)
    Draw(sizes=(('n', 16),), fills=(Fill(kind='zeros', seed=0, low=0.0, high=1.0),), offset=0, ones=0)
    """
    picker = draw_picker(symbols, specs, mined, fits)

    @st.composite
    def one_draw(draw: st.DrawFn) -> Draw:
        found = picker(picking(draw))
        assume(found is not None)
        return found or Draw((), ())

    return one_draw()


def draw_picker(
    symbols: Sequence[Symbol],
    specs: Sequence[Spec],
    mined: Sequence[int] = (),
    fits: Fits | None = None,
) -> Callable[[Pick], Draw | None]:
    """How to pick one description, as `draws` draws it; None where no sizes near the picked ones fit.

    >>> draw_picker([Symbol("n", 2, 64, 8)], [("int8", Role())])(lambda count: 0)
    Draw(sizes=(('n', 2),), fills=(Fill(kind='zeros', seed=0, low=0.0, high=1.0),), offset=0, ones=0)
    """
    pick_sizes = {symbol.name: size_picker(symbol, mined) for symbol in symbols}
    pick_fills = [fill_picker(*spec) for spec in specs]
    telling = [{fill.kind: fill for fill in telling_fills(*spec)} for spec in specs]

    def one_draw(pick: Pick) -> Draw | None:
        found = reclip(symbols, {name: one(pick) for name, one in pick_sizes.items()}, fits)
        if found is None:
            return None
        chosen = [one(pick) for one in pick_fills]
        if len(chosen) > 1 and pick(2):
            chosen = [
                _alike(fill, chosen[0].kind, kinds) for fill, kinds in zip(chosen, telling, strict=True)
            ]
        offset, ones = _PLACES[pick(len(_PLACES))] if specs else (0, 0)
        return Draw(tuple(found.items()), tuple(chosen), offset, ones)

    return one_draw


def _alike(fill: Fill, kind: str, kinds: dict[str, Fill]) -> Fill:
    if kind not in kinds or kind == fill.kind:
        return fill
    return replace(kinds[kind], seed=fill.seed) if kind in SEEDED else kinds[kind]
