"""From descriptions to live objects: values to tensors, program source to modules.

Runs inside workers. Everything here is deterministic: the same description gives the same bits in every
process.
"""

from __future__ import annotations

import copy
import linecache
import operator
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from minimizer.case import Literal, Stored, Value, contiguous_stride
from minimizer.program import Program, Ref, TensorMeta, Tree
from minimizer.source import dynamic_shapes_code, module_source
from minimizer.symbolic import evaluate
from minimizer.tensors import fill_tensor


class Store:
    """Tensors of a run, one file each, named by whoever put them there."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def put(self, name: str, tensor: torch.Tensor) -> str:
        """Write a tensor with its strides; returns the name to store in a description."""
        self.folder.mkdir(parents=True, exist_ok=True)
        torch.save(clone_exact(tensor.detach()), self.folder / f"{name}.pt")
        return name

    def get(self, name: str) -> torch.Tensor:
        """Read a tensor back. Raises ValueError for a name that leaves the folder."""
        path = self.folder / f"{name}.pt"
        if path.resolve().parent != self.folder.resolve():
            raise ValueError(f"not a stored tensor: {name!r}")
        tensor = torch.load(path, weights_only=True)
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"not a stored tensor: {name!r}")
        return tensor


ALIGNMENT = 64
"""Bytes: a cache line, the widest vector. What lies before the first element matters modulo this."""


def clone_exact(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same sizes, strides, gaps and alignment, and a storage of its own."""
    if tensor.device.type == "meta":
        return tensor
    if tensor.layout != torch.strided or tensor.is_neg() or tensor.is_conj() or tensor.is_quantized:
        return tensor.clone()
    if tensor.numel() == 0:
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    before = misalignment(tensor)
    if not before and tensor.stride() == contiguous_stride(tuple(tensor.shape)):
        return tensor.clone()
    span = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))
    start = tensor.storage_offset() - before
    base = tensor.as_strided((before + span,), (1,), start).clone()
    return base.as_strided(tensor.shape, tensor.stride(), before)


def restride(tensor: torch.Tensor, stride: Sequence[int], offset: int = 0) -> torch.Tensor:
    """The same elements laid out with the given strides (in elements; 0 repeats the first element).

    `offset` elements of the storage come before the first one.
    """
    if tuple(stride) == tensor.stride() and offset == tensor.storage_offset():
        return tensor
    span = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, stride))
    base = torch.zeros(offset + span if tensor.numel() else 0, dtype=tensor.dtype, device=tensor.device)
    out = base.as_strided(tensor.shape, tuple(stride), offset if tensor.numel() else 0)
    into, source = out, tensor
    for dim, step in enumerate(stride):
        if step == 0 and tensor.shape[dim] > 1:
            into, source = into.narrow(dim, 0, 1), source.narrow(dim, 0, 1)
    into.copy_(source)
    return out


def make_tensor(value: Value, store: Store) -> torch.Tensor:
    """The tensor that a value describes: its elements, sizes and strides, on its device."""
    if value.device == "meta":
        stride = value.stride or contiguous_stride(value.shape)
        return torch.empty_strided(value.shape, stride, dtype=getattr(torch, value.dtype), device="meta")
    data = value.data
    if isinstance(data, Stored):
        tensor = store.get(data.file)
    elif isinstance(data, Literal):
        tensor = torch.tensor(data.elements, dtype=getattr(torch, value.dtype)).reshape(value.shape)
    else:
        tensor = fill_tensor(data, value.dtype, value.shape, bound=value.bound)
    if value.take is not None and isinstance(data, Stored):
        for dim, count in enumerate(value.take):
            tensor = tensor.narrow(dim, 0, min(count, tensor.shape[dim]))
        tensor = tensor.contiguous() if value.stride is None else tensor
    tensor = restride(tensor, value.stride or contiguous_stride(value.shape), value.offset)
    return tensor.to(value.device) if value.device != "cpu" else tensor


