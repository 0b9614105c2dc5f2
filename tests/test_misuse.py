"""Every way of calling a program wrong that is known to be accepted in silence, crash or be refused badly.

One program with float, integer and image inputs, a dict, a number and a keyword is exported once; each row
says what is told of a wrong call, or that the call is right.
"""

import collections

import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.export import Dim  # noqa: E402

from minimizer.build import Store, describe  # noqa: E402
from minimizer.case import Stored  # noqa: E402
from minimizer.contract import check  # noqa: E402
from minimizer.targets import form  # noqa: E402
from minimizer.tracing import program_from_export  # noqa: E402

Pair = collections.namedtuple("Pair", "left right")


class Model(torch.nn.Module):
    def forward(self, x, index, image, extra, scale, flag=None, *, bias, shift=2):
        picked = x[index].sum() + image.sum()
        doubled = extra["double"].sum() + extra["pair"].right.sum() - extra["pair"].left.sum()
        return (picked + doubled) * scale + bias * shift + x[:, 0]


def inputs(**changed):
    """A right call, with some arguments changed."""
    n = 4
    known = {
        "x": torch.ones(n, 6),
        "index": torch.tensor([0, 3, 1]),
        "image": torch.ones(2, 3, 4, 4).contiguous(memory_format=torch.channels_last),
        "extra": {"double": torch.ones(2 * n), "pair": Pair(torch.ones(3), torch.ones(3))},
        "scale": 1.5,
        "flag": None,
        "bias": torch.ones(n),
        "shift": 2,
    } | changed
    names = ("x", "index", "image", "extra", "scale", "flag")
    positional = tuple(known.pop(name) for name in names if name in known)
    return positional, known


def extra(**changed):
    known = inputs()[0][3] | changed
    return inputs(extra=known)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    n = Dim("n", min=2, max=16)
    shapes = {
        "x": {0: n},
        "index": None,
        "image": None,
        "extra": {"double": {0: 2 * n}, "pair": Pair(None, None)},
        "scale": None,
        "flag": None,
        "bias": {0: n},
        "shift": None,
    }
    args, kwargs = inputs()
    ep = torch.export.export(Model(), args, kwargs, dynamic_shapes=shapes)
    names = {str(size): "n" for size in ep.range_constraints if size.is_Symbol}
    return program_from_export(ep, Store(tmp_path_factory.mktemp("store")), names)


def told(program, given):
    """What is said of a call: about its form, or else about its tensors."""
    example = inputs()
    names = form.argument_names(Model(), len(example[0]))
    broken = form.misfit(names, example, given)
    if broken is None:
        called, tensors = zip(*form.tensors(names, given))
        broken = check(program, [describe(t, Stored("")) for t in tensors], called)
    return broken


def sized(n, double=None, bias=None):
    return inputs(
        x=torch.ones(n, 6),
        bias=torch.ones(n if bias is None else bias),
        extra=extra(double=torch.ones(2 * n if double is None else double))[0][3],
    )


def fake():
    with FakeTensorMode():
        return torch.ones(4, 6)


class Wrapper(torch.Tensor):
    """A tensor subclass of a person's own."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise RuntimeError(f"{function} was called: nothing may be computed with a stranger's tensor")


class ndarray:
    """Stands for numpy's, which need not be installed."""

    __module__ = "numpy"


X = torch.ones(4, 6)
STEPS = torch.arange(100.0)

RIGHT = {
    "the example itself": lambda: inputs(),
    "both ends of the range": lambda: sized(2),
    "the other end": lambda: sized(16),
    "an offset into storage": lambda: inputs(x=STEPS[8:32].view(4, 6)),
    "misaligned storage": lambda: inputs(x=STEPS[1:25].view(4, 6)),
    "a parameter": lambda: inputs(x=torch.nn.Parameter(X)),
    "a tensor that asks for gradients": lambda: inputs(x=X.clone().requires_grad_()),
    "a size-1 dim has no stride of its own": lambda: inputs(index=torch.tensor([0, 3, 1])[:3]),
    "values that are no numbers": lambda: inputs(x=torch.full((4, 6), float("nan"))),
    "keywords in another order": lambda: (inputs()[0], dict(reversed(inputs()[1].items()))),
    "one tensor given twice": lambda: extra(pair=Pair(STEPS[:3], STEPS[:3])),
}


