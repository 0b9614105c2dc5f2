"""What a person sees: one labelled line for each thing that is known, and a bar while they wait."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from tqdm import tqdm

LABEL = 12
"""Width of the label column."""


class Console:
    """Writes lines to stdout and, on a terminal, progress to stderr. `quiet` keeps the last lines only."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.live = sys.stderr.isatty() and not quiet

    def say(self, label: str, text: str, *, always: bool = False) -> None:
        """``label       text``; further lines of the text are indented."""
        if self.quiet and not always:
            return
        first, *rest = text.splitlines() or [""]
        print(f"{label:<{LABEL}}{first}", flush=True)
        for line in rest:
            print(" " * LABEL + line, flush=True)

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
