"""Convict or acquit: each rule on evidence made by hand."""

import pytest

from minimizer.case import Fill, Value
from minimizer.oracle.recorded import (
    Argument,
    Examination,
    Finding,
    Recording,
    Step,
    end_line,
    read_recording,
    start_line,
)
from minimizer.oracle.verdict import Failure
from minimizer.pinpoint.fault import before_any_kernel, choose, from_compiler, from_death

WRONG = Failure("wrong_value", "run", "output 0 differs", flavour="values")
SHOWN = Recording((), shown="output 0 differs")


def kernel(step, name, verdict, **more):
    return Finding(step, name, True, verdict, ("relu",), **more)


def operator(step, name, verdict, **more):
    return Finding(step, name, False, verdict, (), **more)


def fault(*findings, failure=WRONG, recording=SHOWN, graphs=(), differing=(), sources=None):
    seen = Examination(tuple(findings), tuple(graphs), sources or {}, tuple(differing))
    return choose(failure, recording, seen)


def test_the_first_wrong_kernel_is_convicted_and_the_right_ones_acquitted():
    found = fault(
        kernel(1, "k0", "right"),
        kernel(2, "k1", "wrong", figures="3 of 8 elements differ", output="buf1"),
        kernel(3, "k2", "wrong", figures="later"),
    )
    assert (found.place, found.kernel, found.step, found.output) == ("kernel", "k1", 2, "buf1")
    assert found.acquitted == ("k0",)
    assert "the first kernel whose result differs from eager on the same inputs" in found.evidence


def test_a_kernel_behind_a_wrong_operator_call_is_not_convicted():
    found = fault(operator(1, "aten.mm", "wrong", figures="off"), kernel(2, "k0", "right"))
    assert (found.place, found.kernel) == ("operator call", "")
    assert found.text.startswith(
        "k0 is right on its recorded inputs; the fault is in an operator call: aten.mm"
    )


def test_a_graph_that_is_wrong_in_eager_acquits_the_kernels():
    graphs = (("decomposed", ""), ("post-grad", "1 of 1 elements differ"))
    found = fault(kernel(1, "k0", "right"), kernel(2, "k1", "right"), graphs=graphs)
    assert found.place == "graph pass"
    assert found.text.startswith("both kernels are right on their recorded inputs; ")


def test_a_decomposition_comes_before_the_passes():
    graphs = (("decomposed", "wrong"), ("post-grad", "wrong"))
    assert fault(kernel(1, "k0", "right"), graphs=graphs).place == "decomposition"


def test_right_calls_and_a_wrong_program_leave_what_is_between():
    assert fault(kernel(1, "k0", "right")).place == "between kernels"


def test_what_only_the_package_shows_is_the_cpp_wrapper():
    found = fault(kernel(1, "k0", "right"), recording=Recording(()))
    assert found.place == "C++ wrapper"
    assert "the same kernels give the right answer" in found.evidence


def test_other_code_for_the_package_leaves_it_open():
    found = fault(kernel(1, "k0", "right"), recording=Recording(()), differing=("k0",))
    assert found.place == "unknown"


def test_one_kernel_that_cannot_be_judged_is_named_as_the_only_one():
    found = fault(kernel(1, "k0", "unjudged", reason="it is random"))
    assert (found.place, found.kernel) == ("kernel", "k0")
    assert "only kernel" in found.evidence


def test_several_that_cannot_be_judged_are_not_guessed_at():
    found = fault(kernel(1, "k0", "unjudged", reason="a"), kernel(2, "k1", "unjudged", reason="b"))
    assert (found.place, found.kernel) == ("unknown", "")


def test_an_exception_names_the_line_of_the_assertion():
    code = 'x\nTORCH_CHECK((0 <= tmp4) & (tmp4 < 3L), "index out of bounds: 0 <= tmp4 < 3L");\n'
    raised = kernel(1, "k0", "raised", figures="RuntimeError: index out of bounds: 0 <= tmp4 < 3L")
    found = fault(raised, sources={"k0": code})
    assert (found.kernel, found.line.split(":")[0]) == ("k0", "line 2")


def test_a_lost_check_is_no_kernels_fault():
    blind = kernel(1, "k0", "unjudged", reason="eager pad raises RuntimeError: too small")
    found = fault(blind, failure=Failure("lost_error", "run"), recording=Recording())
    assert found.place == "code generation"
    assert "k0 is generated without the check" in found.evidence


