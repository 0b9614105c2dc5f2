"""The table: this bug shrinks to this program. Compilers are simulated: a bug is a predicate over cases.

Each row has a network with one bug in it, told as one would tell it of a compiler, and the text of the least
case that shows it. A change that makes a row longer makes every repro of that kind longer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reduce"))
from builder import Builder, meta
from shrinking import Bug, shrunk

from minimizer.case import Case, Literal, Settings, Stored, Value
from minimizer.program import Graph, Input, Node, Program, Ref, Sym, Symbol, TensorMeta, Torch, Tree
from strategies.values import Fill

BATCH = Symbol("s0", 2, 64, 8)
Row = tuple[Builder, Case, Bug]
ROWS: dict[str, tuple[Callable[[], Row], str]] = {}


def row(expected: str) -> Callable[[Callable[[], Row]], Callable[[], Row]]:
    def add(build: Callable[[], Row]) -> Callable[[], Row]:
        ROWS[build.__name__] = (build, expected.strip())
        return build

    return add


def network(*middle: str) -> tuple[Builder, Ref]:
    """A residual stack with parameters, a dynamic batch and the given calls in its middle."""
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    x = b.input("x", ("s0", 16))
    for k in range(3):
        w = b.parameter(f"w{k}", (16, 16))
        h = b.call("mm", x, w, shape=("s0", 16), module=f"blocks.{k}")
        h = b.call("tanh", h, module=f"blocks.{k}")
        x = b.call("aten.add.Tensor", x, h, module=f"blocks.{k}")
    x = b.chain(x, *middle)
    for k in range(3, 6):
        w = b.parameter(f"w{k}", (16, 16))
        h = b.call("mm", x, w, shape=("s0", 16), module=f"blocks.{k}")
        x = b.call("aten.mul.Tensor", x, b.call("sigmoid", h), module=f"blocks.{k}")
    return b, x


def calls(case: Case, name: str) -> list[Node]:
    """The calls of an operator, those in bodies included."""
    bodies = [body for _, body in case.program.graphs]
    nodes = [n for p in (case.program, *bodies) for n in p.nodes]
    return [n for n in nodes if n.target.split(".")[1] == name]


def feeds(case: Case, source: str, reader: str) -> bool:
    """Whether some call of `reader` reads, directly or not, a result of `source`."""
    reached: set[str] = set()
    for n in case.program.nodes:
        if reached & set(n.inputs) and n.target.split(".")[1] == reader:
            return True
        if n.target.split(".")[1] == source or reached & set(n.inputs):
            reached.add(n.name)
    return False


def dynamic(name: str) -> Bug:
    """A bug of one operator in programs that have a dynamic dim."""
    return lambda case: bool(calls(case, name)) and case.program.dynamic_dims > 0


def size_of(case: Case, symbol: str) -> int:
    return case.sizes.get(symbol, 0)


@row("""
def forward(self, x):
    return torch.ops.aten.relu.default(x)
x: float32[s0=2, 1] zeros
""")
def relu_is_wrong() -> Row:
    b, x = network("relu")
    return b, b.case(x), dynamic("relu")


@row("""
def forward(self, x):
    return torch.ops.aten.exp.default(torch.ops.aten.relu.default(x))
x: float32[s0=2, 1] zeros
""")
def exp_after_relu_is_fused_wrongly() -> Row:
    b, x = network("relu", "sin", "cos", "exp")
    return b, b.case(x), lambda c: feeds(c, "relu", "exp") and c.program.dynamic_dims > 0


@row("""
def forward(self, x):
    return torch.ops.aten.relu.default(x)
x: float32[s0=16, 1] zeros
""")
def a_vector_loop_reads_too_far() -> Row:
    b, x = network("relu")
    return b, b.case(x), lambda c: bool(calls(c, "relu")) and size_of(c, "s0") >= 16


@row("""
def forward(self, x):
    return torch.ops.aten.relu.default(x)
