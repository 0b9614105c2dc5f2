"""The reducer and the oracle brought together: which stage judges, and what counts as the same failure.

A candidate is never run past the stage where the failure shows: a lowering exception needs no C++ compiler,
a kernel that does not compile needs no wrapper, a wrong value seldom needs the package. Such a cheaper judge
is a proxy. It is used when it shows the failure on the whole program, the result is confirmed by the full
judge, and where the two disagree the full one takes over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from minimizer.capture import alike
from minimizer.case import Case
from minimizer.oracle.bench import CaseBench
from minimizer.oracle.verdict import Failure, Signature
from minimizer.program import Program, TensorMeta
from minimizer.prosecutor import Prosecutor, dynamic_flows_into, hangs_together
from minimizer.reduce.cut import Observations
from minimizer.reduce.finer import no_larger, refined
from minimizer.reduce.journal import Journal, MemoryJournal
from minimizer.reduce.minimality import Certificate, certificate
from minimizer.reduce.passes import PASSES, Pass
from minimizer.reduce.search import Court, OutOfTime, Progress, Reduction, never, reduce, unheard
from minimizer.sequential import SequentialTest
from minimizer.suspects import starting_point

LEVELS = {"lower": ("lower", "full"), "cxx": ("kernel", "full"), "run": ("jit", "full")}
"""Judges to try, cheapest first, by the stage of the failure. Other stages need the full one."""


def levels(path: str, stage: str) -> tuple[str, ...]:
    """The judges to try for a failure in a stage, cheapest first; ``torch.compile`` has one only."""
    return LEVELS.get(stage, ("full",)) if path == "aoti" else ("full",)


@dataclass(frozen=True)
class Narrowed:
    """A reduced case that the full judge has confirmed (`failure`), and how it was reached.

    `test` is what decided on each candidate of a flaky failure; None where one run was enough.
    """

    case: Case
    failure: Failure
    reduction: Reduction
    certificate: Certificate | None
    level: str
    note: str = ""
    test: SequentialTest | None = None


STATIC_SAVES = 2
"""Calls that a result without any dynamic dim must save to be preferred: one more call is a fair price for a
dynamic program in which what is dynamic flows into what fails. Where it does not, saving one is enough."""


def narrow(
    bench: CaseBench,
    case: Case,
    failure: Failure,
    observed: Observations,
    *,
    repeats: int = 1,
    deadline: Callable[[], bool] = never,
    interrupted: Callable[[], bool] = never,
    journal: Journal | None = None,
    on_progress: Callable[[Progress], None] = unheard,
    on_accept: Callable[[Case], None] = unheard,
    also: dict[Signature, tuple[Case, Failure]] | None = None,
    passes: Sequence[Pass] = PASSES,
    width: int = 1,
    observe: Callable[[Case], Observations | None] | None = None,
    decompose: Callable[[Case], Program | None] | None = None,
    until: float = math.inf,
) -> Narrowed | None:
    """Reduce a case, confirm the result with the full judge, and certify it.

    After `deadline` no candidate is judged; at `until`, of the monotonic clock, one that is judged is let go.
    Other failures met on the way are put into `also`. `width` candidates are judged side by side where that
    is of use. `observe` looks anew at the values of a program into which a pass has put calls that were not
    there before, `decompose` gives it in finer operators. None when the translated program does not show the
    failure at any level.
    """
    journal = MemoryJournal() if journal is None else journal
    dynamic, joined = case.program.dynamic_dims > 0, hangs_together(case.program)
    notes: list[str] = []
    for level in levels(case.settings.path, failure.stage):
        judge = Prosecutor(bench, level, failure.signature, repeats, dynamic=dynamic, joined=joined)
        judge.deadline, judge.until = deadline, until
        record: Journal = _AtLevel(journal, level)
        try:
            start = starting_point(judge, case, failure, observed, record)
        except OutOfTime:
            return None
        if start is None:
            continue
        judge.signature = start[1]
        watched = partial(
            reduce, deadline=deadline, on_progress=on_progress, passes=affordable(passes, level)
        )
        side_by_side = partial(
            watched, judge=judge, journal=record, admit=judge.takes, many=judge.many, width=width
        )
        smaller = partial(side_by_side, on_accept=on_accept)
        seen, result = observed, smaller(start[0], observed)
        if observe is not None and _has_news(result, seen) and (again := observe(result.case)) is not None:
            seen, result = again, smaller(result.case, again)
        if decompose is not None and observe is not None and result.complete:
            parts = refined(result.case, decompose(result.case))
            if parts is not None and _still_fails(parts, judge, record, deadline):
                inside = observe(parts) or {}
                finer = side_by_side(parts, inside)  # longer at first: not the best so far
                if finer.complete and no_larger(finer.case, result.case):
                    on_accept(finer.case)
                    seen, result = inside, finer
        static = replace(judge, dynamic=False)
        if judge.turned_away and result.complete and result.case.program.operator_count > 1:
            # Perhaps the failure has nothing to do with what is dynamic, which then stands in the way.
            apart = _AtLevel(journal, f"{level} static")
            freely = watched(result.case, seen, static, journal=apart)
            if _worth_being_static(result.case.program, freely.case.program):
                judge, result, record = static, freely, apart
        if also is not None:
            also.update(judge.also)
        if interrupted():
            raise KeyboardInterrupt
        confirmed = confirm(bench, result.case, failure, repeats)
        if confirmed is None:
            notes.append(f"the {level} judge was misled")
            continue
        proof = None
        if result.complete:
            proof = certificate(
                result.case,
                seen,
                judge,
                deadline=deadline,
                journal=record,
                static_judge=static,
                admit=judge.takes,
                many=judge.many,
                width=width,
            )
        return Narrowed(result.case, confirmed, result, proof, level, "; ".join(notes), judge.test)
    return None


def _worth_being_static(dynamic: Program, static: Program) -> bool:
    """Whether a result without any dynamic dim saves enough calls over one that has some."""
    needed = [n.name for n in static.nodes]
    least = STATIC_SAVES if dynamic_flows_into(dynamic, needed) else 1
    return dynamic.operator_count - static.operator_count >= least


def affordable(passes: Sequence[Pass], level: str) -> Sequence[Pass]:
    """Those that are worth it: no cosmetic ones where a judgement costs a package, unless they are all."""
    if level != "full":
        return passes
    return [p for p in passes if not p.cosmetic] or passes


def _still_fails(case: Case, judge: Prosecutor, journal: Journal, deadline: Callable[[], bool]) -> bool:
    """Whether a case shows the failure, from the journal where it is known; not when time is up."""
    try:
        return Court(judge, journal, deadline, admit=judge.takes).ask(case, "decompose")
    except OutOfTime:
        return False


def _has_news(result: Reduction, observed: Observations) -> bool:
    """Whether the result has values that were never observed, at which nothing can be cut."""
    tensors = (n.name for n in result.case.program.nodes if isinstance(n.meta, TensorMeta))
    return result.complete and any(name not in observed for name in tensors)


class _AtLevel:
    """A journal's entries of one level: a proxy's answers are not the full judge's."""

    def __init__(self, journal: Journal, level: str) -> None:
        self._journal = journal
        self._level = level

    def known(self, key: str) -> bool | None:
        return self._journal.known(f"{self._level} {key}")

    def record(self, key: str, interesting: bool, **about: Any) -> None:
        self._journal.record(f"{self._level} {key}", interesting, **about)

    def noted(self, key: str) -> dict[str, Any] | None:
        return self._journal.noted(f"{self._level} {key}")

    def note(self, key: str, data: dict[str, Any]) -> None:
        self._journal.note(f"{self._level} {key}", data)


def confirm(bench: CaseBench, case: Case, failure: Failure, repeats: int) -> Failure | None:
    """The failure that the full judge sees, when it is the same one."""
    for _ in range(repeats):
        shown = bench.judge(case, "full", fresh=True).failure
        if shown is not None and alike(shown.signature, failure.signature):
            return shown
    return None
