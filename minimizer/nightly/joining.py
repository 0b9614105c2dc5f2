"""Programs put together from fragments: calls chained one after the other, and programs side by side.

Everything is a function from records to records. Whether what comes out is legal, export decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from minimizer.case import Case, Settings, Value
from minimizer.input_space import InputSpace
from minimizer.program import Program, Ref, Symbol, TensorMeta, rename
from minimizer.symbolic import Size, evaluate, is_symbol, substitute
from strategies import Draw, telling_fills
from strategies.programs import FRESH, Plan

LETTERS = ("x", "y", "z", "w", "u", "v")
"""Names of a program's inputs; further ones are numbered."""

ALONE = "alone "
"""Stage of a call in which all members of a pool but one keep their examples; its number follows."""


@dataclass(frozen=True)
class Fragment:
    """A call of one operator as a program, and values on which PyTorch's own tests run it."""

    program: Program
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Pool:
    """Independent programs as one: `inputs` and `outputs` give each member's share of the flat ones."""

    program: Program
    inputs: tuple[slice, ...]
    outputs: tuple[slice, ...]


def prefixed(program: Program, prefix: str) -> Program:
    """The program with every value and symbol renamed. Raises ValueError for one with nested graphs."""
    if program.graphs:
        raise ValueError("a program with nested graphs cannot be put beside others")
    names = {r.name: prefix + r.name for part in (program.inputs, program.state, program.nodes) for r in part}
    return rename(program, names, {s.name: prefix + s.name for s in program.symbols})


def side_by_side(programs: Sequence[Program]) -> Pool:
    """Independent programs as one, with inputs and outputs in order. Raises ValueError as `prefixed`."""
    parts = [prefixed(program, f"m{k}_") for k, program in enumerate(programs)]
    inputs, outputs = [], []
    first_in = first_out = 0
    for part in parts:
        width = len(part.outputs)
        inputs.append(slice(first_in, first_in + len(part.inputs)))
        outputs.append(slice(first_out, first_out + width))
        first_in, first_out = first_in + len(part.inputs), first_out + width
    program = Program(
        inputs=tuple(i for part in parts for i in part.inputs),
        nodes=tuple(n for part in parts for n in part.nodes),
        output=tuple(Ref(name) for part in parts for name in part.outputs),
        state=tuple(s for part in parts for s in part.state),
        symbols=tuple(s for part in parts for s in part.symbols),
    )
    return Pool(program, tuple(inputs), tuple(outputs))


def chained(plan: Plan, fragments: Sequence[Fragment]) -> Case:
    """The program that a plan describes, its calls given as fragments in order, with values to start from.

    An argument whose source does not fit becomes an input of its own. What nothing reads is returned.
    """
    done: Program = Program((), (), ())
    known: dict[str, Value] = {}
    results: list[str] = []
    for k, (call, fragment) in enumerate(zip(plan.calls, fragments)):
        part = prefixed(fragment.program, f"c{k}_")
        samples = dict(zip((i.name for i in part.inputs), fragment.values))
        sources = _sources(part, call.feeds, results, done)
        part, fed = _feed(part, sources, done)
        known |= {name: value for name, value in samples.items() if name not in fed}
        done = _after(done, part, fed)
        results += part.outputs
    read = {name for n in done.nodes for name in n.inputs}
    left = [name for name in dict.fromkeys(results) if name not in read]
    program = replace(done, output=tuple(Ref(name) for name in left))
    values = tuple(_value(program, k, known[i.name]) for k, i in enumerate(program.inputs))
    return Case(_plainly_named(program), values, Settings())


def _sources(part: Program, feeds: Sequence[int], results: Sequence[str], done: Program) -> dict[str, str]:
    """For the inputs of a fragment that a plan feeds, the earlier result that it names."""
    found = {}
    for i, back in zip(part.inputs, feeds):
        if back != FRESH and back <= len(results):
            found[i.name] = results[-back]
    return found


def _feed(part: Program, sources: Mapping[str, str], done: Program) -> tuple[Program, dict[str, str]]:
    """The fragment with its sizes made those of its sources, and the sources that fit."""
    fed: dict[str, str] = {}
    sizes: dict[str, Size] = {}
    for i in part.inputs:
        source = sources.get(i.name)
        meta = done.meta_of(source) if source is not None else None
        if source is None or not isinstance(meta, TensorMeta) or meta.dtype != i.meta.dtype:
            continue
        new = unified(i.meta, meta, sizes)
        if new is not None:
            sizes, fed[i.name] = new, source
    return rename(part, {}, sizes), fed


def unified(wanted: TensorMeta, given: TensorMeta, sizes: Mapping[str, Size]) -> dict[str, Size] | None:
    """`sizes` and what the symbols of `wanted` must be besides for its shape to be `given`'s; None: no."""
    if len(wanted.shape) != len(given.shape):
        return None
    found = dict(sizes)
    for size, actual in zip(wanted.shape, given.shape):
        if is_symbol(size) and isinstance(size, str) and size not in found:
            found[size] = actual
    same = all(substitute(size, found) == actual for size, actual in zip(wanted.shape, given.shape))
    return found if same else None


def _after(done: Program, part: Program, fed: Mapping[str, str]) -> Program:
    """Both programs as one, with the fed inputs of the second read from the first."""
    nodes = rename(part, dict(fed), {}).nodes
    return Program(
        inputs=done.inputs + tuple(i for i in part.inputs if i.name not in fed),
        nodes=done.nodes + nodes,
        output=(),
        state=done.state + part.state,
        symbols=_both(done.symbols, part.symbols),
    )


def _both(first: tuple[Symbol, ...], second: tuple[Symbol, ...]) -> tuple[Symbol, ...]:
    """All symbols once; one that both have keeps its first example and must satisfy both ranges."""
    known = {s.name: s for s in first}
    for s in second:
        one = known.get(s.name, s)
        highs = [high for high in (one.high, s.high) if high is not None]
        high = min(highs) if highs else None
        known[s.name] = Symbol(s.name, max(one.low, s.low), high, one.hint)
    return tuple(known.values())


def _value(program: Program, k: int, sample: Value) -> Value:
    """The sample where it has the size that the input has at the hints, else plain values of that size."""
    hints = {s.name: s.hint for s in program.symbols}
    shape = tuple(int(evaluate(size, hints)) for size in program.inputs[k].meta.shape)
    if shape == sample.shape:
        return sample
    space = InputSpace(program)
    fills = tuple(telling_fills(*spec)[0] for spec in space.specs)
    return space.values(Draw(tuple(hints.items()), fills))[k]


def _plainly_named(program: Program) -> Program:
    """Inputs called x, y, z; calls by their operators; symbols s0, s1."""
    names: dict[str, str] = {}
    taken: set[str] = set()

    def give(old: str, wanted: str) -> None:
        name, k = wanted, 1
        while name in taken:
            name, k = f"{wanted}_{k}", k + 1
        taken.add(name)
        names[old] = name

    for k, i in enumerate(program.inputs):
        give(i.name, LETTERS[k] if k < len(LETTERS) else f"x{k}")
    for s in program.state:
        give(s.name, "constant")
    for n in program.nodes:
        parts = n.target.split(".")
        give(n.name, f"{parts[1] if len(parts) > 1 else parts[0]}_out")
    used = frozenset().union(*(i.meta.symbols for i in program.inputs), frozenset())
    kept = replace(program, symbols=tuple(s for s in program.symbols if s.name in used))
    return rename(kept, names, {s.name: f"s{k}" for k, s in enumerate(kept.symbols)})
