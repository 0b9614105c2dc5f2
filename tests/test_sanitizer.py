"""AddressSanitizer's reports, as gcc 12 and clang print them."""

import pytest

from minimizer.oracle.sanitizer import Access, read_report

WRITE = """some output before
=================================================================
==41==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000110 at pc 0x7f11 bp 0x7ffc sp 0x7ffb
WRITE of size 4 at 0x602000000110 thread T0
    #0 0x7f1111 in kernel /tmp/cache/ab/cabcdefghijklmnopqrstuvwxyz.main.cpp:14
    #1 0x7f2222 in kernel_py /tmp/cache/ab/cabcdefghijklmnopqrstuvwxyz.main.cpp:60
    #2 0x555555 in _PyEval_EvalFrameDefault (/usr/bin/python3.11+0x1234)

0x602000000110 is located 0 bytes to the right of 192-byte region [0x602000000050,0x602000000110)
allocated by thread T0 here:
    #0 0x7f3333 in __interceptor_posix_memalign ../../../../src/libsanitizer/asan/asan_malloc_linux.cpp:226
    #1 0x7f4444 in c10::alloc_cpu(unsigned long) (/lib/libc10.so+0x99)

"""
READ = """==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x60 at pc 0x7f bp 0x7f sp 0x7f
READ of size 64 at 0x60 thread T3
    #0 0x7f01 in memcpy ../../sanitizer_common_interceptors.inc:827
    #1 0x7f02 in at::vec::Vectorized<float>::loadu(void const*, long) /site-packages/torch/include/vec.h:99
    #2 0x7f03 in kernel._omp_fn.0 /tmp/x/whatever.kernel.cpp:31:9

0x60 is located 12 bytes before 40-byte region [0x6c,0x94)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            WRITE,
            Access(
                "heap-buffer-overflow",
                "WRITE",
                4,
                "kernel",
                "/tmp/cache/ab/cabcdefghijklmnopqrstuvwxyz.main.cpp",
                14,
                0,
                "after",
                192,
            ),
        ),
        (
            READ,
            Access(
                "heap-buffer-overflow",
                "READ",
                64,
                "kernel._omp_fn.0",
                "/tmp/x/whatever.kernel.cpp",
                31,
                12,
                "before",
                40,
            ),
        ),
    ],
)
def test_what_where_and_how_far(text, expected):
    assert read_report(text) == expected


def test_in_words():
    access = read_report(WRITE)
    assert access is not None
    assert access.text == (
        "heap-buffer-overflow WRITE of 4 bytes, line 14, 0 bytes after a buffer of 192 bytes"
    )


def test_a_report_without_frames_still_has_its_kind():
    assert read_report("==1==ERROR: AddressSanitizer: SEGV on unknown address 0x0") == Access("SEGV")


def test_no_report_is_none():
    assert read_report("AddressSanitizer, vector build: sees nothing") is None


def test_frames_of_libraries_are_no_kernel():
    text = WRITE.replace("/tmp/cache/ab/cabcdefghijklmnopqrstuvwxyz.main.cpp", "/usr/src/python/ceval.c")
    access = read_report(text)
    assert access is not None
    assert (access.file, access.line) == ("", 0)
