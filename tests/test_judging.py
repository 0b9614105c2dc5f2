"""Real compilers, real processes, one small program for each way to fail."""

from dataclasses import replace

import pytest
import torch

from minimizer.build import Store
from minimizer.case import Case, Literal, Settings, Value
from minimizer.oracle.requests import TASKS
from minimizer.program import Input, Node, Program, Ref, State, Sym, Symbol, TensorMeta, Torch
from minimizer.reduce.finer import refined
from strategies.values import Fill

VECTOR = TensorMeta("float32", ("n",), (1,))
N = Symbol("n", 2, 200_000, 8)
RELU_BUG = "cpp.inject_relu_bug_TESTING_ONLY"


def vector_case(*nodes, data=None, size=8, config=(), dtype="float32", output=None, hint=8):
    meta = TensorMeta(dtype, ("n",), (1,))
    program = Program(
        (Input("x", meta),), nodes, output or Ref(nodes[-1].name), symbols=(replace(N, hint=hint),)
    )
    value = Value(dtype, (size,), data or Fill("normal"))
    return Case(program, (value,), Settings(config=config))


def relu(bug=None, **options):
    node = Node("y", "aten.relu.default", (Ref("x"),), meta=VECTOR)
    return vector_case(node, config=((RELU_BUG, bug),) if bug else (), **options)


@pytest.mark.parametrize("level", ["lower", "kernel", "jit", "full"])
def test_a_healthy_program_passes_at_every_level(bench, level):
    assert bench.judge(relu(), level).status == "pass"


def test_a_wrong_value_is_seen_by_the_proxy_and_by_the_full_judge_alike(bench):
    seen = [bench.judge(relu("accuracy"), level).failure for level in ("jit", "full")]
    assert [f.kind for f in seen] == ["wrong_value", "wrong_value"]
    assert seen[0].signature == seen[1].signature
    assert seen[0].outputs == (0,)


def test_a_kernel_that_does_not_compile(bench):
    failure = bench.judge(relu("compile_error"), "kernel").failure
    assert (failure.kind, failure.stage) == ("cxx_error", "cxx")
    assert "compile" in failure.signature.text


def test_an_exception_of_the_compiled_program(bench):
    failure = bench.judge(relu("runtime_error"), "jit").failure
    assert (failure.kind, failure.stage) == ("runtime_error", "run")


def test_an_exception_in_a_parallel_region_is_a_crash(bench):
    failure = bench.judge(relu("runtime_error", size=150_000, hint=150_000), "jit").failure
    assert (failure.kind, failure.stage, failure.exception) == ("crash", "run", "SIGABRT")
    assert failure.signature.text == "uncaught exception"


def test_an_exception_while_lowering_needs_no_compiler(bench):
    full = Node("f", "aten.full.default", ([], 2.0), meta=TensorMeta("float32", (), ()))
    scan = Node("c", "aten.cumsum.default", (Ref("f"), 0), meta=TensorMeta("float32", (), ()))
    add = Node("y", "aten.add.Tensor", (Ref("x"), Ref("c")), meta=VECTOR)
    failure = bench.judge(vector_case(full, scan, add), "lower").failure
    assert (failure.kind, failure.stage) == ("compile_error", "lower")


def test_another_dtype_is_wrong_metadata(bench):
    meta = TensorMeta("uint8", ("n", 3), (3, 1))
    node = Node("y", "aten.any.dim", (Ref("x"), 1), meta=TensorMeta("uint8", ("n",), (1,)))
    program = Program((Input("x", meta),), (node,), Ref("y"), symbols=(N,))
    failure = bench.judge(Case(program, (Value("uint8", (4, 3), Fill("ones")),)), "jit").failure
    assert (failure.kind, failure.flavour) == ("wrong_metadata", "dtype")


