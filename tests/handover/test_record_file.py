"""A record survives being written; a stranger's record executes nothing and breaks nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from repro_cases import RELU
from test_report import RECORD

from minimizer.case import Case, Value, case_to_json
from minimizer.cli import main
from minimizer.folder import RunFolder
from minimizer.handover import reports
from minimizer.handover.evidence import Step, read_evidence
from minimizer.handover.record import RunRecord
from minimizer.handover.record_file import record_from_text, record_text
from minimizer.handover.reports import write_reports
from strategies.values import Fill

PUBLIC = replace(RECORD, target="model.py", detail="boom", program=RELU)


def test_what_is_written_is_read_back():
    again = record_from_text(record_text(PUBLIC))
    assert json.loads(record_text(again)) == json.loads(record_text(PUBLIC))
    assert again.program == PUBLIC.program
    assert again.certificate == PUBLIC.certificate


def test_unknown_stays_unknown():
    assert record_from_text(record_text(RunRecord())) == RunRecord()


def test_nothing_private_is_written():
    text = record_text(replace(RECORD, command="aoti-minimize /home/ann/models/model.py"))
    assert "ann" not in text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        '{"kind": 3}',
        '{"program": {"Evil": {}}}',
        '{"program": 1}',
        '{"certificate": [1]}',
        '{"wall_seconds": "soon"}',
        '{"failing_input": 5}',
        '{"region": [1]}',
        "[" * 5000,
    ],
)
def test_junk_is_refused(text):
    with pytest.raises(ValueError, match=r"not the record of a run|Expecting|recursion"):
        record_from_text(text)


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "model-repro"
    (folder / "case" / "reduced").mkdir(parents=True)
    case = Case(RELU, (Value("float32", (17, 3), Fill("zeros")),))
    for place in ("case", "case/reduced"):
        (folder / place / "case.json").write_text(json.dumps(case_to_json(case)))
    (folder / "record.json").write_text(record_text(PUBLIC))
    lines = [{"key": "a", "interesting": True, "nodes": 3, "pass": "window"}, {"key": "b"}]
    (folder / "journal.jsonl").write_text("\n".join(map(json.dumps, lines)) + '\n{"key": "c", "inter')
    return folder


def test_a_run_folder_is_evidence(run):
    evidence = read_evidence(run)
    assert evidence.before == RELU
    assert evidence.steps == (Step(3, True, "window"),)
    assert read_evidence(run / "case" / "reduced" / "case.json") == evidence


def test_both_reports_are_made_again(run, capsys):
    assert main(["report", str(run), "--title", "something else"]) == 0
    assert (run / "report.md").read_text().splitlines()[2] == "# something else"
    assert "<h1>something else</h1>" in (run / "report.html").read_text()
    assert capsys.readouterr().out.count("report.") == 2


def test_one_format_elsewhere(run, tmp_path, capsys):
    assert main(["report", str(run), "--format", "md", "--out", str(tmp_path / "new")]) == 0
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["report.md"]
    capsys.readouterr()
    assert main(["report", str(run), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "wrong_value"


def test_a_case_alone_gives_what_it_holds(tmp_path, capsys):
    case = Case(RELU, (Value("float32", (17, 3), Fill("zeros")),))
    about = {"failure": {"kind": "crash", "stage": "run", "message": "gone"}}
    path = tmp_path / "case.json"
    path.write_text(json.dumps({**case_to_json(case), "about": about}))
    assert main(["report", str(path)]) == 0
    text = (tmp_path / "report.md").read_text()
    assert "float32[17, 3]" in text
    assert "`crash`" in text
    assert "Minimality" not in text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("region", {"predicate": "n", "sizes_tried": {}}),
        ("failing_input", [{"shape": 5}]),
        ("kernel", {"nodes": 7}),
    ],
)
def test_a_damaged_record_is_one_line(run, capsys, field, value):
    plain = json.loads((run / "record.json").read_text())
    (run / "record.json").write_text(json.dumps({**plain, field: value}))
    status = main(["report", str(run)])
    captured = capsys.readouterr()
    assert status in (0, 2)
    assert "Traceback" not in captured.err
    assert captured.err.count("\n") == (1 if status else 0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "holds no stored case"),
        (["model-repro", "--format", "pdf"], "invalid choice"),
        (["model-repro", "--out", "model-repro/record.json"], "cannot be written"),
    ],
)
def test_wrong_arguments_are_one_line(run, monkeypatch, capsys, arguments, says):
    monkeypatch.chdir(run.parent)
    assert main(["report", *arguments]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_a_page_that_cannot_be_drawn_costs_no_result(tmp_path, monkeypatch):
    def broken(evidence):
        raise KeyError("drawing")

    folder = RunFolder(tmp_path / "model-repro", tmp_path / "model.py", resume=False)
    write_reports(folder, PUBLIC)
    assert (folder.path / "report.html").exists()
    monkeypatch.setattr(reports, "report_html", broken)
    write_reports(folder, PUBLIC)
    assert (folder.path / "report.md").exists()
    assert not (folder.path / "report.html").exists()
    assert "drawing" in (folder.path / "internal_error.txt").read_text()
