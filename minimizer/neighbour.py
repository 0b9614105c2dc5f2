"""The nearest case that passes. Beside the smallest failing one it shows what the failure hangs on.

While reducing, many candidates pass. Of those with the very program of the result, the one with the nearest
sizes is kept; where there is none, the one whose program differs least.
"""

from __future__ import annotations

from collections.abc import Iterable

from minimizer.case import Case
from minimizer.program import Program


def nearest(result: Case, passing: Iterable[Case]) -> Case | None:
    """The passing case that is nearest to the result; None when nothing comparable passed.

    Nearest: the same program at other sizes first, then as many calls in common as can be, few others.
    """
    ranked = sorted(
        ((_distance(result, case), k, case) for k, case in enumerate(passing)), key=lambda item: item[:2]
    )
    return ranked[0][2] if ranked and ranked[0][0] < (2, 0, 0) else None


def _distance(result: Case, case: Case) -> tuple[int, int, int]:
    if case.settings.modules != result.settings.modules:
        return (2, 0, 0)
    if case.program.fingerprint == result.program.fingerprint:
        ours = [size for value in result.values for size in value.shape]
        theirs = [size for value in case.values for size in value.shape]
        moved = sum(abs(a - b) for a, b in zip(ours, theirs, strict=False))
        changed = sum(a.data != b.data for a, b in zip(result.values, case.values, strict=False))
        return (0, moved, changed)
    ours_calls = [n.target for n in result.program.operators]
    theirs_calls = [n.target for n in case.program.operators]
    common = sum(min(ours_calls.count(t), theirs_calls.count(t)) for t in set(ours_calls))
    return (1, len(ours_calls) - common, len(theirs_calls) - common)


def difference(result: Case, neighbour: Case) -> str:
    """What the neighbour has otherwise, in words."""
    if neighbour.program.fingerprint == result.program.fingerprint:
        parts = []
        for i, ours, theirs in zip(result.program.inputs, result.values, neighbour.values, strict=True):
            if ours.shape != theirs.shape:
                parts.append(f"{i.name} of shape {list(theirs.shape)} instead of {list(ours.shape)}")
            elif ours.data != theirs.data:
                parts.append(f"other values in {i.name}")
        return "; ".join(parts) or "nothing that can be told"
    ours_calls = [n.target for n in result.program.operators]
    theirs_calls = [n.target for n in neighbour.program.operators]
    gone = [t for t in dict.fromkeys(ours_calls) if ours_calls.count(t) > theirs_calls.count(t)]
    more = [t for t in dict.fromkeys(theirs_calls) if theirs_calls.count(t) > ours_calls.count(t)]
    if result.settings.config != neighbour.settings.config:
        left = ", ".join(f"{key}={value}" for key, value in neighbour.settings.config)
        return f"with the settings {left}" if left else "with default settings"
    parts = [f"without {', '.join(gone)}"] if gone else []
    parts += [f"with {', '.join(more)}"] if more else []
    return (
        "; ".join(parts or _inputs_apart(result.program, neighbour.program))
        or "the same calls, otherwise used"
    )


def _inputs_apart(ours: Program, theirs: Program) -> list[str]:
    """In what the inputs of two programs with the same calls differ."""
    if len(ours.inputs) != len(theirs.inputs):
        return [f"{len(theirs.inputs)} inputs instead of {len(ours.inputs)}"]
    parts = []
    for one, other in zip(ours.inputs, theirs.inputs, strict=True):
        for what, here, there in (
            ("dtype", one.meta.dtype, other.meta.dtype),
            ("shape", list(one.meta.shape), list(other.meta.shape)),
            ("strides", list(one.meta.stride), list(other.meta.stride)),
        ):
            if here != there:
                parts.append(f"{other.name} of {what} {there} instead of {here}")
                break
    return parts
