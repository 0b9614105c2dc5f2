"""One execution of an exported graph in which every operator takes the freedoms that a compiler has.

A compiler may evaluate each inexact operation with another rounding, break ties in another order, and leave
in undefined places what it finds there: all of it is done at random (Monte Carlo arithmetic: Parker, UCLA
CSD-970002, 1997). Inputs are exact: operations that are exact on them, such as `floor_divide` or a cast, get
no noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from minimizer.oracle.compare import REAL_OF, wide
from minimizer.oracle.freedoms import (
    COMPOSITE,
    CONTRACTIONS,
    COORDINATES,
    DIGITS,
    EXACT,
    HUGE,
    LANES,
    LARGEST_QUOTIENT,
    PRODUCTS,
    RANDOM,
    REMAINDERS,
    ROUNDED_ONCE,
    SUMS,
    TIES,
    UNINITIALISED,
    WELL_DEFINED,
)
from minimizer.oracle.writes import in_any_order

SPREAD_FACTOR = 8.0
"""How far outside the observed spread counts as outside: the worst case of a rounding error over a random
sample of it grows like the square root of the number of operations."""

ULPS = 2.0
"""Noise per operation, in units of the last place of the operation's dtype."""

HALF_ULPS = 0.5
"""The same for types of half precision and less: they are computed in single precision and rounded once."""

HALF = (torch.float16, torch.bfloat16)

_WIDER = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
}


def _name(target: Any) -> str:
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.name.partition("::")[2]
    return getattr(target, "__name__", str(target))


def epsilon(dtype: torch.dtype) -> float:
    return torch.finfo(REAL_OF.get(dtype, dtype)).eps


