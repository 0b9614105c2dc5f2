"""Cases: stored and read back whole, and nothing else is read."""

import json
import math
from dataclasses import replace

import pytest

from minimizer.case import (
    Case,
    Literal,
    Settings,
    Stored,
    Value,
    case_from_json,
    case_to_json,
    contiguous_stride,
    value_from_json,
    value_to_json,
    with_program,
    with_values,
)
from minimizer.program import Input, Node, Program, Ref, Symbol, TensorMeta
from strategies import Fill

META = TensorMeta("float32", ("s0", 4), (4, 1))
PROGRAM = Program(
    (Input("x", META), Input("y", TensorMeta("int8", ("2*s0",), (1,)))),
    (Node("z", "aten.relu.default", (Ref("x"),), meta=META),),
    (Ref("z"), Ref("y")),
    symbols=(Symbol("s0", 2, 64, 8),),
)
FILLED = Value("float32", (3, 4), Fill("uniform", seed=7, low=-1.0, high=float("inf")))
TAKEN = Value("int8", (6,), Stored("example_1"), stride=(2,), bound=9, take=(6,))
CASE = Case(
    PROGRAM,
    (FILLED, TAKEN),
    Settings(
        path="inductor",
        config=(("cpp.simdlen", 1), ("freezing", True)),
        environment=(("OMP_NUM_THREADS", "1"),),
        modules=("ops.py",),
        manner="reload",
    ),
    earlier=((replace(FILLED, shape=(9, 4)), replace(TAKEN, shape=(18,), take=(18,))),),
)


def stored(case):
    return case_from_json(json.loads(json.dumps(case_to_json(case))))


def test_a_case_survives_json():
    assert stored(CASE) == CASE


@pytest.mark.parametrize(
    "value",
    [
        FILLED,
        TAKEN,
        Value("float64", (2,), Literal((float("inf"), -1.5)), device="cuda:0"),
        Value("complex64", (1,), Literal((complex(1, float("inf")),))),
        Value("bool", (), Literal((True,))),
        Value("float32", (0, 3), Literal(())),
    ],
)
def test_values_survive_json(value):
    assert value_from_json(json.loads(json.dumps(value_to_json(value)))) == value


def test_a_nan_element_survives_json():
    value = Value("float32", (2,), Literal((float("nan"), -0.0)))
    elements = value_from_json(json.loads(json.dumps(value_to_json(value)))).data.elements
    assert math.isnan(elements[0])
    assert math.copysign(1, elements[1]) == -1


def damaged(change):
    plain = case_to_json(CASE)
    change(plain)
    return plain


@pytest.mark.parametrize(
    "change",
    [
        lambda plain: plain.pop("program"),
        lambda plain: plain.pop("values"),
        lambda plain: plain.pop("settings"),
        lambda plain: plain["values"].pop(),
        lambda plain: plain.update(values=3),
        lambda plain: plain.update(values=["x", "y"]),
        lambda plain: plain.update(settings=[]),
        lambda plain: plain["settings"].update(calls=-4),
        lambda plain: plain["settings"].update(manner="upside down"),
        lambda plain: plain.update(earlier=[[{}]]),
        lambda plain: plain["settings"].update(config=[["a", 1]]),
        lambda plain: plain["settings"].update(modules=None),
        lambda plain: plain.update(program={"Ref": {"name": "x"}}),
        lambda plain: plain.update(program={"Program": {"inputs": 3, "nodes": [], "output": []}}),
        lambda plain: plain.update(program="Program"),
        lambda plain: plain.update(program={"Program": {"inputs": []}}),
        lambda plain: plain["values"][0].pop("dtype"),
        lambda plain: plain["values"][0].pop("shape"),
        lambda plain: plain["values"][0].pop("fill"),
        lambda plain: plain["values"][0].update(shape=3),
        lambda plain: plain["values"][0].update(shape="34"),
        lambda plain: plain["values"][0].update(shape=[3, -4]),
        lambda plain: plain["values"][0].update(stride=["4", "1"]),
        lambda plain: plain["values"][0].update(dtype=32),
        lambda plain: plain["values"][0].update(fill={"kind": "no such kind"}),
        lambda plain: plain["values"][0].update(fill={"kind": "zeros", "sead": 1}),
        lambda plain: plain["values"][0].update(fill=[]),
    ],
)
def test_a_damaged_case_is_a_value_error(change):
    with pytest.raises(ValueError):
        case_from_json(damaged(change))


