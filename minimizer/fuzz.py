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

import itertools
import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from minimizer.case import Value, Values, contiguous_stride
from minimizer.oracle.verdict import Failure, Severity, Signature, Verdict
from minimizer.program import Program
from minimizer.roles import InputRole, input_roles
from minimizer.symbolic import evaluate
from strategies import Draw, Role, Symbol, draws, opening
from strategies.choices import Pick, chance, lowered, pinned, replayed
from strategies.inputs import draw_picker

MEMORY = 1 << 28
"""Bytes of all inputs together, and elements of any one value, that a drawn size may reach."""

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

_ITEMSIZE = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}

RECENT = 64
"""Inputs judged just before a finding that are kept with it: buffers and caches may remember them."""

Judge = Callable[..., Verdict]
"""Judges inputs (`Values`) that are given to one loaded program call after call."""


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

    `passed` are the last inputs that were right.
    """

    finding: Finding | None = None
    also: dict[Signature, Finding] = field(default_factory=dict)
    tried: int = 0
    invalid: int = 0
    passed: tuple[Values, ...] = ()


class _Found(Exception):
    """Raised inside Hypothesis for an interesting input."""


class InputSpace:
    """The inputs that a program's contract allows, as draws and as values."""

    def __init__(self, program: Program, mined: Sequence[int] = ()) -> None:
        self.program = program
        self.symbols = [Symbol(s.name, s.low, s.high, s.hint) for s in program.symbols]
        self.roles = input_roles(program)
        hints = {s.name: s.hint for s in program.symbols}
        self.specs = [
            (i.meta.dtype, Role(role.kind, _bound(role, hints)))
            for i, role in zip(program.inputs, self.roles)
        ]
        self.mined = tuple(mined)

    def fits(self, sizes: dict[str, int]) -> bool:
        """Whether every input has a shape at these sizes, and together they fit in memory."""
        total = 0
        for i in self.program.inputs:
            try:
                shape = [evaluate(size, sizes) for size in i.meta.shape]
            except (ZeroDivisionError, KeyError):
                return False
            if any(size < 0 or size != int(size) for size in shape):
                return False
            if _overlaps([int(size) for size in shape], [int(evaluate(s, sizes)) for s in i.meta.stride]):
                return False
            bits = re.search(r"\d+", i.meta.dtype)
            total += math.prod(int(size) for size in shape) * _ITEMSIZE.get(bits[0] if bits else "8", 8)
        return total <= MEMORY

    def values(self, draw: Draw) -> tuple[Value, ...]:
        """The values that a draw describes, laid out with the exported strides."""
        sizes = {s.name: s.hint for s in self.symbols} | draw.size_of
        return tuple(self._value(k, sizes, draw) for k in range(len(self.program.inputs)))

    def _value(self, k: int, sizes: dict[str, int], draw: Draw) -> Value:
        meta = self.program.inputs[k].meta
        shape = tuple(int(evaluate(size, sizes)) for size in meta.shape)
        stride = tuple(int(evaluate(step, sizes)) for step in meta.stride)
        bound = _bound(self.roles[k], sizes)
        if draw.ones:
            stride = tuple(draw.ones if size == 1 else step for size, step in zip(shape, stride))
        plain = None if stride == contiguous_stride(shape) else stride
        offset = draw.offset if shape and 0 not in shape else 0
        return Value(meta.dtype, shape, draw.fills[k], plain, meta.device, bound, offset=offset)

    def opening(self) -> Iterator[Draw]:
        """The fixed opening moves."""
        return opening(self.symbols, self.specs, self.mined, self.fits)

    def at_random(self, seed: str) -> tuple[list[int], Draw | None]:
        """One random description, and the choices that led to it; None where no sizes fit."""
        made: list[int] = []
        return made, self.pick(chance(seed, made))

    @cached_property
    def pick(self) -> Callable[[Pick], Draw | None]:
        """How one description is picked."""
        return draw_picker(self.symbols, self.specs, self.mined, self.fits)

    def draws(self) -> hypothesis.strategies.SearchStrategy[Draw]:
        """Everything else."""
        return draws(self.symbols, self.specs, self.mined, self.fits)


