"""Writes to places that are named more than once: whichever of them comes last may stay.

PyTorch leaves open which source of a scatter, an indexed assignment or an indexed copy stays where indices
repeat (documentation of `Tensor.scatter_`, `index_put_`, `index_copy_`), and a compiler that writes in
parallel takes any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch


def in_any_order(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], random: torch.Generator
) -> tuple[Any, ...] | None:
    """Arguments with which an operator makes the same writes in another order; None where it is no matter."""
    if kwargs.get("accumulate") or kwargs.get("reduce"):
        return None
    plain = name.removesuffix("_").removeprefix("_unsafe_")
    if plain in ("scatter", "index_copy") and len(args) == 4 and isinstance(args[3], torch.Tensor):
        return _along_a_dim(*args, random=random)
    if plain == "index_put" and len(args) >= 3 and not any(args[3:]):
        return _by_indices(*args[:3], random=random)
    return None


def _along_a_dim(
    base: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *, random: torch.Generator
) -> tuple[Any, ...] | None:
    """For `index_copy` the index is a row of places along the dim; for `scatter` it has the source's dims."""
    if not index.dim() or not index.numel():
        return None
    scatters = index.dim() == source.dim() and index.dim() == base.dim()
    if scatters:
        source = source[tuple(map(slice, index.shape))]  # a source may be larger than its index
    along = dim if scatters else 0
    order = torch.randperm(index.shape[along], generator=random)
    return base, dim, index.index_select(along, order), source.index_select(dim, order)


def _by_indices(
    base: torch.Tensor, indices: Sequence[Any], values: torch.Tensor, *, random: torch.Generator
) -> tuple[Any, ...] | None:
    given = [k for k, index in enumerate(indices) if index is not None]
    if not given or any(indices[k].dtype in (torch.bool, torch.uint8) for k in given):
        return None  # what a mask names, it names once
    spread = dict(zip(given, torch.broadcast_tensors(*(indices[k] for k in given))))
    places = spread[given[0]].shape
    order = torch.randperm(places.numel(), generator=random)
    written = base[tuple(spread.get(k, slice(None)) for k in range(len(indices)))].shape
    together = given[-1] - given[0] + 1 == len(given)
    first = given[0] if together else 0
    before, after = written[:first], written[first + len(places) :]
    if not written.numel():
        return None
    rows = values.expand(written).reshape(*before, places.numel(), *after)
    moved = [
        spread[k].reshape(-1)[order].reshape(places) if k in spread else None for k in range(len(indices))
    ]
    return base, moved, rows.index_select(first, order).reshape(written)
