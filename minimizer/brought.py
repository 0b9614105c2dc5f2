"""Inputs that a person saw failing: do they keep the contract, and do they fail?

Misuse comes first: what breaks a promise of the exported program explains itself, and no compiler is to
blame. What keeps all promises is judged like any other input, and goes before any search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from minimizer import contract
from minimizer.case import Value
from minimizer.contract import Misuse
from minimizer.fuzz import Finding
from minimizer.oracle.target_bench import TargetBench
from minimizer.oracle.verdict import ASSERTED
from minimizer.program import Program

CALLS = 2
"""How often brought inputs are given to the compiled program: a second call may differ."""


@dataclass(frozen=True)
class Answer:
    """What judging brought inputs gave: a failure to go on with, misuse, or words on what else happened."""

    finding: Finding | None = None
    misuse: Misuse | None = None
    said: str = ""


def read(bench: TargetBench, program: Program, name: str) -> tuple[Value, ...] | Misuse:
    """The inputs that a person named, or the promise that they break. Raises TaskError and WorkerLost."""
    given = bench.person_inputs(name)
    if isinstance(given, Misuse):
        return given
    values = given.values
    if name.endswith(".safetensors"):
        values = contract.laid_out(program, values)
    broken = contract.check(program, values, given.names)
    if broken:
        return broken
    refused = bench.guards_reject(values)
    return contract.guard_refuses(refused) if refused else values


def judge(bench: TargetBench, values: Sequence[Value]) -> Answer:
    """Judge inputs that keep the contract."""
    given = tuple(values)
    verdict = bench.judge(*[given] * CALLS)
    if verdict.failure is not None:
        earlier = (given,) * ((verdict.turn or CALLS) - 1)
        return Answer(Finding(given, earlier, verdict.failure, 1))
    if verdict.status == "pass":
        return Answer(said="in contract, and right; the search goes on")
    if verdict.reason.startswith("eager raises "):
        fix = "the compiler has no part in this: make eager accept them, or pass others"
        said = "some on which it " + verdict.reason.removeprefix("eager ").splitlines()[0]
        return Answer(misuse=Misuse("inputs", "inputs that the model accepts in eager", said, fix))
    if verdict.reason.startswith(ASSERTED):
        said = "some on which it says: " + verdict.reason.removeprefix(ASSERTED).splitlines()[0]
        fix = "pass others, or let torch._check in the model allow these and export it again"
        return Answer(misuse=Misuse("inputs", "values that the exported program accepts", said, fix))
    return Answer(said=f"cannot be judged: {verdict.reason}; the search goes on without them")
