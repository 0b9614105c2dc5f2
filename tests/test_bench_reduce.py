"""The reduction benchmark: what it runs and counts, when it ends a side. The sides are small scripts here."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
import bench_reduce as bench

BURN = """
import subprocess, sys, time
def burn(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
"""


def script(tmp_path, text):
    path = tmp_path / "side.py"
    path.write_text(BURN + text)
    return [sys.executable, str(path)]


def test_cases_are_chosen_by_words():
    everything = [task.name for task in bench.tasks([])]
    assert len(everything) == 12
    assert [t.name for t in bench.tasks(["mlp"])] == [
        "mlp_compile_error",
        "mlp_runtime_error",
        "mlp_accuracy",
    ]
    (one,) = bench.tasks(["dag400", "accuracy"])
    assert (one.kind, one.config) == ("accuracy", ((bench.BUG, "accuracy"),))
    assert bench.tasks(["nothing"]) == []


def test_a_folder_brings_its_own_files(tmp_path):
    for name in ("net_accuracy", "net_runtime_error"):
        (tmp_path / f"{name}.py").write_text("")
    found = bench.tasks([str(tmp_path)])
    assert [(t.name, t.kind, t.config) for t in found] == [
        ("net_accuracy", "accuracy", ()),
        ("net_runtime_error", "error", ()),
    ]
    assert len(bench.tasks([str(tmp_path), "runtime"])) == 1


def test_the_cpu_of_children_counts_too(tmp_path):
    command = script(tmp_path, "burn(0.3)\nif len(sys.argv) < 2: subprocess.run([*sys.orig_argv, 'child'])")
    measured = bench.measure(command, tmp_path, cap=60.0)
    assert not measured.capped
    assert 0.55 < measured.cpu < 1.5


def test_what_takes_more_than_the_cap_is_ended_children_included(tmp_path):
    again = "subprocess.run([*sys.orig_argv, 'child'], start_new_session=True)"
    text = f"if len(sys.argv) > 1: burn(600)\nprint('begun', flush=True)\n{again}"
    measured = bench.measure(script(tmp_path, text), tmp_path, cap=0.5)
    assert measured.capped
    assert 0.5 < measured.cpu < 5.0
    assert measured.output == "begun\n"


def test_oracle_calls_are_counted_and_the_least_that_fails_is_the_result():
    said = "noise\nORACLE calls=9 fails=1\nORACLE calls=3 fails=0\nORACLE calls=4 fails=1\nORACLE calls=2 fai"
    side = bench.theirs(bench.Measured(12.0, True, said))
    assert (side.calls, side.oracle, side.cpu, side.capped) == (4, 3, 12.0, True)
    assert bench.theirs(bench.Measured(1.0, False, "NOTHING DUMPED")).calls is None


def test_our_side_is_read_from_the_summary():
    measured = bench.Measured(30.0, False, "")
    found = {"status": "failure", "nodes_after": 1, "candidates": 9, "dynamic_dims_after": 1}
    steps = {"open": 4.0, "reduce": 8.0, "kernel": 6.0, "verify": 9.0}
    side = bench.ours(measured, {**found, "cpu_seconds_by_step": steps})
    assert (side.calls, side.oracle, side.dynamic, side.reduced) == (1, 9, 1, 15.0)
    assert bench.ours(measured, found).reduced == 30.0
    assert bench.ours(measured, {"status": "none", "nodes_after": 1}).calls is None
    assert bench.ours(measured, {}).calls is None


def test_a_capped_side_gives_a_bound():
    mine, other = bench.Side(1, 9, 30.0, False, 1, 15.0), bench.Side(96, 20, 480.0, True)
    line = bench.row("convnet_accuracy", mine, other)
    assert line.split()[1:] == [
        "1",
        "(1",
        "dyn)",
        "9",
        "30",
        "15",
        "96",
        "20",
        "480*",
        ">",
        "16.0",
        ">",
        "32.0",
    ]
    assert bench.row("convnet_accuracy", mine, None).split()[-2:] == ["30", "15"]


@pytest.mark.parametrize(("calls", "status"), [(1, 0), (5, 1), (None, 1)])
def test_the_status_tells_whether_the_result_is_as_small(monkeypatch, capsys, calls, status):
    monkeypatch.setattr(bench, "_run_ours", lambda task, cap: bench.Side(calls, 9, 30.0, False))
    monkeypatch.setattr(bench, "_run_theirs", lambda task, cap: bench.Side(4, 9, 300.0, False))
    given = SimpleNamespace(cases=["mlp", "accuracy"], cap=1.0, ours_only=False)
    assert bench.main(given) == status
    assert "mlp_accuracy" in capsys.readouterr().out
    assert bench.main(SimpleNamespace(cases=["nothing"], cap=1.0, ours_only=True)) == 2
