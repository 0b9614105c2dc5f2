"""The set of sizes that fail, said as one short predicate.

Whether a size fails is cheap to ask, and generated code fails for simple reasons: a tail, a threshold, an
empty dimension, a size that was baked in. So the predicate is not learned but looked up: every atom of a
small language is evaluated on every judged size, and the simplest one, or the simplest two or three together,
that agrees with all of them is the region. Sets of sizes are bit masks, so this takes milliseconds; and a
predicate that one tried size contradicts is never given.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations, permutations

from strategies import Symbol

Judged = Sequence[tuple[Mapping[str, int], bool]]
"""Sizes by symbol, each with whether it failed."""


@dataclass(frozen=True)
class Region:
    """A Python expression over the symbols that is true on exactly the judged sizes that fail.

    `fails` and `passes` are the judged sizes for a picture: points parted by spaces, each with its sizes in
    the order of `symbols` parted by commas, as in ``2,3 4,5``.

    >>> Region("n % 16 != 0", sizes_tried=63, sizes_failing=59).in_words()
    'n % 16 != 0 (59 of 63 sizes tried fail)'
    """

    predicate: str
    sizes_tried: int
    sizes_failing: int
    symbols: tuple[str, ...] = field(default=(), compare=False, repr=False)
    fails: str = field(default="", compare=False, repr=False)
    passes: str = field(default="", compare=False, repr=False)

    def in_words(self) -> str:
        """The region and its evidence for a person to read."""
        where = said(self.predicate)
        return f"{where} ({self.sizes_failing} of {self.sizes_tried} sizes tried fail)"


EVERYWHERE = "True"
"""The predicate where every size tried fails."""


def said(predicate: str) -> str:
    """A predicate for a person to read: the expression, or that it is every size."""
    return "every size" if predicate == EVERYWHERE else predicate


@dataclass(frozen=True)
class _Atom:
    """A predicate, the judged sizes where it holds (a bit each), and how hard it is to read."""

    text: str
    mask: int
    cost: float
    step: tuple[str, str, int] | None = None  # of a comparison: term, operator, constant


@dataclass(frozen=True)
class _Goal:
    """The failing sizes among all judged sizes, as masks."""

    failing: int
    everything: int

    def helps(self, mask: int) -> bool:
        """Whether a predicate can be part of a conjunction or of a disjunction that is the region."""
        necessary = mask & self.failing == self.failing and mask != self.everything
        sufficient = mask | self.failing == self.failing and mask != 0
        return necessary or sufficient


def find_region(judged: Judged, symbols: Sequence[Symbol]) -> Region | None:
    """The simplest predicate that separates the failing sizes from the passing ones.

    In order of simplicity: every size; equality and comparisons with a constant (`n == 0`, `n > 128`),
    `n != 8`, parity; relations of two symbols (`h != w`, `h > 2 * w`); congruences (`n % 16 != 0`); the same
    for products and sums of two symbols; ranges of remainders (`n % 16 > 7`); then two of these with `and` or
    `or`, then three. Constants are sizes that were tried (or, where equivalent on all integers, their rounder
    neighbours). A size that was judged more than once fails if it ever did. None when nothing fails, or when
    nothing in the language fits. Raises ValueError when a judged size lacks one of the symbols.

    >>> judged = [({"n": n}, n % 4 != 0) for n in range(2, 65)]
    >>> find_region(judged, [Symbol("n", 2, 64, hint=8)])
    Region(predicate='n % 4 != 0', sizes_tried=63, sizes_failing=47)
    """
    points = _points(judged, symbols)
    failing = sum(points.values())
    if failing == 0:
        return None
    if failing == len(points):
        return _region("True", points, symbols)
    goal = _Goal(_mask(points.values()), (1 << len(points)) - 1)
    atoms = _cheapest(_atoms([symbol.name for symbol in symbols], list(points), goal), goal)
    for parts in (1, 2, 3):
        found = _together(atoms, goal, parts)
        if found is not None:
            return _region(found, points, symbols)
    return None


def _region(predicate: str, points: Mapping[tuple[int, ...], bool], symbols: Sequence[Symbol]) -> Region:
    drawn = {
        truth: " ".join(",".join(map(str, point)) for point, fails in points.items() if fails is truth)
        for truth in (True, False)
    }
    names = tuple(symbol.name for symbol in symbols)
    return Region(predicate, len(points), sum(points.values()), names, drawn[True], drawn[False])


def _points(judged: Judged, symbols: Sequence[Symbol]) -> dict[tuple[int, ...], bool]:
    points: dict[tuple[int, ...], bool] = {}
    for sizes, fails in judged:
        missing = [symbol.name for symbol in symbols if symbol.name not in sizes]
        if missing:
            raise ValueError(
                f"sizes {dict(sizes)} say nothing about {', '.join(missing)}; give every symbol a size"
            )
        point = tuple(sizes[symbol.name] for symbol in symbols)
        points[point] = points.get(point, False) or fails
    return points


def _mask(truths: Iterable[bool]) -> int:
    return sum(1 << place for place, truth in enumerate(truths) if truth)


# --- the language

# Up to 32, where vector widths, groups and strides live; above, powers of two and their neighbours by half.
_MODULI = (*range(2, 33), 48, 64, 96, 128, 192, 256, 384, 512, 1024)


def _atoms(names: Sequence[str], points: Sequence[tuple[int, ...]], goal: _Goal) -> Iterator[_Atom]:
    columns = list(zip(*points, strict=True))
    for name, column in zip(names, columns, strict=True):
        yield from _about_term(name, column, goal, 0.0)
    for (left, one), (right, two) in combinations(zip(names, columns, strict=True), 2):
        yield from _relations(left, right, one, two)
        yield from _relations(right, left, two, one)
        yield from _about_term(f"{left} * {right}", list(map(operator.mul, one, two)), goal, 1.2)
        yield from _about_term(f"{left} + {right}", list(map(operator.add, one, two)), goal, 1.5)


def _about_term(term: str, values: Sequence[int], goal: _Goal, extra: float) -> Iterator[_Atom]:
    masks = _grouped(enumerate(values))
    for value, mask in masks.items():
        if extra and value:
            continue  # `h * w == 72` says nothing about products: it is one pair of sizes in disguise
        cost = extra + 0.01 * _digits(value)
        yield _Atom(f"{term} == {value}", mask, 1.0 + cost)
        yield _Atom(f"{term} != {value}", mask ^ goal.everything, 1.5 + cost)
    yield from _steps(term, masks, goal, extra)
    inner = f"({term})" if " " in term else term
    for modulus in _MODULI:
        if modulus <= max(values):
            yield from _congruences(inner, modulus, masks, goal, extra)


def _grouped(places: Iterable[tuple[int, int]]) -> dict[int, int]:
    masks: dict[int, int] = {}
    for place, value in places:
        masks[value] = masks.get(value, 0) | 1 << place
    return masks


def _steps(term: str, masks: Mapping[int, int], goal: _Goal, extra: float) -> Iterator[_Atom]:
    """Comparisons with a constant, at every step between two neighbouring tried values."""
    tried = sorted(masks)
    above = goal.everything
    for low, high in zip(tried, tried[1:], strict=False):
        above ^= masks[low]
        below = above ^ goal.everything
        if goal.helps(above):
            yield _comparison(term, ">", low, high, above, extra)
        if goal.helps(below):
            yield _comparison(term, "<", high, low, below, extra)


def _comparison(term: str, strict: str, outside: int, inside: int, mask: int, extra: float) -> _Atom:
    """`n > outside` or `n >= inside`. Of the gap between two tried values nothing is claimed, so the first is
    used only where there is no gap, and its constant is the rounder one: `n > 128` rather than `n >= 129`."""
    rounder = abs(inside - outside) == 1 and _roundness(outside) > _roundness(inside)
    symbol, constant = (strict, outside) if rounder else (f"{strict}=", inside)
    cost = 1.2 + extra + 0.01 * _digits(constant)
    return _Atom(f"{term} {symbol} {constant}", mask, cost, (term, symbol, constant))


def _congruences(
    term: str, modulus: int, masks: Mapping[int, int], goal: _Goal, extra: float
) -> Iterator[_Atom]:
    rests: dict[int, int] = {}
    members = Counter(value % modulus for value in masks)
    for value, mask in masks.items():
        rests[value % modulus] = rests.get(value % modulus, 0) | mask
    unusual = 0.0 if modulus & (modulus - 1) == 0 else 0.4
    for rest, mask in rests.items():
        if members[rest] < 2 or (extra and rest and modulus > 2):
            continue  # one size, or one product of sizes, in disguise
        offset = 0.0 if rest == 0 or modulus == 2 else 1.0
        cost = 2.0 + extra + unusual + offset + 0.02 * _digits(modulus)
        yield _Atom(f"{term} % {modulus} == {rest}", mask, cost)
        if modulus > 2:
            yield _Atom(f"{term} % {modulus} != {rest}", mask ^ goal.everything, cost)
    if not extra and modulus in _TAILS:
        yield from _tails(term, modulus, rests, goal)


_TAILS = (4, 8, 16, 32, 64)
"""Moduli of which a range of remainders means something: how many elements are left for a vector's tail."""


