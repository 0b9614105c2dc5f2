"""A script or a command in a process group of its own, as a person would run it: nothing warm or shared."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


def run_python(
    script: str,
    folder: Path,
    timeout: float,
    environment: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
    under: Sequence[str] = (),
    python: str = sys.executable,
) -> tuple[int | None, str]:
    """Run a script of a folder in that folder; exit status (None = killed at `timeout`) and output.

    `under` is a command that runs the interpreter, such as a debugger.

    The process group dies with it, whatever it started, also when the caller is interrupted.
    """
    return run_interpreter([script, *options], folder, timeout, environment, under=under, python=python)


def run_interpreter(
    arguments: Sequence[str],
    folder: Path,
    timeout: float,
    environment: Mapping[str, str] | None = None,
    started: Callable[[int], None] = lambda group: None,
    under: Sequence[str] = (),
    python: str = sys.executable,
) -> tuple[int | None, str]:
    """Run an interpreter with these arguments, as `run_python` does; `started` is told its process group."""
    return run_command([*under, python, *arguments], folder, timeout, environment, started)


def run_command(
    command: Sequence[str],
    folder: Path,
    timeout: float,
    environment: Mapping[str, str] | None = None,
    started: Callable[[int], None] = lambda group: None,
) -> tuple[int | None, str]:
    """Run any command to its end, as `run_python` does. Raises OSError when it cannot be started."""
    process = subprocess.Popen(
        list(command),
        cwd=folder,
        env=None if environment is None else dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    started(process.pid)
    try:
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output
    except BaseException as problem:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        if isinstance(problem, subprocess.TimeoutExpired):
            return None, output
        raise
