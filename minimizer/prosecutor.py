"""The judge of candidates: one level of the oracle, one signature, and what else is seen on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import networkx as nx

from minimizer.capture import alike
from minimizer.case import Case
from minimizer.oracle.case_bench import CaseBench, OutOfBudget
from minimizer.oracle.verdict import Failure, Signature, Verdict
from minimizer.program import Program, meta_symbols
from minimizer.reduce.search import OutOfTime, never
from minimizer.sequential import SequentialTest

CALIBRATION = 40
"""Runs of the whole case that tell how often a flaky failure shows at a level."""


@dataclass
class Prosecutor:
    """Judges candidates at one level against one signature, and keeps what else it sees.

    `signature` is what the failure looks like at this level: a proxy words its errors in its own way. A flaky
    failure is looked for `repeats` times until `calibrate` has found out how often it shows; from then on
    `test` decides how often each candidate is run. With `dynamic`, candidates without any dynamic dim are not
    taken, and `turned_away` is set; with `joined`, neither are those in which some call stands by itself (it
    would be there for its dim only). After `deadline` no judgement is begun; at the time `until`, of the
    monotonic clock, one under way is ended.
    """

    bench: CaseBench
    level: str
    signature: Signature
    repeats: int = 1
    also: dict[Signature, tuple[Case, Failure]] = field(default_factory=dict)
    judged: int = 0
    dynamic: bool = False
    joined: bool = False
    turned_away: bool = False
    test: SequentialTest | None = None
    deadline: Callable[[], bool] = never
    until: float = math.inf

    def takes(self, case: Case) -> bool:
        """Whether the case may be judged at all."""
        program = case.program
        taken = not self.dynamic or (
            program.dynamic_dims > 0 and (not self.joined or hangs_together(program))
        )
        self.turned_away |= not taken
        return taken

    def verdict(self, case: Case) -> Verdict:
        """The first failing verdict of up to `repeats`, else the last one."""
        verdict = Verdict("invalid")
        for _ in range(self.repeats):
            verdict = self._once(case)
            if verdict.failed or verdict.status == "invalid":
                break
        return verdict

    def _once(self, case: Case) -> Verdict:
        self.judged += 1
        with self._in_time():
            return self.bench.judge(case, self.level)

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """Judge no longer than there is time. Raises OutOfTime."""
        self.bench.until = self.until
        try:
            yield
        except OutOfBudget:
            raise OutOfTime from None
        finally:
            self.bench.until = math.inf

    def calibrate(self, case: Case) -> float:
        """Find out how often the failure shows in a case that has it, and judge by that from now on."""
        shown = sum(self._is_it(case, self._once(case)) for _ in range(CALIBRATION))
        self.expect(shown / CALIBRATION)
        return shown / CALIBRATION

    def expect(self, rate: float) -> None:
        """Judge by a failure rate that was found before."""
        self.test = SequentialTest.like(rate)

    def __call__(self, case: Case) -> bool:
        """Whether the case still shows the very same failure, and about as often. Raises OutOfTime."""
        if self.test is None:
            return self._is_it(case, self.verdict(case))
        first = self._once(case)
        if first.status == "invalid":
            return False
        waiting = [first]

        def fails() -> bool:
            if self.deadline():
                raise OutOfTime
            return self._is_it(case, waiting.pop() if waiting else self._once(case))

        return self.test.decide(fails)

    def many(self, cases: Sequence[Case]) -> list[bool]:
        """What a call says of each, judged side by side."""
        if self.repeats > 1:
            return [self(case) for case in cases]
        self.judged += len(cases)
        with self._in_time():
            verdicts = self.bench.judge_many(cases, self.level)
        return [self._is_it(case, verdict) for case, verdict in zip(cases, verdicts, strict=True)]

    def _is_it(self, case: Case, verdict: Verdict) -> bool:
        if verdict.failure is None:
            return False
        if alike(verdict.failure.signature, self.signature):
            return True
        self.also.setdefault(verdict.failure.signature, (case, verdict.failure))
        return False


def hangs_together(program: Program) -> bool:
    """Whether all calls are joined through the values that they read: no call stands by itself."""
    flow = nx.Graph((source, n.name) for n in program.nodes for source in n.inputs)
    flow.add_nodes_from(n.name for n in program.nodes)
    return nx.number_connected_components(flow) <= 1


def dynamic_flows_into(program: Program, calls: Collection[str]) -> bool:
    """Whether some of the calls has a dynamic size, or reads what was computed from a value with one."""
    flow = nx.DiGraph((source, n.name) for n in program.nodes for source in n.inputs)
    dynamic = {i.name for i in program.inputs if meta_symbols(i.meta)}
    dynamic |= {n.name for n in program.nodes if meta_symbols(n.meta)}
    return any(dynamic & ({call} | (nx.ancestors(flow, call) if call in flow else set())) for call in calls)
