"""What one layer did with some inputs, and what can be read off it alone."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from minimizer.build import clone_exact
from minimizer.case import MANNERS
from minimizer.oracle import stages
from minimizer.oracle.aliasing import Shared
from minimizer.oracle.compare import TOLERANCES, Mismatch
from minimizer.oracle.freedoms import HUGE
from minimizer.oracle.verdict import Failure, Verdict, error_kind


@dataclass
class Outcome:
    """What one layer did: flat outputs followed by the tensor inputs as it left them, or an exception.

    `shared` are the pairs of tensors that share memory.
    """

    values: list[Any]
    outputs: int = 0
    shared: frozenset[Shared] = field(default_factory=frozenset)
    problem: Exception | None = None
    printed: str = ""


def clone_inputs(flat: Sequence[Any]) -> list[Any]:
    """Copies with the same strides; one tensor given twice stays one tensor."""
    copies: dict[int, torch.Tensor] = {}
    return [
        copies.setdefault(id(v), clone_exact(v)) if isinstance(v, torch.Tensor) else copy.deepcopy(v)
        for v in flat
    ]


def flat_outputs(out: Any) -> list[Any]:
    """The leaves of what a call returned; None is one, or positions would shift."""
    return pytree.tree_leaves(out, is_leaf=lambda leaf: leaf is None)


def tensors_of(flat: Sequence[Any]) -> list[torch.Tensor]:
    """The tensors among flat values."""
    return [value for value in flat if isinstance(value, torch.Tensor)]


def runtime_failure(compiled: Outcome) -> Failure:
    """The compiled program's exception; AOTI's own says only *API call failed*, the reason goes to stderr."""
    assert compiled.problem is not None
    if isinstance(compiled.problem, stages.StageError):  # torch.compile compiles when it is called
        return compiled.problem.failure
    kind = error_kind(type(compiled.problem).__name__, f"{compiled.problem}\n{compiled.printed}")
    failure = stages.failure_of(compiled.problem, kind, "run")
    said = re.search(r"^(?:Error|Exception): (.*)", compiled.printed, re.MULTILINE)
    if said and "API call failed" in failure.message:
        return replace(failure, message=said[1], detail=f"{compiled.printed[-5000:]}\n{failure.detail}")
    return failure


def mismatch_failure(mismatch: Mismatch, outputs: int, turn: int) -> Failure:
    """A disagreement on call `turn` as a failure; positions from `outputs` on are inputs after the call."""
    k = mismatch.index
    where = f"output {k}" if k < outputs else f"input {k - outputs}"
    kind = "wrong_value" if mismatch.flavour == "values" else "wrong_metadata"
    flavour = mismatch.flavour if mismatch.finite else f"{mismatch.flavour}: not finite"
    if k >= outputs:
        kind = "lost_mutation" if kind == "wrong_value" else kind
        flavour = f"mutation of inputs: {flavour}"
    at = f" on call {turn}" if turn > 1 else ""
    message = f"{where}{at}: {mismatch.figures}"
    return Failure(kind=kind, stage="run", message=message, figures=mismatch.figures, flavour=flavour)


def missing_check(broken: str, *, values: bool = False) -> Failure:
    """The compiled program goes on where the exported one asserts.

    With `values`, eager goes on as well, to other values: it makes no such check.
    """
    message = f"the program asserts, the compiled program goes on: {broken}"[:2000]
    return Failure("missing_check", "run", message, "AssertionError", flavour="values" if values else "")


def in_manner(verdict: Verdict, manner: str) -> Verdict:
    """A verdict on what passes when it is called as usual: its signature says how it was called."""
    failure = verdict.failure
    if failure is None:
        return verdict
    how = MANNERS[manner]
    message = f"{how}: {failure.message}"
    flavour = f"{failure.flavour}, {how}" if failure.flavour else ""
    return replace(verdict, failure=replace(failure, message=message, flavour=flavour))


def has_special_values(flat: Sequence[Any]) -> bool:
    """Whether some input holds NaN, infinity, or numbers so large that their squares overflow."""
    floats = (t for t in tensors_of(flat) if t.is_floating_point() or t.is_complex())
    limit = HUGE["float32"]
    return any(not bool((t.abs() <= limit).all()) for t in floats if t.dtype in TOLERANCES)


def state_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The parameters and buffers of a module, by name."""
    return {
        **{name: p.detach() for name, p in model.named_parameters()},
        **dict(model.named_buffers()),
    }


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors hold the same, NaN included."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    same = a == b
    return bool((same | ((a != a) & (b != b))).all())
