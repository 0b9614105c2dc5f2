"""Since when: order of trying, judgement under another version, environments, interpreters."""

import json
import sys

import pytest

from minimizer import versions
from minimizer.cli import main
from minimizer.handover.record import RunRecord
from minimizer.handover.record_file import record_text
from minimizer.options import Unusable
from minimizer.versions import CANNOT, FAILS, OTHERWISE, PASSES, Tried, in_words, judge_output, search


@pytest.mark.parametrize("change", range(11))
@pytest.mark.parametrize("first", [True, False])
def test_halving_finds_the_change_in_few_steps(change, first):
    asked = {}

    def fails(k):
        asked[k] = first if k < change else not first
        return asked[k]

    search(10, fails)
    if 0 < change < 10:
        assert {change - 1, change} <= set(asked)
    assert len(asked) <= 2 + 4


def test_versions_that_cannot_be_tried_are_stepped_over():
    answers = [None, True, True, None, None, False, False, None]
    asked = []
    search(len(answers), lambda k: asked.append(k) or answers[k])
    assert {2, 5} <= set(asked)


def test_few_versions_are_all_tried():
    asked = []
    search(3, lambda k: asked.append(k) or True)
    assert asked == [0, 1, 2]
    search(6, lambda k: asked.append(k) or True, everything=True)
    assert asked[3:] == [0, 1, 2, 3, 4, 5]


def test_nothing_can_be_tried():
    search(5, lambda k: None)


ERROR = "eager    1\ncompiled RuntimeError('expected m1 and m2 to have the same dtype, but got: int8')"


@pytest.mark.parametrize(
    ("status", "output", "kind", "known", "verdict"),
    [
        (0, "eager 1\ncompiled 1", "wrong_value", "", PASSES),
        (1, "eager 1\ncompiled 2", "wrong_value", "eager 1\ncompiled 9", FAILS),
        (1, "exit status -6", "crash", "exit status -11", FAILS),
        (1, ERROR, "compile_error", ERROR, FAILS),
        (1, ERROR.replace("RuntimeError", "NotImplementedError"), "compile_error", ERROR, FAILS),
        (1, ERROR.replace("expected m1", "wanted m1"), "compile_error", ERROR, FAILS),
        (1, "compiled AttributeError('no such function')", "compile_error", ERROR, OTHERWISE),
        (1, "compiled RuntimeError('C++ compile error')", "compile_error", ERROR, FAILS),
        (1, "Traceback (most recent call last):\nAttributeError: aoti_load_package", "crash", "", CANNOT),
        (1, f"Traceback (most recent call last):\n{ERROR}", "compile_error", ERROR, FAILS),
        (2, "no such file", "crash", "", CANNOT),
        (-9, "", "crash", "", CANNOT),
        (None, "", "hang", "", CANNOT),
    ],
)
def test_what_a_run_elsewhere_says(status, output, kind, known, verdict):
    assert judge_output(status, output, kind, known) == verdict


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ([PASSES, FAILS], "began after 2.0, at the latest in 2.1"),
        ([FAILS, FAILS, PASSES], "fixed after 2.1, at the latest in 2.2"),
        ([FAILS, CANNOT, PASSES], "fixed after 2.0, at the latest in 2.2"),
        (
            [PASSES, FAILS, PASSES],
            "began after 2.0, at the latest in 2.1; fixed after 2.1, at the latest in 2.2",
        ),
        ([FAILS, FAILS], "fails in every version tried, 2.0 to 2.1"),
        ([PASSES], "passes in 2.0"),
        ([CANNOT, OTHERWISE], "no version could be judged"),
        ([], "no version could be judged"),
    ],
)
def test_the_result_in_words(verdicts, said):
    assert in_words([Tried(f"2.{k}", verdict) for k, verdict in enumerate(verdicts)]) == said


