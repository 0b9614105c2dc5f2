"""The inputs that a program's contract allows: sizes in range, exported strides, values by their use."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from hypothesis import strategies as st

from minimizer.case import Value, contiguous_stride
from minimizer.program import Program
from minimizer.roles import InputRole, input_roles
from minimizer.symbolic import evaluate
from strategies import Draw, Role, Symbol, draws, opening
from strategies.choices import Pick, chance
from strategies.inputs import draw_picker

MEMORY = 1 << 28
"""Bytes of all inputs together, and elements of any one value, that a drawn size may reach."""

_ITEMSIZE = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}


class InputSpace:
    """The inputs that a program's contract allows, as draws and as values."""

    def __init__(self, program: Program, mined: Sequence[int] = ()) -> None:
        self.program = program
        self.symbols = [Symbol(s.name, s.low, s.high, s.hint) for s in program.symbols]
        self.roles = input_roles(program)
        hints = {s.name: s.hint for s in program.symbols}
        self.specs = [
            (i.meta.dtype, Role(role.kind, _bound(role, hints)))
            for i, role in zip(program.inputs, self.roles)
        ]
        self.mined = tuple(mined)

    def fits(self, sizes: dict[str, int]) -> bool:
        """Whether every input has a shape at these sizes, and together they fit in memory."""
        total = 0
        for i in self.program.inputs:
            try:
                shape = [evaluate(size, sizes) for size in i.meta.shape]
            except (ZeroDivisionError, KeyError):
                return False
            if any(size < 0 or size != int(size) for size in shape):
                return False
            if _overlaps([int(size) for size in shape], [int(evaluate(s, sizes)) for s in i.meta.stride]):
                return False
            bits = re.search(r"\d+", i.meta.dtype)
            total += math.prod(int(size) for size in shape) * _ITEMSIZE.get(bits[0] if bits else "8", 8)
        return total <= MEMORY

    def values(self, draw: Draw) -> tuple[Value, ...]:
        """The values that a draw describes, laid out with the exported strides."""
        sizes = {s.name: s.hint for s in self.symbols} | draw.size_of
        return tuple(self._value(k, sizes, draw) for k in range(len(self.program.inputs)))

    def _value(self, k: int, sizes: dict[str, int], draw: Draw) -> Value:
        meta = self.program.inputs[k].meta
        shape = tuple(int(evaluate(size, sizes)) for size in meta.shape)
        stride = tuple(int(evaluate(step, sizes)) for step in meta.stride)
        bound = _bound(self.roles[k], sizes)
        if draw.ones:
            stride = tuple(draw.ones if size == 1 else step for size, step in zip(shape, stride))
        plain = None if stride == contiguous_stride(shape) else stride
        offset = draw.offset if shape and 0 not in shape else 0
        return Value(meta.dtype, shape, draw.fills[k], plain, meta.device, bound, offset=offset)

    def opening(self) -> Iterator[Draw]:
        """The fixed opening moves."""
        return opening(self.symbols, self.specs, self.mined, self.fits)

    def at_random(self, seed: str) -> tuple[list[int], Draw | None]:
        """One random description, and the choices that led to it; None where no sizes fit."""
        made: list[int] = []
        return made, self.pick(chance(seed, made))

    @cached_property
    def pick(self) -> Callable[[Pick], Draw | None]:
        """How one description is picked."""
        return draw_picker(self.symbols, self.specs, self.mined, self.fits)

    def draws(self) -> st.SearchStrategy[Draw]:
        """Everything else."""
        return draws(self.symbols, self.specs, self.mined, self.fits)


def _overlaps(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether elements share memory, repeated ones (stride 0) left aside: the strides of a slice are fixed
    when it is exported, and larger sizes no longer fit between them."""
    span = 1
    for step, size in sorted((step, size) for size, step in zip(shape, stride) if size > 1 and step > 0):
        if step < span:
            return True
        span = step * (size - 1) + span
    return False


def _bound(role: InputRole, sizes: dict[str, int]) -> int | None:
    if role.bound is None:
        return None
    try:
        return max(1, int(evaluate(role.bound, sizes)))
    except (KeyError, ZeroDivisionError):
        return None


def mine_constants(code: str) -> tuple[int, ...]:
    """Sizes at which generated code may change its way: loop steps, tile sizes, tails.

    Taken from comparisons, steps and integer casts in the C++ text; powers of the vector width among them.
    """
    found: dict[int, int] = {}
    for match in re.finditer(r"(?:<|>=|\+=|%|//|/)\s*(?:static_cast<int64_t>\()?(\d{1,4})L?\b", code):
        number = int(match[1])
        if 2 < number <= 4096:
            found[number] = found.get(number, 0) + 1
    return tuple(sorted(found, key=lambda n: -found[n])[:8])
