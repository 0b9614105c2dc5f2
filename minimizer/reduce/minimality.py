"""The certificate: for everything that is left, what happens without it.

"Minimal" is a claim that a reader can check line by line: each entry names a part of the final case, the way
it was taken out, and the answer. After a finished reduction nearly all answers are in the journal already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from minimizer.case import Case
from minimizer.reduce.call_passes import without_each_call
from minimizer.reduce.cut import Observations, keep, units
from minimizer.reduce.graph_passes import bypasses, without_each_output
from minimizer.reduce.input_passes import merged_inputs, without_symbol
from minimizer.reduce.journal import Journal
from minimizer.reduce.search import Court, Judge, JudgeMany, OutOfTime, everyone, is_well_formed, never
from minimizer.reduce.setting_passes import without_each_setting
from minimizer.reduce.size import input_symbols

VERDICTS = ("passes", "still fails", "no longer dynamic", "not expressible", "not tried")


@dataclass(frozen=True)
class Entry:
    """One part of the case, how it was taken out, and one of `VERDICTS`.

    `part` is ``node``, ``input``, ``output``, ``symbol``, ``call`` or ``setting``; `what` names it.
    """

    part: str
    what: str
    how: str
    verdict: str


@dataclass(frozen=True)
class Certificate:
    """What was found when each part was taken out. `complete` when every entry was decided."""

    entries: tuple[Entry, ...]
    complete: bool

    @property
    def minimal(self) -> bool:
        """Whether no call can be spared: each was tried, and the failure went away every time."""
        verdicts = {e.verdict for e in self.entries if e.part == "node"}
        return not verdicts & {"still fails", "not tried"}


def certificate(
    case: Case,
    observed: Observations,
    judge: Judge,
    *,
    deadline: Callable[[], bool] = never,
    journal: Journal | None = None,
    static_judge: Judge | None = None,
    admit: Judge = everyone,
    many: JudgeMany | None = None,
    width: int = 1,
) -> Certificate:
    """Take out each call, input, output, dynamic size and setting by itself, and note the verdict.

    With the journal of the reduction only what it did not ask is judged, `width` at a time where `many` can.
    `static_judge` answers for a program whose last dynamic size is made static, where `admit` turns such
    programs away. An interruption leaves the rest ``not tried``.
    """
    court = Court(judge, journal, deadline, admit=admit, many=many, width=width)
    statics = court if static_judge is None else Court(static_judge, None, deadline)
    removals = list(_removals(case, observed))
    verdicts: dict[int, str] = {}
    asked: list[tuple[int, Case]] = []
    alone: list[tuple[int, Case]] = []
    for k, (part, _, _, candidate) in enumerate(removals):
        if candidate is None or not is_well_formed(candidate):
            verdicts[k] = "not expressible"
        elif case.program.dynamic_dims > 0 and not candidate.program.dynamic_dims:
            verdicts |= {} if part == "symbol" else {k: "no longer dynamic"}
            alone += [(k, candidate)] if part == "symbol" else []
        else:
            asked.append((k, candidate))
    try:
        for chosen, at in ((asked, court), (alone, statics)):
            for place, (k, candidate) in enumerate(chosen):
                ahead = [later for _, later in chosen[place + 1 :]]
                fails = at.ask(candidate, "certificate", ahead)
                verdicts[k] = "still fails" if fails else "passes"
    except (OutOfTime, KeyboardInterrupt):
        pass  # what has no verdict was not tried, and says so
    entries = tuple(
        Entry(part, what, how, verdicts.get(k, "not tried"))
        for k, (part, what, how, _) in enumerate(removals)
    )
    return Certificate(entries, not any(e.verdict == "not tried" for e in entries))


def _removals(case: Case, observed: Observations) -> Iterator[tuple[str, str, str, Case | None]]:
    names = units(case.program)
    for name in names:
        yield "node", name, "cut out", keep(case, set(names) - {name}, observed)
    for name, operand, candidate in bypasses(case, observed):
        yield "node", name, f"bypassed by {operand}", candidate
    for name, other, candidate in merged_inputs(case, observed):
        yield "input", name, f"replaced by {other}", candidate
    for name, candidate in without_each_output(case, observed):
        yield "output", name, "not returned", candidate
    for name in input_symbols(case.program):
        yield "symbol", name, "made static", without_symbol(case, name, observed)
    for call, candidate in without_each_call(case):
        yield "call", call, "left out", candidate
    for setting, candidate in without_each_setting(case):
        yield "setting", setting, "left at its default", candidate
