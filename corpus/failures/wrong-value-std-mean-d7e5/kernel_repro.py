"""cpp_fused_std_mean_0 alone: its result differs from eager on the same inputs: 3 of 3
elements differ; worst at [0]: eager nan, compiled 0.0 (float32) (torch 2.13.0+cpu).

--scalar builds it without vector code, --O0 unoptimised, --asan with
AddressSanitizer.
"""

import linecache
import os
import re
import subprocess
import sys

import torch
from torch._inductor import config
from torch._inductor.codecache import CppPythonBindingsCodeCache

TYPES = ["const float*", "float*", "const int64_t"]
SOURCE = r"""#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0,
                       const int64_t ks0)
{
    std::atomic<int> inductor_cpu_integer_div_error{0};
    inductor_cpu_integer_div_error_flag = &inductor_cpu_integer_div_error;
    {
        #pragma GCC ivdep
        for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(3L); x0+=static_cast<int64_t>(1L))
        {
            {
                Welford<float> tmp_acc0 = Welford<float>();
                Welford<at::vec::Vectorized<float>> tmp_acc0_vec = Welford<at::vec::Vectorized<float>>();
                Welford<at::vec::Vectorized<float>> masked_tmp_acc0_vec = Welford<at::vec::Vectorized<float>>();
                WelfordHelper<float, 4096> scalar_welford_helper0(static_cast<int64_t>(ks0));
                WelfordHelper<at::vec::Vectorized<float>, 4096> welford_helper0(static_cast<int64_t>(c10::div_floor_integer(static_cast<int64_t>(ks0), static_cast<int64_t>(8L))));
                static WelfordHelper<at::vec::Vectorized<float>, 4096> masked_welford_helper0(static_cast<int64_t>(1L));
                for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(ks0); x1+=static_cast<int64_t>(8L))
                {
                    {
                        if(C10_LIKELY(x1 >= static_cast<int64_t>(0) && x1 < static_cast<int64_t>(8L*(c10::div_floor_integer(static_cast<int64_t>(ks0), static_cast<int64_t>(8L))))))
                        {
                            auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x1 + ks0*x0), static_cast<int64_t>(8));
                            tmp_acc0_vec = welford_combine(tmp_acc0_vec, tmp0, &welford_helper0);
                        }
                        if(C10_UNLIKELY(x1 >= static_cast<int64_t>(8L*(c10::div_floor_integer(static_cast<int64_t>(ks0), static_cast<int64_t>(8L)))) && x1 < static_cast<int64_t>(ks0)))
                        {
                            auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x1 + ks0*x0), static_cast<int64_t>(ks0 + (-8L)*(c10::div_floor_integer(static_cast<int64_t>(ks0), static_cast<int64_t>(8L)))));
                            masked_tmp_acc0_vec = welford_combine(masked_tmp_acc0_vec, tmp0, static_cast<int64_t>(ks0 + (-8L)*(c10::div_floor_integer(static_cast<int64_t>(ks0), static_cast<int64_t>(8L)))), &masked_welford_helper0);
                        }
                    }
                }
                tmp_acc0 = welford_combine(tmp_acc0, &scalar_welford_helper0);
                tmp_acc0_vec = welford_combine(tmp_acc0_vec, &welford_helper0);
                masked_tmp_acc0_vec = welford_combine(masked_tmp_acc0_vec, &masked_welford_helper0);
                tmp_acc0 = welford_combine(tmp_acc0, welford_vec_reduce_all(masked_tmp_acc0_vec));
                tmp_acc0 = welford_combine(tmp_acc0, welford_vec_reduce_all(tmp_acc0_vec));
                out_ptr0[static_cast<int64_t>(x0)] = static_cast<float>(tmp_acc0.mean);
            }
        }
    }
    inductor_cpu_integer_div_error_flag = nullptr;
    inductor_cpu_throw_if_integer_div_error(inductor_cpu_integer_div_error);
}
"""
SCALAR = r"""#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0,
                       const int64_t ks0)
{
    std::atomic<int> inductor_cpu_integer_div_error{0};
    inductor_cpu_integer_div_error_flag = &inductor_cpu_integer_div_error;
    {
        #pragma GCC ivdep
        for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(3L); x0+=static_cast<int64_t>(1L))
        {
            {
                Welford<float> tmp_acc0 = Welford<float>();
                WelfordHelper<float, 4096> scalar_welford_helper0(static_cast<int64_t>(ks0));
                for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(ks0); x1+=static_cast<int64_t>(1L))
                {
                    {
                        {
                            auto tmp0 = in_ptr0[static_cast<int64_t>(x1 + ks0*x0)];
                            tmp_acc0 = welford_combine(tmp_acc0, tmp0, &scalar_welford_helper0);
                        }
                    }
                }
                tmp_acc0 = welford_combine(tmp_acc0, &scalar_welford_helper0);
                out_ptr0[static_cast<int64_t>(x0)] = tmp_acc0.mean;
            }
        }
    }
    inductor_cpu_integer_div_error_flag = nullptr;
    inductor_cpu_throw_if_integer_div_error(inductor_cpu_integer_div_error);
}
"""
BUILDS = ["--scalar", "--vector"]


def eager(in_ptr0):
    return torch.var_mean(in_ptr0, [1], correction=1.0)[1]


def check() -> bool:
    in_ptr0 = torch.zeros(3, 0)
    out_ptr0 = torch.empty(3).fill_(85)
    config.aot_inductor.debug_compile = "--O0" in sys.argv
    source = SOURCE
    if "--scalar" in sys.argv:
        source, config.cpp.simdlen = SCALAR, 1
    flags = ()
    if "--asan" in sys.argv:
        os.environ.pop("LD_PRELOAD")  # not for the compiler
        config.cpp_cache_precompile_headers = False
        flags = ("-fsanitize=address", "-g")
    build = CppPythonBindingsCodeCache.load_pybinding
    kernel = build(TYPES, source, extra_flags=flags)
    expected = eager(in_ptr0)
    kernel(in_ptr0, out_ptr0, 0)
    print(f"eager  {expected}\nkernel {out_ptr0}")
    return torch.allclose(out_ptr0, expected, 1.3e-06, 1e-05, equal_nan=True)


def with_asan() -> bool:
    """Run the kernel under AddressSanitizer, and print the line that it stops at."""
    names = [f"-print-file-name=lib{name}.so" for name in ("asan", "stdc++")]
    libraries = [subprocess.check_output(["g++", n], text=True).strip() for n in names]
    env = {**os.environ, "LD_PRELOAD": ":".join(libraries)}
    env["ASAN_OPTIONS"] = "detect_leaks=0:alloc_dealloc_mismatch=0"
    for build in BUILDS:
        command = [sys.executable, __file__, "child", "--asan", build]
        job = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
        report = job.communicate()[1]
        kind = re.search(r"AddressSanitizer: ([\w-]+)", report)
        at = re.search(r"#\d+ \S+ in \S*kernel\S*.* (/\S+):(\d+)", report)
        seen = kind[1] if kind else "sees nothing"
        print(f"AddressSanitizer, {build[2:]} build: {seen}")
        if kind:
            print(report[report.index("ERROR: AddressSanitizer") :][:4000])
        if kind and at:
            line = linecache.getline(at[1], int(at[2])).strip()
            print(f"line {at[2]} of the {build[2:]} kernel: {line}")
        if kind:
            return False
    return True


if __name__ == "__main__":
    if "child" in sys.argv:
        raise SystemExit(not check())
    good = with_asan() if "--asan" in sys.argv else check()
    raise SystemExit(not good)
