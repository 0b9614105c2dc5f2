"""Which symbols a cut-out program has, and who carries them.

A size is known to a program only where it stands alone in some input's dim. Cutting loses such carriers. A
call that still asks for the size (``view(x, [s0, 4])``) is served by one more input of that length and no
content. A dim that merely is ``4*s0`` needs nobody: export takes a multiple of a size that appears nowhere
else, and related dims stay related. Only what it cannot express so (``s0*s1``, ``s0 // 2``) becomes a size of
its own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import gt
from typing import Any

from minimizer.case import Case, Literal, Stored, Value, contiguous_stride
from minimizer.program import Input, Node, Program, State, Sym, Symbol, TensorMeta, map_args
from minimizer.source import missing_symbols
from minimizer.symbolic import Size, evaluate, free_symbols, is_symbol, linear, substitute
from strategies.values import Fill


@dataclass(frozen=True)
class Observed:
    """What eager computed for a named value of the original program, cloned at that moment.

    `value` is that of the last call, `earlier` those of the calls before it, oldest first.
    """

    meta: TensorMeta
    value: Value
    earlier: tuple[Value, ...] = ()


Observations = Mapping[str, Observed]


def observed_at(observed: Observations, turn: int) -> dict[str, Observed]:
    """What was observed in one of the earlier calls (0 = the first)."""
    return {name: Observed(o.meta, o.earlier[turn]) for name, o in observed.items() if turn < len(o.earlier)}


def named(program: Program) -> tuple[Input | State | Node, ...]:
    """Everything in the program that has a name and a value."""
    return (*program.inputs, *program.state, *program.nodes)


def map_leaves(program: Program, change: Callable[[Any], Any]) -> Program:
    """The program with every leaf of its arguments, its metas and its output changed; state stays."""

    def node(n: Node) -> Node:
        kwargs = tuple((key, map_args(value, change)) for key, value in n.kwargs)
        return replace(n, args=map_args(n.args, change), kwargs=kwargs, meta=map_args(n.meta, change))

    return replace(
        program,
        inputs=tuple(Input(i.name, change(i.meta)) for i in program.inputs),
        nodes=tuple(map(node, program.nodes)),
        output=map_args(program.output, change),
        graphs=tuple((name, map_leaves(body, change)) for name, body in program.graphs),
    )


def map_sizes(program: Program, change: Callable[[Size], Size]) -> Program:
    """The program with every size expression of its values and arguments changed; state stays."""

    def leaf(item: Any) -> Any:
        if isinstance(item, Sym):
            new = change(item.expr)
            return new if isinstance(new, int) else Sym(new)
        return meta(item) if isinstance(item, TensorMeta) else item

    def meta(item: TensorMeta) -> TensorMeta:
        return replace(item, shape=tuple(map(change, item.shape)), stride=tuple(map(change, item.stride)))

    return map_leaves(program, leaf)


def carried(program: Program) -> frozenset[str]:
    """The symbols that stand alone in some dim of an input."""
    return frozenset(str(size) for i in program.inputs for size in i.meta.shape if is_symbol(size))


def _solved(expr: Size, actual: int) -> dict[str, int]:
    form = linear(expr) if isinstance(expr, str) else None
    if form is None:
        return {}
    name, factor, offset = form
    whole, rest = divmod(actual - offset, factor)
    return {name: whole} if rest == 0 else {}


def concrete_sizes(case: Case, observed: Observations) -> dict[str, int]:
    """The size of every symbol on the failing inputs: the case's own word first, then what was observed."""
    sizes: dict[str, int] = {}
    for o in observed.values():
        for expr, actual in zip(o.meta.shape, o.value.shape, strict=True):
            if is_symbol(expr):
                sizes.setdefault(str(expr), actual)
    own: dict[str, int] = {}
    for i, value in zip(case.program.inputs, case.values, strict=True):
        for expr, actual in zip(i.meta.shape, value.shape, strict=True):
            own |= {k: v for k, v in _solved(expr, actual).items() if k not in own}
    return sizes | own | case.sizes


