"""Where a run folder or a case keeps what. Reading any of it executes nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from minimizer.case import Case, case_from_json
from minimizer.options import Unusable

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
