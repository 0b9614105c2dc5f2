"""Passes over the arguments of calls: fewer of them, and constants that a person would have written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from minimizer.case import Case
from minimizer.program import Node, Ref, Sym, leaves
from minimizer.reduce.cut import GETITEM, Observations, finish
from minimizer.reduce.proposals import Proposals, one_by_one
from minimizer.reduce.size import scalar_cost

SMALLEST = 0.01
"""A float constant below this is taken for an epsilon and left alone."""


def plain_arguments(case: Case, observed: Observations) -> Proposals:
    """Leave keyword and trailing arguments out; make numbers 0, 1 or 2 and switches off."""
    current = case
    for name in [n.name for n in reversed(case.program.nodes) if n.is_operator]:
        current = yield from one_by_one(current, partial(_simpler_at, name, observed))


def _simpler_at(name: str, observed: Observations, case: Case) -> Iterator[Case | None]:
    """The case with a simpler form of one call."""
    nodes = case.program.nodes
    for node in _simpler(next(n for n in nodes if n.name == name)):
        changed = tuple(node if n.name == name else n for n in nodes)
        yield finish(case, replace(case.program, nodes=changed), observed)


def _simpler(node: Node) -> Iterator[Node]:
    if node.target == GETITEM:
        return
    for key, value in node.kwargs:
        if not any(isinstance(leaf, Ref) for leaf in leaves(value)):
            yield replace(node, kwargs=tuple(pair for pair in node.kwargs if pair[0] != key))
    # A trailing number is mostly an operand that the call cannot do without.
    if len(node.args) > 1 and (node.args[-1] is None or isinstance(node.args[-1], bool)):
        yield replace(node, args=node.args[:-1])
    for k, arg in enumerate(node.args):
        for new in _plainer(arg):
            yield replace(node, args=(*node.args[:k], new, *node.args[k + 1 :]))
    for key, value in node.kwargs:
        for new in _plainer(value):
            kwargs = tuple((name, new if name == key else old) for name, old in node.kwargs)
            yield replace(node, kwargs=kwargs)


def _plainer(arg: Any) -> Iterator[Any]:
    """Simpler constants, simplest first; what is simple already, lists and sizes are left alone."""
    options: tuple[Any, ...] = ()
    if arg is True:
        options = (False,)
    elif isinstance(arg, int) and not isinstance(arg, (bool, Sym)):
        options = (0, 1, 2) if abs(arg) > 2 else ()
    elif isinstance(arg, float):
        # Never to zero, nor a small number: without its epsilon a program divides by nothing, and fails anew.
        options = (1.0,) if abs(arg) != 1.0 and abs(arg) >= SMALLEST else ()
    yield from (new for new in options if scalar_cost(new) < scalar_cost(arg))
