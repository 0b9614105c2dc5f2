"""The program under test as frozen data: operator calls, inputs, state, symbols.

An exported graph is translated into these records once. After that a cut, a bypass or a smaller shape is
a function from record to record: hashable, comparable, written as JSON, tested without torch. Shapes are
never threaded through size operators as in FX; a size is an expression over symbols (`Sym`), so cutting a
node never leaves a dangling size behind. What is judged is the Python source printed from the records
(`minimizer.source`) and exported afresh, so every candidate is legal by construction and the repro is the
very code that was judged.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

from minimizer.symbolic import Size, free_symbols, substitute


@dataclass(frozen=True)
class Ref:
    """The value of an input, a state tensor or a node, by name."""

    name: str


@dataclass(frozen=True)
class Sym:
    """A size computed from symbols, as a Python expression."""

    expr: str


@dataclass(frozen=True)
class Torch:
    """A constant of the torch module: a dtype, a layout, a memory format."""

    name: str


@dataclass(frozen=True)
class Device:
    """A device, as torch writes it: ``cpu``, ``cuda:0``."""

    name: str


@dataclass(frozen=True)
class Graph:
    """The body of a higher-order operator, by its name in `Program.graphs`."""

    name: str


@dataclass(frozen=True)
class Tree:
    """A container that is neither a plain tuple nor a list: ``dict`` or a named tuple's qualified name."""

    type: str
    keys: tuple[Any, ...]
    items: tuple[Any, ...]


Arg = Any
"""A Ref, Sym, Torch, Device, Graph, Tree, a plain scalar or None, or a tuple or list of these."""


@dataclass(frozen=True)
class TensorMeta:
    """What export knows of a tensor: dtype and device names, shape and stride in elements."""

    dtype: str
    shape: tuple[Size, ...]
    stride: tuple[Size, ...]
    device: str = "cpu"

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset().union(*(free_symbols(size) for size in self.shape))

    def substitute(self, replacements: Mapping[str, Size]) -> TensorMeta:
        shape = tuple(substitute(size, replacements) for size in self.shape)
        stride = tuple(substitute(size, replacements) for size in self.stride)
        return replace(self, shape=shape, stride=stride)


Meta = Any
"""A TensorMeta, a Sym (a scalar result), None, or a tuple of these."""


@dataclass(frozen=True)
class Symbol:
    """A dynamic size: inclusive range (`high` None = unbounded) and its size in the example inputs."""

    name: str
    low: int
    high: int | None
    hint: int


@dataclass(frozen=True)
class Input:
    """One flat input of the program."""

    name: str
    meta: TensorMeta


@dataclass(frozen=True)
class State:
    """A parameter, a buffer or a constant. `value` names the stored tensor."""

    name: str
    kind: str
    meta: TensorMeta
    value: str


@dataclass(frozen=True)
class Node:
    """One call. `target` is ``aten.relu.default``, ``higher_order.cond`` or ``operator.getitem``.

    `mutates` lists the positions of the arguments that the call writes to; `where` is the user's own
    line, `module` the path of the module it was called in.
    """

    name: str
    target: str
    args: tuple[Arg, ...]
    kwargs: tuple[tuple[str, Arg], ...] = ()
    meta: Meta = None
    mutates: tuple[int, ...] = ()
    where: str = ""
    module: str = ""

    @property
    def is_operator(self) -> bool:
        """Whether the call counts as a node of the graph (getitem and assertions do not)."""
        return self.target not in ("operator.getitem", CHECK)

    @property
    def inputs(self) -> tuple[str, ...]:
        return references((self.args, tuple(value for _, value in self.kwargs)))


