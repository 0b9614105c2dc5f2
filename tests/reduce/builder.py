"""Small programs by hand: one line per call, shapes as they come."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from minimizer.case import Case, Settings, Value
from minimizer.program import Input, Node, Program, Ref, State, Symbol, TensorMeta
from minimizer.reduce.cut import Observations, Observed
from minimizer.reduce.dims import concrete_sizes, contiguous, evaluate_all
from minimizer.source import module_source, unresolved_references
from minimizer.symbolic import Size
from strategies.values import Fill

Shape = tuple[Size, ...]


def meta(shape: Shape, dtype: str = "float32") -> TensorMeta:
    return TensorMeta(dtype, shape, contiguous(shape))


@dataclass
class Builder:
    """Collects inputs and calls; `sizes` are the failing sizes of the symbols."""

    sizes: dict[str, int] = field(default_factory=dict)
    symbols: tuple[Symbol, ...] = ()
    inputs: list[Input] = field(default_factory=list)
    state: list[State] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    graphs: tuple[tuple[str, Program], ...] = ()

    def input(self, name: str, shape: Shape, dtype: str = "float32") -> Ref:
        self.inputs.append(Input(name, meta(shape, dtype)))
        return Ref(name)

    def parameter(self, name: str, shape: Shape) -> Ref:
        self.state.append(State(name, "parameter", meta(shape), f"{name}.pt"))
        return Ref(name)

    def call(self, target: str, *args: Any, shape: Any = None, name: str = "", **more: Any) -> Ref:
        """Append ``aten.<target>.default`` (or a dotted target); the shape is the first operand's."""
        full = target if "." in target else f"aten.{target}.default"
        name = name or f"{target.split('.')[-1]}_{len(self.nodes)}"
        if shape is None:
            first = next(a.name for a in args if isinstance(a, Ref))
            shape = next(r.meta for r in (*self.inputs, *self.state, *self.nodes) if r.name == first)
        elif isinstance(shape, tuple) and all(isinstance(s, (int, str)) for s in shape):
            shape = meta(shape)
        kwargs = tuple(more.pop("kwargs", {}).items())
        self.nodes.append(Node(name, full, args, kwargs, meta=shape, **more))
        return Ref(name)

    def chain(self, start: Ref, *targets: str) -> Ref:
        for target in targets:
            start = self.call(target, start)
        return start

    def value(self, m: TensorMeta) -> Value:
        shape = evaluate_all(m.shape, self.sizes)
        assert shape is not None
        return Value(m.dtype, shape, Fill("zeros"))

    def case(self, output: Any, settings: Settings | None = None) -> Case:
        program = Program(
            inputs=tuple(self.inputs),
            nodes=tuple(self.nodes),
            output=output,
            state=tuple(self.state),
            symbols=self.symbols,
            graphs=self.graphs,
        )
        return Case(program, tuple(self.value(i.meta) for i in self.inputs), settings or Settings())

    def observed(self) -> Observations:
        records = (*self.inputs, *self.state, *self.nodes)
        return {
            r.name: Observed(r.meta, self.value(r.meta)) for r in records if isinstance(r.meta, TensorMeta)
        }


def check(case: Case) -> None:
    """What every candidate must be: source that a person could run, on values of the promised shapes."""
    program = case.program
    assert not unresolved_references(program)
    ast.parse(module_source(program, {s.name: f"state[{s.name!r}]" for s in program.state}))
    sizes = concrete_sizes(case, {})
    known = {s.name: s for s in program.symbols}
    for i, value in zip(program.inputs, case.values, strict=True):
        assert i.meta.symbols <= known.keys()
        shape = evaluate_all(i.meta.shape, sizes)
        assert shape in (None, value.shape)
    for name, size in case.sizes.items():
        assert known[name].low <= size <= (known[name].high or size)


def targets(case: Case) -> list[str]:
    """The short names of the calls, in order."""
    return [n.target.split(".")[1] for n in case.program.nodes if n.is_operator]


def needs(*wanted: str) -> Callable[[Case], bool]:
    """A judge: fails as long as all these calls are there."""
    return lambda case: set(wanted) <= set(targets(case))


def in_order(*wanted: str) -> Callable[[Case], bool]:
    """A judge: fails as long as these calls are there in this order."""

    def judge(case: Case) -> bool:
        rest = iter(targets(case))
        return all(any(target == w for target in rest) for w in wanted)

    return judge
