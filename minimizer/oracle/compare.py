"""Is what the compiled program returned what eager returned?

What a caller relies on is compared in this order: structure, Python type, dtype, shape, strides, values.
The dtype comes before the values because a cast to a common type hides a third of the real failures.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

TOLERANCES: dict[torch.dtype, tuple[float, float]] = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex32: (1e-3, 1e-5),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}
"""Relative and absolute tolerance by dtype: those of `torch.testing.assert_close`. Others are exact."""

REAL_OF = {
    torch.complex32: torch.float16,
    torch.complex64: torch.float32,
    torch.complex128: torch.float64,
}
"""The dtype of the parts of a complex number."""


@dataclass(frozen=True)
class Mismatch:
    """One disagreement. `wrong` marks the elements (values only); `ratio` is error over tolerance.

    `finite` tells whether some wrong element is an ordinary number on both sides.
    """

    index: int
    flavour: str
    figures: str
    wrong: torch.Tensor | None = None
    ratio: float = float("inf")
    finite: bool = True


def tolerance(dtype: torch.dtype) -> tuple[float, float]:
    """Relative and absolute tolerance; (0, 0) for exact types; those of float16 for 8-bit floats."""
    if dtype in TOLERANCES:
        return TOLERANCES[dtype]
    return (6.3e-2, 1e-5) if dtype.is_floating_point else (0.0, 0.0)


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in double precision, or unchanged when it is exact."""
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.to(torch.float64) if tensor.is_floating_point() else tensor


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """A detached, strided, materialised view of what a program returned."""
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return tensor.resolve_conj().resolve_neg()


