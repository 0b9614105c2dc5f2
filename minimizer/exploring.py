"""When the program as written shows nothing: the other ways to export and compile it, each searched in turn.

Each variant costs an export and a compile, so they come after the program as written, cheapest first, and
share the time that is left: what one does not use goes to the next ones. A failure under a variant ends the
search; from there on the run goes on with that variant's artifact, program and settings as if the person had
brought them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from minimizer import fuzz
from minimizer.input_space import InputSpace, mine_constants
from minimizer.options import FUZZ_SHARE
from minimizer.oracle.requests import TargetInfo
from minimizer.oracle.target_bench import TargetBench
from minimizer.oracle.verdict import Failure
from minimizer.sandbox import TaskError, WorkerLost
from minimizer.targets.recognise import MODEL_FILE, recognise
from minimizer.variant import Variant, variants
from strategies import OPENING

if TYPE_CHECKING:
    from minimizer.run import Run

MOST = 100
"""Variants that are listed at most; nobody waits for more compiles."""


LEAST_SEARCH = 5.0
"""Seconds of searching that each variant gets beyond what its compilation took, however many wait."""

LEAST_COMPILE = 0.2
"""Share of the budget that a compilation may take although the variant's share is used up.

Options that change the compiler's flags need precompiled headers of their own, half a minute once.
"""


@dataclass(frozen=True)
class Explored:
    """What became of one variant: in words, how it ended, and how many inputs were judged."""

    variant: str
    outcome: str
    inputs: int = 0


@dataclass(frozen=True)
class Elsewhere:
    """A failure of a variant: its artifact, program, and the failing input (None: it does not compile)."""

    bench: TargetBench
    info: TargetInfo
    finding: fuzz.Finding | None
    failure: Failure


def explore(run: Run, info: TargetInfo) -> Elsewhere | None:
    """Search the variants that the run asks for until one fails; None when none does within its time."""
    waiting = list(islice(_asked(run, info), MOST))
    explored: list[Explored] = []
    found = None
    cost = 0.0  # seconds to open and compile a variant, as measured
    with run.console.bar("variants", total=len(waiting), unit=" variants") as bar:
        for k, variant in enumerate(waiting):
            left = FUZZ_SHARE * run.options.budget - run.clock.spent
            if left < max(cost, 1.0):
                break
            bar.at(k, words := variant.in_words([i.name for i in info.program.inputs]))
            started = run.clock.spent
            share = left / min(len(waiting) - k, max(1.0, left / (cost + LEAST_SEARCH)))
            tried = _Trial(run, info, variant, f"v{k}_", until=started + max(share, cost + LEAST_SEARCH))
            found = tried.go()
            cost = max(cost, tried.prepared - started)
            explored.append(Explored(words, tried.outcome, tried.inputs))
            if found is not None:
                break
    _say(run, explored, len(waiting), found)
    return found


def _asked(run: Run, info: TargetInfo) -> Iterator[Variant]:
    state = [s.meta.dtype for s in info.program.state]
    found = variants(run.options.wanted, info.program, info.examples, state, info.config)
    exportable = recognise(run.options.target).kind == MODEL_FILE
    yield from (variant for variant in found if exportable or not variant.exports_anew)


def _say(run: Run, explored: list[Explored], asked: int, found: Elsewhere | None) -> None:
    if not asked:
        return
    tried = [e for e in explored if not e.outcome.startswith("skipped")]
    skipped = len(explored) - len(tried)
    said = f"{len(tried)} of {asked} tried" + (f", {skipped} skipped" if skipped else "")
    said += f" · {sum(e.inputs for e in tried)} inputs"
    said += f" · fails: {explored[-1].variant}" if found else " · no failure"
    run.console.say("variants", said)
    rows = tuple({"variant": e.variant, "outcome": e.outcome, "inputs": e.inputs} for e in explored)
    inputs = (run.record.inputs_tried or 0) + sum(e.inputs for e in explored)
    run.note(variants=rows, inputs_tried=inputs)


class _Trial:
    """One variant: opened, compiled and searched until a moment of the run's clock."""

    def __init__(self, run: Run, info: TargetInfo, variant: Variant, prefix: str, *, until: float) -> None:
        self.run = run
        self.variant = variant
        self.until = until
        self.outcome = ""
        self.inputs = 0
        self.prepared = run.clock.spent
        request = replace(run.request, variant=variant, prefix=prefix)
        known = None if variant.exports_anew else _configured(info, variant)
        package = run.sandbox.scratch / f"{prefix}target.pt2"
        self.bench = TargetBench(run.sandbox, request, package, run.options.environment, info=known)
        self.bench.open_timeout = run.bench.open_timeout

    def go(self) -> Elsewhere | None:
        """The failure of this variant, if it shows one."""
        try:
            found = self._go()
        except TaskError as problem:
            self.outcome = f"skipped: {problem.message.splitlines()[0] if problem.message else problem}"
            found = None
        except WorkerLost as lost:
            self.outcome = f"skipped: {lost}"
            found = None
        if found is None:
            self.bench.close()
            self.bench.package.unlink(missing_ok=True)
        return found

    def _go(self) -> Elsewhere | None:
        info = self.bench.info or self.bench.open()
        left = max(self.until - self.run.clock.spent, LEAST_COMPILE * self.run.options.budget)
        failure = self.bench.compile(min(self.run.compile_limit, left))
        self.run.compiles += 1
        self.prepared = self.run.clock.spent
        if failure is not None and failure.kind == "hang":
            self.outcome = f"skipped: {failure.message}"
            return None
        if failure is not None:
            self.outcome = f"{failure.kind}: {failure.message.splitlines()[0][:200]}"
            return Elsewhere(self.bench, info, None, failure)
        report = fuzz.search(
            InputSpace(info.program, mine_constants(self.bench.generated_code())),
            self.bench.judge_many,
            info.examples,
            seed=self.run.options.seed,
            stateful=info.stateful,
            most=min(OPENING + 100, self.run.options.most_inputs),
            give_up=lambda: self.run.clock.spent > self.until,
            settle=lambda: True,
        )
        self.inputs = report.tried
        finding = report.finding
        self.outcome = f"{finding.failure.kind} at input {finding.tried}" if finding else "no failure"
        if finding is not None and finding.mild and not self.run.options.wanted.asks:
            self.outcome += " (mild: not followed unless variants are asked for)"
            return None
        return None if finding is None else Elsewhere(self.bench, info, finding, finding.failure)


def _configured(info: TargetInfo, variant: Variant) -> TargetInfo:
    return replace(info, config=tuple((dict(info.config) | dict(variant.config)).items()))
