"""Example inputs: what a program is exported with, apart from what it fails on.

Export specialises a size of 0 or 1, and a failure often needs another size than the example's, so the two
are kept apart wherever they differ. Example elements never matter: zeros of the right sizes and strides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from minimizer.case import Case, Value, contiguous_stride
from minimizer.program import TensorMeta
from minimizer.source import literal
from minimizer.symbolic import evaluate


def example_code(meta: TensorMeta, sizes: Mapping[str, int]) -> str:
    """The expression that builds an example input: zeros of the right sizes and strides.

    >>> example_code(TensorMeta("int8", ("n", 3), (3, 1)), {"n": 8})
    'torch.zeros(8, 3, dtype=torch.int8)'
    """
    shape = tuple(int(evaluate(size, sizes)) for size in meta.shape)
    stride = tuple(int(evaluate(step, sizes)) for step in meta.stride)
    return zeros_code(meta.dtype, shape, stride, meta.device)


def zeros_code(dtype: str, shape: tuple[int, ...], stride: tuple[int, ...], device: str = "cpu") -> str:
    """``torch.zeros`` of a shape, permuted or restrided where the strides ask for it."""
    options = ("" if dtype == "float32" else f", dtype=torch.{dtype}") + (
        "" if device == "cpu" else f", device={literal(device)}"
    )

    def zeros(sizes: Sequence[int]) -> str:
        return f"torch.zeros({', '.join(map(str, sizes)) or '()'}{options})"

    if stride == contiguous_stride(shape) or 0 in shape:
        return zeros(shape)
    order = tuple(sorted(range(len(shape)), key=lambda dim: (-stride[dim], -shape[dim])))
    laid = tuple(shape[dim] for dim in order)
    if tuple(stride[dim] for dim in order) == contiguous_stride(laid):
        if len(shape) == 2:
            return f"{zeros(laid)}.t()"
        if order == (0, 2, 3, 1):
            return f"{zeros(shape)}.to(memory_format=torch.channels_last)"
        back = tuple(order.index(dim) for dim in range(len(shape)))
        return f"{zeros(laid)}.permute{back}"
    span = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    return f"{zeros((span,))}.as_strided({shape}, {stride})"


def zeros_of(value: Value) -> str:
    """The expression that builds zeros like a value."""
    return zeros_code(value.dtype, value.shape, value.stride or contiguous_stride(value.shape), value.device)


def exported_on_failing_inputs(case: Case) -> Case | None:
    """The case with its failing inputs as example inputs too; None where they serve already or cannot.

    Export specialises sizes of 0 and 1, and a failure may need another size than the example's: whether the
    case still fails is for the caller to judge.
    """
    sizes = case.sizes
    if example_sizes(case) is None or any(sizes.get(s.name, 0) < 2 for s in case.program.symbols):
        return None
    symbols = tuple(replace(s, hint=sizes[s.name]) for s in case.program.symbols)
    own = replace(case, program=replace(case.program, symbols=symbols))
    return own if example_sizes(own) is None else None


def example_sizes(case: Case) -> dict[str, int] | None:
    """Sizes of example inputs of their own, or None where the failing inputs serve as examples."""
    sizes = {}
    for symbol in case.program.symbols:
        high = symbol.high if symbol.high is not None else max(symbol.hint, symbol.low, 2)
        sizes[symbol.name] = symbol.hint if symbol.hint > 1 else min(max(symbol.low, 2), high)
    for i, value in zip(case.program.inputs, case.values, strict=True):
        for size, actual in zip(i.meta.shape, value.shape, strict=False):
            if isinstance(size, str) and int(evaluate(size, sizes)) != actual:
                return sizes
    return None
