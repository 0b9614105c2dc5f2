"""Passes towards what a person knows by heart: ordinary operators, dtypes and sizes, and plain data flow.

None of them makes the program shorter; each takes away something that a reader would take for a part of the
cause: an operator that could be any other, a write in place, a parameter that could be an input, half
precision, a width of 384.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from minimizer.case import Case, Literal, Scalar, Stored, Value, Values
from minimizer.liveness import alias_bases
from minimizer.program import (
    Input,
    Node,
    Program,
    Ref,
    TensorMeta,
    Torch,
    map_args,
)
from minimizer.reduce.cut import Observations, finish, reread, substitute_refs
from minimizer.reduce.dims import contiguous, is_contiguous, map_leaves, resized
from minimizer.reduce.plainness import PLAIN_DTYPE, plain_twin, takes_number
from minimizer.reduce.proposals import Proposals, one_by_one


def plain_operators(case: Case, observed: Observations) -> Proposals:
    """A negation, an addition or a sum in the place of other calls of the same form.

    The last call that is left stays what it is: it is what the report is about.
    """

    def options(current: Case) -> Iterator[Case | None]:
        nodes = current.program.nodes
        if current.program.operator_count < 2:
            return
        for place in reversed(range(len(nodes))):
            twin = plain_twin(nodes[place])
            if twin is not None:
                changed = (*nodes[:place], twin, *nodes[place + 1 :])
                yield finish(current, replace(current.program, nodes=changed), observed)

    yield from one_by_one(case, options)


def functional(case: Case, observed: Observations) -> Proposals:
    """A call that gives a new value in the place of one that writes to its first argument."""

    def options(current: Case) -> Iterator[Case | None]:
        for node in reversed(current.program.nodes):
            changed = without_write(current.program, node)
            yield None if changed is None else finish(current, changed, observed)

    yield from one_by_one(case, options)


def without_write(program: Program, node: Node) -> Program | None:
    """The program in which a call ``add_(x, y)`` is ``add(x, y)`` and what followed reads its result for x.

    None where the call does not write to its first argument alone, or writes to a view: then more than one
    name stands for what it wrote to.
    """
    space, _, rest = node.target.partition(".")
    name, _, overload = rest.partition(".")
    written = node.args[0] if node.args else None
    if node.mutates != (0,) or not name.endswith("_") or not isinstance(written, Ref):
        return None
    bases = alias_bases(program)
    if any(
        bases.get(n.name) == bases.get(written.name, written.name) for n in program.nodes if n is not node
    ):
        return None
    place = program.nodes.index(node)
    pure = replace(node, target=f"{space}.{name.rstrip('_')}.{overload}", mutates=())
    later = {written.name: Ref(node.name)}
    rest_of = tuple(reread(n, later) for n in program.nodes[place + 1 :])
    return replace(
        program,
        nodes=(*program.nodes[:place], pure, *rest_of),
        output=substitute_refs(program.output, later),
    )


def state_as_input(case: Case, observed: Observations) -> Proposals:
    """Parameters, buffers and constants as ordinary inputs: all of them, else one by one."""
    names = [s.name for s in case.program.state]
    together = as_inputs(case, names, observed)
    if together is not None and (yield together):
        return
    current = case
    for name in names if len(names) > 1 else ():
        candidate = as_inputs(current, [name], observed)
        if candidate is not None and (yield candidate):
            current = candidate


def as_inputs(case: Case, names: list[str], observed: Observations) -> Case | None:
    """The case in which some state tensors are inputs, holding what eager saw in them."""
    program = case.program
    moved = [s for s in program.state if s.name in names]
    if not moved or any(s.name not in observed for s in moved):
        return None
    changed = replace(
        program,
        inputs=program.inputs + tuple(Input(s.name, s.meta) for s in moved),
        state=tuple(s for s in program.state if s.name not in names),
        args=None,
        kwargs=(),
    )
    return finish(case, changed, observed)


def constants(case: Case, observed: Observations) -> Proposals:
    """A number in the place of an input, as long as another input is left."""

    def options(current: Case) -> Iterator[Case | None]:
        for i in reversed(current.program.inputs if len(current.program.inputs) > 1 else ()):
            for number in (1, 0):
                typed: Scalar = float(number) if i.meta.dtype in _FLOATS else number
                yield _with_constant(current, i.name, typed, observed)

    yield from one_by_one(case, options)


def _with_constant(case: Case, name: str, number: Scalar, observed: Observations) -> Case | None:
    program = case.program
    if name in program.outputs or not all(takes_number(n, name) for n in program.nodes if name in n.inputs):
        return None
    new = {name: number}
    return finish(case, replace(program, nodes=tuple(reread(n, new) for n in program.nodes)), observed)


_FLOATS = ("float64", "float32", "float16", "bfloat16", "complex64", "complex128")


def plain_dtypes(case: Case, observed: Observations) -> Proposals:
    """float32 for all inputs of another floating dtype, int64 for all of another integer dtype."""

    def options(current: Case) -> Iterator[Case | None]:
        read = {name for node in current.program.nodes for name in node.inputs}
        for dtype in dict.fromkeys(i.meta.dtype for i in current.program.inputs if i.name in read):
            plain = PLAIN_DTYPE.get(dtype, dtype)
            yield None if plain == dtype else with_dtype(current, dtype, plain)

    yield from one_by_one(case, options)


def with_dtype(case: Case, old: str, new: str) -> Case | None:
    """The case with one dtype for another wherever it is spoken of; None where a tensor is stored."""
    program = case.program
    given = [value for values in case.sequence for value in values if value.dtype == old]
    if any(s.meta.dtype == old for s in program.state) or any(isinstance(v.data, Stored) for v in given):
        return None

    def change(leaf: Any) -> Any:
        if isinstance(leaf, TensorMeta) and leaf.dtype == old:
            return replace(leaf, dtype=new)
        return Torch(new) if leaf == Torch(old) else leaf

    calls = [tuple(_retyped(v, new) if v.dtype == old else v for v in values) for values in case.sequence]
    return replace(case, program=map_leaves(program, change), values=calls[-1], earlier=tuple(calls[:-1]))


def _retyped(value: Value, dtype: str) -> Value:
    data = value.data
    if isinstance(data, Literal):
        number: type = float if dtype in _FLOATS else int
        data = Literal(tuple(number(e) for e in data.elements if not isinstance(e, complex)))
    return replace(value, dtype=dtype, data=data)


SMALL_SIZES = (1, 2, 16)
"""Static sizes that are tried: the smallest, and one that fills a vector of bytes."""


def static_sizes(case: Case, observed: Observations) -> Proposals:
    """Make static sizes smaller, each in everything that has that size: all of them 1 at once; else 1, 2 or
    a vector of bytes, one after the other.

    There is no bisection: each step compiles anew, and it would end right at a threshold, such as the number
    of elements at which code becomes parallel, where another judge may see no failure any more.
    """
    current = case
    static = {s for i in case.program.inputs for s in i.meta.shape if isinstance(s, int) and s > 1}
    if len(static) > 1:
        ones: Case | None = case
        for size in static:
            ones = None if ones is None else with_size(ones, size, 1)
        if ones is not None and (yield ones):
            return
    for size in sorted(static, reverse=True):
        for n in (n for n in SMALL_SIZES if n < size):
            candidate = with_size(current, size, n)
            if candidate is not None and (yield candidate):
                current = candidate
                break


def with_size(case: Case, old: int, new: int) -> Case | None:
    """The case with one static size for another, in shapes and in the numbers of calls alike.

    None where a state tensor or an input with odd strides has that size: its elements are what they are.
    """
    program = case.program
    if any(old in s.meta.shape for s in program.state):
        return None
    if any(old in i.meta.shape and not is_contiguous(i.meta) for i in program.inputs):
        return None
    calls = [_with_sizes(program, values, old, new) for values in case.sequence]
    smaller = [values for values in calls if values is not None]
    if len(smaller) < len(calls):
        return None

    def number(leaf: Any) -> Any:
        return new if type(leaf) is int and leaf == old else leaf

    def meta(leaf: Any) -> Any:
        if not isinstance(leaf, TensorMeta) or old not in leaf.shape:
            return leaf
        shape = tuple(new if size == old else size for size in leaf.shape)
        return replace(leaf, shape=shape, stride=contiguous(shape))

    def node(n: Node) -> Node:
        kwargs = tuple((key, map_args(value, number)) for key, value in n.kwargs)
        return replace(n, args=map_args(n.args, number), kwargs=kwargs, meta=map_args(n.meta, meta))

    inputs = tuple(Input(i.name, meta(i.meta)) for i in program.inputs)
    changed = replace(program, inputs=inputs, nodes=tuple(map(node, program.nodes)))
    return replace(case, program=changed, values=smaller[-1], earlier=tuple(smaller[:-1]))


def _with_sizes(program: Program, values: Values, old: int, new: int) -> Values | None:
    """One call's values with the leading `new` elements of each dim of static size `old`."""
    found: list[Value] = []
    for i, value in zip(program.inputs, values, strict=True):
        sizes = zip(i.meta.shape, value.shape, strict=True)
        smaller = resized(value, tuple(new if s == old else n for s, n in sizes), None)
        if smaller is None:
            return None
        found.append(smaller)
    return tuple(found)
