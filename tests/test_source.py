"""The text that programs are printed as; nothing that a stranger's case says can break out of it."""

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
)
from minimizer.source import call_text, dynamic_shapes_code, literal, module_source

META = TensorMeta("float32", ("n", 3), (3, 1))
PROGRAM = Program(
    (Input("x", META),),
    (Node("y", "aten.relu.default", (Ref("x"),), meta=META),),
    Ref("y"),
    symbols=(Symbol("n", 2, 64, 8),),
)
EVIL = "x; import os; os.system('true')"


@pytest.mark.parametrize(
    ("arg", "text"),
    [
        (Ref("x"), "x"),
        (Sym("4*n+1"), "4 * n + 1"),
        (Torch("float32"), "torch.float32"),
        (Device("cuda:0"), '"cuda:0"'),
        (Graph("body"), "body"),
        ((Ref("x"),), "(x,)"),
        ([], "[]"),
        (slice(None, 3), "slice(None, 3, None)"),
        (Tree("dict", ("a", 1), (Ref("x"), None)), '{"a": x, 1: None}'),
        (Tree("torch.return_types.max", (), (Ref("x"), 2)), "torch.return_types.max((x, 2))"),
        (float("-inf"), 'float("-inf")'),
        (complex(1, float("nan")), 'complex(1.0, float("nan"))'),
        (-0.0, "-0.0"),
        (True, "True"),
        ('it"s', "'it\"s'"),
    ],
)
def test_arguments(arg, text):
    assert literal(arg) == text


@pytest.mark.parametrize(
    "arg",
    [
        Ref(EVIL),
        Ref("class"),
        Sym(EVIL),
        Torch(EVIL),
        Torch("float32()"),
        Graph(EVIL),
        Tree(EVIL, (), ()),
        Tree("lambda", (), ()),
        object(),
    ],
)
def test_what_cannot_stand_in_source_is_refused(arg):
    with pytest.raises(ValueError):
        literal(arg)


HOSTILE = {
    "input": replace(PROGRAM, inputs=(Input(EVIL, META),)),
    "call": replace(PROGRAM, nodes=(replace(PROGRAM.nodes[0], name=EVIL),)),
    "operator": replace(PROGRAM, nodes=(replace(PROGRAM.nodes[0], target=EVIL),)),
    "operand": replace(PROGRAM, nodes=(replace(PROGRAM.nodes[0], args=(Ref(EVIL),)),)),
    "output": replace(PROGRAM, output=Ref(EVIL)),
    "state": replace(PROGRAM, state=(State(EVIL, "buffer", META, "w"),)),
    "symbol": replace(PROGRAM, symbols=(Symbol(EVIL, 2, 64, 8),)),
    "keyword": replace(PROGRAM, kwargs=((EVIL, Ref("x")),)),
    "body": replace(PROGRAM, graphs=((EVIL, PROGRAM),)),
    "inside a body": replace(PROGRAM, graphs=(("body", replace(PROGRAM, inputs=(Input(EVIL, META),))),)),
}


@pytest.mark.parametrize("program", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_name_breaks_out_of_the_source(program):
    with pytest.raises(ValueError):
        module_source(program, {s.name: "state['w']" for s in program.state})


def test_a_keyword_that_is_no_name_is_dropped_from_a_call():
    node = Node("y", "aten.add.Tensor", (Ref("x"), 1), ((EVIL, 3), ("alpha", 2)))
    assert call_text(node, {}) == "torch.ops.aten.add.Tensor(x, 1, alpha=2)"


def test_a_module_reads_as_a_person_would_write_it():
    assert module_source(PROGRAM, {}) == (
        "class Model(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return torch.ops.aten.relu.default(x)\n"
    )


def test_sizes_are_read_where_they_are_needed():
    flat = TensorMeta("float32", ("3*n",), (1,))
    view = Node("z", "aten.view.default", (Ref("y"), [Sym("3*n")]), meta=flat)
    text = module_source(replace(PROGRAM, nodes=(*PROGRAM.nodes, view), output=Ref("z")), {})
    assert "n = x.shape[0]" in text
    odd = Input("x", TensorMeta("float32", ("3*n + 1",), (1,)))
    text = module_source(Program((odd,), (), (Ref("x"), Sym("n")), symbols=PROGRAM.symbols), {})
    assert "n = (x.shape[0] - 1) // 3" in text


@pytest.mark.parametrize(
    ("size", "spec"),
    [("n", "n"), ("4*n + 2", "4*n + 2"), ("n - 1", "n - 1"), ("n // 2", "Dim.AUTO"), ("n * m", "Dim.AUTO")],
)
def test_dynamic_shapes(size, spec):
    program = replace(PROGRAM, inputs=(Input("x", TensorMeta("float32", (size, 3), (3, 1))),))
    lines, text = dynamic_shapes_code(program)
    assert text == f'{{"x": {{0: {spec}}}}}'
    assert lines == ([] if spec == "Dim.AUTO" else ['n = Dim("n", min=2, max=64)'])


def test_a_static_program_has_no_dynamic_shapes():
    static = replace(PROGRAM, inputs=(Input("x", TensorMeta("float32", (2, 3), (3, 1))),), symbols=())
    assert dynamic_shapes_code(static) == ([], "")
