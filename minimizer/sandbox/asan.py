"""The environment in which compiled code is built and run with AddressSanitizer.

The instrumented code lives in a shared library, so the sanitizer's own library must be the first that the
process loads; the C++ library comes right after it, or exceptions thrown by torch are not intercepted.
"""

from __future__ import annotations

import os
import subprocess

FLAGS = "native -fsanitize=address -g"
"""Inductor has no option for further compiler flags, but passes on what stands behind the architecture."""

OPTIONS = (
    "abort_on_error=1",
    "detect_leaks=0",
    "alloc_dealloc_mismatch=0",
    "new_delete_type_mismatch=0",
)
"""Python and torch, which are not instrumented, would be reported for leaks and for their allocators."""


def asan_environment() -> tuple[tuple[str, str], ...]:
    """Variables to start a process with. Raises RuntimeError, in one line, where g++ has no sanitizer."""
    found = []
    for name in ("asan", "stdc++"):
        command = ["g++", f"-print-file-name=lib{name}.so"]
        try:
            path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError) as problem:
            raise RuntimeError(f"{' '.join(command)} fails ({problem}); install g++") from None
        if not os.path.isabs(path):
            raise RuntimeError(f"g++ here has no lib{name}.so; install the sanitizer libraries of gcc")
        found.append(path)
    return (
        ("ASAN_OPTIONS", ":".join(OPTIONS)),
        ("LD_PRELOAD", ":".join(found)),
        ("TORCHINDUCTOR_CPP_MARCH", FLAGS),
    )


def is_asan(environment: tuple[tuple[str, str], ...]) -> bool:
    """Whether an environment is one of `asan_environment`."""
    return any(key == "LD_PRELOAD" and "libasan" in value for key, value in environment)


def without_asan(environment: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The environment without what `asan_environment` has put into it."""
    if not is_asan(environment):
        return environment
    ours = ("ASAN_OPTIONS", "LD_PRELOAD", "TORCHINDUCTOR_CPP_MARCH")
    return tuple(entry for entry in environment if entry[0] not in ours)
