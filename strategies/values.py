"""What to put into a tensor, described by a kind and two or three numbers.

Random normal data hides nearly every real bug: it has no zeros of either sign, no NaN, no ties, no exact
multiples, no integer extremes, and no run of bytes with the same top bit. A `Fill` names one of the patterns
that do show bugs. It never holds elements, so it costs nothing to draw, prints as one short line of code,
and shrinks by becoming a simpler kind rather than by zeroing elements one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from hypothesis import strategies as st

from strategies.choices import Pick, picking

KINDS: dict[str, str] = {
    # one value
    "zeros": "every element 0 (False)",
    "ones": "every element 1 (True)",
    "negative_zeros": "every element -0.0",
    "full": "every element `low`",
    "lowest": "every element the dtype's smallest number; reals: -inf, of which a maximum is made",
    "highest": "every element the dtype's largest number; reals: inf",
    "all_nan": "every element NaN",
    # random reals
    "normal": "normal, mean 0; complex: both parts",
    "uniform": "uniform over [low, high)",
    "all_positive": "reals: uniform over [low, high); integers: uniform over low..high",
    "all_negative": "as all_positive, with both bounds below zero",
    "huge": "normal times `high`, near the top of the dtype's range",
    "tiny": "normal times `high`, near the bottom of the dtype's range",
    "sorted": "ascending over the whole tensor: normal, or integers in low..high",
    "reversed": "descending over the whole tensor: normal, or integers in low..high",
    "real_only": "complex: normal real part, imaginary part 0",
    "imaginary_only": "complex: normal imaginary part, real part 0 of either sign",
    # random integers (exact in every dtype)
    "small_integers": "integers in low..high",
    "duplicates": "integers in low..high, a range so narrow that most elements are equal",
    "full_range": "integers in low..high, the dtype's whole range",
    "around": "integers within 2 of `high`, where a narrower dtype overflows or a float skips integers",
    "high_bytes": "integers in low..high, where the top bit of an unsigned dtype is set",
    "coin": "0 or 1 (False or True) at random",
    # random grids
    "decimals": "tenths (0.1, -0.7, 3.0) between low and high; exact multiples make a // b jump",
    "halves": "x.5 between low and high, where rounding modes differ",
    "denormals": "integers in -8..8 times `high`, below the smallest normal number",
    # patterns; `seed` rotates a repeating one
    "ramp": "0, 1, 2, ... over the whole tensor, starting over where the dtype cannot count further",
    "alternating": "0 and 1 (False and True) in turn",
    "one_hot": "all 0 but a single 1 at flat position `seed` (modulo the number of elements)",
    "signed_zeros": "0.0 and -0.0 in turn",
    "nan_sprinkled": "every fifth element NaN among ordinary numbers",
    "inf_sprinkled": "inf and -inf, every fifth element each, among ordinary numbers",
    "extremes": "`high` and `low` (the dtype's largest and smallest finite values) and 1 or -1 in turn",
    "masked_out": "every third element -inf and the others 0: an additive attention mask",
    # indices into a dimension of size `bound`
    "index_random": "integers in 0..bound-1",
    "index_ramp": "0, 1, 2, ... modulo bound",
    "index_last": "every element bound-1",
    "index_duplicates": "0 or 1, whatever the bound",
    "index_negative": "integers in -bound..-1",
    "edge_out": "out of range by one: every element bound (even seed) or -bound-1 (odd seed)",
}
"""Every kind of fill and what it means; the meaning of `seed`, `low` and `high` is part of it."""

_UNSEEDED = {
    "zeros",
    "ones",
    "negative_zeros",
    "full",
    "lowest",
    "highest",
    "all_nan",
    "ramp",
    "alternating",
    "index_ramp",
    "index_last",
    "edge_out",
}
SEEDED = frozenset(KINDS) - _UNSEEDED
"""Kinds that depend on `seed`. (`edge_out` does too, but has two values only.)"""

ROLES = ("data", "index", "mask", "condition", "ascending")


@dataclass(frozen=True)
class Fill:
    """A description of a tensor's elements; `KINDS[kind]` says what `seed`, `low` and `high` mean.

    Raises ValueError for an unknown kind.

    >>> Fill("uniform", seed=3, low=-1.0)
    Fill(kind='uniform', seed=3, low=-1.0, high=1.0)
    """

    kind: str
    seed: int = 0
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind of fill {self.kind!r}; use one of: {', '.join(KINDS)}")


@dataclass(frozen=True)
class Role:
    """What the program does with an input: plain data, an index into a dimension of size `bound`, a mask, the
    predicate of a branch, or boundaries that must ascend. `bound` may be left to the moment the tensor is
    made, when sizes are known.

    Raises ValueError for an unknown role or a negative bound.
    """

    kind: str = "data"
    bound: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in ROLES:
            raise ValueError(f"unknown role {self.kind!r}; use one of: {', '.join(ROLES)}")
        if self.bound is not None and self.bound < 0:
            raise ValueError(f"an index role needs a bound of 0 or more, not {self.bound}")


# name: (largest finite, a huge scale, a tiny scale, a denormal step, where integers are skipped).
# Largest values are the shortest decimals that round to them, so that they print short.
_FLOATS: dict[str, tuple[float, float, float, float, float]] = {
    "float32": (3.4028235e38, 1e30, 1e-30, 1e-40, 2.0**24),
    "bfloat16": (3.39e38, 1e30, 1e-30, 1e-40, 2.0**8),
    "float16": (65504.0, 1e4, 1e-4, 5e-6, 2.0**11),
    "float64": (1.7976931348623157e308, 1e200, 1e-200, 1e-310, 2.0**53),
}
_INTEGERS: dict[str, tuple[int, int]] = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}
_OVERFLOWS = {
    **dict.fromkeys(("int64", "uint64", "uint32"), 2**31),
    **dict.fromkeys(("int32", "uint16"), 2**15),
    "int16": 2**8,
}
"""Where a narrower signed dtype ends; the square of int16's overflows it."""


