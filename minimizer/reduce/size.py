"""What smaller means: the order in which every accepted step goes down, so that every search ends.

First what a person must read (calls, inputs, outputs, dynamic sizes, arguments), then what a machine must
hold (elements), then how plain it is (strides, values, settings). A pass may trade a later entry for an
earlier one, never the other way round.
"""

from __future__ import annotations

from typing import Any

from minimizer.case import Case, Literal, Stored, Value
from minimizer.program import Program, Tree, leaves
from minimizer.reduce.dims import is_contiguous
from minimizer.reduce.plainness import PLAIN_DTYPE, strangeness
from minimizer.symbolic import free_symbols, is_symbol
from strategies.values import KINDS, Fill

SizeKey = tuple[int, ...]

_KIND_RANK = {kind: rank for rank, kind in enumerate(KINDS)}
_STORED_COST = 10_000_000


def size_key(case: Case) -> SizeKey:
    """How large a case is, to be compared with `<`; see the module's docstring for the order."""
    program = case.program
    settings = case.settings
    values = spelled_out(case)
    read = {name for node in program.nodes for name in node.inputs}  # the other inputs just carry sizes
    return (
        program.operator_count,
        _node_count(program),
        sum(bool(node.mutates) for node in program.nodes),
        len(program.inputs) + len(program.state),
        len(program.state),
        len(program.outputs),
        _containers(program),
        len(input_symbols(program)),
        sum(not is_symbol(size) for i in program.inputs for size in i.meta.shape if isinstance(size, str)),
        sum(strangeness(node) for node in program.nodes),
        _argument_count(program),
        sum(scalar_cost(leaf) for leaf in _scalars(program)),
        sum(i.meta.dtype in PLAIN_DTYPE for i in program.inputs if i.name in read),
        sum(value.numel for value in values),
        sum(symbol.hint for symbol in program.symbols),
        sum(not is_contiguous(i.meta) for i in program.inputs),
        sum((value.stride is not None) + (value.offset > 0) for value in values),
        sum(value_cost(value) for value in values),
        len(settings.config) + len(settings.environment) + bool(settings.manner),
        len(case.earlier),
    )


def spelled_out(case: Case) -> list[Value]:
    """The values that a reader must be told: those of the last call, and in which earlier calls differ."""
    calls = list(dict.fromkeys(call for call in case.earlier if call != case.values))
    new = (v for call in calls for v, last in zip(call, case.values, strict=True) if v != last)
    return [*case.values, *new]


def input_symbols(program: Program) -> tuple[str, ...]:
    """The symbols that the inputs' dims speak of, in order."""
    sizes = [size for i in program.inputs for size in i.meta.shape]
    return tuple(dict.fromkeys(name for size in sizes for name in sorted(free_symbols(size))))


def scalar_cost(leaf: Any) -> int:
    """How far a constant argument is from one that a person would write without thinking."""
    if leaf is None or leaf is False:
        return 0
    if isinstance(leaf, (bool, int)):
        return 1 + min(abs(leaf), 3) if abs(leaf) < 3 else 8
    if isinstance(leaf, float):
        return 1 + int(leaf) if leaf in (0.0, 1.0) else 8
    return 8


def value_cost(value: Value) -> int:
    """How far a value is from one line of code; zeros are plainest, a tensor file is worst."""
    if isinstance(value.data, Fill):
        return _KIND_RANK[value.data.kind] * 16 + min(value.data.seed, 15)
    if isinstance(value.data, Literal):
        return 10_000 + sum(element_cost(e) for e in value.data.elements)
    assert isinstance(value.data, Stored)
    return _STORED_COST


def element_cost(element: Any) -> int:
    """0 for zero, 1 for one, 2 for any other number."""
    return 0 if element == 0 else 1 if element == 1 else 2


def _node_count(program: Program) -> int:
    return len(program.nodes) + sum(_node_count(body) for _, body in program.graphs)


def _containers(program: Program) -> int:
    count = 0 if program.is_flat else 1

    def visit(arg: Any) -> int:
        items = arg.items if isinstance(arg, Tree) else arg
        return 1 + sum(map(visit, items)) if isinstance(arg, (Tree, tuple, list)) else 0

    return count + visit(program.output)


def _arguments(program: Program) -> list[Any]:
    own = [arg for n in program.nodes for arg in (*n.args, *(value for _, value in n.kwargs))]
    return own + [arg for _, body in program.graphs for arg in _arguments(body)]


def _argument_count(program: Program) -> int:
    return len(_arguments(program))


def _scalars(program: Program) -> list[Any]:
    return [leaf for leaf in leaves(_arguments(program)) if isinstance(leaf, (bool, int, float))]
