"""A tool of the system, run to its end: a compiler that is asked for its version."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from minimizer.sandbox.interpreter import run_command

LIMIT = 60.0
"""Seconds after which a tool counts as one that does not work."""


def run_tool(command: Sequence[str], *, timeout: float = LIMIT) -> tuple[int, str]:
    """Exit status and output of a command; 127 and the reason when it cannot be started or does not end."""
    try:
        status, output = run_command(command, Path.cwd(), timeout)
    except OSError as problem:
        return 127, str(problem)
    return (127, f"{command[0]} did not end within {timeout:g} s") if status is None else (status, output)
