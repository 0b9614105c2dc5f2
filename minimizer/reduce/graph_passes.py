"""Passes over the calls: from cuts that halve the program to the one call too many.

Coarse passes guess what bugs look like (one call; a neighbourhood; two calls far apart) and pay a logarithm
for it. `cut_one` and `bypass` then try every single call, which is what makes the result 1-minimal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

import networkx as nx

from minimizer.case import Case
from minimizer.program import Node, Program, TensorMeta
from minimizer.reduce.cut import GETITEM, Observations, keep, rewire, slice_outputs, units
from minimizer.reduce.dims import named
from minimizer.reduce.proposals import Proposals, attempt, fewest, one_by_one

FEW = 8
"""Programs of no more calls than this are left to the passes that try every call."""


def fewer_outputs(case: Case, observed: Observations) -> Proposals:
    """Return fewer values, and compute only what these need."""
    outputs = case.program.outputs
    if len(outputs) > 1:
        yield from fewest(outputs, lambda chosen: slice_outputs(case, chosen, observed))


def window(case: Case, observed: Observations) -> Proposals:
    """The shortest failing prefix, then its last call alone, then its shortest failing end."""
    names = units(case.program)
    low, high = 0, len(names)
    while high - low > 1:
        middle = (low + high) // 2
        if (yield from attempt(keep(case, names[:middle], observed))):
            high = middle
        else:
            low = middle
    short, long, size = 0, high, 1
    while size < long:
        if (yield from attempt(keep(case, names[high - size : high], observed))):
            long = size
        else:
            short, size = size, size * 2
    while long - short > 1:
        middle = (short + long) // 2
        if (yield from attempt(keep(case, names[high - middle : high], observed))):
            long = middle
        else:
            short = middle


def leap(case: Case, observed: Observations) -> Proposals:
    """From the last call backwards, read the farthest earlier value of the same shape that still fails.

    In a chain of equal shapes this finds the needed calls and leaves them joined, one by one by bisection.
    """
    if len(units(case.program)) < 3:
        return
    current, wanted, seen, misses = case, [units(case.program)[-1]], set[str](), 0
    while wanted and misses < 2:
        name = wanted.pop(0)
        reader = _node(current.program, name)
        if reader is None or name in seen:
            continue
        seen.add(name)
        for operand in reader.inputs:
            chosen, after = operand, current
            low, earlier = 0, _ancestors_alike(current.program, operand)
            high = middle = len(earlier)
            while low < high:
                middle = 0 if (low, high) == (0, len(earlier)) else (low + high) // 2
                candidate = rewire(current, operand, earlier[middle], observed)
                if candidate is not None and (yield candidate):
                    chosen, after, high = earlier[middle], candidate, middle
                else:
                    low = middle + 1
            misses = 0 if after is not current else misses + bool(earlier)
            current = after
            wanted.append(chosen)


def modules(case: Case, observed: Observations) -> Proposals:
    """Keep the calls of as few modules as possible, from the outermost modules inwards."""
    current = case
    depth = 1 + max((n.module.count(".") for n in case.program.nodes if n.module), default=-1)
    for level in range(1, depth + 1):
        groups: dict[str, list[str]] = {}
        paths = {n.name: n.module for n in current.program.nodes}
        names = units(current.program)
        for name in names:
            groups.setdefault(".".join(paths[name].split(".")[:level]), []).append(name)
        if len(groups) < 2 or len(names) <= FEW:
            continue
        build = partial(_keep_groups, current, groups, observed)
        chosen = yield from fewest(tuple(groups), build)
        current = (build(chosen) if len(chosen) < len(groups) else None) or current


def _keep_groups(
    case: Case, groups: Mapping[str, list[str]], observed: Observations, chosen: tuple[str, ...]
) -> Case | None:
    return keep(case, {name for group in chosen for name in groups[group]}, observed)


def subset(case: Case, observed: Observations) -> Proposals:
    """Needed calls that lie far apart: first and last alone, then the few in between that matter."""
    names = units(case.program)
    if len(names) < 3:
        return
    yield from fewest(names[1:-1], lambda chosen: keep(case, chosen, observed), needed=(names[0], names[-1]))


def cut_one(case: Case, observed: Observations) -> Proposals:
    """Drop each call by itself, until none can be spared."""
    current, names = case, units(case.program)
    place, misses = len(names) - 1, 0
    while misses < len(names):
        candidate = keep(current, set(names) - {names[place]}, observed)
        if candidate is not None and (yield candidate):
            current, names, misses = candidate, units(candidate.program), 0
        else:
            misses += 1
        place = (min(place, len(names)) - 1) % max(len(names), 1)


def stand_ins(program: Program, node: Node) -> tuple[str, ...]:
    """The operands that could take the place of a call's result: same shape, dtype and device."""
    source = node
    if node.target == GETITEM and node.inputs:
        source = _node(program, node.inputs[0]) or node
    metas = {record.name: record.meta for record in named(program)}
    return tuple(name for name in source.inputs if alike(metas.get(name), node.meta))


def alike(one: object, other: object) -> bool:
    """Whether two values agree in shape, dtype and device."""
    if not isinstance(one, TensorMeta) or not isinstance(other, TensorMeta):
        return False
    return replace(one, stride=()) == replace(other, stride=())


def bypasses(case: Case, observed: Observations) -> Iterator[tuple[str, str, Case | None]]:
    """Each way to let a call's readers read one of its operands instead: (call, operand, candidate)."""
    for node in reversed(case.program.nodes):
        for operand in stand_ins(case.program, node):
            yield node.name, operand, rewire(case, node.name, operand, observed)


def bypass(case: Case, observed: Observations) -> Proposals:
    """Let the readers of a call read one of its operands instead, last call first."""
    yield from one_by_one(case, lambda current: (cut for _, _, cut in bypasses(current, observed)))


def plain_outputs(case: Case, observed: Observations) -> Proposals:
    """Return one value, or a plain tuple, in the place of nested containers; then drop outputs one by one."""
    current = case
    flat = slice_outputs(case, case.program.outputs, observed)
    if flat is not None and (yield flat):
        current = flat
    yield from one_by_one(current, lambda case: (less for _, less in without_each_output(case, observed)))


def without_each_output(case: Case, observed: Observations) -> Iterator[tuple[str, Case | None]]:
    """Each output by name, with the case that neither returns nor computes it (None for the only one)."""
    outputs = case.program.outputs
    for name in outputs:
        yield name, slice_outputs(case, set(outputs) - {name}, observed)


def _node(program: Program, name: str) -> Node | None:
    return next((n for n in program.nodes if n.name == name), None)


def _ancestors_alike(program: Program, name: str) -> tuple[str, ...]:
    """The values that `name` was computed from and that look like it, in order of definition."""
    flow = nx.DiGraph((source, n.name) for n in program.nodes for source in n.inputs)
    found = nx.ancestors(flow, name) if name in flow else set()
    metas = {record.name: record.meta for record in named(program)}
    order = [i.name for i in program.inputs] + [n.name for n in program.nodes]
    return tuple(x for x in order if x in found and alike(metas[x], metas[name]))
