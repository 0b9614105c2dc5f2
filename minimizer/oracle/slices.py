"""What one recorded call should have computed: the part of the graph between its arguments and its results.

The values that flow in are those that the call was given, right or wrong, so each call is judged alone: an
earlier mistake convicts whoever made it and nobody after.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from minimizer.build import Store, clone_exact, make_tensor
from minimizer.case import Value
from minimizer.oracle.compare import Mismatch, compare_leaf
from minimizer.oracle.envelope import Envelope
from minimizer.oracle.free import Free
from minimizer.oracle.launches import Lowering
from minimizer.oracle.recorded import Step


class Unjudged(Exception):
    """There is nothing to judge a call by; the message says why."""


@dataclass(frozen=True)
class Slice:
    """A graph from `inputs` to `outputs`, with sizes as numbers.

    Names are the variables of the wrapper; `given` and `expected` are their tensors in eager. `via` are
    values of the graph that the call was not given itself and that were computed anew.
    """

    graph: torch.fx.GraphModule
    inputs: tuple[str, ...]
    given: tuple[torch.Tensor, ...]
    outputs: tuple[str, ...]
    expected: tuple[Any, ...]
    via: tuple[str, ...] = ()


class Sources:
    """Which variable of the wrapper holds which value of the graph."""

    def __init__(self, lowering: Lowering, calls: Sequence[Sequence[Any]]) -> None:
        assert lowering.graph is not None
        self.lowering = lowering
        self.graph = lowering.graph
        self.nodes = {node.name: node for node in self.graph.graph.nodes}
        placeholders = [n for n in self.graph.graph.nodes if n.op == "placeholder"]
        self.inputs = [dict(zip((n.name for n in placeholders), flat)) for flat in calls]
        self.by_variable: dict[str, torch.fx.Node] = {n.name: n for n in placeholders}
        for node in self.graph.graph.nodes:
            if node.op == "get_attr":
                self.by_variable.setdefault(re.sub(r"\W", "_", str(node.target)), node)
        for variable, name in lowering.made_by.items():
            if name in self.nodes:
                self.by_variable.setdefault(variable, self.nodes[name])
        self.reuses = lowering.reuses

    def known(self, step: Step, store: Store) -> dict[torch.fx.Node, tuple[str, torch.Tensor]]:
        """The values that a call was given, by the node that stands for each."""
        found: dict[torch.fx.Node, tuple[str, torch.Tensor]] = {}
        taken_over: dict[torch.fx.Node, tuple[str, torch.Tensor]] = {}
        for arg in step.args:
            if not isinstance(arg.before, Value) or not arg.name.isidentifier():
                continue
            tensor = make_tensor(arg.before, store)
            if arg.name in self.by_variable:
                found.setdefault(self.by_variable[arg.name], (arg.name, tensor))
            owner = self.reuses.get(arg.name)
            while owner is not None:
                if owner in self.by_variable:
                    taken_over.setdefault(self.by_variable[owner], (arg.name, tensor))
                owner = self.reuses.get(owner)
        return {**taken_over, **found}

    def results(self, step: Step) -> dict[str, tuple[torch.fx.Node, Value]]:
        """What a call has computed: for each variable, the node that stands for it and the tensor."""
        after = {arg.name: arg.after for arg in step.args if arg.after is not None} | dict(step.results)
        found: dict[str, tuple[torch.fx.Node, Value]] = {}
        if not step.kernel:
            for name, value in step.results:
                if name in self.by_variable:
                    found[name] = (self.by_variable[name], value)
            return found
        for written in self.lowering.launch_at(step.line)[0]:
            for variable in (written.buffer, written.target):
                if written.node in self.nodes and variable in after:
                    found[variable] = (self.nodes[written.node], after[variable])
        return found

    def calls(self, step: Step) -> tuple[str, ...]:
        """The operators that a call was generated from, in the order of the graph."""
        if step.kernel:
            names: Sequence[str] = self.lowering.launch_at(step.line)[1]
        else:
            names = [self.by_variable[name].name for name, _ in step.results if name in self.by_variable]
        return operators_of(self.nodes[name] for name in names if name in self.nodes)


def operators_of(nodes: Iterable[torch.fx.Node]) -> tuple[str, ...]:
    """The operators that the program was written with and that these nodes came from, each once."""
    calls = [n for n in nodes if n.op == "call_function"]
    found = [operator_name(n.meta.get("original_aten") or n.target) for n in calls]
    return tuple(dict.fromkeys(name for name in found if name != "getitem"))


def operator_name(target: Any) -> str:
    """``relu`` for ``aten.relu.default``."""
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.name.partition("::")[2]
    return str(getattr(target, "__name__", target))


def slice_of(sources: Sources, step: Step, store: Store) -> Slice:
    """The graph between what a call was given and what it has computed. Raises Unjudged."""
    results = sources.results(step)
    if not results:
        raise Unjudged("what it writes is no value of the graph")
    known = sources.known(step, store)
    targets = {node for node, _ in results.values()}
    needed = _needed(targets, known)
    own = (
        {sources.nodes.get(name) for name in sources.lowering.launch_at(step.line)[1]}
        if step.kernel
        else targets
    )
    via = [n.name for n in needed if n.op == "call_function" and n not in own and _makes_tensor(n)]
    inputs = sources.inputs[min(step.turn, len(sources.inputs) - 1)]
    return _evaluated(sources, results, known, needed, inputs, tuple(via))


def _needed(targets: set[torch.fx.Node], known: Mapping[torch.fx.Node, Any]) -> set[torch.fx.Node]:
    needed: set[torch.fx.Node] = set()
    stack = list(targets)
    while stack:
        node = stack.pop()
        if node in needed:
            continue
        needed.add(node)
        if node in targets or node not in known:
            stack += node.all_input_nodes
    return needed


def _makes_tensor(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _evaluated(
    sources: Sources,
    results: Mapping[str, tuple[torch.fx.Node, Value]],
    known: Mapping[torch.fx.Node, tuple[str, torch.Tensor]],
    needed: set[torch.fx.Node],
    inputs_of_call: Mapping[str, Any],
    via: tuple[str, ...],
) -> Slice:
    """Run the needed nodes on what was given, and copy them with every size as a number."""
    graph = torch.fx.Graph()
    values: dict[torch.fx.Node, Any] = {}
    copies: dict[torch.fx.Node, Any] = {}
    inputs: list[str] = []
    given: list[torch.Tensor] = []
    targets = {node for node, _ in results.values()}
    order = [n for n in sources.graph.graph.nodes if n in needed]
    with torch.no_grad():
        for node in order:
            if node in known and not (node in targets and node.op == "call_function"):
                name, tensor = known[node]
            elif node.op in ("placeholder", "get_attr"):
                name, tensor = node.name, _outer(node, inputs_of_call, sources.lowering.state)
            else:
                continue
            name = name if name not in inputs else f"{name}_{len(inputs)}"
            copies[node] = graph.placeholder(name)
            copies[node].meta["val"] = tensor
            inputs.append(name)
            given.append(tensor)
            values[node] = clone_exact(tensor)
        for node in order:
            if node not in values:
                _run_node(node, values, copies, graph)
    graph.output(tuple(copies[node] for node, _ in results.values()))
    expected = tuple(values[node] for node, _ in results.values())
    module = torch.fx.GraphModule(sources.graph, graph)
    return Slice(module, tuple(inputs), tuple(given), tuple(results), expected, via)


def _outer(node: torch.fx.Node, inputs: Mapping[str, Any], state: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """An input or a constant of the whole graph that the call itself was not given."""
    held = inputs.get(node.name) if node.op == "placeholder" else state.get(str(node.target))
    if not isinstance(held, torch.Tensor):
        raise Unjudged(f"{node.name} is no tensor")
    return held


def _run_node(
    node: torch.fx.Node,
    values: dict[torch.fx.Node, Any],
    copies: dict[torch.fx.Node, Any],
    graph: torch.fx.Graph,
) -> None:
    if node.op != "call_function" or isinstance(node.target, torch._ops.HigherOrderOperator):
        raise Unjudged(f"{node.name} cannot be run by itself")
    target: Any = node.target
    if isinstance(target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in target.tags:
        raise Unjudged(f"{operator_name(target)} is random")
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda n: values[n])
    try:
        value = target(*args, **kwargs)
    except Exception as problem:
        raise Unjudged(
            f"eager {operator_name(target)} raises {type(problem).__name__}: {problem}"
        ) from problem
    values[node] = value
    if isinstance(value, (bool, int, float)):
        copies[node] = value
        return
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda n: copies[n])
    if any(isinstance(leaf, torch.SymInt) for leaf in pytree.tree_leaves((args, kwargs))):
        raise Unjudged(f"{node.name} has a symbolic size inside")
    copies[node] = graph.create_node("call_function", target, args, kwargs, name=node.name)
    copies[node].meta["val"] = value


def disagreement(part: Slice, actual: Sequence[Any]) -> tuple[str, Mismatch] | None:
    """The worst disagreement of recorded results with a slice that no legal execution explains, and where."""
    envelope = Envelope(
        lambda seed, noise, promote: Free(part.graph, seed, noise, promote=promote).call(
            [clone_exact(t) for t in part.given]
        )
    )
    found: list[tuple[str, Mismatch]] = []
    for k, (name, held, expected) in enumerate(zip(part.outputs, actual, part.expected, strict=True)):
        mismatch, _ = compare_leaf(k, held, expected)
        if mismatch is None or mismatch.flavour == "stride":
            continue
        if mismatch.flavour == "shape" and held.numel() == expected.numel():
            continue  # a buffer may be laid out as another view of the value than the graph has
        judged = envelope.judge(mismatch, held, expected)
        if judged is not None:
            found.append((name, judged))
    return max(found, key=lambda item: item[1].ratio) if found else None
