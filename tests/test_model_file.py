"""Model files, usable and not: one line says what to do."""

import copy
import sys

import pytest

torch = pytest.importorskip("torch")

from minimizer.targets.model_file import (  # noqa: E402
    MODULE,
    Unusable,
    check_containers,
    check_outputs,
    check_state,
    check_tensors,
    dim_names,
    export,
    initialise,
    load,
    run_eager,
    siblings,
)
from minimizer.targets.options import problem_of  # noqa: E402

LINEAR = """
import torch
from torch.export import Dim

def get_model():
    return torch.nn.Linear(3, 2)

def get_example_inputs():
    return (torch.randn(4, 3),)
"""


@pytest.fixture(autouse=True)
def modules_as_they_were():
    """Importing a model file leaves nothing behind."""
    path, known = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - known:
        if name == MODULE or name.startswith("beside_"):
            del sys.modules[name]


@pytest.fixture
def write(tmp_path):
    def write(text, name="model.py"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def everything(path, **named):
    """What opening a target does with a file, up to the export."""
    target = load(path, **named)
    model = target.get_model()
    run_eager(target, model)
    return export(target, target.get_model())


UNUSABLE = {
    "empty file": (
        "",
        "model.py has no get_model(); define it to return a torch.nn.Module, or use --model NAME",
    ),
    "exits when imported": (
        "import sys\nsys.exit(0)\n",
        "model.py calls sys.exit(0) when imported; remove that",
    ),
    "exits with words": (
        "raise SystemExit('no GPU')\n",
        "model.py calls sys.exit(no GPU) when imported; remove that",
    ),
    "missing import": (
        "import a_package_that_is_not_there\n",
        "model.py needs the module 'a_package_that_is_not_there'; install it or fix the import",
    ),
    "syntax error": ("def get_model(:\n    pass\n", "model.py:1: invalid syntax; fix the syntax error"),
    "not text": (b"x = '\xff'\n", "fix the syntax error"),
    "raises when imported": (
        "x = [][1]\n",
        "model.py cannot be imported: IndexError: list index out of range",
    ),
    "no inputs": (
        "import torch\n\ndef get_model():\n    return torch.nn.Linear(2, 2)\n",
        "model.py has no get_example_inputs(); define it to return a tuple of inputs, or use --inputs NAME",
    ),
    "not a module": (
        LINEAR.replace("torch.nn.Linear(3, 2)", "'linear'"),
        "model.py: the model is a str, not a torch.nn.Module; return the module from get_model()",
    ),
    "a model that raises": (
        LINEAR.replace("return torch.nn.Linear(3, 2)", "return torch.nn.Linear(3)"),
        "model.py: get_model() raises TypeError: ",
    ),
    "a model that exits": (
        LINEAR.replace("return torch.nn.Linear(3, 2)", "raise SystemExit(3)"),
        "model.py: get_model() calls sys.exit(3); remove that",
    ),
    "inputs that are no tuple": (
        LINEAR.replace("(torch.randn(4, 3),)", "{'x': torch.randn(4, 3)}"),
        "model.py: example inputs are a dict; return a tuple of arguments",
    ),
    "inputs that raise": (
        LINEAR.replace("return (torch.randn(4, 3),)", "raise ValueError('first\\nsecond')"),
        "model.py: get_example_inputs() raises ValueError: first",
    ),
    "keyword arguments that are no dict": (
        LINEAR + "\ndef get_example_kwargs():\n    return [1]\n",
        "model.py: example kwargs are a list; return a dict",
    ),
    "settings that are no dict": (
        LINEAR + "\ninductor_configs = 3\n",
        "model.py: inductor configs are a int; return a dict",
    ),
    "eager raises": (
        LINEAR.replace("torch.randn(4, 3)", "torch.randn(4, 5)"),
        "model.py: the model raises on its own example inputs, without any compiler: RuntimeError: mat1",
    ),
    "forward exits": (
        LINEAR.replace(
            "def get_model():",
            "class Model(torch.nn.Module):\n    def forward(self, x):\n        raise SystemExit(4)\n\n"
            "def get_model():\n    return Model()",
        ),
        "model.py: the model calls sys.exit(4); remove that",
    ),
    "not exportable": (
        LINEAR.replace(
            "def get_model():",
            "class Model(torch.nn.Module):\n    def forward(self, x):\n"
            "        return x + 1 if x.sum() > 0 else x - 1\n\ndef get_model():\n    return Model()",
        ),
        "model.py cannot be exported: ",
    ),
    "wrong dynamic shapes": (
        LINEAR + "\ndef get_dynamic_shapes():\n    return {'no_such_input': {0: Dim('n')}}\n",
        "model.py cannot be exported: ",
    ),
    "a multi-line code": ("raise SystemExit('one\\ntwo')", "calls sys.exit(one two) when imported"),
    "no Exception": (
        "class Odd(BaseException):\n    def __str__(self): return '\\n one\\ntwo'\nraise Odd",
        "cannot be imported: Odd: one",
    ),
    "no words": (
        "class Odd(BaseException):\n    def __str__(self): raise ValueError\nraise Odd",
        "cannot be imported: Odd: its message cannot be read: ValueError",
    ),
    "control characters": ("raise ValueError('\\x1b[31m\\udcff')", r"ValueError: \x1b[31m\udcff"),
    "an interrupt of its own": (
        LINEAR + "def get_model(): raise KeyboardInterrupt",
        "get_model() raises KeyboardInterrupt",
    ),
    "a null byte": (b"x = 1\x00", "model.py: source code string cannot contain null bytes"),
    "an unknown option": (
        LINEAR + "inductor_configs = {'max-autotune': True}",
        "there is no Inductor option 'max-autotune'; did you mean 'max_autotune'?",
    ),
    "an option of the wrong type": (
        LINEAR + "inductor_configs = {'cpp.simdlen': 'wide'}",
        "Inductor option 'cpp.simdlen' is 'wide', and takes int | None",
    ),
    "an option that is no word": (
        LINEAR + "inductor_configs = {3: 1}",
        "Inductor option 3 is a int; options are named by strings",
    ),
}


@pytest.mark.parametrize(("text", "says"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_unusable_files(write, text, says):
    with pytest.raises(Unusable) as problem:
        everything(write(text))
    assert says in str(problem.value)
    assert "\n" not in str(problem.value)


def test_export_says_what_to_do(write):
    text, _ = UNUSABLE["wrong dynamic shapes"]
    with pytest.raises(Unusable, match=r"make torch\.export\.export\(\) work on the model"):
        everything(write(text))


def test_other_names_must_exist(write):
    with pytest.raises(Unusable, match="model.py has no 'net'; --model NAME must name a function"):
        load(write(LINEAR), model="net")
    with pytest.raises(Unusable, match="model.py has no 'batch'; --inputs NAME must name"):
        load(write(LINEAR), inputs="batch")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(Unusable, match=r"model.py cannot be imported: FileNotFoundError"):
        load(tmp_path / "model.py")


FORMS = {
    "functions": LINEAR,
    "attributes": "import torch\nmodel = torch.nn.Linear(3, 2)\nexample_inputs = (torch.randn(4, 3),)\n",
    "a class": LINEAR.replace(
        "def get_model():\n    return torch.nn.Linear(3, 2)",
        "class get_model(torch.nn.Linear):\n    def __init__(self):\n        super().__init__(3, 2)",
    ),
    "a list of inputs": LINEAR.replace("(torch.randn(4, 3),)", "[torch.randn(4, 3)]"),
    "a tensor": LINEAR.replace("(torch.randn(4, 3),)", "torch.randn(4, 3)"),
    "partial functions": LINEAR + "import functools\nget_model = functools.partial(torch.nn.Linear, 3, 2)\n",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_usable_files(write, text):
    ep = everything(write(text))
    assert ep.module()(torch.ones(4, 3)).shape == (4, 2)


def test_names_can_be_chosen(write):
    target = load(write(LINEAR.replace("get_", "my_")), model="my_model", inputs="my_example_inputs")
    assert target.args[0].shape == (4, 3)


def test_weights_and_inputs_are_the_same_in_every_process(write):
    one, other = load(write(LINEAR)), load(write(LINEAR))
    assert torch.equal(one.args[0], other.args[0])
    for model in (one.get_model(), other.get_model()):
        assert torch.equal(model.weight, one.get_model().weight)


def test_optional_parts(write):
    text = LINEAR + (
        "def get_example_kwargs():\n    return {'bias': None}\n"
        "def get_dynamic_shapes():\n    return {'input': {0: Dim('rows')}}\n"
        "def get_inductor_configs():\n    return {'freezing': True}\n"
    )
    target = load(write(text))
    assert target.kwargs == {"bias": None}
    assert target.config == {"freezing": True}
    assert list(target.dynamic_shapes) == ["input"]
    plain = load(write(LINEAR))
    assert (plain.kwargs, plain.config, plain.dynamic_shapes) == ({}, {}, None)


def test_the_folder_of_the_file_is_on_the_path(write):
    write("def width():\n    return 3\n", "beside_model.py")
    text = "from beside_model import width\n" + LINEAR.replace("Linear(3, 2)", "Linear(width(), 2)")
    target = load(write(text))
    assert [path.rpartition("/")[2] for path in siblings(target)] == ["model.py", "beside_model.py"]


def test_running_eager_leaves_the_examples_alone(write):
    text = LINEAR.replace(
        "def get_model():",
        "class Model(torch.nn.Module):\n    def forward(self, x):\n        return x.add_(1)\n\n"
        "def get_model():\n    return Model()",
    )
    target = load(write(text))
    before = copy.deepcopy(target.args)
    run_eager(target, target.get_model())
    assert torch.equal(target.args[0], before[0])


def test_names_of_dims(write):
    text = LINEAR + "def get_dynamic_shapes():\n    return ({0: Dim('rows', min=2, max=9)},)\n"
    target = load(write(text))
    ep = export(target, target.get_model())
    assert list(dim_names(target, ep).values()) == ["rows"]
    assert dim_names(load(write(LINEAR)), ep) == {}


TENSORS = {
    "meta input": ("torch.nn.ReLU()", "torch.zeros(2, device='meta')", "example input 0 is a meta tensor"),
    "meta weights": (
        "torch.nn.Linear(2, 2, device='meta')",
        "torch.zeros(2)",
        "parameter 'weight' is a meta tensor",
    ),
    "sparse": ("torch.nn.ReLU()", "torch.eye(2).to_sparse()", "example input 0 is sparse_coo"),
    "subclass": ("torch.nn.ReLU()", "torch.zeros(2).as_subclass(Own)", "example input 0 is a Own"),
}


@pytest.mark.parametrize(("model", "given", "says"), TENSORS.values(), ids=TENSORS.keys())
def test_tensors_that_cannot_be_judged(write, model, given, says):
    text = f"import torch\nclass Own(torch.Tensor): pass\nmodel = {model}\nexample_inputs = ({given},)\n"
    target = load(write(text))
    with pytest.raises(Unusable, match=says):
        check_tensors(target, target.get_model())


def test_tensors_of_every_usual_kind_can_be_judged(write):
    text = """
import torch
model = torch.nn.Sequential(torch.nn.LazyLinear(2), torch.nn.BatchNorm1d(2))
example_inputs = (torch.nn.Parameter(torch.zeros(2, 2)), 3, None, [torch.zeros(0).bool()])
"""
    target = load(write(text))
    check_tensors(target, target.get_model())


def test_every_default_is_a_legal_option():
    from torch._inductor import config

    defaults = {key: value for key, value in config.get_config_copy().items() if value is not None}
    assert problem_of(defaults) == ""
    assert problem_of({"freezing": 1, "cpp.simdlen": None}) == ""


def test_lazy_modules_see_the_examples_once(write):
    target = load(
        write("import torch\nmodel = torch.nn.LazyLinear(2)\nexample_inputs = (torch.zeros(4, 3),)")
    )
    model = target.get_model()
    initialise(target, model)
    assert model.weight.shape == (2, 3)
    initialise(target, model)
    assert export(target, model).module()(*target.args).shape == (4, 2)


OWN = """
from dataclasses import dataclass
from collections import namedtuple
import torch
from torch.utils import _pytree

@dataclass
class Data:
    x: torch.Tensor

Tuple = namedtuple("Tuple", "x")

class Model(torch.nn.Module):
    def forward(self, given):
        return given.x + 1

model = Model()
"""


def exported(path):
    target = load(path)
    return target, export(target, target.get_model())


@pytest.mark.parametrize("call", ["Data", "Tuple"])
def test_containers_that_have_no_name(write, call):
    register = "torch.export.register_dataclass(Data)\n" if call == "Data" else ""
    text = f"{OWN}{register}example_inputs = ({call}(torch.zeros(2)),)\n"
    with pytest.raises(Unusable, match="a container that no package can store.*serializ"):
        check_containers(*exported(write(text)))


def test_containers_that_can_be_stored(write):
    text = OWN + "torch.export.register_dataclass(Data, serialized_type_name='tests.Data')\n"
    check_containers(*exported(write(text + "example_inputs = (Data(torch.zeros(2)),)\n")))
    check_containers(*exported(write(LINEAR)))


TWICE = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        one = torch.ones(3)
        self.register_buffer("first", one)
        self.register_buffer("second", {second})

    def forward(self, x):
        {forward}

model = Model()
example_inputs = (torch.ones(3),)
"""


def program_of(path):
    target = load(path)
    return target, export(target, target.get_model())


@pytest.mark.parametrize(
    "forward", ["self.first.add_(1); return x + self.second", "return self.second.mul_(x)"]
)
def test_a_buffer_with_two_names_that_is_written_to(write, forward):
    target, ep = program_of(write(TWICE.format(second="one", forward=forward)))
    with pytest.raises(Unusable) as problem:
        check_state(target, ep)
    assert str(problem.value) == (
        "model.py: the buffers 'first' and 'second' are one tensor, and the model writes to it, which "
        "torch.export cannot express; register it once, or give each a tensor of its own"
    )


@pytest.mark.parametrize(
    ("second", "forward"),
    [
        ("one", "return x + self.first * self.second"),
        ("one.clone()", "self.first.add_(1); return x + self.second"),
        ("torch.ones(0)", "self.first.add_(1); return x + 1"),
    ],
)
def test_buffers_that_are_fine(write, second, forward):
    check_state(*program_of(write(TWICE.format(second=second, forward=forward))))


def test_a_model_that_returns_text(write):
    target, ep = program_of(write(TWICE.format(second="one", forward="return x + 1, 'name'")))
    with pytest.raises(
        Unusable, match="returns the text 'name', which no package can hold; return tensors only"
    ):
        check_outputs(target, ep)


@pytest.mark.parametrize("forward", ["return x + 1", "return x + 1, 3, None", "return {'name': x + 1}"])
def test_outputs_that_are_fine(write, forward):
    check_outputs(*program_of(write(TWICE.format(second="one", forward=forward))))
