"""Tasks that call a compiled package outside its contract, with wrong tensors that are made here.

Nothing is cloned on the way: cloning would take away what is wrong with a tensor. Each layer gets inputs that
were made for it.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from minimizer.build import Store, restride
from minimizer.case import Stored, Value, contiguous_stride
from minimizer.oracle import stages, tasks
from minimizer.oracle.compare import compare
from minimizer.oracle.envelope import PLAIN
from minimizer.oracle.outcome import flat_outputs
from minimizer.oracle.requests import OutsideAnswer
from minimizer.oracle.seeds import RNG_SEED
from minimizer.sandbox.worker import note, printed, printed_since

SWITCH = "AOTI_RUNTIME_CHECK_INPUTS"

_loaded: Callable[..., Any] | None = None


def constants() -> list[Any]:
    """The numbers among the open target's flat inputs, in order."""
    return [leaf for leaf in tasks.opened().flat if isinstance(leaf, (bool, int, float))]


def answer(
    package: str, store: str, values: Sequence[Value], at: Sequence[int], form: str, checked: bool
) -> OutsideAnswer:
    """Call the package as a violation says; `checked` must be the same throughout a worker's life.

    The variable is read at the first call of each loaded package.
    """
    global _loaded
    if _loaded is None:
        os.environ.pop(SWITCH, None)
        if checked:
            os.environ[SWITCH] = "1"
        _loaded = stages.load_package(package)
    loaded, model = _loaded, tasks.opened().module()
    expected = _returned(lambda: _called(model, _arguments(values, Store(store), at, form)))
    arguments = _arguments(values, Store(store), at, form)
    note("run")
    mark = printed()
    actual = _returned(lambda: _called(loaded, arguments))
    words = printed_since(mark)
    note("compare")
    if isinstance(actual, Exception):
        return OutsideAnswer(raised=f"{actual}\n{words}"[-5000:], said=_said(str(actual), words))
    if isinstance(expected, Exception):
        return OutsideAnswer(said=f"eager raises {type(expected).__name__}")
    mismatches, _ = compare(actual, expected)
    wrong = [m for m in mismatches if m.flavour != "values" or m.ratio >= PLAIN]
    return OutsideAnswer(right=not wrong, said=wrong[0].figures if wrong else "")


def _returned(call: Callable[[], list[Any]]) -> list[Any] | Exception:
    torch.manual_seed(RNG_SEED)
    try:
        with torch.no_grad():
            return call()
    except Exception as problem:  # noqa: BLE001 (refusing is an answer)
        return problem


def _called(function: Callable[..., Any], arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> list[Any]:
    args, kwargs = arguments
    return flat_outputs(function(*args, **kwargs))


def _said(message: str, words: str) -> str:
    """The line that tells most: AOTI's runtime says on stderr what its exception leaves out."""
    told = re.search(r"^(?:Error|Exception): (.*)", words, re.MULTILINE)
    first = next(iter(message.splitlines()), "")
    return (told[1] if told and "API call failed" in message else first)[:200]


def _arguments(
    values: Sequence[Value], store: Store, at: Sequence[int], form: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    subject = tasks.opened()
    tensors: list[Any] = [changed(value, store) for value in values]
    if form not in ("", "missing", "constant"):
        tensors[at[0]] = formed(tensors[at[0]], form)
    flat = subject.with_tensors(tensors)
    if form == "constant":
        where = [k for k, leaf in enumerate(flat) if isinstance(leaf, (bool, int, float))][at[0]]
        flat[where] = not flat[where] if isinstance(flat[where], bool) else flat[where] + 1
    args, kwargs = subject.nest(flat)
    if form == "missing":
        if kwargs:
            kwargs.popitem()
        else:
            args = args[:-1]
    return args, kwargs


def changed(value: Value, store: Store) -> torch.Tensor:
    """A stored tensor in another dtype, shape, layout or place; elements repeat where there are more."""
    assert isinstance(value.data, Stored)
    tensor = store.get(value.data.file).to(getattr(torch, value.dtype))
    if tuple(tensor.shape) != value.shape:
        count = math.prod(value.shape)
        elements = tensor.reshape(-1) if tensor.numel() else tensor.new_zeros(1)
        tensor = elements[torch.arange(count) % elements.numel()].view(value.shape)
    tensor = restride(tensor, value.stride or contiguous_stride(value.shape))
    return tensor.to(value.device)


class Foreign(torch.Tensor):
    """A tensor subclass that keeps its elements somewhere else, as DTensor does."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Foreign:
        made: Foreign = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=inner.device
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = pytree.tree_map_only(Foreign, lambda t: t.inner, (args, kwargs or {}))
        return function(*args, **kwargs)


def formed(tensor: torch.Tensor, form: str) -> torch.Tensor | None:
    """A tensor in one of the forms of `minimizer.outside.FORMS`."""
    if form == "None":
        return None
    if form == "FakeTensor":
        return FakeTensorMode().from_tensor(tensor)
    if form == "tensor subclass":
        return Foreign(tensor)
    if form == "negative view":
        return torch._neg_view(tensor)
    if form == "conjugate view":
        return tensor.conj()
    if form == "mkldnn":
        return tensor.to_mkldnn()
    if form == "quantized":
        return torch.quantize_per_tensor(tensor, 0.1, 0, torch.qint8)
    return tensor.to_sparse()
