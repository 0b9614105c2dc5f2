"""Which sizes to ask for, so that their verdicts tell the region and settle its constants."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, product, zip_longest

from minimizer.region import Judged, Region
from strategies import Fits, Symbol, interesting_sizes, sweep


def probe_sizes(
    symbols: Sequence[Symbol],
    failing: Mapping[str, int],
    budget: int,
    *,
    mined: Sequence[int] = (),
    fits: Fits | None = None,
) -> Iterator[dict[str, int]]:
    """Up to `budget` sizes whose verdicts tell the region, each once, the failing one first.

    When the whole grid is within the budget, all of it. Otherwise, taking turns: the telling sizes (`sweep`),
    lines through the failing point (each symbol alone: telling sizes, near ones, far ones) and seeded random
    points (anywhere, in the small corner, all symbols equal, around the failing point). Sizes that do not
    satisfy `fits` are left out.

    >>> [sizes["n"] for sizes in probe_sizes([Symbol("n", 2, 6, hint=4)], {"n": 3}, budget=10)]
    [3, 4, 2, 6, 5]
    """
    start = {symbol.name: failing[symbol.name] for symbol in symbols}
    ranges = [range(low, high + 1) for low, high in (symbol.ends() for symbol in symbols)]
    first = chain([start], islice(sweep(symbols, mined), max(1, budget // 3)))
    if math.prod(map(len, ranges)) <= budget:
        rest: Iterator[Sequence[int]] = product(*ranges)
    else:
        lines = (_line(symbol, start, mined) for symbol in symbols)
        turns = zip_longest(*lines, _scattered(start, ranges, 8 * budget))
        rest = (point for turn in turns for point in turn if point is not None)
    seen: set[tuple[int, ...]] = set()
    for sizes in chain(first, (dict(zip(start, point, strict=True)) for point in rest)):
        if len(seen) >= budget:
            return
        point = tuple(sizes.values())
        if point not in seen and (fits is None or fits(sizes)):
            seen.add(point)
            yield sizes


def _line(symbol: Symbol, start: Mapping[str, int], mined: Sequence[int]) -> Iterator[tuple[int, ...]]:
    low, high = symbol.ends()
    here = start[symbol.name]
    near = sorted(range(low, high + 1), key=lambda size: (abs(size - here), size))
    far = random.Random(0).sample(near, len(near))
    telling = interesting_sizes(symbol, mined)
    for size in dict.fromkeys(chain(telling, *zip(near, far, strict=True))):
        yield tuple({**start, symbol.name: size}.values())


def _scattered(start: Mapping[str, int], ranges: Sequence[range], attempts: int) -> Iterator[tuple[int, ...]]:
    chance = random.Random(0)
    for attempt in range(attempts):
        match attempt % 4:
            case 0:
                point = [chance.choice(sizes) for sizes in ranges]
            case 1:
                point = [chance.choice(sizes[:32]) for sizes in ranges]
            case 2:
                point = [chance.choice(chance.choice(ranges))] * len(ranges)
            case _:
                point = [size + chance.randint(-2, 2) for size in start.values()]
        yield tuple(min(max(size, sizes[0]), sizes[-1]) for size, sizes in zip(point, ranges, strict=True))


DOUBTS = 24
"""Sizes asked for in one go to settle the constants of a region."""

_BOUND = re.compile(r"(?:(\d+) (<=?) )?([a-z_]\w*(?: [*+] [a-z_]\w*)?)(?: (<=?|>=?) (\d+))?", re.IGNORECASE)


def doubts(
    judged: Judged, symbols: Sequence[Symbol], region: Region, *, fits: Fits | None = None
) -> list[dict[str, int]]:
    """Sizes not yet judged that lie between a bound of the region and the last tried value beyond it.

    Where `h * w >= 528` fails and 512 passes, nothing is known of 514: judging sizes in the gap makes the
    constant exact, or shows that there are none. At most `DOUBTS`, the nearest to the bound first.

    >>> judged = [({"n": n}, n >= 40) for n in (2, 30, 40, 64)]
    >>> from minimizer.region import find_region
    >>> region = find_region(judged, [Symbol("n", 2, 64, 8)])
    >>> doubts(judged, [Symbol("n", 2, 64, 8)], region)[:3]
    [{'n': 39}, {'n': 38}, {'n': 41}]
    """
    names = [symbol.name for symbol in symbols]
    points = {tuple(sizes[name] for name in names) for sizes, _ in judged}
    found: dict[tuple[int, ...], None] = {}
    for term, number in _bounds(region.predicate):
        values = sorted({_value(term, names, point) for point in points})
        below = [value for value in values if value < number]
        above = [value for value in values if value > number]
        gaps = [range(number - 1, below[-1], -1)] if below else []
        gaps += [range(number, above[0])] if above else []
        for wanted in chain.from_iterable(zip_longest(*gaps)):
            if wanted is None or wanted in values or len(found) >= DOUBTS:
                continue
            for point in islice(_with_value(term, wanted, symbols, judged), 2):
                if point not in points and (fits is None or fits(dict(zip(names, point, strict=True)))):
                    found.setdefault(point)
    return [dict(zip(names, point, strict=True)) for point in islice(found, DOUBTS)]


def _bounds(predicate: str) -> Iterator[tuple[str, int]]:
    """Each term that the predicate compares with a constant, with the first value past the bound."""
    for low, _, term, _, high in _BOUND.findall(predicate):
        if low:
            yield term, int(low)
        if high:
            yield term, int(high)


def _value(term: str, names: Sequence[str], point: Sequence[int]) -> int:
    left, sign, right = (*term.split(" "), "", "")[:3]
    one = point[names.index(left)]
    if not sign:
        return one
    two = point[names.index(right)]
    return one * two if sign == "*" else one + two


def _with_value(
    term: str, wanted: int, symbols: Sequence[Symbol], judged: Judged
) -> Iterator[tuple[int, ...]]:
    """Points where the term has a value, other symbols as in the first judged size."""
    names = [symbol.name for symbol in symbols]
    start = {name: judged[0][0][name] for name in names}
    ends = {symbol.name: symbol.ends() for symbol in symbols}
    left, sign, right = (*term.split(" "), "", "")[:3]
    if not sign:
        pairs: Iterable[tuple[int, int]] = [(wanted, 0)]
    else:
        low, high = ends[left]
        pairs = (
            (one, wanted - one if sign == "+" else wanted // one)
            for one in range(max(low, 1 if sign == "*" else low), high + 1)
            if sign == "+" or wanted % one == 0
        )
    for one, two in pairs:
        point = {**start, left: one, **({right: two} if sign else {})}
        if all(ends[name][0] <= point[name] <= ends[name][1] for name in names):
            yield tuple(point.values())
