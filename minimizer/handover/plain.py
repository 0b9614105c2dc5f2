"""Operator calls rewritten into what a person writes: ``torch.relu(x)``, ``x + y``, ``x.view(3, 4)``.

An exported graph names overloads of ATen operators. The public function of the same name does the same, but
not always through the same path (type promotion, decompositions, fusion patterns), so a rewritten program is
a candidate like any other: the caller judges it, and what does not fail alike stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any

from minimizer.handover.plain_names import FUNCTIONAL, FUNCTIONS, METHODS, OPERATORS, SUBMODULES
from minimizer.program import Device, Node, Program, Ref

_END = 2**63 - 1
_UNARY = frozenset({"neg", "bitwise_not"})
_SPREAD = frozenset({"view", "expand", "repeat"})
_DEFAULTS: dict[str, Callable[[Any], bool]] = {
    "layout": lambda value: value is None or getattr(value, "name", "") == "strided",
    "pin_memory": lambda value: not value,
    "device": lambda value: value is None or value == Device("cpu"),
    "dtype": lambda value: value is None,
    "memory_format": lambda value: value is None or getattr(value, "name", "") == "preserve_format",
    "non_blocking": lambda value: not value,
    "implicit": lambda value: not value,
}


def spellings(node: Node) -> list[Node]:
    """Plainer ways to write a call, plainest first; none for what is plain already or has no other name.

    >>> [n.target for n in spellings(Node("y", "aten.add.Tensor", (Ref("x"), 1)))]
    ['operator.add', 'torch.add']
    """
    namespace, _, rest = node.target.partition(".")
    name, _, overload = rest.partition(".")
    if namespace != "aten" or overload == "out" or overload.endswith("_out"):
        return []
    node = replace(node, kwargs=tuple((k, v) for k, v in node.kwargs if not _DEFAULTS.get(k, _never)(v)))
    found: list[Node] = []
    tensors = [arg for arg in node.args if isinstance(arg, Ref)]
    if name in OPERATORS and tensors and not node.kwargs and len(node.args) == 2 - (name in _UNARY):
        found.append(replace(node, target=OPERATORS[name]))
    if name == "rsub" and len(node.args) == 2 and not node.kwargs:
        found.append(replace(node, target="operator.sub", args=node.args[::-1]))
    found += _special(node, name)
    if name in FUNCTIONS:
        found.append(replace(node, target=f"torch.{name}"))
    elif name in FUNCTIONAL:
        found.append(replace(node, target=f"torch.nn.functional.{FUNCTIONAL[name]}"))
    elif name in METHODS and tensors and node.args[0] == tensors[0]:
        if (
            name in _SPREAD
            and len(node.args) == 2
            and isinstance(node.args[1], (list, tuple))
            and node.args[1]
        ):
            found.append(replace(node, target=f"Tensor.{name}", args=(node.args[0], *node.args[1])))
        found.append(replace(node, target=f"Tensor.{name}"))
    for prefix, module in SUBMODULES.items():
        if name.startswith(prefix):
            found.append(replace(node, target=module + name.removeprefix(prefix)))
    return found


def _never(value: Any) -> bool:
    return False


def _special(node: Node, name: str) -> list[Node]:
    """Operators whose public form takes its arguments in another way."""
    args, options = node.args, dict(node.kwargs)
    match name:
        case "_to_copy" if list(options) == ["dtype"]:
            return [replace(node, target="Tensor.to", args=(*args, options["dtype"]), kwargs=())]
        case "_softmax" | "_log_softmax" if len(args) == 3 and args[2] is False:
            return [replace(node, target=f"torch.{name[1:]}", args=args[:2])]
        case "_unsafe_view" if len(args) == 2 and isinstance(args[1], (list, tuple)) and args[1]:
            return [replace(node, target="Tensor.view", args=(args[0], *args[1]))]
        case "lift_fresh_copy":
            return [replace(node, target="torch.clone")]
        case "_local_scalar_dense":
            return [replace(node, target="Tensor.item")]
        case "index" if len(args) == 2 and args[1]:
            index = tuple(slice(None) if part is None else part for part in args[1])
            return [replace(node, target="Tensor.__getitem__", args=(args[0], index))]
        case "slice" if len(args) >= 3 and isinstance(args[1], int) and args[1] >= 0 and not options:
            start, stop, step = (*args[2:], None, None)[:3]
            part = slice(start or None, None if stop == _END else stop, None if step == 1 else step)
            index = (*(slice(None),) * args[1], part)
            return [replace(node, target="Tensor.__getitem__", args=(args[0], index))]
        case "layer_norm" if len(args) <= 5:
            return [replace(node, target="torch.nn.functional.layer_norm")]
    return []


def plain_candidates(program: Program) -> Generator[Program, bool, None]:
    """Plainer programs, most of all first; send True when one fails alike, and it goes on from there.

    First every call in its plainest form at once, then call by call, plainest form first.
    """
    everything = program
    # What is written to must be seen to be a view, and an index in brackets is not.
    writes = any(_at(program, place).mutates for place in _places(program))
    found = [(place, _spellings_at(program, place, writes)) for place in _places(program)]
    places = {place: nodes for place, nodes in found if nodes}
    for place, nodes in places.items():
        everything = _put(everything, place, nodes[0])
    if not places or (yield everything):
        return
    for place, nodes in places.items():
        for node in nodes:
            candidate = _put(program, place, node)
            if len(places) == 1 and candidate == everything:
                continue
            if (yield candidate):
                program = candidate
                break


def _spellings_at(program: Program, place: Place, writes: bool) -> list[Node]:
    found = spellings(_at(program, place))
    return [node for node in found if not (writes and node.target == "Tensor.__getitem__")]


Place = tuple[tuple[str, ...], int]
"""A call: the names of the bodies it is nested in, and its position."""


def _places(program: Program, path: tuple[str, ...] = ()) -> Iterator[Place]:
    for k in range(len(program.nodes)):
        yield path, k
    for name, body in program.graphs:
        yield from _places(body, (*path, name))


def _at(program: Program, place: Place) -> Node:
    path, k = place
    return _at(dict(program.graphs)[path[0]], (path[1:], k)) if path else program.nodes[k]


def _put(program: Program, place: Place, node: Node) -> Program:
    path, k = place
    if not path:
        return replace(program, nodes=(*program.nodes[:k], node, *program.nodes[k + 1 :]))
    graphs = [(n, _put(b, (path[1:], k), node) if n == path[0] else b) for n, b in program.graphs]
    return replace(program, graphs=tuple(graphs))