def test_a_lost_error(bench):
    scalar = TensorMeta("float32", (), ())
    loss = Node("y", "aten.binary_cross_entropy.default", (Ref("x"), Ref("x")), meta=scalar)
    case = vector_case(loss, data=Literal((0.5, 2.0)), size=2)
    failure = bench.judge(case, "jit").failure
    assert (failure.kind, failure.stage, failure.exception) == ("lost_error", "run", "RuntimeError")


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "left out"])
def test_an_assertion_that_the_compiler_is_told_to_leave_out_is_a_missing_check(bench, kept):
    """What eager refuses is refused by the compiled program too, unless it has lost the assertion."""
    item = Node("u", "aten.item.default", (Ref("n"),), meta=Sym("u0"))
    check = Node("c", "torch._check", (Sym("u0 >= 2"),))
    scaled = Node("y", "aten.mul.Tensor", (Ref("x"), Ref("u")), meta=VECTOR)
    inputs = (Input("x", VECTOR), Input("n", TensorMeta("int64", (), ())))
    program = Program(inputs, (item, check, scaled), Ref("y"), symbols=(N,))
    values = (Value("float32", (8,), Fill("ones")), Value("int64", (), Literal((1,))))
    case = Case(program, values, Settings(config=(("scalar_asserts", kept),)))
    verdict = bench.judge(case, "jit")
    if kept:
        assert verdict.status == "invalid"
        assert "eager raises RuntimeError" in verdict.reason
    else:
        assert (verdict.failure.kind, verdict.failure.stage) == ("missing_check", "run")


def counting(store, *nodes):
    """`nodes` on an input ``x`` and a buffer ``count`` of one element, which starts at 1."""
    one = TensorMeta("float32", (1,), (1,))
    Store(store).put("count", torch.ones(1))
    state = (State("count", "buffer", one, "count"),)
    program = Program((Input("x", VECTOR),), nodes, Ref("y"), state, symbols=(N,))
    return Case(program, (Value("float32", (8,), Fill("ones")),))


def test_wrong_only_at_the_second_call(bench):
    one = TensorMeta("float32", (1,), (1,))
    add = Node("c", "aten.add_.Tensor", (Ref("count"), 2), meta=one, mutates=(0,))
    mul = Node("y", "aten.mul.Tensor", (Ref("x"), Ref("count")), meta=VECTOR)
    case = counting(bench.store, add, mul)
    assert bench.judge(case, "full").status == "pass"
    verdict = bench.judge(replace(case, earlier=(case.values,)), "full")
    assert verdict.failure.kind == "wrong_value"
    assert verdict.turn == 2
    assert "on call 2" in verdict.failure.message


def test_wrong_only_after_another_input(bench):
    """What is left of the loudest input so far; the same input twice shows nothing."""
    one, scalar = TensorMeta("float32", (1,), (1,)), TensorMeta("float32", (), ())
    largest = Node("m", "aten.amax.default", (Ref("x"),), meta=scalar)
    half = Node("h", "aten.mul.Tensor", (Ref("count"), 0.5), meta=one)
    peak = Node("p", "aten.maximum.default", (Ref("h"), Ref("m")), meta=one)
    copy = Node("c", "aten.copy_.default", (Ref("count"), Ref("p")), meta=one, mutates=(0,))
    mul = Node("y", "aten.mul.Tensor", (Ref("x"), Ref("count")), meta=VECTOR)
    case = counting(bench.store, largest, half, peak, copy, mul)
    loud = (Value("float32", (8,), Fill("full", low=5.0)),)
    verdicts = [
        bench.judge(replace(case, earlier=before), "full") for before in ((), (case.values,), (loud,))
    ]
    assert [v.status for v in verdicts] == ["pass", "pass", "fail"]
    assert verdicts[2].failure.kind == "wrong_value"


def test_a_program_without_state_keeps_nothing_from_other_sizes(bench):
    earlier = tuple((Value("float32", (size,), Fill("normal")),) for size in (5000, 2, 5000))
    assert bench.judge(replace(relu(), earlier=earlier), "jit").status == "pass"