x: float32[s0=2, 16] zeros
""")
def a_width_above_eight_is_miscounted() -> Row:
    b, x = network("relu")

    def bug(c: Case) -> bool:
        shape = c.program.inputs[0].meta.shape
        return bool(calls(c, "relu")) and len(shape) == 2 and isinstance(shape[1], int) and shape[1] > 8

    return b, b.case(x), bug


@row("""
def forward(self, x):
    t0 = torch.ops.aten.sum.dim_IntList(x, [1])
    return (t0, torch.ops.aten.sum.dim_IntList(x, [1]))
x: float32[s0=2, 1] zeros
""")
def two_reductions_of_one_value_share_a_buffer() -> Row:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    x = b.input("x", ("s0", 16))
    shared = b.chain(x, "neg", "abs", "exp", "sin")
    one = b.call("aten.amax.default", shared, [1], shape=("s0",))
    two = b.call("aten.sum.dim_IntList", shared, [1], shape=("s0",))
    case = b.case((b.call("cos", one), b.call("exp", two)))

    def bug(c: Case) -> bool:
        read = [n.inputs[0] for name in ("amax", "sum") for n in calls(c, name)]
        return len(read) == 2 and read[0] == read[1] and c.program.dynamic_dims > 0

    return b, case, bug


@row("""
def forward(self, x):
    return torch.ops.aten.mm.default(x, self.w0)
self.w0: parameter float32[16, 16]
x: float32[s0=2, 16] zeros
""")
def a_constant_weight_is_packed_wrongly() -> Row:
    b, x = network()

    def bug(c: Case) -> bool:
        kept = {s.name for s in c.program.state}
        return any("w2" in kept & set(n.inputs) for n in calls(c, "mm")) and c.program.dynamic_dims > 0

    return b, b.case(x), bug


@row("""
def forward(self, x, y):
    return torch.ops.aten.mm.default(x, y)
x: float32[s0=2, 1] zeros
y: float32[1, 1] zeros
""")
def a_product_is_wrong_whatever_the_weight() -> Row:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    x, y = b.input("x", ("s0", 16)), b.parameter("y", (16, 16))
    out = b.call("mm", b.call("relu", x), y, shape=("s0", 16))
    return b, b.case(out), dynamic("mm")


@row("""
def forward(self, x):
    return torch.ops.aten.add.Tensor(x, 1.0)
x: float32[s0=2, 1] zeros
""")
def an_addition_is_wrong_whatever_is_added() -> Row:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    x, y = b.input("x", ("s0", 16)), b.input("y", (16,))
    out = b.call("aten.add.Tensor", b.call("sin", x), b.call("cos", y), shape=("s0", 16))
    return b, b.case(out), dynamic("add")


@row("""
def forward(self, x):
    return torch.ops.aten.amin.default(x, [1])
x: uint8[s0=2, 16] ones
""")
def bytes_are_compared_as_if_signed() -> Row:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    x = b.input("x", ("s0", 128), "uint8")
    least = b.call("aten.amin.default", x, [1], shape=TensorMeta("uint8", ("s0",), (1,)))
    made = b.call("aten.to.dtype", least, Torch("float32"), shape=("s0",))
    case = b.case(b.call("aten.div.Tensor", made, 255.0))
    case = replace(case, values=(Value("uint8", (17, 128), Fill("ramp")),))

    def bug(c: Case) -> bool:
        value = c.values[0]
        wide = len(value.shape) == 2 and value.shape[1] >= 16
        return bool(calls(c, "amin")) and value.dtype == "uint8" and wide and value.data != Fill("zeros")

    return b, case, bug


@row("""
def forward(self, x):
    return torch.ops.aten.amin.default(x, [1])
x: uint8[2, s0=16] ones
""")
def plain_values_are_worth_a_second_row() -> Row:
    """With fewer elements it takes odd values to fail: shorter, and far harder to read."""
    b = Builder(sizes={"s0": 40}, symbols=(BATCH,))
    out = b.call(
        "aten.amin.default", b.input("x", (4, "s0"), "uint8"), [1], shape=TensorMeta("uint8", (4,), (1,))
    )
    case = b.case(b.call("neg", out))
    case = replace(case, values=(Value("uint8", (4, 40), Stored("x.pt")),))

    def bug(c: Case) -> bool:
        value = c.values[0]
        rows, width = value.shape if len(value.shape) == 2 else (0, 0)
        plain = value.data == Fill("ones") and rows >= 2 and width >= 16
        odd = not isinstance(value.data, Fill) and width >= 8
        return bool(calls(c, "amin")) and value.dtype == "uint8" and (plain or odd)

    return b, case, bug


@row("""
def forward(self, x):
    return torch.ops.aten.floor_divide.default(x, 2)