def _overlaps(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether elements share memory, repeated ones (stride 0) left aside: the strides of a slice are fixed
    when it is exported, and larger sizes no longer fit between them."""
    span = 1
    for step, size in sorted((step, size) for size, step in zip(shape, stride) if size > 1 and step > 0):
        if step < span:
            return True
        span = step * (size - 1) + span
    return False


def _bound(role: InputRole, sizes: dict[str, int]) -> int | None:
    if role.bound is None:
        return None
    try:
        return max(1, int(evaluate(role.bound, sizes)))
    except (KeyError, ZeroDivisionError):
        return None


def mine_constants(code: str) -> tuple[int, ...]:
    """Sizes at which generated code may change its way: loop steps, tile sizes, tails.

    Taken from comparisons, steps and integer casts in the C++ text; powers of the vector width among them.
    """
    found: dict[int, int] = {}
    for match in re.finditer(r"(?:<|>=|\+=|%|//|/)\s*(?:static_cast<int64_t>\()?(\d{1,4})L?\b", code):
        number = int(match[1])
        if 2 < number <= 4096:
            found[number] = found.get(number, 0) + 1
    return tuple(sorted(found, key=lambda n: -found[n])[:8])


def search(
    space: InputSpace,
    judge: Judge,
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
    report = FuzzReport()
    recent: deque[Values] = deque(maxlen=RECENT)

    def try_calls(*calls: Values) -> Verdict:
        verdict = judge(*calls)
        report.tried += 1
        report.invalid += verdict.status == "invalid"
        progress(report.tried)
        if verdict.failure is not None:
            signature = verdict.failure.signature
            known = report.also.get(signature)
            if known is None or (known.mild and not mild(verdict)):
                *earlier, values = calls[: verdict.turn or None]
                report.also[signature] = Finding(
                    values, tuple(earlier), verdict.failure, report.tried, mild(verdict), tuple(recent)
                )
        elif verdict.status == "pass":
            recent.extend(calls)
        return verdict

    def over() -> bool:
        if report.tried >= most or give_up():
            return True
        if not report.also:
            return False
        value = [f for f in report.also.values() if f.failure.severity > Severity.LOST_ERROR]
        return settle() or any(report.tried >= f.tried + PATIENCE for f in value)

    given = tuple(examples)
    if decisive(try_calls(given, given)) is None:
        for draw in space.opening():
            last, given = given, space.values(draw)
            if over() or decisive(try_calls(*_calls(last, given) if stateful else (given,))) is not None:
                break
        else:
            _Rounds(space, try_calls, report, seed, stateful, over).run()
    report.passed = tuple(recent)
    ranked = sorted(report.also.values(), key=lambda f: (f.mild, -f.failure.severity, f.tried))
    report.finding = ranked[0] if ranked else None
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

    def __init__(
        self,
        space: InputSpace,
        try_calls: Callable[..., Verdict],
        report: FuzzReport,
        seed: int,
        stateful: bool,
        over: Callable[[], bool],
    ) -> None:
        self._space = space
        self._try_calls = try_calls
        self._report = report
        self._seed = seed
        self._stateful = stateful
        self._over = over
        self._judged: dict[tuple[Draw, ...], Verdict] = {}
        self._caught: Signature | None = None
        self._shrinks = 0
        self._climbs = False

    def run(self) -> None:
        """Go on until something is caught, time is up, or there is next to nothing new to draw."""
        dry = 0
        for turn in itertools.count():
            if self._over():
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
        previous: Draw | None = None
        for k in range(ROUND):
            choices, draw = self._space.at_random(f"{self._seed} {turn} {k}")
            if draw is None:
                continue
            # Two in a row for a program with state: the one that was drawn before this one comes first.
            first = (previous or draw,) if self._stateful else ()
            previous = draw
            if (*first, draw) in self._judged:
                continue
            if self._over():
                return True
            verdict = self._try((*first, draw))
            self._climbs |= CLIMBABLE <= verdict.error_ratio < math.inf
            failure = decisive(verdict)
            if failure is not None:
                self._caught = failure.signature
                lowered(choices, partial(self._fails_lowered, first))
                return True
        return False

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
            if self._over() or self._shrinks > SHRINK_JUDGEMENTS:
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
        self._judged[drawn] = self._try_calls(*self._calls(drawn))
        return self._judged[drawn]

    def _calls(self, drawn: tuple[Draw, ...]) -> tuple[Values, ...]:
        values = tuple(map(self._space.values, drawn))
        return _calls(*values) if self._stateful else values
