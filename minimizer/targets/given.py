"""Inputs that a person saw failing: a function or attribute of the model file, or a file of tensors."""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from minimizer.contract import Misuse
from minimizer.targets.form import Arguments, argument_names, missing, unknown
from minimizer.targets.model_file import ModelFile, Unusable, called

SAVE = "save the inputs with torch.save((x, ...), FILE)"


def arguments(target: ModelFile, name: str) -> Arguments | Misuse:
    """The named inputs as positional and keyword arguments, or why they can't be. Raises Unusable."""
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
    if _is_only_argument(target, given):
        return (given,), target.kwargs
    args = tuple(given)
    if _is_call(args) and not _is_call(target.args):
        return args[0], args[1]
    return args, target.kwargs


def _is_call(args: tuple[Any, ...]) -> bool:
    """Whether two values look like the positional and the keyword arguments of a call."""
    return len(args) == 2 and isinstance(args[0], tuple) and isinstance(args[1], dict)


def _is_only_argument(target: ModelFile, given: Any) -> bool:
    """Whether a list is the one argument of a model that takes a list."""
    return isinstance(given, list) and len(target.args) == 1 and isinstance(target.args[0], list)


def _by_name(target: ModelFile, given: Mapping[Any, Any], what: str) -> Arguments | Misuse:
    """Inputs by the names of the model's arguments, passed as the examples are."""
    if len(target.args) == 1 and isinstance(target.args[0], Mapping) and set(target.args[0]) & set(given):
        return (given,), target.kwargs
    model = target.get_model()
    names = [*argument_names(model, len(target.args)), *target.kwargs]
    if not set(given) & set(names):
        if set(given) and set(given) <= set(model.state_dict()):
            raise Unusable(f"{what} holds the model's own parameters, not inputs for it; {SAVE}")
        raise Unusable(
            f"{what} gives inputs named {', '.join(map(str, given))}; the model takes {', '.join(names)}"
        )
    for name in names:
        if name not in given:
            return missing(name)
    for name in given:
        if name not in names:
            return unknown(name, names)
    return tuple(given[n] for n in names[: len(target.args)]), {key: given[key] for key in target.kwargs}


def _read(path: Path, what: str) -> Any:
    """The tensors of a file. Nothing in it is executed: what is more than tensors is not opened."""
    if path.is_dir():
        raise Unusable(f"{what} is a folder; give a .pt or .safetensors file")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        return torch.load(path, weights_only=True)
    except ModuleNotFoundError as problem:
        raise Unusable(f"{what} needs the package {problem.name!r}; install it") from None
    except OSError as problem:
        raise Unusable(f"{what} cannot be read: {problem.strerror or problem}") from problem
    except Exception as problem:
        raise Unusable(f"{what} {_unreadable(problem)}; {SAVE}") from problem


def _unreadable(problem: Exception) -> str:
    """What is wrong with a file, by how reading it failed."""
    words = str(problem)
    named = re.search(r"(?:Unsupported global: GLOBAL|GLOBAL) ([\w.]+)", words)
    if isinstance(problem, pickle.UnpicklingError) and named:
        return f"holds a Python object ({named[1]}), and only tensors are read, since objects run code"
    if "TorchScript" in words:
        return "is a TorchScript program, not a file of tensors"
    device = re.search(r"deserialize object on (?:a )?(\w+)", words)
    if device:
        return f"holds tensors on a {device[1]} device, which is not there; move them with .cpu() first"
    return f"cannot be read as tensors ({type(problem).__name__}): it is damaged, cut short or something else"
