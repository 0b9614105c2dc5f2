"""Reading generated code: the Python wrapper by its syntax, C++ by the patterns that Inductor writes."""

from minimizer.oracle.kernels import (
    KernelSource,
    aoti_kernels,
    call_sites,
    compiler_error,
    kernel_definitions,
    named_in,
    reuses,
    same_code,
    store_lines,
)

WRAPPER = """
import torch
from torch._inductor.async_compile import AsyncCompile
async_compile = AsyncCompile()
weight = None  # device(type='cpu') torch.float32 (4, 4) (4, 1) 7f29

cpp_fused_relu_0 = async_compile.cpp_pybinding(['float*', 'const float*', 'const int64_t'], r\'\'\'
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(float* in_out_ptr0,
                       const float* in_ptr0,
                       const int64_t ks0)
{
    auto out_ptr0 = in_out_ptr0;
    for(int64_t x0=0; x0<ks0; x0+=1)
    {
        auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];
        out_ptr0[static_cast<int64_t>(x0)] = tmp0;
    }
}
\'\'\')

class Runner:
    def call(self, args):
        arg0_1, = args
        args.clear()
        s77 = arg0_1.size()[0]
        buf0 = empty_strided_cpu((s77, 4), (4, 1), torch.float32)
        extern_kernels.mm(arg0_1, reinterpret_tensor(weight, (4, 4), (1, 4), 0), out=buf0)
        buf1 = buf0; del buf0  # reuse
        cpp_fused_relu_0(buf1, arg0_1, s77*4)
        buf2 = torch.ops.aten.cumsum.default(buf1, dim=1, dtype=None)
        buf3 = reinterpret_tensor(buf1, (4, ), (1, ), 0)  # reuse
        return (buf2, buf3, )
"""


def test_a_kernel_is_read_with_its_types_and_parameters():
    kernel = kernel_definitions(WRAPPER)["cpp_fused_relu_0"]
    assert kernel.argtypes == ("float*", "const float*", "const int64_t")
    assert kernel.parameters == ("in_out_ptr0", "in_ptr0", "ks0")
    assert [kernel.reads_only(k) for k in range(3)] == [False, True, True]
    assert kernel.code.startswith("#include")


def test_call_sites_have_their_arguments_in_order():
    sites = call_sites(WRAPPER, kernel_definitions(WRAPPER))
    mm, kernel, cumsum = (sites[line] for line in sorted(sites))
    assert (kernel.callee, kernel.args, kernel.kernel) == (
        "cpp_fused_relu_0",
        ("buf1", "arg0_1", "s77 * 4"),
        True,
    )
    assert (mm.callee, mm.results, mm.kernel) == ("extern_kernels.mm", ("buf0",), False)
    assert set(mm.args) >= {"arg0_1", "weight"}
    assert (cumsum.callee, cumsum.results) == ("torch.ops.aten.cumsum.default", ("buf2",))


def test_memory_that_is_taken_over_is_known():
    assert {("buf1", "buf0"), ("buf3", "buf1")} <= set(reuses(WRAPPER).items())


def test_stores_are_found_through_an_alias_of_the_parameter():
    kernel = kernel_definitions(WRAPPER)["cpp_fused_relu_0"]
    assert store_lines(kernel.code, "in_out_ptr0") == ((10, "out_ptr0[static_cast<int64_t>(x0)] = tmp0;"),)


def test_vector_stores_are_found():
    code = "tmp3.store(out_ptr1 + static_cast<int64_t>(x0));\ntmp3.store(out_ptr10 + x0);\n"
    assert [number for number, _ in store_lines(code, "out_ptr1")] == [1]


AOTI = """#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void cpp_fused_add_0(const float* in_ptr0,
                       float* out_ptr0)
{
    out_ptr0[0] = in_ptr0[0]; // a comment
}
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void cpp_fused_mul_1(const float* in_ptr0, float* out_ptr0)
{
    compile error!
}

// Compile cmd
// g++ kernel.cpp
"""


def test_the_kernels_of_a_package_are_parted_and_renamed():
    kernels = aoti_kernels(AOTI)
    assert list(kernels) == ["cpp_fused_add_0", "cpp_fused_mul_1"]
    assert "void kernel(const float*" in kernels["cpp_fused_mul_1"]
    assert "Compile cmd" not in kernels["cpp_fused_mul_1"]
    source = KernelSource.of_code("cpp_fused_add_0", kernels["cpp_fused_add_0"])
    assert source.argtypes == ("const float*", "float*")
    assert source.parameters == ("in_ptr0", "out_ptr0")


def test_layout_and_comments_make_no_other_kernel():
    one = aoti_kernels(AOTI)["cpp_fused_add_0"]
    assert same_code(one, one.replace("\n", "\n\n").replace("// a comment", "// another"))
    assert not same_code(one, one.replace("in_ptr0[0];", "in_ptr0[1];"))


GCC = """C++ compile error
/tmp/x/cabc.kernel.cpp: In function ‘void cpp_fused_mul_1(const float*, float*)’:
/tmp/x/cabc.kernel.cpp:10:5: error: ‘compile’ was not declared in this scope
   10 |     compile error!
      |     ^~~~~~~
"""


def test_the_kernel_that_the_compiler_names():
    kernels = aoti_kernels(AOTI)
    assert named_in(GCC, kernels) == "cpp_fused_mul_1"
    assert compiler_error(GCC) == ("‘compile’ was not declared in this scope", "compile error!")


def test_the_kernel_whose_code_the_compiler_quotes():
    quoted = "\n".join(line for line in GCC.splitlines() if "In function" not in line)
    assert named_in(quoted, aoti_kernels(AOTI)) == "cpp_fused_mul_1"
    assert named_in("something else", aoti_kernels(AOTI)) == ""
