"""Sizes as export knows them: expressions over symbols, with a range and an example for each symbol."""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.utils import _pytree as pytree
from torch.utils._sympy.printers import PythonPrinter

from minimizer.build import dtype_name
from minimizer.program import Input, Program, Sym, Symbol, TensorMeta
from minimizer.symbolic import linear

_INT_OO = 2**40


def _python(expr: Any) -> str:
    text = PythonPrinter().doprint(expr).strip()
    while text.startswith("(") and text.endswith(")") and _balanced(text[1:-1]):
        text = text[1:-1]
    return text


def _balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def size_of(value: Any) -> int | str:
    """A size as an integer or an expression over symbols."""
    if isinstance(value, torch.SymInt):
        expr = value.node.expr
        return int(expr) if expr.is_number else _python(expr)
    return int(value)


def meta_of(value: Any) -> Any:
    """What a `Program` records of a node's fake value."""
    if isinstance(value, torch.Tensor):
        stride = value.stride() if value.layout == torch.strided else ()
        return TensorMeta(
            dtype=dtype_name(value.dtype),
            shape=tuple(size_of(size) for size in value.shape),
            stride=tuple(size_of(step) for step in stride),
            device=str(value.device),
        )
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        expr = value.node.expr
        return None if expr.is_number else Sym(_python(expr))
    if isinstance(value, (tuple, list)):
        return tuple(meta_of(item) for item in value)
    return None


def ranges(ep: torch.export.ExportedProgram) -> dict[str, tuple[int, int | None]]:
    """The inclusive range of each symbol; None = unbounded."""
    found = {}
    for symbol, bounds in ep.range_constraints.items():
        low, high = bounds.lower, bounds.upper
        finite = isinstance(high, sympy.Integer) and int(high) <= _INT_OO
        found[str(symbol)] = (
            max(0, int(low)) if isinstance(low, sympy.Integer) else 0,
            int(high) if finite else None,
        )
    return found


def _hints(inputs: Sequence[Input], examples: Sequence[Any]) -> dict[str, int]:
    tensors = [item for item in examples if isinstance(item, torch.Tensor)]
    alone: dict[str, int] = {}
    solved: dict[str, int] = {}
    for i, tensor in zip(inputs, tensors):
        for size, actual in zip(i.meta.shape, tensor.shape):
            form = linear(size) if isinstance(size, str) else None
            if form is not None:
                name, factor, offset = form
                into = alone if size == name else solved
                into.setdefault(name, (int(actual) - offset) // factor)
    return solved | alone


def symbols_of(inputs: Sequence[Input], ep: torch.export.ExportedProgram) -> tuple[Symbol, ...]:
    args, kwargs = ep.example_inputs or ((), {})
    hints = _hints(inputs, pytree.tree_leaves((args, kwargs)))
    bounds = ranges(ep)
    used = frozenset().union(*(i.meta.symbols for i in inputs), frozenset())
    found = []
    for name in sorted(used):
        low, high = bounds.get(name, (0, None))
        found.append(Symbol(name, low, high, hints.get(name, max(2, low))))
    return tuple(found)


def symbol_names(program: Program, names: Mapping[str, str], taken: set[str]) -> dict[str, int | str]:
    """Readable names for symbols, clear of every other name in the source."""
    fresh: dict[str, int | str] = {}
    used = set(taken)
    for k, symbol in enumerate(program.symbols):
        wanted = names.get(symbol.name, f"s{k}")
        while wanted in used or keyword.iskeyword(wanted):
            wanted += "_"
        used.add(wanted)
        fresh[symbol.name] = wanted
    return fresh