def misalignment(tensor: torch.Tensor) -> int:
    """How many elements past a multiple of `ALIGNMENT` bytes a tensor starts in its storage."""
    return tensor.storage_offset() % (ALIGNMENT // tensor.element_size()) if tensor.numel() else 0


def describe(tensor: torch.Tensor, data: Stored, *, offset: int = 0) -> Value:
    """The value that stands for a stored tensor; `offset` where its alignment is part of it."""
    contiguous = tensor.stride() == contiguous_stride(tuple(tensor.shape))
    return Value(
        dtype=dtype_name(tensor.dtype),
        shape=tuple(tensor.shape),
        data=data,
        stride=None if contiguous else tuple(tensor.stride()),
        device=str(tensor.device),
        offset=offset,
    )


def dtype_name(dtype: torch.dtype) -> str:
    """``float32`` for torch.float32."""
    return str(dtype).removeprefix("torch.")


def example_tensor(meta: TensorMeta, hints: Mapping[str, int]) -> torch.Tensor:
    """A tensor of zeros with an input's sizes and strides at the hints: what the program is exported with."""
    shape = [int(evaluate(size, hints)) for size in meta.shape]
    stride = [int(evaluate(step, hints)) for step in meta.stride]
    zeros = torch.zeros(shape, dtype=getattr(torch, meta.dtype))
    return restride(zeros, stride).to(meta.device)


class Built:
    """A program as a live module with what is needed to export it."""

    def __init__(self, program: Program, store: Store) -> None:
        self.program = program
        self.source = module_source(program, {s.name: f'state["{s.name}"]' for s in program.state})
        dims, spec = dynamic_shapes_code(program)
        namespace: dict[str, Any] = {"torch": torch, "Dim": torch.export.Dim, "operator": operator}
        module = ModuleType("candidate")
        module.__dict__.update(namespace)
        # Dynamo and tracebacks look the module and its lines up by name.
        sys.modules["candidate"] = module
        linecache.cache["<candidate>"] = (len(self.source), None, self.source.splitlines(True), "<candidate>")
        exec(compile(self.source, "<candidate>", "exec"), module.__dict__)
        self._class = module.__dict__["Model"]
        self._state = {s.name: store.get(s.value) for s in program.state}
        self.dynamic_shapes: Any = None
        if spec:
            text = "\n".join([*dims, f"dynamic_shapes = {spec}"])
            exec(compile(text, "<dynamic shapes>", "exec"), module.__dict__)
            self.dynamic_shapes = module.__dict__["dynamic_shapes"]

    def module(self) -> torch.nn.Module:
        """A fresh module with state of its own."""
        state = self.state()
        model: torch.nn.Module = self._class(state) if state else self._class()
        return model.eval()

    def state(self) -> dict[str, torch.Tensor]:
        """Copies of the initial state tensors."""
        return {name: clone_exact(tensor) for name, tensor in self._state.items()}

    def examples(self) -> list[torch.Tensor]:
        """Flat example inputs at the hints."""
        hints = {symbol.name: symbol.hint for symbol in self.program.symbols}
        return [example_tensor(i.meta, hints) for i in self.program.inputs]

    def nest(self, flat: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Flat inputs as the positional and keyword arguments of the module."""
        if self.program.is_flat:
            return tuple(flat), {}
        named = dict(zip((i.name for i in self.program.inputs), flat))
        args = tuple(_fill_tree(arg, named) for arg in self.program.args or ())
        return args, {key: _fill_tree(arg, named) for key, arg in self.program.kwargs}


def _fill_tree(arg: Any, named: Mapping[str, Any]) -> Any:
    if isinstance(arg, Ref):
        return named[arg.name]
    if isinstance(arg, Tree) and arg.type == "dict":
        return {key: _fill_tree(item, named) for key, item in zip(arg.keys, arg.items)}
    if isinstance(arg, (tuple, list)):
        return type(arg)(_fill_tree(item, named) for item in arg)
    return copy.copy(arg)
