"""Programs as data: stored and read back, told apart up to names, and pruned without losing effects."""

import json
import math
from dataclasses import replace

import pytest

from minimizer.program import (
    Device,
    Graph,
    Input,
    Node,
    Program,
    Ref,
    State,
    Sym,
    Symbol,
    TensorMeta,
    Torch,
    Tree,
    from_json,
    leaves,
    map_args,
    references,
    rename,
    to_json,
)

M = TensorMeta("float32", ("s0", 4), (4, 1))
BODY = Program(
    (Input("t", TensorMeta("float32", ("s0",), (1,))), Input("u", TensorMeta("float32", ("s1",), (1,)))),
    (Node("r", "aten.narrow.default", (Ref("t"), 0, 0, Sym("s1"))),),
    (Ref("r"),),
)
WHOLE = Program(
    inputs=(
        Input("x", M),
        Input("y", TensorMeta("int64", ("s1", "s0 + s1"), ("s0 + s1", 1))),
    ),
    nodes=(
        Node("a", "aten.relu.default", (Ref("x"),), meta=M, where="model.py:3 relu(x)", module="block.0"),
        Node(
            "b",
            "aten.to.dtype",
            (Ref("a"), Torch("float64")),
            (("device", Device("cpu")), ("value", 0.5)),
            M,
        ),
        Node("c", "higher_order.cond", (Ref("p"), Graph("body"), Graph("body"), [Ref("x"), None])),
        Node("d", "operator.getitem", (Ref("c"), 0)),
        Node("e", "aten.add_.Tensor", (Ref("b"), Ref("w")), meta=M, mutates=(0,)),
    ),
    output=Tree("dict", ("out", 3), ((Ref("e"), Sym("s0 * s1")), slice(None, Sym("s0"), 2))),
    state=(
        State("w", "parameter", M, "state_w"),
        State("p", "buffer", TensorMeta("bool", (), ()), "state_p"),
    ),
    symbols=(Symbol("s0", 2, 64, 8), Symbol("s1", 0, None, 3)),
    args=(Tree("dict", ("k",), (Ref("x"),)), [Ref("y"), None]),
    kwargs=(("scale", 2.0),),
    graphs=(("body", BODY),),
)


def stored(value):
    return from_json(json.loads(json.dumps(to_json(value))))


def test_a_program_survives_json():
    assert stored(WHOLE) == WHOLE


@pytest.mark.parametrize(
    "value",
    [
        float("inf"),
        float("-inf"),
        1 + 2j,
        complex(float("inf"), -0.0),
        slice(None, 3, None),
        [1, (2, [3.0, None])],
        (True, 1, 1.0),
        "text",
        2**70,
    ],
)
def test_arguments_survive_json(value):
    found = stored(value)
    assert found == value
    assert repr(found) == repr(value)


def test_nan_and_minus_zero_survive_json():
    assert math.isnan(stored(float("nan")))
    assert math.copysign(1, stored(-0.0)) == -1


def test_what_cannot_be_stored_is_refused():
    with pytest.raises(TypeError, match="cannot be stored"):
        to_json(object())


@pytest.mark.parametrize(
    "data",
    [
        {"Ref": {"name": "x"}, "Sym": {"expr": "s0"}},
        {},
        {"Popen": {"args": "true"}},
        {"Ref": {"nome": "x"}},
        {"Ref": {}},
        {"Ref": 3},
        {"list": 3},
        {"slice": [1, 2, 3, 4]},
        {"slice": 1},
        {"complex": ["a", 1]},
        {"complex": [1, 2, 3]},
        {"float": "many"},
        {"float": None},
    ],
)
def test_malformed_records_are_value_errors(data):
    with pytest.raises(ValueError):
        from_json(data)


NAMES = {"x": "input", "a": "b", "b": "a", "w": "weight", "c": "branch", "d": "item", "e": "sum"}


@pytest.mark.parametrize(
    "symbols",
    [{"s0": "n", "s1": "m"}, {"s0": "z", "s1": "b"}, {"s0": "s1", "s1": "s0"}, {"s0": "s10", "s1": "s9"}],
)
def test_renaming_keeps_the_fingerprint(symbols):
    renamed = rename(WHOLE, NAMES, symbols)
    assert renamed != WHOLE
    assert renamed.fingerprint == WHOLE.fingerprint


def test_a_renamed_combination_of_sizes_keeps_the_fingerprint():
    only = replace(
        WHOLE, inputs=(Input("x", TensorMeta("float32", ("b - a",), (1,))), *WHOLE.inputs), graphs=()
    )
    assert rename(only, {}, {"a": "c"}).fingerprint == only.fingerprint


def test_data_dependent_sizes_are_named_by_position():
    def program(size):
        meta = TensorMeta("int64", (size, 1), (1, 1))
        return Program(
            (Input("x", M),),
            (
                Node("n", "aten.nonzero.default", (Ref("x"),), meta=meta),
                Node("v", "aten.view.default", (Ref("n"), [Sym(size)])),
            ),
            Ref("v"),
        )

    assert program("u0").fingerprint == program("u7").fingerprint


