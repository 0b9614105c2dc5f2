"""Calls that break the contract on purpose: which ones there are, and how an answer to one is sorted."""

import pytest

from minimizer import outside
from minimizer.case import Stored, Value
from minimizer.contract import check
from minimizer.oracle.requests import OutsideAnswer, TargetRequest
from minimizer.oracle.target_bench import TargetBench
from minimizer.outside import Outside, Row, is_clear, look, outcome, violations
from minimizer.program import Input, Program, Symbol, TensorMeta
from minimizer.sandbox import Died, TimedOut
from strategies.values import Fill

ROWS = Input("rows", TensorMeta("float32", ("n", 6), (6, 1)))
INDEX = Input("index", TensorMeta("int64", ("n",), (1,)))
WIDE = Input("wide", TensorMeta("float64", ("2*n",), (1,)))
PROGRAM = Program((ROWS, INDEX, WIDE), (), (), symbols=(Symbol("n", 2, 64, 4),))
EXAMPLES = (
    Value("float32", (4, 6), Stored("a")),
    Value("int64", (4,), Stored("b")),
    Value("float64", (8,), Stored("c")),
)


def found(program=PROGRAM, examples=EXAMPLES, constants=()):
    return {v.text: v for v in violations(program, examples, constants)}


def test_every_kind_of_violation_is_there():
    assert list(found(constants=[2, True, "words", 1.5])) == [
        "rows: float64 for float32",
        "rows: float16 for float32",
        "rows: a dim more",
        "rows: a dim less",
        "rows: static dim 1 larger by one",
        "rows: transposed",
        "rows: sliced",
        "rows: expanded",
        "rows: on meta",
        "index: int32 for int64",
        "index: float32 for int64",
        "index: a dim more",
        "index: a dim less",
        "index: sliced",
        "index: expanded",
        "index: on meta",
        "wide: float32 for float64",
        "wide: a dim more",
        "wide: a dim less",
        "wide: sliced",
        "wide: expanded",
        "wide: on meta",
        "n = 65, outside [2, 64]",
        "n = 0, outside [2, 64]",
        "n = 1, outside [2, 64]",
        "index: dim 0 not n",
        "wide: dim 0 not 2*n",
        "rows: FakeTensor",
        "rows: tensor subclass",
        "rows: negative view",
        "rows: mkldnn",
        "rows: quantized",
        "rows: sparse",
        "rows: None",
        "index: FakeTensor",
        "index: tensor subclass",
        "index: negative view",
        "index: sparse",
        "index: None",
        "wide: FakeTensor",
        "wide: tensor subclass",
        "wide: negative view",
        "wide: sparse",
        "wide: None",
        "the last input missing",
        "2 (baked in): another number",
        "True (baked in): another number",
        "1.5 (baked in): another number",
    ]


def test_all_of_them_break_the_contract():
    for violation in found().values():
        if not violation.form:
            assert check(PROGRAM, violation.values) is not None, violation.text


def test_sizes_out_of_range_keep_their_relations():
    values = found()["n = 65, outside [2, 64]"].values
    assert [v.shape for v in values] == [(65, 6), (65,), (130,)]
    assert found()["n = 65, outside [2, 64]"].at == (0, 1, 2)


def test_layouts_are_of_the_same_sizes():
    rows = found()
    assert rows["rows: transposed"].values[0].stride == (1, 4)
    assert rows["rows: sliced"].values[0].stride == (12, 2)
    assert rows["rows: expanded"].values[0].stride == (0, 1)
    cube = Program((Input("c", TensorMeta("float32", (2, 1, 3), (3, 3, 1))),), (), ())
    turned = found(cube, (Value("float32", (2, 1, 3), Stored("c")),))["c: transposed"].values[0]
    assert (turned.shape, turned.stride) == ((2, 1, 3), (1, 2, 2))


