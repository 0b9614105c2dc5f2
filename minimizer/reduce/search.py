"""The search: passes propose, a judge disposes, and every accepted step is smaller than the one before.

Passes are generators that yield candidates and are told which were interesting; they know nothing of judging,
and the judge knows nothing of passes. Here stands what both would otherwise repeat: no candidate is judged
twice, none is judged that means nothing or is not smaller, each success is reported at once, and an
interruption leaves the best so far. When no pass makes progress any more, the result is as small as they go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from minimizer.case import Case
from minimizer.reduce.cut import Observations, keep
from minimizer.reduce.journal import Journal, MemoryJournal
from minimizer.reduce.passes import PASSES, Pass
from minimizer.reduce.size import size_key
from minimizer.source import missing_symbols, unresolved_references

Judge = Callable[[Case], bool]
"""True when the case still shows the very same failure."""

Hint = Case | Collection[str]
"""A first guess: a whole candidate, or the names of the calls to keep."""


class OutOfTime(Exception):
    """The deadline passed: no more judging."""


@dataclass(frozen=True)
class Progress:
    """Where a reduction stands after one answer. `judged` are paid for, `recalled` were known already."""

    pass_name: str
    nodes_before: int
    nodes: int
    judged: int
    recalled: int
    accepted: int


@dataclass(frozen=True)
class Reduction:
    """The smallest failing case found; `complete` when no pass can make it smaller."""

    case: Case
    complete: bool
    judged: int
    recalled: int
    accepted: int


def never() -> bool:
    """A deadline that never comes."""
    return False


def is_well_formed(case: Case) -> bool:
    """Whether the case is worth printing: some operator call, and everything that is read is defined."""
    program = case.program
    if not program.operators or unresolved_references(program):
        return False
    return not missing_symbols(program)


class Court:
    """The one place where candidates are judged, each at most once.

    >>> from minimizer.program import Input, Node, Program, Ref, TensorMeta
    >>> from minimizer.case import Value
    >>> from strategies.values import Fill
    >>> meta = TensorMeta("float32", (2,), (1,))
    >>> relu = Node("y", "aten.relu.default", (Ref("x"),), meta=meta)
    >>> case = Case(Program((Input("x", meta),), (relu,), Ref("y")), (Value("float32", (2,), Fill("zeros")),))
    >>> court = Court(lambda case: True)
    >>> court.ask(case), court.ask(case), court.judged
    (True, True, 1)
    """

    def __init__(self, judge: Judge, journal: Journal | None = None, deadline: Callable[[], bool] = never):
        self._judge = judge
        self._journal = MemoryJournal() if journal is None else journal
        self._deadline = deadline
        self.judged = 0
        self.recalled = 0

    def ask(self, case: Case, asker: str = "") -> bool:
        """Whether the case is interesting. Raises OutOfTime; ill-formed cases are not interesting."""
        if not is_well_formed(case):
            return False
        key = case.key
        known = self._journal.known(key)
        if known is not None:
            self.recalled += 1
            return known
        if self._deadline():
            raise OutOfTime
        interesting = self._judge(case)
        self.judged += 1
        self._journal.record(key, interesting, nodes=case.program.operator_count, **{"pass": asker})
        return interesting


def reduce(
    case: Case,
    observed: Observations,
    judge: Judge,
    *,
    passes: Sequence[Pass] = PASSES,
    hints: Iterable[Hint] = (),
    deadline: Callable[[], bool] = never,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    on_accept: Callable[[Case], None] = lambda case: None,
    journal: Journal | None = None,
) -> Reduction:
    """Make a failing case as small as the passes can.

    `case` must be interesting (it is not judged again); `observed` holds what eager computed in it. `hints`
    are tried first. `deadline` is asked before each judgement whether time is up; then, or on Ctrl-C, the
    best so far comes back with `complete=False`. `on_accept` gets every success as it happens.
    """
    court = Court(judge, journal, deadline)
    search = _Search(case, observed, court, on_progress, on_accept)
    complete = True
    try:
        search.follow_hints(hints)
        search.run(passes)
    except (OutOfTime, KeyboardInterrupt):
        complete = False
    return Reduction(search.best, complete, court.judged, court.recalled, search.accepted)


class _Search:
    def __init__(
        self,
        case: Case,
        observed: Observations,
        court: Court,
        on_progress: Callable[[Progress], None],
        on_accept: Callable[[Case], None],
    ) -> None:
        self.best = case
        self.accepted = 0
        self._observed = observed
        self._court = court
        self._on_progress = on_progress
        self._on_accept = on_accept
        self._nodes_before = case.program.operator_count

    def consider(self, candidate: Case, asker: str) -> bool:
        """Whether the candidate is smaller and interesting; if so it is the best so far."""
        if not size_key(candidate) < size_key(self.best):
            return False
        interesting = self._court.ask(candidate, asker)
        if interesting:
            self.best = candidate
            self.accepted += 1
            self._on_accept(candidate)
        nodes = self.best.program.operator_count
        counts = (self._court.judged, self._court.recalled, self.accepted)
        self._on_progress(Progress(asker, self._nodes_before, nodes, *counts))
        return interesting

    def follow_hints(self, hints: Iterable[Hint]) -> None:
        for hint in hints:
            candidate = hint if isinstance(hint, Case) else keep(self.best, hint, self._observed)
            if candidate is not None:
                self.consider(candidate, "hint")

    def run(self, passes: Sequence[Pass]) -> None:
        """Run the passes over and over until none of them makes progress on the case as it is."""
        exhausted: dict[str, str] = {}
        while True:
            before = self.best
            for p in passes:
                state = p.concern(self.best)
                if exhausted.get(p.name) == state:
                    continue
                self._run_pass(p)
                if p.concern(self.best) == state:
                    exhausted[p.name] = state
            if self.best is before:
                return

    def _run_pass(self, p: Pass) -> None:
        proposals = p.run(self.best, self._observed)
        try:
            candidate = next(proposals)
            while True:
                candidate = proposals.send(self.consider(candidate, p.name))
        except StopIteration:
            return
