"""Which sizes fail? Once an input fails, the artifact answers for other sizes at milliseconds each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from minimizer import region
from minimizer.case import Case, Value, Values
from minimizer.fuzz import Finding
from minimizer.input_space import InputSpace
from minimizer.oracle.verdict import Failure, Verdict
from minimizer.probing import doubts, probe_sizes
from minimizer.program import Program
from strategies import Draw, assignments
from strategies.inputs import ODD
from strategies.values import Fill

SIZES = 400
"""Sizes asked for."""

FATAL, FATAL_BOUNDS = 12, 24
"""Failing sizes asked for when each costs a process: before and after the bounds are in doubt."""

STAND_INS = 40
"""Kinds of values tried in place of stored ones, which have one size only."""

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

    def verdict_on(values: Values) -> tuple[Verdict, bool]:
        # A call that was like the failing one is so at every size.
        calls = (values if call == finding.values else call for call in finding.earlier)
        verdict = judge(*calls, values)
        return verdict, verdict.failure is not None and verdict.failure.signature == failure.signature

    example = _stand_in(space, finding.values, failing, lambda values: verdict_on(values)[1])
    if example is None:
        return None

    def ask(wanted: Iterable[dict[str, int]], most_fatal: int) -> None:
        for sizes in wanted:
            if give_up() or (fatal and sum(fails for _, fails in judged) > most_fatal):
                break
            if sizes == failing:
                continue
            verdict, same = verdict_on(_resized(space, example, sizes))
            if verdict.status in ("pass", "fail"):
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


def _stand_in(
    space: InputSpace, values: Values, sizes: dict[str, int], fails: Callable[[Values], bool]
) -> Values | None:
    """Values that can be made at any size and fail as the given ones do; None where none are known.

    What was stored has one size. Which numbers show the failure has to be tried.
    """
    if all(isinstance(value.data, Fill) for value in values):
        return values
    drawn = (Draw(tuple(sizes.items()), fills) for fills in islice(assignments(space.specs), STAND_INS))
    return next((made for made in map(space.values, drawn) if fails(made)), None)


def _resized(space: InputSpace, values: Values, sizes: dict[str, int]) -> Values:
    """The same kinds of values at other sizes, lying as they do."""
    fills = tuple(value.data for value in values if isinstance(value.data, Fill))
    offset = max((value.offset for value in values), default=0)
    ones = ODD if any(map(_has_odd_ones, values)) else 0
    return space.values(Draw(tuple(sizes.items()), fills, offset, ones))


def _has_odd_ones(value: Value) -> bool:
    return any(size == 1 and step == ODD for size, step in zip(value.shape, value.stride or ()))
