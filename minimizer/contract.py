"""What the exported program promises to accept, and which promise a set of inputs breaks.

AOTI itself checks next to nothing by default and is wrong both ways when asked to, so the check is made here,
on descriptions, before anything is called a compiler bug.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


def check(program: Program, values: Sequence[Value]) -> Misuse | None:
    """The first promise that the values break, or None when they keep all that can be told from shapes."""
    if len(values) != len(program.inputs):
        return Misuse(
            "inputs",
            f"{len(program.inputs)} tensors ({', '.join(i.name for i in program.inputs)})",
            f"{len(values)}",
            "pass every argument that the program was exported with",
        )
    sizes: dict[str, tuple[int, str]] = {}
    for i, value in zip(program.inputs, values):
        broken = _check_one(i.name, i.meta, value) or _learn(i.name, i.meta, value, sizes)
        if broken:
            return broken
    for i, value in zip(program.inputs, values):
        broken = _solve(i.name, i.meta, value, sizes)
        if broken:
            return broken
    known = {name: size for name, (size, _) in sizes.items()}
    for symbol in program.symbols:
        if symbol.name in known:
            broken = _check_range(symbol.name, symbol.low, symbol.high, known[symbol.name], sizes)
            if broken:
                return broken
    for i, value in zip(program.inputs, values):
        broken = _check_expressions(i.name, i.meta, value, known)
        if broken:
            return broken
    return None


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
            fix = f"pass {name}.contiguous()" if _is_contiguous(meta) else "pass it with the exported layout"
            fix += ", or export with an example of this layout"
            return Misuse(name, f"stride {wanted} in dim {dim}", f"stride {actual}", fix)
    return None


def _is_contiguous(meta: TensorMeta) -> bool:
    names = meta.symbols.union(*(free_symbols(step) for step in meta.stride))
    hints = {name: 7 + 2 * k for k, name in enumerate(sorted(names))}
    shape = tuple(int(evaluate(size, hints)) for size in meta.shape)
    stride = tuple(int(evaluate(step, hints)) for step in meta.stride)
    return stride == contiguous_stride(shape)
