"""From the description of a tensor to the tensor, and to the line of code that makes it.

A fill is a recipe: one torch call that makes elements, then a few plain operations. Running the recipe and
printing it are two readings of the same steps, so the code in a repro builds the very tensor that failed, bit
for bit, and neither reading can drift from the other. Recipes carry their own generator and dtype: nothing
depends on global random state, default dtype or default device.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from strategies import Fill

LONGEST_CODE = 99
"""Longest line of code worth printing for a fill; beyond it, storing the tensor is easier to read."""

_STEPS: dict[str, Callable[[Any, Any], torch.Tensor]] = {
    "*": operator.mul,
    "/": operator.truediv,
    "+": operator.add,
    "-": operator.sub,
    "%": operator.mod,
    "==": operator.eq,
}
_SHORT_CASTS = {
    "float16": "half",
    "bfloat16": "bfloat16",
    "float32": "float",
    "float64": "double",
    "bool": "bool",
}

# What a dtype that cannot hold a kind of fill gets instead: the nearest one that it can hold.
_FOR_INTEGERS = {
    **dict.fromkeys(
        ("normal", "uniform", "decimals", "halves", "real_only", "imaginary_only"),
        Fill("small_integers", low=-8, high=8),
    ),
    **dict.fromkeys(("negative_zeros", "signed_zeros", "tiny", "denormals"), Fill("zeros")),
    **dict.fromkeys(
        ("huge", "nan_sprinkled", "inf_sprinkled", "all_nan"), Fill("extremes", low=-(2**63), high=2**64 - 1)
    ),
    "masked_out": Fill("alternating"),
}
_FOR_BOOLS = {
    **{kind: Fill(kind) for kind in ("zeros", "ones", "one_hot", "alternating")},
    **dict.fromkeys(("negative_zeros", "signed_zeros", "lowest"), Fill("zeros")),
    **dict.fromkeys(("full", "highest", "all_positive", "all_negative", "high_bytes"), Fill("ones")),
    **dict.fromkeys(("ramp", "extremes", "masked_out"), Fill("alternating")),
}


@dataclass(frozen=True)
class _Recipe:
    """Elements made by `make(*args)` in dtype `work`, then `steps`; the caller casts to the wanted dtype.

    `make` is full, randn, rand or randint; or count (0, 1, 2, ...), or pick (values in turn, over and over).
    `sort` is 1 (ascending) or -1 (descending) over the whole tensor.
    """

    make: str
    work: str
    args: tuple[Any, ...] = ()
    seed: int = 0
    steps: tuple[tuple[str, Any], ...] = ()
    sort: int = 0

    @property
    def result(self) -> str:
        """Name of the dtype after the steps."""
        if any(symbol == "==" for symbol, _ in self.steps):
            return "bool"
        return {"float64": "complex128"}.get(self.work, "complex64") if ("*", 1j) in self.steps else self.work


def fill_tensor(
    fill: Fill, dtype: str, shape: tuple[int, ...], device: str = "cpu", bound: int | None = None
) -> torch.Tensor:
    """The contiguous tensor that `fill` describes: the same one on every call, for every kind and dtype.

    `dtype` is torch's name without the prefix; `bound` is the size of the indexed dimension, for index fills.
    A kind that the dtype cannot hold becomes the nearest one that it can (NaN in an int8: extremes). Elements
    are made on the CPU and moved. Raises ValueError for a dtype that cannot be filled, a negative size, or an
    index fill without a bound.

    >>> fill_tensor(Fill("ramp"), "int64", (2, 3))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if any(size < 0 for size in shape):
        raise ValueError(f"cannot fill a tensor of shape {shape}: a size is negative")
    made = _run(_recipe(fill, dtype, math.prod(shape), bound), shape)
    return made.to(dtype=_torch_dtype(dtype), device=device).contiguous()


