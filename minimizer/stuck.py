"""A compilation that did not end: measured, and the program cut down to where it starts not to end."""

from __future__ import annotations

import time

from minimizer.case import Case
from minimizer.growth import Growth, measure
from minimizer.oracle.case_bench import CaseBench
from minimizer.reduce.cut import Observations, keep, units

MARGIN = 1.3
"""How much longer than the shortest prefix that hangs the result is, so that a faster machine hangs too."""

SIGNS = (0.1, 0.2)
"""Shares of a program that are lowered alone while a person waits for all of it."""


def shorten(bench: CaseBench, case: Case, observed: Observations, limit: float) -> tuple[Case, Growth]:
    """A shorter program that still does not compile within `limit` seconds, and how the time grows.

    The wrapper is left out: generating code and compiling kernels is where compilers blow up.
    """
    names = units(case.program)
    curve = measure(len(names), lambda nodes: _seconds(bench, case, observed, nodes, "kernel", limit), limit)
    if curve.shortest is None:
        return case, curve
    further = min(len(names), round(MARGIN * curve.shortest))
    return keep(case, names[:further], observed) or case, curve


def first_signs(bench: CaseBench, case: Case, observed: Observations, limit: float) -> str:
    """How long the first tenth and the first fifth of a program take to lower, in words.

    For a person who waits for all of it; neither takes more than `limit` seconds.
    """
    total = len(units(case.program))
    said = []
    for nodes in dict.fromkeys(max(1, round(share * total)) for share in SIGNS):
        took = _seconds(bench, case, observed, nodes, "lower", limit)
        said.append(f"{nodes} in " + (f"more than {limit:.0f} s" if took is None else f"{took:.1f} s"))
        if took is None:
            break
    return f"of its {total} calls, the first {', the first '.join(said)}"


def _seconds(
    bench: CaseBench, case: Case, observed: Observations, nodes: int, level: str, limit: float
) -> float | None:
    """Seconds that the first calls of a program take to compile; None when they are not done at the limit."""
    shorter = keep(case, units(case.program)[:nodes], observed)
    if shorter is None:
        return 0.0
    before, bench.timeout = bench.timeout, limit
    started = time.monotonic()
    try:
        verdict = bench.judge(shorter, level, fresh=True)
    finally:
        bench.timeout = before
    hangs = verdict.failure is not None and verdict.failure.kind == "hang"
    return None if hangs else time.monotonic() - started
