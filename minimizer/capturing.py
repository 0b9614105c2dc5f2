"""The step from a first failure to one that is known to come back, in fresh processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from minimizer.capture import LADDER, Determinism, Rung, capture
from minimizer.case import Case, Values
from minimizer.narrow import levels
from minimizer.options import REDUCE_SHARE
from minimizer.oracle.target_bench import TargetBench
from minimizer.oracle.verdict import Failure, Verdict

if TYPE_CHECKING:
    from minimizer.run import Run


def capture_case(run: Run, failure: Failure, case: Case, before: Sequence[Values] = ()) -> Determinism:
    """Replay in fresh processes and climb the ladder until it always fails."""
    if failure.kind == "hang" and failure.stage != "run":
        return Determinism(LADDER[0], 1, 1, failure)  # minutes each; the growth curve is the evidence

    def replay(rung: Rung) -> Verdict:
        if failure.stage not in ("run", "load") and case.settings.path == "aoti":
            return _recompile(run, failure)
        environment = run.options.environment + rung.environment
        bench = TargetBench(run.sandbox, run.request, run.package, environment, info=run.bench.info)
        try:
            calls = on_rung(case, rung, before).sequence
            return bench.judge(*calls, plainly=True, manner=case.settings.manner)
        finally:
            bench.close()

    # A compiler that fails is seldom moody and always dear: it was seen once, in a fresh process, and is seen
    # once more.
    compiling = failure.stage not in ("run", "load")
    runs = 1 if compiling else 2 if failure.kind == "hang" else 5
    with run.console.bar("capture"):
        devices = run.bench.info.devices if run.bench.info else ()
        give_up = run.clock.past(REDUCE_SHARE)
        found = capture(failure, replay, runs=runs, devices=devices, give_up=give_up, before=len(before))
    if compiling and found.rung == LADDER[0]:
        found = replace(found, runs=found.runs + 1, failures=found.failures + 1)
    how = "deterministic" if found.certain else "flaky"
    rung = "" if found.rung == LADDER[0] else f", {found.rung.name}"
    run.console.say("capture", f"fails {found.failures} of {found.runs} fresh runs ({how}{rung})")
    if found.rung.command:
        run.console.say("", f"from a shell: {found.rung.command} python ...")
    run.note(determinism=found.summary)
    return found


def _recompile(run: Run, failure: Failure) -> Verdict:
    """Compile the target again in a fresh worker, no further than the failing stage."""
    package = run.sandbox.scratch / "again.pt2"
    bench = TargetBench(run.sandbox, run.request, package, run.options.environment, info=run.bench.info)
    try:
        for level in levels("aoti", failure.stage):
            again = bench.compile(run.compile_limit, level)
            run.compiles += level != "lower"
            if again is not None:
                return Verdict("fail", again)
        return Verdict("pass")
    finally:
        bench.close()


def on_rung(case: Case, rung: Rung, before: Sequence[Values]) -> Case:
    """The case with the settings and calls of a rung."""
    remembered = before[-rung.before :] if rung.before else ()
    earlier = (*remembered, *case.earlier, *(case.values,) * rung.extra_calls)
    environment = case.settings.environment + rung.environment
    return replace(case, settings=replace(case.settings, environment=environment), earlier=earlier)
