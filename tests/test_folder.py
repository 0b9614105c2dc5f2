"""Run folders: one target's own, whole files only, and nothing of anybody else's is touched."""

import json
import subprocess
import sys

import pytest

from minimizer.case import Case, Settings, Stored, Value
from minimizer.folder import LOCK, MARKER, FolderError, RunFolder
from minimizer.program import Input, Node, Program, Ref, State, TensorMeta

META = TensorMeta("float32", (4,), (1,))
CASE = Case(
    Program(
        (Input("x", META),),
        (Node("y", "aten.add.Tensor", (Ref("x"), Ref("w"))),),
        Ref("y"),
        state=(State("w", "parameter", META, "state_w"),),
    ),
    (Value("float32", (4,), Stored("example_0")),),
    Settings(config=(("freezing", True),)),
)


@pytest.fixture
def target(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("")
    return path


@pytest.fixture
def out(tmp_path):
    return tmp_path / "deep" / "model-repro"


def files(path):
    return sorted(str(p.relative_to(path)) for p in path.rglob("*") if p.is_file())


def test_a_new_folder_holds_its_marker_only(out, target):
    folder = RunFolder(out, target, resume=False)
    assert files(out) == [MARKER, LOCK]
    assert folder.store.is_dir()
    assert json.loads((out / MARKER).read_text())["target"] == "model.py"


def test_an_empty_folder_will_do(out, target):
    out.mkdir(parents=True)
    RunFolder(out, target, resume=False)


def test_another_target_s_folder_is_not_touched(out, target, tmp_path):
    RunFolder(out, tmp_path / "other.py", resume=False).write("repro.py", "x")
    before = files(out)
    for resume in (False, True):
        with pytest.raises(FolderError, match=r"holds a run of other\.py; choose another folder with --out"):
            RunFolder(out, target, resume=resume)
    assert files(out) == before


def test_a_target_of_the_same_name_elsewhere_is_another(out, target, tmp_path):
    RunFolder(out, tmp_path / "elsewhere" / "model.py", resume=False)
    with pytest.raises(FolderError, match="holds a run of"):
        RunFolder(out, target, resume=False)


def test_a_folder_with_other_things_is_not_touched(out, target):
    out.mkdir(parents=True)
    (out / "thesis.txt").write_text("")
    for resume in (False, True):
        with pytest.raises(FolderError, match="is not empty and not a run folder"):
            RunFolder(out, target, resume=resume)
    assert files(out) == ["thesis.txt"]


def test_a_file_is_no_folder(target, tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(FolderError, match="is a file; choose another folder"):
        RunFolder(tmp_path / "out", target, resume=False)


def test_a_folder_that_cannot_be_made(target, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match=r"cannot be written: Not a directory; choose another with --out"):
        RunFolder(tmp_path / "file" / "out", target, resume=False)


@pytest.mark.parametrize("text", [b"{", b"[]", b'"x"', b"\xff\xfe\x00"])
def test_a_damaged_marker(out, target, text):
    out.mkdir(parents=True)
    (out / MARKER).write_bytes(text)
    with pytest.raises(FolderError, match="is damaged; choose another folder with --out"):
        RunFolder(out, target, resume=False)


def test_nothing_to_resume(out, target):
    with pytest.raises(FolderError, match="there is no run in .* to resume; run without --resume"):
        RunFolder(out, target, resume=True)
    assert not out.exists()


def test_a_new_run_clears_the_old_one_and_nothing_else(out, target):
    folder = RunFolder(out, target, resume=False)
    ours = ["repro.py", "summary.json", "repro_inputs.pt", "repro_files/repro_ops.py", "journal.jsonl"]
    ours += ["case/case.json", "also/0/case.json", "report.md"]
    for name in [*ours, "notes.txt"]:
        folder.write(name, "old")
    RunFolder(out, target, resume=False)
    assert files(out) == [MARKER, LOCK, "notes.txt"]


def test_resuming_keeps_everything(out, target):
    folder = RunFolder(out, target, resume=False)
    folder.write("repro.py", "old")
    before = files(out)
    RunFolder(out, target, resume=True)
    assert files(out) == before


def test_a_file_is_written_whole_or_not_at_all(out, target):
    folder = RunFolder(out, target, resume=False)
    folder.write("sub/summary.json", "old ü")
    assert (out / "sub" / "summary.json").read_text(encoding="utf-8") == "old ü"
    with pytest.raises(UnicodeEncodeError):
        folder.write("sub/summary.json", "half \ud800")
    assert (out / "sub" / "summary.json").read_text(encoding="utf-8") == "old ü"


def test_a_case_comes_back(out, target):
    folder = RunFolder(out, target, resume=False)
    assert folder.load_case() is None
    folder.save_case(CASE, about={"tried": 3})
    folder.save_case(CASE, "also/0")
    assert RunFolder(out, target, resume=True).load_case() == (CASE, {"tried": 3})
    assert folder.load_case("also/0") == (CASE, {})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"program": 1, "values": [], "settings": {}}', "null"])
def test_a_damaged_case(out, target, text):
    folder = RunFolder(out, target, resume=False)
    folder.write("case/case.json", text)
    with pytest.raises(FolderError, match="cannot be read: .*; run again without --resume"):
        folder.load_case()


def test_two_runs_do_not_share_a_folder(tmp_path):
    model = tmp_path / "model.py"
    code = (
        "import sys, pathlib; from minimizer.folder import RunFolder; "
        "folder = RunFolder(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), resume=False); "
        "print('mine', flush=True); sys.stdin.read()"
    )
    first = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "out"), str(model)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first.stdout.readline() == "mine\n"
    with pytest.raises(
        FolderError, match=rf"is in use by another run \(process {first.pid}\); wait for it or"
    ):
        RunFolder(tmp_path / "out", model, resume=False)
    assert (tmp_path / "out" / MARKER).exists()
    first.kill()
    first.communicate()
    RunFolder(tmp_path / "out", model, resume=True)