@pytest.mark.parametrize("plain", [[], "case", None, 3])
def test_something_else_altogether_is_a_value_error(plain):
    with pytest.raises(ValueError):
        case_from_json(plain)


def test_values_and_inputs_are_as_many():
    with pytest.raises(ValueError, match="2 inputs but 1 values"):
        replace(CASE, values=(FILLED,))


def test_sizes_are_read_where_a_symbol_stands_alone():
    assert CASE.sizes == {"s0": 3}
    only = replace(PROGRAM, inputs=(PROGRAM.inputs[1],))
    assert replace(CASE, program=only, values=(TAKEN,), earlier=()).sizes == {}


def test_the_key_sees_everything_but_names():
    renamed = replace(PROGRAM, nodes=(replace(PROGRAM.nodes[0], name="w"),), output=(Ref("w"), Ref("y")))
    others = [
        replace(CASE, values=(replace(FILLED, data=Fill("ones")), TAKEN)),
        replace(CASE, values=(FILLED, replace(TAKEN, stride=(1,)))),
        replace(CASE, earlier=()),
        replace(CASE, earlier=(CASE.values,)),
        replace(CASE, settings=replace(CASE.settings, config=(("cpp.simdlen", 1),))),
        replace(CASE, program=replace(PROGRAM, output=(Ref("z"),))),
    ]
    assert replace(CASE, program=renamed).key == CASE.key
    assert len({CASE.key, *(other.key for other in others)}) == len(others) + 1


def test_a_case_stored_with_a_number_of_calls_opens():
    plain = case_to_json(replace(CASE, earlier=()))
    assert "earlier" not in plain
    plain["settings"]["calls"] = 3
    assert case_from_json(plain).earlier == (CASE.values, CASE.values)


def test_each_call_has_as_many_values_as_there_are_inputs():
    with pytest.raises(ValueError, match="2 inputs but 1 values"):
        replace(CASE, earlier=((FILLED,),))


def test_what_calls_have_in_common_they_keep():
    zeros = replace(FILLED, data=Fill("zeros"))
    alike = replace(CASE, earlier=(CASE.values, (FILLED, replace(TAKEN, stride=None))))
    assert with_values(alike, (zeros, TAKEN)).earlier == (
        (zeros, TAKEN),
        (zeros, replace(TAKEN, stride=None)),
    )
    smaller = (replace(FILLED, shape=(2, 4)), replace(TAKEN, shape=(4,)))
    assert with_values(alike, smaller).earlier == (smaller, alike.earlier[1])


def test_values_follow_their_inputs():
    swapped = replace(PROGRAM, inputs=(PROGRAM.inputs[1], PROGRAM.inputs[0], Input("new", META)))
    new = Value("float32", (3, 4), Fill("zeros"))
    case = with_program(CASE, swapped, {"new": new})
    assert case.values == (TAKEN, FILLED, new)
    assert case.earlier == ((*reversed(CASE.earlier[0]), new),)
    assert case.value_of("x") == FILLED
    with pytest.raises(KeyError):
        case.value_of("z")
    with pytest.raises(KeyError):
        with_program(CASE, swapped)


@pytest.mark.parametrize(
    ("shape", "stride"), [((), ()), ((5,), (1,)), ((2, 3, 4), (12, 4, 1)), ((2, 0, 4), (4, 4, 1))]
)
def test_row_major_strides(shape, stride):
    assert contiguous_stride(shape) == stride


def test_number_of_elements():
    assert Value("float32", (2, 3, 4), Fill("zeros")).numel == 24
    assert Value("float32", (), Fill("zeros")).numel == 1