def test_what_cannot_be_broken_is_not_tried():
    open_ended = Program(
        (Input("x", TensorMeta("bool", ("n",), (1,))),), (), (), symbols=(Symbol("n", 0, None, 4),)
    )
    assert list(found(open_ended, (Value("bool", (4,), Stored("x")),))) == [
        "x: uint8 for bool",
        "x: a dim more",
        "x: a dim less",
        "x: sliced",
        "x: expanded",
        "x: on meta",
        "x: FakeTensor",
        "x: tensor subclass",
        "x: sparse",
        "x: None",
        "the last input missing",
    ]
    assert list(violations(Program((), (), ()), ())) == []


def test_a_range_too_large_to_try_is_left_out():
    huge = Program(
        (Input("x", TensorMeta("float32", ("n", "n"), ("n", 1))),),
        (),
        (),
        symbols=(Symbol("n", 0, 2**40, 4),),
    )
    assert not [text for text in found(huge, (Value("float32", (4, 4), Stored("x")),)) if "outside" in text]


CLEAR = [
    "input_handles[1]: unmatched dtype, expected: 6(at::kFloat), but got: 7",
    "input_handles[1]: dim value is too small at 0, expected it to be >= 2, but got: 1",
    "input 1: expected a tensor of 2 dims, got 3",
    "index: expected int64, got int32",
]
MISLEADING = [
    "",
    "input_handles[0]: unmatched dtype, expected: 6(at::kFloat), but got: 7",
    "expected size 5==4, stride 1==1 at dim=1; this could be an incorrect fake kernel\nError in op: input",
    "index out of bounds: 0 <= tmp4 < 8",
    "mat1 and mat2 shapes cannot be multiplied (4x11 and 10x16)",
    "expected m1 and m2 to have the same dtype, but got: double != float",
    "input_handles[1]: something is wrong",
    "reindex: expected int64, got int32",
    "Expected out tensor of index to have device meta, but got cpu instead",
    "input 1\nexpected: 3, got: 4",
]


@pytest.mark.parametrize("message", CLEAR)
def test_clear_refusals_name_the_input_and_both_sides(message):
    assert is_clear(message, [1], ["rows", "index"])
    assert outcome(OutsideAnswer(raised=message), [1], ["rows", "index"]) == "refused clearly"


@pytest.mark.parametrize("message", MISLEADING)
def test_misleading_refusals_do_not(message):
    assert not is_clear(message, [1], ["rows", "index"])


@pytest.mark.parametrize(
    ("message", "clear"),
    [
        ("expected inputs vector size to be 2, but got 1", True),
        ("Ran into a kwarg keyword mismatch: Got the following keywords: [] but expected ['k']", False),
        ("Ran into a kwarg keyword mismatch: got the following keywords: [] but expected ['k']", True),
        ("unknown tensor", False),
    ],
)
def test_a_wrong_number_of_inputs_is_about_all_of_them(message, clear):
    assert is_clear(message, [1], ["rows", "index"], of_call=True) is clear


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (OutsideAnswer(right=True), "accepted, right"),
        (OutsideAnswer(), "accepted, wrong"),
        (OutsideAnswer(raised="no"), "refused misleadingly"),
        (Died(-11, "run", ""), "crash"),
        (TimedOut(9, "run", ""), "hang"),
    ],
)
def test_every_answer_has_a_place(answer, expected):
    assert outcome(answer, [0], ["rows"]) == expected


def test_the_table_counts():
    rows = [
        Row("a", "accepted, wrong", "refused clearly"),
        Row("b", "accepted, wrong", "refused clearly"),
        Row("c", "crash", "crash"),
    ]
    assert Outside(tuple(rows), 5).text.splitlines() == [
        "3 calls outside the contract (2 more for which no time was left), "
        "without and with AOTI_RUNTIME_CHECK_INPUTS=1:",
        "refused clearly        0    2",
        "accepted, wrong        2    0",
        "crash                  1    1",
    ]


def test_a_row_as_json_says_what_is_known():
    assert Row("a", "crash", None).as_json() == {"violation": "a", "unchecked": "crash"}
    assert Row("a", "crash", "crash", "SIGSEGV").as_json()["said"] == "SIGSEGV"


