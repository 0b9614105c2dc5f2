"""Real generated code: one small program for each verdict, and a kernel taken out of it."""

from pathlib import Path

import pytest
import torch

from minimizer.build import Store
from minimizer.case import Case, Settings, Stored, Value
from minimizer.folder import RunFolder
from minimizer.kernel_alone import hand_over_kernel
from minimizer.oracle.kernels import KernelSource
from minimizer.oracle.recorded import KernelArgument, KernelCase
from minimizer.pinpoint.fault import Fault
from minimizer.pinpoint.search import PAST_THE_END, TASKS, Pinpointed, pinpoint
from minimizer.program import Input, Node, Program, Ref, TensorMeta
from minimizer.sandbox import Died
from strategies.values import Fill

pytestmark = pytest.mark.compiles

SQUARE = TensorMeta("float32", (8, 8), (8, 1))
BUG = "cpp.inject_relu_bug_TESTING_ONLY"


def case_of(*nodes, config=(), inputs=("x",), output=None):
    program = Program(tuple(Input(name, SQUARE) for name in inputs), nodes, output or Ref(nodes[-1].name))
    values = tuple(Value("float32", (8, 8), Fill("normal", seed=k)) for k, _ in enumerate(inputs))
    return Case(program, values, Settings(config=config))


def call(name, target, *args, mutates=()):
    return Node(name, f"aten.{target}", args, meta=SQUARE, mutates=mutates)


def pinpointed(sandbox, bench, case, level="jit"):
    failure = bench.judge(case, level).failure
    assert failure is not None
    return failure, pinpoint(sandbox, case, bench.store, failure)


def sine_product_relu(bug):
    return case_of(
        call("a", "sin.default", Ref("x")),
        call("b", "mm.default", Ref("a"), Ref("x")),
        call("y", "relu.default", Ref("b")),
        config=((BUG, bug),),
    )


@pytest.fixture(scope="module")
def wrong_kernel(sandbox, bench):
    return pinpointed(sandbox, bench, sine_product_relu("accuracy"))


def test_of_two_kernels_the_wrong_one_is_convicted(wrong_kernel):
    _, found = wrong_kernel
    assert found.fault.place == "kernel"
    assert found.fault.calls == ("relu",)
    assert [name.startswith("cpp_fused_sin") for name in found.fault.acquitted] == [True]
    assert "differs from eager on the same inputs" in found.fault.evidence


def test_the_wrong_kernel_is_handed_over_and_fails_alone(sandbox, bench, wrong_kernel, tmp_path):
    failure, found = wrong_kernel
    folder = RunFolder(tmp_path / "out", Path("model.py"), resume=False)
    case = sine_product_relu("accuracy")
    alone = hand_over_kernel(sandbox, folder, bench.store, found, case, "2.13")
    assert (alone.runs, alone.failures) == (3, 3)
    text = (folder.path / "kernel_repro.py").read_text()
    assert "return torch.relu(" in text
    assert "sin" not in text.split("def eager")[1].split("def check")[0]
    assert alone.fault.line.startswith("line ")


def test_a_compiler_error_names_kernel_and_line(sandbox, bench):
    _, found = pinpointed(sandbox, bench, sine_product_relu("compile_error"), "kernel")
    assert (found.fault.place, "relu" in found.fault.kernel) == ("kernel", True)
    assert "compile error!" in found.fault.line
    assert found.fault.calls == ("relu",)
    assert found.kernel is not None


def test_a_dead_process_leaves_the_last_kernel_launched(sandbox, bench, tmp_path):
    program = Program(
        (Input("x", TensorMeta("float32", (400, 400), (400, 1))),),
        (Node("y", "aten.relu.default", (Ref("x"),), meta=TensorMeta("float32", (400, 400), (400, 1))),),
        Ref("y"),
    )
    value = Value("float32", (400, 400), Fill("normal"))
    case = Case(program, (value,), Settings(config=((BUG, "runtime_error"),)))
    _, found = pinpointed(sandbox, bench, case)
    assert found.fault.place == "kernel"
    assert "the last one launched" in found.fault.evidence
    assert found.kernel is not None
    assert [arg.name for arg in found.kernel.args] == ["in_ptr0", "out_ptr0"]


