"""A tensor as a short Python expression, where one builds exactly the same bits.

A reader trusts `torch.tensor([1.0, 4.0])` more than a file. The code is run and compared before it is
given out, so it never says something else than the tensor that failed.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from minimizer.build import Store, dtype_name, make_tensor
from minimizer.case import Value, contiguous_stride
from minimizer.tensors import code_for_fill
from strategies.values import Fill

LONGEST = 110
"""Characters of an expression that still reads as code."""


def _number(item: Any) -> str:
    if isinstance(item, complex):
        return f"complex({_number(item.real)}, {_number(item.imag)})"
    if isinstance(item, float) and not math.isfinite(item):
        return f'float("{item}")'
    return repr(item)


def _nested(tensor: torch.Tensor) -> str:
    if tensor.dim() == 0:
        return _number(tensor.item())
    return "[" + ", ".join(_nested(row) for row in tensor) + "]"


def _short_float(tensor: torch.Tensor) -> str:
    """Nested lists with the fewest digits that round back to the same bits."""
    if tensor.dim():
        return "[" + ", ".join(_short_float(row) for row in tensor) + "]"
    exact = float(tensor.item())
    for digits in range(1, 18):
        text = f"{exact:.{digits}g}"
        if math.isfinite(exact) and torch.equal(torch.tensor(float(text), dtype=tensor.dtype), tensor):
            return text if any(c in text for c in ".e") else f"{text}.0"
    return _number(exact)


_DEFAULT = {"float32": "", "int64": "", "bool": ""}


def _plain(tensor: torch.Tensor, budget: int) -> str | None:
    """Code for a contiguous tensor: a constant, a count, or its elements."""
    name = dtype_name(tensor.dtype)
    suffix = f", dtype=torch.{name}" if name not in _DEFAULT else ""
    shape = ", ".join(map(str, tensor.shape))
    if tensor.numel() == 0:
        dtype = "" if name == "float32" else f", dtype=torch.{name}"
        return f"torch.zeros({shape or '()'}{dtype})"
    flat = tensor.flatten()
    first = flat[0].item()
    if tensor.dim() and bool((_bits(flat) == _bits(flat[:1])).all()):
        dtype = "" if name == "float32" else f", dtype=torch.{name}"
        for function in (torch.zeros, torch.ones):
            if torch.equal(_bits(function(1, dtype=tensor.dtype)), _bits(flat[:1])):
                return f"torch.{function.__name__}({shape}{dtype})"
        text = _short_float(flat[0]) if tensor.is_floating_point() else _number(first)
        fill_dtype = "" if name == "float32" or (name == "int64" and isinstance(first, int)) else dtype
        return (
            f"torch.full(({shape},), {text}{fill_dtype})"
            if tensor.dim() == 1
            else (f"torch.full(({shape}), {text}{fill_dtype})")
        )
    if tensor.numel() > budget:
        return None
    body = _short_float(tensor) if tensor.is_floating_point() else _nested(tensor)
    return f"torch.tensor({body}{suffix})"


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of each element: equal for equal NaNs, different for zeros of different sign."""
    flat = torch.empty(tensor.numel(), 1, dtype=tensor.dtype)
    return flat.copy_(tensor.reshape(-1, 1)).view(torch.uint8)


def tensor_code(value: Value, store: Store, budget: int) -> str | None:
    """An expression of torch only that builds the tensor of `value`, bit for bit, or None.

    `budget` is the largest number of elements that may be written out.
    """
    tensor = make_tensor(value, store)
    if tensor.device.type != "cpu":
        return None
    candidates: list[str] = []
    if isinstance(value.data, Fill) and value.take is None:
        shape = ", ".join(map(str, value.shape)) or "()"
        code = code_for_fill(value.data, value.dtype, shape, bound=value.bound)
        if code is not None:
            candidates.append(code)
    code = _plain(tensor.contiguous(), budget)
    if code is not None:
        candidates.append(code)
    stride = value.stride or contiguous_stride(value.shape)
    if value.offset and tensor.numel():
        placed = (_placed(code, tensor, stride) for code in sorted(candidates, key=len))
        return next((text for text in placed if len(text) <= LONGEST and _builds(text, tensor)), None)
    once = tensor
    for dim, step in enumerate(tensor.stride() if tensor.numel() else ()):
        once = once.narrow(dim, 0, 1) if step == 0 else once
    code = _plain(once.contiguous(), budget) if once is not tensor else None
    if code is not None:
        laid_out = f"{code}.expand({', '.join(map(str, tensor.shape))})"
        return laid_out if len(laid_out) <= LONGEST and _builds(laid_out, tensor) else None
    for code in sorted(candidates, key=len):
        for laid_out in _layouts(code, tensor, stride):
            if len(laid_out) <= LONGEST and _builds(laid_out, tensor):
                return laid_out
    return None


def _layouts(code: str, tensor: torch.Tensor, stride: tuple[int, ...]) -> list[str]:
    """The expression laid out with the value's strides."""
    if tuple(stride) == contiguous_stride(tuple(tensor.shape)) or tensor.numel() == 0:
        return [code]
    order = sorted(range(tensor.dim()), key=lambda dim: -stride[dim])
    inverse = [order.index(dim) for dim in range(tensor.dim())]
    swapped = tensor.permute(order)
    if swapped.is_contiguous():
        there, back = ", ".join(map(str, order)), ", ".join(map(str, inverse))
        laid_out = f"{code}.permute({there}).contiguous().permute({back})"
        options = [laid_out]
        if tensor.dim() == 2:
            options.insert(0, f"{code}.t().contiguous().t()")
        if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
            options.insert(0, f"{code}.contiguous(memory_format=torch.channels_last)")
        return options
    return [_placed(code, tensor, stride)]


def _placed(code: str, tensor: torch.Tensor, stride: tuple[int, ...]) -> str:
    """The expression copied into a view with the value's strides and offset."""
    offset = tensor.storage_offset()
    span = offset + 1 + sum((size - 1) * step for size, step in zip(tensor.shape, stride))
    name = dtype_name(tensor.dtype)
    view = f"{tuple(tensor.shape)}, {tuple(stride)}" + (f", {offset}" if offset else "")
    return f"torch.zeros({span}, dtype=torch.{name}).as_strided({view}).copy_({code})"


def _builds(code: str, tensor: torch.Tensor) -> bool:
    """Whether running the code gives the same tensor: bits, strides and offset."""
    try:
        made = eval(code, {"torch": torch, "__builtins__": {"float": float, "complex": complex}})
    except (RuntimeError, ValueError, TypeError):
        return False
    if not isinstance(made, torch.Tensor) or made.dtype != tensor.dtype or made.shape != tensor.shape:
        return False
    if tensor.numel() and made.stride() != tensor.stride():
        return False
    if tensor.numel() and made.storage_offset() != tensor.storage_offset():
        return False
    return torch.equal(_bits(made), _bits(tensor))
