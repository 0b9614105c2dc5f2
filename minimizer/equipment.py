"""What there is on this machine of what the tool needs or can use, and what a missing thing costs.

Looked up or tried out in a moment; whether it all works together is for `minimizer.doctor` to prove.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from minimizer.sandbox.asan import asan_environment
from minimizer.sandbox.tool import run_tool

TESTED = "2.13"
"""The torch that everything was tested with."""

ROOM = 2.0
"""Gigabytes of disk, and of memory, with which a run has no trouble."""

SCARCE = 0.3
"""Gigabytes below which nothing can be compiled."""

_PROGRAM = """
#include <omp.h>
int main() { int n = 0;
#pragma omp parallel reduction(+ : n)
  n += omp_get_thread_num() >= 0;
  return n < 1; }
"""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `good` is None for what is optional and missing, or scarce."""

    what: str
    said: str
    good: bool | None


def look_around() -> Iterator[Finding]:
    """Everything that can be told without torch."""
    folder = Path(tempfile.gettempdir())
    yield compiler(os.environ.get("CXX", "g++"), folder)
    yield headers(Path(sysconfig.get_paths()["include"]))
    yield temporary_folder(folder)
    yield memory(Path("/proc/meminfo"))
    yield sanitizer()
    yield debugger()
    yield safetensors()


def compiler(name: str, folder: Path) -> Finding:
    """The C++ compiler, tried on a program with OpenMP."""
    if shutil.which(name) is None:
        said = f"{name} is not on PATH; nothing can be compiled: install it (Debian: apt install g++)"
        return Finding("compiler", said, False)
    version = next(iter(run_tool([name, "--version"])[1].splitlines()), name)
    with tempfile.TemporaryDirectory(prefix="aoti-minimize-", dir=folder) as scratch:
        source, program = Path(scratch, "try.cpp"), Path(scratch, "try")
        source.write_text(_PROGRAM)
        status, output = run_tool([name, "-std=c++17", "-fopenmp", str(source), "-o", str(program)])
        if status == 0:
            status, output = run_tool([str(program)])
    if status == 0:
        return Finding("compiler", f"{version}; builds with OpenMP", True)
    reason = next((line for line in output.splitlines() if "error" in line), f"exit status {status}")
    said = f"{version} does not build and run a program with OpenMP ({reason.strip()}); reinstall g++"
    return Finding("compiler", said, False)


def headers(include: Path) -> Finding:
    """Python's own headers, which Inductor's CPU kernels are built with."""
    header = include / "Python.h"
    if header.exists():
        return Finding("headers", str(header), True)
    said = f"{header} is missing; kernels cannot be built: install them (Debian: apt install python3-dev)"
    return Finding("headers", said, False)


def temporary_folder(folder: Path) -> Finding:
    """Where packages are built, unpacked and loaded from."""
    what = "TMPDIR"
    try:
        free = shutil.disk_usage(folder).free / 1e9
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as problem:
        said = f"{folder} cannot be written ({problem.strerror}); set TMPDIR to a folder that can be"
        return Finding(what, said, False)
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        said = f"{folder} is mounted noexec; no package can be loaded from it: set TMPDIR to another folder"
        return Finding(what, said, False)
    said = f"{folder}, {free:.1f} GB free"
    if free < ROOM:
        return Finding(
            what, f"{said}; a run needs up to {ROOM:.0f} GB: make room", None if free > SCARCE else False
        )
    return Finding(what, said, True)


def memory(meminfo: Path) -> Finding:
    """Memory that is available; one compilation takes about a gigabyte."""
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
        free = int(lines["MemAvailable"].split()[0]) / 1e6
    except (OSError, KeyError, ValueError, IndexError):
        return Finding("memory", "how much is available cannot be told", None)
    if free < ROOM:
        said = f"{free:.1f} GB available; a compilation may be killed for it: end other programs"
        return Finding("memory", said, None if free > SCARCE else False)
    return Finding("memory", f"{free:.1f} GB available", True)


def sanitizer() -> Finding:
    """AddressSanitizer, which sees accesses outside a buffer."""
    try:
        environment = dict(asan_environment())
    except RuntimeError as problem:
        said = f"{problem}; without them accesses outside a buffer may go unseen, and --sanitize is refused"
        return Finding("sanitizer", said, None)
    return Finding("sanitizer", environment["LD_PRELOAD"].split(":")[0], True)


def debugger() -> Finding:
    """gdb, for native stacks."""
    found = shutil.which("gdb")
    if found:
        return Finding("gdb", found, True)
    said = "not there; crashes are reported without a native stack (Debian: apt install gdb)"
    return Finding("gdb", said, None)


def safetensors() -> Finding:
    """The package that reads .safetensors files."""
    if importlib.util.find_spec("safetensors"):
        return Finding("safetensors", "installed", True)
    said = "not there; --check-inputs reads .pt files only (pip install safetensors)"
    return Finding("safetensors", said, None)


def torch_version(versions: dict[str, str]) -> Finding:
    """Which torch there is, and whether it is the one that everything was tested with."""
    said = ", ".join(f"{name} {value}" for name, value in versions.items())
    if versions.get("torch", "").startswith(f"{TESTED}."):
        return Finding("torch", said, True)
    return Finding("torch", f"{said}; tested with torch {TESTED} only", None)


def gpu(there: bool) -> Finding:
    """Whether torch sees a GPU."""
    said = "torch sees one" if there else "torch sees none; what runs on the CPU is judged, nothing else"
    return Finding("GPU", said, there or None)
