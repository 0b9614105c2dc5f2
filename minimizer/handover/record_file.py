"""What a run found out, as a file: reports are made from it again without running anything."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import cattrs

from minimizer.handover.record import RunRecord
from minimizer.handover.scrub import scrub
from minimizer.program import Program, from_json, to_json

RECORD = "record.json"
"""Its name in a run folder."""

_QUOTED = ("repro", "kernel_repro", "program")
"""Fields that are quoted to the letter: code that was run, which has nothing private in it."""

_converter = cattrs.Converter(omit_if_default=True)
_converter.register_unstructure_hook(Program, to_json)
_converter.register_structure_hook(Program, lambda plain, _: _program(plain))
_converter.register_structure_hook(str, lambda plain, _: _text(plain))


def _program(plain: Any) -> Program:
    found = from_json(plain)
    if not isinstance(found, Program):
        raise ValueError("not a program")
    return found


def _text(plain: Any) -> str:
    if not isinstance(plain, str):
        raise ValueError(f"not a text: {plain!r}")
    return plain


def record_text(record: RunRecord) -> str:
    """The record as JSON text with nothing private in it."""
    plain = _converter.unstructure(record)
    clean = {key: value if key in _QUOTED else _scrubbed(value) for key, value in plain.items()}
    return json.dumps(clean, indent=1, default=str) + "\n"


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {key: _scrubbed(item) for key, item in value.items()}
    return [_scrubbed(item) for item in value] if isinstance(value, (list, tuple)) else value


def record_from_text(text: str) -> RunRecord:
    """Read back what `record_text` wrote. Raises ValueError for anything else; executes nothing."""
    try:
        plain = json.loads(text)
        if not isinstance(plain, dict):
            raise TypeError("not an object")
        record = _converter.structure(plain, RunRecord)
        return replace(record, settings=dict(record.settings))
    except (cattrs.BaseValidationError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise ValueError(f"not the record of a run: {type(problem).__name__}") from problem
