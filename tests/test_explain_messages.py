"""One made-up sample of each form of message, in the formats of the tools' documentation and sources.

What a sample must give: who (kernel, input, operator), where (position, block, thread), what to do next.
"""

import pytest
from explained import only

from minimizer.explain.bounds import Bound, IndexCheck, bound_in
from minimizer.explain.router import search_text

SANITIZER_2025 = """\
========= Invalid __global__ read of size 4 bytes
=========     at triton_poi_fused_index_select_3+0x1c0 in kernel.py:44
=========     by thread (31,0,0) in block (2,1,0)
=========     Access to 0x7f12a0000800 is out of bounds
=========     and is 1,024 bytes after the nearest allocation at 0x7f12a0000000 of size 1,024 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: launchKernel in wrapper.cpp:88 [0x1234] in model.so
========= ERROR SUMMARY: 1 error"""
SANITIZER_2023 = """\
========= Invalid __global__ write of size 2 bytes
=========     at 0x210 in /tmp/cache/ab/kernel.py:19:triton_red_fused_sum_1
=========     by thread (0,0,0) in block (7,0,0)
=========     Address 0x7f00000fff00 is out of bounds
=========     and is 256 bytes before the nearest allocation at 0x7f0000100000 of size 2,048 bytes"""
SANITIZER_OLD = """\
========= Invalid __shared__ read of size 8 bytes
=========     at 0x000000a0 in reduce(double const*, double*, int)
=========     by thread (5,0,0) in block (1,0,0)
=========     Address 0x00000013 is misaligned"""
DEVICE_ASSERT = (
    "unknown:0: unknown: block: [17,0,0], thread: [96,0,0] "
    "Assertion `index out of bounds: 0 <= tmp11 < ks2` failed."
)
NO_LOWER_END = (
    "unknown:0: unknown: block: [1,0,0], thread: [3,0,0] "
    "Assertion `index out of bounds: x0 + (32*r1) < 4096` failed."
)
ATEN_ASSERT = (
    "../aten/src/ATen/native/cuda/Gather.cu:77: operator(): block: [0,2,0], thread: [64,0,0] "
    'Assertion `idx_dim >= 0 && idx_dim < size && "index out of bounds"` failed.'
)
CUDA_GDB = """\
CUDA Exception: Warp Out-of-range Address
The exception was triggered at PC 0x7fffd0f4a510 (take.cu:12)

Thread 1 "python" received signal CUDA_EXCEPTION_5, Warp Out-of-range Address.
[Switching focus to CUDA kernel 0, grid 77, block (4,0,0), thread (96,0,0), device 0, sm 11, warp 3, lane 0]
0x00007fffd0f4a520 in take_kernel<<<(16,1,1),(256,1,1)>>> (out=0x7fff40000000, n=4096) at take.cu:12
12\t  out[i] = in[idx[i]];"""
CORE_DUMP = """\
CUDA Exception: Warp Illegal Address
The exception was triggered at PC 0x7f11e0  fill(float*, int)
[Current focus set to CUDA kernel 0, grid 5, block (9,0,0), thread (1,0,0), device 0, sm 3, warp 1, lane 1]
#0  0x00007f11f0 in fill(float*, int)<<<(10,1,1),(32,1,1)>>> ()"""
GDB = """\
Thread 1 "python" received signal SIGSEGV, Segmentation fault.
0x00007ffff1a2 in __memmove_avx () from /lib/libc.so.6
#0  0x00007ffff1a2 in __memmove_avx () from /lib/libc.so.6
#1  0x00007ffeee01 in cpp_fused_cat_2 (in_ptr0=0x7f00, out_ptr0=0x7f80, ks0=9) at /tmp/c/ab.kernel.cpp:57
#2  0x00007ffeee99 in torch::aot_inductor::AOTInductorModel::run_impl () at /tmp/c/ab.wrapper.cpp:300"""
FAULTHANDLER = """\
Fatal Python error: Segmentation fault

Current thread 0x00007f (most recent call first):
  File "/srv/serve.py", line 41 in predict
  File "/srv/serve.py", line 90 in <module>"""
