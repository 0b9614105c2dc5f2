"""A variant applied to a model file: examples in another layout or dtype, parameters in another dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from minimizer.build import dtype_name, restride
from minimizer.targets.model_file import ModelFile, Unusable
from minimizer.variant import Variant
from strategies.layouts import Layout


def apply_variant(target: ModelFile, model: torch.nn.Module, variant: Variant) -> None:
    """Change the target, and the model at hand, into what the variant says.

    Raises Unusable when the target is exported already: its layouts and dtypes are fixed.
    """
    if not variant.exports_anew:
        return
    if target.exported is not None:
        raise Unusable(f"{target.path.name} is exported already; bring its model to export it otherwise")
    change = dict(variant.dtypes)
    flat, spec = pytree.tree_flatten((target.args, target.kwargs))
    layouts = iter(variant.layouts)
    made: dict[int, torch.Tensor] = {}
    for k, leaf in enumerate(flat):
        if isinstance(leaf, torch.Tensor):
            layout = next(layouts, None)
            flat[k] = made.setdefault(id(leaf), _laid_out(_cast(leaf, change), layout))
    target.args, target.kwargs = pytree.tree_unflatten(flat, spec)
    if change:
        plain = target.get_model
        target.get_model = _casting(plain, change)
        _cast_state(model, change)


def _laid_out(tensor: torch.Tensor, layout: Layout | None) -> torch.Tensor:
    if layout is None:
        return tensor
    return restride(tensor, layout.strides(tensor.shape), layout.offset)


def _cast(tensor: torch.Tensor, change: dict[str, str]) -> torch.Tensor:
    new = change.get(dtype_name(tensor.dtype))
    return tensor if new is None else tensor.to(getattr(torch, new))


def _cast_state(model: torch.nn.Module, change: dict[str, str]) -> torch.nn.Module:
    """Floating parameters and buffers only: an integer buffer is an index or a count."""
    floats = {old: new for old, new in change.items() if getattr(torch, old).is_floating_point}
    return model._apply(lambda tensor: _cast(tensor, floats))


def _casting(get_model: Callable[[], Any], change: dict[str, str]) -> Callable[[], Any]:
    return lambda: _cast_state(get_model(), change)
