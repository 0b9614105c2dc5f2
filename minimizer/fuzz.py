"""Searches the inputs that the contract allows for one on which the compiled program fails.

The examples come first, called twice; then a fixed opening of telling sizes and values; then random draws of
descriptions (a few choices, never elements), which are cheap, in turn with Hypothesis, which climbs the error
ratio. What they find is shrunk by lowering its choices. A program with state is called three times: with the
inputs before these, with these, and with the former again. Other values and sizes in between show what a
repeated call does not.

The first failure that is bad enough ends the search: a lost error is kept and the search goes on for a worse
one while there is time.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count, islice
from typing import TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from minimizer.case import Value, Values
from minimizer.input_space import InputSpace
from minimizer.oracle.batches import Calls, JudgeMany, judged
from minimizer.oracle.verdict import Failure, Severity, Signature, Verdict, normalise
from strategies import Draw
from strategies.choices import lowered, pinned, replayed

SHRINK_JUDGEMENTS = 200
"""Inputs judged while shrinking; the reducer goes on from there with the graph in hand."""

PATIENCE = 400
"""Inputs tried after a mild finding that is not a lost error."""

NOVELTY = 0.05
"""Share of a round's draws that must be new; below it, twice in a row, the search is over."""

ROUND = 200
"""Draws per round; each round has a seed of its own."""

CLIMBABLE = 0.25
"""Least error, over the allowed one, that is worth climbing: below it is rounding, in most programs."""

RECENT = 64
"""Inputs judged just before a finding that are kept with it: buffers and caches may remember them."""

T = TypeVar("T")


@dataclass(frozen=True)
class Finding:
    """A failing set of inputs and those of the calls before it, found at input `tried`; `mild` as in `mild`.

    `before` are inputs that the loaded program had been given, and judged right on, when it was found;
    `manner` is how it was called (`case.MANNERS`).
    """

    values: Values
    earlier: tuple[Values, ...]
    failure: Failure
    tried: int
    mild: bool = False
    before: tuple[Values, ...] = ()
    manner: str = ""

    @property
    def numel(self) -> int:
        """Elements of all inputs."""
        return sum(value.numel for call in (*self.earlier, self.values) for value in call)


@dataclass
class FuzzReport:
    """What a search found: the finding to go on with, other findings by signature, and counts.

    `passed` are the last inputs that were right; `refusals` counts why inputs are invalid, without numbers.
    """

    finding: Finding | None = None
    also: dict[Signature, Finding] = field(default_factory=dict)
    tried: int = 0
    invalid: int = 0
    passed: tuple[Values, ...] = ()
    refusals: Counter[str] = field(default_factory=Counter)

    @property
    def hollow(self) -> str:
        """Why most inputs are refused, where most are; else empty."""
        if 2 * self.invalid <= self.tried:
            return ""
        ((reason, count),) = self.refusals.most_common(1)
        return f"{count} of {self.tried} inputs told nothing: {reason}"


class _Found(Exception):
    """Raised inside Hypothesis for an interesting input."""


def search(
    space: InputSpace,
    judge: JudgeMany,
    examples: Sequence[Value],
    *,
    seed: int,
    stateful: bool,
    most: int,
    give_up: Callable[[], bool] = lambda: False,
    settle: Callable[[], bool] = lambda: False,
    progress: Callable[[int], None] = lambda tried: None,
) -> FuzzReport:
    """Judge inputs until one fails badly enough.

    `most` bounds the inputs judged; `give_up()` ends the search, `settle()` says when a mild finding is good
    enough. Deterministic for a seed as far as the judge is.
    """
    trials = _Trials(judge, most, give_up, settle, progress)
    given = tuple(examples)
    first = [(None, (given, given))]
    for _, verdict in trials.run(chain(first, _opening(space, given, stateful))):
        if decisive(verdict) is not None:
            break
    else:
        _Rounds(space, trials, seed, stateful).run()
    return trials.ranked()


