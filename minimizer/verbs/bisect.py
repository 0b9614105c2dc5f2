"""Run a repro under other versions of torch, and say where it began or was fixed."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from packaging.version import Version

from minimizer import versions
from minimizer.console import Console
from minimizer.handover.evidence import read_evidence, run_folder
from minimizer.handover.scrub import scrub
from minimizer.options import NONE, Unusable
from minimizer.verbs.verb import Verb, takes_stored
from minimizer.versions import FAILS, PASSES, Tried

FLAKY_RUNS = 5
"""Runs under a version before a flaky failure counts as gone."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    takes_stored(parser)
    add = parser.add_argument
    add("--torch", default="", metavar="VERSIONS", help="versions to install and try, such as 2.9.1,2.13.0")
    add("--python", type=Path, nargs="+", default=[], metavar="PATH", help="interpreters to try as they are")
    add("--index-url", default="", metavar="URL", help="where pip takes torch from")
    add("--all", action="store_true", help="try every version (default: of more than three, halves)")
    add("--cache", type=Path, metavar="DIR", help="environments (default: ~/.cache/aoti-minimize/torch)")
    add("--json", action="store_true", help="print the result as JSON to stdout, the rest to stderr")


def _act(given: argparse.Namespace, console: Console) -> int:
    if given.json:
        console = Console(quiet=given.quiet, stream=sys.stderr)
    folder = run_folder(given.stored)
    if not (folder / "repro.py").is_file():
        raise Unusable(f"{folder} has no repro.py to run; give a run folder")
    wanted = versions.in_order([v.strip() for v in given.torch.split(",") if v.strip()])
    if not wanted and not given.python:
        raise Unusable("name versions with --torch 2.9.1,2.13.0, or interpreters with --python PATH")
    record = read_evidence(folder).record
    found = record.determinism or {}
    runs = 1 if found.get("failures") == found.get("runs") else FLAKY_RUNS
    tried = [*_interpreters(given, folder, record.kind or "", record.output, runs, console)]
    tried += _installed(given, wanted, folder, record.kind or "", record.output, runs, console)
    tried.sort(key=lambda t: Version(t.version))
    said = versions.in_words(tried)
    console.say("result", said, always=True)
    if given.json:
        print(json.dumps({"result": said, "tried": [asdict(t) for t in tried]}, indent=1))
    return NONE


def _interpreters(
    given: argparse.Namespace, folder: Path, kind: str, known: str, runs: int, console: Console
) -> list[Tried]:
    """Try the interpreters that the person has."""
    named = [(python, versions.version_of(python)) for python in given.python]
    tried = []
    for python, version in named:
        with console.bar(f"torch {version}"):
            one = versions.try_version(folder, python, version, kind, known, runs)
        _say(console, one)
        tried.append(one)
    return tried


def _installed(
    given: argparse.Namespace,
    wanted: list[str],
    folder: Path,
    kind: str,
    known: str,
    runs: int,
    console: Console,
) -> list[Tried]:
    """Try versions that are installed for it, as few as show where the answer changes."""
    cache = (given.cache or versions.cache_folder()).absolute()
    options = ["--index-url", given.index_url] if given.index_url else []
    tried: dict[int, Tried] = {}

    def fails(k: int) -> bool | None:
        if k not in tried:
            tried[k] = one(wanted[k])
            _say(console, tried[k])
        return {FAILS: True, PASSES: False}.get(tried[k].verdict)

    def one(version: str) -> Tried:
        def started(what: str) -> None:
            console.say("install", scrub(what))

        with console.bar(f"torch {version}"):
            try:
                python = versions.environment_for(version, cache, options, started)
            except Unusable as problem:
                return Tried(version, versions.CANNOT, str(problem))
            return versions.try_version(folder, python, version, kind, known, runs)

    versions.search(len(wanted), fails, given.all)
    return [tried[k] for k in sorted(tried)]


def _say(console: Console, one: Tried) -> None:
    why = f" ({one.said})" if one.said and one.verdict not in (PASSES, FAILS) else ""
    console.say(f"{one.version}", f"{one.verdict}{why}")


BISECT = Verb(
    "bisect",
    "run the repro under other versions of torch; say where it began or was fixed",
    _act,
    "aoti-minimize bisect model-repro --torch 2.9.1,2.11.0,2.13.0",
    _arguments,
    more="Each version gets an environment of its own, made with pip and kept for the next time: several\n"
    "gigabytes each. The repro is executed. An error may be worded otherwise than where it was found.",
)
