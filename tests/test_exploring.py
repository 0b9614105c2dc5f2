"""A failure that the program as written does not show, found under another layout and carried through."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.whole_run

MODEL = '''
"""Quantises what it is given, after a turn that the layout does not survive."""
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.quantize_per_tensor(torch.neg(x), 0.5, 0, torch.quint8).dequantize()


def get_model():
    return Model().eval()


def get_example_inputs():
    return (torch.arange(12.0).reshape(3, 4),)
'''


def test_a_failure_of_another_layout_is_found_reduced_and_proven(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "minimizer.cli", str(tmp_path / "model.py"), "--out", str(out)]
    done = subprocess.run(
        [*command, "--most-inputs", "40"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 1, done.stdout + done.stderr
    found = json.loads((out / "summary.json").read_text())
    assert found["variants"][-1]["variant"] == "x transposed"
    assert found["failing_input"][0]["stride"] == [1, 3]
    assert found["repro_verified"]["failures"] == found["repro_verified"]["runs"]
    assert ".t()" in (out / "repro.py").read_text()