def allowed(reference: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The error allowed per element by tolerance alone, as float64."""
    relative, absolute = tolerance(dtype)
    size = wide(reference).abs() if reference.is_complex() else reference.to(torch.float64).abs()
    return absolute + relative * torch.nan_to_num(size, nan=0.0, posinf=0.0, neginf=0.0)


def error(actual: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Distance per element as float64: 0 where both are the same NaN or infinity, inf where one is."""
    a, b = wide(actual), wide(expected)
    if not (a.is_floating_point() or a.is_complex()):
        if a.dtype == torch.bool or b.dtype == torch.bool:
            return (a != b).to(torch.float64)
        distance = (a.to(torch.float64) - b.to(torch.float64)).abs()
        return torch.where(a != b, distance.clamp(min=1.0), torch.zeros_like(distance))
    if a.is_complex():
        parts = torch.view_as_real(a), torch.view_as_real(b)
        return error(*parts).amax(-1)
    distance = (a - b).abs()
    same = (a == b) | (a.isnan() & b.isnan())
    distance = torch.where(same, torch.zeros_like(distance), distance)
    return torch.nan_to_num(distance, nan=float("inf"), posinf=float("inf"))


def compare_values(index: int, actual: torch.Tensor, expected: torch.Tensor) -> tuple[Mismatch | None, float]:
    """The elements that are wrong by tolerance alone, and the worst error over the allowed one."""
    actual, expected = plain(actual), plain(expected)
    if torch.equal(actual, expected):  # and nothing is NaN, as mostly
        return None, 0.0
    near = _ordinary_ratio(actual, expected)
    if near <= 1.0:
        return None, near
    distance = error(actual, expected)
    limit = allowed(expected, expected.dtype)
    wrong = distance > limit
    finite = torch.where(limit > 0, distance / limit.clamp(min=1e-300), torch.zeros_like(distance))
    ratio = float(finite.max()) if not bool(wrong.any()) else float((distance / limit.clamp(min=1e-12)).max())
    if not bool(wrong.any()):
        return None, ratio
    return value_mismatch(index, actual, expected, wrong, distance, ratio), ratio


def _ordinary_ratio(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """The worst error over the allowed one, in few steps; NaN or infinity where some number is neither.

    Only for real numbers with a tolerance; infinity for others.
    """
    if not (actual.is_floating_point() and expected.is_floating_point()):
        return math.inf
    relative, absolute = tolerance(expected.dtype)
    right = wide(expected)
    limit = right.abs().mul_(relative).add_(absolute)
    return float((wide(actual) - right).abs_().div_(limit).max())


def value_mismatch(
    index: int,
    actual: torch.Tensor,
    expected: torch.Tensor,
    wrong: torch.Tensor,
    distance: torch.Tensor,
    ratio: float,
) -> Mismatch:
    """The mismatch of the elements marked `wrong`, whose errors are `distance`."""
    ordinary = wrong & torch.isfinite(distance)
    finite = bool(ordinary.any())
    figures = describe_errors(
        actual, expected, wrong, torch.where(ordinary, distance, 0.0) if finite else distance
    )
    return Mismatch(index, "values", figures, wrong, ratio, finite)


def describe_errors(
    actual: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor, distance: torch.Tensor
) -> str:
    """``1 of 8 elements differ; worst at [2]: eager 1.0, compiled 1.5 (float32, off by 0.5 or 4e6 ulps)``."""
    masked = torch.where(wrong, distance, torch.full_like(distance, -1.0))
    at = int(masked.flatten().argmax())
    position: list[int] = []
    rest = at
    for size in reversed(expected.shape):
        position.append(rest % size)
        rest //= size
    position.reverse()
    a, e = plain(actual).flatten()[at].item(), plain(expected).flatten()[at].item()
    name = str(expected.dtype).removeprefix("torch.")
    count = int(wrong.sum())
    where = f" at {position}" if position else ""
    worst = f"worst{where}: eager {e}, compiled {a} ({name}{_how_far(a, e, expected.dtype)})"
    return f"{count} of {expected.numel()} elements differ; {worst}"


def _how_far(actual: Any, expected: Any, dtype: torch.dtype) -> str:
    """``, off by 0.5 or 4.2e+06 ulps``; empty where the difference is no number."""
    if dtype == torch.bool or not (cmath.isfinite(actual) and cmath.isfinite(expected)):
        return ""
    off = abs(actual - expected)
    step = ulp(abs(expected), dtype)
    # Beside zero one unit in the last place is next to nothing: the number of them tells nothing.
    return f", off by {off:.3g}" + (f" or {off / step:.2g} ulps" if step and expected else "")


def ulp(value: float, dtype: torch.dtype) -> float:
    """One unit in the last place of a number of a floating-point dtype; 0 for exact dtypes.

    Complex numbers are measured by their modulus. Denormals have the step of the smallest normal number.

    >>> ulp(1.0, torch.float32) == 2**-23, ulp(3.0, torch.bfloat16) == 2**-6
    (True, True)
    """
    real = REAL_OF.get(dtype, dtype)
    if not real.is_floating_point:
        return 0.0
    info = torch.finfo(real)
    exponent = math.frexp(max(value, info.smallest_normal))[1] - 1
    return math.ldexp(info.eps, exponent)


def _significant_strides(tensor: torch.Tensor) -> list[tuple[int, int]]:
    if tensor.layout != torch.strided or tensor.numel() == 0:
        return []
    return [(k, step) for k, (size, step) in enumerate(zip(tensor.shape, tensor.stride())) if size > 1]


def _other_strides(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors of one shape differ in a stride that means something."""
    if a.layout == b.layout == torch.strided and a.stride() == b.stride():
        return False
    return _significant_strides(a) != _significant_strides(b)


def compare_leaf(index: int, actual: Any, expected: Any) -> tuple[Mismatch | None, float]:
    """Compare one leaf of the outputs."""
    if isinstance(expected, torch.Tensor) != isinstance(actual, torch.Tensor):
        names = type(expected).__name__, type(actual).__name__
        return Mismatch(index, "type", f"eager returns {names[0]}, compiled returns {names[1]}"), 0.0
    if not isinstance(expected, torch.Tensor):
        if type(expected) is not type(actual):
            names = type(expected).__name__, type(actual).__name__
            return Mismatch(index, "type", f"eager returns {names[0]}, compiled returns {names[1]}"), 0.0
        same = expected == actual or (expected != expected and actual != actual)
        near = isinstance(expected, float) and math.isfinite(expected)
        if same or (near and abs(actual - expected) <= 1e-5 + 1.3e-6 * abs(expected)):
            return None, 0.0
        return Mismatch(index, "values", f"eager returns {expected!r}, compiled returns {actual!r}"), 0.0
    if actual.dtype != expected.dtype:
        return Mismatch(index, "dtype", f"eager returns {expected.dtype}, compiled {actual.dtype}"), 0.0
    if actual.shape != expected.shape:
        shapes = list(expected.shape), list(actual.shape)
        return Mismatch(index, "shape", f"eager returns shape {shapes[0]}, compiled {shapes[1]}"), 0.0
    if actual.device != expected.device:
        return Mismatch(index, "device", f"eager returns {expected.device}, compiled {actual.device}"), 0.0
    mismatch, ratio = compare_values(index, actual, expected)
    if mismatch is None and _other_strides(actual, expected):
        strides = list(expected.stride()), list(actual.stride())
        return Mismatch(index, "stride", f"eager returns strides {strides[0]}, compiled {strides[1]}"), ratio
    return mismatch, ratio


def compare(actual: Sequence[Any], expected: Sequence[Any]) -> tuple[list[Mismatch], float]:
    """Compare flat outputs; all mismatches by position, and the worst error ratio."""
    if len(actual) != len(expected):
        text = f"eager returns {len(expected)} values, compiled returns {len(actual)}"
        return [Mismatch(0, "structure", text)], 0.0
    results = [compare_leaf(k, a, e) for k, (a, e) in enumerate(zip(actual, expected))]
    return [m for m, _ in results if m is not None], max((r for _, r in results), default=0.0)
