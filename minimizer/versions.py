"""Since when, or until when: a repro under other versions of torch, each in an environment of its own.

The same bug may be worded differently in another version, or raise another type, so what counts as failing
alike is looser than the signature used while reducing: the repro exits with 1 and, where it prints an
exception, the type is the same or the wording close.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from minimizer.handover.needs import ERRORS
from minimizer.options import Unusable
from minimizer.sandbox.interpreter import run_interpreter
from minimizer.verify import run_cold

INSTALL_LIMIT = 3600.0
ASK_LIMIT = 300.0
"""Seconds for an installation, and for an interpreter to say its version."""

CLOSE = 0.4
"""Share of words that two wordings of one error have in common, at least."""

RUN_ALL = 3
"""So many versions are all tried; of more, the two ends and then halves."""

FAILS, PASSES, OTHERWISE, CANNOT = "fails", "passes", "fails otherwise", "cannot run"


@dataclass(frozen=True)
class Tried:
    """One version: `verdict` is one of the four above, `said` the last of what was printed."""

    version: str
    verdict: str
    said: str = ""


def judge_output(status: int | None, output: str, kind: str, known: str) -> str:
    """What a run of the repro under another version says; `known` is what it printed where it was found.

    >>> judge_output(0, "eager 1", "wrong_value", "")
    'passes'
    """
    if status == 0:
        return PASSES
    if status != 1:
        return CANNOT  # the script itself turns deaths and silences into 1
    theirs = _error_in(output)
    if re.search(r"^Traceback \(most recent call last\)", output, re.MULTILINE) and not theirs:
        return CANNOT
    ours = _error_in(known)
    if kind not in ERRORS or not ours or not theirs:
        return FAILS
    return FAILS if _close(theirs, ours) else OTHERWISE


def _error_in(output: str) -> str:
    """The exception that a repro printed for the compiled side: ``RuntimeError('...')``."""
    found = re.search(r"^compiled +(\w+\(.*)", output, re.MULTILINE)
    return found[1] if found else ""


def _close(one: str, other: str) -> bool:
    if one.partition("(")[0] == other.partition("(")[0]:
        return True
    mine, theirs = (set(re.findall(r"[A-Za-z_]{3,}", text)) for text in (one, other))
    return len(mine & theirs) >= CLOSE * max(1, min(len(mine), len(theirs)))


def in_order(versions: Sequence[str]) -> list[str]:
    """The versions from old to new, each once. Raises Unusable for what is no version."""
    try:
        return sorted(set(versions), key=Version)
    except InvalidVersion as problem:
        raise Unusable(f"--torch: {problem}; give versions such as 2.9.1,2.13.0") from None


def search(count: int, fails: Callable[[int], bool | None], everything: bool = False) -> None:
    """Ask about as few of `count` ordered versions as show where the answer changes.

    `fails` answers None where a version cannot be tried; then its neighbour is.
    """
    if count <= RUN_ALL or everything:
        for k in range(count):
            fails(k)
        return
    low, high = 0, count - 1
    first, last = fails(low), fails(high)
    while first is None and low < high - 1:
        low += 1
        first = fails(low)
    while last is None and low < high - 1:
        high -= 1
        last = fails(high)
    if first == last:
        return
    unknown: set[int] = set()
    while True:
        between = [k for k in range(low + 1, high) if k not in unknown]
        if not between:
            return
        middle = between[len(between) // 2]
        answer = fails(middle)
        if answer is None:
            unknown.add(middle)
        elif answer == first:
            low = middle
        else:
            high = middle


def in_words(tried: Sequence[Tried]) -> str:
    """Where it began or was fixed, from answers in order of version.

    >>> in_words([Tried("2.9.1", "passes"), Tried("2.13.0", "fails")])
    'began after 2.9.1, at the latest in 2.13.0'
    """
    known = [t for t in tried if t.verdict in (FAILS, PASSES)]
    if not known:
        return "no version could be judged"
    changes = [
        f"began after {before.version}, at the latest in {after.version}"
        if after.verdict == FAILS
        else f"fixed after {before.version}, at the latest in {after.version}"
        for before, after in zip(known, known[1:])
        if before.verdict != after.verdict
    ]
    if changes:
        return "; ".join(changes)
    what = "fails" if known[0].verdict == FAILS else "passes"
    if len(known) == 1:
        return f"{what} in {known[0].version}"
    return f"{what} in every version tried, {known[0].version} to {known[-1].version}"


def cache_folder() -> Path:
    """Where environments are kept between calls."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "aoti-minimize" / "torch"


def environment_for(
    version: str, cache: Path, options: Sequence[str] = (), started: Callable[[str], None] = lambda what: None
) -> Path:
    """The interpreter of an environment that has one version of torch; made with pip when it is not there.

    `options` are handed to pip. Raises Unusable when it cannot be made.
    """
    name = f"{version}-py{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache / re.sub(r"[^\w.+-]", "_", name)
    python, done = folder / "bin" / "python", folder / ".complete"
    if done.exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True)
    except OSError as problem:
        raise Unusable(
            f"{cache} cannot be written: {problem.strerror}; choose another with --cache"
        ) from None
    started(f"installing torch {version} into {folder}")
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", *options, f"torch=={version}"]
    steps = ((sys.executable, ["-m", "venv", str(folder)]), (str(python), pip))
    for program, arguments in steps:
        status, output = run_interpreter(arguments, cache, INSTALL_LIMIT, dict(os.environ), python=program)
        if status != 0:
            shutil.rmtree(folder, ignore_errors=True)
            raise Unusable(f"torch {version} cannot be installed: {_last_line(output)}")
    done.touch()
    return python


def version_of(python: Path) -> str:
    """The version of torch that an interpreter imports. Raises Unusable when there is none."""
    if not python.is_file() or not os.access(python, os.X_OK):
        raise Unusable(f"--python {python} is not an interpreter")
    code = "import torch; print('torch', torch.__version__)"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    try:
        status, output = run_interpreter(
            ["-c", code], Path.cwd(), ASK_LIMIT, environment, python=str(python.absolute())
        )
    except OSError as problem:
        raise Unusable(f"--python {python} cannot be run: {problem.strerror}") from None
    found = re.search(r"^torch (\S+)$", output, re.MULTILINE)
    if status != 0 or found is None:
        raise Unusable(f"--python {python} cannot import torch: {_last_line(output)}")
    return found[1]


def try_version(folder: Path, python: Path, version: str, kind: str, known: str, runs: int) -> Tried:
    """Run the folder's repro with an interpreter, until it fails or `runs` times."""
    tried = Tried(version, CANNOT)
    for _ in range(max(1, runs)):
        status, output = run_cold(folder, python=str(python.absolute()))
        verdict = judge_output(status, output, kind, known)
        tried = Tried(version, verdict, "" if verdict == PASSES else _last_line(output))
        if verdict != PASSES:
            break
    return tried


def _last_line(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else "it printed nothing"
