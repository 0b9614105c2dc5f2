"""Judge a stored case again, in fresh processes.

This runs the operators that the case names and, for custom operators, the files that it names.
"""

from __future__ import annotations

import argparse

from minimizer.console import Console
from minimizer.options import FAILURE, NONE
from minimizer.oracle.case_bench import CaseBench
from minimizer.oracle.requests import PRELOAD
from minimizer.sandbox import Sandbox
from minimizer.stored import operator_files, read_case
from minimizer.verbs.verb import Verb, takes_stored

REPLAYS = 3
"""Fresh processes in which a stored case is judged."""


def _act(given: argparse.Namespace, console: Console) -> int:
    stored = read_case(given.stored)
    case = stored.case
    operator_files(case)
    console.say("case", f"{case.program.operator_count} calls; replaying runs them, {REPLAYS} times")
    failures = 0
    with Sandbox(PRELOAD) as sandbox:
        bench = CaseBench(sandbox, stored.store)
        for _ in range(REPLAYS):
            verdict = bench.judge(case, "full", fresh=True)
            failures += verdict.failed
            said = verdict.failure.message if verdict.failure else verdict.reason
            console.say(verdict.status, said.splitlines()[0] if said else "")
    console.say("result", f"fails {failures} of {REPLAYS} fresh runs", always=True)
    return FAILURE if failures else NONE


REPLAY = Verb(
    "replay",
    "judge the stored case of a run again in fresh processes",
    _act,
    "aoti-minimize replay model-repro",
    takes_stored,
    more="This executes what the case names: its operators and, for custom operators, its files.\n\n"
    "exit status: 1 it fails, 0 it passes every time",
)
