"""Recorded failures as plain files: one folder each, replayed every night.

``corpus/failures/NAME/`` holds the minimal case (``case/case.json`` and its tensors), the scripts of the run
(``repro.py`` with what lies beside it, ``kernel_repro.py``, ``passing_neighbour.py``), ``report.md``, and
``status.json``: the bucket, how it fared on each version of torch, the public issue if there is one, and a
person's judgement. Reading it executes nothing; replaying does.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from minimizer.buckets import bucket_of, calls_of, seen_of, slug
from minimizer.case import Case
from minimizer.folder import copy_scripts
from minimizer.options import Unusable
from minimizer.oracle.case_bench import CaseBench
from minimizer.oracle.requests import PRELOAD, TASKS
from minimizer.oracle.verdict import Signature, Verdict
from minimizer.sandbox import Sandbox, TaskError, WorkerLost
from minimizer.stored import StoredCase, copy_case, operator_files, read_case

FAILURES = "failures"
STATUS = "status.json"
CASE = "case/case.json"
REDUCED = "case/reduced/case.json"
REPORT = "report.md"

REPLAYS = 2
"""Fresh processes in which a recorded failure is judged; a third decides when they disagree."""


class CorpusError(Exception):
    """A recording or a run cannot be used; the message says in one line what to do."""


@dataclass(frozen=True)
class Recording:
    """One recorded failure: its folder and its ``status.json``."""

    folder: Path
    status: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def bucket(self) -> str:
        """Which bug it is (see `minimizer.buckets`)."""
        return str(self.status.get("bucket", ""))

    def case(self) -> Case:
        """The minimal case. Raises CorpusError."""
        return _read_case(self.folder / CASE).case


def recordings(corpus: Path) -> list[Recording]:
    """All recorded failures, by name. Raises CorpusError for one that cannot be read."""
    folder = corpus / FAILURES
    found = sorted(path.parent for path in folder.glob(f"*/{STATUS}")) if folder.is_dir() else []
    return [Recording(path, _read_json(path / STATUS)) for path in found]


def named(corpus: Path, name: str) -> Recording:
    """The recording of a name. Raises CorpusError."""
    known = recordings(corpus)
    found = next((r for r in known if r.name == name), None)
    if found is None:
        names = ", ".join(r.name for r in known[:8]) or "none"
        raise CorpusError(f"no recorded failure is called {name!r}; there are: {names}")
    return found


def add(
    corpus: Path,
    run: Path,
    *,
    name: str = "",
    judgement: str = "",
    issue: str = "",
    today: date | None = None,
) -> Recording:
    """Record what a run found. Raises CorpusError when there is nothing to record, or it is there already."""
    summary = summary_of(run)
    if summary.get("status") != "failure" or not (run / "repro.py").exists():
        raise CorpusError(f"{run} holds no failure with a repro; give the folder of a run that found one")
    verified = summary.get("repro_verified", {})
    if not verified.get("failures") or verified.get("failures") != verified.get("runs"):
        raise CorpusError(
            f"the repro of {run} does not fail every time; only what can be repeated is recorded"
        )
    stored = _read_case(run / REDUCED)
    case = stored.case
    signature = signature_of(run)
    bucket = bucket_of(case.program, signature)
    for known in recordings(corpus):
        if known.bucket == bucket:
            raise CorpusError(f"this failure is recorded already, as {known.name}")
    folder = corpus / FAILURES / (name or slug(signature.kind, calls_of(case.program), bucket))
    if folder.exists():
        raise CorpusError(f"{folder} exists; choose another name with --name")
    status = _status(case, signature, bucket, summary, (today or date.today()).isoformat())
    status |= {"issue": issue, "judgement": judgement}
    fresh = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    copy_scripts(run, fresh)
    if (run / REPORT).is_file():
        shutil.copy(run / REPORT, fresh / REPORT)
    copy_case(stored, fresh, CASE, _about(run))
    _write_json(fresh / STATUS, status)
    os.replace(fresh, folder)
    return Recording(folder, status)


def _status(
    case: Case, signature: Signature, bucket: str, summary: Mapping[str, Any], today: str
) -> dict[str, Any]:
    version = str(summary.get("versions", {}).get("torch", "unknown"))
    verified = summary["repro_verified"]
    seen = seen_of(case.program, signature.kind)
    fared = {"outcome": "fails", "runs": verified["runs"], "failures": verified["failures"], "on": today}
    return {
        "bucket": bucket,
        "kind": signature.kind,
        "stage": signature.stage,
        "signature": str(signature),
        "message": str(summary.get("message", ""))[:300],
        "calls": list(calls_of(case.program)),
        "classes": sorted(seen.classes),
        "nodes": case.program.operator_count,
        "recorded": today,
        "torch": {version: fared},
    }


def signature_of(run: Path) -> Signature:
    """The signature of a run's failure, from what it noted beside the reduced case. Raises CorpusError."""
    parts = str(_about(run).get("signature", "")).split(" · ")
    if len(parts) < 2:
        raise CorpusError(f"{run} does not say what failed; run it again")
    kind, stage, *rest = parts
    exception = rest[0] if len(rest) == 2 else ""
    return Signature(kind, stage, exception, rest[-1] if rest else "")