ASAN = """\
==4242==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x6020000009f0 at pc 0x7f1 bp 0x7f2 sp 0x7f3
READ of size 4 at 0x6020000009f0 thread T0
    #0 0x7f1 in __asan_memcpy (/lib/libasan.so.8+0x5)
    #1 0x7f4 in cpp_fused_add_mul_1 /tmp/c/xy.kernel.cpp:33
    #2 0x7f5 in torch::aot_inductor::AOTInductorModel::run_impl(void**) /tmp/c/xy.wrapper.cpp:512

0x6020000009f0 is located 0 bytes to the right of 80-byte region [0x6020000009a0,0x6020000009f0)
SUMMARY: AddressSanitizer: heap-buffer-overflow (/lib/libasan.so.8+0x5) in __asan_memcpy"""
VALGRIND = """\
==512== Memcheck, a memory error detector
==512== Invalid read of size 8
==512==    at 0x5F00: cpp_fused_gather_0 (ab.kernel.cpp:21)
==512==    by 0x5F01: run_impl (ab.wrapper.cpp:400)
==512==  Address 0x6000 is 8 bytes after a block of size 64 alloc'd
==512==    at 0x4848: posix_memalign (in /usr/lib/valgrind/vgpreload.so)"""
CXX = """\
CppCompileError: C++ compile error

Command:
g++ /tmp/c/q.kernel.cpp -O3

Output:
/tmp/c/q.kernel.cpp: In function ‘void cpp_fused_where_0(const bool*, float*)’:
/tmp/c/q.kernel.cpp:12:40: error: ‘tmp3’ was not declared in this scope
   12 |     auto tmp4 = tmp3;
/tmp/c/q.kernel.cpp:13:9: error: expected ‘;’"""
LOWERING = """\
torch._inductor.exc.InductorError: LoweringException: NotImplementedError: view_as_complex on complex64
  target: aten.view_as_complex.default
  args[0]: TensorBox(StorageBox(InputBuffer(name='arg0_1')))

Found from :
  File "/home/someone/model.py", line 31, in forward
    z = torch.view_as_complex(x)"""


@pytest.mark.parametrize(
    ("text", "kernel", "position", "block", "thread"),
    [
        (SANITIZER_2025, "triton_poi_fused_index_select_3", "kernel.py:44", "(2,1,0)", "(31,0,0)"),
        (SANITIZER_2023, "triton_red_fused_sum_1", "/tmp/cache/ab/kernel.py:19", "(7,0,0)", "(0,0,0)"),
        (SANITIZER_OLD, "reduce(double const*, double*, int)", "0x000000a0", "(1,0,0)", "(5,0,0)"),
        (CUDA_GDB, "take_kernel", "take.cu:12", "(4,0,0)", "(96,0,0)"),
        (CORE_DUMP, "fill(float*, int)", "0x7f11e0", "(9,0,0)", "(1,0,0)"),
        (GDB, "cpp_fused_cat_2", "/tmp/c/ab.kernel.cpp:57", None, None),
        (ASAN, "cpp_fused_add_mul_1", "/tmp/c/xy.kernel.cpp:33", None, None),
        (VALGRIND, "cpp_fused_gather_0", "ab.kernel.cpp:21", None, None),
        (CXX, "cpp_fused_where_0", "/tmp/c/q.kernel.cpp:12:40", None, None),
        (ATEN_ASSERT, "operator()", "../aten/src/ATen/native/cuda/Gather.cu:77", "(0,2,0)", "(64,0,0)"),
        (DEVICE_ASSERT, None, None, "(17,0,0)", "(96,0,0)"),
    ],
)
def test_kernel_position_and_thread(text, kernel, position, block, thread):
    explanation, where = only(text)
    assert where.get("kernel") == kernel
    assert where.get("position") == position
    assert (where.get("block"), where.get("thread")) == (block, thread)
    assert explanation.means and explanation.cause and explanation.next


def test_a_sanitizer_report_says_how_far_outside():
    assert "1,024 bytes past the end of an allocation of 1,024 bytes" in only(SANITIZER_2025)[0].means
    assert "256 bytes before the start" in only(SANITIZER_2023)[0].means
    assert "negative index" in only(SANITIZER_2023)[0].cause
    assert "misaligned" in only(SANITIZER_OLD)[0].means


def test_two_reports_are_kept_apart():
    found = search_text(f"{SANITIZER_2023}\n{SANITIZER_OLD}")
    assert [f.fact.kernel for f in found] == [
        "triton_red_fused_sum_1",
        "reduce(double const*, double*, int)",
    ]
    assert [f.line for f in found] == [1, 6]


def test_a_clean_sanitizer_run_is_said_to_be_one():
    assert "caching allocator" in only("========= ERROR SUMMARY: 0 errors")[0].means


def test_a_device_assert_tells_how_to_make_it_synchronous():
    explanation, _ = only(DEVICE_ASSERT)
    commands = "\n".join(explanation.next)
    assert "CUDA_LAUNCH_BLOCKING=1" in commands
    assert "compute-sanitizer --tool memcheck" in commands
    assert "cuda-gdb -batch -ex run -ex bt" in commands
    assert len(explanation.fixes) == 3


