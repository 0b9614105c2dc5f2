"""Where a worker notes how far it is: a page of memory that it shares with its parent.

A note costs a microsecond and wakes nobody, and the last one outlives the process: it is known which stage,
and which of several inputs, a worker was at when it died.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from typing import NamedTuple

_SIZE = 4096
_HEAD = struct.Struct("=QQddI")  # as in `Note`, and the bytes of the stage that follows
_ATTEMPTS = 1000


class Note(NamedTuple):
    """How far a worker is: at item `item` of its task since `begun`, and there in `stage` since `since`.

    Both are of the monotonic clock; `begun` is 0 for a task that does not count items. `number` counts
    writes, two for each note: it is odd while a note is being written.
    """

    number: int = 0
    item: int = 0
    begun: float = 0.0
    since: float = 0.0
    stage: str = ""


class Board:
    """One note. It is written by one process and may be read by another at any time."""

    def __init__(self, fd: int) -> None:
        """`fd` is a descriptor from `memory`; it may be closed afterwards."""
        self._memory = mmap.mmap(fd, _SIZE)
        self._last = Note()

    def start(self) -> None:
        """Begin a task: what is noted next is of no item."""
        self._last = Note(self._last.number)

    def begin(self, item: int) -> None:
        """Note that the task has come to an item."""
        self._write(item, time.monotonic(), "")

    def enter(self, stage: str) -> None:
        """Note that the task has come to a stage, of the item that it is at."""
        self._write(self._last.item, self._last.begun, stage)

    def _write(self, item: int, begun: float, stage: str) -> None:
        """Put a note in place of the one before. A stage of more than some 4000 bytes is cut."""
        text = stage.encode(errors="replace")[: _SIZE - _HEAD.size]
        note = Note(self._last.number + 2, item, begun, time.monotonic(), stage)
        for number in (note.number - 1, note.number):
            _HEAD.pack_into(self._memory, 0, number, item, begun, note.since, len(text))
            self._memory[_HEAD.size : _HEAD.size + len(text)] = text
        self._last = note

    def read(self) -> Note:
        """The last note; of one whose writer died in the middle, what there is."""
        for _ in range(_ATTEMPTS):
            number, item, begun, since, length = _HEAD.unpack_from(self._memory)
            text = self._memory[_HEAD.size : _HEAD.size + min(length, _SIZE - _HEAD.size)]
            if number % 2 == 0 and _HEAD.unpack_from(self._memory)[0] == number:
                break
        return Note(number, item, begun, since, text.decode(errors="replace"))


def memory() -> int:
    """A descriptor of memory for a board, to be handed to another process and closed."""
    fd = os.memfd_create("notes")
    os.truncate(fd, _SIZE)
    return fd
