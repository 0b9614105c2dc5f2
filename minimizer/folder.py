"""The run folder: what a run leaves behind, readable while it goes on, never another run's.

Everything is written to a temporary name and moved into place, so a reader or a kill sees the old file or
the new one. A folder belongs to one target; with another target in it, nothing is touched.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from minimizer.case import Case, case_from_json, case_to_json
from minimizer.options import Unusable

MARKER = ".aoti-minimize.json"
LOCK = ".aoti-minimize.lock"
RESULTS = (
    "summary.json",
    "record.json",
    "repro.py",
    "kernel_repro.py",
    "report.md",
    "report.html",
    "passing_neighbour.py",
)

BESIDE = ("repro_inputs.pt", "repro_ops.py", "repro_files")
"""What may lie beside a repro."""

TO_BE_RUN = ("repro.py", *BESIDE, "kernel_repro.py", "kernel_repro_inputs.pt", "passing_neighbour.py")
"""Files of a run folder that were written to be run elsewhere."""


def copy_scripts(run: Path, into: Path) -> None:
    """Copy what a run has written to be run elsewhere, as far as there is any."""
    for name in TO_BE_RUN:
        source = run / name
        if source.is_dir():
            shutil.copytree(source, into / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.is_file():
            shutil.copy(source, into / name)


class FolderError(Unusable):
    """The folder cannot be used; the message says what to do."""


class RunFolder:
    """One run folder. Raises FolderError when it is another's or cannot be written."""

    def __init__(self, path: Path, target: Path, *, resume: bool) -> None:
        self.path = path
        self.store = path / "case" / "tensors"
        self.journal = path / "journal.jsonl"
        self._claim(target, resume)

    def _claim(self, target: Path, resume: bool) -> None:
        identity = hashlib.sha256(str(target.resolve()).encode()).hexdigest()
        marker = self.path / MARKER
        try:
            if self.path.exists() and not self.path.is_dir():
                raise FolderError(f"{self.path} is a file; choose another folder with --out")
            if marker.exists():
                known = json.loads(marker.read_text())
                if not isinstance(known, dict):
                    raise ValueError("not a marker")
                if known.get("identity") != identity:
                    raise FolderError(
                        f"{self.path} holds a run of {known.get('target')}; choose another folder with --out"
                    )
            elif self.path.exists() and any(p.name != LOCK for p in self.path.iterdir()):
                raise FolderError(f"{self.path} is not empty and not a run folder; choose another with --out")
            elif resume:
                raise FolderError(f"there is no run in {self.path} to resume; run without --resume")
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = self._locked()
            if not resume:
                self._clear()
            self.store.mkdir(parents=True, exist_ok=True)
            self.write(MARKER, json.dumps({"target": target.name, "identity": identity}) + "\n")
        except ValueError as problem:
            raise FolderError(f"{marker} is damaged; choose another folder with --out") from problem
        except OSError as problem:
            raise FolderError(
                f"{self.path} cannot be written: {problem.strerror}; choose another with --out"
            ) from problem

    def _locked(self) -> IO[str]:
        """The lock of the folder, held until this process ends, however it ends. Raises FolderError."""
        lock = (self.path / LOCK).open("a+")
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            lock.seek(0)
            other = lock.read(20).strip() or "unknown"
            lock.close()
            raise FolderError(
                f"{self.path} is in use by another run (process {other}); "
                "wait for it or choose another folder with --out"
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        return lock

    def _clear(self) -> None:
        """Remove what an earlier run of the same target left, and nothing else."""
        for name in RESULTS:
            (self.path / name).unlink(missing_ok=True)
        for name in (*BESIDE, "case", "also"):
            self.remove(name)
        self.journal.unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        """Remove a file or folder of the run, if it is there."""
        path = self.path / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def write(self, name: str, text: str) -> Path:
        """Write a text file of the folder, whole or not at all."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f".{target.name}.new")
        fresh.write_text(text, encoding="utf-8")
        os.replace(fresh, target)
        return target

    def save_case(self, case: Case, name: str = "case", about: Mapping[str, Any] | None = None) -> None:
        """Store a case; its tensors stay in the store of the folder."""
        self.write(
            f"{name}/case.json",
            json.dumps({**case_to_json(case), "about": dict(about or {})}, indent=1) + "\n",
        )

    def load_case(self, name: str = "case") -> tuple[Case, dict[str, Any]] | None:
        """A stored case and what was noted about it; None when there is none. Raises FolderError."""
        path = self.path / name / "case.json"
        if not path.exists():
            return None
        try:
            plain = json.loads(path.read_text())
            return case_from_json(plain), dict(plain.get("about", {}))
        except (ValueError, KeyError, TypeError) as problem:
            raise FolderError(f"{path} cannot be read: {problem}; run again without --resume") from problem
