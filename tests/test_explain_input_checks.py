"""Messages of AOTInductor's own input checks: misuse, with names for numbers."""

import pytest
from explained import only

from minimizer.explain.kinds import device_name, dtype_name


@pytest.mark.parametrize(
    ("text", "says", "fix"),
    [
        (
            "input_handles[2]: unmatched dtype, expected: 4(at::kLong), but got: 3",
            "input 2 is int32, the package was compiled for int64",
            "to(torch.int64)",
        ),
        (
            "input_handles[0]: unmatched device type, expected: 11(cuda), but got: 0",
            "input 0 is on cpu, the package was compiled for cuda",
            "to('cuda')",
        ),
        (
            "input_handles[0]: unmatched device type, expected: 00(cpu), but got: 14",
            "input 0 is on meta, the package was compiled for cpu",
            "to('cpu')",
        ),
        (
            "input_handles[1]: unmatched dim value at 2, expected: 7, but got: 8",
            "dim 2 of input 1 is 8, the package was compiled for 7 only",
            "dim dynamic",
        ),
        (
            "input_handles[3]: dim value is too small at 1, expected it to be >= 4, but got: 1",
            "dim 1 of input 3 is 1, the package was compiled for at least 4",
            "at least 4",
        ),
        (
            "input_handles[0]: dim value is too large at 0, expected to be <= 16, but got: 17",
            "dim 0 of input 0 is 17, the package was compiled for at most 16",
            "at most 16",
        ),
        (
            "input_handles[1]: unmatched stride value at 0, expected: 8, but got: 1",
            "input 1 has stride 1 in dim 0, the package was compiled for 8",
            "contiguous",
        ),
    ],
)
def test_input_checks_are_misuse_with_names_for_numbers(text, says, fix):
    explanation, where = only(text)
    assert explanation.says == says
    assert "misuse" in explanation.name
    assert fix in explanation.fixes[0] + explanation.fixes[-1]


def test_a_bound_of_two_may_come_from_specialisation():
    text = "input_handles[0]: dim value is too small at 0, expected it to be >= 2, but got: 1"
    assert "0 and 1" in only(text)[0].means


def test_unequal_dims_are_not_blamed_on_a_fake_function():
    text = (
        "expected size 8==8, stride 7==5 at dim=0; expected size 7==5, stride 1==1 at dim=1\nError in op: "
        "input"
    )
    explanation, _ = only(text)
    assert explanation.says == "dim 0 has stride 7, not 5; dim 1 has size 7 where 5 is needed"
    assert "misuse" in explanation.cause


def test_a_wrong_fake_function_is_named():
    text = "expected size 4==3, stride 1==1 at dim=0\nError in op: torch.ops.mine.halve.default"
    explanation, where = only(text)
    assert where["operator"] == "torch.ops.mine.halve.default"
    assert "register_fake" in explanation.fixes[0]


def test_numbers_of_dtypes_and_devices():
    assert [dtype_name(k) for k in (0, 5, 11, 15, 23, 29, 44)] == [
        *("uint8", "float16", "bool", "bfloat16", "float8_e5m2", "uint64", "float8_e8m0fnu")
    ]
    assert [device_name(k) for k in (0, 1, 12, 13, 14, 20)] == [
        *("cpu", "cuda", "xpu", "mps", "meta", "privateuseone")
    ]
    assert dtype_name(-1) == "dtype number -1"