x: int64[s0=2] [-1, 0]
""")
def negative_odd_numbers_round_the_wrong_way() -> Row:
    class Listed(Builder):
        def value(self, m: TensorMeta) -> Value:
            return Value(m.dtype, (4,), Literal((-1, 5, 77, -8)))

    b = Listed(sizes={"s0": 4}, symbols=(replace(BATCH, high=None),))
    x = b.input("x", ("s0",), "int64")
    halved = b.call("floor_divide", b.call("neg", x), 14)
    case = b.case(b.call("abs", halved))

    def bug(c: Case) -> bool:
        data = c.values[0].data
        listed = data.elements if isinstance(data, Literal) else ()
        there = any(isinstance(e, int) and e % 2 and e < 0 for e in listed)
        return there and any(n.args[1] not in (0, 1) for n in calls(c, "floor_divide"))

    return b, case, bug


@row("""
def forward(self, x):
    t0 = torch.ops.aten.clone.default(x)
    torch.ops.aten.add_.Tensor(t0, 1.0)
    return t0
x: float32[s0=2, 1] zeros
""")
def a_write_to_a_copy_is_lost() -> Row:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    x = b.input("x", ("s0", 16))
    copy = b.call("clone", b.call("sin", x))
    b.call("aten.add_.Tensor", copy, 1.0, mutates=(0,))
    case = b.case((b.call("exp", copy), b.call("cos", x)))

    def bug(c: Case) -> bool:
        written = [n.inputs[0] for n in c.program.nodes if n.mutates]
        copies = {n.name for n in calls(c, "clone")}
        return bool(copies & set(written)) and c.program.dynamic_dims > 0

    return b, case, bug


@row("""
def forward(self, x):
    return torch.ops.aten.add.Tensor(x, 1.0)
x: float32[s0=2, 1] zeros
""")
def an_addition_is_wrong_though_it_was_written_in_place() -> Row:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    copy = b.call("clone", b.input("x", ("s0", 16)))
    b.call("aten.add_.Tensor", copy, 1.0, mutates=(0,))
    case = b.case(b.call("exp", copy))
    return b, case, lambda c: bool(calls(c, "add_") or calls(c, "add")) and c.program.dynamic_dims > 0


@row("""
def forward(self, x):
    return torch.ops.aten.erf.default(x)
x: float32[s0=2, 1] zeros
""")
def a_branch_has_the_bug() -> Row:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    m = meta(("s0", 16))
    inside = (Input("p", m),)
    yes = Program(inside, (Node("t", "aten.erf.default", (Ref("p"),), meta=m),), (Ref("t"),))
    no = Program(inside, (Node("f", "aten.cos.default", (Ref("p"),), meta=m),), (Ref("f"),))
    b.graphs = (("yes", yes), ("no", no))
    x = b.input("x", ("s0", 16))
    choice = b.call("aten.gt.Scalar", b.call("sum", x, shape=()), 0, shape=TensorMeta("bool", (), ()))
    branched = b.call(
        "higher_order.cond",
        choice,
        Graph("yes"),
        Graph("no"),
        (b.call("sin", x),),
        shape=(m,),
        name="branched",
    )
    out = b.call("operator.getitem", branched, 0, shape=("s0", 16))
    return b, b.case(b.call("exp", out)), dynamic("erf")


def step(inputs: tuple[str, ...], *nodes: tuple[str, ...]) -> Program:
    """A body over rows: calls given as name, operator and operands, of which the last is returned."""
    m = meta((16,))
    made = tuple(Node(name, f"aten.{op}", tuple(map(Ref, read)), meta=m) for name, op, *read in nodes)
    return Program(tuple(Input(name, m) for name in inputs), made, (Ref(made[-1].name),))


def stepped(target: str, operands: tuple[object, ...], body: Program, k: int) -> tuple[Builder, Case]:
    """A map or scan over rows with calls before and after it."""
    out = meta(("s0", 16))
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,), graphs=(("body", body),))
    b.call("sin", b.input("x", ("s0", 16)), name="rows")
    b.input("y", (16,))
    b.call(target, Graph("body"), *operands, shape=(out,) * (k + 1), name="steps")
    item = b.call("operator.getitem", Ref("steps"), k, shape=out)
    return b, b.case(b.call("exp", item))


@row("""
def forward(self, x):
    t0 = torch.ops.aten.select.int(x, 0, 0)
    return torch.ops.aten.erf.default(t0)
