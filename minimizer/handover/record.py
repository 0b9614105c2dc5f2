"""What a run found out, as data: the source of summary.json and of both reports.

Every field of the summary may be None, which means *not known*; what is not known is left out of the JSON and
of the report, never filled with a plausible value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from minimizer.handover.scrub import scrub
from minimizer.program import Program


@dataclass(frozen=True)
class Certificate:
    """What happened when one remaining thing was taken away: ``node relu``, ``passes``."""

    thing: str
    verdict: str


@dataclass(frozen=True)
class Summary:
    """The fields of summary.json, in order.

    `inputs_refused` counts, of the inputs of the search, those that eager or the exported program refuses;
    `failing_input` is a list of {shape, stride, dtype, device}; `earlier_inputs` one such list for each call
    that has to come before, oldest first; `region` {predicate, sizes_tried,
    sizes_failing, symbols, fails, passes} (the last two as ``2,3 4,5``: sizes by symbol); `variants` a list
    of {variant, outcome, inputs}; `out_of_contract` a list of {violation, unchecked, checked, said};
    `devices` a list of {compiled, loaded, inputs, promised, outcome, kept}; `determinism` {runs, failures,
    rung}; `ablation` a list of {setting, result}; `debug_tools` of {rung, command, result}; `kernel` {name,
    language, nodes, fault, evidence, line, acquitted, sanitizer, repro_verified}; `repro_verified` {runs,
    failures}; `cpu_seconds_by_step` {step: seconds}.
    """

    status: str | None = None
    kind: str | None = None
    stage: str | None = None
    signature: str | None = None
    message: str | None = None
    target: str | None = None
    nodes_before: int | None = None
    nodes_after: int | None = None
    inputs_tried: int | None = None
    inputs_refused: int | None = None
    candidates: int | None = None
    compiles: int | None = None
    cpu_seconds: float | None = None
    cpu_seconds_by_step: Mapping[str, float] | None = None
    wall_seconds: float | None = None
    dynamic_dims_before: int | None = None
    dynamic_dims_after: int | None = None
    failing_input: tuple[Mapping[str, Any], ...] | None = None
    earlier_inputs: tuple[tuple[Mapping[str, Any], ...], ...] | None = None
    region: Mapping[str, Any] | None = None
    variants: tuple[Mapping[str, Any], ...] | None = None
    out_of_contract: tuple[Mapping[str, Any], ...] | None = None
    devices: tuple[Mapping[str, Any], ...] | None = None
    determinism: Mapping[str, Any] | None = None
    minimal: bool | None = None
    cause: str | None = None
    ablation: tuple[Mapping[str, str], ...] | None = None
    debug_tools: tuple[Mapping[str, str], ...] | None = None
    kernel: Mapping[str, Any] | None = None
    repro_verified: Mapping[str, Any] | None = None
    versions: Mapping[str, str] | None = None


@dataclass(frozen=True)
class RunRecord(Summary):
    """A summary and what the reports need besides.

    `repro` is the text of repro.py, `output` what it printed, `neighbour` what the nearest passing case has
    otherwise, `kernel_repro` that of kernel_repro.py, `native_stack` gdb's word on where it dies, `detail`
    the traceback or the dead process's last output, `program` the reduced one, `blame` what a custom operator
    does against its word, `explanation` what the failure means (Markdown), `findings` milder failures seen on
    the way, `inputs` the failing inputs in words, `environment` the lines of collect_env, `command` how to
    repeat the run.
    """

    title: str = ""
    repro: str = ""
    output: str = ""
    neighbour: str = ""
    kernel_repro: str = ""
    native_stack: str = ""
    detail: str = ""
    figures: str = ""
    program: Program | None = None
    certificate: tuple[Certificate, ...] = ()
    blame: str = ""
    explanation: str = ""
    findings: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    environment: str = ""


def summary_json(record: RunRecord) -> dict[str, Any]:
    """Plain JSON data for summary.json: known fields only, nothing private.

    >>> summary_json(RunRecord(status="none", inputs_tried=412))
    {'status': 'none', 'inputs_tried': 412}
    """
    known = ((f.name, getattr(record, f.name)) for f in fields(Summary))
    return {name: _plain(value) for name, value in known if value is not None}


def summary_text(record: RunRecord) -> str:
    """The text of summary.json."""
    return json.dumps(summary_json(record), indent=1) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return round(value, 2)
    return value
