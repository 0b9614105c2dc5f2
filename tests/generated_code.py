"""Small texts in the form of what Inductor generates: C++ for the CPU, Triton called from C++, and Python."""

import json
import zipfile

WRAPPER = """\
AOTInductorModel::AOTInductorModel() {
    inputs_info_[0].name = "arg3_1";
    inputs_info_[1].name = "arg4_1";
}
AOTI_NOINLINE static void check_input_0(
    AtenTensorHandle* input_handles
) {
    if (arg3_1_size[0] > 32) {
        std::stringstream ss;
    }
    if (9 != arg3_1_size[1]) {
    }
}
AOTI_NOINLINE static void __check_inputs_outputs() {}
void AOTInductorModel::run_impl() {
    auto arg3_1_size = arg3_1.sizes();
    int64_t s12 = arg3_1_size[0];
    auto arg4_1_size = arg4_1.sizes();
    int64_t s40 = arg4_1_size[0];
    // Topologically Sorted Source Nodes: [cos], Original ATen: [aten.cos]
    cpp_fused_cos_0((const float*)(arg3_1.data_ptr()), (float*)(buf0.data_ptr()), s12);
    // Topologically Sorted Source Nodes: [picked, twice], Original ATen: [aten.index, aten.mul]
    cpp_fused_index_mul_1((const int64_t*)(arg4_1.data_ptr()), (const float*)(buf0.data_ptr()),
        (float*)(buf1.data_ptr()), s40, s12);
}
"""
KERNELS = """\
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  cpp_fused_cos_0(const float* in_ptr0,
                       float* out_ptr0,
                       const int64_t ks0)
{
    auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];
}
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  cpp_fused_index_mul_1(const int64_t* in_ptr0,
                       const float* in_ptr1,
                       float* out_ptr0,
                       const int64_t ks0,
                       const int64_t ks1)
{
    auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];
    auto tmp1 = ks1;
    auto tmp3 = int64_t(tmp0 + tmp1);
    auto tmp5 = tmp0 < 0 ? tmp3 : tmp0;
    AOTI_TORCH_CHECK((0 <= tmp5) & (tmp5 < ks1), "index out of bounds: 0 <= tmp5 < ks1");
    auto tmp9 = in_ptr1[static_cast<int64_t>(x1 + 9L*tmp5)];
    AOTI_TORCH_CHECK((0 <= tmp5) & (tmp5 < 77L), "index out of bounds: 0 <= tmp5 < 77L");
}
"""
PROVENANCE = {
    "cpp_fused_index_mul_1:2": {
        "stack_traces": ['File "net.py", line 8, in forward\n    picked = waves[rows]'],
        "post_grad_nodes": ["index", "mul"],
        "pre_grad_nodes": ["picked", "twice"],
    }
}
TRITON = """\
    inputs_info_[0].name = "arg0_1";
    inputs_info_[1].name = "arg1_1";
static __attribute__((noinline)) void call_triton_poi_fused_index_0(
    const AtenTensorHandle& in_ptr0,
    const AtenTensorHandle& in_ptr1,
    const AtenTensorHandle& out_ptr0,
    int64_t ks0,
    int64_t xnumel,
    int32_t device_idx_,
    cudaStream_t stream_,
    AOTInductorModelKernels& kernels_,
    const std::optional<std::string>& cubin_dir_ = std::nullopt
){
    /*
    async_compile.triton('triton_poi_fused_index_0', '''
    import triton
    @triton.jit
    def triton_poi_fused_index_0(in_ptr0, in_ptr1, out_ptr0, ks0, xnumel, XBLOCK : tl.constexpr):
        xmask = xindex < xnumel
        tmp0 = tl.load(in_ptr0 + (x0), xmask, eviction_policy='evict_last')
        tmp1 = (ks0).to(tl.int32)
        tmp2 = tmp0 + tmp1
        tmp4 = tl.where(tmp0 < 0, tmp2, tmp0)
        tl.device_assert(((0 <= tmp4) & (tmp4 < ks0)) | ~(xmask), "index out of bounds: 0 <= tmp4 < ks0")
        tmp6 = tl.load(in_ptr1 + (x1 + 16*tmp4), xmask)
    ''', device_str='cuda')
    */
}
void AOTInductorModel::run_impl() {
    auto arg0_1_size = arg0_1.sizes();
    int64_t s77 = arg0_1_size[0];
    // Topologically Sorted Source Nodes: [index], Original ATen: [aten.index]
    call_triton_poi_fused_index_0(arg1_1, arg0_1, buf0, s77, 48L, this->device_idx_, stream, kernels,
        this->cubin_dir_);
}
"""
PYTHON = """\
triton_poi_fused_index_0 = async_compile.triton('triton_poi_fused_index_0', '''
@triton.jit
def triton_poi_fused_index_0(in_ptr0, in_ptr1, out_ptr0, ks0, xnumel, XBLOCK : tl.constexpr):
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
    tl.device_assert(((0 <= tmp0) & (tmp0 < ks0)) | ~(xmask), "index out of bounds: 0 <= tmp0 < ks0")
    tmp6 = tl.load(in_ptr1 + (x1 + 16*tmp0), xmask)
''', device_str='cuda')

    def call(self, args):
        x, rows = args
        x_size = x.size()
        s77 = x_size[0]
        # Topologically Sorted Source Nodes: [index], Original ATen: [aten.index]
        triton_poi_fused_index_0.run(rows, x, buf0, s77, 48, stream=raw_stream0)
"""


def package(path, texts, provenance=None):
    """Write a zip archive like an AOTI package."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in texts.items():
            archive.writestr(f"m/data/aotinductor/model/{name}", text)
        if provenance is not None:
            archive.writestr("m/data/aotinductor/model/kernel_information.json", json.dumps(provenance))
    return path
