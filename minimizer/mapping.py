"""Which sizes fail? Once an input fails, the artifact answers for other sizes at milliseconds each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minimizer import region
from minimizer.case import Case, Value
from minimizer.fuzz import Finding, InputSpace
from minimizer.oracle.verdict import Failure, Verdict
from minimizer.program import Program
from strategies import Draw, telling_fills
from strategies.values import Fill

SIZES = 400
SIZES_FATAL = 16
"""Sizes asked for; each failing one costs a worker when the failure kills it."""


def map_region(
    program: Program,
    finding: Finding,
    failure: Failure,
    judge: Callable[[Sequence[Value], int], Verdict],
    give_up: Callable[[], bool],
) -> region.Region | None:
    """The simplest predicate over the sizes that tells failing from passing ones; None when there is none."""
    if not program.symbols or failure.stage != "run" or failure.kind == "hang":
        return None
    space = InputSpace(program)
    failing = Case(program, finding.values).sizes
    fatal = failure.kind in ("crash", "memory_error")
    judged: list[tuple[dict[str, int], bool]] = [(failing, True)]
    for sizes in region.probe_sizes(space.symbols, failing, SIZES_FATAL if fatal else SIZES, fits=space.fits):
        if give_up():
            break
        if sizes == failing:
            continue
        verdict = judge(_resized(space, finding.values, sizes), finding.calls)
        if verdict.status in ("pass", "fail"):
            same = verdict.failure is not None and verdict.failure.signature == failure.signature
            judged.append((sizes, same))
    return region.find_region(judged, space.symbols)


def _resized(space: InputSpace, values: Sequence[Value], sizes: dict[str, int]) -> tuple[Value, ...]:
    """The same kinds of values at other sizes; stored examples become ordinary numbers."""
    fills = []
    for value, spec in zip(values, space.specs):
        fills.append(value.data if isinstance(value.data, Fill) else telling_fills(*spec)[0])
    return space.values(Draw(tuple(sizes.items()), tuple(fills)))