def test_a_check_without_lower_end_says_so():
    explanation, _ = only(NO_LOWER_END)
    assert "no lower end" in explanation.cause and "4096" in explanation.cause


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("index out of bounds: 0 <= tmp4 < 12L", Bound("0", "tmp4", "12")),
        ("AssertionError('index out of bounds: 0 <= tmp2 < 6')", Bound("0", "tmp2", "6")),
        ("index out of bounds: 0 <= tmp5 < ks0", Bound("0", "tmp5", "ks0")),
        ("index out of bounds: r1 + (64*x0) < 9000", Bound("", "r1 + (64*x0)", "9000")),
        ("index out of bounds: 0 <= tmp5", Bound("0", "tmp5", "")),
        ("index out of bounds: 0 <= tmp5 < 2L*ks1", Bound("0", "tmp5", "2L*ks1")),
        ("index out of bounds: the index is 3", Bound("", "the index is 3", "")),
        ("all is well", None),
    ],
)
def test_bounds(text, bound):
    assert bound_in(text) == bound


def test_an_index_check_of_the_cpu_names_kernel_and_line():
    text = (
        "RuntimeError: index out of bounds: 0 <= tmp7 < 32L\n"
        "Exception raised from cpp_fused_embedding_0 at /tmp/c/ab.kernel.cpp:21 (most recent call first):"
    )
    (found,) = search_text(text)
    assert found.fact == IndexCheck(
        Bound("0", "tmp7", "32"), "cpp_fused_embedding_0", "/tmp/c/ab.kernel.cpp", 21
    )


def test_the_source_of_a_check_is_no_failed_check():
    assert not search_text('AOTI_TORCH_CHECK((0 <= tmp7), "index out of bounds: 0 <= tmp7 < ks1");')
    assert not search_text('tl.device_assert(tmp4 < ks0, "index out of bounds: 0 <= tmp4 < ks0")')


def test_an_illegal_access_gets_the_ladder():
    explanation, _ = only("RuntimeError: CUDA error: an illegal memory access was encountered")
    steps = "\n".join(explanation.next)
    order = [
        steps.index(step)
        for step in (
            "AOTI_RUNTIME_CHECK_INPUTS=1",
            "CUDA_LAUNCH_BLOCKING=1",
            "PRINTER=3",
            "compute-sanitizer",
            "cuda-gdb",
        )
    ]
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Triton Error [CUDA]: misaligned address", "CUDA: misaligned address"),
        (
            "RuntimeError: The specified pointer resides on host memory and is not registered with any "
            "CUDA device.",
            "CUDA: host pointer",
        ),
        (
            "ValueError: Pointer argument (at 0) cannot be accessed from Triton (cpu tensor?)",
            "CUDA: host pointer (Triton)",
        ),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "CUDA: out of memory"),
        ("CUDA error: no kernel image is available for execution on the device", "CUDA: wrong architecture"),
        ("CUDA driver error: device kernel image is invalid", "CUDA: wrong architecture (image)"),
        (
            "out of resource: shared memory, Required: 294912, Hardware limit: 232448",
            "CUDA: out of resources",
        ),
        ("torch.AcceleratorError: CUDA error: invalid device ordinal", "CUDA: no such device"),
        ("CUDA error: something new", "CUDA error"),
        ("AssertionError: Torch not compiled with CUDA enabled", "does not run on this machine"),
        (
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 1099511627776 bytes.",
            "out of memory",
        ),
        (
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
            "device mismatch (misuse)",
        ),
        (
            "RuntimeError: Expected out tensor to have device meta, but got cpu instead",
            "device mismatch (misuse)",
        ),
        (
            "ValueError: Ran into a kwarg keyword mismatch: Got the following keywords ['z'] but expected "
            "['y']",
            "kwarg keyword mismatch (misuse)",
        ),
        ("expected inputs vector size to be 2, but got 1", "number of inputs (misuse)"),
        ("AssertionError: Guard failed: x.size()[0] <= 8", "guard (misuse)"),
        ("Failed to initialize zip archive: file open failed", "not a package"),
        (
            "Failed to find a generated cpp file or so file for model 'model' in the zip archive.",
            "exported program, not a package",
        ),
        (
            "We ran into an error when deserializing the saved file. Please check",
            "package, not an exported program",
        ),
        ("Incorrect device passed to aoti_runner_cpu", "device number for a CPU package"),
        ("Error in dlopen: /tmp/m.so: undefined symbol: aoti_torch_new", "library cannot be loaded"),
        (
            "torch._export.aot_compile()/torch._export.aot_load() is being deprecated, please",
            "deprecated interface",
        ),
        ("Loading outdated pt2 file. Please regenerate your package.", "'outdated' warning"),
        ("free(): invalid next size (normal)", "memory corruption noticed by malloc"),
        ("bash: line 1:  4242 Illegal instruction     (core dumped) python serve.py", "illegal instruction"),
        ("serve.sh: line 3:  4242 Killed                  python serve.py", "killed"),
        ("terminate called after throwing an instance of 'c10::Error'", "uncaught exception"),
        ("Segmentation fault (core dumped)", "segmentation fault"),
        ("At least one NaN in buf7", "NaN assertion"),
        ("RuntimeError: expected scalar type Float but found Half", "unmatched operand dtypes (misuse)"),
        (
            "The size of tensor a (5) must match the size of tensor b (6) at non-singleton dimension 0",
            "sizes that do not fit together (misuse)",
        ),
        (
            "IndexError: index 7 is out of bounds for dimension 0 with size 5",
            "index outside the tensor (misuse)",
        ),
        (
            "fatal: InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx",
            "no C++ compiler",
        ),
        ("OSError: [Errno 28] No space left on device: '/tmp/x'", "machine is full"),
        ("ConstraintViolationError: 5 not in range [6, 8]", "dynamic shapes do not fit the example"),
        (
            "GuardOnDataDependentSymNode: Could not guard on data-dependent expression Eq(u0, 1)",
            "control flow that depends on values",
        ),
        (
            "Error: aoti_torch_cpu_mm_out(buf1, buf0, arg3_1) API call failed at /tmp/c/w.wrapper.cpp, "
            "line 986",
            "operator refused its inputs",
        ),
    ],
)
def test_known_messages(text, name):
    explanation, _ = only(text)
    assert explanation.name == name
    assert explanation.means
    assert explanation.next or explanation.fixes


