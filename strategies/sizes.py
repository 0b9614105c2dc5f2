"""Sizes of dynamic dimensions: the ones that break compilers first.

Generated kernels are right in the middle of a size range and wrong at its seams: nothing at all, one
element, the tail after the last full vector, the block after the last cache line, the range's ends, and
anywhere but the example's own size, which is the only one anybody looked at. So sizes are not sampled
evenly: the seams come first, in a fixed order, and random sizes snap to them half of the time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice, zip_longest

from hypothesis import assume
from hypothesis import strategies as st

from strategies.choices import Pick, picking

Fits = Callable[[dict[str, int]], bool]
"""Whether an assignment of sizes is acceptable: a memory bound, or the relations between symbols."""

CAP = 4096
"""Largest size asked for where a symbol's range has no (or a huge) upper end."""

# Odd small sizes; then one below, at and above each vector width, cache line and block size. The upper
# neighbour of a width comes first: it is the smallest size with both a full vector and a tail.
_SEAMS = (3, 17, 5, 7, 16, 15, 33, 129, 257, 65, 31, 32, 63, 64, 127, 128, 255, 256)
_FAR_SEAMS = (513, 1025, 511, 512, 1023, 1024)

_PAIRS = 3
"""Pairs of symbols of which related sizes are tried."""


@dataclass(frozen=True)
class Symbol:
    """A dynamic size: its name, its inclusive range (`high=None`: unbounded) and its size at export.

    Raises ValueError when the range is empty. A hint outside the range is allowed and simply never drawn.

    >>> Symbol("n", 2, 64, hint=8)
    Symbol(name='n', low=2, high=64, hint=8)
    """

    name: str
    low: int
    high: int | None
    hint: int

    def __post_init__(self) -> None:
        if self.high is not None and self.high < self.low:
            raise ValueError(
                f"symbol {self.name}: the range [{self.low}, {self.high}] is empty; give low <= high"
            )

    def ends(self, cap: int = CAP) -> tuple[int, int]:
        """First and last size to try: the range, cut at `cap` (past low and hint if they are larger)."""
        roof = max(cap, self.low + 1, self.hint + 1)
        high = roof if self.high is None else min(self.high, roof)
        return min(max(self.low, -cap), high), high

    def clip(self, size: int) -> int:
        """The size nearest to `size` that `ends` allows."""
        low, high = self.ends()
        return min(max(size, low), high)


def interesting_sizes(symbol: Symbol, mined: Sequence[int] = ()) -> tuple[int, ...]:
    """Sizes worth trying for one symbol, most telling first, each once, all within its range.

    The order is 0, 1, 2, the range's ends, the neighbours of the hint, then vector widths and block sizes
    with their neighbours, interleaved with `mined` numbers (loop bounds, tile sizes and guards found in
    generated code) and theirs. The hint itself is left out: it is the one size known to have been tried.

    >>> interesting_sizes(Symbol("n", 2, 9, hint=8))
    (2, 9, 7, 3, 5)
    """
    low, high = symbol.ends()
    first = (0, 1, 2, low, high, symbol.hint + 1, symbol.hint - 1)
    found = [near for number in mined for near in (number, number + 1, number - 1)]
    rest = [size for pair in zip_longest(_SEAMS, found) for size in pair if size is not None]
    wanted = dict.fromkeys((*first, *rest, *_FAR_SEAMS))
    return tuple(size for size in wanted if low <= size <= high and size != symbol.hint)


def sweep(
    symbols: Sequence[Symbol], mined: Sequence[int] = (), *, fits: Fits | None = None
) -> Iterator[dict[str, int]]:
    """A finite, deterministic list of sizes for all symbols, most telling first, each assignment once.

    Covers the hints; then, per rank of `interesting_sizes`, each symbol alone at its size of that rank with
    the others at their hints, and all symbols together at that size (clipped to their ranges); each pair of
    symbols at opposite ends; and in the first few pairs, one size one more than and twice the other.
    Assignments that do not satisfy `fits` are replaced by a near one that does, or dropped. Without symbols
    there is exactly one assignment: `{}`.

    >>> [sizes["n"] for sizes in sweep([Symbol("n", 2, 9, hint=8)])]
    [8, 2, 9, 7, 3, 5]
    """
    hints = {symbol.name: symbol.clip(symbol.hint) for symbol in symbols}
    moves = chain(
        [hints],
        _ranked(symbols, hints, mined, 0, 4),
        _opposite_ends(symbols, hints),
        _related(symbols, hints),
        _ranked(symbols, hints, mined, 4, None),
    )
    seen = set()
    for wanted in moves:
        sizes = reclip(symbols, wanted, fits)
        if sizes is not None and (key := tuple(sizes.values())) not in seen:
            seen.add(key)
            yield sizes


def _ranked(
    symbols: Sequence[Symbol],
    hints: dict[str, int],
    mined: Sequence[int],
    start: int,
    stop: int | None,
) -> Iterator[dict[str, int]]:
    per_symbol = [interesting_sizes(symbol, mined) for symbol in symbols]
    for rank in list(zip_longest(*per_symbol))[start:stop]:
        for symbol, size in zip(symbols, rank, strict=True):
            if size is not None:
                yield {**hints, symbol.name: size}
        if len(symbols) > 1:
            for size in dict.fromkeys(size for size in rank if size is not None):
                yield {symbol.name: symbol.clip(size) for symbol in symbols}


