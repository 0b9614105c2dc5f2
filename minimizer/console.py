"""What a person sees: one labelled line for each thing that is known, and a bar while they wait."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Any, TextIO

from tqdm import tqdm

LABEL = 12
"""Width of the label column."""


def one_line(text: str, most: int = 1000) -> str:
    """Text from anywhere as one printable line.

    >>> one_line("first\\nsecond \\x1b[31m")
    'first second \\\\x1b[31m'
    """
    words = " ".join(text[: 10 * most].split())
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words)
    return line if len(line) <= most else f"{line[: most - 3]}..."


def open_streams() -> None:
    """Make stdout and stderr such that writing to them never raises for what is written.

    They may have been closed by who started this, or may not know the characters that are used here.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        else:
            stream.reconfigure(errors="backslashreplace")


class Console:
    """Writes lines to stdout and, on a terminal, progress to stderr. `quiet` keeps the last lines only.

    `stream` is where the lines go instead: to stderr where stdout is for a script to read.
    """

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self.quiet = quiet
        self._stream = stream
        self.live = sys.stderr.isatty() and not quiet
        self._heard = True

    def say(self, label: str, text: str, *, always: bool = False) -> None:
        """``label       text``; further lines of the text are indented."""
        if not self._heard or (self.quiet and not always):
            return
        first, *rest = text.splitlines() or [""]
        stream = self._stream or sys.stdout
        lines = [f"{label:<{LABEL}}{first}", *(" " * LABEL + line for line in rest)]
        try:
            print("\n".join(lines), flush=True, file=stream)
        except OSError:
            # Nobody reads on (``| head``), or the disk is full: the run folder is what counts.
            self._heard = False
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)

    def bar(self, label: str, *, total: int | None = None, unit: str = "") -> Bar:
        """A progress bar that leaves nothing behind."""
        return Bar(label, total, unit, shown=self.live)


class Bar:
    """A tqdm bar as a context manager; silent where nobody looks."""

    def __init__(self, label: str, total: int | None, unit: str, *, shown: bool) -> None:
        self._bar: Any = None
        if shown:
            self._bar = tqdm(
                total=total, desc=f"{label:<{LABEL - 1}}", unit=unit, leave=False, file=sys.stderr
            )
        self._last = 0.0

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def at(self, done: int, note: str = "") -> None:
        """Show how far things are."""
        if self._bar is None:
            return
        now = time.monotonic()
        self._bar.n = done
        if now - self._last > 0.1:
            self._last = now
            self._bar.set_postfix_str(note, refresh=True)