@dataclass(frozen=True)
class Program:
    """A graph of operator calls with everything that gives it meaning.

    `args` and `kwargs` say how the flat inputs are passed (nested containers included); `output` is the
    nested value returned. `graphs` holds the bodies of higher-order operators, whose inputs are positional.
    """

    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]
    output: Arg
    state: tuple[State, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    args: tuple[Arg, ...] | None = None
    kwargs: tuple[tuple[str, Arg], ...] = ()
    graphs: tuple[tuple[str, Program], ...] = field(default=())

    @property
    def operators(self) -> tuple[Node, ...]:
        """The calls that count (see `Node.is_operator`)."""
        return tuple(node for node in self.nodes if node.is_operator)

    @property
    def may_keep_state(self) -> bool:
        """Whether a call may change what the next one computes: there is state, and something is written."""
        return bool(self.state) and any(n.mutates for n in self.nodes)

    @property
    def is_flat(self) -> bool:
        """Whether inputs are passed one by one, positionally."""
        return self.args is None and not self.kwargs

    @property
    def operator_count(self) -> int:
        """The number of operator calls, those in the bodies of higher-order operators included."""
        return len(self.operators) + sum(body.operator_count for _, body in self.graphs)

    @property
    def outputs(self) -> tuple[str, ...]:
        return references(self.output)

    @property
    def dynamic_dims(self) -> int:
        """How many dims of the inputs are dynamic."""
        return sum(isinstance(size, str) for i in self.inputs for size in i.meta.shape)

    def meta_of(self, name: str) -> Meta:
        """What is known of a named value. Raises KeyError for an unknown name."""
        records: tuple[Input | State | Node, ...] = (*self.inputs, *self.state, *self.nodes)
        for record in records:
            if record.name == name:
                return record.meta
        raise KeyError(name)

    @cached_property
    def fingerprint(self) -> str:
        """A hash that renaming does not change and any other difference does."""
        return hashlib.sha256(json.dumps(to_json(canonical(self)), sort_keys=True).encode()).hexdigest()[:20]


def map_args(arg: Arg, change: Callable[[Any], Any]) -> Arg:
    """Rebuild a nested argument with `change` applied to every leaf."""
    if isinstance(arg, (tuple, list)):
        return type(arg)(map_args(item, change) for item in arg)
    if isinstance(arg, slice):
        return slice(*(map_args(part, change) for part in (arg.start, arg.stop, arg.step)))
    if isinstance(arg, Tree):
        return replace(arg, items=tuple(map_args(item, change) for item in arg.items))
    return change(arg)


def leaves(arg: Arg) -> Iterator[Any]:
    """The leaves of a nested argument, in order."""
    if isinstance(arg, (tuple, list)):
        for item in arg:
            yield from leaves(item)
    elif isinstance(arg, slice):
        yield from leaves((arg.start, arg.stop, arg.step))
    elif isinstance(arg, Tree):
        yield from leaves(arg.items)
    else:
        yield arg


def references(arg: Arg) -> tuple[str, ...]:
    """The names that a nested argument refers to, each once, in order."""
    return tuple(dict.fromkeys(leaf.name for leaf in leaves(arg) if isinstance(leaf, Ref)))


def sym_symbols(arg: Arg) -> frozenset[str]:
    """The symbols that a nested argument's sizes speak of."""
    return frozenset().union(*(free_symbols(leaf.expr) for leaf in leaves(arg) if isinstance(leaf, Sym)))


def rename(program: Program, names: Mapping[str, str], symbols: Mapping[str, Size]) -> Program:
    """The program with values renamed and symbols renamed or fixed to a number."""

    def change(leaf: Any) -> Any:
        if isinstance(leaf, Ref):
            return Ref(names.get(leaf.name, leaf.name))
        if isinstance(leaf, Sym):
            new = substitute(leaf.expr, symbols)
            return new if isinstance(new, int) else Sym(new)
        if isinstance(leaf, TensorMeta):
            return leaf.substitute(symbols)
        return leaf

    def node(n: Node) -> Node:
        kwargs = tuple((key, map_args(value, change)) for key, value in n.kwargs)
        args = map_args(n.args, change)
        return replace(
            n, name=names.get(n.name, n.name), args=args, kwargs=kwargs, meta=map_args(n.meta, change)
        )

    kept = []
    for symbol in program.symbols:
        new = symbols.get(symbol.name, symbol.name)
        if isinstance(new, str):
            kept.append(replace(symbol, name=new))
    return replace(
        program,
        inputs=tuple(Input(names.get(i.name, i.name), i.meta.substitute(symbols)) for i in program.inputs),
        state=tuple(replace(s, name=names.get(s.name, s.name)) for s in program.state),
        nodes=tuple(node(n) for n in program.nodes),
        output=map_args(program.output, change),
        args=None if program.args is None else map_args(program.args, change),
        kwargs=tuple((key, map_args(value, change)) for key, value in program.kwargs),
        symbols=tuple(kept),
        graphs=tuple((name, rename(body, {}, symbols)) for name, body in program.graphs),
    )


def canonical(program: Program) -> Program:
    """The program with values and symbols named by position, and without provenance."""
    order: dict[str, str] = {}
    for name in _symbols_in_order(program):
        order.setdefault(name, f"s{len(order)}")
    renamed = rename(_positional(program), {}, order)
    return replace(renamed, symbols=tuple(sorted(renamed.symbols, key=lambda s: int(s.name[1:]))))


def _symbols_in_order(program: Program) -> Iterator[str]:
    """The symbols as they first appear in the inputs, among the symbols, and in what calls give."""
    for i in program.inputs:
        yield from _names_in(i.meta)
    yield from (symbol.name for symbol in program.symbols)
    for node in program.nodes:
        for leaf in leaves((node.meta,)):
            yield from _names_in(leaf)


def _names_in(meta: Meta) -> Iterator[str]:
    sizes = meta.shape if isinstance(meta, TensorMeta) else (meta.expr,) if isinstance(meta, Sym) else ()
    for size in sizes:
        known = free_symbols(size)
        yield from (word for word in re.findall(r"\w+", str(size)) if word in known)


def _positional(program: Program) -> Program:
    """Values named by position, no provenance; the symbols of a body are those of the program around it."""
    names = {i.name: f"i{k}" for k, i in enumerate(program.inputs)}
    names |= {s.name: f"p{k}" for k, s in enumerate(program.state)}
    names |= {n.name: f"v{k}" for k, n in enumerate(program.nodes)}
    renamed = rename(program, names, {})
    nodes = tuple(replace(n, where="", module="") for n in renamed.nodes)
    graphs = tuple((name, _positional(body)) for name, body in renamed.graphs)
    return replace(renamed, nodes=nodes, graphs=graphs)


CHECK = "torch._check"
"""The call that bounds a data-dependent size; alive as long as that size is."""


def meta_symbols(meta: Meta) -> frozenset[str]:
    """The symbols that a recorded meta speaks of."""
    parts = (leaf.symbols if isinstance(leaf, TensorMeta) else sym_symbols(leaf) for leaf in leaves((meta,)))
    return frozenset().union(*parts)


# JSON: records as {"Ref": {...}}, tuples as lists, lists as {"list": [...]}; floats that JSON lacks by name.

_RECORDS: dict[str, type] = {
    c.__name__: c
    for c in (Ref, Sym, Torch, Device, Graph, Tree, TensorMeta, Symbol, Input, State, Node, Program)
}


def to_json(value: Any) -> Any:
    """Plain JSON data for a program or any part of it."""
    if is_dataclass(value) and not isinstance(value, type):
        plain = {}
        for f in fields(value):
            part = getattr(value, f.name)
            if part != f.default:
                plain[f.name] = to_json(part)
        return {type(value).__name__: plain}
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    if isinstance(value, list):
        return {"list": [to_json(item) for item in value]}
    if isinstance(value, slice):
        return {"slice": [to_json(part) for part in (value.start, value.stop, value.step)]}
    if isinstance(value, complex):
        return {"complex": [to_json(value.real), to_json(value.imag)]}
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"float": repr(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"cannot be stored: {type(value).__name__} {value!r}")


def from_json(data: Any) -> Any:
    """Read back what `to_json` wrote. Raises ValueError for anything else; executes nothing."""
    if isinstance(data, list):
        return tuple(from_json(item) for item in data)
    if not isinstance(data, dict):
        return data
    if len(data) != 1:
        raise ValueError(f"not a stored record: {sorted(data)}")
    ((tag, body),) = data.items()
    try:
        if tag == "list":
            return [from_json(item) for item in body]
        if tag == "slice":
            return slice(*(from_json(part) for part in body))
        if tag == "complex":
            return complex(*(from_json(part) for part in body))
        if tag == "float":
            return float(body)
        if tag in _RECORDS:
            return _RECORDS[tag](**{key: from_json(value) for key, value in body.items()})
    except (TypeError, AttributeError) as error:
        raise ValueError(f"malformed {tag}: {error}") from error
    raise ValueError(f"unknown record {tag!r}")