def code_for_fill(fill: Fill, dtype: str, shape_text: str, bound: int | None = None) -> str | None:
    """One line of Python that builds exactly what `fill_tensor` builds, importing torch only; or None.

    `shape_text` is the shape as code, with or without parentheses: `17, 64`, `(17, 64)`, `()`, or with names,
    as in `n, 64`. None when the line would be longer than `LONGEST_CODE`, or when the pattern depends on the
    number of elements and names hide it. Assumes torch's default dtype and device. Raises ValueError as
    `fill_tensor` does.

    >>> code_for_fill(Fill("normal", seed=3), "float32", "4, 8")
    'torch.randn(4, 8, generator=torch.Generator().manual_seed(3))'
    >>> code_for_fill(Fill("ramp"), "int64", "(3, 4)")
    'torch.arange(12).reshape(3, 4)'
    """
    parsed = ast.parse(shape_text.strip() or "()", mode="eval").body
    sizes = [ast.unparse(size) for size in (parsed.elts if isinstance(parsed, ast.Tuple) else [parsed])]
    numel = math.prod(map(int, sizes)) if all(size.isdigit() for size in sizes) else None
    recipe = _recipe(fill, dtype, numel or 0, bound)
    if numel is None and (recipe.sort or recipe.make in ("count", "pick")):
        return None
    code = _print(recipe, dtype, sizes, numel)
    return code if len(code) <= LONGEST_CODE else None


def _torch_dtype(name: str) -> torch.dtype:
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype) or name.startswith(("float4", "q", "bits")):
        advice = "use torch's name without the prefix, as in float32"
        raise ValueError(f"cannot fill a tensor of dtype {name!r}; {advice}")
    return found


def _recipe(fill: Fill, dtype: str, numel: int, bound: int | None) -> _Recipe:
    wanted = _torch_dtype(dtype)
    if dtype == "bool":
        fill = replace(_FOR_BOOLS.get(fill.kind, Fill("coin")), seed=fill.seed)
    elif wanted.is_floating_point or wanted.is_complex:
        real = _real(fill, dtype)
        if real is not None:
            return real
    else:
        fill = replace(_FOR_INTEGERS.get(fill.kind, fill), seed=fill.seed)
    return _integral(fill, dtype, numel, bound)


def _real(fill: Fill, dtype: str) -> _Recipe | None:
    """Recipes for floating-point and complex dtypes, where they differ from those for integers."""
    seed, work = fill.seed, _work(dtype)
    low, high = _within(fill.low, work), _within(fill.high, work)
    is_complex = dtype.startswith("complex")
    scalar = ("complex128" if dtype == "complex128" else "complex64") if is_complex else work
    match fill.kind:
        case "normal":
            return _Recipe("randn", scalar, seed=seed)
        case "huge" | "tiny":
            return _Recipe("randn", scalar, seed=seed, steps=(("*", high),))
        case "real_only":
            return _Recipe("randn", work, seed=seed)
        case "imaginary_only":
            return _Recipe("randn", work, seed=seed, steps=(("*", 1j),) if is_complex else ())
        case "sorted" | "reversed":
            return _Recipe("randn", work, seed=seed, sort=1 if fill.kind == "sorted" else -1)
        case "uniform" | "all_positive" | "all_negative":
            scale = () if high - low == 1 else (("*", high - low),)
            shift = () if low == 0 else (("+", low),) if low > 0 else (("-", -low),)
            return _Recipe("rand", work, seed=seed, steps=(*scale, *shift))
        case "decimals":
            return _randint(dtype, seed, round(low * 10), round(high * 10), ("/", 10))
        case "halves":
            return _randint(dtype, seed, math.floor(low), math.ceil(high) - 1, ("+", 0.5))
        case "all_nan":
            return _Recipe("full", work, (math.nan,))
        case "denormals":
            return _randint(dtype, seed, -8, 8, ("*", high))
        case "negative_zeros" | "full":
            return _Recipe("full", work, (-0.0 if fill.kind == "negative_zeros" else low,))
        case "signed_zeros" if is_complex:
            return _pick("complex64", seed, 0j, complex(-0.0, 0.0), complex(0.0, -0.0), complex(-0.0, -0.0))
        case "signed_zeros":
            return _pick("float32", seed, 0.0, -0.0)
        case "nan_sprinkled" if is_complex:
            return _pick("complex64", seed, 0.5, complex(math.nan, 1), -1j, complex(2, math.nan))
        case "nan_sprinkled":
            return _pick("float32", seed, 0.5, math.nan, -1.0, 2.0, -3.0)
        case "inf_sprinkled" if is_complex:
            return _pick("complex64", seed, 0.5, complex(math.inf, 1), -1j, complex(2, -math.inf))
        case "inf_sprinkled":
            return _pick("float32", seed, 0.5, math.inf, -1.0, -math.inf, 2.0)
        case "lowest" | "highest":
            return _Recipe("full", work, (-math.inf if fill.kind == "lowest" else math.inf,))
        case "masked_out":
            return _pick("float32", seed, 0.0, -math.inf, 0.0)
        case "extremes" | "full_range":
            return _pick(work, seed, high, low, 1.0)
    return None


