"""Comparison: what counts as another answer, and in which order it is looked for."""

import math

import pytest

torch = pytest.importorskip("torch")

from minimizer.oracle.compare import compare, compare_leaf, tolerance, ulp  # noqa: E402

INF, NAN = float("inf"), float("nan")


def flavour(actual, expected):
    mismatch, _ = compare_leaf(0, actual, expected)
    return mismatch.flavour if mismatch else None


def t(*elements, dtype=None):
    return torch.tensor(elements, dtype=dtype)


ROW = torch.arange(6.0)
COMPLEX = t(1 + 2j)


@pytest.mark.parametrize(
    ("actual", "expected", "found"),
    [
        (t(1.0, 2.0), t(1.0, 2.0), None),
        (t(1.0, 2.1), t(1.0, 2.0), "values"),
        (t(1.0, dtype=torch.float64), t(5.0), "dtype"),
        (t(1), t(1.0), "dtype"),
        (t(1), t(True), "dtype"),
        (ROW.view(2, 3), ROW.view(3, 2), "shape"),
        (torch.zeros(1, 1), torch.zeros(1), "shape"),
        (torch.empty(2, device="meta"), torch.empty(2), "device"),
        (t(NAN, 1.0), t(NAN, 1.0), None),
        (t(NAN), t(1.0), "values"),
        (t(1.0), t(NAN), "values"),
        (t(INF), t(INF), None),
        (t(-INF), t(INF), "values"),
        (t(INF), t(NAN), "values"),
        (t(3.4e38), t(INF), "values"),
        (t(-0.0), t(0.0), None),
        (t(1.0 + 1e-6), t(1.0), None),
        (t(1.0 + 1e-4), t(1.0), "values"),
        (t(1e-6), t(0.0), None),
        (t(1e-4), t(0.0), "values"),
        (t(1.0005, dtype=torch.float16), t(1.0, dtype=torch.float16), None),
        (t(1.01, dtype=torch.float16), t(1.0, dtype=torch.float16), "values"),
        (t(1.01, dtype=torch.bfloat16), t(1.0, dtype=torch.bfloat16), None),
        (t(1.1, dtype=torch.bfloat16), t(1.0, dtype=torch.bfloat16), "values"),
        (t(1 + 1e-6, dtype=torch.float64), t(1.0, dtype=torch.float64), "values"),
        (t(65504.0, dtype=torch.float16), t(INF, dtype=torch.float16), "values"),
        (t(1 + 2j), t(1 + 2j), None),
        (t(1 + 2.1j), t(1 + 2j), "values"),
        (t(complex(NAN, 1)), t(complex(NAN, 1)), None),
        (t(complex(NAN, 1)), t(complex(1, NAN)), "values"),
        (t(complex(INF, -INF)), t(complex(INF, INF)), "values"),
        (COMPLEX.conj(), t(1 - 2j), None),
        (t(127, dtype=torch.int8), t(-128, dtype=torch.int8), "values"),
        (t(2**62 + 1), t(2**62), "values"),
        (t(True, False), t(True, True), "values"),
        (t(True, True), t(True, True), None),
        (t(3, dtype=torch.uint16), t(65535, dtype=torch.uint16), "values"),
        (t(3, dtype=torch.uint64), t(3, dtype=torch.uint64), None),
        (t(255, dtype=torch.uint8), t(255, dtype=torch.uint8), None),
        (ROW.view(2, 3).t(), ROW.view(2, 3).t().contiguous(), "stride"),
        (ROW.view(2, 3).t() + 1, ROW.view(2, 3).t().contiguous(), "values"),
        (ROW.as_strided((1, 6), (99, 1)), ROW.view(1, 6), None),
        (torch.empty_strided((0, 3), (7, 2)), torch.empty(0, 3), None),
        (torch.empty(0, dtype=torch.int32), torch.empty(0), "dtype"),
        (ROW, 3.0, "type"),
        (3.0, ROW, "type"),
        (3, 3.0, "type"),
        (True, 1, "type"),
        (None, None, None),
        (None, 0, "type"),
        (3, 3, None),
        (3, 4, "values"),
        ("a", "b", "values"),
        (NAN, NAN, None),
        (INF, INF, None),
        (1.0, INF, "values"),
        (-INF, INF, "values"),
        (INF, 1.0, "values"),
        (1.0 + 1e-7, 1.0, None),
        (1.1, 1.0, "values"),
    ],
)
def test_leaves(actual, expected, found):
    assert flavour(actual, expected) == found


