"""Explain a message, a log, or what a run found.

The argument is a log file, ``-`` for standard input, a run folder or stored case, or the message itself.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from minimizer.console import Console
from minimizer.explain import outcome, render
from minimizer.explain.generated import Unreadable, read_generated
from minimizer.explain.router import Found, search_stream, search_text
from minimizer.explain.traced import with_code
from minimizer.options import NONE, UNUSABLE, Unusable
from minimizer.region import said
from minimizer.verbs.verb import Verb

BRING = (
    "nothing in it is known. Bring the whole output of the failing process (stdout and stderr together: "
    "your_command > log.txt 2>&1), and with --package the .pt2 that it ran"
)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="LOG|RUN|MESSAGE",
        help="a log file, - for standard input, a run folder, a stored case, or the message itself",
    )
    parser.add_argument(
        "--package",
        type=Path,
        metavar="FILE",
        help="the AOTI package that ran (.pt2): names kernels, inputs, dims, your lines",
    )
    parser.add_argument("--all", action="store_true", help="explain every message, not only the first cause")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _act(asked: argparse.Namespace, console: Console) -> int:
    found, source, names = _search(asked.what)
    if asked.package is not None:
        try:
            generated = read_generated(asked.package)
        except Unreadable as problem:
            raise Unusable(str(problem)) from None
        found = [with_code(f, generated, names) for f in found]
    found = [_named(f, asked.what, asked.package) for f in found]
    if asked.json:
        print(json.dumps(render.as_json(found, source), indent=1))
        return NONE if found else UNUSABLE
    if not found:
        raise Unusable(f"{source}: {BRING}")
    print(render.as_text(found, everything=asked.all))
    return NONE


def _named(found: Found, what: str, package: Path | None) -> Found:
    """With the names of the person's own files in the commands, where there are any."""
    log = shlex.quote(what) if _exists(what) else ""
    steps = found.explanation.next
    if log:
        steps = tuple(step.replace("THIS_LOG", log) for step in steps)
    if package is not None:
        steps = tuple(step.replace("YOUR_PACKAGE.pt2", shlex.quote(str(package))) for step in steps)
    return replace(found, explanation=replace(found.explanation, next=steps))


def _search(what: str) -> tuple[list[Found], str, tuple[str, ...]]:
    """What is known about the argument, what it was taken for, and the model's names of its inputs."""
    if what == "-":
        sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
        return search_stream(sys.stdin), "standard input", ()
    path = Path(what)
    exists = _exists(what)
    if exists and (path.is_dir() or path.suffix == ".json"):
        return _stored(path)
    if exists:
        if path.suffix == ".pt2":
            raise Unusable(
                f"{path} is a package; give the log of a run too: aoti-minimize explain LOG --package {path}"
            )
        with path.open(errors="replace") as stream:
            return search_stream(stream), str(path), ()
    if not what.strip():
        raise Unusable("explain: the message is empty")
    if _looks_like_path(what):
        raise Unusable(
            f"{what} does not exist; give a log file, a run folder, or the message itself in quotes"
        )
    return search_text(what), "the message", ()


def _exists(what: str) -> bool:
    try:
        return os.path.exists(what)
    except ValueError:  # a message may hold what no path may
        return False


def _looks_like_path(what: str) -> bool:
    return (
        " " not in what
        and "\n" not in what
        and ("/" in what or what.endswith((".log", ".txt", ".json", ".out")))
    )


def _stored(path: Path) -> tuple[list[Found], str, tuple[str, ...]]:
    """A run folder, a case folder, or a JSON file of either."""
    candidates = (
        [path] if path.is_file() else [path / "case.json", path / "case" / "case.json", path / "summary.json"]
    )
    for file in candidates:
        if file.is_file():
            try:
                plain = json.loads(file.read_text(errors="replace"))
            except ValueError as problem:
                raise Unusable(f"{file} is not JSON: {problem}") from None
            if not isinstance(plain, dict):
                raise Unusable(f"{file} is no stored case and no summary")
            told = _failure(plain)
            if told is not None:
                found = search_text(f"{told.message}\n{told.detail}")
                return [*found, *outcome.search(told)], str(file), _names(plain)
    raise Unusable(f"{path} holds no failure: no case.json or summary.json that tells of one")


def _failure(plain: dict[str, Any]) -> outcome.Told | None:
    """What a summary, a run's case, a reduced case, or one met on the way tells of its failure."""
    about = plain.get("about")
    if not isinstance(about, dict):
        return _told(plain, plain) if isinstance(plain.get("status"), str) else None
    failure = about.get("failure")
    known = about.get("known")
    if isinstance(failure, dict):
        return _told(failure, known if isinstance(known, dict) else {})
    parts = [*str(about.get("signature") or "").split(" · "), "", ""]
    return _told({"kind": parts[0], "stage": parts[1], "message": about.get("message") or parts[-3]}, {})


def _told(failure: dict[str, Any], beside: dict[str, Any]) -> outcome.Told:
    text = {key: str(failure.get(key) or "") for key in ("stage", "message", "detail", "figures")}
    region = beside.get("region")
    predicate = said(str(region.get("predicate") or "")) if isinstance(region, dict) else ""
    return outcome.Told(
        kind=str(failure.get("kind") or failure.get("status") or ""), region=predicate, **text
    )


def _names(plain: dict[str, Any]) -> tuple[str, ...]:
    program = plain.get("program")
    inputs = program.get("inputs") if isinstance(program, dict) else None
    if not isinstance(inputs, list):
        return ()
    return tuple(str(i.get("name", "")) for i in inputs if isinstance(i, dict))


EXPLAIN = Verb(
    "explain",
    "say what a message, log or failure means, where it comes from, what to do next",
    _act,
    "aoti-minimize explain log.txt --package model.pt2",
    _arguments,
    more="Nothing is executed: a package is read as text. No GPU and no model is needed.\n\n"
    "exit status: 0 something was explained, 2 nothing in it is known or it cannot be read",
)
