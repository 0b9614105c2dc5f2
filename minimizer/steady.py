"""Right once, right always? What the search found right is called again in other manners.

A second load, another thread, two at once, the same call over and over: each may answer otherwise, and none
needs more than a few calls to be told. So they come last, on a few inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from minimizer.case import Values
from minimizer.fuzz import Finding
from minimizer.oracle.freedoms import RANDOM
from minimizer.oracle.verdict import Verdict
from minimizer.program import Program

INPUTS = 3
"""Sets of inputs that are called in each manner."""


def manners(program: Program, stateful: bool, path: str) -> tuple[str, ...]:
    """The manners in which a program must answer alike.

    Calls of a program with state depend on their order, random ones on each other's draws: neither may be
    made at once. AOTInductor's loader serves threads in turn with any number of runners, so they are promised
    (`AOTIModelPackageLoader`, model_container.h). Whether a program that could not be translated is random
    is not known. What ``torch.compile`` gives is not loaded.
    """
    operators = {name for node in program.nodes for name in node.target.split(".")[1:2]}
    known = bool(operators) and not operators & RANDOM
    threads = () if stateful else ("thread", "threads") if known else ("thread",)
    loads = ("reload",) if path == "aoti" else ()
    return ("again", *loads, *threads)


def unsteady(
    judge: Callable[..., Verdict],
    ways: Sequence[str],
    examples: Values,
    passed: Sequence[Values],
    give_up: Callable[[], bool],
) -> tuple[Finding | None, tuple[str, ...]]:
    """The first manner and inputs that give a wrong answer, of inputs that were right; and what was tried.

    `judge` takes calls and ``manner``; a wrong answer as usual is a finding too, one that comes and goes.
    """
    tried: list[str] = []
    for calls in _sequences(examples, passed):
        for manner in ways:
            if give_up():
                return None, tuple(tried)
            tried += [manner] if manner not in tried else []
            verdict = judge(*calls, manner=manner)
            if verdict.failure is not None:
                *earlier, values = calls
                found = Finding(values, tuple(earlier), verdict.failure, 0, manner=manner)
                return found, tuple(tried)
    return None, tuple(tried)


def _sequences(examples: Values, passed: Sequence[Values]) -> Iterator[tuple[Values, ...]]:
    """The examples alone, then two different inputs after each other."""
    yield (examples,)
    others = [values for values in passed if values != examples][-INPUTS + 1 :]
    yield from ((examples, values) for values in others)
