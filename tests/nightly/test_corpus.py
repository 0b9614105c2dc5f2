"""Recorded failures as files, and how a replay of them is read."""

import json
from dataclasses import replace
from datetime import date

import pytest
from runs import relu_case, write_run

from minimizer import corpus
from minimizer.case import Settings, Stored, Value
from minimizer.cli import main
from minimizer.oracle.verdict import Failure, Verdict

DAY = date(2026, 12, 1)


def recorded(tmp_path, operator="relu", **options):
    run = tmp_path / f"run-{operator}"
    write_run(run, relu_case(operator))
    return corpus.add(tmp_path / "corpus", run, today=DAY, **options)


def test_a_recording_holds_what_it_takes_to_judge_it_again(tmp_path):
    recording = recorded(tmp_path, judgement="eager is right", issue="https://example.org/1")
    again = corpus.named(tmp_path / "corpus", recording.name)
    assert recording.name.startswith("wrong-value-relu-")
    assert again.case() == relu_case()
    assert (again.folder / "repro.py").exists()
    assert again.status["torch"] == {
        "2.13.0": {"outcome": "fails", "runs": 2, "failures": 2, "on": "2026-12-01"}
    }
    assert (again.status["calls"], again.status["nodes"]) == (["relu"], 1)
    assert again.status["judgement"] == "eager is right"


def test_what_the_case_and_the_scripts_need_is_recorded_too(tmp_path):
    run = tmp_path / "run"
    seen = Value("float32", (4,), Stored("seen"))
    case = replace(relu_case(), earlier=((seen,),), settings=Settings(modules=(str(tmp_path / "ops.py"),)))
    write_run(run, case)
    (run / "case/tensors").mkdir()
    for name in ("case/tensors/seen.pt", "case/tensors/other.pt", "repro_ops.py", "kernel_repro_inputs.pt"):
        (run / name).write_bytes(b"")
    folder = corpus.add(tmp_path / "corpus", run).folder
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == {
        "case/case.json",
        "case/tensors/seen.pt",
        "kernel_repro_inputs.pt",
        "repro.py",
        "repro_ops.py",
        "status.json",
    }
    assert str(tmp_path) not in (folder / "case/case.json").read_text()
    (file,) = corpus.named(tmp_path / "corpus", folder.name).case().settings.modules
    assert (folder / "repro_ops.py").samefile(file)


def test_the_same_bug_is_recorded_once(tmp_path):
    first = recorded(tmp_path)
    with pytest.raises(corpus.CorpusError, match=f"recorded already, as {first.name}"):
        corpus.add(tmp_path / "corpus", tmp_path / "run-relu")
    assert len(corpus.recordings(tmp_path / "corpus")) == 1


def test_what_is_not_proven_is_not_recorded(tmp_path):
    write_run(tmp_path / "flaky", relu_case(), verified=1)
    with pytest.raises(corpus.CorpusError, match="does not fail every time"):
        corpus.add(tmp_path / "corpus", tmp_path / "flaky")
    with pytest.raises(corpus.CorpusError, match="does not exist"):
        corpus.add(tmp_path / "corpus", tmp_path / "nothing")
    assert not (tmp_path / "corpus").exists()


def test_how_it_fares_on_another_version_is_added(tmp_path):
    recording = recorded(tmp_path)
    corpus.note_outcome(recording, {"torch": "2.14.0", "outcome": "fixed", "runs": 2, "failures": 0}, DAY)
    status = corpus.named(tmp_path / "corpus", recording.name).status
    assert {v: fared["outcome"] for v, fared in status["torch"].items()} == {
        "2.13.0": "fails",
        "2.14.0": "fixed",
    }
    assert not corpus.fixed_everywhere(corpus.named(tmp_path / "corpus", recording.name))


def test_pruning_keeps_one_of_each_bug(tmp_path):
    keep, other = recorded(tmp_path), recorded(tmp_path, "neg")
    copy = tmp_path / "corpus/failures/copy"
    copy.mkdir()
    (copy / "status.json").write_text(json.dumps({**keep.status, "nodes": 7}))
    surplus = corpus.surplus(corpus.recordings(tmp_path / "corpus"))
    assert [r.name for r in surplus] == ["copy"]
    assert main(["corpus", "prune", "--corpus", str(tmp_path / "corpus"), "--dry-run"]) == 0
    assert copy.exists()
    assert main(["corpus", "prune", "--corpus", str(tmp_path / "corpus")]) == 0
    names = {r.name for r in corpus.recordings(tmp_path / "corpus")}
    assert names == {keep.name, other.name}


WRONG = Verdict("fail", Failure("wrong_value", "run", "1 of 4 elements differ"))
CRASH = Verdict("fail", Failure("crash", "run", "the process ended with SIGSEGV"))
PASS = Verdict("pass")


@pytest.mark.parametrize(
    ("kind", "verdicts", "wanted"),
    [
        ("wrong_value", [WRONG, WRONG], "fails"),
        ("memory_error", [CRASH, CRASH], "fails"),
        ("wrong_value", [PASS, PASS], "fixed"),
        ("wrong_value", [CRASH, CRASH], "changed"),
        ("wrong_value", [WRONG, PASS, WRONG], "flaky"),
        ("wrong_value", [Verdict("invalid", reason="cannot be exported")] * 2, "unusable"),
    ],
)
def test_outcomes(kind, verdicts, wanted):
    told = corpus.outcome(kind, "run", verdicts)
    assert told["outcome"] == wanted
    assert told["runs"] == len(verdicts)


def test_the_command(tmp_path, capsys):
    recording = recorded(tmp_path)
    where = ["--corpus", str(tmp_path / "corpus")]
    assert main(["corpus", "list", *where]) == 0
    assert f"{recording.name}" in capsys.readouterr().out
    assert main(["corpus", "show", recording.name, *where]) == 0
    shown = capsys.readouterr().out
    assert recording.bucket in shown and "<script>" in shown
    assert main(["corpus", "show", "nothing", *where]) == 2
    assert "no recorded failure is called 'nothing'" in capsys.readouterr().err
    assert main(["corpus", "add", *where]) == 2
    assert main(["corpus", "list", "extra", *where]) == 2