def test_versions_are_ordered_as_versions():
    assert versions.in_order(["2.13.0", "2.9.1", "2.13.0", "2.10.0"]) == ["2.9.1", "2.10.0", "2.13.0"]
    with pytest.raises(Unusable, match="give versions such as"):
        versions.in_order(["newest"])


@pytest.fixture
def run(tmp_path, monkeypatch):
    folder = tmp_path / "model-repro"
    folder.mkdir()
    record = RunRecord(
        kind="wrong_value", output="eager 1\ncompiled 2", determinism={"runs": 5, "failures": 5}
    )
    (folder / "record.json").write_text(record_text(record))
    (folder / "repro.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    return folder


def interpreter(path, version, status, said=""):
    """A program that says a version of torch, and ends a script as it is told."""
    path.write_text(
        f'#!/bin/sh\ncase "$1" in -c) echo "torch {version}";; *) echo "{said}"; exit {status};; esac\n'
    )
    path.chmod(0o755)
    return str(path)


def test_interpreters_at_hand(run, tmp_path, capsys):
    old = interpreter(tmp_path / "old", "2.9.1+cpu", 0, "eager 1")
    new = interpreter(tmp_path / "new", "2.13.0+cpu", 1, "eager 1")
    assert main(["bisect", "model-repro", "--python", new, old, "--json"]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert answer["result"] == "began after 2.9.1+cpu, at the latest in 2.13.0+cpu"
    assert [t["verdict"] for t in answer["tried"]] == ["passes", "fails"]
    assert "2.13.0+cpu" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "name versions with --torch"),
        (["--torch", "new"], "Invalid version"),
        (["--python", "nowhere"], "--python nowhere is not an interpreter"),
        (["--python", "model-repro"], "--python model-repro is not an interpreter"),
    ],
)
def test_wrong_arguments_are_one_line(run, capsys, arguments, says):
    assert main(["bisect", "model-repro", *arguments]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_an_interpreter_without_torch(run, tmp_path, capsys):
    path = tmp_path / "bare"
    path.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'torch'\"; exit 1\n")
    path.chmod(0o755)
    assert main(["bisect", "model-repro", "--python", str(path)]) == 2
    assert "cannot import torch: ModuleNotFoundError" in capsys.readouterr().err


def test_a_flaky_failure_gets_more_runs(run, tmp_path):
    path = tmp_path / "flaky"
    path.write_text(f"#!/bin/sh\necho x >> {tmp_path}/count; [ $(wc -l < {tmp_path}/count) -lt 3 ]\n")
    path.chmod(0o755)
    assert versions.try_version(run, path, "2.9.1", "wrong_value", "", 5).verdict == FAILS
    assert (tmp_path / "count").read_text().count("x") == 3


@pytest.fixture
def pip(tmp_path, monkeypatch):
    """Stands in for ``python -m venv`` and pip: notes what is asked, installs nothing."""
    asked = []

    def run_interpreter(arguments, folder, timeout, environment=None, *, python=sys.executable, **_):
        asked.append(arguments)
        if "venv" in arguments:
            (tmp_path / "cache").mkdir(exist_ok=True)
        return (1, "ERROR: No matching distribution") if "torch==9.9" in arguments else (0, "")

    monkeypatch.setattr(versions, "run_interpreter", run_interpreter)
    return asked


def test_an_environment_is_made_once(pip, tmp_path):
    told = []
    options = ("--index-url", "https://example.org/simple")
    for _ in range(2):
        python = versions.environment_for("2.9.1", tmp_path / "cache", options, told.append)
    assert python.parent.parent.parent == tmp_path / "cache"
    assert len(pip) == 2
    assert pip[1][-3:] == ["--index-url", "https://example.org/simple", "torch==2.9.1"]
    assert len(told) == 1


def test_what_cannot_be_installed_is_said_and_not_kept(pip, tmp_path):
    with pytest.raises(Unusable, match=r"torch 9\.9 cannot be installed: ERROR: No matching distribution"):
        versions.environment_for("9.9", tmp_path / "cache")
    assert not any((tmp_path / "cache").iterdir())
