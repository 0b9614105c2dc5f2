"""Two spellings that export to one graph need no judgement."""

from dataclasses import replace

import pytest

from minimizer.case import Case, Value
from minimizer.oracle.requests import TASKS
from minimizer.program import Input, Node, Program, Ref, Symbol, TensorMeta
from strategies.values import Fill

META = TensorMeta("float32", ("n", 4), (4, 1))


def case(target, *args):
    node = Node("y", target, (Ref("x"), *args), meta=META)
    program = Program((Input("x", META),), (node,), Ref("y"), symbols=(Symbol("n", 2, 64, 8),))
    return Case(program, (Value("float32", (8, 4), Fill("zeros")),))


@pytest.fixture(scope="module")
def alike(sandbox, tmp_path_factory):
    worker = sandbox.worker()
    store = str(tmp_path_factory.mktemp("store"))

    def graph(case):
        return worker.call(TASKS + "exported_graph", case, store, timeout=120.0)

    yield lambda one, other: bool(graph(other)) and graph(one) == graph(other)
    worker.close()


RELU = case("aten.relu.default")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (RELU, case("torch.relu"), True),
        (RELU, case("Tensor.relu"), True),
        (case("aten.add.Tensor", 1), case("operator.add", 1), True),
        (case("aten.add.Tensor", 1), case("operator.add", 2), False),
        (RELU, case("torch.neg"), False),
        (case("aten._softmax.default", 1, False), case("torch.softmax", 1), False),
        (RELU, case("torch.there_is_no_such_thing"), False),
    ],
)
def test_what_exports_to_one_graph_is_the_same(alike, one, other, same):
    assert alike(one, other) is same


def test_a_size_that_is_dynamic_in_one_only_tells_them_apart(alike):
    fixed = TensorMeta("float32", (8, 4), (4, 1))
    program = replace(RELU.program, inputs=(Input("x", fixed),), symbols=())
    assert not alike(RELU, replace(RELU, program=program))
