"""Every way of breaking a promise, with what to do about it in one line."""

from dataclasses import replace

import pytest

from minimizer.case import Value
from minimizer.contract import Misuse, check, guard_refuses, laid_out
from minimizer.program import Input, Program, Symbol, TensorMeta
from strategies import Fill

X = Input("x", TensorMeta("float32", ("n", 10), (10, 1)))
Y = Input("y", TensorMeta("float32", ("n", 16), (16, 1)))
PAIR = Program((X, Y), (), (), symbols=(Symbol("n", 2, 64, 4),))


def value(*shape, dtype="float32", stride=None, device="cpu"):
    return Value(dtype, shape, Fill("normal"), stride=stride, device=device)


def program(*metas, **symbols):
    inputs = tuple(Input(name, meta) for name, meta in zip("abcd", metas))
    return Program(inputs, (), (), symbols=tuple(Symbol(name, *ends, 8) for name, ends in symbols.items()))


def vector(size, stride=1):
    return TensorMeta("float32", (size,), (stride,))


BROKEN = {
    "dtype": (
        (value(4, 10, dtype="float64"), value(4, 16)),
        Misuse(
            "x",
            "dtype float32",
            "dtype float64",
            "convert it with x.to(torch.float32), or export with torch.float64",
        ),
    ),
    "size too large": (
        (value(65, 10), value(65, 16)),
        Misuse(
            "dim 0 of x",
            "a size with 2 <= n <= 64",
            "size 65",
            "stay in the range, or export with Dim('n', min=2, max=65)",
        ),
    ),
    "size too small": (
        (value(1, 10), value(1, 16)),
        Misuse(
            "dim 0 of x",
            "a size with 2 <= n <= 64",
            "size 1",
            "stay in the range, or export with Dim('n', min=1, max=64)",
        ),
    ),
    "static dim": (
        (value(4, 11), value(4, 16)),
        Misuse(
            "x",
            "size 10 in dim 1 (it is static)",
            "size 11",
            "pass 10 there, or export with dim 1 of x dynamic",
        ),
    ),
    "sizes that differ": (
        (value(5, 10), value(4, 16)),
        Misuse(
            "y",
            "size 5 in dim 0 (n, as dim 0 of x)",
            "size 4",
            "dim 0 of y and dim 0 of x must be equal",
        ),
    ),
    "stride": (
        (value(4, 10, stride=(1, 4)), value(4, 16)),
        Misuse(
            "x",
            "stride 10 in dim 0",
            "stride 1",
            "pass x.contiguous(), or export with an example of this layout",
        ),
    ),
    "too few dims": (
        (value(10), value(4, 16)),
        Misuse(
            "x",
            "2 dims [n, 10]",
            "1 dims",
            "pass a tensor of 2 dims, for example through x.unsqueeze(0)",
        ),
    ),
    "too many dims": (
        (value(1, 4, 10), value(4, 16)),
        Misuse(
            "x",
            "2 dims [n, 10]",
            "3 dims",
            "pass a tensor of 2 dims, for example through x.squeeze(0)",
        ),
    ),
    "argument missing": (
        (value(4, 10),),
        Misuse("inputs", "2 tensors (x, y)", "1", "pass every argument that the program was exported with"),
    ),
    "meta device": (
        (value(4, 10, device="meta"), value(4, 16)),
        Misuse("x", "device cpu", "device meta", "a meta tensor has no data; pass a real tensor"),
    ),
    "another device": (
        (value(4, 10), value(4, 16, device="cuda:0")),
        Misuse(
            "y",
            "device cpu",
            "device cuda:0",
            "move it with y.to('cpu'), or export and compile for 'cuda:0'",
        ),
    ),
}


