"""Cutting: the program of just these calls, on the values that the whole program gave them.

A cut never asks what a call means. What a kept call reads from a dropped one becomes an input holding what
eager computed there on the failing inputs; what a dropped call read from a kept one becomes an output, so
that nothing kept turns into dead code. Multi-output calls are cut at their items. Every candidate is then
printed and exported afresh, so a cut may be bold: an illegal one is merely not interesting.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from minimizer.case import Case, Value, contiguous_stride, with_program
from minimizer.liveness import graphs_used, prune
from minimizer.program import (
    CHECK,
    Arg,
    Input,
    Meta,
    Node,
    Program,
    Ref,
    Sym,
    TensorMeta,
    leaves,
    map_args,
    references,
    sym_symbols,
)
from minimizer.reduce.dims import (
    Observations,
    Observed,
    concrete_sizes,
    evaluate_all,
    named,
    observed_at,
    resized,
    settle,
    size_carriers,
)
from minimizer.symbolic import Size, is_symbol

__all__ = [
    "Observations",
    "Observed",
    "finish",
    "keep",
    "rereading",
    "reread",
    "rewire",
    "slice_outputs",
    "substitute_refs",
    "units",
]

GETITEM = "operator.getitem"


def units(program: Program) -> tuple[str, ...]:
    """The names of the calls that can be kept or dropped, in order.

    Items of multi-output calls go with these, checks of data-dependent sizes with whatever makes the size.
    """
    return tuple(n.name for n in program.nodes if n.target not in (GETITEM, CHECK))


def keep(case: Case, names: Collection[str], observed: Observations) -> Case | None:
    """The case made of just the named calls, or None where that cannot be expressed.

    Parameters and buffers stay what they are, as do inputs that are still read. A call that mutates is kept
    exactly when it is named. The outputs are the kept values that were returned or that a dropped call read,
    else the last kept tensor; the nested container survives only while all that it held does.

    With calls ``a = relu(x)``, ``b = neg(a)``, ``c = exp(b)``, keeping ``{"b"}`` gives ``neg`` on an input
    named ``a``, returning ``b``.
    """
    program = case.program
    kept = _kept_nodes(program, frozenset(names))
    nodes, made = _items_for_tuples(kept, program)
    here = {n.name for n in nodes}
    output = made or _outputs(program, nodes, here)
    if output is None:
        return None
    plan = _Plan(program, here, observed)
    nodes = tuple(plan.node(n) for n in nodes)
    output = plan.arg(output)
    if plan.impossible:
        return None
    smaller = replace(program, nodes=nodes, output=output, inputs=program.inputs + tuple(plan.inputs))
    return finish(case, smaller, observed)


def finish(case: Case, program: Program, observed: Observations) -> Case | None:
    """The case of a program cut from the case's own: unread inputs, state and bodies go, sizes find carriers.

    Inputs that the case does not have take the value observed under their name. None where one is not known.
    """
    sizes = concrete_sizes(case, observed)
    read = _read(program)
    used = graphs_used(program.nodes)
    program = replace(
        program,
        inputs=tuple(i for i in program.inputs if i.name in read),
        state=tuple(s for s in program.state if s.name in read),
        graphs=tuple((name, body) for name, body in program.graphs if name in used),
    )
    extra = _new_values(case, program, observed)
    before = [_earlier_values(case, k, program, observed) for k in range(len(case.earlier))]
    if extra is None or None in before:
        return None
    carriers = size_carriers(program, sizes)
    assert carriers is not None
    program = settle(replace(program, inputs=program.inputs + tuple(carriers)), case.program, sizes)
    if [i.name for i in program.inputs] != [i.name for i in case.program.inputs]:
        program = replace(program, args=None, kwargs=())
    return with_program(case, program, extra, [values for values in before if values is not None])


def _new_values(case: Case, program: Program, observed: Observations) -> dict[str, Value] | None:
    """The values of the inputs that the case does not have, size carriers among them."""
    sizes = concrete_sizes(case, observed)
    carriers = size_carriers(program, sizes)
    if carriers is None:
        return None
    extra: dict[str, Value] = {i.name: value for i, value in carriers.items()}
    known = {i.name for i in case.program.inputs}
    for i in program.inputs:
        if i.name not in known:
            value = _observed_value(observed.get(i.name), i.meta, sizes)
            if value is None:
                return None
            extra[i.name] = value
    return extra


def _earlier_values(case: Case, k: int, program: Program, observed: Observations) -> dict[str, Value] | None:
    """What `_new_values` gives for an earlier call, and its other values where the program fixed a size."""
    turn, seen = case.turn(k), observed_at(observed, k)
    extra = _new_values(turn, program, seen)
    if extra is None:
        return None
    sizes = concrete_sizes(turn, seen)
    for i in program.inputs:
        if i.name in extra:
            continue
        shape, stride = evaluate_all(i.meta.shape, sizes), evaluate_all(i.meta.stride, sizes)
        old = turn.value_of(i.name)
        plain = old.stride is None or stride is None
        value = None if shape is None else resized(old, shape, None if plain else stride)
        if value is None:
            return None
        extra[i.name] = value
    return extra


def slice_outputs(case: Case, outputs: Collection[str], observed: Observations) -> Case | None:
    """The case returning only some of its outputs, plainly, without the calls that these do not need."""
    names = [name for name in case.program.outputs if name in outputs]
    if not names:
        return None
    return finish(case, prune(replace(case.program, output=_plain(names))), observed)


def rewire(case: Case, old: str, new: str, observed: Observations) -> Case | None:
    """The case in which whoever read `old` reads the earlier value `new`; what is then dead goes."""
    return finish(case, prune(rereading(case.program, {old: Ref(new)})), observed)


def rereading(program: Program, new: Mapping[str, Arg]) -> Program:
    """The program in which other values are read in the place of some calls, which are gone."""
    nodes = tuple(reread(n, new) for n in program.nodes if n.name not in new)
    return replace(program, nodes=nodes, output=substitute_refs(program.output, new))


def substitute_refs(arg: Arg, new: Mapping[str, Arg]) -> Arg:
    """A nested argument with references replaced."""
    return map_args(arg, lambda leaf: new.get(leaf.name, leaf) if isinstance(leaf, Ref) else leaf)


def reread(node: Node, new: Mapping[str, Arg]) -> Node:
    """A call with the values that it reads replaced."""
    kwargs = tuple((key, substitute_refs(value, new)) for key, value in node.kwargs)
    return replace(node, args=substitute_refs(node.args, new), kwargs=kwargs)


def _plain(names: Iterable[str]) -> Arg:
    refs = tuple(Ref(name) for name in names)
    return refs[0] if len(refs) == 1 else refs


def _kept_nodes(program: Program, names: frozenset[str]) -> tuple[Node, ...]:
    chosen: set[str] = set()
    for n in program.nodes:
        source = n.inputs[0] if n.target == GETITEM and n.inputs else ""
        if (source in chosen) if n.target == GETITEM else (n.name in names):
            chosen.add(n.name)
    read = {name for n in program.nodes for name in n.inputs} | set(program.outputs)
    kept = [n for n in program.nodes if n.name in chosen and (n.target != GETITEM or n.name in read)]
    here = {n.name for n in kept}
    read_here = {name for n in kept for name in n.inputs} - here
    given = _sizes_of(r.meta for r in named(program) if r.name in read_here)
    made = _sizes_of(n.meta for n in kept) - given

    def speaks_of_made(n: Node) -> bool:
        symbols = sym_symbols((n.args, tuple(n.kwargs)))
        return bool(symbols & made) and symbols <= made | given

    return tuple(n for n in program.nodes if n.name in here or (n.target == CHECK and speaks_of_made(n)))


def _sizes_of(metas: Iterable[Meta]) -> frozenset[str]:
    """The symbols that values of these kinds give: those that stand alone in a dim or are a scalar result."""
    found: list[Size] = []
    for leaf in leaves(tuple(metas)):
        found += leaf.shape if isinstance(leaf, TensorMeta) else [leaf.expr] if isinstance(leaf, Sym) else []
    return frozenset(str(size) for size in found if is_symbol(size))


def _items_for_tuples(nodes: tuple[Node, ...], program: Program) -> tuple[tuple[Node, ...], Arg]:
    """When only a multi-output call without items is left, its first tensor as an item of its own."""
    if any(isinstance(n.meta, TensorMeta) for n in nodes):
        return nodes, None
    for n in reversed(nodes):
        for k, meta in enumerate(n.meta if isinstance(n.meta, tuple) else ()):
            if isinstance(meta, TensorMeta):
                taken = {r.name for r in named(program)}
                name = next(x for x in (f"{n.name}_{k}" + "_" * j for j in range(99)) if x not in taken)
                return (*nodes, Node(name, GETITEM, (Ref(n.name), k), meta=meta)), Ref(name)
    return nodes, None


def _outputs(program: Program, nodes: tuple[Node, ...], here: set[str]) -> Arg:
    tensors = [n.name for n in nodes if isinstance(n.meta, TensorMeta)]
    returned = set(program.outputs)
    asked = {name for n in program.nodes if n.name not in here for name in n.inputs} & set(tensors)
    calls = {n.name for n in program.nodes}
    if returned & calls <= here and returned and asked <= returned:
        return program.output
    wanted = [name for name in tensors if name in asked or name in returned]
    return _plain(wanted or tensors[-1:]) if tensors else None


class _Plan:
    """What each reference becomes once only the names `here` are computed by the program itself."""

    def __init__(self, program: Program, here: set[str], observed: Observations) -> None:
        self.metas: dict[str, Meta] = {r.name: r.meta for r in named(program)}
        self.given = {i.name for i in program.inputs} | {s.name for s in program.state} | here
        self.observed = observed
        self.inputs: dict[Input, None] = {}
        self.impossible = False

    def arg(self, arg: Arg) -> Arg:
        return map_args(arg, self._leaf)

    def node(self, n: Node) -> Node:
        return replace(n, args=self.arg(n.args), kwargs=tuple((key, self.arg(v)) for key, v in n.kwargs))

    def _leaf(self, leaf: Any) -> Any:
        if not isinstance(leaf, Ref) or leaf.name in self.given:
            return leaf
        meta = self.metas.get(leaf.name)
        if isinstance(meta, Sym):
            return meta
        if isinstance(meta, TensorMeta) and leaf.name in self.observed:
            self.inputs.setdefault(Input(leaf.name, meta))
        else:
            self.impossible = True
        return leaf


def _observed_value(seen: Observed | None, meta: TensorMeta, sizes: Mapping[str, int]) -> Value | None:
    """The observed value at the case's present sizes, which may be smaller than those observed."""
    if seen is None:
        return None
    shape = evaluate_all(meta.shape, sizes)
    if shape is None or shape == seen.value.shape:
        return seen.value
    stride = evaluate_all(meta.stride, sizes)
    plain = seen.value.stride is None or stride in (None, contiguous_stride(shape))
    return resized(seen.value, shape, None if plain else stride)


def _read(program: Program) -> set[str]:
    return set(references(program.output)).union(*(n.inputs for n in program.nodes))
