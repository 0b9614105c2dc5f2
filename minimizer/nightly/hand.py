"""Does one unit of work in a process of its own: ``python -m minimizer.nightly.hand UNIT.json EVENTS.jsonl``.

Events are written as they happen, so a hand that is killed loses only what it was at. A search of a model
file is the command line itself: this process turns into it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis.configuration

from minimizer import corpus
from minimizer.buckets import calls_of, seen_of
from minimizer.nightly import pooling
from minimizer.nightly.generate import Catalogue, programs_of, stream
from minimizer.nightly.program_file import FAILING, write_program
from minimizer.nightly.units import Event, Programs, Replays, Target, Unit, unit_from_json
from minimizer.sandbox import Sandbox, TaskError, WorkerLost
from minimizer.sandbox.zygote import die_with_parent
from strategies.programs import Plan

POOL = 80
"""Programs in a pool: enough that the fixed cost of a compilation is small beside that of its programs."""

Tell = Callable[[Event], None]


def main(arguments: Sequence[str]) -> int:
    """Do the unit; the exit status."""
    die_with_parent()
    unit = unit_from_json(json.loads(Path(arguments[0]).read_text()))
    if isinstance(unit, Target):
        os.execv(sys.executable, [sys.executable, *command(unit)])
    with Path(arguments[1]).open("a", encoding="utf-8") as file:

        def tell(event: Event) -> None:
            file.write(json.dumps(event) + "\n")
            file.flush()

        work(unit, tell)
    return 0


def command(unit: Target) -> list[str]:
    """The arguments of the interpreter for a search of a model file."""
    found = ["-m", "minimizer.cli", unit.path, "--out", unit.out, "--quiet"]
    found += ["--budget", f"{unit.seconds:.0f}", "--seed", str(unit.seed)]
    if (Path(unit.out) / "case/case.json").exists():
        found.append("--resume")  # an earlier process of this night got as far as that
    return [*found, "--check-inputs", unit.checked] if unit.checked else found


def work(unit: Unit, tell: Tell) -> None:
    """Do a unit that needs no command line of its own."""
    if isinstance(unit, Replays):
        corpus.replay([Path(folder) for folder in unit.folders], tell)
    elif isinstance(unit, Programs):
        programs(unit, tell)
    else:
        raise ValueError("a search is a command of its own")


def programs(unit: Programs, tell: Tell) -> None:
    """Generate programs, judge them in pools, and write down those that failed as model files."""
    with Sandbox(pooling.PRELOAD) as sandbox, TemporaryDirectory(dir=sandbox.scratch) as store:
        hypothesis.configuration.set_hypothesis_home_dir(sandbox.scratch / "hypothesis")
        catalogue = Catalogue(sandbox, store)
        plans = list(stream(catalogue.operators, unit.first, unit.count, unit.seed, unit.without))
        cases, left_out = programs_of(catalogue, plans)
        bench = pooling.PoolBench(sandbox, Path(store))
        told = 0
        plan_of = {case.program.fingerprint: plan for plan, case in cases}
        for start in range(0, len(cases), POOL):
            bench.judge([case for _, case in cases[start : start + POOL]])
            for suspect in bench.report.suspects[told:]:
                plan = plan_of.get(suspect.case.program.fingerprint)
                _tell_suspect(unit, suspect, plan, sandbox, Path(store), tell)
            told = len(bench.report.suspects)
        report = bench.report
        tell(
            {
                "did": "programs",
                "first": unit.first,
                "count": unit.count,
                "judged": report.judged,
                "refused": len(report.refused) + left_out,
                "inputs": report.inputs,
                "compiles": report.compiles,
                "cpu_seconds": round(sandbox.cpu_seconds(), 1),
            }
        )


def _tell_suspect(
    unit: Programs,
    suspect: pooling.Suspect,
    plan: Plan | None,
    sandbox: Sandbox,
    store: Path,
    tell: Tell,
) -> None:
    name = f"p_{suspect.case.program.fingerprint[:12]}"
    path = Path(unit.folder) / f"{name}.py"
    calls = ", ".join(calls_of(suspect.case.program))
    try:
        write_program(sandbox, store, path, suspect.case, suspect.examples, f"A generated program: {calls}.")
    except (TaskError, WorkerLost, ValueError) as problem:
        tell({"did": "lost", "key": name, "why": f"its tensors cannot be stored: {problem}"[:300]})
        return
    seen = seen_of(suspect.case.program, suspect.failure.kind)
    tell(
        {
            "did": "suspect",
            "id": name,
            "path": str(path),
            "checked": FAILING,
            "kind": suspect.failure.kind,
            "message": suspect.failure.message[:500],
            "calls": sorted(seen.calls),
            "classes": sorted(seen.classes),
            "operators": [call.operator for call in plan.calls] if plan else [],
        }
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
