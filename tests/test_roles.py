"""Inputs that end up as indices are told from data, with the size of what they index."""

import pytest

from minimizer.program import Input, Node, Program, Ref, TensorMeta
from minimizer.roles import InputRole, input_roles
from minimizer.symbolic import evaluate

DATA = TensorMeta("float32", ("n", 7), (7, 1))
INDEX = TensorMeta("int64", ("m",), (1,))
X, IDX = Ref("x"), Ref("i")


INPUTS = (Input("x", DATA), Input("i", INDEX))


def roles(*nodes, inputs=INPUTS):
    return input_roles(Program(inputs, nodes, (), state=()))


def call(target, *args, name="y", meta=None):
    return Node(name, f"aten.{target}", args, meta=meta)


@pytest.mark.parametrize(
    ("node", "bound"),
    [
        (call("gather.default", X, 1, IDX), 7),
        (call("gather.default", X, -1, IDX), 7),
        (call("gather.default", X, 0, IDX), "n"),
        (call("index_select.default", X, 0, IDX), "n"),
        (call("index_add_.default", X, 1, IDX, X), 7),
        (call("scatter.src", X, 1, IDX, X), 7),
        (call("scatter_reduce.two", X, 0, IDX, X, "sum"), "n"),
        (call("take_along_dim.default", X, IDX, 1), 7),
        (call("embedding.default", X, IDX), "n"),
        (call("index.Tensor", X, [IDX]), "n"),
        (call("index.Tensor", X, [None, IDX]), 7),
        (call("index_put.default", X, [IDX, None], X), "n"),
        (call("one_hot.default", IDX, 5), 5),
        (call("nll_loss_nd.default", X, IDX), 7),
        (call("cross_entropy_loss.default", X, IDX), 7),
    ],
    ids=lambda part: part.target if isinstance(part, Node) else None,
)
def test_indexing_operators(node, bound):
    assert roles(node) == (InputRole(), InputRole("index", bound))


@pytest.mark.parametrize(
    "node",
    [
        call("add.Tensor", X, IDX),
        call("one_hot.default", IDX),
        call("one_hot.default", IDX, -1),
        call("gather.default", IDX, 0, Ref("j")),
        call("gather.default", X, 5, IDX),
    ],
    ids=lambda node: node.target,
)
def test_everything_else_is_data(node):
    assert roles(node) == (InputRole(), InputRole())


def test_an_index_is_followed_through_casts_and_views():
    nodes = (
        call("to.dtype", IDX, name="a"),
        call("unsqueeze.default", Ref("a"), 0, name="b"),
        call("gather.default", X, 1, Ref("b")),
    )
    assert roles(*nodes)[1] == InputRole("index", 7)


@pytest.mark.parametrize(
    ("node", "bound"),
    [
        (call("add.Tensor", IDX, 2, name="a"), 5),
        (call("sub.Tensor", IDX, 2, name="a"), 9),
        (call("mul.Tensor", IDX, 2, name="a"), 4),
        (call("floor_divide.default", IDX, 2, name="a"), 14),
        (call("to.dtype", IDX, name="a"), 7),
    ],
    ids=lambda part: part.target if isinstance(part, Node) else None,
)
def test_simple_arithmetic_moves_the_bound(node, bound):
    assert roles(node, call("gather.default", X, 1, Ref("a")))[1] == InputRole("index", bound)


def test_bounds_that_are_computed_can_be_evaluated():
    nodes = (call("mul.Tensor", IDX, 3, name="a"), call("add.Tensor", Ref("a"), 1, name="b"))
    (_, role) = roles(*nodes, call("gather.default", X, 0, Ref("b")))
    # 3 * i + 1 < n
    for n in range(2, 20):
        assert evaluate(role.bound, {"n": n}) == max(i for i in range(-1, 20) if 3 * i + 1 < n) + 1


