"""What a package's C++ promises about its inputs."""

import zipfile

import pytest

from minimizer import contract
from minimizer.case import Value
from minimizer.options import Unusable
from minimizer.targets.package import promised, read_package
from strategies.values import Fill

WRAPPER = """
    inputs_info_[0].name = "arg0_1";
    inputs_info_[1].name = "arg1_1";
    int32_t arg0_1_expected_dtype = aoti_torch_dtype_float32();
    if (arg0_1_size[0] < 2) {
    if (arg0_1_size[0] > 64) {
    if (8 != arg0_1_size[1]) {
    int32_t arg1_1_expected_dtype = aoti_torch_dtype_int64();
    int64_t s77 = arg0_1_size[0];
    if (_check()) { assert_size_stride(arg0_1, {s77, 8L}, {8L, 1L}, "input"); }
    if (_check()) { assert_size_stride(arg1_1, {2L*s77, }, {1L, }, "input"); }
"""
KERNEL = '#include "x.h"\nextern "C"  void cpp_fused_relu_0(const float* in_ptr0)\n{}\n'
METADATA = '{"AOTI_DEVICE_KEY": "cpu", "AOTI_CPU_ISA": "AVX512"}'


def value(*shape, dtype="float32", stride=None):
    return Value(dtype, shape, Fill("normal"), stride)


@pytest.fixture
def package(tmp_path):
    path = tmp_path / "net.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        folder = "net/data/aotinductor/model/c"
        archive.writestr(f"{folder}.wrapper.cpp", WRAPPER)
        archive.writestr(f"{folder}.kernel.cpp", KERNEL)
        archive.writestr(f"{folder}.wrapper_metadata.json", METADATA)
    return path


def test_a_package_in_words(package):
    assert str(read_package(package)) == (
        "compiled for cpu (AVX512); 2 inputs: arg0_1 float32[2..64, 8], arg1_1 int64[2*s77]; 1 kernel"
    )


@pytest.mark.parametrize(
    ("values", "broken"),
    [
        ([value(4, 8), value(8, dtype="int64")], ""),
        ([value(64, 8), value(128, dtype="int64")], ""),
        ([value(65, 8), value(130, dtype="int64")], "2 <= s77 <= 64"),
        ([value(1, 8), value(2, dtype="int64")], "2 <= s77 <= 64"),
        ([value(4, 9), value(8, dtype="int64")], "size 8 in dim 1"),
        ([value(4, 8), value(7, dtype="int64")], "2*s77"),
        ([value(4, 8), value(8)], "dtype int64"),
        ([value(4, 8)], "2 tensors"),
        ([value(4, 8, stride=(1, 4)), value(8, dtype="int64")], "stride 8 in dim 0"),
        ([value(4, 8, 1), value(8, dtype="int64")], "2 dims"),
    ],
)
def test_inputs_are_judged_by_it(package, values, broken):
    found = contract.check(read_package(package).program, values)
    assert broken in str(found)
    assert (found is None) == (not broken)


def test_without_size_assertions_single_dims_are_known():
    code = "\n".join(line for line in WRAPPER.splitlines() if "assert_size" not in line)
    program = promised(code, ("arg0_1",), "cpu")
    assert program.inputs[0].meta.shape == ("s77", 8)
    assert contract.check(program, [value(4, 8, stride=(1, 4))]) is None
    assert "size 8" in str(contract.check(program, [value(4, 9)]))


def test_code_that_says_nothing_of_its_inputs():
    assert promised('inputs_info_[0].name = "x";', ("x",), "cpu") is None


def test_a_library_alone(tmp_path):
    library = tmp_path / "net.so"
    library.write_bytes(b"\x7fELF")
    assert read_package(library).program is None


def test_a_damaged_package(package):
    data = package.read_bytes()
    package.write_bytes(data.replace(b"extern", b"EXTERN"))
    with pytest.raises(Unusable, match=r"net\.pt2 is damaged"):
        read_package(package)
