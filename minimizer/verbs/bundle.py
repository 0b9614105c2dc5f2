"""Pack a run for attaching to an issue."""

from __future__ import annotations

import argparse
from pathlib import Path

from minimizer.bundle import make_bundle
from minimizer.console import Console
from minimizer.handover.evidence import run_folder
from minimizer.options import FAILURE, NONE
from minimizer.verbs.verb import Verb, takes_stored


def _arguments(parser: argparse.ArgumentParser) -> None:
    takes_stored(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="the archive (default: RUN.zip)")


def _act(given: argparse.Namespace, console: Console) -> int:
    folder = run_folder(given.stored)
    archive = given.out or Path(f"{folder.resolve().name}.zip")
    console.say("bundle", f"packing {folder}, unpacking it elsewhere and running its repro.py")
    with console.bar("bundle"):
        proof = make_bundle(folder, archive)
    if proof.failures:
        console.say("bundle", f"{archive} · its repro.py fails, unpacked and alone", always=True)
        return NONE
    last = next(reversed(proof.output.strip().splitlines()), "")
    said = f"{archive} · its repro.py did not fail in {proof.runs} runs; do not send it as it is ({last})"
    console.say("bundle", said, always=True)
    return FAILURE


BUNDLE = Verb(
    "bundle",
    "pack a run into one archive, and prove it by running its repro from there",
    _act,
    "aoti-minimize bundle model-repro",
    _arguments,
    more="In it: repro.py, kernel_repro.py, both reports, the case as data, the generated C++ and what\n"
    "TORCH_TRACE logs. Names of users, hosts and folders are taken out.\n\n"
    "exit status: 0 the packed repro fails as it should, 1 it does not",
)