def evaluate_all(sizes: tuple[Size, ...], known: Mapping[str, int]) -> tuple[int, ...] | None:
    """The sizes as integers, or None when a symbol is unknown or a size comes out impossible."""
    try:
        found = tuple(evaluate(size, known) for size in sizes)
    except (KeyError, ValueError, ArithmeticError):
        return None
    return tuple(int(n) for n in found) if all(n == int(n) and n >= 0 for n in found) else None


def contiguous(shape: tuple[Size, ...]) -> tuple[Size, ...]:
    """Row-major strides of a symbolic shape.

    >>> contiguous((2, "s0", 4))
    ('4*s0', 4, 1)
    """
    strides: list[Size] = []
    number, names = 1, ""
    for size in reversed(shape):
        strides.append(f"{number}*{names}" if names and number != 1 else names or number)
        if isinstance(size, int):
            number *= max(size, 1)
        else:
            text = size if is_symbol(size) else f"({size})"
            names = f"{text}*{names}" if names else text
    return tuple(reversed(strides))


def is_contiguous(meta: TensorMeta) -> bool:
    """Whether the strides are row-major whatever the symbols' sizes; strides of static dims of 1 are free."""
    names = sorted(meta.symbols.union(*(free_symbols(size) for size in meta.stride)))
    trial = {name: 101 + 10 * k for k, name in enumerate(names)}
    shape, stride = evaluate_all(meta.shape, trial), evaluate_all(meta.stride, trial)
    if shape is None or stride is None:
        return meta.stride == contiguous(meta.shape)
    plain = contiguous_stride(shape)
    return all(size == 1 or a == b for size, a, b in zip(shape, stride, plain, strict=True))


class _Replace(ast.NodeTransformer):
    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = ast.dump(ast.parse(old, mode="eval").body), new

    def visit(self, node: ast.AST) -> ast.AST:
        return ast.Name(self.new) if ast.dump(node) == self.old else self.generic_visit(node)


def _replacing(expr: str, name: str, inverse: Mapping[str, Size]) -> Callable[[Size], Size]:
    replacer = _Replace(expr, name)
    cache: dict[Size, Size] = {}

    def change(size: Size) -> Size:
        if isinstance(size, int) or not free_symbols(expr) <= free_symbols(size):
            return size
        if size not in cache:
            text = ast.unparse(replacer.visit(ast.parse(size, mode="eval").body))
            cache[size] = name if text == name else substitute(text, inverse)
        return cache[size]

    return change


def own_symbol(
    program: Program, expr: str, known: Mapping[str, Symbol], sizes: Mapping[str, int]
) -> tuple[Program, Symbol]:
    """The program in which a composite size is a symbol of its own, and that symbol.

    Other sizes that speak of its symbol follow: where ``4*s0`` becomes ``d0``, ``8*s0`` is ``8 * (d0 // 4)``.
    """
    name = _unused_name(program)
    inverse: dict[str, Size] = {}
    if form := linear(expr):
        symbol, factor, offset = form
        top = f"({name} - {offset})" if offset > 0 else f"({name} + {-offset})" if offset else name
        inverse[symbol] = f"{top} // {factor}" if factor != 1 else top
    changed = map_sizes(program, _replacing(expr, name, inverse))
    return changed, _range_of(expr, name, known, sizes)


def _own_strides(meta: TensorMeta, sizes: Mapping[str, int]) -> TensorMeta:
    """The meta with strides that speak of the shape's own symbols only: export can't tell others."""
    foreign = [step for step in meta.stride if not free_symbols(step) <= meta.symbols]
    if not foreign:
        return meta
    fixed = evaluate_all(tuple(foreign), sizes)
    if fixed is None:
        return replace(meta, stride=contiguous(meta.shape))
    new: dict[Size, Size] = dict(zip(foreign, fixed, strict=True))
    return replace(meta, stride=tuple(new.get(step, step) for step in meta.stride))


def _range_of(expr: str, name: str, known: Mapping[str, Symbol], sizes: Mapping[str, int]) -> Symbol:
    """The symbol that stands for an expression; monotone expressions are assumed."""
    actual = evaluate_all((expr,), sizes)
    hint = evaluate_all((expr,), {k: s.hint for k, s in known.items()}) or actual or (2,)
    low = evaluate_all((expr,), {k: s.low for k, s in known.items()})
    highs = {k: s.high for k, s in known.items() if s.high is not None}
    high = evaluate_all((expr,), highs)
    seen = hint + (actual or ())
    if low is None or low[0] > min(seen) or (high is not None and high[0] < max(seen)):
        return Symbol(name, min(2, *seen), None, hint[0])
    return Symbol(name, low[0], None if high is None else high[0], hint[0])


