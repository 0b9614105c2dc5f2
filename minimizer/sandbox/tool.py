"""A tool of the system, run to its end: a compiler that is asked for its version."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

LIMIT = 60.0
"""Seconds after which a tool counts as one that does not work."""


def run_tool(command: Sequence[str], *, timeout: float = LIMIT) -> tuple[int, str]:
    """Exit status and output of a command; 127 and the reason when it cannot be started or does not end."""
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return 127, str(problem)
    return done.returncode, done.stdout
