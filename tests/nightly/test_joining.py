"""Programs chained and put side by side, as functions from records to records."""

import pytest

from minimizer.case import Value
from minimizer.nightly.joining import Fragment, chained, prefixed, side_by_side, unified
from minimizer.program import Input, Node, Program, Ref, Sym, Symbol, TensorMeta
from minimizer.source import module_source, unresolved_references
from strategies.programs import Call, Plan
from strategies.values import Fill


def meta(*shape, dtype="float32"):
    return TensorMeta(dtype, shape, tuple(1 for _ in shape))


def fragment(name, *shape, out=None, dtype="float32", hint=4):
    symbols = tuple(Symbol(s, 2, None, hint) for s in dict.fromkeys(shape) if isinstance(s, str))
    node = Node("n", f"aten.{name}.default", (Ref("a"),), meta=meta(*(out or shape), dtype=dtype))
    program = Program((Input("a", meta(*shape, dtype=dtype)),), (node,), (Ref("n"),), symbols=symbols)
    sizes = tuple(hint if isinstance(s, str) else s for s in shape)
    return Fragment(program, (Value(dtype, sizes, Fill("normal")),))


def plan(*feeds):
    return Plan(tuple(Call("op", "float32", 0, feed) for feed in feeds))


def test_a_fed_argument_reads_the_last_result():
    case = chained(plan((), (1,)), [fragment("relu", "s0", 3), fragment("neg", "s0", "s1")])
    assert [n.target for n in case.program.nodes] == ["aten.relu.default", "aten.neg.default"]
    assert case.program.nodes[1].inputs == (case.program.nodes[0].name,)
    assert [i.name for i in case.program.inputs] == ["x"]
    assert case.program.nodes[1].meta.shape == ("s0", 3)
    assert unresolved_references(case.program) == ()


@pytest.mark.parametrize(
    "other",
    [
        fragment("neg", "s0", dtype="int8"),
        fragment("neg", "s0", 3, 2),
        fragment("neg", "s0", 5),
    ],
    ids=["dtype", "rank", "size"],
)
def test_what_does_not_fit_becomes_an_input(other):
    case = chained(plan((), (1,)), [fragment("relu", "s0", 3), other])
    assert [i.name for i in case.program.inputs] == ["x", "y"]
    assert len(case.program.outputs) == 2


def test_values_follow_the_sizes_of_their_source():
    pair = fragment("neg", "s0", hint=7)
    second = Fragment(
        Program(
            (*pair.program.inputs, Input("b", meta("s0"))),
            (Node("n", "aten.add.Tensor", (Ref("a"), Ref("b")), meta=meta("s0")),),
            (Ref("n"),),
            symbols=pair.program.symbols,
        ),
        (*pair.values, Value("float32", (7,), Fill("ones"))),
    )
    case = chained(plan((), (1,)), [fragment("relu", "s0", hint=4), second])
    assert [v.shape for v in case.values] == [(4,), (4,)]


def test_results_that_nothing_reads_are_returned():
    case = chained(plan((), (0,)), [fragment("relu", "s0"), fragment("neg", "s0")])
    assert len(case.program.outputs) == 2


def test_members_of_a_pool_share_nothing():
    members = [
        fragment("relu", "s0").program,
        fragment("neg", "s0", "s1").program,
        fragment("abs", 3).program,
    ]
    pool = side_by_side(members)
    assert [pool.program.inputs[share][0].meta.dtype for share in pool.inputs] == ["float32"] * 3
    assert len({s.name for s in pool.program.symbols}) == 3
    assert [len(pool.program.outputs[share]) for share in pool.outputs] == [1, 1, 1]
    assert unresolved_references(pool.program) == ()
    assert "torch.ops.aten.neg.default(m1_a)" in module_source(pool.program, {})


def test_sizes_in_arguments_are_renamed_too():
    node = Node("n", "aten.full.default", ([Sym("2*s0")], 1), meta=meta("2*s0"))
    program = Program((Input("a", meta("s0")),), (node,), (Ref("n"),), symbols=(Symbol("s0", 2, None, 4),))
    assert prefixed(program, "q_").nodes[0].args[0] == [Sym("2 * q_s0")]


def test_unified():
    assert unified(meta("a", "b"), meta("s0", 3), {}) == {"a": "s0", "b": 3}
    assert unified(meta("a", "a"), meta("s0", 3), {}) is None
    assert unified(meta("2*a", "a"), meta("6", 3), {}) is None
    assert unified(meta("a", 3), meta("s0", 3), {"a": "s0"}) == {"a": "s0"}


def test_nested_graphs_stay_alone():
    program = fragment("relu", 3).program
    with pytest.raises(ValueError, match="nested"):
        side_by_side([Program(program.inputs, program.nodes, program.output, graphs=(("body", program),))])