def _tails(term: str, modulus: int, rests: Mapping[int, int], goal: _Goal) -> Iterator[_Atom]:
    """`n % 16 >= 8` and `n % 16 < 8`, where every remainder was tried."""
    if len(rests) < modulus:
        return
    above = goal.everything
    for rest in range(modulus - 1):
        above ^= rests[rest]
        cost = 3.5 + 0.02 * _digits(modulus)
        if rest:
            yield _Atom(f"{term} % {modulus} <= {rest}", above ^ goal.everything, cost)
        if rest + 1 < modulus - 1:
            yield _Atom(f"{term} % {modulus} > {rest}", above, cost)


def _relations(left: str, right: str, one: Sequence[int], two: Sequence[int]) -> Iterator[_Atom]:
    compared: tuple[tuple[str, Callable[[int, int], bool], float], ...] = (
        ("==", operator.eq, 1.8),
        ("!=", operator.ne, 1.8),
        (">", operator.gt, 1.9),
        (">=", operator.ge, 1.95),
    )
    for symbol, test, cost in compared:
        yield _Atom(f"{left} {symbol} {right}", _mask(map(test, one, two)), cost)
    for times in (2, 3, 4):
        for symbol, test, _ in compared[:3]:
            holds = _mask(test(a, times * b) for a, b in zip(one, two, strict=True))
            yield _Atom(f"{left} {symbol} {times} * {right}", holds, 2.6 + 0.1 * times)
    for symbol, test, _ in compared[:2]:
        holds = _mask(test(a, b + 1) for a, b in zip(one, two, strict=True))
        yield _Atom(f"{left} {symbol} {right} + 1", holds, 2.6)
    guard = f"{right} != 0 and " if 0 in two else ""
    for symbol, test, _ in compared[:2]:
        holds = _mask(b != 0 and test(a % b, 0) for a, b in zip(one, two, strict=True))
        yield _Atom(f"{guard}{left} % {right} {symbol} 0", holds, 3.0)


