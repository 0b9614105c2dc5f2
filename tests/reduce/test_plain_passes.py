"""Towards what a person knows by heart: each pass by itself, and what must stay."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from builder import Builder, check, meta, targets

from minimizer.case import Case, Literal, Stored, Value
from minimizer.program import Ref, Symbol, TensorMeta, Torch
from minimizer.reduce.cut import Observations
from minimizer.reduce.passes import select
from minimizer.reduce.search import reduce
from minimizer.reduce.size import size_key

BATCH = Symbol("s0", 2, 64, 4)


def one_pass(
    name: str, case: Case, observed: Observations, judge: Callable[[Case], bool] = lambda case: True
) -> Case:
    """The case after a single pass; every step is well-formed and a smaller one."""
    sizes = [size_key(case)]

    def accept(better: Case) -> None:
        check(better)
        sizes.append(size_key(better))
        assert sizes[-1] < sizes[-2]

    return reduce(case, observed, judge, passes=select([name]), on_accept=accept).case


def test_operators_that_could_be_any_other_become_plain() -> None:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    x = b.input("x", ("s0", 8))
    y = b.call("leaky_relu", x, 0.2)
    z = b.call("aten.mul.Tensor", y, x)
    case = b.case(b.call("aten.amax.default", z, [1], True, shape=("s0", 1)))
    result = one_pass("plain-operators", case, b.observed())
    assert targets(result) == ["neg", "add", "sum"]
    assert result.program.nodes[0].args == (x,)
    assert result.program.nodes[2].args[1:] == ([1], True)
    kept = one_pass("plain-operators", case, b.observed(), lambda c: "amax" in targets(c))
    assert targets(kept) == ["neg", "add", "amax"]


def test_the_last_operator_is_what_it_is_about() -> None:
    b = Builder()
    case = b.case(b.call("gelu", b.input("x", (4,))))
    assert targets(one_pass("plain-operators", case, b.observed())) == ["gelu"]


def test_a_write_becomes_a_new_value() -> None:
    b = Builder()
    x, y = b.input("x", (4,)), b.input("y", (4,))
    copy = b.call("clone", x)
    b.call("aten.add_.Tensor", copy, y, mutates=(0,), name="written")
    case = b.case((b.call("exp", copy), copy))
    result = one_pass("functional", case, b.observed())
    assert targets(result) == ["clone", "add", "exp"]
    assert result.program.nodes[2].args == (Ref("written"),)
    assert result.program.outputs == (result.program.nodes[2].name, "written")


def test_a_write_to_a_view_stays_a_write() -> None:
    b = Builder()
    copy = b.call("clone", b.input("x", (4, 4)))
    view = b.call("aten.select.int", copy, 0, 0, shape=(4,))
    b.call("aten.fill_.Scalar", view, 0.0, mutates=(0,))
    case = b.case(b.call("exp", copy))
    assert one_pass("functional", case, b.observed()) == case


def test_parameters_become_inputs_unless_they_matter() -> None:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    x, w, v = b.input("x", ("s0", 8)), b.parameter("w", (8, 8)), b.parameter("v", (8, 8))
    case = b.case(b.call("mm", b.call("mm", x, w), v))
    free = one_pass("state-as-input", case, b.observed())
    assert free.program.state == ()
    assert [i.name for i in free.program.inputs] == ["x", "w", "v"]
    assert free.value_of("w").shape == (8, 8)
    bound = one_pass("state-as-input", case, b.observed(), lambda c: len(c.program.state) >= 1)
    assert [s.name for s in bound.program.state] == ["v"]


def test_a_number_takes_the_place_of_an_input() -> None:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    x, y = b.input("x", ("s0", 8)), b.input("y", (8,))
    case = b.case(b.call("aten.mul.Tensor", x, y))
    result = one_pass("constants", case, b.observed())
    assert result.program.nodes[0].args == (x, 1.0)
    assert [i.name for i in result.program.inputs] == ["x"]


@pytest.mark.parametrize("operator", ["cat", "mm"])
def test_only_where_an_operator_takes_numbers(operator: str) -> None:
    b = Builder()
    x, y = b.input("x", (4, 4)), b.input("y", (4, 4))
    case = b.case(b.call(operator, x, y))
    assert one_pass("constants", case, b.observed()) == case


@pytest.mark.parametrize(
    ("dtype", "plain"), [("float16", "float32"), ("float64", "float32"), ("uint8", "int64"), ("bool", "bool")]
)
def test_dtypes_become_plain_throughout(dtype: str, plain: str) -> None:
    b = Builder()
    x = b.input("x", (4,), dtype)
    y = b.call("relu", x)
    made = b.call("aten.zeros_like.default", y, kwargs={"dtype": Torch(dtype)})
    case = b.case(b.call("aten.add.Tensor", y, made))
    result = one_pass("dtypes", case, b.observed())
    assert result.program.inputs[0].meta.dtype == result.values[0].dtype == plain
    assert {n.meta.dtype for n in result.program.nodes} == {plain}
    assert result.program.nodes[1].kwargs == (("dtype", Torch(plain)),)


def test_elements_follow_their_dtype_and_stored_ones_keep_it() -> None:
    b = Builder()
    case = b.case(b.call("relu", b.input("x", (2,), "int8")))
    listed = Case(case.program, (Value("int8", (2,), Literal((1, -128))),))
    assert one_pass("dtypes", listed, b.observed()).values == (Value("int64", (2,), Literal((1, -128))),)
    stored = Case(case.program, (Value("int8", (2,), Stored("x.pt")),))
    assert one_pass("dtypes", stored, b.observed()) == stored


@pytest.mark.parametrize(("least", "found"), [(1, 1), (2, 2), (5, 16), (17, 64)])
def test_a_static_size_becomes_a_small_one_wherever_it_is(least: int, found: int) -> None:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    x, y = b.input("x", ("s0", 64)), b.input("y", (64, 3))
    z = b.call("mm", x, y, shape=("s0", 3))
    case = b.case((z, b.call("aten.view.default", x, [-1, 64], shape=("s0", 64))))
    result = one_pass(
        "static-sizes", case, b.observed(), lambda c: c.program.inputs[0].meta.shape[1] >= least
    )
    assert result.program.inputs[0].meta.shape == ("s0", found)
    assert result.program.inputs[1].meta.shape == (found, 1)
    assert result.program.nodes[1].args[1] == [-1, found]
    assert result.values[0].shape == (17, found)


def test_sizes_of_parameters_and_odd_strides_stay() -> None:
    b = Builder()
    x, w = b.input("x", (4, 6)), b.parameter("w", (6, 6))
    case = b.case(b.call("mm", x, w))
    result = one_pass("static-sizes", case, b.observed())
    assert result.program.inputs[0].meta.shape == (1, 6)
    odd = Builder()
    odd.input("x", (4, 6))
    odd.inputs[0] = type(odd.inputs[0])("x", TensorMeta("float32", (4, 6), (1, 4)))
    case = odd.case(odd.call("relu", Ref("x"), shape=meta((4, 6))))
    assert one_pass("static-sizes", case, odd.observed()) == case
