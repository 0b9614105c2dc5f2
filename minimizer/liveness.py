"""What of a program is alive: what its outputs, its inputs and its state depend on.

Writing makes this more than reachability: a call that nothing reads is alive when what it writes to is read,
returned, or belongs to the caller, through whatever views.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from minimizer.program import (
    CHECK,
    Graph,
    Node,
    Program,
    leaves,
    meta_symbols,
    references,
    sym_symbols,
)


def prune(program: Program) -> Program:
    """Drop what nothing uses: dead calls, unread inputs and state, symbols of no input, unused bodies.

    A call that writes to one of its arguments, and an assertion on something alive, is alive when
    what it writes to is read, returned, or belongs to the caller.
    """
    alive = set(program.outputs)
    kept: list[Node] = []
    caller = {i.name for i in program.inputs} | {s.name for s in program.state}
    bases = alias_bases(program)
    written = {bases.get(name, name) for name in alive}
    for node in reversed(program.nodes):
        targets = {bases.get(name, name) for name in _written(node)}
        if node.name in alive or targets & (caller | written):
            kept.append(node)
            alive |= set(node.inputs)
            written |= {bases.get(name, name) for name in node.inputs}
    metas = [node.meta for node in kept] + [i.meta for i in program.inputs]
    given = frozenset().union(*(meta_symbols(meta) for meta in metas), frozenset())
    kept_names = {node.name for node in kept}
    nodes = tuple(
        node
        for node in program.nodes
        if node.name in kept_names or (node.target == CHECK and sym_symbols(node.args) <= given)
    )
    passed = frozenset().union(*(sym_symbols((n.args, tuple(n.kwargs), n.meta)) for n in nodes), frozenset())
    used_graphs = graphs_used(nodes)
    inputs = tuple(i for i in program.inputs if i.name in alive)
    # A size that only a dead input carried still needs a carrier: keep the first input that has it.
    carried = frozenset().union(*(i.meta.symbols for i in inputs), frozenset())
    needed = frozenset().union(
        *(sym_symbols((n.args, tuple(n.kwargs))) for n in nodes), sym_symbols(program.output)
    )
    for i in program.inputs:
        if i not in inputs and (i.meta.symbols & needed) - carried:
            inputs = tuple(x for x in program.inputs if x in inputs or x is i)
            carried |= i.meta.symbols
    symbols = tuple(s for s in program.symbols if s.name in carried or s.name in passed)
    flat = program.is_flat or inputs != program.inputs
    return replace(
        program,
        nodes=nodes,
        inputs=inputs,
        state=tuple(s for s in program.state if s.name in alive),
        symbols=symbols,
        args=None if flat else program.args,
        kwargs=() if flat else program.kwargs,
        graphs=tuple((name, body) for name, body in program.graphs if name in used_graphs),
    )


def graphs_used(nodes: Iterable[Node]) -> frozenset[str]:
    """The names of the bodies that some calls are given."""
    return frozenset(
        leaf.name for n in nodes for leaf in leaves((n.args, tuple(n.kwargs))) if isinstance(leaf, Graph)
    )


def _written(node: Node) -> tuple[str, ...]:
    """What a call writes to; any of its keyword arguments when it writes to one."""
    if any(k >= len(node.args) for k in node.mutates):
        return references((node.args, tuple(value for _, value in node.kwargs)))
    return references(tuple(node.args[k] for k in node.mutates))


_VIEWS = frozenset(
    """
    view reshape transpose permute t slice select squeeze unsqueeze expand as_strided alias detach
    diagonal unfold split split_with_sizes chunk unbind narrow movedim flatten unflatten view_as
    expand_as swapaxes swapdims mT adjoint real imag view_as_real view_as_complex unsafe_chunk
    contiguous to getitem
    """.split()
)


def is_view(target: str) -> bool:
    """Whether a call may return a view of its first argument."""
    parts = target.split(".")
    return len(parts) > 1 and parts[1] in _VIEWS


def alias_bases(program: Program) -> dict[str, str]:
    """For each value that may share memory with an earlier one, the earliest such value's name."""
    bases: dict[str, str] = {}
    for node in program.nodes:
        source = references(node.args[:1])
        if source and (is_view(node.target) or 0 in node.mutates):
            bases[node.name] = bases.get(source[0], source[0])
    return bases