def test_a_lowering_exception_names_operator_and_line():
    explanation, where = only(LOWERING)
    assert explanation.says == "NotImplementedError: view_as_complex on complex64"
    assert where == {
        "operator": "aten.view_as_complex.default",
        "position": "/home/someone/model.py:31 in forward",
    }


def test_a_missing_header_is_not_a_bug_of_the_compiler():
    explanation, _ = only("/tmp/c/h.cpp:3:10: fatal error: Python.h: No such file or directory")
    assert "Nothing is wrong with the model" in explanation.means
    assert "python3-dev" in explanation.fixes[0]


def test_faulthandler_names_the_line_of_python():
    _, where = only(FAULTHANDLER)
    assert (where["function"], where["position"]) == ("predict", "/srv/serve.py:41")


def launched(*events):
    return "\n".join(f"[ {when}_launch: {kernel} ]" for when, kernel in events)


def test_the_last_kernel_that_did_not_return():
    text = launched(("before", "cpp_fused_a_0"), ("after", "cpp_fused_a_0"), ("before", "cpp_fused_b_1"))
    explanation, where = only(text)
    assert where["kernel"] == "cpp_fused_b_1" and where["returned before"] == "cpp_fused_a_0"
    assert "PRINTER=2 AOT_INDUCTOR_FILTERED_KERNELS_TO_PRINT=cpp_fused_b_1" in explanation.next[0]


def test_all_kernels_returned():
    text = launched(("before", "cpp_fused_a_0"), ("after", "cpp_fused_a_0"))
    assert only(text)[0].says == "all 1 launches returned"


def printed(when, kernel, buffer, mean):
    return (
        f"[  {when}_launch - {kernel} - {buffer}  ]:\n 1.0\nDtype: float32\nMean value: {mean}\nMin "
        f"value: {mean}\n"
    )


def test_the_first_kernel_that_makes_nan():
    text = "".join(
        [
            "[  aoti_model_inputs - arg0_1  ]:\nMean value: 0.5\n",
            printed("before", "cpp_fused_a_0", "buf0", "nan"),  # an output buffer: garbage before the launch
            printed("after", "cpp_fused_a_0", "buf0", "1.5"),
            printed("before", "cpp_fused_log_1", "buf0", "1.5"),
            printed("after", "cpp_fused_log_1", "buf1", "nan"),
            printed("before", "cpp_fused_sum_2", "buf1", "nan"),
            printed("after", "cpp_fused_sum_2", "buf2", "nan"),
        ]
    )
    explanation, where = only(text)
    assert where == {"kernel": "cpp_fused_log_1", "buffer": "buf1"}
    assert "from finite inputs" in explanation.cause


def test_nan_that_was_given():
    explanation, where = only("[  aoti_model_inputs - arg1_1  ]:\nMean value: nan\nMin value: nan\n")
    assert where == {"input": "arg1_1"} and explanation.cause == "bad inputs"


def test_saved_tensors_name_the_kernel_too():
    path = "/w/tmp/aoti_torchbefore_launch_cpp_fused_relu_0_arg0_1_cpu.pt"
    explanation, where = only(f"aoti_torch_save_tensor_handle: Saved tensor to {path}")
    assert where["kernel"] == "cpp_fused_relu_0" and where["saved inputs"] == path
