"""The step from a captured case to the smallest one that fails alike."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING

from minimizer.capture import Determinism
from minimizer.case import Case
from minimizer.narrow import Means, Narrowed, narrow
from minimizer.options import LATEST_SHARE, REDUCE_SHARE, Unusable
from minimizer.oracle.requests import TASKS
from minimizer.oracle.verdict import Failure, Signature
from minimizer.program import Program, TensorMeta
from minimizer.reduce.dims import Observed
from minimizer.reduce.journal import FileJournal
from minimizer.reduce.passes import select
from minimizer.reduce.search import Progress
from minimizer.sandbox import TaskError, WorkerLost
from minimizer.stuck import shorten

if TYPE_CHECKING:
    from minimizer.run import Run


def reduce_case(run: Run, case: Case, failure: Failure, found: Determinism) -> Narrowed | None:
    """Reduce the graph, then the inputs, under the same signature."""
    observed = observe(run, case)
    if observed is None:
        return None
    started, total = run.clock.spent, case.program.operator_count
    also: dict[Signature, tuple[Case, Failure]] = {}

    def accepted(best: Case) -> None:
        run.best = (best, failure)
        run.folder.save_case(best, "case/best")

    with run.console.bar("reduce", unit=" judged") as bar:

        def shown(progress: Progress) -> None:
            nodes = f"{progress.nodes_before} → {progress.nodes} nodes"
            bar.at(progress.judged, f"{nodes}, {progress.pass_name}")

        means = Means(
            repeats=found.repeats,
            deadline=run.clock.past(REDUCE_SHARE),
            until=run.clock.at(LATEST_SHARE),
            interrupted=lambda: run.interrupted,
            on_progress=shown,
            on_accept=accepted,
            passes=select(run.options.passes),
            width=len(os.sched_getaffinity(0)),
            observe=lambda put: observe(run, put, f"seen_{put.key}_"),
            decompose=lambda whole: _decompose(run, whole),
        )
        journal = FileJournal(run.folder.journal)
        narrowed = narrow(run.cases, case, failure, observed, means, journal=journal, also=also)
    run.cases.close()
    _keep_aside(run, also)
    if narrowed is None:
        late = run.clock.past(REDUCE_SHARE)()
        why = "no time was left for it" if late else "the translated graph does not show the failure"
        run.console.say("reduce", f"{why}; handed over whole")
        return None
    _say_reduced(run, narrowed, total, run.clock.spent - started)
    return narrowed


def _keep_aside(run: Run, also: dict[Signature, tuple[Case, Failure]]) -> None:
    for k, (other, seen) in enumerate(also.values()):
        run.folder.save_case(other, f"also/{k}-{seen.kind}", {"message": seen.message[:500]})
    if run.cases.errors:
        run.folder.write("internal_error.txt", "\n\n".join(run.cases.errors))
        run.console.say("", f"{len(run.cases.errors)} candidates could not be judged: internal_error.txt")


def _say_reduced(run: Run, narrowed: Narrowed, total: int, took: float) -> None:
    proof = narrowed.certificate
    minimal = bool(narrowed.reduction.complete and proof and proof.complete and proof.minimal)
    if narrowed.note:
        run.console.say("", narrowed.note)
    if narrowed.test is not None:
        run.console.say("", narrowed.test.in_words())
        run.note(determinism={**(run.record.determinism or {}), **asdict(narrowed.test)})
    run.console.say(
        "reduce",
        f"{total} → {narrowed.case.program.operator_count} nodes · {run.cases.judged} candidates judged"
        f" · {took:.1f} s" + ("" if minimal else " · not proven minimal"),
    )
    run.note(candidates=run.cases.judged, minimal=minimal)


def _decompose(run: Run, case: Case) -> Program | None:
    """The case's program in finer operators; None where there are none, or that cannot be told."""
    try:
        finer: Program | None = run.ask(TASKS + "decomposed", case, run.store, timeout=run.bench.timeout)
    except (TaskError, WorkerLost):
        return None
    return finer


def observe(run: Run, case: Case, prefix: str = "seen_") -> dict[str, Observed] | None:
    """What eager computes for every value of the program on the failing inputs."""
    try:
        answer = run.ask(TASKS + "observe", case, run.store, prefix, timeout=run.bench.timeout)
    except (TaskError, WorkerLost) as problem:
        run.console.say("reduce", f"not possible: the graph cannot be run call by call ({problem})")
        return None
    if answer.problem:
        run.console.say("", f"eager stops on the failing inputs: {answer.problem}")
    metas = ((o, case.program.meta_of(o.name)) for o in answer.seen)
    return {o.name: Observed(meta, o.value, o.earlier) for o, meta in metas if isinstance(meta, TensorMeta)}


def shorten_hang(run: Run, case: Case, failure: Failure) -> Case:
    """A shorter program whose compilation does not end either. Raises Unusable when it is merely slow."""
    observed = observe(run, case)
    if observed is None:
        return case
    limit = max(10.0, min(30.0, 0.1 * run.options.budget))
    with run.console.bar("growth"):
        shorter, curve = shorten(run.cases, case, observed, limit)
    run.console.say("growth", curve.text)
    if not curve.blows_up:
        raise Unusable(
            f"compiling {run.options.target.name} gives {failure.message}, and seems merely slow "
            f"({curve.text}); give it more time with --budget"
        )
    run.note(figures=f"compile time: {curve.text}")
    return shorter
