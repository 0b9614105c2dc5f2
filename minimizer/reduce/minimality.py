"""The certificate: for everything that is left, what happens without it.

"Minimal" is a claim that a reader can check line by line: each entry names a part of the final case, the way
it was taken out, and the answer. After a finished reduction nearly all answers are in the journal already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from minimizer.case import Case
from minimizer.reduce.cut import Observations, keep, units
from minimizer.reduce.graph_passes import bypasses, without_each_output
from minimizer.reduce.input_passes import merged_inputs, without_symbol
from minimizer.reduce.journal import Journal
from minimizer.reduce.search import Court, Judge, OutOfTime, is_well_formed, never
from minimizer.reduce.setting_passes import without_each_setting
from minimizer.reduce.size import input_symbols

VERDICTS = ("passes", "still fails", "no longer dynamic", "not expressible", "not tried")


@dataclass(frozen=True)
class Entry:
    """One part of the case, how it was taken out, and one of `VERDICTS`.

    `part` is ``node``, ``input``, ``output``, ``symbol`` or ``setting``; `what` names it.
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
) -> Certificate:
    """Take out each call, input, output, dynamic size and setting by itself, and note the verdict.

    With the journal of the reduction only what it did not ask is judged; `static_judge` answers for a program
    whose last dynamic size is made static, where `judge` turns such programs away. An interruption leaves
    the rest ``not tried``.
    """
    court = Court(judge, journal, deadline)
    statics = court if static_judge is None else Court(static_judge, None, deadline)
    entries: list[Entry] = []
    stopped = False
    for part, what, how, candidate in _removals(case, observed):
        verdict = "not expressible"
        if candidate is not None and is_well_formed(candidate):
            verdict = "not tried"
            static = case.program.dynamic_dims > 0 and not candidate.program.dynamic_dims
            if static and part != "symbol":
                verdict = "no longer dynamic"
            elif not stopped:
                try:
                    asked = (statics if static else court).ask(candidate, "certificate")
                    verdict = "still fails" if asked else "passes"
                except (OutOfTime, KeyboardInterrupt):
                    stopped = True
        entries.append(Entry(part, what, how, verdict))
    return Certificate(tuple(entries), not any(e.verdict == "not tried" for e in entries))


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
    for setting, candidate in without_each_setting(case):
        yield "setting", setting, "left at its default", candidate