def telling_fills(dtype: str, role: Role = Role()) -> tuple[Fill, ...]:
    """The fills worth trying for an input, simplest and most telling first, each kind once.

    The first one is the plain default (ordinary data, or valid indices). `dtype` is torch's name without the
    prefix. Fills that are out of range come last (see `is_out_of_range`).

    >>> [fill.kind for fill in telling_fills("bool")]
    ['coin', 'zeros', 'ones', 'alternating', 'one_hot']
    """
    if dtype == "bool":
        return _bool_fills()
    if role.kind == "index" and dtype in (*_INTEGERS, *_FLOATS):
        return _index_fills(signed=dtype in _FLOATS or _INTEGERS[dtype][0] < 0)
    if role.kind == "ascending":
        return tuple(fill for fill in _data_fills(dtype) if fill.kind in _ASCENDING)
    if role.kind == "mask":
        additive = (Fill("masked_out"),) if dtype in _FLOATS else ()
        return _bool_fills() + additive
    fills = _data_fills(dtype)
    if role.kind == "condition":
        decisive = {"all_positive": 1, "all_negative": 2, "zeros": 3, "ones": 4}
        return (fills[0], *sorted(fills[1:], key=lambda fill: decisive.get(fill.kind, 5)))
    return fills


_ASCENDING = ("sorted", "ramp", "zeros", "ones")
"""Kinds whose elements never descend: what a search in unsorted boundaries gives is anybody's guess."""


def _data_fills(dtype: str) -> tuple[Fill, ...]:
    if dtype in _INTEGERS:
        return _integer_fills(dtype)
    if dtype.startswith("complex"):
        return _complex_fills()
    if dtype in _FLOATS:
        return _float_fills(dtype)
    return _plain_fills()


def _bool_fills() -> tuple[Fill, ...]:
    return (Fill("coin"), Fill("zeros"), Fill("ones"), Fill("alternating"), Fill("one_hot"))


def _index_fills(signed: bool) -> tuple[Fill, ...]:
    valid = (Fill("index_random"), Fill("zeros"), Fill("index_last"), Fill("index_ramp"))
    negative = (Fill("index_negative"),) if signed else ()
    outside = (Fill("edge_out", seed=0), Fill("edge_out", seed=1))[: 2 if signed else 1]
    return (*valid, *negative, Fill("index_duplicates"), *outside)