def _about(run: Path) -> dict[str, Any]:
    return dict(_read_json(run / REDUCED).get("about", {}))


def summary_of(run: Path) -> dict[str, Any]:
    """The summary of a run. Raises CorpusError."""
    return _read_json(run / "summary.json")


def reduced_case(run: Path) -> Case:
    """The minimal case of a run. Raises CorpusError."""
    return _read_case(run / REDUCED).case


def replay(folders: Sequence[Path], tell: Callable[[dict[str, Any]], None]) -> None:
    """Judge recorded failures in fresh processes and tell how each fared, one event each."""
    with Sandbox(PRELOAD) as sandbox:
        version = _version(sandbox)
        for folder in folders:
            tell({"did": "replayed", "name": folder.name, "torch": version, **_replayed(sandbox, folder)})


def _version(sandbox: Sandbox) -> str:
    worker = sandbox.worker()
    try:
        return str(dict(worker.call(TASKS + "versions", timeout=60.0))["torch"])
    except (WorkerLost, TaskError):
        return "unknown"
    finally:
        worker.close()


def _replayed(sandbox: Sandbox, folder: Path) -> dict[str, Any]:
    try:
        status = _read_json(folder / STATUS)
        stored = _read_case(folder / CASE)
        operator_files(stored.case)
    except (CorpusError, Unusable) as problem:
        return {"outcome": "unusable", "said": str(problem)}
    case = stored.case
    bench = CaseBench(sandbox, stored.store.resolve())
    verdicts = [bench.judge(case, "full", fresh=True) for _ in range(REPLAYS)]
    if len({v.status for v in verdicts}) > 1:
        verdicts.append(bench.judge(case, "full", fresh=True))
    bench.close()
    return outcome(str(status.get("kind", "")), str(status.get("stage", "")), verdicts)


def outcome(kind: str, stage: str, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """How a recorded failure fared: ``fails``, ``fixed``, ``changed``, ``flaky`` or ``unusable``, and why.

    Kind and stage decide whether it is the same failure: exception types and wording differ between versions.
    """
    failures = [v.failure for v in verdicts if v.failure is not None]
    counts = {"runs": len(verdicts), "failures": len(failures)}
    if not failures:
        invalid = next((v.reason for v in verdicts if v.status != "pass"), "")
        return {"outcome": "unusable" if invalid else "fixed", "said": invalid[:300], **counts}
    said = failures[0].message.splitlines()[0][:300] if failures[0].message else failures[0].kind
    if len(failures) < len(verdicts):
        return {"outcome": "flaky", "said": said, **counts}
    same = all(_alike(kind, f.kind) and f.stage == stage for f in failures)
    return {"outcome": "fails" if same else "changed", "said": said, **counts}


def _alike(wanted: str, seen: str) -> bool:
    crashes = ("crash", "memory_error")
    return wanted == seen or (wanted in crashes and seen in crashes)


def note_outcome(recording: Recording, event: Mapping[str, Any], today: date) -> None:
    """Write into a recording how it fared on a version of torch."""
    fared = {key: event[key] for key in ("outcome", "runs", "failures") if key in event}
    versions = {**recording.status.get("torch", {}), str(event["torch"]): {**fared, "on": today.isoformat()}}
    _write_json(recording.folder / STATUS, {**recording.status, "torch": versions})


def surplus(known: Sequence[Recording]) -> list[Recording]:
    """Recordings of a bucket that another one holds already: all but the smallest and oldest of each."""
    kept: dict[str, Recording] = {}
    order = sorted(
        known, key=lambda r: (int(r.status.get("nodes", 0)), str(r.status.get("recorded", "")), r.name)
    )
    for recording in order:
        kept.setdefault(recording.bucket or recording.name, recording)
    return [r for r in known if kept[r.bucket or r.name] is not r]


def fixed_everywhere(recording: Recording) -> bool:
    """Whether a recording passed on every version on which it was judged last."""
    fared = recording.status.get("torch", {}).values()
    return bool(fared) and all(f.get("outcome") == "fixed" for f in fared)


def remove(recording: Recording) -> None:
    """Remove a recording."""
    shutil.rmtree(recording.folder)


def _read_case(path: Path) -> StoredCase:
    try:
        return read_case(path)
    except Unusable as problem:
        raise CorpusError(str(problem)) from problem


def _read_json(path: Path) -> dict[str, Any]:
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CorpusError(f"{path} does not exist") from None
    except (OSError, ValueError) as problem:
        raise CorpusError(f"{path} cannot be read: {problem}") from problem
    if not isinstance(plain, dict):
        raise CorpusError(f"{path} does not hold what it should")
    return plain


def _write_json(path: Path, plain: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    os.replace(fresh, path)
