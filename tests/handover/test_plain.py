"""The table of plain names against torch itself, and the candidates made from it."""

from __future__ import annotations

import operator
from dataclasses import replace

import pytest
from repro_cases import COND, RELU, meta

from minimizer.handover.plain import plain_candidates, spellings
from minimizer.handover.plain_names import FUNCTIONAL, FUNCTIONS, METHODS, OPERATORS, SUBMODULES
from minimizer.program import Device, Node, Ref, Sym, Torch
from minimizer.source import call_text, module_source

torch = pytest.importorskip("torch")


def test_every_entry_exists():
    for name in FUNCTIONS:
        assert callable(getattr(torch, name)), name
    for name in FUNCTIONAL.values():
        assert callable(getattr(torch.nn.functional, name)), name
    for name in METHODS:
        assert callable(getattr(torch.Tensor, name)), name
    for target in OPERATORS.values():
        assert callable(getattr(operator, target.removeprefix("operator."))), target
    for name in (*FUNCTIONS, *FUNCTIONAL, *METHODS, *OPERATORS):
        assert hasattr(torch.ops.aten, name), name
    for module in SUBMODULES.values():
        assert hasattr(torch, module.split(".")[1]), module
    assert not FUNCTIONS & FUNCTIONAL.keys() and not FUNCTIONS & METHODS


def tensors():
    torch.manual_seed(0)
    return {
        "x": torch.rand(2, 3) + 0.5,
        "y": torch.rand(2, 3) + 0.5,
        "z": torch.rand(3, 4),
        "w": torch.rand(1, 4, 4, 4),
        "b": torch.tensor([[True, False, True], [False, False, True]]),
        "k": torch.tensor([[1, 2, 3], [4, 5, 6]]),
        "i": torch.tensor([[0, 1, 0]]),
        "v": torch.tensor([1, 0]),
        "c": torch.rand(2, 3, dtype=torch.complex64),
    }


X, Y, Z, W, B, K, INDEX, V, C = (Ref(name) for name in "xyzwbkivc")


def calls(names, overload, *args):
    return [Node("n", f"aten.{name}.{overload}", args) for name in names.split()]


