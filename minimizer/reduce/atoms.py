"""Many calls at once, each by itself: one judgement that tells which single calls fail.

Most bugs need one call, and a network of hundreds of calls has a dozen kinds of them. Cut one call of each
kind from all others, feed each with what eager computed for its operands, and return all results: one small
compilation judges them all, and the positions of the wrong outputs name the culprits. A bug that needs two
calls does not show; then this has cost one judgement.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from minimizer.case import Case
from minimizer.program import Input, Node, Program, Ref, TensorMeta, map_args
from minimizer.reduce.cut import GETITEM, Observations, Observed, finish

SUFFIX = "_seen"
"""What is added to a value's name to name the input that holds it."""


def kinds(program: Program) -> tuple[str, ...]:
    """One call of each kind: same operator, constants, dtypes and ranks. Calls that write are left out."""
    found: dict[str, str] = {}
    for node in program.nodes:
        if node.is_operator and not node.mutates:
            found.setdefault(_kind(program, node), node.name)
    return tuple(found.values())


def _kind(program: Program, node: Node) -> str:
    def plain(leaf: object) -> object:
        if isinstance(leaf, Ref):
            meta = program.meta_of(leaf.name)
            return f"{meta.dtype} {len(meta.shape)}" if isinstance(meta, TensorMeta) else "?"
        return repr(leaf)

    return repr((node.target, map_args(node.args, plain), map_args(tuple(node.kwargs), plain)))


def atoms(case: Case, observed: Observations, names: Collection[str]) -> tuple[Case, tuple[str, ...]] | None:
    """The case of the named calls cut apart, and for each output the call that gives it.

    None where nothing can be cut apart. Calls whose operands were not observed are left out.
    """
    program = case.program
    made = {n.name: n for n in program.nodes}
    fresh: dict[str, Observed] = {}
    nodes: list[Node] = []
    outputs: list[str] = []
    owners: list[str] = []
    kept: set[str] = set()
    for node in program.nodes:
        if node.target == GETITEM:
            source = node.inputs[0]
            if source in kept:
                nodes.append(node)
                _returned(node, outputs, owners, source)
            continue
        if node.name not in names or any(n in made and n not in observed for n in node.inputs):
            continue
        apart = _apart(node, made, observed, fresh)
        kept.add(node.name)
        nodes.append(apart)
        _returned(apart, outputs, owners, node.name)
    if not outputs:
        return None
    inputs = tuple(Input(name, seen.meta) for name, seen in fresh.items())
    pool = replace(
        program,
        nodes=tuple(nodes),
        inputs=program.inputs + inputs,
        output=tuple(Ref(name) for name in outputs),
    )
    known: Mapping[str, Observed] = {**observed, **fresh}
    result = finish(case, pool, known)
    return None if result is None else (result, tuple(owners))


def _returned(node: Node, outputs: list[str], owners: list[str], owner: str) -> None:
    if isinstance(node.meta, TensorMeta):
        outputs.append(node.name)
        owners.append(owner)


def _apart(node: Node, made: Mapping[str, Node], observed: Observations, fresh: dict[str, Observed]) -> Node:
    """The call reading inputs of its own in place of other calls' results."""

    def change(leaf: object) -> object:
        if isinstance(leaf, Ref) and leaf.name in made:
            name = leaf.name + SUFFIX
            fresh[name] = observed[leaf.name]
            return Ref(name)
        return leaf

    kwargs = tuple((key, map_args(value, change)) for key, value in node.kwargs)
    return replace(node, args=map_args(node.args, change), kwargs=kwargs)
