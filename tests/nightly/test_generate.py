"""The stream of plans of a night, and generated programs as model files."""

import ast

import pytest

from minimizer.case import Value
from minimizer.nightly.generate import programs_of, stream
from minimizer.nightly.hand import command
from minimizer.nightly.joining import Fragment
from minimizer.nightly.program_file import FAILING, program_text
from minimizer.nightly.units import Target
from minimizer.program import Input, Node, Program, Ref, State, Symbol, TensorMeta
from strategies.programs import Call, Operator, Plan, singles
from strategies.values import Fill

CATALOGUE = [Operator("relu", ("float32", "int8"), 2), Operator("sum", ("float32",), 1)]


def test_the_catalogue_comes_first_then_chains():
    whole = list(stream(CATALOGUE, 0, 8, seed=1))
    assert whole[:5] == list(singles(CATALOGUE))
    assert len(whole) == 8 and all(len(plan.calls) > 1 for plan in whole[5:])


def test_a_part_of_the_stream_is_the_same_every_time():
    assert list(stream(CATALOGUE, 0, 3, 1)) + list(stream(CATALOGUE, 3, 2, 1)) == list(singles(CATALOGUE))
    assert list(stream(CATALOGUE, 40, 6, seed=1)) == list(stream(CATALOGUE, 40, 6, seed=1))
    assert list(stream(CATALOGUE, 40, 6, seed=1)) != list(stream(CATALOGUE, 46, 6, seed=1))


def test_what_is_left_out_is_in_no_chain():
    plans = list(stream(CATALOGUE, 5, 12, seed=1, without=("relu",)))
    assert {call.operator for plan in plans for call in plan.calls} == {"sum"}
    assert list(stream(CATALOGUE, 5, 4, 1, ("relu", "sum"))) == []


def fragment(name):
    meta = TensorMeta("float32", ("s0",), (1,))
    node = Node("n", f"aten.{name}.default", (Ref("a"),), meta=meta)
    program = Program((Input("a", meta),), (node,), (Ref("n"),), symbols=(Symbol("s0", 2, None, 3),))
    return Fragment(program, (Value("float32", (3,), Fill("ones")),))


class Shelf:
    """A catalogue of what is at hand."""

    def fragments(self, choices):
        return [fragment(name) if name != "random" else "it is random" for name, _, _ in choices]


def test_each_program_once_and_what_cannot_be_built_is_counted():
    relu, other = Call("relu", "float32"), Call("relu", "float32", 1)
    plans = [
        Plan((relu,)),
        Plan((other,)),
        Plan((relu, Call("random", "float32"))),
        Plan((Call("abs", "int8"),)),
    ]
    cases, left_out = programs_of(Shelf(), plans)
    assert [plan for plan, _ in cases] == [plans[0], plans[3]]
    assert left_out == 2


@pytest.mark.parametrize("dynamic", [True, False])
def test_a_program_as_a_model_file(dynamic):
    size = "s0" if dynamic else 3
    meta = TensorMeta("float32", (size, 2), (2, 1))
    program = Program(
        (Input("x", meta),),
        (Node("v", "aten.add.Tensor", (Ref("x"), Ref("constant")), meta=meta),),
        (Ref("v"),),
        (State("constant", "constant", TensorMeta("float32", (2,), (1,)), "c"),),
        (Symbol("s0", 2, None, 3),) if dynamic else (),
    )
    text = program_text(program, "A generated program: add.")
    tree = ast.parse(text)
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    wanted = {"get_model", "get_example_inputs", FAILING} | ({"get_dynamic_shapes"} if dynamic else set())
    assert functions == wanted
    assert 'SAVED["state constant"]' in text and 'SAVED["failing x"]' in text
    assert ast.get_docstring(tree) == "A generated program: add."


def test_a_search_is_the_command_line_itself():
    words = command(Target("a", "a.py", "out", 90.4, 3, FAILING))
    assert words[:3] == ["-m", "minimizer.cli", "a.py"]
    assert words[words.index("--budget") + 1] == "90"
    assert words[words.index("--check-inputs") + 1] == FAILING
