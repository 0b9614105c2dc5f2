"""What a person can get wrong with a night: one line, status 2, nothing touched."""

import json

import pytest

from minimizer.cli import main


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "corpus/models").mkdir(parents=True)
    (tmp_path / "corpus/models/a.py").write_text("")
    return tmp_path / "corpus"


def refused(capsys, *argv):
    assert main(["nightly", *map(str, argv)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "Traceback" not in said
    return said


def test_a_corpus_that_is_none(tmp_path, corpus, capsys):
    assert "is not a folder" in refused(capsys, tmp_path / "nothing", "--out", tmp_path / "n")
    (tmp_path / "empty").mkdir()
    said = refused(capsys, tmp_path / "empty", "--out", tmp_path / "n", "--no-programs")
    assert "nothing to do" in said


def test_a_night_without_a_place(tmp_path, corpus, capsys):
    assert "--out" in refused(capsys, corpus, "--no-programs")
    (tmp_path / "file").write_text("")
    assert "is a file" in refused(capsys, corpus, "--no-programs", "--out", tmp_path / "file")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    assert "is not empty" in refused(capsys, corpus, "--no-programs", "--out", tmp_path / "full")
    assert "no night" in refused(capsys, corpus, "--no-programs", "--out", tmp_path / "n", "--resume")
    assert (tmp_path / "full/mine.txt").read_text() == "mine"
    assert not (tmp_path / "n").exists()


def test_a_budget_that_is_no_time(tmp_path, corpus, capsys):
    assert "write 8h, 90m or 3600" in refused(capsys, corpus, "--out", tmp_path / "n", "--budget", "soon")
    assert "1 or more" in refused(capsys, corpus, "--out", tmp_path / "n", "--workers", "0")


def test_a_known_file_that_is_none(tmp_path, corpus, capsys):
    (corpus / "known.toml").write_text("[[known]]\nissue = 'x'\n")
    assert "entry 1" in refused(capsys, corpus, "--no-programs", "--out", tmp_path / "n")


def test_a_recording_that_is_damaged(tmp_path, corpus, capsys):
    (corpus / "failures/one").mkdir(parents=True)
    (corpus / "failures/one/status.json").write_text("{")
    assert "cannot be read" in refused(capsys, corpus, "--no-programs", "--out", tmp_path / "n")


def test_a_cluster_that_is_not_there(tmp_path, corpus, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    said = refused(capsys, corpus, "--no-programs", "--out", tmp_path / "n", "--ray", "auto")
    assert "pip install 'aoti-minimize[ray]'" in said


def test_two_nights_compared(tmp_path, capsys):
    for name, buckets in (("a", ["1", "2"]), ("b", ["2", "3"])):
        (tmp_path / name).mkdir()
        findings = [{"bucket": b, "kind": "crash", "calls": ["relu"]} for b in buckets]
        night = {
            "findings": findings,
            "replayed": [{"name": "r", "outcome": "fails" if name == "a" else "fixed"}],
        }
        (tmp_path / name / "night.json").write_text(json.dumps(night))
    assert main(["nightly", "diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    lines = capsys.readouterr().out
    assert "3 crash of relu" in lines and "r: fails → fixed" in lines
    assert "holds no night" in refused(capsys, "diff", tmp_path / "a", tmp_path / "nothing")
    assert "takes two nights" in refused(capsys, "diff", tmp_path / "a")
