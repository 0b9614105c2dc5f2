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
from typing import Any

from minimizer.capture import alike
from minimizer.case import Case
from minimizer.oracle.bench import CaseBench
from minimizer.oracle.verdict import Failure, Signature
from minimizer.program import Program, TensorMeta
from minimizer.prosecutor import Prosecutor, dynamic_flows_into, hangs_together
from minimizer.reduce.cut import Observations
from minimizer.reduce.finer import no_larger, refined
from minimizer.reduce.journal import Journal
from minimizer.reduce.minimality import Certificate, certificate
from minimizer.reduce.passes import PASSES, Pass
from minimizer.reduce.search import Court, OutOfTime, Progress, Reduction, reduce
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
    repeats: int,
    deadline: Callable[[], bool],
    interrupted: Callable[[], bool],
    journal: Journal,
    on_progress: Callable[[Progress], None],
    on_accept: Callable[[Case], None],
    also: dict[Signature, tuple[Case, Failure]],
    passes: Sequence[Pass] = PASSES,
    width: int = 1,
    observe: Callable[[Case], Observations | None] | None = None,
    decompose: Callable[[Case], Program | None] | None = None,
    until: float = math.inf,
) -> Narrowed | None:
    """Reduce a case, confirm the result with the full judge, and certify it.

    After `deadline` no candidate is judged; at `until`, of the monotonic clock, one that is judged is let go.
    `width` candidates are judged side by side where that is of use. `observe` looks anew at the values of a
    program into which a pass has put calls that were not there before, `decompose` gives it in finer
    operators. None when the translated program does not show the failure at any level.
    """
    notes: list[str] = []
    for level in levels(case.settings.path, failure.stage):
        dynamic, joined = case.program.dynamic_dims > 0, hangs_together(case.program)
        times: dict[str, Any] = {"deadline": deadline, "until": until}
        judge = Prosecutor(bench, level, failure.signature, repeats, dynamic=dynamic, joined=joined, **times)
        record = _AtLevel(journal, level)
        try:
            start = starting_point(judge, case, failure, observed, record)
        except OutOfTime:
            return None
        if start is None:
            continue
        judge.signature = start[1]
        worth = affordable(passes, level)
        watch: dict[str, Any] = {"deadline": deadline, "on_progress": on_progress, "passes": worth}
        side_by_side: dict[str, Any] = {"admit": judge.takes, "many": judge.many, "width": width}
        more: dict[str, Any] = {"on_accept": on_accept, "journal": record, **watch, **side_by_side}
        seen, result = observed, reduce(start[0], observed, judge, **more)
        if observe is not None and _has_news(result, seen) and (again := observe(result.case)) is not None:
            seen, result = again, reduce(result.case, again, judge, **more)
        if decompose is not None and observe is not None and result.complete:
            parts = refined(result.case, decompose(result.case))
            if parts is not None and _still_fails(parts, judge, record, deadline):
                inside = observe(parts) or {}
                more["on_accept"] = lambda case: None  # longer at first: not the best so far
                finer = reduce(parts, inside, judge, **more)
                if finer.complete and no_larger(finer.case, result.case):
                    on_accept(finer.case)
                    seen, result = inside, finer
        if judge.turned_away and result.complete and result.case.program.operator_count > 1:
            # Perhaps the failure has nothing to do with what is dynamic, which then stands in the way.
            free = replace(judge, dynamic=False)
            freely = _AtLevel(journal, f"{level} static")
            static = reduce(result.case, seen, free, journal=freely, **watch)
            saved = result.case.program.operator_count - static.case.program.operator_count
            needed = [n.name for n in static.case.program.nodes]
            if saved >= (STATIC_SAVES if dynamic_flows_into(result.case.program, needed) else 1):
                judge, result, record = free, static, freely
                side_by_side = {"many": free.many, "width": width}
        also.update(judge.also)
        if interrupted():
            raise KeyboardInterrupt
        confirmed = confirm(bench, result.case, failure, repeats)
        if confirmed is None:
            notes.append(f"the {level} judge was misled")
            continue
        proof = (
            certificate(
                result.case,
                seen,
                judge,
                deadline=deadline,
                journal=record,
                static_judge=replace(judge, dynamic=False),
                **side_by_side,
            )
            if result.complete
            else None
        )
        return Narrowed(result.case, confirmed, result, proof, level, "; ".join(notes), judge.test)
    return None


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