def _opening(space: InputSpace, given: Values, stateful: bool) -> Iterator[tuple[None, Calls]]:
    for draw in space.opening():
        last, given = given, space.values(draw)
        yield None, _calls(last, given) if stateful else (given,)


class _Trials:
    """What is judged in the course of a search, and what came of it."""

    def __init__(
        self,
        judge: JudgeMany,
        most: int,
        give_up: Callable[[], bool],
        settle: Callable[[], bool],
        progress: Callable[[int], None],
    ) -> None:
        self._judge = judge
        self._most = most
        self._give_up = give_up
        self._settle = settle
        self._progress = progress
        self._recent: deque[Values] = deque(maxlen=RECENT)
        self.report = FuzzReport()

    def run(self, given: Iterable[tuple[T, Calls]]) -> Iterator[tuple[T, Verdict]]:
        """Judge these one after the other, each with whatever comes with it, until the search is over."""
        if self.over():
            return
        for tag, calls, verdict in judged(self._judge, islice(given, self._most - self.report.tried)):
            self._take(calls, verdict)
            yield tag, verdict
            if self.over():
                return

    def one(self, calls: Calls) -> Verdict:
        """Judge one set of calls, over or not."""
        verdict = self._judge([calls])[0]
        self._take(calls, verdict)
        return verdict

    def _take(self, calls: Calls, verdict: Verdict) -> None:
        report = self.report
        report.tried += 1
        if verdict.status == "invalid":
            report.invalid += 1
            report.refusals[normalise(verdict.reason)[:200]] += 1
        self._progress(report.tried)
        if verdict.failure is not None:
            signature = verdict.failure.signature
            known = report.also.get(signature)
            if known is None or (known.mild and not mild(verdict)):
                *earlier, values = calls[: verdict.turn or None]
                report.also[signature] = Finding(
                    values, tuple(earlier), verdict.failure, report.tried, mild(verdict), tuple(self._recent)
                )
        elif verdict.status == "pass":
            self._recent.extend(calls)

    def over(self) -> bool:
        """Whether nothing more is to be judged."""
        if self.report.tried >= self._most or self._give_up():
            return True
        if not self.report.also:
            return False
        value = [f for f in self.report.also.values() if f.failure.severity > Severity.LOST_ERROR]
        return self._settle() or any(self.report.tried >= f.tried + PATIENCE for f in value)

    def ranked(self) -> FuzzReport:
        """The report, with the worst finding taken out of the others."""
        report = self.report
        report.passed = tuple(self._recent)
        found = sorted(report.also.values(), key=lambda f: (f.mild, -f.failure.severity, f.tried))
        report.finding = found[0] if found else None
        if report.finding is not None:
            report.also.pop(report.finding.failure.signature)
        return report


def _calls(first: Values, second: Values) -> tuple[Values, ...]:
    """What a program with state is called with: one, another, and the one again."""
    return (first, second, first)


def mild(verdict: Verdict) -> bool:
    """Whether a search that found this goes on for something worse.

    So it does for a lost error, for another layout or Python type of the right values, and for wrong values
    that came of NaN or infinity among the inputs: the same bug often shows on ordinary numbers too.
    """
    failure = verdict.failure
    if failure is None:
        return True
    layout = failure.flavour in ("stride", "type")
    return failure.severity <= Severity.LOST_ERROR or layout or verdict.special


def decisive(verdict: Verdict) -> Failure | None:
    """The failure, when it is bad enough to end a search."""
    return None if mild(verdict) else verdict.failure


