"""A fill makes the same tensor every time, and its printed code makes that tensor too."""

import math

import pytest
import torch

from minimizer.tensors import LONGEST_CODE, code_for_fill, fill_tensor
from strategies import KINDS, Fill, Role, telling_fills

DTYPES = [
    *("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "complex64", "complex128"),
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
]
SHAPES = [(), (0,), (5,), (0, 4), (3, 7), (1, 2, 9)]


def bits(tensor):
    return tensor.reshape(-1).view(torch.uint8).tolist() if tensor.numel() else []


def every_fill(dtype):
    telling = [
        *telling_fills(dtype),
        *telling_fills(dtype, Role("index")),
        *telling_fills(dtype, Role("mask")),
    ]
    return [
        *telling,
        *(Fill(kind, seed=3) for kind in KINDS),
        *(Fill(kind, low=-300, high=300) for kind in KINDS),
    ]


@pytest.mark.parametrize("dtype", DTYPES)
def test_code_builds_the_same_bits(dtype):
    for shape in SHAPES:
        for fill in every_fill(dtype):
            made = fill_tensor(fill, dtype, shape, bound=7)
            assert (made.dtype, tuple(made.shape)) == (getattr(torch, dtype), shape)
            assert made.is_contiguous()
            code = code_for_fill(fill, dtype, str(shape), bound=7)
            if code is not None:
                again = eval(code, {"torch": torch})
                assert (again.dtype, again.shape) == (made.dtype, made.shape), code
                assert bits(again) == bits(made), code
                assert len(code) <= LONGEST_CODE


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "int8", "bool"])
def test_nearly_every_telling_fill_has_short_code(dtype):
    codes = [code_for_fill(fill, dtype, "17, 8") for fill in telling_fills(dtype)]
    assert codes.count(None) <= 3


@pytest.mark.parametrize(
    ("fill", "dtype", "shape", "code"),
    [
        (Fill("zeros"), "float32", "17, 64", "torch.zeros(17, 64)"),
        (Fill("zeros"), "float32", "()", "torch.zeros(())"),
        (Fill("ones"), "int8", "(3,)", "torch.ones(3, dtype=torch.int8)"),
        (Fill("full", low=0.5), "float32", "3", "torch.full((3,), 0.5)"),
        (Fill("negative_zeros"), "float32", "3, 4", "torch.full((3, 4), -0.0)"),
        (
            Fill("normal", seed=3),
            "float32",
            "n, 8",
            "torch.randn(n, 8, generator=torch.Generator().manual_seed(3))",
        ),
        (Fill("ramp"), "float32", "2, 3", "torch.arange(6).reshape(2, 3).float()"),
        (Fill("one_hot", seed=4), "bool", "2, 3", "torch.arange(6).reshape(2, 3) == 4"),
        (Fill("signed_zeros"), "float32", "4", "torch.tensor([0.0, -0.0])[torch.arange(4) % 2]"),
        (
            Fill("decimals", low=-1.0),
            "float32",
            "4",
            "torch.randint(-10, 11, (4,), generator=torch.Generator().manual_seed(0)) / 10",
        ),
        (Fill("ramp"), "float32", "n, 3", None),
        (
            Fill("extremes", low=-1.7976931348623157e308, high=1.7976931348623157e308),
            "float64",
            "17, 64",
            None,
        ),
    ],
)
def test_code_reads_as_a_person_would_write_it(fill, dtype, shape, code):
    assert code_for_fill(fill, dtype, shape) == code


@pytest.mark.parametrize(
    ("fill", "dtype", "elements"),
    [
        (Fill("extremes", low=-128, high=127), "int8", [127, -128, -1, 127, -128]),
        (Fill("extremes", low=0, high=2**64 - 1), "uint64", [2**64 - 1, 0, 1, 2**64 - 1, 0]),
        (Fill("ramp"), "int8", [0, 1, 2, 3, 4]),
        (Fill("one_hot", seed=7), "int64", [0, 0, 1, 0, 0]),
        (Fill("alternating"), "bool", [False, True, False, True, False]),
        (Fill("index_last"), "int64", [6] * 5),
        (Fill("index_ramp"), "int64", [0, 1, 2, 3, 4]),
        (Fill("edge_out"), "int64", [7] * 5),
        (Fill("edge_out", seed=1), "int64", [-8] * 5),
        (Fill("full", low=3), "int32", [3] * 5),
        (Fill("masked_out"), "float32", [0.0, -math.inf, 0.0, 0.0, -math.inf]),
    ],
)
def test_patterns_hold_what_they_say(fill, dtype, elements):
    assert fill_tensor(fill, dtype, (5,), bound=7).tolist() == elements


