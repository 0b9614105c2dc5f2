"""All that a run folder holds for its reports: read as data, nothing is executed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from minimizer.case import Case, case_from_json
from minimizer.handover.record import RunRecord
from minimizer.handover.record_file import RECORD, record_from_text
from minimizer.options import Unusable
from minimizer.program import Program
from minimizer.stored import read_case
from minimizer.wording import described


@dataclass(frozen=True)
class Step:
    """One judged candidate: how many calls it had, and whether it still showed the failure."""

    nodes: int
    accepted: bool
    name: str = ""


@dataclass(frozen=True)
class Evidence:
    """A record, the program before reduction, and every candidate on the way, in order."""

    record: RunRecord
    before: Program | None = None
    steps: tuple[Step, ...] = ()


def read_evidence(given: Path) -> Evidence:
    """What a run folder, or a case alone, holds. Raises Unusable."""
    if not (given / RECORD).is_file():
        stored = read_case(given)
        folder = _run_folder(stored.path)
        if folder is None:
            return Evidence(_record_of(stored.case, stored.path))
        given = folder
    path = given / RECORD
    try:
        record = record_from_text(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise Unusable(f"{path} cannot be read: {problem}") from None
    return Evidence(record, _program_before(given), tuple(_steps(given / "journal.jsonl")))


def run_folder(given: Path) -> Path:
    """The folder that reports of a run folder or a case belong into. Raises Unusable."""
    if (given / RECORD).is_file():
        return given
    path = read_case(given).path
    return _run_folder(path) or path.parent


def _run_folder(case: Path) -> Path | None:
    return next((p for p in case.resolve().parents if (p / RECORD).is_file()), None)


def _program_before(folder: Path) -> Program | None:
    path = folder / "case" / "case.json"
    try:
        return case_from_json(json.loads(path.read_text(encoding="utf-8"))).program
    except (OSError, ValueError):
        return None


def _steps(path: Path) -> Iterator[Step]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        try:
            entry = json.loads(line)
            yield Step(int(entry["nodes"]), bool(entry["interesting"]), str(entry.get("pass", "")))
        except (ValueError, KeyError, TypeError):
            continue  # a line that a kill cut short


def _record_of(case: Case, path: Path) -> RunRecord:
    """What a case alone tells: its program and inputs, and what was noted with it."""
    noted = json.loads(path.read_text(encoding="utf-8")).get("about")
    about = noted if isinstance(noted, dict) else {}
    failure = about.get("failure", about)
    told = failure if isinstance(failure, dict) else {}
    known = {name: str(told[name]) for name in ("kind", "stage", "message", "detail") if told.get(name)}
    return RunRecord(
        status="failure",
        **known,  # type: ignore[arg-type]
        nodes_after=case.program.operator_count,
        dynamic_dims_after=case.program.dynamic_dims,
        failing_input=tuple(map(described, case.values)),
        earlier_inputs=tuple(tuple(map(described, call)) for call in case.earlier) or None,
        program=case.program,
        settings=dict(case.settings.config),
    )
