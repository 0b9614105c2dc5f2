"""Index checks traced through generated code to an input, a dim, its guard and the line of the model."""

import pytest
from generated_code import KERNELS, PROVENANCE, PYTHON, TRITON, WRAPPER, package

from minimizer.explain.bounds import Bound
from minimizer.explain.generated import Limits, Unreadable, parse_generated, read_generated
from minimizer.explain.origin import trace
from minimizer.explain.router import search_text
from minimizer.explain.traced import with_code

CPU = parse_generated([WRAPPER, KERNELS], PROVENANCE)
CHECK = (
    "index out of bounds: 0 <= tmp5 < ks1\nException raised from cpp_fused_index_mul_1 at /c/k.kernel.cpp:15"
)
DEVICE = (
    "unknown:0: unknown: block: [2,0,0], thread: [9,0,0] Assertion `index out of bounds: 0 <= tmp4 < ks0` "
    "failed."
)


def test_what_a_wrapper_says():
    assert CPU.inputs == ("arg3_1", "arg4_1")
    assert CPU.symbols == {"s12": ("arg3_1", 0), "s40": ("arg4_1", 0)}
    assert CPU.limits == {("arg3_1", 0): Limits(None, 32)}
    assert CPU.kernels["cpp_fused_index_mul_1"].parameters == ("in_ptr0", "in_ptr1", "out_ptr0", "ks0", "ks1")
    assert [(f.kernel, f.nodes) for f in CPU.launches] == [
        ("cpp_fused_cos_0", ("cos",)),
        ("cpp_fused_index_mul_1", ("picked", "twice")),
    ]
    assert CPU.launches[1].arguments[3:] == ("s40", "s12")


def test_from_the_bound_to_the_input():
    origin = trace(CPU, Bound("0", "tmp5", "ks1"), "cpp_fused_index_mul_1")
    (size,) = origin.sizes
    assert (origin.bound, size.symbol, size.input, size.position, size.dim) == ("s12", "s12", "arg3_1", 0, 0)
    assert size.limits == Limits(None, 32)
    assert origin.indices == ("arg4_1",) and origin.indexed == "buf0"
    assert origin.lines == ("net.py:8: picked = waves[rows]",)


def test_the_missing_lower_bound_is_said_in_words():
    (found,) = search_text(CHECK)
    explanation = with_code(found, CPU, ("x", "rows")).explanation
    where = dict(explanation.where)
    assert where["s12"] == "dim 0 of input 0 (x)"
    assert where["guard on s12"].startswith("no lower bound, <= 32")
    assert where["indices from"] == "input 1 (rows)"
    assert where["your line"] == "net.py:8: picked = waves[rows]"
    assert "dim 0 of input 0 (x) has no lower bound: where it is 0" in explanation.cause
    assert len(explanation.fixes) == 3
    assert "Dim(NAME, min=2" in explanation.fixes[1]


def test_a_constant_bound_blames_the_values():
    (found,) = search_text("index out of bounds: 0 <= tmp5 < 77L")
    explanation = with_code(found, CPU).explanation
    where = dict(explanation.where)
    assert where["kernel"] == "cpp_fused_index_mul_1" and where["77"] == "a constant"
    assert explanation.cause == "a value of input 1 (arg4_1) is outside [0, 77)"


@pytest.mark.parametrize(("text", "inputs"), [(TRITON, ("arg0_1", "arg1_1")), (PYTHON, ("x", "rows"))])
def test_a_triton_assertion_without_a_kernel_name_is_traced(text, inputs):
    found = search_text(DEVICE)[0] if text is TRITON else search_text(DEVICE.replace("tmp4", "tmp0"))[0]
    where = dict(with_code(found, parse_generated([text], {})).explanation.where)
    assert where["kernel"] == "triton_poi_fused_index_0"
    assert where["s77"] == f"dim 0 of input 0 ({inputs[0]})"
    assert where["indices from"] == f"input 1 ({inputs[1]})"
    assert where["used on"] == f"input 0 ({inputs[0]})"
    assert where["made from"] == "index"
    assert (where["block"], where["thread"]) == ("(2,0,0)", "(9,0,0)")