class Free(torch.fx.Interpreter):
    """One execution of an exported graph that takes the freedoms a compiler has.

    With `promote`, floating point is double precision throughout; `noise` scales the rounding noise
    (0 = none: the baseline). The draw depends on `seed` only.
    """

    def __init__(self, gm: torch.fx.GraphModule, seed: int, noise: float, *, promote: bool) -> None:
        super().__init__(gm)
        self.random = torch.Generator().manual_seed(seed)
        self.seed = seed
        self.noise = noise
        self.promote = promote
        self.state: dict[str, Any] = {}
        self.inputs: list[Any] = []

    def _up(self, value: Any) -> Any:
        if self.promote and isinstance(value, torch.Tensor) and value.dtype in _WIDER:
            return value.to(_WIDER[value.dtype])
        if self.promote and isinstance(value, torch.dtype):
            return _WIDER.get(value, value)
        return value

    def call(self, flat: Sequence[Any]) -> list[Any]:
        """Run once on flat inputs; flat outputs, then the inputs as the call left them. State persists."""
        self.inputs = []
        out = self.run(*flat, enable_io_processing=False)
        return [*out, *(value for value in self.inputs if isinstance(value, torch.Tensor))]

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        value = self._up(super().placeholder(target, args, kwargs))
        self.inputs.append(value)
        return value

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target not in self.state:
            value = super().get_attr(target, args, kwargs)
            self.state[target] = (
                self._up(value.detach().clone()) if isinstance(value, torch.Tensor) else value
            )
        return self.state[target]

    def run_node(self, n: torch.fx.Node) -> Any:
        self.node = n
        return super().run_node(n)

    def _shake(self, value: torch.Tensor, dtype: torch.dtype, ulps: float) -> torch.Tensor:
        if not (value.is_floating_point() or value.is_complex()) or value.numel() == 0:
            return value
        if not (dtype.is_floating_point or dtype.is_complex):
            return value
        draw = torch.rand(value.shape, generator=self.random, dtype=torch.float64) * 2 - 1
        return (value * (1 + draw * (ulps * self.noise * epsilon(dtype)))).to(value.dtype)

    def _dtypes(self, nodes: Sequence[Any]) -> list[torch.dtype]:
        values = (n.meta.get("val") for n in nodes if isinstance(n, torch.fx.Node))
        return [v.dtype for v in values if isinstance(v, torch.Tensor)]

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        name = _name(target)
        node = self.node
        if name in RANDOM:
            down = self._originals(node)
            args, kwargs = pytree.tree_map(down, (args, kwargs))
            return pytree.tree_map(self._up, super().call_function(target, args, kwargs))
        if self.promote and not isinstance(target, torch._ops.HigherOrderOperator):
            args, kwargs = pytree.tree_map(
                lambda item: self._up(item) if isinstance(item, torch.dtype) else item, (args, kwargs)
            )
        noisy = self.noise > 0
        exact = name in EXACT or not isinstance(target, torch._ops.OpOverload)
        mutates = isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable
        if noisy and not exact and name not in ROUNDED_ONCE and not mutates:
            inputs = {
                id(value): dtype
                for value, dtype in zip(
                    [a for a in pytree.tree_leaves((args, kwargs)) if isinstance(a, torch.Tensor)],
                    self._dtypes(pytree.tree_leaves((node.args, node.kwargs))),
                )
            }
            args, kwargs = pytree.tree_map(
                lambda v: self._shake(v, inputs[id(v)], 0.5) if id(v) in inputs else v, (args, kwargs)
            )
        undefined = self._undefined(name, args) if noisy else None
        if noisy:
            args = in_any_order(name, args, kwargs, self.random) or args
        strained = noisy and self._may_overflow(name, args, exact)
        if noisy and name in TIES:
            out = self._shuffled(name, target, args, kwargs)
        else:
            out = super().call_function(target, args, kwargs)
        if noisy and "max_pool" in name and isinstance(out, tuple):
            out = self._any_nan(target, args, kwargs, out)
        if noisy and name in UNINITIALISED and isinstance(out, torch.Tensor):
            return self._garbage(out)
        if undefined is not None and isinstance(out, torch.Tensor):
            ruined = torch.where(undefined.expand(out.shape), self._garbage(torch.empty_like(out)), out)
            return out.copy_(ruined) if mutates else ruined
        if noisy and any(word in name for word in COORDINATES) and isinstance(out, torch.Tensor):
            out = self._moved(out, args[0])
        elif noisy and not exact:
            out = self._shake_outputs(out, node, mutates)
            if isinstance(out, torch.Tensor) and not mutates:
                out = self._summed_otherwise(name, args, out)
        return self._overflowing(name, args, out) if strained else out

    def _moved(self, out: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        """The result as if positions had been rounded: off by the largest difference times their rounding."""
        if not source.numel() or not out.numel() or not out.is_floating_point():
            return out
        value = self.node.meta["val"]
        longest = max(float(size) for size in (*out.shape, *source.shape))
        step = 4 * ULPS * epsilon(value.dtype) * longest * float(source.max() - source.min())
        draw = torch.rand(out.shape, generator=self.random, dtype=torch.float64) * 2 - 1
        return (out + draw * step).to(out.dtype)

    def _summed_otherwise(self, name: str, args: Any, out: torch.Tensor) -> torch.Tensor:
        """The result as if its terms had been added one after the other, in `LANES` partial sums.

        The error of a sum grows like the square root of its length, in units of the partial sums: about the
        sum itself where terms have one sign, their length (Euclid's) where they cancel. Half precision is
        summed in single precision. See Higham and Mary, SIAM J. Sci. Comput. 41 (2019) A2815.
        """
        dtype = self.node.meta["val"].dtype
        depth, length = _terms(name, args, out)
        if depth <= LANES or not dtype.is_floating_point or not out.is_floating_point():
            return out
        step = 0.5 * min(epsilon(dtype), epsilon(torch.float32)) * (depth / LANES) ** 0.5
        draw = torch.rand(out.shape, generator=self.random, dtype=torch.float64) * 2 - 1
        size = torch.nan_to_num(out.to(torch.float64).abs(), nan=0.0, posinf=0.0).clamp(min=length)
        return (out + draw * size * (step / SPREAD_FACTOR)).to(out.dtype)

    def _may_overflow(self, name: str, args: Any, exact: bool) -> bool:
        """Whether what the operation does on its way, in one order or another, may overflow or cancel out."""
        if name in PRODUCTS:
            sizes = wide(args[0]).abs().to(torch.float64)
            digits = torch.log10(torch.where((sizes > 0) & torch.isfinite(sizes), sizes, 1.0))
            return bool(max(digits.clamp(min=0).sum(), -digits.clamp(max=0).sum()) > DIGITS)
        if name in REMAINDERS:
            dividend, divisor = (torch.as_tensor(a).to(torch.float64) for a in args[:2])
            return bool(((dividend / divisor).abs() > LARGEST_QUOTIENT).any())
        return not exact and name not in ROUNDED_ONCE | WELL_DEFINED and self._strained(args)

    def _strained(self, args: Any) -> bool:
        """Whether an operand is not finite, or so large that its square would overflow."""
        values = [
            a for a in pytree.tree_leaves(args) if isinstance(a, torch.Tensor) and a.is_floating_point()
        ]
        dtypes = [d for d in self._dtypes(pytree.tree_leaves(self.node.args)) if d.is_floating_point]
        limits = (HUGE.get(str(d).removeprefix("torch."), float("inf")) for d in dtypes)
        return any(bool((~(v.abs() <= limit)).any()) for v, limit in zip(values, limits))

    def _overflowing(self, name: str, args: Any, out: Any) -> Any:
        """The result of an operation on such operands: anything, where its steps may overflow."""
        if name in COMPOSITE and isinstance(out, torch.Tensor) and out.shape == args[0].shape:
            return torch.where(torch.isfinite(args[0]), out, self._garbage(torch.empty_like(out)))
        return pytree.tree_map_only(
            torch.Tensor, lambda t: self._garbage(torch.empty_like(t)) if t.is_floating_point() else t, out
        )

    def _shake_outputs(self, out: Any, node: torch.fx.Node, mutates: bool) -> Any:
        metas = pytree.tree_leaves(node.meta.get("val"))
        leaves, spec = pytree.tree_flatten(out)
        for k, (leaf, meta) in enumerate(zip(leaves, metas)):
            if isinstance(leaf, torch.Tensor) and isinstance(meta, torch.Tensor):
                shaken = self._shake(leaf, meta.dtype, HALF_ULPS if meta.dtype in HALF else ULPS)
                if shaken is not leaf:
                    leaves[k] = leaf.copy_(shaken) if mutates else shaken
        return pytree.tree_unflatten(leaves, spec)

    def _originals(self, node: torch.fx.Node) -> Callable[[Any], Any]:
        dtypes = iter(self._dtypes(pytree.tree_leaves((node.args, node.kwargs))))

        def down(value: Any) -> Any:
            return value.to(next(dtypes)) if isinstance(value, torch.Tensor) else value

        return down

    def _garbage(self, out: torch.Tensor) -> torch.Tensor:
        if out.is_floating_point() or out.is_complex():
            # NaN in every other run: what is free is then free in every element, not by luck.
            draw = torch.randn(out.shape, generator=self.random, dtype=torch.float64) * 1e3
            return out.copy_(draw.to(out.dtype)) if self.seed % 2 else out.fill_(float("nan"))
        draw = torch.randint(0, 2 if out.dtype == torch.bool else 120, out.shape, generator=self.random)
        return out.copy_(draw.to(out.dtype))

    def _undefined(self, name: str, args: Any) -> torch.Tensor | None:
        """Where the operation's result is not defined: out-of-range float to integer casts, wide shifts."""
        value = self.node.meta.get("val")
        if not args or not isinstance(args[0], torch.Tensor) or not isinstance(value, torch.Tensor):
            return None
        source = args[1] if name in ("copy", "copy_") else args[0]
        if name in ("to", "_to_copy", "type_as", "copy", "copy_") and source.is_floating_point():
            if value.dtype.is_floating_point or value.dtype.is_complex or value.dtype == torch.bool:
                return None
            info = torch.iinfo(value.dtype)
            bad = ~((source > info.min - 1.0) & (source < info.max + 1.0))
            return bad if bool(bad.any()) else None
        if "shift" in name and not source.is_floating_point() and len(args) > 1:
            count = args[1] if isinstance(args[1], torch.Tensor) else torch.tensor(args[1])
            bad = (count < 0) | (count >= torch.iinfo(value.dtype).bits)
            return bad if bool(bad.any()) else None
        return None

    def _any_nan(self, target: Any, args: Any, kwargs: Any, out: tuple[Any, ...]) -> tuple[Any, ...]:
        """The result of pooling with indices: of several NaN in a window, any may be taken."""
        values, indices = out
        largest_is_nan = values.isnan()
        if not bool(largest_is_nan.any()):
            return out
        source = args[0]
        draw = torch.rand(source.shape, generator=self.random, dtype=torch.float64).to(source.dtype)
        among = torch.where(source.isnan(), draw, -torch.inf)
        _, drawn = super().call_function(target, (among, *args[1:]), kwargs)
        return values, torch.where(largest_is_nan, drawn, indices)

    def _shuffled(self, name: str, target: Any, args: Any, kwargs: Any) -> Any:
        """Run an operation that picks among equal elements on permuted input, and map its indices back."""
        source = args[0]
        position = TIES[name]
        stable = kwargs.get("stable") is True
        dim = kwargs.get("dim", args[position] if len(args) > position else None)
        if name in ("topk", "sort", "argsort") and dim is None:
            dim = -1
        if dim is None or not isinstance(dim, int) or isinstance(dim, bool) or stable or not source.dim():
            return super().call_function(target, args, kwargs)
        order = torch.randperm(source.shape[dim], generator=self.random)
        out = super().call_function(target, (source.index_select(dim, order), *args[1:]), kwargs)
        leaves, spec = pytree.tree_flatten(out)
        leaves = [
            order[leaf]
            if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.int64 and k == len(leaves) - 1
            else leaf
            for k, leaf in enumerate(leaves)
        ]
        return pytree.tree_unflatten(leaves, spec)


def _terms(name: str, args: Any, out: torch.Tensor) -> tuple[float, float]:
    """How many terms each element of a result adds up, and their Euclidean length for ordinary operands."""

    def size(value: torch.Tensor) -> float:
        found = float(value.to(torch.float64).square().mean().sqrt()) if value.numel() else 0.0
        return found if math.isfinite(found) else 0.0

    if name in SUMS and isinstance(args[0], torch.Tensor):
        terms = args[0].numel() / max(out.numel(), 1)
        terms = max(args[0].shape, default=1) if name == "cumsum" else terms
        scale = 1 / max(terms, 1) if "mean" in name else 1.0
        return terms, size(args[0]) * terms**0.5 * scale
    if name in CONTRACTIONS:
        a, b = (args[k] for k in CONTRACTIONS[name])
        terms = b.numel() / max(b.shape[0], 1) if "conv" in name else a.shape[-1]
        return terms, size(a) * size(b) * terms**0.5
    return 0, 0.0