def test_eager_is_observed_in_every_call_and_says_where_it_stops(bench, sandbox):
    count = Node("c", "aten.add_.Tensor", (Ref("count"), 2), meta=VECTOR, mutates=(0,))
    mul = Node("y", "aten.mul.Tensor", (Ref("x"), Ref("count")), meta=VECTOR)
    case = counting(bench.store, count, mul)
    ramp = (Value("float32", (8,), Fill("ramp")),)
    worker = sandbox.worker()
    seen = worker.call(TASKS + "observe", replace(case, earlier=(ramp,)), str(bench.store), "o_", timeout=60)
    assert seen.problem == ""
    store = Store(bench.store)
    y = next(o for o in seen.seen if o.name == "y")
    assert store.get(y.value.data.file).tolist() == [5.0] * 8
    assert store.get(y.earlier[0].data.file).tolist() == [3.0 * k for k in range(8)]
    x = next(o for o in seen.seen if o.name == "x")
    assert x.value != x.earlier[0]
    view = Node("z", "aten.view.default", (Ref("y"), [3, 3]), meta=VECTOR)
    bad = replace(case, program=replace(case.program, nodes=(count, mul, view), output=Ref("z")))
    seen = worker.call(TASKS + "observe", bad, str(bench.store), "p_", timeout=60)
    worker.close()
    assert seen.problem.startswith("RuntimeError: shape '[3, 3]' is invalid")
    assert "y" in {o.name for o in seen.seen}


def test_inputs_that_eager_refuses_prove_nothing(bench):
    node = Node("y", "aten.view.default", (Ref("x"), [3, 3]), meta=TensorMeta("float32", (3, 3), (3, 1)))
    verdict = bench.judge(vector_case(node), "jit")
    assert verdict.status == "invalid"


def test_a_candidate_that_cannot_be_exported_is_invalid(bench):
    item = Node("i", "aten.item.default", (Ref("x"),), meta=Sym("u0"))
    full = Node("y", "aten.full.default", ([Sym("u0 // 0")], 1.0), meta=VECTOR)
    assert bench.judge(vector_case(item, full), "jit").status == "invalid"


def test_an_unknown_operator_is_invalid(bench):
    node = Node("y", "nowhere.nothing.default", (Ref("x"),), meta=VECTOR)
    verdict = bench.judge(vector_case(node), "jit")
    assert verdict.status == "invalid"
    assert "nowhere" in verdict.reason


def test_values_share_a_compiled_program(bench):
    bench.judge(relu("accuracy"), "jit", fresh=True)
    before = bench.compiles
    first = bench.judge(relu("accuracy", data=Fill("zeros")), "jit")
    second = bench.judge(relu("accuracy", data=Fill("ones"), size=11), "jit")
    assert (first.status, second.status) == ("fail", "fail")
    assert bench.compiles == before + 1


def test_casts_are_exact_and_wrap_as_in_eager(bench):
    meta = TensorMeta("int8", ("n",), (1,))
    cast = Node("y", "aten.to.dtype", (Ref("x"), Torch("int8")), meta=meta)
    case = vector_case(cast, dtype="int32", data=Literal((1, 127, 128, -129)), size=4)
    assert bench.judge(case, "jit").status == "pass"


def test_a_composite_operator_is_told_in_its_parts(bench, sandbox):
    node = Node("y", "aten.hardswish.default", (Ref("x"),), meta=VECTOR)
    worker = sandbox.worker()
    parts = worker.call(
        "minimizer.oracle.tasks:decomposed", vector_case(node), str(bench.store), timeout=60.0
    )
    worker.close()
    finer = refined(vector_case(node), parts)
    assert finer is not None
    assert {"aten.mul.Tensor", "aten.clamp.default"} & {n.target for n in finer.program.nodes}
    assert finer.program.inputs == vector_case(node).program.inputs
    assert finer.program.symbols == vector_case(node).program.symbols