def _integral(fill: Fill, dtype: str, numel: int, bound: int | None) -> _Recipe:
    """Recipes whose elements are integers, alike for every dtype. Numbers are clipped to what it holds."""
    seed, (least, most) = fill.seed, _limits(dtype)
    low, high = (min(max(int(end), least), most) for end in (fill.low, fill.high))
    match fill.kind:
        case "zeros" | "ones":
            return _Recipe("full", dtype, (int(fill.kind == "ones"),))
        case "full":
            return _full(dtype, low)
        case "lowest" | "highest":
            return _full(dtype, least if fill.kind == "lowest" else most)
        case "coin":
            return _randint(dtype, seed, 0, 1)
        case "all_positive" | "all_negative" | "small_integers" | "duplicates" | "full_range" | "high_bytes":
            return _randint(dtype, seed, low, high)
        case "around":
            return replace(_randint(dtype, seed, -2, 2), steps=(("+", _signed(high)),))
        case "sorted" | "reversed":
            return replace(_randint(dtype, seed, low, high), sort=1 if fill.kind == "sorted" else -1)
        case "extremes":
            return _pick("int64", seed, _signed(high), low, -1 if least < 0 else 1)
        case "ramp":
            return _count(("%", most + 1)) if numel > most + 1 else _count()
        case "alternating":
            return _count(("%", 2))
        case "one_hot":
            return _count(("==", seed % max(numel, 1)))
    if bound is None:
        raise ValueError(f"a fill of kind {fill.kind!r} needs the size of the indexed dimension: pass bound=")
    last = max(bound - 1, 0)
    match fill.kind:
        case "index_last":
            return _full(dtype, last)
        case "index_ramp":
            return _count(("%", last + 1))
        case "index_duplicates":
            return _randint(dtype, seed, 0, min(1, last))
        case "index_negative":
            return _randint(dtype, seed, -last - 1, -1)
        case "edge_out":
            return _full(dtype, bound if seed % 2 == 0 else -bound - 1)
    return _randint(dtype, seed, 0, last)


def _work(dtype: str) -> str:
    """The dtype to make random reals in: wide enough, with every kernel, and printed short."""
    return "float64" if dtype in ("float64", "complex128") else "float32"


def _within(number: float, dtype: str) -> float:
    """The number itself, but a finite one that the dtype would overflow becomes its largest."""
    most = torch.finfo(_torch_dtype(dtype)).max
    overflows = most * (1 + 2**-26) < abs(number) < math.inf  # rounding down to the largest is no overflow
    return math.copysign(most, number) if overflows else float(number)


def _limits(dtype: str) -> tuple[int, int]:
    """The integers that a dtype holds without skipping one."""
    wanted = _torch_dtype(dtype)
    if dtype == "bool":
        return 0, 1
    if not (wanted.is_floating_point or wanted.is_complex):
        return torch.iinfo(wanted).min, torch.iinfo(wanted).max
    most = max(1, round(2 / torch.finfo(wanted).eps))
    return -most, most


def _signed(number: int) -> int:
    """The int64 with the same bits as an unsigned number."""
    return number - 2**64 if number > 2**63 - 1 else number


def _full(dtype: str, number: int) -> _Recipe:
    least, most = _limits(dtype)
    return _Recipe("full", "int64", (_signed(min(max(number, least), most)),))


def _randint(dtype: str, seed: int, low: int, high: int, *steps: tuple[str, Any]) -> _Recipe:
    least, most = _limits(dtype)
    low, high = (_signed(min(max(end, least), most)) for end in (low, high))
    if low > high:  # an unsigned range across the sign bit
        low, high = -(2**63), 2**63 - 1
    work = _work(dtype) if steps else "int64"
    return _Recipe("randint", work, (low, min(high + 1, 2**63 - 1)), seed, steps)