def _opposite_ends(symbols: Sequence[Symbol], hints: dict[str, int]) -> Iterator[dict[str, int]]:
    for one, other in combinations(symbols, 2):
        (one_low, one_high), (other_low, other_high) = one.ends(), other.ends()
        yield {**hints, one.name: one_low, other.name: other_high}
        yield {**hints, one.name: one_high, other.name: other_low}


def _related(symbols: Sequence[Symbol], hints: dict[str, int]) -> Iterator[dict[str, int]]:
    """One size one more than another, and twice another: of the first few pairs."""
    for one, other in islice(combinations(symbols, 2), _PAIRS):
        for small, large in ((one, other), (other, one)):
            size = hints[small.name]
            for related in (size + 1, 2 * size):
                if large.clip(related) == related:
                    yield {**hints, large.name: related}


def sizes(
    symbols: Sequence[Symbol], mined: Sequence[int] = (), *, fits: Fits | None = None
) -> st.SearchStrategy[dict[str, int]]:
    """Draws one size per symbol, weighted to the seams; shrinks every symbol towards its low end.

    With `fits`, an assignment that does not satisfy it is moved to a near one that does (`reclip`), so few
    draws are thrown away. Without symbols it draws `{}`.

    >>> from hypothesis import find
    >>> find(sizes([Symbol("n", 2, 64, hint=8)]), lambda drawn: drawn["n"] > 16)
    {'n': 17}
    """
    pickers = {symbol.name: size_picker(symbol, mined) for symbol in symbols}

    @st.composite
    def fitting(draw: st.DrawFn) -> dict[str, int]:
        pick = picking(draw)
        found = reclip(symbols, {name: one(pick) for name, one in pickers.items()}, fits)
        assume(found is not None)
        return found or {}

    return fitting()


def size_picker(symbol: Symbol, mined: Sequence[int] = ()) -> Callable[[Pick], int]:
    """How to pick one size for a symbol: weighted to the seams, lower choices give lower sizes.

    >>> size_picker(Symbol("n", 2, 64, hint=8))(lambda count: 0)
    2
    """
    low, high = symbol.ends()
    seams = sorted({low, *interesting_sizes(symbol, mined)})
    roofs = [low + span for span in (8, 32, 128, 512, 2048) if low + span < high] + [high]

    # Roof, size, snap: each nested in the next and snapping only downwards, so that lowering any one of
    # them never needs another one raised, and the shrinker walks straight to the smallest size.
    def one_size(pick: Pick) -> int:
        roof = roofs[pick(len(roofs))]
        size = low + pick(roof - low + 1)
        return seams[bisect_right(seams, size) - 1] if pick(2) else size

    return one_size


def reclip(symbols: Sequence[Symbol], wanted: dict[str, int], fits: Fits | None) -> dict[str, int] | None:
    """The assignment itself when it fits, else a near one that does, else None.

    Tried in this order: one symbol moved by up to 8 or set equal to another (repairs divisibility and
    equality relations), the largest size halved again and again (repairs a memory bound), one symbol
    kept and the others at their hints, the hints.

    >>> pair = [Symbol("h", 0, 99, hint=4), Symbol("w", 0, 99, hint=4)]
    >>> reclip(pair, {"h": 64, "w": 64}, lambda sizes: sizes["h"] * sizes["w"] <= 1024)
    {'h': 32, 'w': 32}
    """
    if fits is None:
        return wanted
    repairs = (_near, _halved, _at_hints)
    candidates = chain([wanted], *(repair(symbols, wanted) for repair in repairs))
    return next((candidate for candidate in candidates if fits(candidate)), None)


def _near(symbols: Sequence[Symbol], wanted: dict[str, int]) -> Iterator[dict[str, int]]:
    for symbol in symbols:
        size = wanted[symbol.name]
        others = [wanted[other.name] for other in symbols if other is not symbol]
        steps = [size + sign * step for step in range(1, 9) for sign in (-1, 1)]
        for moved in (*others, *steps):
            if symbol.clip(moved) == moved != size:
                yield {**wanted, symbol.name: moved}


def _halved(symbols: Sequence[Symbol], wanted: dict[str, int]) -> Iterator[dict[str, int]]:
    room = {symbol.name: wanted[symbol.name] - symbol.ends()[0] for symbol in symbols}
    current = dict(wanted)
    while symbols and any(room.values()):
        name = max(room, key=lambda name: room[name])
        cut = (room[name] + 1) // 2
        room[name] -= cut
        current = {**current, name: current[name] - cut}
        yield current


def _at_hints(symbols: Sequence[Symbol], wanted: dict[str, int]) -> Iterator[dict[str, int]]:
    hints = {symbol.name: symbol.clip(symbol.hint) for symbol in symbols}
    for symbol in symbols:
        yield {**hints, symbol.name: wanted[symbol.name]}
    yield hints
