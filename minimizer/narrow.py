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
from minimizer.oracle.case_bench import CaseBench
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


@dataclass(frozen=True)
class Means:
    """What a reduction may use, and whom it tells.

    A flaky failure is looked for `repeats` times. After `deadline` no candidate is judged; at `until`, of the
    monotonic clock, one that is judged is let go. `width` candidates are judged side by side where that is of
    use. `observe` looks anew at the values of a program into which a pass has put calls that were not there
    before, `decompose` gives it in finer operators. `on_accept` hears of each new best case.
    """

    repeats: int = 1
    deadline: Callable[[], bool] = never
    until: float = math.inf
    interrupted: Callable[[], bool] = never
    on_progress: Callable[[Progress], None] = unheard
    on_accept: Callable[[Case], None] = unheard
    passes: Sequence[Pass] = PASSES
    width: int = 1
    observe: Callable[[Case], Observations | None] | None = None
    decompose: Callable[[Case], Program | None] | None = None


def narrow(
    bench: CaseBench,
    case: Case,
    failure: Failure,
    observed: Observations,
    means: Means = Means(),
    *,
    journal: Journal | None = None,
    also: dict[Signature, tuple[Case, Failure]] | None = None,
) -> Narrowed | None:
    """Reduce a case, confirm the result with the full judge, and certify it.

    Other failures met on the way are put into `also`. None when the translated program does not show the
    failure at any level. Raises KeyboardInterrupt when interrupted.
    """
    journal = MemoryJournal() if journal is None else journal
    misled: list[str] = []
    for level in levels(case.settings.path, failure.stage):
        attempt = _Attempt(bench, case, failure, level, means, journal)
        try:
            if not attempt.begin(observed):
                continue
        except OutOfTime:
            return None
        attempt.reduce()
        if also is not None:
            also.update(attempt.judge.also)
        if means.interrupted():
            raise KeyboardInterrupt
        confirmed = confirm(bench, attempt.result.case, failure, means.repeats)
        if confirmed is not None:
            result, test = attempt.result, attempt.judge.test
            proof = attempt.certificate() if result.complete else None
            return Narrowed(result.case, confirmed, result, proof, level, "; ".join(misled), test)
        misled.append(f"the {level} judge was misled")
    return None


class _Attempt:
    """The reduction of a case under the judge of one level.

    `result` is the best so far, `seen` what eager computed in it.
    """

    result: Reduction
    seen: Observations

    def __init__(
        self, bench: CaseBench, case: Case, failure: Failure, level: str, means: Means, journal: Journal
    ) -> None:
        program = case.program
        self.case, self.failure, self.level, self.means = case, failure, level, means
        self.judge = Prosecutor(
            bench,
            level,
            failure.signature,
            means.repeats,
            dynamic=program.dynamic_dims > 0,
            joined=hangs_together(program),
            deadline=means.deadline,
            until=means.until,
        )
        self.journal = journal
        self.record: Journal = _AtLevel(journal, level)

    def begin(self, observed: Observations) -> bool:
        """Find where to start; whether the level shows the failure at all. Raises OutOfTime."""
        start = starting_point(self.judge, self.case, self.failure, observed, self.record)
        if start is None:
            return False
        self.judge.signature = start[1]
        self.seen = observed
        self.result = Reduction(start[0], complete=False, judged=0, recalled=0, accepted=0)
        return True

    def reduce(self) -> None:
        """Make the case as small as the passes can, in finer operators and without dims where that helps."""
        self.result = self._smaller(self.result.case, self.seen, self.means.on_accept)
        self._look_anew()
        self._refine()
        self._make_static()

    def certificate(self) -> Certificate:
        """What became of the failure when each part was taken out."""
        return certificate(
            self.result.case,
            self.seen,
            self.judge,
            deadline=self.means.deadline,
            journal=self.record,
            static_judge=replace(self.judge, dynamic=False),
            admit=self.judge.takes,
            many=self.judge.many,
            width=self.means.width,
        )

    def _smaller(
        self, case: Case, observed: Observations, on_accept: Callable[[Case], None] = unheard
    ) -> Reduction:
        return reduce(
            case,
            observed,
            self.judge,
            passes=affordable(self.means.passes, self.level),
            deadline=self.means.deadline,
            on_progress=self.means.on_progress,
            on_accept=on_accept,
            journal=self.record,
            admit=self.judge.takes,
            many=self.judge.many,
            width=self.means.width,
        )

    def _look_anew(self) -> None:
        """Go on where passes have put in values that were never observed, at which nothing could be cut."""
        if self.means.observe is None or not _has_news(self.result, self.seen):
            return
        seen = self.means.observe(self.result.case)
        if seen is not None:
            self.seen, self.result = seen, self._smaller(self.result.case, seen, self.means.on_accept)

    def _refine(self) -> None:
        """Reduce the program in finer operators, and keep that when it is no larger."""
        if self.means.decompose is None or self.means.observe is None or not self.result.complete:
            return
        parts = refined(self.result.case, self.means.decompose(self.result.case))
        if parts is None or not _still_fails(parts, self.judge, self.record, self.means.deadline):
            return
        inside = self.means.observe(parts) or {}
        finer = self._smaller(parts, inside)  # longer at first: not the best so far
        if finer.complete and no_larger(finer.case, self.result.case):
            self.means.on_accept(finer.case)
            self.seen, self.result = inside, finer

    def _make_static(self) -> None:
        """Reduce without any dynamic dim where that is worth it.

        Perhaps the failure has nothing to do with what is dynamic, which then stands in the way.
        """
        found = self.result
        if not self.judge.turned_away or not found.complete or found.case.program.operator_count <= 1:
            return
        judge, record = replace(self.judge, dynamic=False), _AtLevel(self.journal, f"{self.level} static")
        freely = reduce(
            found.case,
            self.seen,
            judge,
            passes=affordable(self.means.passes, self.level),
            deadline=self.means.deadline,
            on_progress=self.means.on_progress,
            journal=record,
        )
        if _worth_being_static(found.case.program, freely.case.program):
            self.judge, self.result, self.record = judge, freely, record


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
