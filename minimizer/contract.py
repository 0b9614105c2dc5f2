"""What the exported program promises to accept, and which promise a set of inputs breaks.

AOTI itself checks next to nothing by default and is wrong both ways when asked to, so the check is made here,
on descriptions, before anything is called a compiler bug.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from minimizer.case import Value, contiguous_stride
from minimizer.program import Program, TensorMeta
from minimizer.symbolic import evaluate, free_symbols, linear


@dataclass(frozen=True)
class Misuse:
    """One broken promise: which input, what was expected, what came, and how to fix it, in a line each."""

    input: str
    expected: str
    actual: str
    fix: str

    def __str__(self) -> str:
        return f"{self.input}: expected {self.expected}, got {self.actual}; {self.fix}"


def check(program: Program, values: Sequence[Value], names: Sequence[str] = ()) -> Misuse | None:
    """The first promise that the values break, or None when they keep all that can be told from shapes.

    `names` are what the person calls the inputs; the program's own names unless given.
    """
    names = names or [i.name for i in program.inputs]
    if len(values) != len(program.inputs):
        return Misuse(
            "inputs",
            f"{len(program.inputs)} tensors ({', '.join(names)})",
            f"{len(values)}",
            "pass every argument that the program was exported with",
        )
    inputs = [(name, i.meta, value) for name, i, value in zip(names, program.inputs, values)]
    sizes: dict[str, tuple[int, str]] = {}
    for name, meta, value in inputs:
        broken = _check_one(name, meta, value) or _learn(name, meta, value, sizes)
        if broken:
            return broken
    for name, meta, value in inputs:
        broken = _solve(name, meta, value, sizes)
        if broken:
            return broken
    known = {name: size for name, (size, _) in sizes.items()}
    for symbol in program.symbols:
        if symbol.name in known:
            broken = _check_range(symbol.name, symbol.low, symbol.high, known[symbol.name], sizes)
            if broken:
                return broken
    for name, meta, value in inputs:
        broken = _check_expressions(name, meta, value, known)
        if broken:
            return broken
    return None


def guard_refuses(said: str) -> Misuse:
    """The refusal of one of the exported program's own guards, which no description of tensors could tell.

    >>> guard_refuses("Guard failed: x.size()[0] % 8 == 0").expected
    'x.size()[0] % 8 == 0 (a guard of the exported program)'
    """
    first = next(iter(said.splitlines()), "")
    guard = first.removeprefix("Guard failed: ")
    fix = "pass inputs that keep it, or export again without what asks for it"
    return Misuse("inputs", f"{guard} (a guard of the exported program)", "inputs that break it", fix)


def laid_out(program: Program, values: Sequence[Value]) -> tuple[Value, ...]:
    """The values with the strides that the program was exported with, where their sizes tell them.

    For values from files that store elements and no strides.
    """
    sizes: dict[str, tuple[int, str]] = {}
    pairs = list(zip(program.inputs, values))
    for learn in (_learn, _solve):
        for i, value in pairs:
            learn(i.name, i.meta, value, sizes)
    known = {name: size for name, (size, _) in sizes.items()}
    placed = [_placed(i.meta, value, known) for i, value in pairs]
    return (*placed, *values[len(placed) :])


def _placed(meta: TensorMeta, value: Value, known: Mapping[str, int]) -> Value:
    symbols = frozenset().union(*(free_symbols(step) for step in meta.stride))
    if len(meta.shape) != len(value.shape) or not symbols <= known.keys():
        return value
    stride = tuple(int(evaluate(step, known)) for step in meta.stride)
    return replace(value, stride=None if stride == contiguous_stride(value.shape) else stride)


def _check_one(name: str, meta: TensorMeta, value: Value) -> Misuse | None:
    if _device(value.device) != _device(meta.device):
        fix = f"move it with {name}.to({meta.device!r}), or export and compile for {value.device!r}"
        if value.device == "meta":
            fix = "a meta tensor has no data; pass a real tensor"
        return Misuse(name, f"device {meta.device}", f"device {value.device}", fix)
    if value.dtype != meta.dtype:
        fix = f"convert it with {name}.to(torch.{meta.dtype}), or export with torch.{value.dtype}"
        return Misuse(name, f"dtype {meta.dtype}", f"dtype {value.dtype}", fix)
    if len(value.shape) != len(meta.shape):
        change = "unsqueeze" if len(value.shape) < len(meta.shape) else "squeeze"
        fix = f"pass a tensor of {len(meta.shape)} dims, for example through {name}.{change}(0)"
        return Misuse(name, f"{len(meta.shape)} dims {_show(meta)}", f"{len(value.shape)} dims", fix)
    for dim, (size, actual) in enumerate(zip(meta.shape, value.shape)):
        if isinstance(size, int) and size != actual:
            fix = f"pass {size} there, or export with dim {dim} of {name} dynamic"
            return Misuse(name, f"size {size} in dim {dim} (it is static)", f"size {actual}", fix)
    return None


def _device(name: str) -> str:
    return "cuda:0" if name == "cuda" else name


def _show(meta: TensorMeta) -> str:
    return "[" + ", ".join(map(str, meta.shape)) + "]"


def _learn(name: str, meta: TensorMeta, value: Value, sizes: dict[str, tuple[int, str]]) -> Misuse | None:
    for dim, (size, actual) in enumerate(zip(meta.shape, value.shape)):
        if isinstance(size, str) and free_symbols(size) == {size}:
            known, where = sizes.setdefault(size, (actual, f"dim {dim} of {name}"))
            if known != actual:
                fix = f"dim {dim} of {name} and {where} must be equal"
                return Misuse(name, f"size {known} in dim {dim} ({size}, as {where})", f"size {actual}", fix)
    return None


def _solve(name: str, meta: TensorMeta, value: Value, sizes: dict[str, tuple[int, str]]) -> Misuse | None:
    """Learn a symbol that stands nowhere alone from a multiple of it."""
    for dim, (size, actual) in enumerate(zip(meta.shape, value.shape)):
        form = linear(size) if isinstance(size, str) else None
        if form is None or form[0] in sizes:
            continue
        symbol, factor, offset = form
        whole, rest = divmod(actual - offset, factor)
        if rest:
            fix = f"dim {dim} of {name} must be {size}"
            return Misuse(name, f"a size of the form {size} in dim {dim}", f"size {actual}", fix)
        sizes[symbol] = whole, f"dim {dim} of {name}"
    return None


def _check_range(
    symbol: str, low: int, high: int | None, size: int, sizes: dict[str, tuple[int, str]]
) -> Misuse | None:
    if low <= size and (high is None or size <= high):
        return None
    where = sizes[symbol][1]
    bounds = f"{low} <= {symbol}" + (f" <= {high}" if high is not None else "")
    wider = f"Dim({symbol!r}, min={min(low, size)}" + (
        f", max={max(high, size)})" if high is not None else ")"
    )
    return Misuse(
        where, f"a size with {bounds}", f"size {size}", f"stay in the range, or export with {wider}"
    )


def _check_expressions(name: str, meta: TensorMeta, value: Value, known: dict[str, int]) -> Misuse | None:
    for dim, (size, actual) in enumerate(zip(meta.shape, value.shape)):
        if isinstance(size, str) and free_symbols(size) <= known.keys():
            wanted = evaluate(size, known)
            if wanted != actual:
                fix = f"dim {dim} of {name} must be {size}"
                return Misuse(name, f"size {wanted} in dim {dim} ({size})", f"size {actual}", fix)
    if value.numel == 0:
        return None
    given = value.stride or contiguous_stride(value.shape)
    for dim, (step, actual) in enumerate(zip(meta.stride, given)):
        if value.shape[dim] < 2 or not free_symbols(step) <= known.keys():
            continue
        wanted = evaluate(step, known)
        if wanted != actual:
            fix = f"pass {_relaid(name, meta)}, or export with an example of this layout"
            return Misuse(name, f"stride {wanted} in dim {dim}", f"stride {actual}", fix)
    return None


def _relaid(name: str, meta: TensorMeta) -> str:
    """The code that gives a tensor the exported layout."""
    symbols = meta.symbols.union(*(free_symbols(step) for step in meta.stride))
    hints = {symbol: 7 + 2 * k for k, symbol in enumerate(sorted(symbols))}
    shape = tuple(int(evaluate(size, hints)) for size in meta.shape)
    stride = tuple(int(evaluate(step, hints)) for step in meta.stride)
    if stride == contiguous_stride(shape):
        return f"{name}.contiguous()"
    order = sorted(range(len(shape)), key=lambda dim: -stride[dim])
    if tuple(stride[dim] for dim in order) != contiguous_stride(tuple(shape[dim] for dim in order)):
        return "it with the exported layout"  # with gaps or overlaps: no short call makes it
    if order == [0, 2, 3, 1]:
        return f"{name}.contiguous(memory_format=torch.channels_last)"
    if order == [1, 0]:
        return f"{name}.t().contiguous().t()"
    back = [order.index(dim) for dim in range(len(order))]
    return f"{name}.permute({order}).contiguous().permute({back})"
