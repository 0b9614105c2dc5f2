"""What is sent to workers and what they answer, beyond cases and verdicts. No torch here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from minimizer.case import Value
from minimizer.program import Program
from minimizer.variant import Variant

PRELOAD = "minimizer.oracle.warm"
"""What a sandbox imports before it forks workers for these tasks."""

TASKS = "minimizer.oracle.tasks:"
"""Prefix of the names of all tasks but those about devices."""

DEVICE_TASKS = "minimizer.oracle.device_tasks:"
"""Prefix of the names of tasks about devices."""


@dataclass(frozen=True)
class TargetRequest:
    """Which model file to open, and as which variant.

    `store` is the folder for tensors; `inputs` and `model` name other givers. `prefix` starts the names of
    tensors that are stored for this variant.
    """

    path: str
    store: str
    model: str = ""
    inputs: str = ""
    config: tuple[tuple[str, Any], ...] = ()
    variant: Variant = field(default_factory=Variant)
    prefix: str = ""


@dataclass(frozen=True)
class TargetInfo:
    """What opening a target tells.

    `program` is the translated graph; when that is impossible, `untranslatable` says why and the program
    has inputs and symbols but no calls. `examples` are the example tensors, `stateful` tells whether a call
    may change what the next one gives, `files` the target's own Python files, `versions` what it ran with,
    `remark` what the person should know of it.
    """

    program: Program
    untranslatable: str
    examples: tuple[Value, ...]
    config: tuple[tuple[str, Any], ...]
    stateful: bool
    files: tuple[str, ...]
    devices: tuple[str, ...]
    versions: tuple[tuple[str, str], ...]
    remark: str = ""


@dataclass(frozen=True)
class Observation:
    """What eager computed for one named value: in the last call, and in the calls before it."""

    name: str
    value: Value
    earlier: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Observations:
    """All that eager computed, and what it raised before the end; empty when it got there."""

    seen: tuple[Observation, ...]
    problem: str = ""


@dataclass(frozen=True)
class OutsideAnswer:
    """What became of a call outside the contract.

    `raised` is all that a refusal said (empty: the call returned), `said` the line of it that tells most, or
    what is wrong with what came back; `right` tells whether that is what eager gives.
    """

    raised: str = ""
    said: str = ""
    right: bool = False


@dataclass(frozen=True)
class Brought:
    """The tensors that a person brought, in the order of the program's inputs, and what they are called."""

    values: tuple[Value, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Broken:
    """A promise that a custom operator breaks: which operator, what in words, and inputs that show it."""

    operator: str
    what: str
    inputs: str
    at_failing_inputs: bool
