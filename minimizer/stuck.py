"""A compilation that did not end: measured, and the program cut down to where it starts not to end."""

from __future__ import annotations

import time

from minimizer.case import Case
from minimizer.growth import Growth, measure
from minimizer.oracle.bench import CaseBench
from minimizer.reduce.cut import Observations, keep, units

MARGIN = 1.3
"""How much longer than the shortest prefix that hangs the result is, so that a faster machine hangs too."""


def shorten(bench: CaseBench, case: Case, observed: Observations, limit: float) -> tuple[Case, Growth]:
    """A shorter program that still does not compile within `limit` seconds, and how the time grows.

    The wrapper is left out: generating code and compiling kernels is where compilers blow up.
    """
    names = units(case.program)
    before, bench.timeout = bench.timeout, limit

    def compile_prefix(nodes: int) -> float | None:
        shorter = keep(case, names[:nodes], observed)
        if shorter is None:
            return 0.0
        started = time.monotonic()
        verdict = bench.judge(shorter, "kernel", fresh=True)
        hangs = verdict.failure is not None and verdict.failure.kind == "hang"
        return None if hangs else time.monotonic() - started

    try:
        curve = measure(len(names), compile_prefix, limit)
    finally:
        bench.timeout = before
    if curve.shortest is None:
        return case, curve
    further = min(len(names), round(MARGIN * curve.shortest))
    return keep(case, names[:further], observed) or case, curve
