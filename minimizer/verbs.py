"""The verbs beside the main job: short commands that look at one thing each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from minimizer.case import case_from_json
from minimizer.console import Console
from minimizer.doctor import examine
from minimizer.options import FAILURE, NONE, UNUSABLE, Unusable
from minimizer.oracle.bench import CaseBench
from minimizer.oracle.requests import PRELOAD
from minimizer.reduce.passes import PASSES
from minimizer.sandbox import Sandbox

REPLAYS = 3
"""Fresh processes in which a stored case is judged."""

Verb = Callable[[Sequence[str], Console], int]


def passes(arguments: Sequence[str], console: Console) -> int:
    """List the reduction passes."""
    _takes("passes", arguments, 0)
    for p in PASSES:
        print(f"{p.name:<16} {p.summary}")
    return NONE


def doctor(arguments: Sequence[str], console: Console) -> int:
    """Say what works here; status 2 when something that is needed does not."""
    _takes("doctor", arguments, 0)
    well = True
    with Sandbox(PRELOAD) as sandbox:
        sandbox.warm()
        for finding in examine(sandbox):
            well = well and finding.good is not False
            mark = {True: "ok", False: "FAIL", None: "-"}[finding.good]
            console.say(mark, f"{finding.what}: {finding.said}")
    console.say(
        "result", "everything that is needed works" if well else "something that is needed does not work"
    )
    return NONE if well else UNUSABLE


def replay(arguments: Sequence[str], console: Console) -> int:
    """Judge a stored case in fresh processes: status 1 when it fails, 0 when it passes every time.

    This runs the operators that the case names and, for custom operators, the files that it names.
    """
    _takes("replay", arguments, 1)
    path = _case_file(Path(arguments[0]))
    store = next((p / "tensors" for p in path.parents if (p / "tensors").is_dir()), path.parent)
    try:
        case = case_from_json(json.loads(path.read_text()))
    except (ValueError, KeyError, TypeError) as problem:
        raise Unusable(f"{path} is not a stored case: {problem}") from problem
    missing = [file for file in case.settings.modules if not Path(file).exists()]
    if missing:
        raise Unusable(f"the case needs {missing[0]}, which registers its custom operators; bring that file")
    console.say("case", f"{case.program.operator_count} calls; replaying runs them, {REPLAYS} times")
    failures = 0
    with Sandbox(PRELOAD) as sandbox:
        bench = CaseBench(sandbox, store)
        for _ in range(REPLAYS):
            verdict = bench.judge(case, "full", fresh=True)
            failures += verdict.failed
            said = verdict.failure.message if verdict.failure else verdict.reason
            console.say(verdict.status, said.splitlines()[0] if said else "")
    console.say("result", f"fails {failures} of {REPLAYS} fresh runs", always=True)
    return FAILURE if failures else NONE


def _case_file(path: Path) -> Path:
    """The JSON file of a case: itself, or that of a case's or a run's folder. Raises Unusable."""
    for candidate in (
        path,
        path / "case.json",
        path / "case" / "reduced" / "case.json",
        path / "case" / "case.json",
    ):
        if candidate.is_file():
            return candidate
    raise Unusable(f"{path} holds no stored case; give a run folder or a case.json")


def _takes(verb: str, arguments: Sequence[str], count: int) -> None:
    if len(arguments) != count:
        what = "no arguments" if count == 0 else "one argument: a run folder or a case.json"
        raise Unusable(f"{verb} takes {what}")


VERBS: Mapping[str, Verb] = {"doctor": doctor, "passes": passes, "replay": replay}