UNARY = """
abs acosh asinh atan ceil clone cos cosh deg2rad digamma erf erfc exp exp2 expm1 fix floor frac gelu
hardsigmoid hardswish hardtanh i0 isfinite isinf isnan leaky_relu lgamma log log10 log1p log2 log_sigmoid
logit mish neg rad2deg reciprocal relu relu6 round rsqrt selu sgn sigmoid sign signbit silu sin sinc sinh
softplus sqrt square tan tanh trunc t detach diag tril triu nan_to_num celu elu argwhere nonzero max min
median sum mean prod any all argmax
"""
ARITHMETIC = "add sub mul div remainder eq ne lt le gt ge"
CALLS = [
    *calls(UNARY, "default", X),
    *calls("maximum minimum fmax fmin atan2 hypot nextafter logaddexp heaviside isclose", "default", X, Y),
    *calls(f"{ARITHMETIC} xlogy ldexp copysign", "Tensor", X, Y),
    *calls(ARITHMETIC, "Scalar", X, 2),
    *calls("bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift", "Tensor", K, K),
    *calls("logical_and logical_or logical_xor", "default", B, B),
    *calls("max min median any all", "dim", X, 1, True),
    Node("n", "aten.flatten.using_ints", (W, 1)),
    Node("n", "aten.mean.dim", (X, [1], True)),
    Node("n", "aten.add.Tensor", (X, Y), (("alpha", 3),)),
    Node("n", "aten.rsub.Scalar", (X, 1)),
    Node("n", "aten.pow.Tensor_Scalar", (X, 2)),
    Node("n", "aten.pow.Scalar", (2, X)),
    Node("n", "aten.floor_divide.default", (K, 2)),
    Node("n", "aten.div.Tensor_mode", (X, Y), (("rounding_mode", "floor"),)),
    Node("n", "aten.bitwise_not.default", (B,)),
    Node("n", "aten.__and__.Tensor", (B, B)),
    Node("n", "aten.matmul.default", (X, Z)),
    Node("n", "aten.mm.default", (X, Z)),
    Node("n", "aten.dist.default", (X, Y)),
    Node("n", "aten.sum.dim_IntList", (X, [0], True)),
    Node("n", "aten.amax.default", (X, [0], True)),
    Node("n", "aten.var.correction", (X, [1]), (("correction", 1), ("keepdim", True))),
    Node("n", "aten.var_mean.correction", (X, [1]), (("correction", 0),)),
    Node("n", "aten.cumsum.default", (X, 1)),
    Node("n", "aten.sort.default", (X, 1, True)),
    Node("n", "aten.sort.stable", (X,), (("stable", True), ("dim", 0))),
    Node("n", "aten.topk.default", (X, 2, 1)),
    Node("n", "aten.kthvalue.default", (X, 2)),
    Node("n", "aten.clamp.default", (X, 0.6, 0.9)),
    Node("n", "aten.where.self", (B, X, Y)),
    Node("n", "aten.masked_fill.Scalar", (X, B, 7.0)),
    Node("n", "aten.gather.default", (X, 0, INDEX)),
    Node("n", "aten.scatter.src", (X, 0, INDEX, Y)),
    Node("n", "aten.scatter.value", (X, 0, INDEX, 3.0)),
    Node("n", "aten.scatter_add.default", (X, 0, INDEX, Y)),
    Node("n", "aten.scatter_reduce.two", (X, 0, INDEX, Y, "amax")),
    Node("n", "aten.index_select.default", (X, 0, V)),
    Node("n", "aten.index_add.default", (X, 0, V, Y)),
    Node("n", "aten.index_put.default", (X, [V], Y)),
    Node("n", "aten.index.Tensor", (X, [V])),
    Node("n", "aten.index.Tensor", (X, [None, V])),
    Node("n", "aten.slice.Tensor", (X, 1, 0, 2)),
    Node("n", "aten.slice.Tensor", (X, 1, -2, 2**63 - 1)),
    Node("n", "aten.take.default", (X, V)),
    Node("n", "aten.embedding.default", (Z, V)),
    Node("n", "aten.cat.default", ([X, Y], 1)),
    Node("n", "aten.stack.default", ([X, Y],)),
    Node("n", "aten.split.Tensor", (X, 2, 1)),
    Node("n", "aten.split_with_sizes.default", (X, [1, 2], 1)),
    Node("n", "aten.chunk.default", (X, 3, 1)),
    Node("n", "aten.unbind.int", (X, 1)),
    Node("n", "aten.view.default", (X, [3, 2])),
    Node("n", "aten._unsafe_view.default", (X, [3, 2])),
    Node("n", "aten.reshape.default", (X, [3, 2])),
    Node("n", "aten.expand.default", (X, [4, 2, 3])),
    Node("n", "aten.repeat.default", (X, [2, 2])),
    Node("n", "aten.permute.default", (W, [0, 3, 1, 2])),
    Node("n", "aten.transpose.int", (X, 0, 1)),
    Node("n", "aten.unsqueeze.default", (X, 0)),
    Node("n", "aten.squeeze.dim", (W, 0)),
    Node("n", "aten.select.int", (X, 1, 0)),
    Node("n", "aten.narrow.default", (X, 1, 1, 2)),
    Node("n", "aten.as_strided.default", (X, [2, 2], [1, 2])),
    Node("n", "aten.flip.default", (X, [0])),
    Node("n", "aten.roll.default", (X, [1], [0])),
    Node("n", "aten.unfold.default", (X, 1, 2, 1)),
    Node("n", "aten.diagonal.default", (X, 0, 0, 1)),
    Node("n", "aten.pad.default", (X, [1, 1], "constant", 2.0)),
    Node("n", "aten.one_hot.default", (K, 7)),
    Node("n", "aten.softmax.int", (X, 1)),
    Node("n", "aten._softmax.default", (X, 1, False)),
    Node("n", "aten._log_softmax.default", (X, 1, False)),
    Node("n", "aten.gelu.default", (X,), (("approximate", "tanh"),)),
    Node("n", "aten.linear.default", (X, Y)),
    Node("n", "aten.addmm.default", (X, X, Ref("square"))),
    Node("n", "aten.conv2d.default", (W, Ref("kernel"), None, [1, 1], [1, 1])),
    Node("n", "aten.convolution.default", (W, Ref("kernel"), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)),
    Node("n", "aten.max_pool2d.default", (W, [2, 2], [2, 2])),
    Node("n", "aten.avg_pool2d.default", (W, [2, 2])),
    Node("n", "aten.adaptive_avg_pool2d.default", (W, [2, 2])),
    Node("n", "aten.layer_norm.default", (X, [3])),
    Node("n", "aten.native_layer_norm.default", (X, [3], None, None, 1e-5)),
    Node("n", "aten.group_norm.default", (W, 2)),
    Node("n", "aten.scaled_dot_product_attention.default", (W, W, W)),
    Node("n", "aten.full.default", ([2, 3], 7), (("dtype", Torch("float32")), ("device", Device("cpu")))),
    Node("n", "aten.arange.start_step", (0, 6, 2), (("pin_memory", False),)),
    Node("n", "aten.zeros_like.default", (X,), (("layout", Torch("strided")),)),
    Node("n", "aten.new_zeros.default", (X, [2])),
    Node("n", "aten.to.dtype", (X, Torch("int32"))),
    Node("n", "aten._to_copy.default", (X,), (("dtype", Torch("float64")),)),
    Node("n", "aten.item.default", (Ref("one"),)),
    Node("n", "aten.view_as_real.default", (C,)),
    Node("n", "aten.conj.default", (C,)),
    Node("n", "aten.linalg_vector_norm.default", (X, 2, [1])),
    Node("n", "aten.fft_rfft.default", (X,)),
    Node("n", "aten.special_entr.default", (X,)),
    Node("n", "aten.add_.Tensor", (X, Y)),
    Node("n", "aten.copy_.default", (X, Y)),
    Node("n", "aten.fill_.Scalar", (X, 3)),
    Node("n", "aten.relu_.default", (X,)),
    Node("n", "aten.masked_fill_.Scalar", (X, B, 1)),
    Node("n", "aten.index_put_.default", (X, [V], Y)),
]


