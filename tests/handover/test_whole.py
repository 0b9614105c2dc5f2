"""The repro of last resort: the person's model, exported with the layout and dtype that fail."""

import importlib.util
import itertools
import sys
import threading
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
STRIDE = Failure("wrong_metadata", "run", flavour="stride")
PROGRAM = Program((Input("x", TensorMeta("float32", (3, 4), (4, 1))),), (), Ref("x"))
TRANSPOSED = Variant((telling_layouts((3, 4))[0],), (("float32", "float64"),))


def case(path="aoti", manner=""):
    return Case(PROGRAM, (Value("float32", (3, 4), Fill("zeros")),), Settings(path, manner=manner))


@pytest.fixture
def script(tmp_path, monkeypatch):
    (tmp_path / "repro_files").mkdir()
    (tmp_path / "repro_files" / "repro_target.py").write_text(MODEL)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "repro_target", raising=False)

    def write(variant, tensors, path="aoti", manner="", failure=WRONG):
        names = SimpleNamespace(model="", inputs="")
        text = whole_source(failure, case(path, manner), "Wrong", {}, names, 45, variant=variant)
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


def test_what_is_wrong_now_and_then_is_called_again_and_again(script):
    module = script(AS_WRITTEN, {"call 0 0": torch.zeros(3, 4)}, manner="again")
    turn = itertools.count(1)
    module.compile_model = lambda model, example: lambda x, scale: model(x, scale=scale) + (next(turn) == 7)
    assert module.test_fn() is False
    assert next(turn) == 8, "the first wrong answer ends it"
    module.compile_model = lambda model, example: model
    assert module.test_fn() is True


@pytest.mark.parametrize("manner", ["thread", "threads"])
def test_what_is_wrong_from_other_threads_is_called_from_there(script, manner):
    module = script(AS_WRITTEN, {"call 0 0": torch.zeros(3, 4)}, manner=manner)
    main = threading.main_thread()

    def compiled(model, example):
        return lambda x, scale: model(x, scale=scale) + (threading.current_thread() is not main)

    module.compile_model = compiled
    assert module.test_fn() is False
    module.compile_model = lambda model, example: model
    assert module.test_fn() is True


def test_what_a_second_load_answers_otherwise_is_loaded_twice(script, monkeypatch):
    loads = []

    def load(path):
        loads.append(path)
        return lambda x, scale: torch.full((3, 4), float(len(loads)))

    monkeypatch.setattr(torch._inductor, "aoti_load_package", load)
    monkeypatch.setattr(torch._inductor, "aoti_compile_and_package", lambda *args, **kwargs: "path")
    module = script(AS_WRITTEN, {"call 0 0": torch.zeros(3, 4)}, manner="reload")
    assert module.test_fn() is False
    assert loads == ["path", "path"]


def test_memory_that_only_the_compiled_model_shares(script):
    shares = Failure("wrong_aliasing", "run", flavour="output shares memory with input")
    module = script(AS_WRITTEN, {"call 0 0": torch.zeros(3, 4)}, failure=shares)
    module.compile_model = lambda model, example: lambda x, scale: x
    assert module.test_fn() is False
    module.compile_model = lambda model, example: model
    assert module.test_fn() is True


def test_strides_are_looked_at_where_they_are_what_is_wrong(script):
    module = script(AS_WRITTEN, {"call 0 0": torch.zeros(3, 4)}, failure=STRIDE)
    module.compile_model = lambda model, example: lambda x, scale: model(x, scale=scale).t().contiguous().t()
    assert module.test_fn() is False