def _pick(work: str, seed: int, *values: Any) -> _Recipe:
    turn = seed % len(values)
    return _Recipe("pick", work, (*values[turn:], *values[:turn]))


def _count(*steps: tuple[str, Any]) -> _Recipe:
    return _Recipe("count", "int64", steps=steps)


def _run(recipe: _Recipe, shape: tuple[int, ...]) -> torch.Tensor:
    numel, dtype = math.prod(shape), _torch_dtype(recipe.work)
    size = (numel,) if recipe.sort else shape
    generator = torch.Generator().manual_seed(recipe.seed)
    match recipe.make:
        case "full":
            made = torch.full(size, *recipe.args, dtype=dtype, device="cpu")
        case "randn":
            made = torch.randn(size, dtype=dtype, generator=generator, device="cpu")
        case "rand":
            made = torch.rand(size, dtype=dtype, generator=generator, device="cpu")
        case "randint":
            low, high = recipe.args
            made = torch.randint(low, high, size, dtype=dtype, generator=generator, device="cpu")
        case _:
            made = torch.arange(numel, device="cpu").reshape(size)
    if recipe.make == "pick":
        made = torch.tensor(recipe.args, dtype=dtype, device="cpu")[made % len(recipe.args)]
    if recipe.sort:
        made = made.sort(descending=recipe.sort < 0).values.reshape(shape)
    for symbol, number in recipe.steps:
        made = _STEPS[symbol](made, number)
    return made


def _print(recipe: _Recipe, dtype: str, sizes: list[str], numel: int | None) -> str:
    flat = [str(numel)] if recipe.sort else sizes
    listed = ", ".join(flat) or "()"
    shape = f"({flat[0]},)" if len(flat) == 1 else f"({', '.join(flat)})"
    reshape = f".reshape({', '.join(sizes) or '()'})" if len(sizes) != 1 else ""
    generator = f"generator=torch.Generator().manual_seed({recipe.seed})"
    values = [_number(value) for value in recipe.args]
    is_default = recipe.work == {"full": "float32", "randn": "float32", "rand": "float32"}.get(
        recipe.make, "int64"
    )
    if recipe.make == "randint" and recipe.work == "float32" and recipe.steps:
        is_default = True  # integers with a Python float, or divided, become the default dtype
    keyword = "" if is_default else f", dtype=torch.{recipe.work}"
    match recipe.make:
        case "full" if recipe.args[0] in (0, 1) and math.copysign(1, recipe.args[0]) > 0:
            code = f"torch.{'ones' if recipe.args[0] else 'zeros'}({listed}{keyword})"
        case "full":
            keyword = "" if recipe.work in ("float32", "int64") else keyword
            code = f"torch.full({shape}, {values[0]}{keyword})"
        case "randn" | "rand":
            code = f"torch.{recipe.make}({listed}{keyword}, {generator})"
        case "randint":
            code = f"torch.randint({values[0]}, {values[1]}, {shape}{keyword}, {generator})"
        case "pick":
            keyword = f", dtype=torch.{recipe.work}" if recipe.work == "float64" else ""
            code = f"torch.tensor([{', '.join(values)}]{keyword})"
            code += f"[torch.arange({numel}) % {len(values)}]{reshape}"
        case _:
            code = f"torch.arange({numel}){reshape}"
    if recipe.sort:
        code += f".sort({'descending=True' if recipe.sort < 0 else ''}).values{reshape}"
    code += "".join(f" {symbol} {_number(number)}" for symbol, number in recipe.steps)
    if recipe.result == dtype:
        return code
    cast = f".{_SHORT_CASTS[dtype]}()" if dtype in _SHORT_CASTS else f".to(torch.{dtype})"
    return f"({code}){cast}" if recipe.steps else f"{code}{cast}"


def _number(number: complex) -> str:
    if isinstance(number, complex):
        if number.real == 0 and math.copysign(1, number.real) > 0 and number.imag == 1:
            return "1j"
        return f'complex("{number}")'
    if math.isfinite(number):
        return repr(number)
    return "torch.nan" if math.isnan(number) else "torch.inf" if number > 0 else "-torch.inf"
