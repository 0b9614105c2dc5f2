"""Disk stays bounded: what a night leaves behind is pruned by age and size.

Only folders that compilations make are ever touched. Which of them go is a pure function of a listing, so a
day of compilations can be simulated without a disk.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 4 << 30
"""Bytes that all leftovers together may take."""

MOST_AGE = 6 * 3600.0
"""Seconds after which a leftover goes, whatever its size."""

IN_USE = 1800.0
"""Seconds for which a leftover is taken to be in use: no compilation takes longer."""

LEFTOVERS = ("aotinductor_*", "aoti-minimize-*")
"""What compilations leave in the temporary folder; packages that crash do not remove what they unpacked."""

CACHE = "torchinductor_*"
KEPT = "precompiled_headers"
"""Inductor's cache folder is pruned inside; its precompiled headers are slow to make and are kept."""


@dataclass(frozen=True)
class Leftover:
    """A file or folder: its size in bytes and seconds since it was last changed."""

    path: str
    size: int
    age: float


def doomed(
    leftovers: Sequence[Leftover], *, most_bytes: int = MOST_BYTES, most_age: float = MOST_AGE
) -> list[Leftover]:
    """What has to go: all that is too old, then the oldest until the rest fits; never what may be in use.

    >>> [x.path for x in doomed([Leftover("a", 9, 9e9), Leftover("b", 9, 2e3), Leftover("c", 9, 1.0)])]
    ['a']
    """
    free = sorted((x for x in leftovers if x.age > IN_USE), key=lambda x: -x.age)
    going = [x for x in free if x.age > most_age]
    staying = [x for x in free if x.age <= most_age]
    busy = sum(x.size for x in leftovers if x.age <= IN_USE)
    excess = busy + sum(x.size for x in staying) - most_bytes
    for leftover in staying:
        if excess <= 0:
            break
        going.append(leftover)
        excess -= leftover.size
    return going


def listing(folder: Path, now: float) -> list[Leftover]:
    """The leftovers in a temporary folder."""
    paths = [p for pattern in LEFTOVERS for p in folder.glob(pattern)]
    for cache in folder.glob(CACHE):
        paths += [p for p in cache.iterdir() if p.name != KEPT]
    found = []
    for path in paths:
        try:
            found.append(Leftover(str(path), _size(path), now - path.stat().st_mtime))
        except OSError:
            continue  # whoever made it has removed it
    return found


def _size(path: Path) -> int:
    if not path.is_dir():
        return path.stat().st_size
    total = 0
    for base, _, files in os.walk(path):
        for name in files:
            try:
                total += os.lstat(os.path.join(base, name)).st_size
            except OSError:
                continue
    return total


def prune(folder: Path, now: float) -> int:
    """Remove what has to go; the bytes that came free."""
    freed = 0
    for leftover in doomed(listing(folder, now)):
        path = Path(leftover.path)
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        freed += leftover.size
    return freed