def test_every_wrong_element_is_marked():
    mismatch, ratio = compare_leaf(3, t(1.0, 9.0, NAN, 4.0), t(1.0, 2.0, 3.0, 4.0))
    assert mismatch.index == 3
    assert mismatch.wrong.tolist() == [False, True, True, False]
    assert mismatch.finite
    assert (
        mismatch.figures
        == "2 of 4 elements differ; worst at [1]: eager 2.0, compiled 9.0 (float32, off by 7 or 2.9e+07 ulps)"
    )
    assert ratio == math.inf


def test_wrong_values_may_all_be_special():
    mismatch, _ = compare_leaf(0, torch.full((2, 2), NAN), torch.ones(2, 2))
    assert not mismatch.finite
    assert mismatch.figures == "4 of 4 elements differ; worst at [0, 0]: eager 1.0, compiled nan (float32)"


def test_the_ratio_tells_how_near_a_right_answer_is():
    mismatch, ratio = compare_leaf(0, t(1.0 + 5e-6), t(1.0))
    assert mismatch is None
    assert ratio == pytest.approx(5e-6 / 1.13e-5, rel=0.05)
    assert compare_leaf(0, t(1.0), t(1.0))[1] == 0.0
    assert compare_leaf(0, t(2.0), t(1.0))[1] == pytest.approx(1 / 1.13e-5, rel=0.01)
    assert compare_leaf(0, torch.empty(0), torch.empty(0)) == (None, 0.0)


def test_a_place_in_a_column():
    mismatch, _ = compare_leaf(0, t([0.0, 1.0], [2.0, 9.0]).t(), t([0.0, 1.0], [2.0, 3.0]).t())
    assert "worst at [1, 1]: eager 3.0, compiled 9.0" in mismatch.figures


def test_all_outputs_are_compared():
    mismatches, ratio = compare([t(1.0), 4, t(2.0)], [t(1.0), 3, t(1.0)])
    assert [(m.index, m.flavour) for m in mismatches] == [(1, "values"), (2, "values")]
    assert ratio > 1
    assert compare([], []) == ([], 0.0)


def test_a_missing_output_is_another_structure():
    mismatches, _ = compare([t(1.0)], [t(1.0), t(2.0)])
    assert [(m.flavour, m.figures) for m in mismatches] == [
        ("structure", "eager returns 2 values, compiled returns 1")
    ]


@pytest.mark.parametrize("dtype", ["int8", "int64", "bool"])
def test_exact_types_have_no_tolerance(dtype):
    assert tolerance(getattr(torch, dtype)) == (0.0, 0.0)


def test_eight_bit_floats_have_a_wide_one():
    assert tolerance(torch.float8_e4m3fn)[0] > tolerance(torch.float16)[0]
    eight = t(1.0, 2.0).to(torch.float8_e4m3fn)
    assert compare_leaf(0, eight, eight.clone()) == (None, 0.0)


F16, BF16, F32, F64 = torch.float16, torch.bfloat16, torch.float32, torch.float64


@pytest.mark.parametrize(
    ("value", "dtype", "step"),
    [
        (1.0, F32, 2**-23),
        (1.99, F32, 2**-23),
        (2.0, F32, 2**-22),
        (0.75, F16, 2**-11),
        (1000.0, BF16, 2**2),
        (3.0, F64, 2**-51),
        (0.0, F32, 2**-149),
        (1e-40, F32, 2**-149),
        (2.0, torch.complex64, 2**-22),
        (448.0, torch.float8_e4m3fn, 2**5),
        (7, torch.int32, 0.0),
        (1, torch.bool, 0.0),
    ],
)
def test_a_unit_in_the_last_place(value, dtype, step):
    assert ulp(value, dtype) == step


@pytest.mark.parametrize(
    ("actual", "expected", "figures"),
    [
        (t(1.5), t(1.0), "(float32, off by 0.5 or 4.2e+06 ulps)"),
        (t(1.25, dtype=F16), t(1.0, dtype=F16), "(float16, off by 0.25 or 2.6e+02 ulps)"),
        (t(260.0, dtype=BF16), t(256.0, dtype=BF16), ""),
        (t(288.0, dtype=BF16), t(256.0, dtype=BF16), "(bfloat16, off by 32 or 16 ulps)"),
        (t(0.5), t(0.0), "(float32, off by 0.5)"),
        (t(5), t(3), "(int64, off by 2)"),
        (t(True), t(False), "(bool)"),
        (t(NAN), t(1.0), "(float32)"),
        (t(INF), t(1.0), "(float32)"),
        (t(3 + 4j), t(0 + 4j), "(complex64, off by 3 or 6.3e+06 ulps)"),
    ],
)
def test_an_error_is_given_absolutely_and_in_ulps(actual, expected, figures):
    mismatch, _ = compare_leaf(0, actual, expected)
    assert (mismatch.figures if mismatch else "").endswith(figures)
    assert bool(mismatch) == bool(figures)