def _unused_name(program: Program) -> str:
    taken = {s.name for s in program.symbols}
    taken |= {record.name for record in named(program)}
    for i in program.inputs:
        taken |= i.meta.symbols
    return next(f"d{k}" for k in range(len(taken) + 1) if f"d{k}" not in taken)


def size_carriers(program: Program, sizes: Mapping[str, int]) -> dict[Input, Value] | None:
    """The extra inputs that give the sizes which calls ask for and nobody has; None when one is unknown."""
    extra: dict[Input, Value] = {}
    metas = [i.meta for i in program.inputs] + [s.meta for s in program.state]
    device = metas[0].device if metas else "cpu"
    for name in sorted(missing_symbols(program)):
        if name not in sizes:
            return None
        carrier = Input(f"size_of_{name}", TensorMeta("int8", (name,), (1,), device))
        extra[carrier] = Value("int8", (sizes[name],), Fill("zeros"), device=device)
    return extra


def settle(program: Program, before: Program, sizes: Mapping[str, int]) -> Program:
    """Give each symbol of the inputs its range, and strides and odd dims that lost theirs something else.

    `before` is the program that this one was cut from: an odd dim that stood there uncarried stays.
    """
    old = {(i.name, i.meta) for i in before.inputs}
    lone_before = carried(before)
    known = {s.name: s for s in before.symbols} | {s.name: s for s in program.symbols}
    sizes = dict(sizes)
    while True:
        have = carried(program)
        lost = [
            size
            for i in program.inputs
            for size in i.meta.shape
            if isinstance(size, str)
            and linear(size) is None
            and not free_symbols(size) <= have
            and ((i.name, i.meta) not in old or free_symbols(size) <= lone_before)
        ]
        if not lost:
            break
        expr = min(lost, key=len)
        program, symbol = own_symbol(program, expr, known, sizes)
        known[symbol.name] = symbol
        if actual := evaluate_all((expr,), sizes):
            sizes[symbol.name] = actual[0]
    dims = [size for i in program.inputs for size in i.meta.shape]
    names = dict.fromkeys(name for size in dims for name in sorted(free_symbols(size)))
    symbols = tuple(known.get(name) or _ordinary(name, sizes.get(name, 2)) for name in names)
    inputs = tuple(replace(i, meta=_own_strides(i.meta, sizes)) for i in program.inputs)
    return replace(program, symbols=symbols, inputs=inputs)


def _ordinary(name: str, size: int) -> Symbol:
    """A size that the program used to compute from data, now given from outside."""
    return Symbol(name, min(2, size), None, max(size, 2))


def resized(value: Value, shape: tuple[int, ...], stride: tuple[int, ...] | None) -> Value | None:
    """The value's leading elements in another shape; None where it has fewer.

    >>> from minimizer.case import Literal
    >>> resized(Value("int64", (2, 2), Literal((1, 2, 3, 4))), (2, 1), None).data
    Literal(elements=(1, 3))
    """
    if value.shape == shape:
        return value
    if isinstance(value.data, Fill):
        return replace(value, shape=shape, stride=stride)
    if len(shape) != len(value.shape) or any(map(gt, shape, value.shape)):
        return None
    if isinstance(value.data, Stored):
        return replace(value, shape=shape, stride=stride, take=shape)
    whole = value.take or value.shape
    elements = Literal(tuple(_leading(list(value.data.elements), whole, shape)))
    return replace(value, shape=shape, stride=stride, take=None, data=elements)


def _leading(elements: list[Any], whole: tuple[int, ...], shape: tuple[int, ...]) -> list[Any]:
    if not shape:
        return elements
    block = len(elements) // whole[0] if whole[0] else 0
    rows = (elements[k * block : (k + 1) * block] for k in range(shape[0]))
    return [item for row in rows for item in _leading(row, whole[1:], shape[1:])]
