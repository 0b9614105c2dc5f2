"""What has been judged so far, so that nothing is judged twice: in this run, or ever.

A judgement costs seconds, a look-up nothing, and passes that know nothing of each other ask the same question
again and again. The key is the case up to renaming, so the same cut reached by two roads is one question.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol


class Journal(Protocol):
    """A memory of verdicts by `Case.key`."""

    def known(self, key: str) -> bool | None:
        """Whether the case was interesting; None when it was never judged."""

    def record(self, key: str, interesting: bool, **about: Any) -> None:
        """Remember a verdict; `about` is for people (pass, number of nodes)."""

    def noted(self, key: str) -> dict[str, Any] | None:
        """What was noted under a key; None when nothing was."""

    def note(self, key: str, data: dict[str, Any]) -> None:
        """Remember plain JSON data: what judging led to where that is more than yes or no."""


class MemoryJournal:
    """A journal that lives as long as the process."""

    def __init__(self) -> None:
        self._verdicts: dict[str, bool] = {}
        self._notes: dict[str, dict[str, Any]] = {}

    def noted(self, key: str) -> dict[str, Any] | None:
        return self._notes.get(key)

    def note(self, key: str, data: dict[str, Any]) -> None:
        self._notes[key] = data

    def known(self, key: str) -> bool | None:
        return self._verdicts.get(key)

    def record(self, key: str, interesting: bool, **about: Any) -> None:
        self._verdicts[key] = interesting

    def __len__(self) -> int:
        return len(self._verdicts)


class FileJournal(MemoryJournal):
    """A journal kept as JSON lines, each written at once: what a killed run knew, the next one knows.

    A last line that was cut short by the kill is ignored. Raises OSError when the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        for line in text.splitlines():
            try:
                entry = json.loads(line)
                if "noted" in entry:
                    self._notes[entry["key"]] = dict(entry["noted"])
                else:
                    self._verdicts[entry["key"]] = bool(entry["interesting"])
            except (ValueError, KeyError, TypeError):
                continue
        self._torn = bool(text) and not text.endswith("\n")

    def record(self, key: str, interesting: bool, **about: Any) -> None:
        super().record(key, interesting)
        self._write({"key": key, "interesting": interesting, **about})

    def note(self, key: str, data: dict[str, Any]) -> None:
        super().note(key, data)
        self._write({"key": key, "noted": data})

    def _write(self, entry: dict[str, Any]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(("\n" if self._torn else "") + json.dumps(entry) + "\n")
        self._torn = False
