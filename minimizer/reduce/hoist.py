"""Higher-order operators: a branch in the place of the ``cond``, a body in the place of its loop.

Most bugs met under a ``cond`` or a loop are bugs of one body: its calls, inlined on the operands, fail just
as well and can then be cut like any others. Where the operator itself is needed, its bodies shrink in place:
a body's calls are bypassed and its results replaced by operands, which keeps every shape that the operator
checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from minimizer.case import Case, Literal, Value
from minimizer.liveness import prune
from minimizer.program import Arg, Graph, Input, Node, Program, Ref, TensorMeta, leaves, rename
from minimizer.reduce.cut import GETITEM, Observations, finish, reread, rereading, substitute_refs
from minimizer.reduce.dims import Observed, named
from minimizer.reduce.graph_passes import alike, stand_ins
from minimizer.reduce.proposals import Proposals, one_by_one
from strategies.values import Fill


def hoist(case: Case, observed: Observations) -> Proposals:
    """Inline one body in the place of its higher-order operator; else shrink bodies in place."""
    yield from one_by_one(case, lambda current: _candidates(current, observed))


def _candidates(case: Case, observed: Observations) -> Iterator[Case | None]:
    program = case.program
    for node in reversed(program.nodes):
        for graph in (leaf for leaf in leaves(node.args) if isinstance(leaf, Graph)):
            inlined = inline(program, node, graph.name)
            yield None if inlined is None else finish(case, prune(inlined), observed)
            for stepped, rows in one_step(program, node, observed):
                yield finish(case, prune(stepped), {**observed, **rows})
    for name, body in program.graphs:
        for smaller in _smaller_bodies(body):
            graphs = tuple((key, smaller if key == name else old) for key, old in program.graphs)
            yield finish(case, replace(program, graphs=graphs), observed)


def inline(program: Program, node: Node, graph: str) -> Program | None:
    """The program with a body's calls in the place of the operator, or None where the operands do not fit.

    The operands are what follows the last body among the operator's arguments, as in
    ``cond(p, f, g, (x, y))`` and ``while_loop(f, g, (x,), (y,))``.
    """
    body = dict(program.graphs).get(graph)
    flat = list(leaves(node.args))
    last = max(k for k, leaf in enumerate(flat) if isinstance(leaf, Graph))
    operands = flat[last + 1 :]
    if (
        body is None
        or len(operands) != len(body.inputs)
        or {n for n, _ in body.graphs} & dict(program.graphs).keys()
    ):
        return None
    metas = {record.name: record.meta for record in named(program)}
    for operand, i in zip(operands, body.inputs, strict=True):
        meta = metas.get(operand.name) if isinstance(operand, Ref) else None
        if (
            not isinstance(meta, TensorMeta)
            or meta.dtype != i.meta.dtype
            or len(meta.shape) != len(i.meta.shape)
        ):
            return None
    items = {n.name: n.args[1] for n in program.nodes if n.target == GETITEM and n.inputs == (node.name,)}
    body = rename(body, _new_names(program, body, items), {})
    given = {i.name: operand for i, operand in zip(body.inputs, operands, strict=True)}
    results = substitute_refs(body.output, given)
    replacement: dict[str, Arg] = {node.name: results}
    if isinstance(results, (tuple, list)):
        if any(not isinstance(k, int) or not 0 <= k < len(results) for k in items.values()):
            return None
        replacement |= {name: results[k] for name, k in items.items()}
    elif items:
        return None
    calls = tuple(reread(n, given) for n in body.nodes)
    outer = rereading(program, replacement)
    place = program.nodes.index(node)
    return replace(
        outer,
        nodes=(*outer.nodes[:place], *calls, *outer.nodes[place:]),
        state=program.state + body.state,
        graphs=program.graphs + body.graphs,
    )


STEPPED = {"higher_order.map_impl": 1, "higher_order.scan": 2}
"""Operators that call their body on one slice after the other, and which argument holds what is sliced."""


def one_step(
    program: Program, node: Node, observed: Observations
) -> Iterator[tuple[Program, dict[str, Observed]]]:
    """The program that does one step of a ``map`` or ``scan`` and returns its results; nothing for others.

    First with the first rows of what is sliced, selected by calls of their own, then with rows as inputs, of
    which the second item tells what to put there. What followed the operator goes: it expects all steps. The
    arguments are ``map_impl(body, [sliced], [shared])`` and ``scan(body, [carried], [sliced], (shared))``.
    """
    place = STEPPED.get(node.target)
    body = dict(program.graphs).get(node.args[0].name) if place and isinstance(node.args[0], Graph) else None
    if place is None or body is None:
        return
    operands = [(k, operand) for k, arg in enumerate(node.args[1:], 1) for operand in arg]
    if len(operands) != len(body.inputs) or not all(isinstance(operand, Ref) for _, operand in operands):
        return
    metas = {record.name: record.meta for record in named(program)}
    rows = {ref.name: f"{ref.name}_row" for k, ref in operands if k == place}
    row_metas = {
        name: replace(metas[name], shape=metas[name].shape[1:], stride=metas[name].stride[1:])
        for name in rows
    }
    selects = [
        Node(row, "aten.select.int", (Ref(name), 0, 0), meta=row_metas[name]) for name, row in rows.items()
    ]
    body = rename(body, _new_names(replace(program, nodes=(*program.nodes, *selects)), body, {}), {})
    pairs = zip(body.inputs, operands, strict=True)
    given = {i.name: Ref(rows[ref.name]) if k == place else ref for i, (k, ref) in pairs}
    results = substitute_refs(body.output, given)
    before = program.nodes[: program.nodes.index(node)]
    calls = tuple(reread(n, given) for n in body.nodes)
    stepped = replace(
        program,
        nodes=(*before, *selects, *calls),
        output=results[0] if isinstance(results, (tuple, list)) and len(results) == 1 else results,
        state=program.state + body.state,
        graphs=program.graphs + body.graphs,
    )
    yield stepped, {}
    seen = {
        row: Observed(row_metas[name], _row(observed[name].value))
        for name, row in rows.items()
        if name in observed
    }
    if len(seen) == len(rows):
        inputs = tuple(Input(rows[name], meta) for name, meta in row_metas.items())
        yield replace(stepped, inputs=program.inputs + inputs, nodes=(*before, *calls)), seen


def _row(value: Value) -> Value:
    """A value of the shape of a row: its first one where that is known here, else ordinary numbers."""
    shape, data = value.shape[1:], value.data
    if isinstance(data, Literal):
        count = len(data.elements) // max(value.shape[0], 1)
        data = Literal(data.elements[:count])
    elif not isinstance(data, Fill):
        data = Fill("normal" if value.dtype.startswith(("float", "bfloat", "complex")) else "zeros")
    return replace(value, shape=shape, data=data, stride=None, take=None)


def _new_names(program: Program, body: Program, items: dict[str, object]) -> dict[str, str]:
    """Names for a body's values that clash with nothing; results take the names of the items they were.

    Under that name the value was observed, so later cuts can go through it.
    """
    names: dict[str, str] = {}
    made = {n.name for n in body.nodes}
    results = body.output if isinstance(body.output, (tuple, list)) else ()
    for item, k in items.items():
        result = results[k] if isinstance(k, int) and 0 <= k < len(results) else None
        if isinstance(result, Ref) and result.name in made:
            names.setdefault(result.name, item)
    taken = {record.name for record in named(program)}
    for record in named(body):
        if record.name not in names:
            name = record.name
            while name in taken:
                name += "_"
            names[record.name] = name
            taken.add(name)
    return names


def _smaller_bodies(body: Program) -> Iterator[Program]:
    for name in body.outputs:
        meta = body.meta_of(name)
        for i in body.inputs:
            if i.name != name and alike(i.meta, meta) and name not in {x.name for x in body.inputs}:
                yield _pruned_body(replace(body, output=substitute_refs(body.output, {name: Ref(i.name)})))
    for node in reversed(body.nodes):
        for operand in stand_ins(body, node):
            yield _pruned_body(rereading(body, {node.name: Ref(operand)}))


def _pruned_body(body: Program) -> Program:
    """Without dead calls, but with every operand: the operator passes them by position."""
    return replace(prune(body), inputs=body.inputs)