@pytest.mark.parametrize(
    ("failure", "place"),
    [
        (Failure("export_error", "export"), "export"),
        (Failure("compile_error", "lower", op="aten.cumsum.default"), "code generation"),
        (Failure("hang", "lower"), "code generation"),
        (Failure("load_error", "load"), "packaging"),
        (Failure("compile_error", "package"), "packaging"),
    ],
)
def test_a_failure_before_any_kernel_needs_no_examination(failure, place):
    found = before_any_kernel(failure)
    assert found is not None
    assert found.place == place
    assert failure.op in found.evidence


def test_where_the_compiler_raises():
    detail = (
        'File "/a/site-packages/torch/_inductor/graph.py", line 7, in run_node\n  x\n'
        'File "/a/site-packages/torch/_inductor/lowering.py", line 71, in cumsum\n  y\n'
    )
    failure = Failure("compile_error", "lower", "no", "IndexError", detail, "aten.cumsum.default")
    found = before_any_kernel(failure)
    assert found is not None
    assert found.evidence == (
        "before any kernel exists, lowering aten.cumsum.default, it raises IndexError: no"
        " (torch/_inductor/lowering.py:71, in cumsum)"
    )


def test_a_failure_at_run_does():
    assert before_any_kernel(WRONG) is None


def test_the_last_launched_kernel_is_convicted_of_a_crash():
    steps = (Step(1, "cpp_fused_add_0", 3, True, finished=True), Step(2, "cpp_fused_index_mul_1", 5, True))
    found = from_death(Recording(steps), "the process ended with SIGABRT")
    assert (found.kernel, found.step, found.calls) == ("cpp_fused_index_mul_1", 2, ("index", "mul"))


def test_a_death_in_an_operator_is_the_operators():
    steps = (Step(1, "cpp_fused_add_0", 3, True, finished=True), Step(2, "aten.sort", 5, False))
    assert from_death(Recording(steps), "SIGSEGV").place == "operator call"


def test_a_death_after_every_call_is_nobodys():
    steps = (Step(1, "cpp_fused_add_0", 3, True, finished=True),)
    found = from_death(Recording(steps), "SIGABRT")
    assert (found.place, found.kernel) == ("between kernels", "")
    assert "cpp_fused_add_0" in found.evidence


def test_the_compiler_names_kernel_and_line():
    kernels = {"cpp_fused_relu_0": "a\n    compile error!\n", "cpp_fused_add_1": "b\n"}
    said = (
        "/tmp/a.kernel.cpp: In function ‘void cpp_fused_relu_0(float*)’:\n"
        "/tmp/a.kernel.cpp:2:5: error: expected ‘;’\n    2 |     compile error!\n"
    )
    found = from_compiler(Failure("cxx_error", "cxx", said), kernels)
    assert (found.kernel, found.line) == ("cpp_fused_relu_0", "line 2: compile error!")
    assert found.evidence == "the C++ compiler says: expected ‘;’"


def test_an_error_in_the_wrapper_acquits_the_kernels():
    said = "/tmp/a.wrapper.cpp:2:5: error: no matching function\n    2 |  call(x);\n"
    assert from_compiler(Failure("cxx_error", "cxx", said), {"k": "code"}).place == "C++ wrapper"


def test_a_recording_survives_a_line_that_is_cut_off():
    held = Value("float32", (2,), Fill("zeros"))
    step = Step(1, "k0", 7, True, (Argument("buf0", held), Argument("s77", 2)))
    done = Step(1, "k0", 7, True, (Argument("buf0", held, held), Argument("s77", 2)), (("buf1", held),))
    second = Step(2, "k1", 8, True, (Argument("buf1", held),))
    lines = [start_line(step), end_line(done), start_line(second), '{"index": 2, "aft']
    recording = read_recording(lines)
    assert [s.finished for s in recording.steps] == [True, False]
    assert recording.steps[0].args == done.args
    assert recording.steps[0].results == done.results
    assert recording.last is not None and recording.last.index == 2


def test_sizes_that_were_fixed_while_code_was_generated():
    said = "assert_size_stride(arg0_1, (1, 9), (9, 1), 'input'): AssertionError: expected size 7==9"
    found = fault(recording=Recording(raised=said, shown="differs"))
    assert found.place == "code generation"
    assert "fixed at those of the example inputs" in found.evidence


def test_an_operator_that_breaks_its_promise():
    check = "assert_size_stride(buf1, (s77 // 2, 3), (3, 1), 'torch.ops.mine.half.default')"
    said = f"{check}: AssertionError: expected size 4==3"
    found = fault(recording=Recording(raised=said, shown="differs"))
    assert found.place == "custom op"
    assert "torch.ops.mine.half.default returns another shape" in found.evidence


def test_anything_else_that_the_wrapper_raises_is_between_the_kernels():
    found = fault(recording=Recording(raised="buf0.item(): RuntimeError: no"))
    assert found.text.startswith("the fault is between the kernels: the wrapper raises")
