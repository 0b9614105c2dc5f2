"""Who is to blame: the compiler, or a custom operator that promises one thing and does another.

A custom operator comes with a shape function that the compiler believes. Where that disagrees with what the
operator really returned on the failing inputs, everything behind it was compiled for other tensors.
"""

from __future__ import annotations

from collections.abc import Mapping

from minimizer.case import Case
from minimizer.program import TensorMeta
from minimizer.reduce.dims import Observed, concrete_sizes
from minimizer.source import custom_namespaces
from minimizer.symbolic import evaluate


def cause_of(case: Case, observed: Mapping[str, Observed]) -> str:
    """``compiler``, ``custom op``, or ``unknown`` where a custom operator is involved and keeps its word."""
    spaces = custom_namespaces(case.program)
    if not spaces:
        return "compiler"
    for node in case.program.nodes:
        if node.target.split(".")[0] in spaces and _lies(node.name, node.meta, case, observed):
            return "custom op"
    return "unknown"


def _lies(name: str, meta: object, case: Case, observed: Mapping[str, Observed]) -> bool:
    seen = observed.get(name)
    if seen is None or not isinstance(meta, TensorMeta):
        return False
    try:
        promised = tuple(evaluate(size, concrete_sizes(case, observed)) for size in meta.shape)
    except KeyError:
        return False
    return promised != seen.value.shape or meta.dtype != seen.value.dtype
