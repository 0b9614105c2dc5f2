"""Say whether everything works on this machine."""

from __future__ import annotations

import argparse

from minimizer.console import Console
from minimizer.doctor import examine
from minimizer.options import NONE, UNUSABLE
from minimizer.oracle.requests import PRELOAD
from minimizer.sandbox import Sandbox
from minimizer.verbs.verb import Verb


def _act(given: argparse.Namespace, console: Console) -> int:
    well = True
    with Sandbox(PRELOAD) as sandbox:
        sandbox.warm()
        for finding in examine(sandbox):
            well = well and finding.good is not False
            mark = {True: "ok", False: "FAIL", None: "-"}[finding.good]
            console.say(mark, f"{finding.what}: {finding.said}", always=finding.good is False)
    said = "everything that is needed works" if well else "something that is needed does not work"
    console.say("result", said, always=True)
    return NONE if well else UNUSABLE


DOCTOR = Verb(
    "doctor",
    "say whether everything works on this machine",
    _act,
    "aoti-minimize doctor",
    more="It is proven on a bug that Inductor can be told to make.\n\n"
    "exit status: 0 everything that is needed works, 2 something does not",
)
