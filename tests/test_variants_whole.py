"""Failures that show under one option or dtype only, followed by the whole tool."""

import json

import pytest

from minimizer.cli import main
from strategies import settings
from strategies.settings import Option

BUG = "cpp.inject_relu_bug_TESTING_ONLY"

TOWER = """
import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 8)

    def forward(self, x):
        return torch.relu(self.first(x)).tanh().sum(1)


def get_model():
    torch.manual_seed(0)
    return Model().eval()


def get_example_inputs():
    return (torch.randn(4, 6, generator=torch.Generator().manual_seed(1)),)


def get_dynamic_shapes():
    return {"x": {0: Dim("batch", min=2, max=64)}}
"""

LOWS = """
import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def forward(self, rows):
        return torch.amin(rows, [1]) ^ 1


def get_model():
    return Model().eval()


def get_example_inputs():
    return (torch.arange(-20, 20, dtype=torch.int32).reshape(4, 10),)


def get_dynamic_shapes():
    return {"rows": {1: Dim("width", min=2, max=128)}}
"""

pytestmark = pytest.mark.whole_run


def followed(tmp_path, model, *more):
    path, out = tmp_path / "model.py", tmp_path / "out"
    path.write_text(model)
    status = main([*more, str(path), "--layouts", "none", "--most-inputs", "60", "--out", str(out)])
    return status, json.loads((out / "summary.json").read_text()), out


def test_an_option_under_which_it_fails_is_part_of_the_repro(tmp_path, monkeypatch):
    option = Option(BUG, ("accuracy",), "ReLU is compiled wrongly", common=True)
    monkeypatch.setattr(settings, "OPTIONS", (option,))
    status, found, out = followed(tmp_path, TOWER, "--settings", "common")
    assert status == 1
    assert [row["variant"] for row in found["variants"]] == [f"{BUG}=accuracy"]
    assert (found["kind"], found["nodes_after"]) == ("wrong_value", 1)
    assert found["repro_verified"]["failures"] == found["repro_verified"]["runs"]
    assert BUG in (out / "repro.py").read_text()


def test_a_dtype_in_which_it_fails_is_that_of_the_case(tmp_path):
    status, found, out = followed(tmp_path, LOWS, "fuzz", "--dtypes", "uint8")
    assert status == 1
    assert [row["variant"] for row in found["variants"]] == ["int32 as uint8"]
    case = json.loads((out / "case" / "case.json").read_text())
    assert [value["dtype"] for value in case["values"]] == ["uint8"]
