"""Inputs that a person saw failing: a function or attribute of the model file, or a file of tensors."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from minimizer.targets.model_file import ModelFile, Unusable, called

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def arguments(target: ModelFile, name: str) -> Arguments:
    """The named inputs as positional and keyword arguments. Raises Unusable."""
    what = f"--check-inputs {name}"
    given = getattr(target.module, name, None)
    if given is None:
        if not Path(name).exists():
            raise Unusable(f"{what}: neither a function of {target.path.name} nor a file")
        given = _read(Path(name), what)
    elif callable(given):
        given = called(given, what)
    if isinstance(given, torch.Tensor):
        return (given,), target.kwargs
    if isinstance(given, Mapping):
        return _by_name(target, given, what)
    if not isinstance(given, (tuple, list)):
        raise Unusable(f"{what} gives a {type(given).__name__}; give a tuple of inputs")
    args = tuple(given)
    pair = len(args) == 2 and isinstance(args[0], tuple) and isinstance(args[1], dict)
    if pair and len(target.args) != 2:
        return args[0], args[1]
    return args, target.kwargs


def _by_name(target: ModelFile, given: Mapping[Any, Any], what: str) -> Arguments:
    """Inputs by the names of the model's arguments, passed as the examples are."""
    if (
        len(target.args) == 1
        and isinstance(target.args[0], Mapping)
        and target.args[0].keys() == given.keys()
    ):
        return (given,), target.kwargs
    parameters = inspect.signature(target.get_model().forward).parameters
    names = [*list(parameters)[: len(target.args)], *target.kwargs]
    if set(given) != set(names):
        raise Unusable(
            f"{what} gives inputs named {', '.join(map(str, given))}; the model takes {', '.join(names)}"
        )
    return tuple(given[n] for n in names[: len(target.args)]), {key: given[key] for key in target.kwargs}


def _read(path: Path, what: str) -> Any:
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        return torch.load(path, weights_only=True)
    except ModuleNotFoundError as problem:
        raise Unusable(f"{what} needs the package {problem.name!r}; install it") from None
    except Exception as problem:
        raise Unusable(
            f"{what} cannot be read as tensors: {type(problem).__name__}; "
            "save them with torch.save(inputs, FILE)"
        ) from problem


def misfit(given: Arguments, flat: Sequence[Any], spec: pytree.TreeSpec) -> str:
    """Why arguments do not have the form of the flat example inputs; empty when they do."""
    leaves, theirs = pytree.tree_flatten(given)
    if theirs != spec:
        if len(leaves) != len(flat):
            return f"the program takes {len(flat)} inputs, {len(leaves)} were given"
        return "the inputs are nested in another way than the example inputs"
    for k, (leaf, example) in enumerate(zip(leaves, flat)):
        if isinstance(leaf, torch.Tensor) != isinstance(example, torch.Tensor):
            return f"input {k} is a {type(leaf).__name__}, expected a {type(example).__name__}"
        if isinstance(leaf, torch.Tensor):
            if leaf.layout != torch.strided:
                layout = str(leaf.layout).removeprefix("torch.")
                return f"input {k} is {layout}, expected a strided tensor"
        elif leaf != example and not _both_nan(leaf, example):
            return f"input {k} is {leaf!r}, but {example!r} was baked into the program when it was exported"
    return ""


def _both_nan(a: Any, b: Any) -> bool:
    return isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)
