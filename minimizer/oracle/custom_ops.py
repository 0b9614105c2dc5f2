"""Does a custom operator keep its word? The real one against its fake function and its schema.

The compiler believes two things about an operator that it cannot see into: what its fake (meta) function says
of the result, and what its schema says of writes and aliases. Each call of a custom operator is caught while
the program runs in eager, then run again for comparison: at the failing inputs, and at other sizes in range.
The schema is checked by `torch.library.opcheck`.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.library import opcheck
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from minimizer.build import Store, clone_exact, make_tensor
from minimizer.case import Case, Value
from minimizer.oracle import tasks
from minimizer.oracle.requests import Broken
from minimizer.oracle.seeds import RNG_SEED
from minimizer.oracle.subjects import ProgramSubject
from minimizer.program import Node, TensorMeta
from minimizer.source import custom_namespaces
from minimizer.symbolic import evaluate
from strategies.values import Fill

OTHER_SIZES = 6
"""Sets of sizes that are tried beside the failing ones."""

LARGEST = 1 << 20
"""Elements of an input at most: a check of promises needs no large tensors."""


class _Catch(TorchDispatchMode):
    """Keeps the arguments of each custom operator's call, as they were before it."""

    def __init__(self, namespaces: frozenset[str]) -> None:
        super().__init__()
        self.namespaces = namespaces
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func.namespace in self.namespaces:
            self.calls.append((func, _copied(tuple(args)), _copied(dict(kwargs or {}))))
        return func(*args, **(kwargs or {}))


def check_operators(case: Case, store: str) -> list[Broken]:
    """Every promise that a custom operator of the case breaks: at its own inputs first, then at others.

    Operators that raise on other inputs are left alone: nothing says that they must not.
    """
    tasks.warm_threads()
    tasks.register_operators(case.settings.modules)
    spaces = custom_namespaces(case.program)
    subject = ProgramSubject(case.program, Store(store))
    broken: dict[tuple[str, str], Broken] = {}
    for k, values in enumerate([case.values, *_other_values(case)]):
        tensors = [make_tensor(value, Store(store)) for value in values]
        caught = _Catch(spaces)
        seen: dict[str, Any] = {}
        torch.manual_seed(RNG_SEED)
        try:
            with torch.no_grad(), caught:
                subject.watch(tensors, seen.__setitem__, subject.built.state())
        except Exception:  # noqa: BLE001 (eager refuses these sizes; what ran until then is what there is)
            if k:
                continue
        at = ", ".join(f"{v.dtype}{list(v.shape)}" for v in values)
        found = [
            *_promised_sizes(case, spaces, seen, tensors),
            *(
                b
                for func, args, kwargs in caught.calls
                for b in _check_call(func, args, kwargs, schema=not k)
            ),
        ]
        for op, what in found:
            broken.setdefault((op, what.split(":")[0]), Broken(op, what, at, at_failing_inputs=k == 0))
    return sorted(broken.values(), key=lambda b: not b.at_failing_inputs)


def _copied(tree: Any) -> Any:
    return pytree.tree_map_only(torch.Tensor, clone_exact, tree)


def _other_values(case: Case) -> list[tuple[Value, ...]]:
    """The inputs at other sizes in range: ends, odd and even ones, and a few at random."""
    symbols = case.program.symbols
    draw = random.Random(0)
    sets = []
    for turn in range(OTHER_SIZES if symbols else 0):
        sizes = {}
        for s in symbols:
            high = s.high if s.high is not None and s.high < s.low + 64 else s.low + 64
            choices = [s.low, min(s.low + 1, high), min(s.low + 2, high), high]
            sizes[s.name] = choices[turn] if turn < len(choices) else draw.randint(s.low, high)
        values = [_at(value, i.meta, sizes, turn) for i, value in zip(case.program.inputs, case.values)]
        if all(value is not None and value.numel <= LARGEST for value in values):
            sets.append(tuple(value for value in values if value is not None))
    return sets


def _at(value: Value, meta: TensorMeta, sizes: Mapping[str, int], seed: int) -> Value | None:
    """An input at other sizes; integers are zeros, which are in range wherever anything is."""
    try:
        shape = tuple(int(evaluate(size, sizes)) for size in meta.shape)
        stride = tuple(int(evaluate(step, sizes)) for step in meta.stride)
    except KeyError:
        return None
    floating = value.dtype.startswith(("float", "bfloat", "complex"))
    return replace(
        value,
        shape=shape,
        stride=stride,
        take=None,
        data=Fill("normal", seed=seed) if floating else Fill("zeros"),
    )


