"""gdb's backtraces."""

from minimizer.pinpoint.native import native_stack

OUTPUT = """[Thread debugging using libthread_db enabled]
Thread 1 "python" received signal SIGSEGV, Segmentation fault.
0x00007fffc5d0a1b2 in kernel ()
#0  0x00007fffc5d0a1b2 in kernel (in_ptr0=0x7fff, out_ptr0=0x7ffe) at /tmp/x/cabc.main.cpp:14
#1  0x00007fffc5d0a2b3 in kernel_py (self=<optimized out>) from /tmp/x/cabc.main.so
#2  0x0000555555712345 in _PyEval_EvalFrameDefault ()
#3  0x0000555555712345 in ?? ()
#4  0x00007ffff7c29d90 in __libc_start_main () from /lib/x86_64-linux-gnu/libc.so.6
"""


def test_signal_and_telling_frames():
    lines = native_stack(OUTPUT).splitlines()
    assert lines[0] == "SIGSEGV, Segmentation fault"
    assert lines[1] == "#0  kernel (in_ptr0=0x7fff, out_ptr0=0x7ffe) at /tmp/x/cabc.main.cpp:14"
    assert [line.split()[0] for line in lines[1:]] == ["#0", "#1"]


def test_a_program_that_lived_has_no_stack():
    assert native_stack("[Inferior 1 (process 12) exited normally]\nNo stack.\n") == ""
