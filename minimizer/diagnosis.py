"""What a found failure means: who is to blame, what its message says, which settings make it vanish.

Everything here comes after the reduction and before the hand-over, within a share of the budget.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from minimizer.ablation import Ablation, Row, blamed
from minimizer.blame import charge
from minimizer.capture import Determinism
from minimizer.case import Case
from minimizer.debug_ladder import climb
from minimizer.explain import outcome, render
from minimizer.explain.family import generated_kernel
from minimizer.explain.generated import Unreadable, read_generated
from minimizer.explain.router import Found, search_text
from minimizer.explain.traced import with_code
from minimizer.narrow import Narrowed
from minimizer.options import ABLATION_SHARE, ABLATION_UNTIL, TOOLS_UNTIL
from minimizer.oracle.case_bench import CaseBench
from minimizer.oracle.verdict import Failure
from minimizer.region import said

if TYPE_CHECKING:
    from minimizer.run import Run


def diagnose(run: Run, failure: Failure, case: Case, narrowed: Narrowed | None, found: Determinism) -> None:
    """Say and note all of it. `failure` is the target's own, `case` the reduced one where there is one."""
    accused = charge(run.sandbox, case, run.store)
    run.note(cause=accused.cause, blame=accused.title)
    if accused.words:
        run.console.say("cause", f"{accused.cause}: {accused.operator}: {accused.words}")
    if accused.cause == "custom op":
        told = outcome.explain_operator(accused.operator, accused.words)
        run.note(explanation=render.as_markdown([Found("custom operator", 0, accused, told, 0)]))
        run.console.say("hint", told.fixes[0])
    else:
        _explain(run, failure, case)
    if narrowed is not None and failure.kind != "hang" and accused.cause != "custom op":
        _ablate(run, narrowed, found)
    run.meter.mark("diagnosis")


def _explain(run: Run, failure: Failure, case: Case) -> None:
    names = tuple(i.name for i in case.program.inputs)
    told = meaning(failure, run.package, names, said(str((run.record.region or {}).get("predicate") or "")))
    run.note(explanation=render.as_markdown(told))
    first = told[0] if told else None
    if first is not None and first.family != "outcome" and first.explanation.cause:
        run.console.say("hint", f"{first.explanation.name}: {first.explanation.cause}")


def meaning(failure: Failure, package: Path, names: tuple[str, ...], region: str = "") -> list[Found]:
    """What a failure's texts say, traced through the package where it is there; else what its kind means."""
    said = search_text(f"{failure.message}\n{failure.detail}")
    if said and package.exists():
        try:
            generated = read_generated(package)
        except Unreadable:  # the failure may be that very package
            generated = None
        if generated is not None:
            said = [with_code(f, generated, names) for f in said]
    told = outcome.Told(failure.kind, failure.stage, failure.message, failure.detail, failure.figures, region)
    return said or list(outcome.search(told))


def _ablate(run: Run, narrowed: Narrowed, found: Determinism) -> None:
    until = min(run.clock.spent + ABLATION_SHARE * run.options.budget, ABLATION_UNTIL * run.options.budget)
    # A bench of its own: what passes under other settings is no neighbour of the failing case.
    bench = CaseBench(run.sandbox, run.cases.store)
    ablation = Ablation(
        run.sandbox,
        bench,
        narrowed.case,
        narrowed.failure,
        narrowed.level,
        repeats=found.repeats,
        left=lambda: 0.0 if run.interrupted else until - run.clock.spent,
    )
    rows: list[Row] = []
    with run.console.bar("blame", unit=" settings") as bar:
        for row in ablation.rows():
            rows.append(row)
            bar.at(len(rows), row.setting)
        bisected = ablation.bisected()
    bench.close()
    run.compiles += bench.compiles
    said = blamed(rows)
    if said:
        run.console.say("blame", said + (f"\nPyTorch's bisector: {bisected}" if bisected else ""))
    if bisected:
        rows.append(Row("PyTorch's CompilerBisector blames", bisected))
    if rows:
        run.note(ablation=tuple({"setting": row.setting, "result": row.result} for row in rows))


def gather(run: Run, failure: Failure) -> None:
    """Run a crashing repro under the tools of the ladder, where nothing has named the kernel yet."""
    named = (run.record.kernel or {}).get("name") or generated_kernel(run.record.native_stack)
    if failure.kind not in ("crash", "memory_error") or run.record.blame or named:
        return
    devices = run.bench.info.devices if run.bench.info else ()
    rows = []
    with run.console.bar("ladder"):
        for climbed in climb(run.folder.path, devices, run.clock.past(TOOLS_UNTIL)):
            tool = climbed.tool
            rows.append({"rung": tool.name, "command": tool.command, "result": climbed.said})
            if not climbed.skipped:
                run.console.say("ladder", f"{tool.name}: {climbed.said}\nfrom a shell: {tool.command}")
    run.note(debug_tools=tuple(rows))
    run.meter.mark("ladder")