class Bench:
    """Plays a package that dies of anything on meta, and only now and then of something else."""

    package, request = "p.pt2", type("Request", (), {"store": "store"})
    made = []

    def __init__(self):
        self.deaths, self.closed = 0, False
        Bench.made.append(self)

    def call_open(self, task, *args):
        if task.endswith("constants"):
            return []
        _, _, values, at, form, checked = args
        if values[at[0]].device == "meta":
            self.deaths += 1
            raise Died(-11, "run", "")
        if form == "None" and not self.deaths % 2:
            self.deaths += 1
            raise Died(-6, "run", "")
        return OutsideAnswer(raised="input_handles[0]: expected, got" if checked else "", right=not checked)

    def close(self):
        self.closed = True


def test_both_switches_are_tried_and_a_death_is_confirmed():
    Bench.made.clear()
    seen = []
    rows = look(Bench, PROGRAM, EXAMPLES, over=lambda: False, progress=seen.append).rows
    by_text = {row.violation: row for row in rows}
    assert len(rows) == len(found()) == seen[-1]
    assert (by_text["rows: on meta"].unchecked, by_text["rows: on meta"].checked) == ("crash", "crash")
    assert (by_text["rows: sparse"].unchecked, by_text["rows: sparse"].checked) == (
        "accepted, right",
        "refused clearly",
    )
    assert by_text["rows: None"].unchecked == "accepted, right"
    assert len(Bench.made) == 2
    assert all(bench.closed for bench in Bench.made)


def test_what_there_is_no_time_for_is_left_out():
    turns = iter([False, False, True])
    seen = look(Bench, PROGRAM, EXAMPLES, over=lambda: next(turns), progress=lambda n: None)
    assert (len(seen.rows), seen.total) == (2, len(found()))


MODEL = """
import torch
from torch.export import Dim

class Model(torch.nn.Module):
    def forward(self, x, y):
        return torch.cos(x) + y * 2

model = Model()
example_inputs = (torch.randn(4, 6), torch.randn(4, 6))
n = Dim("n", min=1, max=64)
dynamic_shapes = {"x": {0: n}, "y": {0: n}}
"""


@pytest.mark.compiles
def test_a_real_package(sandbox, tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    request = TargetRequest(str(tmp_path / "model.py"), str(tmp_path / "store"))
    package = tmp_path / "model.pt2"
    bench = TargetBench(sandbox, request, package)
    info = bench.open()
    assert bench.compile(300.0) is None
    bench.close()
    tried = [
        "x: float64 for float32",
        "x: transposed",
        "y: negative view",
        "the last input missing",
        "y: FakeTensor",
    ]
    calls = {v.text: v for v in violations(info.program, info.examples)}
    ends = {}
    for checked in outside.SWITCHES:
        one = TargetBench(sandbox, request, package, info=info)
        answers = [outside._answer(one, calls[text], checked) for text in tried]
        ends[checked] = [
            outcome(a, calls[t].at, ["x", "y"], of_call=t.startswith("the last"))
            for a, t in zip(answers, tried)
        ]
        one.close()
    assert ends[False] == [
        "accepted, wrong",
        "accepted, wrong",
        "accepted, wrong",
        "refused clearly",
        "crash",
    ]
    assert ends[True] == ["refused clearly", "refused clearly", "accepted, wrong", "refused clearly", "crash"]
    single = tuple(Value("float32", (1, 6), Fill("ones")) for _ in "xy")
    failures = []
    for environment in ((), (("AOTI_RUNTIME_CHECK_INPUTS", "1"),)):
        one = TargetBench(sandbox, request, package, environment, info=info)
        failures.append(one.judge(single).failure)
        one.close()
    assert failures[0] is None
    assert failures[1].kind == "spurious_error", "a size that was promised is refused"
    assert "dim value is too small at" in failures[1].message