@pytest.mark.parametrize("call", RIGHT.values(), ids=RIGHT.keys())
def test_right_calls(program, call):
    assert told(program, call()) is None


WRONG = {
    "a wider dtype": (
        lambda: inputs(x=X.double()),
        "x: expected dtype float32, got dtype float64; "
        "convert it with x.to(torch.float32), or export with torch.float64",
    ),
    "a narrower dtype": (lambda: inputs(x=X.half()), "x: expected dtype float32, got dtype float16; "),
    "an integer for a float": (lambda: inputs(x=X.int()), "x: expected dtype float32, got dtype int32; "),
    "an int32 index": (
        lambda: inputs(index=torch.tensor([0, 1, 2], dtype=torch.int32)),
        "index: expected dtype int64, got dtype int32; "
        "convert it with index.to(torch.int64), or export with torch.int32",
    ),
    "a float index": (
        lambda: inputs(index=torch.tensor([0.0, 1, 2])),
        "index: expected dtype int64, got dtype float32; ",
    ),
    "a dim too many": (
        lambda: inputs(x=X[None]),
        "x: expected 2 dims [n, 6], got 3 dims; pass a tensor of 2 dims, for example through x.squeeze(0)",
    ),
    "a dim too few": (
        lambda: inputs(x=X[0]),
        "x: expected 2 dims [n, 6], got 1 dims; pass a tensor of 2 dims, for example through x.unsqueeze(0)",
    ),
    "no dims": (lambda: inputs(x=torch.tensor(1.0)), "x: expected 2 dims [n, 6], got 0 dims; "),
    "transposed": (
        lambda: inputs(x=torch.ones(6, 4).t()),
        "x: expected stride 6 in dim 0, got stride 1; "
        "pass x.contiguous(), or export with an example of this layout",
    ),
    "sliced with gaps": (
        lambda: inputs(x=torch.ones(4, 12)[:, ::2]),
        "x: expected stride 6 in dim 0, got stride 12; pass x.contiguous(), ",
    ),
    "expanded": (
        lambda: inputs(x=torch.ones(1, 6).expand(4, 6)),
        "x: expected stride 6 in dim 0, got stride 0; pass x.contiguous(), ",
    ),
    "contiguous where channels last was exported": (
        lambda: inputs(image=torch.ones(2, 3, 4, 4)),
        "image: expected stride 1 in dim 1, got stride 16; "
        "pass image.contiguous(memory_format=torch.channels_last), ",
    ),
    "a static dim changed": (
        lambda: inputs(x=torch.ones(4, 7)),
        "x: expected size 6 in dim 1 (it is static), got size 7; "
        "pass 6 there, or export with dim 1 of x dynamic",
    ),
    "beyond the range": (
        lambda: sized(17),
        "dim 0 of x: expected a size with 2 <= n <= 16, got size 17; "
        "stay in the range, or export with Dim('n', min=2, max=17)",
    ),
    "size one": (lambda: sized(1), "dim 0 of x: expected a size with 2 <= n <= 16, got size 1; "),
    "size zero": (
        lambda: sized(0),
        "dim 0 of x: expected a size with 2 <= n <= 16, got size 0; "
        "stay in the range, or export with Dim('n', min=0, max=16)",
    ),
    "sizes that must be equal": (
        lambda: sized(4, bias=5),
        "bias: expected size 4 in dim 0 (n, as dim 0 of x), got size 5; "
        "dim 0 of bias and dim 0 of x must be equal",
    ),
    "a derived size": (
        lambda: sized(4, double=9),
        "extra['double']: expected size 8 in dim 0 (2 * n), got size 9; "
        "dim 0 of extra['double'] must be 2 * n",
    ),
    "meta": (
        lambda: inputs(x=X.to("meta")),
        "x: expected device cpu, got device meta; a meta tensor has no data; pass a real tensor",
    ),
    "FakeTensor": (
        lambda: inputs(x=fake()),
        "x: expected a plain torch.Tensor, got the tensor subclass FakeTensor; "
        "it has no data; pass a real tensor",
    ),
    "a wrapper subclass": (
        lambda: inputs(x=Wrapper(X)),
        "x: expected a plain torch.Tensor, got the tensor subclass Wrapper; "
        "unwrap it and pass a plain torch.Tensor",
    ),
    "the negative bit": (
        lambda: inputs(x=torch._neg_view(X)),
        "x: expected stored values, got a view with the negative bit set; pass x.resolve_neg()",
    ),
    "mkldnn": (
        lambda: inputs(x=X.to_mkldnn()),
        "x: expected a strided tensor, got layout mkldnn; pass x.to_dense()",
    ),
    "quantized": (
        lambda: inputs(x=torch.quantize_per_tensor(X, 0.1, 0, torch.quint8)),
        "x: expected an ordinary tensor, got a quantized tensor (quint8); pass x.dequantize()",
    ),
    "sparse": (
        lambda: inputs(x=X.to_sparse()),
        "x: expected a strided tensor, got layout sparse_coo; pass x.to_dense()",
    ),
    "sparse rows": (
        lambda: inputs(x=X.to_sparse_csr()),
        "x: expected a strided tensor, got layout sparse_csr; pass x.to_dense()",
    ),
    "nested tensor": (
        lambda: inputs(x=torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])),
        "x: expected one tensor, got a nested tensor; pass x.to_padded_tensor(0)",
    ),
    "an argument missing": (
        lambda: (inputs()[0][:-2], inputs()[1]),
        "inputs: expected 6 arguments (x, index, image, extra, scale, flag), got 4; "
        "pass every argument that the program was exported with, and no other",
    ),
    "an argument too many": (
        lambda: ((*inputs()[0], X, X, X), inputs()[1]),
        "inputs: expected 6 arguments (x, index, image, extra, scale, flag), got 9; ",
    ),
    "nothing": (lambda: ((), {}), "inputs: expected 6 arguments"),
    "None for a tensor": (
        lambda: inputs(x=None),
        "x: expected a tensor, got None; pass a tensor; the program was exported with one",
    ),
    "a tensor for None": (
        lambda: inputs(flag=X),
        "flag: expected None (baked in when exported), got a tensor of shape [4, 6]; "
        "pass None, or export with a tensor there",
    ),
    "another float": (
        lambda: inputs(scale=2.5),
        "scale: expected 1.5 (baked in when exported), got 2.5; "
        "pass 1.5, or export again with 2.5; another value is ignored in silence",
    ),
    "another int": (lambda: inputs(shift=3), "shift: expected 2 (baked in when exported), got 3; "),
    "a float of the same value": (
        lambda: inputs(shift=2.0),
        "shift: expected 2 (baked in when exported), got 2.0; ",
    ),
    "a bool for a number": (
        lambda: inputs(shift=True),
        "shift: expected 2 (baked in when exported), got True; ",
    ),
    "a tensor for a number": (
        lambda: inputs(shift=torch.tensor(2)),
        "shift: expected 2 (baked in when exported), got a tensor of shape []; "
        "pass 2, or export with a tensor there",
    ),
    "a keyword missing": (
        lambda: (inputs()[0], {"shift": 2}),
        "bias: expected an argument of this name, got none; pass bias; the program was exported with it",
    ),
    "an unknown keyword": (
        lambda: inputs(gain=X),
        "gain: expected only x, index, image, extra, scale, flag, bias, shift, got an argument 'gain'; "
        "leave gain out, or export with an example of it",
    ),
    "by keyword what was exported by position": (
        lambda: (inputs()[0][:-1], inputs()[1] | {"flag": None}),
        "flag: expected a positional argument, got a keyword argument; "
        "pass flag by position, as in the example inputs",
    ),
    "by position what was exported by keyword": (
        lambda: ((*inputs()[0], torch.ones(4)), {"shift": 2}),
        "bias: expected a keyword argument, got a positional argument; "
        "pass bias by keyword, as in the example inputs",
    ),
    "a dict without a key": (
        lambda: inputs(extra={"double": torch.ones(8)}),
        "extra: expected a dict with ['double'], ['pair'], got one with ['double']; "
        "give it the items that the program was exported with",
    ),
    "a dict in another order": (
        lambda: inputs(extra=dict(reversed(inputs()[0][3].items()))),
        "extra: expected keys in the order ['double'], ['pair'], got ['pair'], ['double']; "
        "build it in that order: AOTInductor passes the values by position",
    ),
    "a tuple for a dict": (
        lambda: inputs(extra=(torch.ones(8), Pair(torch.ones(3), torch.ones(3)))),
        "extra: expected a dict of 2 items, got a tuple of 2 items; pass a dict, as in the example inputs",
    ),
    "a plain tuple for a named one": (
        lambda: extra(pair=(torch.ones(3), torch.ones(3))),
        "extra['pair']: expected a Pair of 2 items, got a tuple of 2 items; ",
    ),
    "a tensor for a container": (
        lambda: inputs(extra=X),
        "extra: expected a dict of 2 items, got a tensor of shape [4, 6]; ",
    ),
    "deep inside": (
        lambda: extra(pair=Pair(torch.ones(3), torch.ones(4))),
        "extra['pair'].right: expected size 3 in dim 0 (it is static), got size 4; ",
    ),
    "a container for a tensor": (
        lambda: inputs(x=[X, X]),
        "x: expected a tensor, got a list of 2 items; pass torch.tensor(x) of the exported dtype",
    ),
    "a number for a tensor": (lambda: inputs(x=3), "x: expected a tensor, got 3; pass torch.tensor(x) "),
    "numpy": (
        lambda: inputs(x=ndarray()),
        "x: expected a tensor, got a ndarray; pass torch.from_numpy(x)",
    ),
    "a string": (lambda: inputs(x="cpu"), "x: expected a tensor, got 'cpu'; pass a torch.Tensor"),
}


