"""Who shares memory with whom after a call: what a later write to one tensor changes in another.

Values compare equal whether or not an output is the caller's own input, a piece of another output, or a
buffer that the next call will write over. A caller who writes into a result, or keeps it, finds out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

OUTPUT, INPUT, BEFORE = "output", "input", "output of the call before"


@dataclass(frozen=True, order=True)
class Shared:
    """Output `output` shares memory with another tensor: `kind` and position of that."""

    output: int
    kind: str
    other: int

    def __str__(self) -> str:
        return f"output {self.output} shares memory with {self.kind} {self.other}"


def _span(value: Any) -> tuple[int, int] | None:
    """The addresses from the first element to behind the last one; None where there is no memory to share."""
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or value.numel() == 0:
        return None
    if value.device.type == "meta":
        return None
    start = value.data_ptr()
    if value.is_contiguous():
        return start, start + value.nbytes
    steps = sum((size - 1) * step for size, step in zip(value.shape, value.stride()))
    return start, start + (steps + 1) * value.element_size()


def _overlap(a: tuple[int, int] | None, b: tuple[int, int] | None) -> bool:
    return a is not None and b is not None and a[0] < b[1] and b[0] < a[1]


def sharing(outputs: Sequence[Any], inputs: Sequence[Any], before: Sequence[Any] = ()) -> frozenset[Shared]:
    """All pairs of an output and an earlier output, an input, or an output that the call before returned.

    `before` must still be alive, or its memory may have been given out again.

    >>> x = torch.ones(4)
    >>> [str(pair) for pair in sharing([x * 2, x[1:]], [x])]
    ['output 1 shares memory with input 0']
    """
    spans, given, kept = ([_span(value) for value in values] for values in (outputs, inputs, before))
    found: set[Shared] = set()
    for k, span in enumerate(spans):
        for kind, others in ((OUTPUT, spans[:k]), (INPUT, given), (BEFORE, kept)):
            found.update(Shared(k, kind, j) for j, other in enumerate(others) if _overlap(span, other))
    return frozenset(found)