def _integer_fills(dtype: str) -> tuple[Fill, ...]:
    low, high = _INTEGERS[dtype]
    signed = low < 0
    around = _OVERFLOWS.get(dtype)
    return (
        Fill("small_integers", low=-8 if signed else 0, high=8),
        Fill("all_positive", low=1, high=127),
        Fill("all_negative", low=max(low, -128), high=-1)
        if signed
        else Fill("high_bytes", low=high // 2 + 1, high=high),
        Fill("extremes", low=low, high=high),
        Fill("zeros"),
        Fill("full_range", low=low, high=high),
        Fill("ones"),
        Fill("ramp"),
        Fill("one_hot"),
        Fill("duplicates", low=0, high=2),
        Fill("sorted", low=-8 if signed else 0, high=8),
        Fill("reversed", low=-8 if signed else 0, high=8),
        *((Fill("lowest"),) if signed else ()),
        Fill("highest"),
        *((Fill("around", high=around),) if around else ()),
        Fill("full", low=3),
    )


def _float_fills(dtype: str) -> tuple[Fill, ...]:
    largest, huge, tiny, denormal, skips = _FLOATS[dtype]
    return (
        Fill("normal"),
        Fill("zeros"),
        Fill("decimals", low=-1.0, high=1.0),
        Fill("nan_sprinkled"),
        Fill("inf_sprinkled"),
        Fill("signed_zeros"),
        Fill("all_negative", low=-1.5, high=-0.5),
        Fill("small_integers", low=-8, high=8),
        Fill("huge", high=huge),
        Fill("extremes", low=-largest, high=largest),
        Fill("all_positive", low=0.5, high=1.5),
        Fill("duplicates", low=0, high=2),
        Fill("halves", low=-4.0, high=4.0),
        Fill("tiny", high=tiny),
        Fill("ones"),
        Fill("negative_zeros"),
        Fill("denormals", high=denormal),
        Fill("all_nan"),
        Fill("lowest"),
        Fill("highest"),
        Fill("around", high=skips),
        Fill("uniform"),
        Fill("ramp"),
        Fill("sorted"),
        Fill("reversed"),
        Fill("one_hot"),
        Fill("full", low=0.5),
    )


def _complex_fills() -> tuple[Fill, ...]:
    plain = (Fill("normal"), Fill("zeros"), Fill("real_only"), Fill("imaginary_only"))
    special = (Fill("nan_sprinkled"), Fill("inf_sprinkled"), Fill("signed_zeros"), Fill("huge", high=1e30))
    return (
        *plain,
        *special,
        Fill("ones"),
        Fill("small_integers", low=-8, high=8),
        Fill("tiny", high=1e-30),
        Fill("one_hot"),
    )


def _plain_fills() -> tuple[Fill, ...]:
    """For narrow and unusual dtypes (float8): nothing that depends on their range."""
    return (
        Fill("normal"),
        Fill("zeros"),
        Fill("ones"),
        Fill("small_integers", low=-8, high=8),
        Fill("all_positive", low=0.5, high=1.5),
        Fill("all_negative", low=-1.5, high=-0.5),
        Fill("halves", low=-4.0, high=4.0),
        Fill("one_hot"),
        Fill("ramp"),
    )


def is_out_of_range(fill: Fill) -> bool:
    """Whether the fill breaks its role's promise on purpose: an index just outside the indexed dimension."""
    return fill.kind == "edge_out"


def fills(dtype: str, role: Role = Role()) -> st.SearchStrategy[Fill]:
    """Draws a fill for one input: the kinds of `telling_fills`, with any seed; out of range about 1 in 50.

    Shrinks to zeros, then to the plain default, then along the telling order, with seed 0.

    >>> from hypothesis import find
    >>> find(fills("float32"), lambda fill: True)
    Fill(kind='zeros', seed=0, low=0.0, high=1.0)
    """
    picker = fill_picker(dtype, role)
    return st.composite(lambda draw: picker(picking(draw)))()


def fill_picker(dtype: str, role: Role = Role()) -> Callable[[Pick], Fill]:
    """How to pick one fill for an input, as `fills` draws it; the lowest choices give zeros.

    >>> fill_picker("int8")(lambda count: 0).kind
    'zeros'
    """
    telling = telling_fills(dtype, role)
    inside = [fill for fill in telling if not is_out_of_range(fill)]
    valid = sorted(inside, key=lambda fill: fill.kind != "zeros")
    outside = [fill for fill in telling if is_out_of_range(fill)]

    def one_fill(pick: Pick) -> Fill:
        if outside and pick(50) == 49:
            return outside[pick(len(outside))]
        # A seed is picked even where none is used: a kind with fewer choices is not a simpler one.
        fill, seed = valid[pick(len(valid))], pick(1000)
        return replace(fill, seed=seed) if fill.kind in SEEDED else fill

    return one_fill


def assignments(specs: Sequence[tuple[str, Role]]) -> Iterator[tuple[Fill, ...]]:
    """Fills for several inputs together: a finite, deterministic covering list, most telling first.

    First every input at its plain default; then, kind by kind, all inputs that have that kind at once (the
    diagonal: `a // b` needs short decimals on both sides), and each input alone. Inputs get different seeds,
    so that two inputs of one kind are not equal. Out-of-range fills come last. Each assignment once.

    >>> moves = list(assignments([("bool", Role()), ("bool", Role())]))
    >>> [tuple(fill.kind for fill in move) for move in moves[:4]]
    [('coin', 'coin'), ('zeros', 'zeros'), ('zeros', 'coin'), ('coin', 'zeros')]
    """
    telling = [
        [
            replace(fill, seed=fill.seed + place) if fill.kind in SEEDED else fill
            for fill in telling_fills(*spec)
        ]
        for place, spec in enumerate(specs)
    ]
    plain = tuple(fills[0] for fills in telling)
    moves = [plain]
    for rank in zip_longest(*(fills[1:] for fills in telling)):
        present = [fill for fill in rank if fill is not None]
        for kind in dict.fromkeys(fill.kind for fill in present if not is_out_of_range(fill)):
            moves.append(_diagonal(telling, kind))
        for place, fill in enumerate(rank):
            if fill is not None:
                moves.append((*plain[:place], fill, *plain[place + 1 :]))
    yield from dict.fromkeys(sorted(moves, key=lambda move: any(map(is_out_of_range, move))))


def _diagonal(telling: Sequence[Sequence[Fill]], kind: str) -> tuple[Fill, ...]:
    return tuple(next((fill for fill in fills if fill.kind == kind), fills[0]) for fills in telling)
