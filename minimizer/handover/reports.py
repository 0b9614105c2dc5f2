"""Writes what a run found out: for scripts, for a person to file, and to look at."""

from __future__ import annotations

import traceback

from minimizer.folder import RunFolder
from minimizer.handover.evidence import read_evidence
from minimizer.handover.page import report_html
from minimizer.handover.record import RunRecord, summary_text
from minimizer.handover.record_file import RECORD, record_text
from minimizer.handover.report import report_markdown


def write_record(folder: RunFolder, record: RunRecord) -> None:
    """The record and its summary, as far as they are known."""
    folder.write(RECORD, record_text(record))
    folder.write("summary.json", summary_text(record))


def write_reports(folder: RunFolder, record: RunRecord) -> None:
    """The record, report.md and report.html; of a page that cannot be drawn a file tells why."""
    write_record(folder, record)
    folder.write("report.md", report_markdown(record))
    try:
        page = report_html(read_evidence(folder.path))
    except Exception:  # noqa: BLE001 (a result that was found is not lost for want of a picture of it)
        folder.write("internal_error.txt", traceback.format_exc())
        folder.remove("report.html")
        return
    folder.write("report.html", page)