def _promised_sizes(
    case: Case, spaces: frozenset[str], seen: Mapping[str, Any], tensors: Sequence[torch.Tensor]
) -> list[tuple[str, str]]:
    """Results whose sizes are not what the exported graph says they are at these sizes of the inputs.

    That catches a fake function that is right when asked again and had a size fixed at export.
    """
    sizes: dict[str, int] = {}
    for i, tensor in zip(case.program.inputs, tensors):
        for size, actual in zip(i.meta.shape, tensor.shape):
            if isinstance(size, str) and size.isidentifier():
                sizes.setdefault(size, int(actual))
    broken = []
    for node in case.program.nodes:
        actual = seen.get(node.name)
        if node.target.split(".")[0] in spaces and isinstance(actual, torch.Tensor):
            broken += _against_export(node, actual, sizes)
    return broken


def _against_export(node: Node, actual: torch.Tensor, sizes: Mapping[str, int]) -> list[tuple[str, str]]:
    if not isinstance(node.meta, TensorMeta):
        return []
    try:
        promised = [int(evaluate(size, sizes)) for size in node.meta.shape]
    except KeyError:
        return []
    if promised == list(actual.shape):
        return []
    fixed = not any(isinstance(size, str) for size in node.meta.shape)
    how = "fixed at export" if fixed and sizes else "at export"
    return [
        (node.target, f"shape: its fake function promised {promised} {how}, it returns {list(actual.shape)}")
    ]


def _check_call(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, schema: bool
) -> list[tuple[str, str]]:
    """What one call does against what its fake function and its schema say. (operator, words) each."""
    name = str(func)
    broken = [(name, what) for what in _against_fake(func, args, kwargs)]
    if schema:
        broken += [(name, what) for what in _against_schema(func, args, kwargs)]
    return broken


def _against_fake(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    torch.manual_seed(RNG_SEED)
    real = pytree.tree_leaves(func(*_copied(args), **_copied(kwargs)))
    # With a shape environment, results whose size depends on values get a symbol instead of an error.
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv(), static_shapes=True)
    fake_args, fake_kwargs = pytree.tree_map_only(torch.Tensor, mode.from_tensor, (args, kwargs))
    try:
        with mode:
            fake = pytree.tree_leaves(func(*fake_args, **fake_kwargs))
    except Exception as problem:  # noqa: BLE001 (whatever a person's fake function raises is the finding)
        first = next(iter(str(problem).splitlines()), "")
        return [f"fake: its fake function raises {type(problem).__name__}: {first[:200]}"]
    if len(real) != len(fake):
        return [f"results: its fake function promises {len(fake)}, it returns {len(real)}"]
    return [what for r, f in zip(real, fake) if isinstance(r, torch.Tensor) for what in _differences(f, r)]


def _differences(fake: Any, real: torch.Tensor) -> list[str]:
    if not isinstance(fake, torch.Tensor):
        return [f"results: its fake function promises {type(fake).__name__}, it returns a tensor"]
    pairs: list[tuple[str, Any, Any]] = [
        ("dtype", fake.dtype, real.dtype),
        ("device", str(fake.device), str(real.device)),
    ]
    if not _agree(fake.shape, real.shape):
        pairs.append(("shape", list(fake.shape), list(real.shape)))
    elif real.numel():
        # Strides of dims of size 1 say nothing.
        told = [(f, r) for f, r, n in zip(fake.stride(), real.stride(), real.shape) if n > 1]
        if not _agree([f for f, _ in told], [r for _, r in told]):
            pairs.append(("strides", list(fake.stride()), list(real.stride())))
    return [
        f"{what}: its fake function promises {promised}, it returns {actual}"
        for what, promised, actual in pairs
        if promised != actual
    ]


def _agree(promised: Sequence[Any], actual: Sequence[int]) -> bool:
    """Whether numbers are equal; a promise that depends on values agrees with any."""
    return len(promised) == len(actual) and all(
        p == a for p, a in zip(promised, actual) if isinstance(p, int)
    )


def _against_schema(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """Undeclared writes and aliases, as PyTorch's own check finds them."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = opcheck(
                func, _copied(args), _copied(kwargs), test_utils="test_schema", raise_exception=False
            )
    except Exception:  # noqa: BLE001 (opcheck refuses what it cannot test: sparse tensors, no tensors at all)
        return []
    said = results.get("test_schema")
    if not isinstance(said, BaseException):
        return []
    text = " ".join(str(said).split())
    if "mutate" in text.lower():
        return ["mutation: it writes to an argument that its schema does not mark as mutated"]
    if "alias" in text.lower():
        return ["alias: its result shares memory with an argument, which its schema does not say"]
    return [f"schema: {text[:200]}"]