def test_provenance_is_not_part_of_the_fingerprint():
    moved = tuple(replace(n, where="other.py:9", module="head") for n in WHOLE.nodes)
    assert replace(WHOLE, nodes=moved).fingerprint == WHOLE.fingerprint


def with_node(k, **changes):
    nodes = list(WHOLE.nodes)
    nodes[k] = replace(nodes[k], **changes)
    return replace(WHOLE, nodes=tuple(nodes))


def with_body(**changes):
    return replace(WHOLE, graphs=(("body", replace(BODY, **changes)),))


def row(size):
    return (Input("t", TensorMeta("float32", (size,), (1,))),)


NARROW = Node("r", "aten.narrow.default", (Ref("t"), 0, 0, Sym("s0")))
CHANGES = {
    "operator": with_node(0, target="aten.neg.default"),
    "operand": with_node(4, args=(Ref("a"), Ref("w"))),
    "constant": with_node(1, kwargs=(("device", Device("cpu")), ("value", 0.25))),
    "keyword": with_node(1, kwargs=(("device", Device("cpu")), ("other", 0.5))),
    "type of a constant": with_node(1, kwargs=(("device", Device("cpu")), ("value", 1))),
    "dtype": with_node(1, args=(Ref("a"), Torch("float16"))),
    "tuple for list": with_node(2, args=(Ref("p"), Graph("body"), Graph("body"), (Ref("x"), None))),
    "mutation": with_node(4, mutates=()),
    "meta": with_node(0, meta=replace(M, stride=(1, "s0"))),
    "order of calls": replace(
        WHOLE, nodes=(WHOLE.nodes[0], *WHOLE.nodes[2:4], WHOLE.nodes[1], WHOLE.nodes[4])
    ),
    "output": replace(WHOLE, output=Ref("e")),
    "key": replace(WHOLE, output=replace(WHOLE.output, keys=("other", 3))),
    "range": replace(WHOLE, symbols=(Symbol("s0", 2, 63, 8), WHOLE.symbols[1])),
    "hint": replace(WHOLE, symbols=(Symbol("s0", 2, 64, 9), WHOLE.symbols[1])),
    "input dtype": replace(WHOLE, inputs=(Input("x", replace(M, dtype="float16")), WHOLE.inputs[1])),
    "shared size": replace(WHOLE, inputs=(Input("x", replace(M, shape=("s1", 4))), WHOLE.inputs[1])),
    "kind of state": replace(WHOLE, state=(replace(WHOLE.state[0], kind="buffer"), WHOLE.state[1])),
    "state tensor": replace(WHOLE, state=(replace(WHOLE.state[0], value="other"), WHOLE.state[1])),
    "nesting": replace(WHOLE, args=((Ref("x"),), [Ref("y"), None])),
    "default": replace(WHOLE, kwargs=(("scale", 3.0),)),
    "call of a body": with_body(nodes=(replace(BODY.nodes[0], target="aten.select.int"),)),
    "size in a body": with_body(nodes=(replace(BODY.nodes[0], args=(Ref("t"), 0, 0, Sym("s0"))),)),
    "one size in a body": with_body(inputs=row("s1"), nodes=(NARROW,)),
    "another size in a body": with_body(inputs=row("s0"), nodes=(NARROW,)),
}


def test_every_other_change_changes_the_fingerprint():
    prints = {name: program.fingerprint for name, program in CHANGES.items()}
    prints["unchanged"] = WHOLE.fingerprint
    assert len(set(prints.values())) == len(prints), prints


def test_a_size_fixed_to_a_number_is_no_symbol_any_more():
    fixed = rename(WHOLE, {}, {"s0": 5})
    assert fixed.symbols == (Symbol("s1", 0, None, 3),)
    assert fixed.inputs[0].meta == TensorMeta("float32", (5, 4), (4, 1))
    assert fixed.inputs[1].meta.shape == ("s1", "5 + s1")
    assert fixed.output.items == ((Ref("e"), Sym("5 * s1")), slice(None, 5, 2))
    assert fixed.graphs[0][1].inputs[0].meta.shape == (5,)


def test_nested_arguments():
    arg = [Ref("x"), (Ref("y"), Tree("dict", ("k",), (slice(Ref("x"), 1),)))]
    assert references(arg) == ("x", "y")
    assert list(leaves(arg)) == [Ref("x"), Ref("y"), Ref("x"), 1, None]
    upper = map_args(arg, lambda leaf: Ref(leaf.name.upper()) if isinstance(leaf, Ref) else leaf)
    assert upper == [Ref("X"), (Ref("Y"), Tree("dict", ("k",), (slice(Ref("X"), 1),)))]


def test_counting():
    assert WHOLE.operator_count == 5
    assert [n.name for n in WHOLE.operators] == ["a", "b", "c", "e"]
    assert WHOLE.dynamic_dims == 3
    assert not WHOLE.is_flat
    assert WHOLE.meta_of("w") == M
    with pytest.raises(KeyError):
        WHOLE.meta_of("nothing")
