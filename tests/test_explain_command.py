"""`aoti-minimize explain`: what it takes, what it prints, how it ends."""

import io
import json

import pytest
from generated_code import KERNELS, PROVENANCE, WRAPPER, package

from minimizer.cli import main

CHECK = (
    "index out of bounds: 0 <= tmp5 < ks1\nException raised from cpp_fused_index_mul_1 at /c/k.kernel.cpp:15"
)


def explained(capsys, *arguments):
    status = main(["explain", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_a_message(capsys):
    status, out, _ = explained(capsys, "RuntimeError: CUDA error: misaligned address")
    assert status == 0 and out.startswith("CUDA: misaligned address: misaligned address\n  means ")


def test_a_log_with_its_package(capsys, tmp_path):
    log = tmp_path / "my run.log"
    log.write_text(f"start\n{CHECK}\n")
    pt2 = package(tmp_path / "m.pt2", {"a.wrapper.cpp": WRAPPER, "a.kernel.cpp": KERNELS}, PROVENANCE)
    status, out, _ = explained(capsys, str(log), "--package", str(pt2))
    assert status == 0
    assert "s12           dim 0 of input 0 (arg3_1)" in out
    assert "your line     net.py:8: picked = waves[rows]" in out
    status, out, _ = explained(capsys, str(log))
    assert f"aoti-minimize explain '{log}' --package YOUR_PACKAGE.pt2" in out


def test_standard_input(capsys, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(b"\xff\xfe broken\nfree(): invalid pointer\n"), encoding="utf-8")
    monkeypatch.setattr("sys.stdin", stdin)
    status, out, _ = explained(capsys, "-")
    assert status == 0 and out.startswith("memory corruption")


def test_json(capsys):
    status, out, _ = explained(capsys, "--json", CHECK)
    told = json.loads(out)
    assert status == 0 and told["status"] == "explained"
    (one,) = told["explanations"]
    assert ["kernel", "cpp_fused_index_mul_1"] in one["where"] and one["line"] == 1 and one["next"]


def test_what_nobody_knows(capsys):
    status, out, err = explained(capsys, "the model is sad")
    assert status == 2 and not out and err.count("\n") == 1
    assert "Bring the whole output" in err
    status, out, _ = explained(capsys, "--json", "the model is sad")
    assert status == 2 and json.loads(out) == {
        "status": "unknown",
        "source": "the message",
        "explanations": [],
    }


def stored(folder, about=None, summary=None):
    if about is not None:
        (folder / "case").mkdir(parents=True)
        case = {"program": {"inputs": [{"name": "x"}, {"name": "rows"}]}, "about": about}
        (folder / "case" / "case.json").write_text(json.dumps(case))
    if summary is not None:
        (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def test_a_run_folder_whose_failure_has_a_message(capsys, tmp_path):
    failure = {"kind": "crash", "stage": "run", "message": "the process ended with SIGABRT", "detail": CHECK}
    pt2 = package(tmp_path / "m.pt2", {"a.wrapper.cpp": WRAPPER, "a.kernel.cpp": KERNELS}, PROVENANCE)
    folder = stored(tmp_path / "run", about={"failure": failure})
    status, out, _ = explained(capsys, str(folder), "--package", str(pt2), "--all")
    assert status == 0
    assert out.startswith("index out of bounds") and "input 1 (rows)" in out
    assert "crash: the process ended with SIGABRT" in out


def test_a_run_folder_whose_failure_is_a_wrong_value(capsys, tmp_path):
    summary = {"status": "failure", "kind": "wrong_value", "stage": "run", "region": {"predicate": "n >= 16"}}
    (tmp_path / "run").mkdir()
    status, out, _ = explained(capsys, str(stored(tmp_path / "run", summary=summary)))
    assert status == 0 and "fails at      n >= 16" in out and "other values than eager" in out


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"signature": "wrong_value · run · values"}, "wrong values: values"),
        ({"message": "free(): invalid pointer"}, "memory corruption"),
    ],
)
def test_cases_that_know_less(capsys, tmp_path, about, said):
    status, out, _ = explained(capsys, str(stored(tmp_path / "run", about=about)))
    assert status == 0 and out.startswith(said)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", "{", "is not JSON"),
        ("a.json", "[1]", "no stored case"),
        ("a.json", "{}", "holds no failure"),
        ("a.json", '{"status": "none"}', "nothing in it is known"),
        ("a.pt2", "x", "is a package; give the log"),
        ("a.log", "", "nothing in it is known"),
    ],
)
def test_files_that_tell_nothing(capsys, tmp_path, name, text, said):
    path = tmp_path / name
    path.write_text(text)
    status, out, err = explained(capsys, str(path))
    assert (status, out) == (2, "") and said in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["./gone.log"], "does not exist"),
        (["gone.txt"], "does not exist"),
        ([" "], "is empty"),
        ([], "required"),
        (["a", "b"], "unrecognized"),
        ([CHECK, "--package", "gone.pt2"], "is not a file"),
        (["x\0y" * 3000], "nothing in it is known"),
    ],
)
def test_arguments_that_are_wrong(capsys, arguments, said):
    status, out, err = explained(capsys, *arguments)
    assert (status, out) == (2, "") and said in err and err.count("\n") == 1
