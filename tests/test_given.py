"""Inputs that a person brings: what they may be, and what is said of those that do not fit."""

import json
import sys

import pytest

torch = pytest.importorskip("torch")

from minimizer.contract import Misuse  # noqa: E402
from minimizer.targets.form import misfit  # noqa: E402
from minimizer.targets.given import arguments  # noqa: E402
from minimizer.targets.model_file import MODULE, Unusable, load  # noqa: E402

FILE = """
import sys
import torch

class Model(torch.nn.Module):
    def forward(self, x, y, k=2):
        return x + y * k

def get_model():
    model = Model()
    model.weight = torch.nn.Parameter(torch.ones(2))
    return model

def get_example_inputs():
    return torch.zeros(4, 3), torch.zeros(3)

example_kwargs = {"k": 3}
X, Y = torch.ones(4, 3), torch.ones(3)

a_tuple = lambda: (X, Y)
a_list = lambda: [X, Y]
by_name = lambda: {"y": Y, "x": X, "k": 3}
attribute = (X, Y)

other_names = lambda: {"a": X, "b": Y, "c": 3}
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

one = lambda: X
as_called = lambda: ((X, Y), {"k": 4})
without_y = lambda: {"x": X, "k": 3}
with_more = lambda: {"x": X, "y": Y, "k": 3, "z": X}
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


def broken(target, given):
    return misfit(["x", "y"], (target.args, target.kwargs), given)


@pytest.mark.parametrize("name", ["a_tuple", "a_list", "by_name", "attribute"])
def test_inputs_of_every_form(target, name):
    given = arguments(target, name)
    assert broken(target, given) is None
    (x, y), kwargs = given
    assert (x.shape, y.shape, kwargs) == ((4, 3), (3,), {"k": 3})


def test_one_tensor_is_one_argument(target):
    assert arguments(target, "one")[0][0].shape == (4, 3)


def test_a_call_may_be_given_as_it_was_made(target):
    assert arguments(target, "as_called")[1] == {"k": 4}


@pytest.mark.parametrize(
    ("name", "input", "said"), [("without_y", "y", "none"), ("with_more", "z", "an argument 'z'")]
)
def test_a_name_too_few_or_too_many_is_misuse(target, name, input, said):
    misuse = arguments(target, name)
    assert isinstance(misuse, Misuse)
    assert (misuse.input, misuse.actual) == (input, said)


LIST = """
import torch

class Model(torch.nn.Module):
    def forward(self, items):
        return items[0] + items[1]

model = Model()
example_inputs = ([torch.zeros(2), torch.zeros(2)],)
bare = [torch.ones(2), torch.ones(2)]
wrapped = ([torch.ones(2), torch.ones(2)],)
"""


@pytest.mark.parametrize("name", ["bare", "wrapped"])
def test_a_list_may_be_the_only_argument(tmp_path, name):
    file = tmp_path / "takes_a_list.py"
    file.write_text(LIST)
    args, _ = arguments(load(file), name)
    assert [type(arg) for arg in args] == [list]
    assert len(args[0]) == 2


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("other_names", "gives inputs named a, b, c; the model takes x, y, k"),
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


def test_files_of_tensors(target, tmp_path):
    x, y = torch.ones(4, 3), torch.ones(3)
    torch.save((x, y), tmp_path / "tuple.pt")
    torch.save({"k": 3, "y": y, "x": x}, tmp_path / "dict.pt")
    for name in ("tuple.pt", "dict.pt"):
        assert broken(target, arguments(target, str(tmp_path / name))) is None


def test_a_file_keeps_strides(target, tmp_path):
    torch.save((torch.ones(3, 4).t(), torch.ones(3)), tmp_path / "inputs.pt")
    (x, _), _ = arguments(target, str(tmp_path / "inputs.pt"))
    assert x.stride() == (1, 4)


class Evil:
    """Whoever opens a file that holds one has run its code."""

    def __reduce__(self):
        return sys.exit, ("code of the file was run",)


def refused(target, file):
    with pytest.raises(Unusable) as problem:
        arguments(target, str(file))
    text = str(problem.value)
    assert text.startswith(f"--check-inputs {file} ")
    assert "\n" not in text
    return text.removeprefix(f"--check-inputs {file} ")


SAVE = "save the inputs with torch.save((x, ...), FILE)"
DAMAGED = "it is damaged, cut short or something else; " + SAVE


@pytest.mark.parametrize("content", [b"", b"junk", bytes(range(256)) * 20, b"PK\x03\x04" + bytes(99)])
@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_files_of_junk(target, tmp_path, content, suffix):
    if suffix == ".safetensors":
        pytest.importorskip("safetensors")
    file = tmp_path / f"inputs{suffix}"
    file.write_bytes(content)
    assert refused(target, file).startswith("cannot be read as tensors (")
    assert refused(target, file).endswith(DAMAGED)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_file_that_was_cut_short(target, tmp_path, share):
    file = tmp_path / "inputs.pt"
    torch.save((torch.ones(4, 3), torch.ones(3)), file)
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    assert refused(target, file).endswith(DAMAGED)


def test_parameters_are_not_inputs(target, tmp_path):
    torch.save(target.get_model().state_dict(), tmp_path / "weights.pt")
    says = refused(target, tmp_path / "weights.pt")
    assert says == f"holds the model's own parameters, not inputs for it; {SAVE}"


@pytest.mark.parametrize(
    ("content", "named"), [(torch.nn.ReLU(), "torch.nn.modules.activation.ReLU"), (Evil(), "sys.exit")]
)
def test_code_in_a_file_is_not_run(target, tmp_path, content, named):
    torch.save(content, tmp_path / "inputs.pt")
    assert refused(target, tmp_path / "inputs.pt") == (
        f"holds a Python object ({named}), and only tensors are read, since objects run code; {SAVE}"
    )


def test_what_is_not_a_file_of_tensors(target, tmp_path):
    assert refused(target, tmp_path) == "is a folder; give a .pt or .safetensors file"
    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), tmp_path / "program.pt2")
    assert refused(target, tmp_path / "program.pt2").endswith(DAMAGED)


def write_safetensors(path, **tensors):
    """What ``safetensors.torch.save_file`` writes; that needs NumPy, and reading does not."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = bytes(tensor.contiguous().flatten().view(torch.uint8).tolist())
        dtype = {"float32": "F32", "int64": "I64"}[str(tensor.dtype).removeprefix("torch.")]
        ends = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": ends}
        data += raw
    words = json.dumps(header).encode()
    path.write_bytes(len(words).to_bytes(8, "little") + words + data)


def test_safetensors(target, tmp_path):
    pytest.importorskip("safetensors")
    file = tmp_path / "inputs.safetensors"
    write_safetensors(file, y=torch.ones(3), x=torch.arange(12.0).view(4, 3))
    target.kwargs.clear()
    args, kwargs = arguments(target, str(file))
    assert torch.equal(args[0], torch.arange(12.0).view(4, 3))
    assert broken(target, (args, kwargs)) is None


def test_safetensors_hold_no_numbers(target, tmp_path):
    pytest.importorskip("safetensors")
    file = tmp_path / "inputs.safetensors"
    write_safetensors(file, y=torch.ones(3), x=torch.ones(4, 3), k=torch.tensor([3]))
    misuse = broken(target, arguments(target, str(file)))
    assert str(misuse).startswith("k: expected 3 (baked in when exported), got a tensor of shape [1]")