def test_several_kernels_with_the_same_check_are_all_named():
    twin = KERNELS.replace("cpp_fused_index_mul_1", "cpp_fused_other_2").partition("#include")[2]
    generated = parse_generated([WRAPPER, KERNELS, f"#include{twin}"], {})
    origin = trace(generated, Bound("0", "tmp5", "ks1"))
    assert (origin.kernel, origin.others) == ("cpp_fused_index_mul_1", ("cpp_fused_other_2",))


def test_a_log_of_another_package():
    (found,) = search_text("index out of bounds: 0 <= tmp99 < ks7")
    assert "another package" in dict(with_code(found, CPU).explanation.where)["package"]


def test_a_sanitizer_report_gets_the_sources_of_its_kernel():
    text = (
        "==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x60 at pc 0x7f\n"
        "SUMMARY: AddressSanitizer: heap-buffer-overflow /c/k.kernel.cpp:14 in cpp_fused_index_mul_1"
    )
    where = dict(with_code(search_text(text)[0], CPU).explanation.where)
    assert where["made from"] == "index, mul" and where["your line"] == "net.py:8: picked = waves[rows]"


def test_a_failed_call_names_the_inputs_among_its_arguments():
    text = "aoti_torch_cpu_mm_out(buf1, buf0, arg4_1) API call failed at /c/w.wrapper.cpp, line 24"
    where = dict(with_code(search_text(text)[0], CPU, ("x", "rows")).explanation.where)
    assert where["inputs among its arguments"] == "input 1 (rows)"


def test_a_refused_input_has_a_name():
    (found,) = search_text("input_handles[1]: unmatched dim value at 0, expected: 4, but got: 5")
    assert dict(with_code(found, CPU, ("x", "rows")).explanation.where)["input"] == "input 1 (rows)"


def test_packages_are_read_as_archives_and_never_executed(tmp_path):
    path = package(tmp_path / "m.pt2", {"a.wrapper.cpp": WRAPPER, "a.kernel.cpp": KERNELS}, PROVENANCE)
    assert read_generated(path) == CPU


def test_older_provenance_lists_nodes_only(tmp_path):
    path = package(tmp_path / "m.pt2", {"a.kernel.cpp": KERNELS}, {"cpp_fused_cos_0": ["cos"]})
    assert read_generated(path).provenance["cpp_fused_cos_0"].nodes == ("cos",)


def test_what_is_no_package_is_refused_in_one_line(tmp_path):
    (tmp_path / "junk.pt2").write_bytes(b"junk")
    package(tmp_path / "saved.pt2", {"model.json": "{}"})
    for name, said in (
        ("junk.pt2", "cannot be read"),
        ("saved.pt2", "no generated code"),
        ("none", "not a file"),
    ):
        with pytest.raises(Unreadable, match=said):
            read_generated(tmp_path / name)


def test_damaged_provenance_is_left_out(tmp_path):
    path = package(
        tmp_path / "m.pt2", {"a.kernel.cpp": KERNELS}, {"cpp_fused_cos_0": 7, "x": {"stack_traces": 3}}
    )
    assert "cpp_fused_cos_0" not in read_generated(path).provenance


@pytest.mark.parametrize("cut", range(0, len(TRITON), 97))
def test_cut_texts_are_read_as_far_as_they_go(cut):
    generated = parse_generated([TRITON[:cut], WRAPPER[:cut], KERNELS[-cut:]], {})
    for bound in (Bound("0", "tmp4", "ks0"), Bound("", "tmp5", "")):
        trace(generated, bound)


@pytest.mark.parametrize("at", range(40, 900, 61))
def test_damaged_packages_are_refused_or_read(tmp_path, at):
    path = package(tmp_path / "m.pt2", {"a.wrapper.cpp": WRAPPER, "a.kernel.cpp": KERNELS}, PROVENANCE)
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)
    try:
        read_generated(path)
    except Unreadable as problem:
        assert str(path) in str(problem)
