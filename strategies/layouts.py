"""How a tensor lies in memory: every stride pattern that a caller may export with.

A compiler specialises the strides of the example inputs, so each of these is a program of its own: code that
is right for contiguous rows walks off their end when the channels lie innermost, or reads the gaps of a
slice. A `Layout` describes one tensor without any elements; strides follow from the sizes.

The order of `telling_layouts` is the order in which to try them and, read backwards, in which to shrink: a
later layout that fails is worth replacing by an earlier one that fails too, and by none at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

KINDS: dict[str, str] = {
    "channels last": "channels innermost: x.to(memory_format=torch.channels_last), and its 3d form",
    "transposed": "the last two dims swapped: x.mT of a contiguous tensor",
    "sliced": "every second element of the last dim: x[..., ::2]",
    "rows": "every second row of the first dim: x[::2]",
    "reversed": "all dims in reverse order: x.permute(-1, ..., 0)",
    "expanded": "the first dim repeats one element: x.expand(n, ...), stride 0",
    "shifted": "contiguous, from the second element of its storage on: not aligned",
    "odd ones": "dims of size 1 with strides that no contiguous tensor has; they are never used",
}
"""Every kind of layout and what it means, plainest last resort first.

What each would find: *channels last*, a vector tail that writes past its buffer when padding is multiplied
(seen as a crash long after the write); *transposed*, a template or quantised kernel that takes its rows for
contiguous; *sliced* and *rows*, kernels that load whole vectors across the gaps; *reversed*, loop orders
chosen from the wrong stride; *expanded*, an input that is written to although its elements share memory, and
size-1 loops that are collapsed; *shifted*, aligned loads; *odd ones*, strides that are compared although
they mean nothing.
"""

CHANNELS_LAST_RANKS = (4, 5)


@dataclass(frozen=True)
class Layout:
    """One tensor's layout: a kind, dims from outermost to innermost, and what lies between elements.

    `order` holds the dims, outermost first; `steps` for each dim of how many elements one is kept;
    `expanded` the dims with stride 0; `ones` the stride of dims of size 1 (0: as in a contiguous tensor);
    `offset` the elements of the storage before the first one. Raises ValueError for an unknown kind.
    """

    kind: str
    order: tuple[int, ...]
    steps: tuple[int, ...]
    expanded: tuple[int, ...] = ()
    ones: int = 0
    offset: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind of layout {self.kind!r}; use one of: {', '.join(KINDS)}")
        if sorted(self.order) != list(range(len(self.steps))):
            raise ValueError(f"order {self.order} does not name each of {len(self.steps)} dims once")

    def strides(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Strides in elements at the given sizes.

        >>> Layout("sliced", (0, 1), (1, 2)).strides((3, 5))
        (10, 2)
        """
        found = [0] * len(shape)
        step = 1
        for dim in reversed(self.order):
            step *= self.steps[dim]
            found[dim] = 0 if dim in self.expanded else step
            if self.ones and shape[dim] == 1:
                found[dim] = self.ones
            step *= 1 if dim in self.expanded else max(shape[dim], 1)
        return tuple(found)


def telling_layouts(shape: Sequence[int]) -> tuple[Layout, ...]:
    """The layouts other than the contiguous one that a tensor of this shape can have, most telling first.

    Only those whose strides differ from the contiguous ones at these sizes: a transposed vector is none.

    >>> [layout.kind for layout in telling_layouts((8, 4))]
    ['transposed', 'sliced', 'rows', 'expanded', 'shifted']
    """
    rank = len(shape)
    dims, plain = tuple(range(rank)), (1,) * rank
    found = []
    if rank in CHANNELS_LAST_RANKS:
        found.append(Layout("channels last", (0, *dims[2:], 1), plain))
    if rank >= 2:
        found.append(Layout("transposed", (*dims[:-2], rank - 1, rank - 2), plain))
    if rank >= 1:
        found.append(Layout("sliced", dims, (*plain[:-1], 2)))
    if rank >= 2:
        found.append(Layout("rows", dims, (2, *plain[1:])))
    if rank >= 3:
        found.append(Layout("reversed", dims[::-1], plain))
    if rank >= 1 and shape[0] > 1:
        found.append(Layout("expanded", dims, plain, expanded=(0,)))
    if rank >= 1:
        found.append(Layout("shifted", dims, plain, offset=1))
    if 1 in shape:
        found.append(Layout("odd ones", dims, plain, ones=7))
    contiguous = _used(Layout("shifted", dims, plain).strides(shape), shape)
    odd = ("shifted", "odd ones")
    return tuple(one for one in found if one.kind in odd or _used(one.strides(shape), shape) != contiguous)


def _used(strides: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """The strides that matter: a dim of size 1 or 0 is never stepped along."""
    return tuple(step if size > 1 else 0 for step, size in zip(strides, shape, strict=True))


def arrangements(
    shapes: Sequence[Sequence[int]], kinds: Sequence[str] = tuple(KINDS)
) -> Iterator[tuple[Layout | None, ...]]:
    """Layouts for several inputs together (None: contiguous), most telling first, each once.

    In the order of `kinds`: all inputs that can have a kind at once; after all kinds, each input alone.

    >>> [[layout and layout.kind for layout in move] for move in arrangements([(4, 4), (4,)], ["sliced"])]
    [['sliced', 'sliced'], ['sliced', None], [None, 'sliced']]
    """
    telling = [{layout.kind: layout for layout in telling_layouts(shape)} for shape in shapes]
    seen = set()
    together = [tuple(can.get(kind) for can in telling) for kind in kinds]
    alone = [
        tuple(layout if k == place else None for k in range(len(shapes)))
        for move in together
        for place, layout in enumerate(move)
    ]
    for move in (*together, *alone):
        if any(move) and move not in seen:
            seen.add(move)
            yield move
