"""Custom operators that lie in every way there is, and one that does not."""

import textwrap

import pytest

from minimizer.blame import Charge, charge, charged
from minimizer.case import Case, Settings, Value
from minimizer.oracle.requests import Broken
from minimizer.program import Input, Node, Program, Ref, Symbol, TensorMeta
from minimizer.wording import title_of
from strategies.values import Fill

OPERATORS = """
import torch


def operator(name, real, fake, schema="(Tensor x) -> Tensor"):
    library.define(name + schema)
    library.impl(name, real, "CPU")
    torch.library.register_fake("liars::" + name, fake)


library = torch.library.Library("liars", "DEF")
operator("halve", lambda x: x[::2].clone(), lambda x: x.new_empty((x.shape[0] // 2, x.shape[1])))
operator("turn", lambda x: x.t().contiguous().t(), torch.empty_like)
operator("widen", lambda x: x.double(), torch.empty_like)
operator("spoil", lambda x: x.add_(1).sum(0), lambda x: x.new_empty((x.shape[1],)))
operator("peek", lambda x: x[:], torch.empty_like)
operator("fix", lambda x: x.cos(), lambda x: x.new_empty((6, 3)))
operator("odd", lambda x: x.cos() if x.shape[0] != 5 else x[1:].clone(), torch.empty_like)
operator("moody", lambda x: x.cos(), lambda x: x.new_empty((x.nonsense,)))
operator("honest", lambda x: x.cos(), torch.empty_like)
operator("adds", lambda x: x.add_(1), lambda x: x, "(Tensor(a!) x) -> Tensor(a!)")


def some(x):
    return x.new_empty((torch.library.get_ctx().new_dynamic_size(), x.shape[1]))


operator("keep", lambda x: x[x[:, 0] > 0].clone(), some)
"""
ROWS = TensorMeta("float32", ("n", 3), (3, 1))
HALF = TensorMeta("float32", ("n//2", 3), (3, 1))
FIXED = TensorMeta("float32", (6, 3), (3, 1))
FLAT = TensorMeta("float32", (3,), (1,))


@pytest.fixture(scope="module")
def operators(tmp_path_factory):
    path = tmp_path_factory.mktemp("liars") / "liars.py"
    path.write_text(textwrap.dedent(OPERATORS))
    return str(path)


def case_of(name, meta, modules, rows=7):
    calls = (
        Node("a", f"liars.{name}.default", (Ref("x"),), meta=meta),
        Node("b", "aten.relu.default", (Ref("a"),), meta=meta),
    )
    program = Program((Input("x", ROWS),), calls, Ref("b"), symbols=(Symbol("n", 4, 64, 6),))
    return Case(program, (Value("float32", (rows, 3), Fill("normal")),), Settings(modules=(modules,)))


@pytest.mark.parametrize(
    ("name", "meta", "said"),
    [
        ("halve", HALF, "promised [3, 3] at export, it returns [4, 3] (shape, on float32[7, 3])"),
        ("turn", ROWS, "promises [3, 1], it returns [1, 7] (strides, on float32[7, 3])"),
        ("widen", ROWS, "promises torch.float32, it returns torch.float64 (dtype, on float32[7, 3])"),
        ("spoil", FLAT, "writes to an argument that its schema does not mark"),
        ("peek", ROWS, "shares memory with an argument"),
        ("fix", FIXED, "promised [6, 3] fixed at export, it returns [7, 3]"),
        ("moody", ROWS, "its fake function raises AttributeError"),
    ],
)
def test_a_lie_is_the_cause(sandbox, tmp_path, operators, name, meta, said):
    found = charge(sandbox, case_of(name, meta, operators), str(tmp_path))
    assert (found.cause, found.operator) == ("custom op", f"liars.{name}.default")
    assert said in found.words
    assert found.title.startswith(f"liars.{name}.default does not keep its word")


@pytest.mark.parametrize(("name", "meta"), [("honest", ROWS), ("adds", ROWS), ("keep", ROWS)])
def test_an_operator_that_keeps_its_word_is_not_accused(sandbox, tmp_path, operators, name, meta):
    if name == "keep":
        meta = TensorMeta("float32", ("u0", 3), (3, 1))
    assert charge(sandbox, case_of(name, meta, operators), str(tmp_path)) == Charge("unknown")


def test_a_lie_at_other_sizes_is_said_and_is_not_the_cause(sandbox, tmp_path, operators):
    found = charge(sandbox, case_of("odd", ROWS, operators), str(tmp_path))
    assert found.cause == "unknown" and found.title == ""
    assert "float32[5, 3]" in found.words


def test_without_custom_operators_it_is_the_compiler(tmp_path):
    program = Program((Input("x", ROWS),), (), Ref("x"), symbols=(Symbol("n", 4, 64, 6),))
    case = Case(program, (Value("float32", (7, 3), Fill("normal")),))
    assert charge(None, case, str(tmp_path)) == Charge("compiler")


def test_the_title_is_about_the_operator():
    broken = [Broken("liars.halve.default", "shape: it returns [4, 3]", "float32[7, 3]", True)]
    accused = charged(broken)
    assert title_of(None, None, accused.title) == (
        "liars.halve.default does not keep its word: it returns [4, 3] (shape, on float32[7, 3])"
    )