@pytest.mark.parametrize(("call", "says"), WRONG.values(), ids=WRONG.keys())
def test_wrong_calls(program, call, says):
    misuse = told(program, call())
    assert misuse is not None
    text = str(misuse)
    assert text == says if not says.endswith((" ", "arguments")) else text.startswith(says)
    assert "\n" not in text


def test_the_conjugate_bit():
    example = ((torch.ones(3, dtype=torch.complex64),), {})
    misuse = form.misfit(["z"], example, ((example[0][0].conj(),), {}))
    assert str(misuse) == (
        "z: expected stored values, got a view with the conjugate bit set; pass z.resolve_conj()"
    )
    lazy = ((example[0][0].conj(),), {})
    assert form.misfit(["z"], lazy, lazy) is None


@pytest.mark.parametrize(
    "number", [0.0, float("nan"), float("inf"), 3, True, "words", 1j, None, torch.float32]
)
def test_a_constant_is_itself(number):
    assert form.misfit(["k"], ((number,), {}), ((number,), {})) is None


def test_zeros_have_signs():
    misuse = form.misfit(["k"], ((0.0,), {}), ((-0.0,), {}))
    assert misuse is not None
    assert misuse.actual == "-0.0"


class Rest(torch.nn.Module):
    def forward(self, first, *others, last):
        return first


def test_arguments_have_names():
    assert form.argument_names(Rest(), 3) == ["first", "others[0]", "others[1]"]
    assert form.argument_names(torch.nn.Sequential(), 2) == ["input", "argument 1"]
