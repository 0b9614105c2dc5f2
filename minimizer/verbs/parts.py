"""The main job in two parts: search until a failure is captured, and go on from there another time."""

from __future__ import annotations

import argparse
from pathlib import Path

from minimizer.console import Console
from minimizer.options import Unusable
from minimizer.targets.recognise import CASE, recognise
from minimizer.verbs.minimize import MINIMIZE, STATUSES, takes_target
from minimizer.verbs.verb import Verb


def _fuzz_arguments(parser: argparse.ArgumentParser) -> None:
    takes_target(parser)
    parser.set_defaults(fuzz_only=True)


def _reduce(given: argparse.Namespace, console: Console) -> int:
    if recognise(Path(given.target)).kind != CASE:
        raise Unusable(f"{given.target} is not a stored case; give a run folder or a case.json")
    return MINIMIZE.act(given, console)


FUZZ = Verb(
    "fuzz",
    "search for a failure, capture it, map the sizes that fail; do not reduce it",
    MINIMIZE.act,
    "aoti-minimize fuzz model.py --budget 600",
    _fuzz_arguments,
    more=f"The case is stored in the run folder; `aoti-minimize reduce` goes on from it.\n\n{STATUSES}",
    usage="aoti-minimize fuzz TARGET [options]",
)

REDUCE = Verb(
    "reduce",
    "reduce a stored case; the model that it came from is not needed",
    _reduce,
    "aoti-minimize reduce model-repro",
    takes_target,
    more=f"The inputs of the case are judged first. Its operators are executed.\n\n{STATUSES}",
    usage="aoti-minimize reduce RUN|CASE [options]",
)