@pytest.mark.parametrize("node", CALLS, ids=lambda node: node.target)
def test_plain_form_computes_the_same(node):
    def run(spelling):
        values = tensors()
        values |= {"square": torch.eye(3) * 2, "kernel": torch.rand(2, 4, 3, 3), "one": torch.tensor(3)}
        text = call_text(spelling, {})
        return eval(text, {"torch": torch, "operator": operator} | values), values

    found = spellings(node)
    assert found, f"{node.target} has no plain form"
    expected = run(node)
    for spelling in found:
        assert not spelling.target.startswith("aten.")
        torch.testing.assert_close(run(spelling), expected, equal_nan=True, msg=spelling.target)


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (Node("n", "aten.add.Tensor", (X, Y)), "x + y"),
        (Node("n", "aten.pow.Tensor_Scalar", (X, 2)), "x**2"),
        (Node("n", "aten.neg.default", (X,)), "-x"),
        (Node("n", "aten.rsub.Scalar", (X, 1)), "1 - x"),
        (Node("n", "aten.view.default", (X, [3, 2])), "x.view(3, 2)"),
        (Node("n", "aten._to_copy.default", (X,), (("dtype", Torch("int8")),)), "x.to(torch.int8)"),
        (Node("n", "aten.full.default", ([2], 0), (("pin_memory", False),)), "torch.full([2], 0)"),
        (Node("n", "aten.index.Tensor", (X, [V])), "x[v]"),
        (Node("n", "aten.index.Tensor", (X, [None, V])), "x[:, v]"),
        (Node("n", "aten.slice.Tensor", (X, 1, 1, 2**63 - 1)), "x[:, 1:]"),
        (Node("n", "aten.slice.Tensor", (X, 0, 0, Sym("n - 1"), 2)), "x[: n - 1 : 2]"),
        (Node("n", "aten.silu.default", (X,)), "torch.nn.functional.silu(x)"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_plainest_form(node, text):
    assert call_text(spellings(node)[0], {}) == text


@pytest.mark.parametrize("target", ["aten.add.out", "torch.relu", "operator.getitem", "mylib.relu.default"])
def test_nothing_plainer(target):
    assert spellings(Node("n", target, (X,))) == []


def drive(program, accepts):
    """Answer each candidate; the candidates, and what was accepted last."""
    generator = plain_candidates(program)
    seen, best = [], program
    try:
        candidate = next(generator)
        while True:
            seen.append(candidate)
            good = accepts(candidate)
            best = candidate if good else best
            candidate = generator.send(good)
    except StopIteration:
        return seen, best


TWO = replace(
    RELU,
    nodes=(
        Node("a", "aten.relu.default", (Ref("x"),), meta=meta("float32", "n", 3)),
        Node("y", "aten.add.Tensor", (Ref("a"), 1), meta=meta("float32", "n", 3)),
    ),
)


def test_everything_at_once_first():
    seen, best = drive(TWO, lambda program: True)
    assert len(seen) == 1
    assert "return torch.relu(x) + 1" in module_source(best, {})


def test_goes_on_from_what_was_accepted():
    def accepts(program):
        return all(not node.target.startswith("operator") for node in program.nodes)

    seen, best = drive(TWO, accepts)
    assert [node.target for node in best.nodes] == ["torch.relu", "torch.add"]
    assert len(seen) == 4


def test_nothing_accepted_leaves_the_program_alone():
    seen, best = drive(TWO, lambda program: False)
    assert best == TWO
    assert len(set(seen)) == len(seen)


def test_bodies_of_higher_order_operators_too():
    body = replace(COND.graphs[0][1], nodes=(Node("r", "aten.sin.default", (Ref("x"),)),))
    program = replace(COND, graphs=(("yes", body), COND.graphs[1]))
    _, best = drive(program, lambda program: True)
    assert best.graphs[0][1].nodes[0].target == "torch.sin"


def test_brackets_only_where_nothing_is_written():
    index = Node("a", "aten.slice.Tensor", (Ref("x"), 0, 0, 2), meta=meta("float32", 2, 3))
    write = Node("y", "aten.add_.Tensor", (Ref("a"), 1), meta=meta("float32", 2, 3), mutates=(0,))
    _, best = drive(replace(RELU, nodes=(index, write)), lambda program: True)
    assert [node.target for node in best.nodes] == ["aten.slice.Tensor", "Tensor.add_"]
    _, best = drive(replace(RELU, nodes=(replace(index, name="y"),)), lambda program: True)
    assert "return x[:2]" in module_source(best, {})


@pytest.mark.parametrize(
    ("first", "then", "text"),
    [
        (("mul", X, 2), ("add", Ref("a"), 1), "x * 2 + 1"),
        (("add", X, 2), ("mul", Ref("a"), 1), "(x + 2) * 1"),
        (("sub", X, 2), ("sub", 1, Ref("a")), "1 - (x - 2)"),
        (("mul", X, 2), ("add", 1, Ref("a")), "1 + x * 2"),
        (("gt", X, 2), ("eq", Ref("a"), 1), "(x > 2) == 1"),
        (("add", X, 2), ("gt", Ref("a"), 1), "x + 2 > 1"),
        (("add", X, 2), ("neg", Ref("a")), "-(x + 2)"),
    ],
)
def test_brackets_where_signs_need_them(first, then, text):
    nodes = (
        Node("a", f"operator.{first[0]}", first[1:], meta=meta("float32", "n", 3)),
        Node("y", f"operator.{then[0]}", then[1:], meta=meta("float32", "n", 3)),
    )
    assert f"return {text}\n" in module_source(replace(RELU, nodes=nodes), {})


def test_program_that_is_plain_already_has_no_candidate():
    seen, _ = drive(replace(RELU, nodes=(replace(RELU.nodes[0], target="torch.relu"),)), lambda program: True)
    assert seen == []