def test_the_index_of_all_elements_counts_them():
    (_, role) = roles(call("take.default", X, IDX))
    assert evaluate(role.bound, {"n": 3}) == 21


def test_other_arithmetic_ends_the_trail():
    for target in ("remainder.Scalar", "pow.Tensor_Scalar", "bitwise_and.Scalar"):
        nodes = (call(target, IDX, 2, name="a"), call("gather.default", X, 1, Ref("a")))
        assert roles(*nodes)[1] == InputRole()
    nodes = (call("add.Tensor", IDX, Ref("j"), name="a"), call("gather.default", X, 1, Ref("a")))
    assert roles(*nodes)[1] == InputRole()


def test_indices_are_seen_through_stacking_and_parting():
    nodes = (
        call("stack.default", [IDX, IDX], name="a"),
        call("unbind.int", Ref("a"), name="b"),
        Node("c", "operator.getitem", (Ref("b"), 0)),
        call("gather.default", X, 1, Ref("c")),
    )
    assert roles(*nodes)[1] == InputRole("index", 7)


def test_boundaries_ascend():
    inputs = (Input("x", DATA), Input("i", TensorMeta("float32", ("m",), (1,))))
    assert roles(call("bucketize.Tensor", X, IDX), inputs=inputs)[1] == InputRole("ascending")
    assert roles(call("searchsorted.Tensor", IDX, X), inputs=inputs)[1] == InputRole("ascending")


def test_what_is_added_before_a_softmax_and_broadcast_is_a_mask():
    scores = TensorMeta("float32", ("b", 4, 4), (16, 4, 1))
    inputs = (Input("x", scores), Input("i", TensorMeta("float32", (4, 4), (4, 1))))
    nodes = (
        call("add.Tensor", X, IDX, name="a", meta=scores),
        call("softmax.int", Ref("a"), -1),
    )
    assert roles(*nodes, inputs=inputs) == (InputRole(), InputRole("mask"))
    attention = call("scaled_dot_product_attention.default", X, X, X, IDX)
    assert roles(attention, inputs=inputs)[1] == InputRole("mask")


def test_what_decides_a_branch_is_a_condition():
    inputs = (Input("x", DATA), Input("i", TensorMeta("float32", ("m",), (1,))))
    nodes = (
        call("sum.default", IDX, name="a"),
        call("gt.Scalar", Ref("a"), 0, name="b"),
        Node("c", "higher_order.cond", (Ref("b"), X)),
    )
    assert roles(*nodes, inputs=inputs)[1] == InputRole("condition")


def test_an_index_into_two_things_keeps_to_the_smaller():
    nodes = (call("gather.default", X, 1, IDX), call("one_hot.default", IDX, 3, name="z"))
    assert roles(*nodes)[1] == InputRole("index", 3)
    assert roles(*reversed(nodes))[1] == InputRole("index", 3)
    nodes = (call("gather.default", X, 1, IDX), call("gather.default", X, 0, IDX, name="z"))
    assert evaluate(roles(*nodes)[1].bound, {"n": 4}) == 4


def test_a_float_that_is_cast_may_be_an_index():
    inputs = (Input("x", DATA), Input("i", TensorMeta("float32", ("m",), (1,))))
    nodes = (call("to.dtype", IDX, name="a"), call("index.Tensor", X, [Ref("a")]))
    assert roles(*nodes, inputs=inputs) == (InputRole(), InputRole("index", "n"))


def test_a_bool_is_a_mask_and_never_an_index():
    inputs = (Input("x", DATA), Input("i", TensorMeta("bool", ("m",), (1,))))
    assert roles(call("index.Tensor", X, [IDX]), inputs=inputs) == (InputRole(), InputRole())


def test_the_indexed_tensor_may_be_computed():
    nodes = (
        call("relu.default", X, name="r", meta=TensorMeta("float32", ("n", 9), (9, 1))),
        call("gather.default", Ref("r"), 1, IDX),
    )
    assert roles(*nodes)[1] == InputRole("index", 9)
