"""Whether inputs have the form of the example inputs: nesting, kinds of tensor, constants that were baked in.

AOTInductor flattens what it is given and looks at nothing else: another nesting, a dict with its keys in
another order or another Python number are accepted in silence. Device, dtype and sizes are the contract's
(`minimizer.contract`); here is what must be right before a description of the tensors means anything.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from minimizer.console import one_line
from minimizer.contract import Misuse

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments of a call."""

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def argument_names(model: torch.nn.Module, count: int) -> list[str]:
    """The names of the first `count` positional arguments of a model: ``x``, ``rest[0]``."""
    try:
        parameters = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names: list[str] = []
    for p in parameters:
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            names.append(p.name)
        elif p.kind is p.VAR_POSITIONAL:
            names += [f"{p.name}[{k}]" for k in range(count - len(names))]
    return [*names, *(f"argument {k}" for k in range(len(names), count))][:count]


def misfit(names: Sequence[str], example: Arguments, given: Arguments) -> Misuse | None:
    """How a call with `given` differs in form from the one that was exported; None when it does not.

    `names` are those of the example's positional arguments.
    """
    (wanted, keywords), (args, kwargs) = example, given
    for key in kwargs:
        if key not in keywords and key in names:
            fix = f"pass {key} by position, as in the example inputs"
            return Misuse(str(key), "a positional argument", "a keyword argument", fix)
        if key not in keywords:
            return unknown(key, [*names, *keywords])
    if len(args) > len(wanted) and len(args) == len(wanted) + len(keywords) - len(kwargs):
        key = next(k for k in keywords if k not in kwargs)
        fix = f"pass {key} by keyword, as in the example inputs"
        return Misuse(key, "a keyword argument", "a positional argument", fix)
    if len(args) != len(wanted):
        listed = f" ({', '.join(names)})" if names else ""
        fix = "pass every argument that the program was exported with, and no other"
        return Misuse("inputs", f"{_count(len(wanted), 'argument')}{listed}", f"{len(args)}", fix)
    for key in keywords:
        if key not in kwargs:
            return missing(key)
    pairs = [*zip(names, wanted, args), *((key, keywords[key], kwargs[key]) for key in keywords)]
    return next((found for pair in pairs if (found := _differ(*pair))), None)


