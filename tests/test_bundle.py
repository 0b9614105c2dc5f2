"""One archive: complete, the same each time, nothing private in it, proven by running its repro."""

import json
import zipfile
from dataclasses import replace

import pytest

from minimizer.bundle import make_bundle
from minimizer.case import Case, Settings, Stored, Value, case_to_json
from minimizer.cli import main
from minimizer.handover.record import RunRecord
from minimizer.handover.record_file import record_text
from minimizer.program import Input, Node, Program, Ref, State, TensorMeta
from minimizer.stored import read_case

META = TensorMeta("float32", (3,), (1,))
PROGRAM = Program(
    (Input("x", META),),
    (Node("y", "mine.op.default", (Ref("x"), Ref("w")), meta=META),),
    Ref("y"),
    state=(State("w", "parameter", META, "state_w"),),
)
REPRO = """\
import os
from pathlib import Path
cache = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"], "ab")
cache.mkdir(exist_ok=True)
source = 'void k() {}\\n// /home/ann/model.py\\n\\n// Compile cmd\\n// g++ -I/home/ann/include'
(cache / "c1.kernel.cpp").write_text(source)
trace = Path(os.environ["TORCH_TRACE"], "dedicated_log_torch_trace_x.log")
trace.write_text('{"file": "/home/ann/model.py"}')
print("eager 1")
raise SystemExit(STATUS)
"""


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "model-repro"
    (folder / "case" / "reduced").mkdir(parents=True)
    (folder / "case" / "tensors").mkdir()
    for name in ("state_w", "seen_x", "unused"):
        (folder / "case" / "tensors" / f"{name}.pt").write_bytes(name.encode())
    values = (Value("float32", (3,), Stored("seen_x")),)
    case = Case(PROGRAM, values, Settings(modules=("/home/ann/ops.py",)))
    (folder / "case" / "reduced" / "case.json").write_text(json.dumps(case_to_json(case)))
    (folder / "record.json").write_text(record_text(RunRecord(kind="wrong_value", title="y is wrong")))
    (folder / "repro.py").write_text(REPRO.replace("STATUS", "1"))
    (folder / "repro_ops.py").write_text("")
    return folder


def contents(archive):
    with zipfile.ZipFile(archive) as made:
        return {name.partition("/")[2]: made.read(name).decode() for name in made.namelist()}


def test_all_that_is_needed_and_nothing_else(run, tmp_path):
    proof = make_bundle(run, tmp_path / "model.zip")
    assert (proof.runs, proof.failures) == (1, 1)
    assert set(contents(tmp_path / "model.zip")) == {
        "README.txt",
        "repro.py",
        "repro_ops.py",
        "report.md",
        "report.html",
        "summary.json",
        "record.json",
        "case/reduced/case.json",
        "case/tensors/seen_x.pt",
        "case/tensors/state_w.pt",
        "generated/c1.kernel.cpp",
        "trace/trace.log",
    }


def test_nothing_private_is_in_it(run, tmp_path):
    make_bundle(run, tmp_path / "model.zip")
    for name, text in contents(tmp_path / "model.zip").items():
        assert "ann" not in text or name == "repro.py", name


def test_the_same_run_gives_the_same_archive(run, tmp_path):
    for name in ("one.zip", "other.zip"):
        make_bundle(run, tmp_path / name / "model.zip")
    assert (tmp_path / "one.zip/model.zip").read_bytes() == (tmp_path / "other.zip/model.zip").read_bytes()


def test_the_case_in_it_finds_its_operators(run, tmp_path):
    make_bundle(run, tmp_path / "model.zip")
    with zipfile.ZipFile(tmp_path / "model.zip") as made:
        made.extractall(tmp_path / "theirs")
    stored = read_case(tmp_path / "theirs" / "model")
    (file,) = stored.case.settings.modules
    assert (tmp_path / "theirs" / "model" / "repro_ops.py").samefile(file)
    assert stored.store == tmp_path / "theirs" / "model" / "case" / "tensors"
    assert replace(stored.case, settings=Settings()).program == PROGRAM


def test_a_repro_that_does_not_fail_is_said(run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (run / "repro.py").write_text(REPRO.replace("STATUS", "0"))
    assert main(["bundle", "model-repro"]) == 1
    assert "did not fail in 3 runs" in capsys.readouterr().out
    (run / "repro.py").write_text(REPRO.replace("STATUS", "1"))
    assert main(["bundle", "model-repro", "--quiet"]) == 0
    assert "model-repro.zip" in capsys.readouterr().out


def test_a_run_without_a_failure(run, tmp_path, monkeypatch, capsys):
    (run / "repro.py").unlink()
    assert main(["bundle", str(run)]) == 2
    assert "has no repro.py" in capsys.readouterr().err