@pytest.mark.parametrize(("values", "misuse"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_promises(values, misuse):
    assert check(PAIR, values) == misuse
    assert "\n" not in str(misuse)


@pytest.mark.parametrize("size", [2, 17, 64])
def test_kept_promises(size):
    assert check(PAIR, (value(size, 10), value(size, 16, stride=(16, 1)))) is None


def test_a_message_names_input_expectation_and_fix():
    misuse = check(PAIR, (value(4, 11), value(4, 16)))
    assert str(misuse) == (
        "x: expected size 10 in dim 1 (it is static), got size 11; "
        "pass 10 there, or export with dim 1 of x dynamic"
    )


def test_an_open_range_has_a_low_end():
    misuse = check(program(vector("n"), n=(3, None)), (value(2),))
    assert misuse.expected == "a size with 3 <= n"
    assert misuse.fix == "stay in the range, or export with Dim('n', min=2)"
    assert check(program(vector("n"), n=(3, None)), (value(10**9),)) is None


def test_related_sizes():
    related = program(vector("n"), vector("2*n + 1"), n=(2, 64))
    assert check(related, (value(3), value(7))) is None
    assert check(related, (value(3), value(8))) == Misuse(
        "b", "size 7 in dim 0 (2*n + 1)", "size 8", "dim 0 of b must be 2*n + 1"
    )


def test_a_multiple_that_nothing_else_carries():
    even = program(vector("2*n"), vector("3*n"), n=(2, 64))
    assert check(even, (value(8), value(12))) is None
    assert check(even, (value(7), value(12))) == Misuse(
        "a", "a size of the form 2*n in dim 0", "size 7", "dim 0 of a must be 2*n"
    )
    assert check(even, (value(8), value(9))).expected == "size 12 in dim 0 (3*n)"
    assert check(even, (value(2), value(3))).expected == "a size with 2 <= n <= 64"


def test_what_shapes_cannot_tell_is_not_claimed():
    unknown = program(TensorMeta("float32", ("n * m",), (1,)), n=(2, 64), m=(2, 64))
    assert check(unknown, (value(35),)) is None


def test_strides_of_single_elements_and_empty_tensors_are_free():
    fixed = program(TensorMeta("float32", (1, "n"), ("n", 1)), n=(0, 64))
    assert check(fixed, (value(1, 5, stride=(99, 1)),)) is None
    assert check(fixed, (value(1, 0, stride=(7, 7)),)) is None
    assert check(fixed, (value(1, 5, stride=(5, 2)),)).expected == "stride 1 in dim 1"


def test_an_exported_layout_that_is_not_contiguous():
    columns = program(TensorMeta("float32", ("n", 4), (1, "n")), n=(2, 64))
    assert check(columns, (value(3, 4, stride=(1, 3)),)) is None
    assert check(columns, (value(3, 4),)).fix == (
        "pass a.t().contiguous().t(), or export with an example of this layout"
    )


@pytest.mark.parametrize(
    ("shape", "stride", "code"),
    [
        (("n", 3, 4, 5), (60, 1, 15, 3), "a.contiguous(memory_format=torch.channels_last)"),
        (("n", 3, 4), (4, "4*n", 1), "a.permute([1, 0, 2]).contiguous().permute([1, 0, 2])"),
        ((2, 3, "n"), (1, "2*n", 2), "a.permute([1, 2, 0]).contiguous().permute([2, 0, 1])"),
        (("n", 3), (6, 2), "it with the exported layout"),
        (("n", 3), (0, 1), "it with the exported layout"),
    ],
)
def test_the_code_for_a_layout(shape, stride, code):
    exported = program(TensorMeta("float32", shape, stride), n=(2, 64))
    sizes = [7 if size == "n" else size for size in shape]
    wrong = value(*sizes, stride=(1000, 100, 10, 9)[: len(sizes)])
    assert check(exported, (wrong,)).fix == f"pass {code}, or export with an example of this layout"


def test_what_an_input_is_called():
    misuse = check(PAIR, (value(4, 10), value(5, 16)), ["batch['x']", "batch['y']"])
    assert misuse.fix == "dim 0 of batch['y'] and dim 0 of batch['x'] must be equal"


def test_elements_without_strides_take_those_of_the_export():
    columns = program(TensorMeta("float32", ("n", 4), (1, "n")), vector("2*m", 3), n=(2, 64), m=(2, 64))
    placed = laid_out(columns, (value(5, 4), value(8)))
    assert [v.stride for v in placed] == [(1, 5), (3,)]
    assert check(columns, placed) is None


def test_what_breaks_the_contract_is_laid_out_as_it_is():
    columns = program(TensorMeta("float32", ("n", 4), (1, "n")), n=(2, 64))
    for values in ((value(5),), (), (value(5, 4), value(3))):
        assert laid_out(columns, values)[1:] == values[1:]
    assert laid_out(columns, (value(5),)) == (value(5),)
    assert laid_out(program(TensorMeta("float32", (4,), ("k",)), k=(2, 9)), (value(4),)) == (value(4),)


def test_a_guard_that_refuses():
    misuse = guard_refuses("Guard failed: x.size()[0] % 8 == 0\nfurther words")
    assert str(misuse) == (
        "inputs: expected x.size()[0] % 8 == 0 (a guard of the exported program), got inputs that break it; "
        "pass inputs that keep it, or export again without what asks for it"
    )


def test_a_stride_may_depend_on_another_input_s_size():
    rows = program(vector("m"), TensorMeta("float32", ("n", 4), ("m", 1)), n=(2, 64), m=(2, 64))
    assert check(rows, (value(9), value(3, 4, stride=(9, 1)))) is None
    assert check(rows, (value(9), value(3, 4))).expected == "stride 9 in dim 0"


def test_one_gpu_has_two_names():
    on_gpu = program(replace(vector(4), device="cuda:0"))
    assert check(on_gpu, (value(4, device="cuda"),)) is None
