"""Higher-order operators: a branch in the place of the ``cond``, a body in the place of its loop.

Most bugs met under a ``cond`` or a loop are bugs of one body: its calls, inlined on the operands, fail just
as well and can then be cut like any others. Where the operator itself is needed, its bodies shrink in place:
a body's calls are bypassed and its results replaced by operands, which keeps every shape that the operator
checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from minimizer.case import Case
from minimizer.liveness import prune
from minimizer.program import Arg, Graph, Node, Program, Ref, TensorMeta, leaves, rename
from minimizer.reduce.cut import GETITEM, Observations, finish, reread, rereading, substitute_refs
from minimizer.reduce.dims import named
from minimizer.reduce.graph_passes import alike, stand_ins
from minimizer.reduce.proposals import Proposals


def hoist(case: Case, observed: Observations) -> Proposals:
    """Inline one body in the place of its higher-order operator; else shrink bodies in place."""
    current, again = case, True
    while again:
        again = False
        for candidate in _candidates(current, observed):
            if candidate is not None and (yield candidate):
                current, again = candidate, True
                break


def _candidates(case: Case, observed: Observations) -> Iterator[Case | None]:
    program = case.program
    for node in reversed(program.nodes):
        for graph in (leaf for leaf in leaves(node.args) if isinstance(leaf, Graph)):
            inlined = inline(program, node, graph.name)
            yield None if inlined is None else finish(case, prune(inlined), observed)
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
