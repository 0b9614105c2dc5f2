"""A program run call by call in eager, with every result shown to a watcher at the moment it is made.

Later calls may write into earlier results, so what a cut needs to know (the value that flowed along an edge)
can only be seen in passing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from minimizer.program import Device, Graph, Node, Program, Ref, Sym, TensorMeta, Torch, Tree, map_args
from minimizer.symbolic import evaluate, linear

Watcher = Callable[[str, Any], None]


def resolve(target: str) -> Callable[..., Any]:
    """The function that a target names. Raises AttributeError for an operator that is not registered."""
    head, _, rest = target.partition(".")
    if head == "operator":
        return operator.getitem if rest == "getitem" else getattr(operator, rest)
    owner: Any = {"torch": torch, "Tensor": torch.Tensor}.get(head)
    parts = rest.split(".")
    if owner is None:
        owner, parts = torch.ops, target.split(".")
    for part in parts:
        owner = getattr(owner, part)
    found: Callable[..., Any] = owner
    return found


class _Run:
    def __init__(self, program: Program, state: Mapping[str, torch.Tensor], watch: Watcher) -> None:
        self.program = program
        self.values: dict[str, Any] = dict(state)
        self.sizes: dict[str, Any] = {}
        self.bodies = dict(program.graphs)
        self.watch = watch

    def learn(self, value: Any, meta: Any) -> None:
        if isinstance(meta, TensorMeta) and isinstance(value, torch.Tensor):
            for size, actual in zip(meta.shape, value.shape):
                form = linear(size) if isinstance(size, str) else None
                if form is not None:
                    name, factor, offset = form
                    self.sizes.setdefault(name, (int(actual) - offset) // factor)
        elif isinstance(meta, Sym) and meta.expr.isidentifier():
            self.sizes.setdefault(meta.expr, value)
        elif isinstance(meta, tuple) and isinstance(value, (tuple, list)):
            for item, part in zip(value, meta):
                self.learn(item, part)

    def leaf(self, arg: Any) -> Any:
        match arg:
            case Ref(name=name):
                return self.values[name]
            case Sym(expr=expr):
                return evaluate(expr, self.sizes)
            case Torch(name=name):
                return getattr(torch, name)
            case Device(name=name):
                return torch.device(name)
            case Graph(name=name):
                return lambda *operands: interpret(self.bodies[name], operands, {}, _ignore)
        return arg

    def live(self, arg: Any) -> Any:
        """A nested argument with values for names and containers for trees."""
        return _containers(map_args(arg, self.leaf))

    def call(self, node: Node) -> Any:
        args = self.live(node.args)
        kwargs = {key: self.live(value) for key, value in node.kwargs}
        if node.target == "higher_order.cond":
            pred, on_true, on_false, operands = args
            return tuple((on_true if bool(pred) else on_false)(*operands))
        if node.target == "higher_order.while_loop":
            cond, body, carried, extra = args
            carried = tuple(carried)
            while bool(_single(cond(*carried, *extra))):
                carried = tuple(body(*carried, *extra))
            return carried
        if node.target == "higher_order.map_impl":
            body, mapped, shared = args
            rows = [body(*row, *shared) for row in zip(*(x.unbind(0) for x in mapped))]
            return tuple(torch.stack(column) for column in zip(*map(_several, rows)))
        if node.target == "higher_order.scan":
            return _scanned(*args)
        return resolve(node.target)(*args, **kwargs)


def _containers(value: Any) -> Any:
    if isinstance(value, Tree):
        items = [_containers(item) for item in value.items]
        return dict(zip(value.keys, items)) if value.type == "dict" else resolve(value.type)(items)
    if type(value) in (tuple, list):
        return type(value)(_containers(item) for item in value)
    return value


def _scanned(body: Any, carried: Any, scanned: Any, shared: Any) -> tuple[Any, ...]:
    """What ``scan`` computes: the last carried values, then what each step gave besides, stacked."""
    given = []
    for row in zip(*(x.unbind(0) for x in scanned)):
        results = _several(body(*carried, *row, *shared))
        carried, more = results[: len(carried)], results[len(carried) :]
        given.append(more)
    return (*carried, *(torch.stack(column) for column in zip(*given)))


def _several(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, (tuple, list)) else value


def _ignore(name: str, value: Any) -> None:
    pass


def interpret(
    program: Program, inputs: Sequence[Any], state: Mapping[str, torch.Tensor], watch: Watcher = _ignore
) -> Any:
    """Run a program on flat inputs and return its (nested) output.

    `watch(name, value)` sees every input, state tensor and result when it comes to be.
    """
    run = _Run(program, state, watch)
    for i, value in zip(program.inputs, inputs, strict=True):
        run.values[i.name] = value
        run.learn(value, i.meta)
        watch(i.name, value)
    for s in program.state:
        run.learn(run.values[s.name], s.meta)
        watch(s.name, run.values[s.name])
    with torch.no_grad():
        for node in program.nodes:
            value = run.call(node)
            run.values[node.name] = value
            run.learn(value, node.meta)
            watch(node.name, value)
    return run.live(program.output)
