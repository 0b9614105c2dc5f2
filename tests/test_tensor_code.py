"""Code for a tensor builds the same bits, signs of zero and strides included, or there is none."""

import pytest

from minimizer.build import Store, describe, make_tensor
from minimizer.case import Literal, Stored, Value
from minimizer.tensor_code import LONGEST, tensor_code
from strategies import Fill

torch = pytest.importorskip("torch")

INF, NAN = float("inf"), float("nan")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "tensors")


def bits(tensor):
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    whole = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return tensor.contiguous().view(whole).tolist()


def code_of(store, tensor, budget=32):
    return tensor_code(describe(tensor, Stored(store.put("t", tensor))), store, budget)


def same(code, tensor):
    made = eval(code, {"torch": torch})
    return (
        made.dtype == tensor.dtype
        and made.shape == tensor.shape
        and (tensor.numel() == 0 or made.stride() == tensor.stride())
        and bits(made) == bits(tensor)
    )


def image(*shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape)


TENSORS = {
    "numbers": torch.tensor([1.5, -2.0, 0.1]),
    "zeros": torch.zeros(2, 3),
    "ones": torch.ones(5),
    "one value": torch.full((3, 3), 0.1),
    "minus zero": torch.tensor(-0.0),
    "minus zeros": torch.tensor([-0.0, -0.0]),
    "zeros of both signs": torch.tensor([0.0, -0.0]),
    "zeros of both signs, minus first": torch.tensor([-0.0, 0.0]),
    "nan and infinities": torch.tensor([NAN, INF, -INF, 1.0]),
    "nothing but nan": torch.tensor([NAN, NAN]),
    "digits that matter": torch.tensor([1.0000001, 3.4028235e38, 1e-45]),
    "float64": torch.tensor([0.1, 1e300, -0.0], dtype=torch.float64),
    "float16": torch.tensor([0.1, 65504.0, 6e-8], dtype=torch.float16),
    "bfloat16": torch.tensor([[0.1, -3.0], [1e30, 7.0]], dtype=torch.bfloat16),
    "int8": torch.tensor([-128, 127, 0], dtype=torch.int8),
    "one int8": torch.full((4,), -128, dtype=torch.int8),
    "uint8": torch.tensor([255, 0], dtype=torch.uint8),
    "int64": torch.tensor([2**62, -(2**63)]),
    "one int64": torch.full((2, 2), 7),
    "bool": torch.tensor([True, False]),
    "only true": torch.tensor([True, True]),
    "complex": torch.tensor([complex(-0.0, INF), complex(NAN, 3)]),
    "complex zeros with signs": torch.tensor([complex(0.0, -0.0), complex(0.0, -0.0)]),
    "complex zeros, signs of the real part": torch.tensor([complex(-0.0, 0.0), complex(0.0, 0.0)]),
    "no dims": torch.tensor(3),
    "empty": torch.empty(0, 3),
    "empty integers": torch.empty(2, 0, dtype=torch.int32),
    "transposed": image(2, 3).t(),
    "permuted": image(2, 1, 2).permute(2, 0, 1),
    "channels last": image(1, 2, 1, 3).to(memory_format=torch.channels_last),
    "gaps": image(2, 4)[:, ::3],
    "expanded": image(1, 3).expand(2, 3),
    "expanded scalar": torch.tensor(2.5).expand(3),
    "expanded over rows": image(2, 1).expand(2, 3),
    "expanded zeros": torch.zeros(1).expand(4),
}


@pytest.mark.parametrize("tensor", TENSORS.values(), ids=TENSORS.keys())
def test_code_builds_the_same_bits(store, tensor):
    code = code_of(store, tensor)
    assert code is not None
    assert same(code, tensor), code
    assert len(code) <= LONGEST


@pytest.mark.parametrize(
    ("tensor", "code"),
    [
        (torch.zeros(2, 3), "torch.zeros(2, 3)"),
        (torch.ones(5, dtype=torch.bool), "torch.ones(5, dtype=torch.bool)"),
        (torch.full((3,), 0.1), "torch.full((3,), 0.1)"),
        (torch.tensor([1.0, 4.0]), "torch.tensor([1.0, 4.0])"),
        (torch.tensor([0.1], dtype=torch.float16), "torch.full((1,), 0.1, dtype=torch.float16)"),
        (torch.tensor(7), "torch.tensor(7)"),
        (image(2, 3).t(), "torch.tensor([[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]).t().contiguous().t()"),
        (torch.ones(1, 3).expand(2, 3), "torch.ones(1, 3).expand(2, 3)"),
    ],
)
def test_code_reads_as_a_person_would_write_it(store, tensor, code):
    assert code_of(store, tensor) == code


@pytest.mark.parametrize(
    "kind", ["normal", "ramp", "signed_zeros", "nan_sprinkled", "small_integers", "zeros"]
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "complex64", "bool"])
@pytest.mark.parametrize("stride", [None, (1, 4)])
def test_fills_become_code(store, kind, dtype, stride):
    value = Value(dtype, (4, 3), Fill(kind, low=-3.0, high=3.0), stride=stride)
    code = tensor_code(value, store, 12)
    assert code is None or same(code, make_tensor(value, store)), code
    assert code is not None or kind not in ("normal", "ramp", "zeros")


def test_long_tensors_have_no_code(store):
    many = torch.arange(40.0) ** 2
    assert code_of(store, many, budget=32) is None
    assert code_of(store, many, budget=64) is None, "more than a line"


def test_other_devices_have_no_code(store):
    assert tensor_code(Value("float32", (2,), Stored(""), device="meta"), store, 8) is None


def test_a_literal_becomes_code(store):
    assert tensor_code(Value("float32", (2,), Literal((1.0, NAN))), store, 8) == (
        'torch.tensor([1.0, float("nan")])'
    )


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "uint16", "uint64"])
def test_rare_dtypes_have_right_code_or_none(store, dtype):
    tensor = torch.tensor([1.0, 2.0]).to(getattr(torch, dtype))
    code = code_of(store, tensor)
    assert code is None or same(code, tensor)


def test_an_offset_is_part_of_the_code(tmp_path):
    value = Value("float32", (2, 2), Fill("ones"), offset=1)
    code = tensor_code(value, Store(tmp_path), 48)
    assert code == "torch.zeros(5, dtype=torch.float32).as_strided((2, 2), (2, 1), 1).copy_(torch.ones(2, 2))"
    assert eval(code, {"torch": torch}).storage_offset() == 1