class _Rounds:
    """Rounds, each with its own seed, until one finds something or the search is over.

    Plain random draws first; where they show an error to climb, Hypothesis goes on from there.
    """

    def __init__(self, space: InputSpace, trials: _Trials, seed: int, stateful: bool) -> None:
        self._space = space
        self._trials = trials
        self._report = trials.report
        self._seed = seed
        self._stateful = stateful
        self._judged: dict[tuple[Draw, ...], Verdict] = {}
        self._caught: Signature | None = None
        self._shrinks = 0
        self._climbs = False

    def run(self) -> None:
        """Go on until something is caught, time is up, or there is next to nothing new to draw."""
        dry = 0
        for turn in count():
            if self._trials.over():
                return
            before = self._report.tried
            if self._random_round(turn):
                return
            if not self._climbs and self._report.tried > before + NOVELTY * ROUND:
                continue
            if self._climb(turn) or self._caught is not None:
                return
            dry = dry + 1 if self._report.tried - before < NOVELTY * ROUND else 0
            if dry == 2:
                return

    def _random_round(self, turn: int) -> bool:
        """Judge plain random draws; whether that ends the search, with or without a finding."""
        for (choices, drawn), verdict in self._trials.run(self._at_random(turn)):
            self._judged[drawn] = verdict
            self._climbs |= CLIMBABLE <= verdict.error_ratio < math.inf
            failure = decisive(verdict)
            if failure is not None:
                self._caught = failure.signature
                lowered(choices, partial(self._fails_lowered, drawn[:-1]))
                return True
        return self._trials.over()

    def _at_random(self, turn: int) -> Iterator[tuple[tuple[list[int], tuple[Draw, ...]], Calls]]:
        """The random draws of a round that are new, each with the choices that led to the last of them."""
        previous: Draw | None = None
        known = set(self._judged)
        for k in range(ROUND):
            choices, draw = self._space.at_random(f"{self._seed} {turn} {k}")
            if draw is None:
                continue
            # Two in a row for a program with state: the one that was drawn before this one comes first.
            drawn = (previous or draw, draw) if self._stateful else (draw,)
            previous = draw
            if drawn not in known:
                known.add(drawn)
                yield (choices, drawn), self._calls(drawn)

    def _climb(self, turn: int) -> bool:
        """Let Hypothesis climb the error ratio, and shrink what it finds; whether it found something."""

        def trial(drawn: tuple[Draw, ...]) -> None:
            fails = self._fails(drawn)
            verdict = self._judged.get(drawn)
            if verdict is not None and math.isfinite(verdict.error_ratio):
                hypothesis.target(min(verdict.error_ratio, 1e6), label="error over tolerance")
            if fails:
                raise _Found

        given = hypothesis.given(st.tuples(*[self._space.draws()] * (2 if self._stateful else 1)))
        settings = hypothesis.settings(
            max_examples=ROUND,
            database=None,
            deadline=None,
            derandomize=False,
            phases=(Phase.generate, Phase.target, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            print_blob=False,
            report_multiple_bugs=False,
        )
        try:
            with pinned():
                hypothesis.seed(self._seed + turn)(settings(given(trial)))()
        except (_Found, hypothesis.errors.Flaky):
            return True
        return False

    def _fails_lowered(self, first: tuple[Draw, ...], choices: Sequence[int]) -> bool:
        draw = self._space.pick(replayed(choices))
        return draw is not None and self._fails((*first, draw))

    def _fails(self, drawn: tuple[Draw, ...]) -> bool:
        """Whether these fail like what was caught first; of what does, the smallest inputs are kept.

        What was never judged does not when the search is over or has shrunk for long enough.
        """
        if drawn not in self._judged:
            self._shrinks += self._caught is not None
            if self._trials.over() or self._shrinks > SHRINK_JUDGEMENTS:
                return False
            self._try(drawn)
        verdict = self._judged[drawn]
        failure = decisive(verdict)
        if failure is None or self._caught not in (None, failure.signature):
            return False
        self._caught = failure.signature
        *earlier, last = self._calls(drawn)[: verdict.turn or None]
        best = self._report.also[self._caught]
        simpler = replace(best, values=last, earlier=tuple(earlier), failure=failure, mild=False)
        if simpler.numel <= best.numel:
            self._report.also[self._caught] = simpler
        return True

    def _try(self, drawn: tuple[Draw, ...]) -> Verdict:
        self._judged[drawn] = self._trials.one(self._calls(drawn))
        return self._judged[drawn]

    def _calls(self, drawn: tuple[Draw, ...]) -> tuple[Values, ...]:
        values = tuple(map(self._space.values, drawn))
        return _calls(*values) if self._stateful else values
