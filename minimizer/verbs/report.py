"""Make the reports of a run or a case again. Executes nothing."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from minimizer.console import Console
from minimizer.handover.evidence import Evidence, read_evidence, run_folder
from minimizer.handover.page import report_html
from minimizer.handover.record import summary_text
from minimizer.handover.report import report_markdown
from minimizer.options import NONE, Unusable
from minimizer.verbs.verb import Verb, takes_stored


def _markdown(evidence: Evidence) -> str:
    return report_markdown(evidence.record)


_WRITERS: dict[str, tuple[str, Callable[[Evidence], str]]] = {
    "md": ("report.md", _markdown),
    "html": ("report.html", report_html),
}


def _arguments(parser: argparse.ArgumentParser) -> None:
    takes_stored(parser)
    parser.add_argument("--title", default="", metavar="TEXT", help="title to use instead of the found one")
    parser.add_argument(
        "--format",
        choices=(*_WRITERS, "json"),
        metavar="md|html|json",
        help="only this one; json goes to stdout (default: report.md and report.html)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: the run folder)")


def _act(given: argparse.Namespace, console: Console) -> int:
    evidence = read_evidence(given.stored)
    if given.title:
        evidence = replace(evidence, record=replace(evidence.record, title=given.title))
    if given.format == "json":
        print(summary_text(evidence.record), end="")
        return NONE
    folder = given.out or run_folder(given.stored)
    for name, text in _rendered(evidence, given.format, given.stored):
        path = folder / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as problem:
            raise Unusable(
                f"{path} cannot be written: {problem.strerror}; choose a folder with --out"
            ) from None
        console.say("report", str(path), always=True)
    return NONE


def _rendered(evidence: Evidence, only: str | None, given: Path) -> list[tuple[str, str]]:
    try:
        return [(name, write(evidence)) for kind, (name, write) in _WRITERS.items() if only in (None, kind)]
    except Exception as problem:
        # A stranger's record may hold anything in the places where data is free.
        said = f"{type(problem).__name__}: {problem}"
        raise Unusable(
            f"the record of {given} is damaged ({said}); run again, or ask for it again"
        ) from problem


REPORT = Verb(
    "report",
    "make report.md and report.html of a run or a case again",
    _act,
    'aoti-minimize report model-repro --title "amin of uint8 is 0"',
    _arguments,
    more="Nothing is executed. report.md follows PyTorch's bug form; it is a draft to read before filing.",
)
