"""Inputs that a person brings: what they may be, and what is said of those that do not fit."""

import sys

import pytest

torch = pytest.importorskip("torch")

from torch.utils import _pytree as pytree  # noqa: E402

from minimizer.targets.given import arguments, misfit  # noqa: E402
from minimizer.targets.model_file import MODULE, Unusable, load  # noqa: E402

FILE = """
import sys
import torch

class Model(torch.nn.Module):
    def forward(self, x, y, k=2):
        return x + y * k

def get_model():
    return Model()

def get_example_inputs():
    return torch.zeros(4, 3), torch.zeros(3)

example_kwargs = {"k": 3}
X, Y = torch.ones(4, 3), torch.ones(3)

a_tuple = lambda: (X, Y)
a_list = lambda: [X, Y]
by_name = lambda: {"y": Y, "x": X, "k": 3}
attribute = (X, Y)

other_names = lambda: {"a": X, "b": Y, "k": 3}
nothing = lambda: None
number = 5
one_by_one = lambda: iter((X, Y))
wants = lambda a: a

def raises():
    raise ValueError("first\\nsecond")

def interrupts():
    raise KeyboardInterrupt

def leaves():
    sys.exit(3)

too_few = lambda: X
swapped_scalar = lambda: {"x": X, "y": Y, "k": 4}
no_tensor = lambda: (X, 1)
deeper = lambda: ((X, Y),)
sparse = lambda: (X.to_sparse(), Y)
"""


@pytest.fixture
def target(tmp_path):
    path, known = list(sys.path), set(sys.modules)
    file = tmp_path / "model.py"
    file.write_text(FILE)
    yield load(file)
    sys.path[:] = path
    for name in set(sys.modules) - known:
        if name == MODULE:
            del sys.modules[name]


def form(target):
    return pytree.tree_flatten((target.args, target.kwargs))


@pytest.mark.parametrize("name", ["a_tuple", "a_list", "by_name", "attribute"])
def test_inputs_of_every_form(target, name):
    given = arguments(target, name)
    assert misfit(given, *form(target)) == ""
    (x, y), kwargs = given
    assert (x.shape, y.shape, kwargs) == ((4, 3), (3,), {"k": 3})


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("other_names", "gives inputs named a, b, k; the model takes x, y, k"),
        ("nothing", "gives a NoneType; give a tuple of inputs"),
        ("number", "gives a int; give a tuple of inputs"),
        ("one_by_one", "gives a tuple_iterator; give a tuple of inputs"),
        ("wants", "raises TypeError: "),
        ("raises", "raises ValueError: first$"),
        ("interrupts", "raises KeyboardInterrupt$"),
        ("leaves", r"calls sys.exit\(3\); remove that"),
        ("missing", ": neither a function of model.py nor a file"),
    ],
)
def test_what_cannot_be_used(target, name, says):
    with pytest.raises(Unusable, match=f"^--check-inputs {name}.*{says}"):
        arguments(target, name)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("too_few", "the program takes 3 inputs, 2 were given"),
        ("swapped_scalar", "input 2 is 4, but 3 was baked into the program when it was exported"),
        ("no_tensor", "input 1 is a int, expected a Tensor"),
        ("deeper", "the inputs are nested in another way than the example inputs"),
        ("sparse", "input 0 is sparse_coo, expected a strided tensor"),
    ],
)
def test_what_does_not_fit(target, name, says):
    assert misfit(arguments(target, name), *form(target)) == says


def test_files_of_tensors(target, tmp_path):
    x, y = torch.ones(4, 3), torch.ones(3)
    torch.save((x, y), tmp_path / "tuple.pt")
    torch.save({"k": 3, "y": y, "x": x}, tmp_path / "dict.pt")
    for name in ("tuple.pt", "dict.pt"):
        assert misfit(arguments(target, str(tmp_path / name)), *form(target)) == ""


@pytest.mark.parametrize("content", [b"", b"junk", bytes(range(256)) * 20])
def test_files_of_junk(target, tmp_path, content):
    file = tmp_path / "inputs.pt"
    file.write_bytes(content)
    with pytest.raises(Unusable, match="cannot be read as tensors: .*; save them with torch.save"):
        arguments(target, str(file))


def test_safetensors(target, tmp_path):
    save = pytest.importorskip("safetensors.torch").save_file
    file = tmp_path / "inputs.safetensors"
    save({"y": torch.ones(3), "x": torch.ones(4, 3), "k": torch.tensor(3)}, file)
    assert misfit(arguments(target, str(file)), *form(target)) == "input 2 is a Tensor, expected a int"