@pytest.mark.parametrize(
    ("fill", "dtype", "holds"),
    [
        (Fill("all_positive", low=1, high=127), "int8", lambda made: (made > 0).all()),
        (Fill("all_negative", low=-128, high=-1), "int8", lambda made: (made < 0).all()),
        (Fill("high_bytes", low=128, high=255), "uint8", lambda made: (made >= 128).all()),
        (Fill("all_negative", low=-1.5, high=-0.5), "float16", lambda made: (made < 0).all()),
        (Fill("small_integers", low=-8, high=8), "bfloat16", lambda made: (made == made.round()).all()),
        (Fill("halves", low=-4, high=4), "float32", lambda made: (made % 1 == 0.5).all()),
        (Fill("nan_sprinkled"), "float32", lambda made: 0 < made.isnan().sum() < 50),
        (Fill("inf_sprinkled"), "float32", lambda made: {math.inf, -math.inf} < set(made.flatten().tolist())),
        (Fill("sorted"), "float32", lambda made: (made.flatten().diff() >= 0).all()),
        (Fill("reversed", low=-8, high=8), "int64", lambda made: (made.flatten().diff() <= 0).all()),
        (Fill("real_only"), "complex64", lambda made: (made.imag == 0).all() and made.real.any()),
        (Fill("imaginary_only"), "complex64", lambda made: (made.real == 0).all() and made.imag.any()),
        (Fill("huge", high=1e30), "float32", lambda made: made.abs().max() > 1e30 and made.isfinite().all()),
        (Fill("extremes", low=-3.39e38, high=3.39e38), "bfloat16", lambda made: made.isfinite().all()),
        (Fill("denormals", high=1e-40), "float32", lambda made: 0 < made.abs().max() < 1.2e-38),
        (Fill("index_negative"), "int64", lambda made: ((made >= -7) & (made < 0)).all()),
        (Fill("index_random"), "int64", lambda made: ((made >= 0) & (made < 7)).all()),
    ],
)
def test_random_fills_keep_their_promise(fill, dtype, holds):
    assert holds(fill_tensor(fill, dtype, (12, 9), bound=7))


def test_decimals_are_the_nearest_to_tenths():
    made = fill_tensor(Fill("decimals", low=-1.0), "float64", (200,))
    assert set(made.tolist()) == {tenth / 10 for tenth in range(-10, 11)}


def test_signed_zeros_have_both_signs():
    made = fill_tensor(Fill("signed_zeros"), "float16", (4,))
    assert made.reciprocal().tolist() == [math.inf, -math.inf, math.inf, -math.inf]


def test_extremes_are_the_largest_finite_values():
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        (extremes,) = (fill for fill in telling_fills(dtype) if fill.kind == "extremes")
        made = fill_tensor(extremes, dtype, (3,))
        most = torch.finfo(getattr(torch, dtype)).max
        assert made.tolist() == [most, -most, 1.0]


def test_seeds_differ_and_the_global_generator_is_left_alone():
    before = torch.get_rng_state()
    one, two = (fill_tensor(Fill("normal", seed=seed), "float32", (20,)) for seed in (1, 2))
    assert not torch.equal(one, two)
    assert torch.equal(torch.get_rng_state(), before)


def test_other_defaults_do_not_change_the_tensor():
    expected = fill_tensor(Fill("decimals"), "float32", (9,))
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(fill_tensor(Fill("decimals"), "float32", (9,)), expected)
    finally:
        torch.set_default_dtype(torch.float32)


def test_tensors_are_made_for_other_devices():
    assert fill_tensor(Fill("normal"), "float32", (2, 3), device="meta").device.type == "meta"


def test_an_empty_dimension_has_index_zero_only():
    assert fill_tensor(Fill("index_random"), "int64", (0,), bound=0).tolist() == []
    assert fill_tensor(Fill("index_last"), "int64", (2,), bound=0).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", ["floaty", "float4_e2m1fn_x2", "nn", "quint8"])
def test_dtypes_that_cannot_be_filled_are_refused(dtype):
    with pytest.raises(ValueError, match="cannot fill a tensor of dtype"):
        fill_tensor(Fill("zeros"), dtype, (2,))


def test_index_fills_ask_for_their_bound():
    with pytest.raises(ValueError, match="pass bound="):
        fill_tensor(Fill("index_random"), "int64", (2,))


def test_negative_sizes_are_refused():
    with pytest.raises(ValueError, match="a size is negative"):
        fill_tensor(Fill("zeros"), "float32", (2, -1))
