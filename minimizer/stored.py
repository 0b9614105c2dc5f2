"""Where a run folder or a case keeps what. Reading any of it executes nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from minimizer.case import Case, Stored, case_from_json, case_to_json
from minimizer.options import Unusable
from minimizer.program import Program

CASE_PLACES = ("case.json", "case/reduced/case.json", "case/case.json")
"""Where a run folder or a case's folder keeps its case, the smallest first."""


@dataclass(frozen=True)
class StoredCase:
    """A case that was read, the file it was read from, and the folder of its tensors."""

    case: Case
    path: Path
    store: Path


def read_case(given: Path) -> StoredCase:
    """The case of a run folder, of a case's folder, or of a JSON file. Raises Unusable."""
    path = next((given / place for place in ("", *CASE_PLACES) if (given / place).is_file()), None)
    if path is None:
        raise Unusable(f"{given} holds no stored case; give a run folder or a case.json")
    store = next((p / "tensors" for p in path.parents if (p / "tensors").is_dir()), path.parent)
    try:
        case = case_from_json(json.loads(path.read_text(encoding="utf-8")))
        modules = tuple(str(path.parent / file) for file in case.settings.modules)  # an absolute path wins
        case = replace(case, settings=replace(case.settings, modules=modules))
        return StoredCase(case, path, store)
    except (ValueError, KeyError, TypeError) as problem:
        raise Unusable(f"{path} is not a stored case: {problem}") from problem


def operator_files(case: Case) -> tuple[str, ...]:
    """The files that register the case's custom operators. Raises Unusable when one is gone."""
    missing = [file for file in case.settings.modules if not Path(file).exists()]
    if missing:
        raise Unusable(f"the case needs {missing[0]}, which registers its custom operators; bring that file")
    return case.settings.modules


def copy_case(stored: StoredCase, folder: Path, place: str, about: Mapping[str, Any] | None = None) -> None:
    """Write a case into another folder, at `place`, with the tensors that it names.

    The files of its operators are those beside the repro that lies there already, named relative to the case.
    """
    case, path, tensors = stored.case, folder / place, folder / "case" / "tensors"
    path.parent.mkdir(parents=True)
    for file in sorted(stored.store / f"{name}.pt" for name in set(_tensors(case))):
        if file.is_file():
            tensors.mkdir(exist_ok=True)
            shutil.copy(file, tensors / file.name)
    beside = (folder / "repro_files" / "repro_target.py", folder / "repro_ops.py")
    files = [os.path.relpath(file, path.parent) for file in beside if file.is_file()]
    modules = tuple(files[:1]) if case.settings.modules else ()
    case = replace(case, settings=replace(case.settings, modules=modules))
    plain = {**case_to_json(case), **({"about": dict(about)} if about else {})}
    path.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")


def _tensors(case: Case) -> Iterator[str]:
    """Names of the stored tensors that a case needs."""
    values = (value for call in case.sequence for value in call)
    yield from (value.data.file for value in values if isinstance(value.data, Stored))
    yield from _state(case.program)


def _state(program: Program) -> Iterator[str]:
    yield from (state.value for state in program.state)
    for _, body in program.graphs:
        yield from _state(body)