x: float32[s0=2, 1] zeros
""")
def a_mapped_function_has_the_bug() -> Row:
    body = step(("p", "q"), ("e", "erf.default", "p"), ("a", "add.Tensor", "e", "q"))
    operands = ([Ref("rows")], [Ref("y")])
    b, case = stepped("higher_order.map_impl", operands, body, 0)
    return b, case, dynamic("erf")


@row("""
def forward(self, x):
    t0 = torch.ops.aten.select.int(x, 0, 0)
    return torch.ops.aten.erf.default(t0)
x: float32[s0=2, 1] zeros
""")
def a_scanned_function_has_the_bug() -> Row:
    body = step(("c", "p"), ("e", "erf.default", "p"), ("a", "add.Tensor", "e", "c"))
    body = replace(body, output=[Ref("a"), Ref("e")])
    operands = ([Ref("y")], [Ref("rows")], ())
    b, case = stepped("higher_order.scan", operands, body, 1)
    return b, case, dynamic("erf")


@row("""
def forward(self, x):
    return torch.ops.aten.erf.default(x)
x: float32[1] zeros
""")
def a_function_mapped_over_two_values_is_given_rows() -> Row:
    body = step(("p", "q"), ("a", "add.Tensor", "p", "q"), ("e", "erf.default", "a"))
    operands = ([Ref("rows"), Ref("x")], [])
    b, case = stepped("higher_order.map_impl", operands, body, 0)
    return b, case, lambda c: bool(calls(c, "erf"))


@row("""
def forward(self, x):
    return torch.ops.aten.relu.default(x)
x: float32[s0=2, 1] zeros
cpp.simdlen = 1
""")
def one_setting_of_three_matters() -> Row:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    settings = Settings(config=(("cpp.simdlen", 1), ("freezing", True), ("max_autotune", True)))
    case = b.case(b.call("relu", b.input("x", ("s0", 16))), settings)
    case = replace(case, earlier=(case.values, case.values))
    return b, case, lambda c: bool(calls(c, "relu")) and ("cpp.simdlen", 1) in c.settings.config


@row("""
def forward(self, x):
    return torch.ops.aten.view.default(x, [-1])
x: float32[s0=2, 1] zeros
""")
def nested_containers_have_nothing_to_do_with_it() -> Row:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    x, y = b.input("x", ("s0", 16)), b.input("y", ("s0", 16))
    flat = b.call("aten.view.default", x, [-1], shape=("16*s0",))
    case = b.case(Tree("dict", ("flat", "both"), (flat, [b.call("aten.add.Tensor", x, y), None])))
    case = replace(case, program=replace(case.program, args=((x, [y]),)))
    return b, case, dynamic("view")


@row("""
def forward(self, x):
    s0 = x.shape[0]
    return torch.ops.aten.arange.default(s0)
x: int8[s0=2] zeros
""")
def a_size_is_all_that_matters() -> Row:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    x = b.input("x", ("s0", 16))
    steps = b.call("arange", Sym("s0"), shape=TensorMeta("int64", ("s0",), (1,)))
    out = b.call("aten.index.Tensor", b.call("relu", x), [steps], shape=("s0", 16))
    return b, b.case(out), lambda c: any(isinstance(n.args[0], Sym) for n in calls(c, "arange"))


@pytest.mark.parametrize("name", ROWS)
def test_this_bug_shrinks_to_this_program(name: str) -> None:
    build, expected = ROWS[name]
    b, case, bug = build()
    assert shrunk(case, b.observed(), bug) == expected