def tensors(names: Sequence[str], given: Arguments) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors among arguments in the order in which a package takes them, each with how it is reached."""
    args, kwargs = given
    for where, value in [*zip(names, args), *kwargs.items()]:
        yield from _tensors(where, value)


def _tensors(where: str, value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    children = _children(value)
    if isinstance(value, torch.Tensor):
        yield where, value
    for key, child in (children or {}).items():
        yield from _tensors(where + key, child)


def missing(key: str) -> Misuse:
    """An argument that the program was exported with is not there."""
    return Misuse(key, "an argument of this name", "none", f"pass {key}; the program was exported with it")


def unknown(key: object, known: Sequence[str]) -> Misuse:
    """An argument that the program was not exported with."""
    fix = f"leave {key} out, or export with an example of it"
    return Misuse(str(key), f"only {', '.join(known)}", f"an argument {str(key)!r}", fix)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _differ(where: str, example: Any, given: Any) -> Misuse | None:
    if isinstance(example, torch.Tensor):
        return _tensor(where, example, given)
    children = _children(example)
    if children is None:
        return _constant(where, example, given)
    kind = type(example).__name__
    if type(given) is not type(example):
        fix = f"pass a {kind}, as in the example inputs"
        return Misuse(where, f"a {kind} of {_count(len(children), 'item')}", _shown(given), fix)
    theirs = _children(given)
    assert theirs is not None  # one type, one way of taking it apart
    if sorted(map(str, theirs)) != sorted(map(str, children)):
        fix = "give it the items that the program was exported with"
        return Misuse(where, f"a {kind} with {_keys(children)}", f"one with {_keys(theirs)}", fix)
    if list(theirs) != list(children):
        fix = "build it in that order: AOTInductor passes the values by position"
        return Misuse(where, f"keys in the order {_listed(children)}", _listed(theirs), fix)
    return next(
        (found for key in children if (found := _differ(where + key, children[key], theirs[key]))), None
    )


def _children(value: Any) -> dict[str, Any] | None:
    """The items of a container by how they are reached (``[0]``, ``['k']``); None for a leaf."""
    if value is None or pytree.tree_is_leaf(value):
        return None
    try:
        items, _ = pytree.SUPPORTED_NODES[pytree._get_node_type(value)].flatten_with_keys_fn(value)
        return {pytree.keystr((key,)): item for key, item in items}
    except (KeyError, TypeError):
        leaves, _ = pytree.tree_flatten(value)
        return {f"[{k}]": leaf for k, leaf in enumerate(leaves)}


def _keys(children: dict[str, Any]) -> str:
    numbered = list(children) == [f"[{k}]" for k in range(len(children))]
    return _count(len(children), "item") if numbered or not children else _listed(children)


def _listed(children: dict[str, Any]) -> str:
    return ", ".join(children)


def _constant(where: str, example: Any, given: Any) -> Misuse | None:
    if type(example) is type(given) and (_same(example, given)):
        return None
    if isinstance(given, torch.Tensor):
        fix = f"pass {_repr(example)}, or export with a tensor there"
    else:
        fix = (
            f"pass {_repr(example)}, or export again with {_repr(given)}; another value is ignored in silence"
        )
    return Misuse(where, f"{_repr(example)} (baked in when exported)", _shown(given), fix)


def _same(a: Any, b: Any) -> bool:
    both_nan = isinstance(a, (float, complex)) and a != a and b != b
    if isinstance(a, float) and a == b == 0:
        return math.copysign(1, a) == math.copysign(1, b)
    return both_nan or bool(a == b)


def _repr(value: Any) -> str:
    return one_line(repr(value), 60)


def _shown(value: Any) -> str:
    """What came, in a few words: constants as they are, anything else by its type."""
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return _repr(value)
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {list(value.shape)}"
    children = _children(value)
    kind = type(value).__name__
    article = "an" if kind[:1].lower() in "aeiou" else "a"
    return f"{article} {kind}" if children is None else f"{article} {kind} of {_count(len(children), 'item')}"


def _tensor(where: str, example: torch.Tensor, given: Any) -> Misuse | None:
    if not isinstance(given, torch.Tensor):
        return _no_tensor(where, given)
    for expected, actual, fix in _oddities(where, example, given):
        return Misuse(where, expected, actual, fix)
    return None


def _no_tensor(where: str, given: Any) -> Misuse:
    if given is None:
        return Misuse(where, "a tensor", "None", "pass a tensor; the program was exported with one")
    if type(given).__module__.partition(".")[0] == "numpy":
        fix = f"pass torch.from_numpy({where})"
    elif isinstance(given, (bool, int, float, complex, list, tuple)):
        fix = f"pass torch.tensor({where}) of the exported dtype"
    else:
        fix = "pass a torch.Tensor"
    return Misuse(where, "a tensor", _shown(given), fix)


def _oddities(where: str, example: torch.Tensor, given: torch.Tensor) -> Iterator[tuple[str, str, str]]:
    """What makes a tensor unreadable for compiled code: expected, actual, fix. Its data is not touched."""
    kind = type(given)
    if kind not in _PLAIN:
        no_data = kind.__name__ in ("FakeTensor", "FunctionalTensor")
        fix = "it has no data; pass a real tensor" if no_data else "unwrap it and pass a plain torch.Tensor"
        yield "a plain torch.Tensor", f"the tensor subclass {kind.__name__}", fix
    if given.is_nested:
        yield "one tensor", "a nested tensor", f"pass {where}.to_padded_tensor(0)"
    if given.layout != torch.strided:
        layout = str(given.layout).removeprefix("torch.").removeprefix("_")
        yield "a strided tensor", f"layout {layout}", f"pass {where}.to_dense()"
    if given.is_quantized:
        dtype = str(given.dtype).removeprefix("torch.")
        yield "an ordinary tensor", f"a quantized tensor ({dtype})", f"pass {where}.dequantize()"
    if given.is_neg() and not example.is_neg():
        yield "stored values", "a view with the negative bit set", f"pass {where}.resolve_neg()"
    if given.is_conj() and not example.is_conj():
        yield "stored values", "a view with the conjugate bit set", f"pass {where}.resolve_conj()"
