"""The whole tool, as a person starts it, on models of the corpus."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole_run

COMMAND = [sys.executable, "-m", "minimizer.cli"]

CRASHES = '''
"""Rows of a table by an index that eager refuses and the compiled program does not survive."""
import torch


class Model(torch.nn.Module):
    def forward(self, table, index):
        return torch.cos(table)[index] + 1.0


def get_model():
    return Model()


def get_example_inputs():
    return torch.randn(5, 64, 400), torch.tensor([[1, 3]])


def too_short():
    return (torch.randn(5, 64, 400),)


def on_meta():
    return torch.randn(5, 64, 400, device="meta"), torch.tensor([[1, 3]])


def negated():
    return torch._neg_view(torch.randn(5, 64, 400)), torch.tensor([[1, 3]])


def too_far():
    return torch.randn(5, 64, 400), torch.tensor([[1, 5]])
'''


def run(*args, cwd=None):
    done = subprocess.run([*COMMAND, *map(str, args)], capture_output=True, text=True, check=False, cwd=cwd)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def summary(out: Path) -> dict:
    return json.loads((out / "summary.json").read_text())


def test_a_wrong_value_is_found_reduced_and_proven(repo, tmp_path):
    out = tmp_path / "out"
    done = run(repo / "corpus/models/byte_contrast.py", "--out", out)
    assert done.returncode == 1
    found = summary(out)
    assert (found["status"], found["kind"], found["stage"]) == ("failure", "wrong_value", "run")
    assert found["nodes_after"] == 1
    assert found["minimal"] is True
    assert found["dynamic_dims_after"] >= 1
    assert found["determinism"] == {"runs": 5, "failures": 5, "rung": "as it is"}
    assert found["repro_verified"] == {"runs": 2, "failures": 2}
    # The bug is in vector code: it begins where one vector fits, of 8 or 16 elements.
    assert found["region"]["predicate"].endswith((">= 8", "> 7", ">= 16", "> 15"))
    assert found["kernel"]["nodes"] == ["amin"]
    assert found["kernel"]["repro_verified"] == {"runs": 3, "failures": 3}
    assert "return torch.amin(" in (out / "kernel_repro.py").read_text()
    text = (out / "repro.py").read_text()
    assert "minimizer" not in text
    assert str(repo) not in text
    assert (out / "report.md").read_text().count("repro") > 0


def test_a_healthy_model_gives_nothing(repo, tmp_path):
    out = tmp_path / "out"
    done = run(repo / "corpus/models/prefix_sums.py", "--out", out, "--most-inputs", 150)
    assert done.returncode == 0, done.stdout
    found = summary(out)
    assert found["status"] == "none"
    assert 150 <= found["inputs_tried"] <= 150 * (1 + len(found["variants"]))  # for each artifact
    assert not (out / "repro.py").exists()


@pytest.fixture
def crashing(tmp_path):
    path = tmp_path / "crashing.py"
    path.write_text(CRASHES)
    return path


def test_a_crash_is_survived_and_the_repro_exits_with_1(crashing, tmp_path):
    out = tmp_path / "out"
    done = run(crashing, "--out", out)
    assert done.returncode == 1, done.stdout
    found = summary(out)
    assert found["kind"] == "crash"
    assert found["nodes_after"] <= 3
    assert found["repro_verified"]["failures"] == found["repro_verified"]["runs"]


@pytest.mark.parametrize("given", ["too_short", "on_meta", "negated"])
def test_misuse_is_told_apart(crashing, tmp_path, given):
    done = run(crashing, "--out", tmp_path / "out", "--check-inputs", given)
    assert done.returncode == 3
    assert summary(tmp_path / "out")["status"] == "misuse"
    assert "misuse" in done.stdout


def test_inputs_in_contract_that_fail_are_the_failure(crashing, tmp_path):
    done = run(crashing, "--out", tmp_path / "out", "--check-inputs", "too_far")
    assert done.returncode == 1, done.stdout
    found = summary(tmp_path / "out")
    assert (found["kind"], found["inputs_tried"]) == ("crash", 1)
    assert found["repro_verified"]["failures"] == found["repro_verified"]["runs"]


def test_an_interrupted_run_keeps_the_best_and_goes_on(repo, tmp_path):
    out = tmp_path / "out"
    model = repo / "corpus/models/byte_contrast.py"
    process = subprocess.Popen(
        [*COMMAND, str(model), "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    journal = out / "journal.jsonl"
    while process.poll() is None and not (journal.exists() and journal.read_text().count("\n") >= 3):
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate()
    assert process.returncode == 130, output
    assert "--resume" in output
    assert summary(out)["status"] == "interrupted"
    assert (out / "repro.py").exists()
    before = [json.loads(line)["key"] for line in journal.read_text().splitlines()]
    assert run(model, "--out", out, "--resume").returncode == 1
    after = [json.loads(line)["key"] for line in journal.read_text().splitlines()]
    assert after[: len(before)] == before
    assert len(after) == len(set(after))
    assert summary(out)["nodes_after"] == 1


def test_nothing_is_left_behind(crashing, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch)}
    subprocess.run(
        [*COMMAND, str(crashing), "--out", str(tmp_path / "out"), "--check-inputs", "too_short"],
        env=environment,
        check=False,
        capture_output=True,
    )
    left = [p.name for p in scratch.iterdir() if not p.name.startswith("torchinductor_")]
    assert left == []
