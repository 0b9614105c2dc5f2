"""Which sizes fail? Once an input fails, the artifact answers for other sizes at milliseconds each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from minimizer import region
from minimizer.case import Case, Value
from minimizer.fuzz import Finding
from minimizer.input_space import InputSpace
from minimizer.oracle.verdict import Failure, Verdict
from minimizer.probing import doubts, probe_sizes
from minimizer.program import Program
from strategies import Draw, telling_fills
from strategies.inputs import ODD
from strategies.values import Fill

SIZES = 400
"""Sizes asked for."""

FATAL, FATAL_BOUNDS = 12, 24
"""Failing sizes asked for when each costs a process: before and after the bounds are in doubt."""

DOUBTFUL = 4
"""Times that sizes between a bound and the last tried value beyond it are asked for."""


def map_region(
    program: Program,
    finding: Finding,
    failure: Failure,
    judge: Callable[..., Verdict],
    give_up: Callable[[], bool],
) -> region.Region | None:
    """The simplest predicate over the sizes that tells failing from passing ones; None when there is none."""
    if not program.symbols or failure.stage != "run" or failure.kind == "hang":
        return None
    space = InputSpace(program)
    failing = Case(program, finding.values).sizes
    fatal = failure.kind in ("crash", "memory_error")
    judged: list[tuple[dict[str, int], bool]] = [(failing, True)]

    def ask(wanted: Iterable[dict[str, int]], most_fatal: int) -> None:
        for sizes in wanted:
            if give_up() or (fatal and sum(fails for _, fails in judged) > most_fatal):
                break
            if sizes == failing:
                continue
            values = _resized(space, finding.values, sizes)
            # A call that was like the failing one is so at every size.
            calls = (values if call == finding.values else call for call in finding.earlier)
            verdict = judge(*calls, values)
            if verdict.status in ("pass", "fail"):
                same = verdict.failure is not None and verdict.failure.signature == failure.signature
                judged.append((sizes, same))

    ask(probe_sizes(space.symbols, failing, SIZES, fits=space.fits), FATAL)
    found = region.find_region(judged, space.symbols)
    for _ in range(DOUBTFUL):
        open_sizes = doubts(judged, space.symbols, found, fits=space.fits) if found else []
        if not open_sizes or give_up():
            break
        ask(open_sizes, FATAL_BOUNDS)
        found = region.find_region(judged, space.symbols)
    return found


def _resized(space: InputSpace, values: Sequence[Value], sizes: dict[str, int]) -> tuple[Value, ...]:
    """The same kinds of values at other sizes, lying as they do; stored examples become ordinary numbers."""
    fills = []
    for value, spec in zip(values, space.specs):
        fills.append(value.data if isinstance(value.data, Fill) else telling_fills(*spec)[0])
    offset = max((value.offset for value in values), default=0)
    ones = ODD if any(map(_has_odd_ones, values)) else 0
    return space.values(Draw(tuple(sizes.items()), tuple(fills), offset, ones))


def _has_odd_ones(value: Value) -> bool:
    return any(size == 1 and step == ODD for size, step in zip(value.shape, value.stride or ()))
