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
from minimizer.reduce.proposals import Proposals
from minimizer.reduce.size import size_key
from minimizer.source import missing_symbols, unresolved_references

Judge = Callable[[Case], bool]
"""True when the case still shows the very same failure."""

JudgeMany = Callable[[Sequence[Case]], Sequence[bool]]
"""A judge of several cases at once: the answers in their order."""

Hint = Case | Collection[str]
"""A first guess: a whole candidate, or the names of the calls to keep."""


PATIENCE = 2
"""After so many uninteresting candidates in a row the next ones are judged ahead: most will be asked for."""

FARTHEST = 16
"""How many candidates a pass is run ahead at most, most of them known or not smaller."""


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


def unheard(news: object) -> None:
    """Nobody listens."""


def is_well_formed(case: Case) -> bool:
    """Whether the case is worth printing: some operator call, and everything that is read is defined."""
    program = case.program
    if not program.operators or unresolved_references(program):
        return False
    return not missing_symbols(program)


def everyone(case: Case) -> bool:
    """Admits every case."""
    return True


class Court:
    """The one place where candidates are judged, each at most once.

    `judge` is asked for one case, or for several at once where it can (`JudgeMany`); `admit` turns cases away
    that are not to be judged at all, and is asked every time.

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

    def __init__(
        self,
        judge: Judge,
        journal: Journal | None = None,
        deadline: Callable[[], bool] = never,
        *,
        admit: Judge = everyone,
        many: JudgeMany | None = None,
        width: int = 1,
    ) -> None:
        self._judge = judge
        self._many = many
        self.width = width if many is not None else 1
        self._journal = MemoryJournal() if journal is None else journal
        self._deadline = deadline
        self._admit = admit
        self._foreseen: set[str] = set()
        self.judged = 0
        self.recalled = 0

    def takes(self, case: Case) -> bool:
        """Whether the case may be judged at all."""
        return is_well_formed(case) and self._admit(case)

    def ask(self, case: Case, asker: str = "", ahead: Sequence[Case] = ()) -> bool:
        """Whether the case is interesting; what is not taken is not. Raises OutOfTime.

        Cases that will probably be asked for next may be given `ahead`, to be judged in the same go.
        """
        if not self.takes(case):
            return False
        key = case.key
        known = self._journal.known(key)
        if known is None:
            self._hear({key: case}, asker, ahead)
            known = self._journal.known(key)
            assert known is not None
        elif key not in self._foreseen:
            self.recalled += 1
            return known
        self._foreseen.discard(key)
        self.judged += 1
        return known

    def _hear(self, batch: dict[str, Case], asker: str, ahead: Sequence[Case]) -> None:
        """Judge a case, and as many of those ahead as the court is wide."""
        for case in ahead:
            if len(batch) >= self.width:
                break
            if self.takes(case) and self._journal.known(case.key) is None:
                batch.setdefault(case.key, case)
        if self._deadline():
            raise OutOfTime
        cases = list(batch.values())
        many = self._many if len(cases) > 1 else None
        answers = [self._judge(cases[0])] if many is None else many(cases)
        for (key, case), interesting in zip(batch.items(), answers, strict=True):
            self._foreseen.add(key)
            self._journal.record(key, interesting, nodes=case.program.operator_count, **{"pass": asker})


def reduce(
    case: Case,
    observed: Observations,
    judge: Judge,
    *,
    passes: Sequence[Pass] = PASSES,
    hints: Iterable[Hint] = (),
    deadline: Callable[[], bool] = never,
    on_progress: Callable[[Progress], None] = unheard,
    on_accept: Callable[[Case], None] = unheard,
    journal: Journal | None = None,
    admit: Judge = everyone,
    many: JudgeMany | None = None,
    width: int = 1,
) -> Reduction:
    """Make a failing case as small as the passes can.

    `case` must be interesting (it is not judged again); `observed` holds what eager computed in it. `hints`
    are tried first. `deadline` is asked before each judgement whether time is up; then, or on Ctrl-C, the
    best so far comes back with `complete=False`. `on_accept` gets every success as it happens.

    `admit`, `many` and `width` as in `Court`: with a judge of `width` cases at once, those that will be asked
    for if the present one is not interesting are judged beside it while most are not. The result is the same.
    """
    court = Court(judge, journal, deadline, admit=admit, many=many, width=width)
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

    def consider(self, candidate: Case, asker: str, ahead: Sequence[Case] = ()) -> bool:
        """Whether the candidate is smaller and interesting; if so it is the best so far."""
        if not size_key(candidate) < size_key(self.best):
            return False
        interesting = self._court.ask(candidate, asker, ahead)
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
        scout = _Scout(p, self.best, self._observed)
        try:
            candidate = next(proposals)
            while True:
                # A bisection goes another way after each answer; whoever tries one by one goes on alike.
                ahead = () if p.coarse else scout.ahead(self._court.width - 1, self._smaller)
                interesting = self.consider(candidate, p.name, ahead)
                scout.learn(interesting)
                candidate = proposals.send(interesting)
        except StopIteration:
            return

    def _smaller(self, candidate: Case) -> bool:
        return size_key(candidate) < size_key(self.best) and self._court.takes(candidate)


class _Scout:
    """Runs a pass ahead of its answers, as long as these go on being no.

    A pass is a pure function, so a second run of it that is given the same answers makes the same proposals;
    given a few more noes, it tells what will be asked for next if those come true.
    """

    def __init__(self, p: Pass, case: Case, observed: Observations) -> None:
        self._pass, self._case, self._observed = p, case, observed
        self._answers: list[bool] = []
        self._twin: Proposals | None = None
        self._coming: list[Case] = []  # the candidate at hand, and those after it
        self._misses = 0

    def learn(self, interesting: bool) -> None:
        """What became of the candidate at hand."""
        self._answers.append(interesting)
        self._misses = 0 if interesting else self._misses + 1
        if interesting:
            self._twin, self._coming = None, []
        else:
            self._coming = self._coming[1:]

    def ahead(self, count: int, worth: Judge) -> list[Case]:
        """Up to so many candidates, worth judging, that come next if those before them fail to please."""
        if count < 1 or self._misses < PATIENCE:
            return []
        if self._twin is None:
            self._twin = self._pass.run(self._case, self._observed)
            self._coming = [self._replayed(self._twin)]
        found = [case for case in self._coming[1:] if worth(case)]
        while len(found) < count and len(self._coming) < FARTHEST:
            try:
                self._coming.append(self._twin.send(False))
            except StopIteration:
                break
            found += [case for case in self._coming[-1:] if worth(case)]
        return found[:count]

    def _replayed(self, twin: Proposals) -> Case:
        candidate = next(twin)
        for answer in self._answers:
            candidate = twin.send(answer)
        return candidate
