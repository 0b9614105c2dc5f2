"""The repro of last resort: the person's model, exported with the layout and dtype that fail."""

import importlib.util
import sys
from types import SimpleNamespace

import pytest
import torch

from minimizer.case import Case, Settings, Value
from minimizer.handover.whole import whole_source
from minimizer.oracle.verdict import Failure
from minimizer.program import Input, Program, Ref, TensorMeta
from minimizer.variant import AS_WRITTEN, Variant
from strategies import Fill
from strategies.layouts import telling_layouts

MODEL = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x, *, scale):
        return self.linear(x) * scale

def get_model():
    return Model()

def get_example_inputs():
    return (torch.ones(3, 4),)

def get_example_kwargs():
    return {"scale": 2.0}
"""
WRONG = Failure("wrong_value", "run", flavour="values")
PROGRAM = Program((Input("x", TensorMeta("float32", (3, 4), (4, 1))),), (), Ref("x"))
TRANSPOSED = Variant((telling_layouts((3, 4))[0],), (("float32", "float64"),))


def case(path="aoti"):
    return Case(PROGRAM, (Value("float32", (3, 4), Fill("zeros")),), Settings(path))


@pytest.fixture
def script(tmp_path, monkeypatch):
    (tmp_path / "repro_files").mkdir()
    (tmp_path / "repro_files" / "repro_target.py").write_text(MODEL)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "repro_target", raising=False)

    def write(variant, tensors, path="aoti"):
        text = whole_source(
            WRONG, case(path), "Wrong", {}, SimpleNamespace(model="", inputs=""), 45, variant=variant
        )
        (tmp_path / "repro.py").write_text(text)
        torch.save(tensors, tmp_path / "repro_inputs.pt")
        spec = importlib.util.spec_from_file_location("whole_repro", tmp_path / "repro.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        monkeypatch.delitem(sys.modules, "repro_target", raising=False)
        return module

    return write


def test_the_model_as_written_is_exported_on_its_own_examples(script):
    module = script(AS_WRITTEN, {"call 0 0": torch.zeros(3, 4)})
    example, (failing,) = module.failing_inputs()
    assert torch.equal(example[0][0], torch.ones(3, 4))
    assert torch.equal(failing[0][0], torch.zeros(3, 4))
    assert example[1] == failing[1] == {"scale": 2.0}


def test_of_a_variant_the_examples_are_stored_too(script):
    laid_out = torch.zeros(4, 3, dtype=torch.float64).t()
    module = script(TRANSPOSED, {"call 0 0": laid_out, "example 0": laid_out})
    example, calls = module.failing_inputs()
    for given in (example, *calls):
        assert given[0][0].stride() == (1, 3)
        assert given[0][0].dtype == torch.float64


@pytest.mark.parametrize("variant", [AS_WRITTEN, TRANSPOSED], ids=["as written", "variant"])
def test_it_is_silent_where_nothing_is_compiled(script, variant, monkeypatch, capsys):
    monkeypatch.setenv("TORCH_COMPILE_BACKEND", "eager")
    dtype = torch.float64 if variant.dtypes else torch.float32
    inputs = torch.zeros(3, 4, dtype=dtype)
    assert script(variant, {"call 0 0": inputs, "example 0": inputs}).test_fn() is True
    assert str(dtype)[6:] in capsys.readouterr().out or dtype == torch.float32


def test_the_path_that_fails_is_the_default(script):
    assert 'get("TORCH_COMPILE_BACKEND", "inductor")' in whole_source(
        WRONG, case("inductor"), "Wrong", {}, SimpleNamespace(model="", inputs=""), 45
    )