def _digits(number: int) -> float:
    return math.log2(abs(number) + 1)


def _roundness(number: int) -> int:
    """How round a number looks: by its factors of two (more than one), or by its trailing zeros."""
    if number == 0:
        return 99
    twos = (number & -number).bit_length() - 1
    zeros = len(str(number)) - len(str(number).rstrip("0"))
    return max(twos if twos > 1 else 0, 3 * zeros)


# --- the search


def _cheapest(atoms: Iterable[_Atom], goal: _Goal) -> list[_Atom]:
    """The atoms that can help, one per set of sizes (the simplest), simplest first."""
    by_mask: dict[int, _Atom] = {}
    for atom in atoms:
        if goal.helps(atom.mask):
            known = by_mask.setdefault(atom.mask, atom)
            if (atom.cost, atom.text) < (known.cost, known.text):
                by_mask[atom.mask] = atom
    return sorted(by_mask.values(), key=lambda atom: (atom.cost, atom.text))


def _together(atoms: Sequence[_Atom], goal: _Goal, parts: int) -> str | None:
    """The simplest conjunction or disjunction of so many atoms that holds exactly on the failing sizes.

    A disjunction is the conjunction of the complements, so both are one search: complemented masks (`flip`)
    that contain the wanted set, and meet in it.
    """
    found: list[tuple[float, str]] = []
    for joiner, flip in (("and", 0), ("or", goal.everything)):
        wanted = goal.failing ^ flip
        usable = {atom.mask ^ flip: atom for atom in atoms if (atom.mask ^ flip) & wanted == wanted}
        masks = list(usable)[: _WIDEST[parts]] if parts < 3 else _tightest(list(usable))[: _WIDEST[parts]]
        for chosen in combinations(masks, parts):
            if reduce(operator.and_, chosen) == wanted:
                those = [usable[mask] for mask in chosen]
                found.append((sum(atom.cost for atom in those), _join(those, joiner)))
    return min(found, default=(0.0, None))[1]


# How many atoms take part when so many are combined: a search in vain goes through all combinations.
_WIDEST = {1: 10**6, 2: 1200, 3: 80}


def _tightest(masks: Sequence[int]) -> list[int]:
    """The masks that contain no other one."""
    return [mask for mask in masks if not any(other != mask and other & mask == other for other in masks)]


def _join(atoms: Sequence[_Atom], joiner: str) -> str:
    """The atoms as one expression; a lower and an upper bound of one term become a chain, `3 <= n < 9`."""
    for lower, upper in permutations(atoms, 2):
        if joiner == "and" and lower.step and upper.step and lower.step[0] == upper.step[0]:
            (term, more, low), (_, less, high) = lower.step, upper.step
            if more.startswith(">") and less.startswith("<"):
                chained = f"{low} {more.replace('>', '<')} {term} {less} {high}"
                return " and ".join([chained, *(atom.text for atom in atoms if atom not in (lower, upper))])
    return f" {joiner} ".join(atom.text for atom in atoms)
