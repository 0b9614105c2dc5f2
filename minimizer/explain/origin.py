"""From an index check to the person's own input: kernel → launch → bound → input, dim, guard, line.

What `ks1` in ``index out of bounds: 0 <= tmp7 < ks1`` means is written down in the generated code: `ks1` is a
parameter of the kernel, the launch passes `s77` for it, and the wrapper reads `s77` from dim 0 of an input.
Where the index comes from is found by following the assignments in the kernel back to its loads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from minimizer.explain.bounds import Bound
from minimizer.explain.generated import Generated, Kernel, Launch, Limits


@dataclass(frozen=True)
class Size:
    """What a symbol in a bound is: a dim of an input, and what is checked of it."""

    symbol: str
    input: str
    position: int
    dim: int
    limits: Limits | None


@dataclass(frozen=True)
class Origin:
    """An index check traced back.

    `bound` is the bound as the launch passes it; `indices` are the tensors that hold the index, `indexed` the
    one that is read or written with it, both as the wrapper names them; `others` are further kernels with the
    same check where the message names none.
    """

    kernel: str
    call: str
    line: int
    bound: str
    sizes: tuple[Size, ...] = ()
    indices: tuple[str, ...] = ()
    indexed: str = ""
    nodes: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def trace(generated: Generated, bound: Bound, kernel: str = "") -> Origin | None:
    """Trace a bound of a named kernel, or of the first kernel that has this check; None if none has."""
    text = bound.text
    having = [k for k in generated.kernels.values() if _holds(k.source, text)]
    chosen = generated.kernels.get(kernel) or (having[0] if having else None)
    if chosen is None:
        return None
    others = tuple(k.name for k in having if k.name != chosen.name) if not kernel else ()
    launch = next((found for found in generated.launches if found.kernel == chosen.name), None)
    known = generated.provenance.get(chosen.name)
    nodes = known.nodes if known else (launch.nodes if launch else ())
    passed = _passed(chosen, launch)
    high = _substitute(bound.high, passed)
    loads, indexed = _operands(chosen.source, bound)
    return Origin(
        kernel=chosen.name,
        call=f"{chosen.name}({', '.join(launch.arguments)})" if launch else "",
        line=launch.line if launch else 0,
        bound=high,
        sizes=tuple(
            _size(generated, s)
            for s in dict.fromkeys(re.findall(r"\b[su]\d+\b", high))
            if s in generated.symbols
        ),
        indices=tuple(dict.fromkeys(_tensor(passed.get(name, name)) for name in loads)),
        indexed=_tensor(passed.get(indexed, indexed)) if indexed else "",
        nodes=nodes,
        lines=known.lines if known else (),
        others=others,
    )


def _holds(source: str, text: str) -> bool:
    return re.search(rf"index out of bounds: {re.escape(text)}(?:L)?[\"'`]", source) is not None


def _passed(kernel: Kernel, launch: Launch | None) -> dict[str, str]:
    return dict(zip(kernel.parameters, launch.arguments)) if launch else {}


def _substitute(expression: str, passed: dict[str, str]) -> str:
    return re.sub(r"\b(?:ks|in_ptr|out_ptr|in_out_ptr)?\w+\b", lambda m: passed.get(m[0], m[0]), expression)


def _tensor(argument: str) -> str:
    """``(const float*)(arg1_1.data_ptr())`` → ``arg1_1``."""
    match = re.search(r"(\w+)(?:\.data_ptr\(\)|\.get\(\))", argument)
    return match[1] if match else argument.strip("()& ")


def _size(generated: Generated, symbol: str) -> Size:
    name, dim = generated.symbols[symbol]
    position = generated.inputs.index(name) if name in generated.inputs else -1
    return Size(symbol, name, position, dim, generated.limits.get((name, dim)))


_ASSIGNED = re.compile(r"^[ \t]*(?:auto |const auto )?(?P<name>tmp\d+)\s*=\s*(?P<value>[^\n]+)", re.M)
_POINTER = re.compile(r"\b(?:in_out_ptr|in_ptr|out_ptr)\d+\b")


def _operands(source: str, bound: Bound) -> tuple[list[str], str]:
    """The pointers that the index is loaded from, and the pointer that it is used on after the check."""
    at = source.find(f"index out of bounds: {bound.text}")
    if at < 0:
        return [], ""
    values = {m["name"]: m["value"] for m in _ASSIGNED.finditer(source[:at])}
    waiting = re.findall(r"\btmp\d+\b", bound.index)
    seen: set[str] = set()
    loads: list[str] = []
    while waiting:
        name = waiting.pop()
        if name in seen or name not in values:
            continue
        seen.add(name)
        pointers = _POINTER.findall(values[name])
        loads += pointers
        # An index inside a load's brackets is where to read, not what is read.
        waiting += [] if pointers else re.findall(r"\btmp\d+\b", values[name])
    names = seen | set(re.findall(r"\btmp\d+\b", bound.index))
    for line in source[at:].splitlines()[1:]:
        pointer = _POINTER.search(line)
        if pointer and names & set(re.findall(r"\btmp\d+\b", line[pointer.end() :])):
            return loads, pointer[0]
    return loads, ""


def shown(name: str, inputs: Sequence[str], names: Sequence[str] = ()) -> str:
    """A tensor of the wrapper as a person knows it: ``input 1 (idx)``; `names` are the model's own names."""
    if name not in inputs:
        return f"{name} (made by the program)" if name.startswith("buf") else name
    position = list(inputs).index(name)
    own = names[position] if position < len(names) else name
    return f"input {position} ({own})"
