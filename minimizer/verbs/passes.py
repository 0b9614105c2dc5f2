"""List the reduction passes."""

from __future__ import annotations

import argparse

from minimizer.console import Console
from minimizer.options import NONE
from minimizer.reduce.passes import PASSES
from minimizer.verbs.verb import Verb


def _act(given: argparse.Namespace, console: Console) -> int:
    for p in PASSES:
        print(f"{p.name:<16} {p.summary}")
    return NONE


PASSES_VERB = Verb("passes", "list the reduction passes", _act, "aoti-minimize passes")
