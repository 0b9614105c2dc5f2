"""One archive with all that a maintainer wants of a run, proven by running the repro out of it.

Same run, same archive, bit for bit, but for ``trace/``: that is what the proving run logged. Private names
are taken out of everything that was not written for others in the first place.
"""

from __future__ import annotations

import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from minimizer.folder import copy_scripts
from minimizer.handover.evidence import read_evidence
from minimizer.handover.page import report_html
from minimizer.handover.record import summary_text
from minimizer.handover.record_file import RECORD, record_text
from minimizer.handover.report import report_markdown
from minimizer.handover.scrub import scrub
from minimizer.options import Unusable
from minimizer.stored import copy_case, read_case
from minimizer.verify import run_cold

TRIES = 3
"""Runs in which the repro must fail once; a flaky one may need more than the first."""

MOST_TRACE = 4_000_000
"""Characters of one file of the trace."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip archive can state."""

_READ_ME = """\
{title}

repro.py             python repro.py exits with 1 while the bug is there; needs torch only
report.md, .html     what happens, how sure, versions
kernel_repro.py      the kernel alone, where one is at fault
case/                the same as data, for `aoti-minimize replay FOLDER`
generated/           the C++ that Inductor generates for repro.py
trace/               what TORCH_TRACE logs while repro.py runs, for tlparse

Reading any of it executes nothing; running repro.py or replaying the case does.
"""


@dataclass(frozen=True)
class Proof:
    """How often the unpacked repro was run and failed, and what it printed last."""

    runs: int
    failures: int
    output: str


def make_bundle(folder: Path, archive: Path) -> Proof:
    """Write the archive of a run folder and run its repro from it. Raises Unusable."""
    if not (folder / "repro.py").is_file():
        raise Unusable(f"{folder} has no repro.py; a bundle is made of a run that found a failure")
    with tempfile.TemporaryDirectory(prefix="aoti-minimize-bundle-") as scratch:
        staged = Path(scratch) / "staged"
        _stage(folder, staged)
        _pack(staged, archive)
        unpacked, kept = Path(scratch) / "unpacked", Path(scratch) / "kept"
        with zipfile.ZipFile(archive) as made:
            made.extractall(unpacked)
        proof = _prove(unpacked / _top(archive), kept)
        _keep_generated(kept / "cache", staged / "generated")
        _keep_trace(kept / "trace", staged / "trace")
        _pack(staged, archive)
    return proof


def _stage(folder: Path, staged: Path) -> None:
    staged.mkdir()
    copy_scripts(folder, staged)
    evidence = read_evidence(folder)
    record = evidence.record
    (staged / RECORD).write_text(record_text(record), encoding="utf-8")
    (staged / "summary.json").write_text(summary_text(record), encoding="utf-8")
    (staged / "report.md").write_text(report_markdown(record), encoding="utf-8")
    (staged / "report.html").write_text(report_html(evidence), encoding="utf-8")
    title = scrub(record.title or "A failure of AOTInductor")
    (staged / "README.txt").write_text(_READ_ME.format(title=title), encoding="utf-8")
    copy_case(read_case(folder), staged, "case/reduced/case.json")


def _prove(unpacked: Path, kept: Path) -> Proof:
    """Run the unpacked repro in fresh processes until it fails, at most `TRIES` times."""
    for name in ("cache", "trace"):
        (kept / name).mkdir(parents=True, exist_ok=True)
    extra = {"TORCHINDUCTOR_CACHE_DIR": str(kept / "cache"), "TORCH_TRACE": str(kept / "trace")}
    output = ""
    for run in range(1, TRIES + 1):
        status, output = run_cold(unpacked, extra=extra)
        if status == 1:
            return Proof(run, 1, output)
    return Proof(TRIES, 0, output)


def _keep_generated(cache: Path, into: Path) -> None:
    """The C++ sources, without the compile commands below them: those name folders of this machine."""
    sources = [p for pattern in ("*.kernel.cpp", "*.wrapper.cpp") for p in sorted(cache.rglob(pattern))]
    for source in sources:
        into.mkdir(exist_ok=True)
        text = source.read_text(encoding="utf-8", errors="replace").partition("\n// Compile cmd")[0]
        (into / source.name).write_text(scrub(text).rstrip() + "\n", encoding="utf-8")


def _keep_trace(trace: Path, into: Path) -> None:
    for log in sorted(trace.glob("*.log")):
        into.mkdir(exist_ok=True)
        with log.open(encoding="utf-8", errors="replace") as file:
            text = file.read(MOST_TRACE)
        (into / "trace.log").write_text(scrub(text), encoding="utf-8")


def _top(archive: Path) -> str:
    """The one folder that an archive unpacks into."""
    return archive.name.removesuffix(".zip")


def _pack(folder: Path, archive: Path) -> None:
    """All files of a folder as a zip archive that depends on nothing but their names and contents.

    Raises Unusable when it cannot be written.
    """
    fresh = archive.with_name(f".{archive.name}.new")
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
            for path in sorted(p for p in folder.rglob("*") if p.is_file()):
                entry = zipfile.ZipInfo(f"{_top(archive)}/{path.relative_to(folder)}", _EPOCH)
                entry.external_attr = 0o644 << 16
                packed.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
        fresh.replace(archive)
    except OSError as problem:
        raise Unusable(
            f"{archive} cannot be written: {problem.strerror}; choose another with --out"
        ) from None