def test_a_pass_that_loses_a_copy_acquits_the_kernel(sandbox, bench):
    half = TensorMeta("float32", (2, 8), (8, 1))
    part = Node("p", "aten.slice.Tensor", (Ref("s"), 0, 0, 2), meta=half)
    case = case_of(
        part,
        call("y", "slice_scatter.default", Ref("x"), Ref("p"), 0, 1, 3),
        call("z", "fill_.Scalar", Ref("x"), 9.0, mutates=(0,)),
        inputs=("x", "s"),
        output=Ref("y"),
    )
    failure = bench.judge(case, "jit").failure
    if failure is None:
        pytest.skip(f"torch {torch.__version__} is right here")
    fault = pinpoint(sandbox, case, bench.store, failure).fault
    assert (fault.place, fault.stage, fault.kernel) == ("graph pass", "post-grad", "")
    assert len(fault.acquitted) == 1
    assert "slice_scatter" in fault.evidence


def test_everything_about_a_healthy_program_is_right(sandbox, bench):
    case = case_of(call("a", "sin.default", Ref("x")), call("y", "mm.default", Ref("a"), Ref("x")))
    worker = sandbox.worker()
    try:
        recording = worker.call(f"{TASKS}record", case, str(bench.store), timeout=120.0)
        seen = worker.call(f"{TASKS}examine", case, str(bench.store), recording, timeout=120.0)
    finally:
        worker.close()
    assert [(step.kernel, step.finished) for step in recording.steps] == [(True, True), (False, True)]
    assert [(f.verdict, f.calls) for f in seen.findings] == [("right", ("sin",)), ("right", ("mm",))]
    assert [said for _, said in seen.graphs] == [""] * len(seen.graphs)
    assert len(seen.graphs) == 3
    assert (len(seen.aoti), seen.differing) == (1, ())


TOO_FAR = KernelSource(
    "cpp_fused_too_far_0",
    ("const float*", "float*", "const int64_t"),
    """#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0,
                       const int64_t ks0)
{
    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(ks0); x0+=static_cast<int64_t>(1L))
    {
        out_ptr0[static_cast<int64_t>(x0)] = in_ptr0[static_cast<int64_t>(x0 + 1L)];
    }
}
""",
)


def too_far(store, count):
    held = Value("float32", (16,), Stored(store.put("too_far", torch.ones(16))))
    args = (KernelArgument("in_ptr0", held), KernelArgument("out_ptr0", held), KernelArgument("ks0", count))
    return KernelCase(TOO_FAR, ("copy",), args, None)


def test_reading_one_element_too_far_is_a_fault_when_guarded(sandbox, bench):
    store = Store(bench.store)
    worker = sandbox.worker()
    worker.call(f"{TASKS}run_guarded", too_far(store, 15), str(bench.store), timeout=120.0)
    with pytest.raises(Died) as died:
        worker.call(f"{TASKS}run_guarded", too_far(store, 16), str(bench.store), timeout=120.0)
    assert died.value.signal == "SIGSEGV"
    assert died.value.stage == "guarded cpp_fused_too_far_0"


def test_the_sanitizer_names_the_line_and_gdb_the_frame(sandbox, bench, tmp_path, monkeypatch):
    monkeypatch.setattr("minimizer.kernel_alone.RUNS", 1)
    folder = RunFolder(tmp_path / "out", Path("model.py"), resume=False)
    fault = Fault("kernel", PAST_THE_END, TOO_FAR.name, "leave", ("copy",), 1)
    found = Pinpointed(fault, too_far(Store(bench.store), 16))
    case = case_of(call("y", "relu.default", Ref("x")))
    alone = hand_over_kernel(sandbox, folder, bench.store, found, case, "2.13")
    assert (alone.runs, alone.failures) == (1, 1)
    assert "heap-buffer-overflow READ of 4 bytes" in alone.fault.sanitizer
    assert alone.fault.line.startswith("line 8: out_ptr0[")
    assert "gdb is not installed" in alone.stack or "kernel" in alone.stack
