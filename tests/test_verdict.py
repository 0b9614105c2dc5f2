"""Signatures: one for each bug, whatever run, machine, size or name it was seen with."""

import pytest

from minimizer.oracle.verdict import Failure, Severity, Verdict, crash_class, error_kind, normalise

LOWERING = """LoweringException: AssertionError: expected size 8==8, stride 6==5 at dim=0
  target: aten.view.default
  args[0]: TensorBox(StorageBox(InputBuffer(name='arg0_1', layout=FixedLayout('cpu', torch.float32))))"""


def failure(kind, stage, message, exception="RuntimeError", **more):
    return Failure(kind, stage, message, exception, **more)


SAME = {
    "bounds of another size and variable": [
        failure("runtime_error", "run", "index out of bounds: 0 <= tmp6 < 32L"),
        failure("runtime_error", "run", "index out of bounds: 0 <= tmp11 < 7L"),
        failure("runtime_error", "run", "index out of bounds: 0 <= tmp3 < ks0"),
        failure("runtime_error", "run", "index out of bounds: 0 <= tmp3 < 2L*ks1"),
    ],
    "bounds without a lower end": [
        failure("runtime_error", "run", "index out of bounds: r1 + (64*x0) < 9000"),
        failure("runtime_error", "run", "index out of bounds: x0 < 24L"),
    ],
    "another file, line and address": [
        failure("compile_error", "lower", "KeyError at /tmp/w3/cabc/model.py:31 in <object at 0x7f12ab>"),
        failure("compile_error", "lower", "KeyError at /home/me/model.py:7 in <object at 0x55aa>"),
    ],
    "numbered names": [
        failure("compile_error", "lower", "buf12 is used before it is made (s0, u3, arg4_1)"),
        failure("compile_error", "lower", "buf3 is used before it is made (s77, u0, arg0_1)"),
    ],
    "sizes": [
        failure("compile_error", "lower", "shape '[2, 3, 4]' is invalid for input of size 25"),
        failure("compile_error", "lower", "shape '[8]' is invalid for input of size 9"),
        failure("compile_error", "lower", "shape '[s0, 8]' is invalid for input of size 2"),
    ],
    "shapes in round brackets": [
        failure("compile_error", "lower", "cannot broadcast (2, 3) to (4,)"),
        failure("compile_error", "lower", "cannot broadcast (s0, 3) to (2, 4)"),
    ],
    "a kernel of other operators": [
        failure("compile_error", "lower", "cpp_fused_relu_sum_0 has no loop"),
        failure("compile_error", "lower", "cpp_fused__softmax_add_mul_13 has no loop"),
    ],
    "colours and spaces": [
        failure("compile_error", "lower", "\x1b[31mcannot   lower\x1b[0m it"),
        failure("compile_error", "lower", "cannot lower it"),
    ],
    "other lines after the first": [
        failure("compile_error", "lower", LOWERING, "LoweringException"),
        failure("compile_error", "lower", "\n" + LOWERING.splitlines()[0], "LoweringException"),
    ],
    "negative and broken numbers": [
        failure("runtime_error", "run", "scale must be positive, got -1.5e-07"),
        failure("runtime_error", "run", "scale must be positive, got -3"),
    ],
    "C++ errors at another place": [
        failure(
            "cxx_error",
            "cxx",
            "/tmp/a/k.main.cpp: In function 'void cpp_fused_add_0()':\n"
            "/tmp/a/k.main.cpp:14:20: error: 'tmp5' was not declared in this scope\n   14 | auto x = tmp5;",
            "CppCompileError",
        ),
        failure(
            "cxx_error",
            "cxx",
            "/tmp/b/l.main.cpp:99:2: error: 'tmp17' was not declared in this scope",
            "CppCompileError",
        ),
    ],
    "memory bugs that end in different ways": [
        failure("crash", "run", "the process ended with SIGSEGV", "SIGSEGV"),
        failure("crash", "run", "the process ended with SIGBUS", "SIGBUS"),
        failure("crash", "run", "", "SIGABRT", detail="free(): invalid next size (normal)\n"),
        failure("crash", "run", "", "SIGABRT", detail="malloc(): corrupted top size\n"),
        failure("crash", "run", "", "SIGABRT", detail="malloc_consolidate(): invalid chunk size\n"),
        failure(
            "crash", "run", "", "SIGABRT", detail="malloc_consolidate(): unaligned fastbin chunk detected"
        ),
        failure("crash", "run", "", "SIGABRT", detail="double free or corruption (!prev)\n"),
        failure("crash", "run", "", "SIGABRT", detail="corrupted size vs. prev_size\n"),
        failure("crash", "run", "", "SIGABRT", detail="munmap_chunk(): invalid pointer\n"),
        failure("crash", "run", "", "SIGABRT", detail="*** stack smashing detected ***: terminated\n"),
        failure(
            "memory_error",
            "run",
            "==77==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000110",
            "",
        ),
    ],
    "digits and positions of wrong values": [
        failure("wrong_value", "run", "output 0: 3 of 8 differ", "", outputs=(0,), flavour="values"),
        failure("wrong_value", "run", "output 1: 1 of 9 differ", "", outputs=(1, 2), flavour="values"),
    ],
    "limits of a hang": [
        failure("hang", "lower", "no answer within 60 s", ""),
        failure("hang", "lower", "no answer within 30 s", ""),
    ],
    "uncaught C++ exceptions with another size": [
        failure(
            "crash",
            "run",
            "the process ended with SIGABRT: what():  index out of bounds: 0 <= tmp3 < 24L",
            "SIGABRT",
            detail="terminate called after throwing an instance of 'c10::Error'\n"
            "  what():  index out of bounds: 0 <= tmp3 < 24L\n(Exception raised from f at /tmp/k.cpp:9)",
        ),
        failure(
            "crash",
            "run",
            "the process ended with SIGABRT",
            "SIGABRT",
            detail="terminate called after throwing an instance of 'c10::Error'\n"
            "  what():  index out of bounds: 0 <= tmp30 < 7L (Exception raised from g at /tmp/l.cpp:1)",
        ),
    ],
}


@pytest.mark.parametrize("failures", SAME.values(), ids=SAME.keys())
def test_the_same_bug_has_one_signature(failures):
    assert len({f.signature for f in failures}) == 1, [str(f.signature) for f in failures]


def test_different_bugs_have_different_signatures():
    different = [failures[0] for failures in SAME.values()] + [
        failure("compile_error", "lower", "expected size 8==8, stride 6==5 at dim=0", "AssertionError"),
        failure("compile_error", "export", "cannot lower it"),
        failure("compile_error", "lower", "cannot lower it", "KeyError"),
        failure("load_error", "load", "cannot lower it"),
        failure("compile_error", "lower", "no kernel for torch.float16"),
        failure("compile_error", "lower", "no kernel for torch.float64"),
        failure("compile_error", "lower", "no kernel for torch.int8"),
        failure("cxx_error", "cxx", "k.cpp:9:1: error: no matching function for call to 'vec()'"),
        failure("cxx_error", "cxx", "k.cpp:9:1: error: 'tmp5' is ambiguous"),
        failure("crash", "run", "the process ended with SIGFPE", "SIGFPE"),
        failure("crash", "run", "the process ended with SIGILL", "SIGILL"),
        failure("crash", "lower", "the process ended with SIGSEGV", "SIGSEGV"),
        failure("crash", "run", "", "SIGABRT", detail="  what():  std::bad_alloc\n"),
        failure("crash", "run", "", "SIGABRT", detail="terminate called without an active exception\n"),
        failure("wrong_value", "run", "", "", flavour="values: not finite"),
        failure("wrong_metadata", "run", "", "", flavour="dtype"),
        failure("wrong_metadata", "run", "", "", flavour="stride"),
        failure("lost_mutation", "run", "", "", flavour="values"),
        failure("hang", "run", "", ""),
        failure("lost_error", "run", "eager raises", "IndexError"),
    ]
    signatures = {}
    for f in different:
        assert f.signature not in signatures, (f, signatures[f.signature])
        signatures[f.signature] = f


def test_what_is_printed_last_is_not_glued_to_the_message():
    one = failure("crash", "run", "the process ended with SIGABRT", "SIGABRT", detail="  what():  no room")
    assert one.signature.text == "no room"


@pytest.mark.parametrize(
    ("signal", "output", "found"),
    [
        ("SIGSEGV", "", "memory"),
        ("SIGABRT", "", "SIGABRT"),
        ("exit 3", "bye", "exit 3"),
        ("SIGABRT", "  what():  vector::_M_range_check: __n (which is 8) >= this->size()", None),
        ("SIGABRT", "terminate called after throwing an instance of 'std::length_error'", None),
    ],
)
def test_kinds_of_death(signal, output, found):
    kind = crash_class(signal, output)
    assert kind == found if found else kind not in ("memory", signal)


def test_kernel_names_hashes_and_paths_do_not_count():
    one = "cannot open /tmp/t1/cqwertyuiopasdfghjklzxcvbnmqwertyuiopasdfghjklzxcvbn.so from cpp_fused_add_1"
    assert normalise(one) == "cannot open PATH from KERNEL"


def test_long_messages_are_cut():
    assert len(normalise("word " * 500)) <= 300


@pytest.mark.parametrize(
    ("exception", "message", "kind"),
    [
        (
            "RuntimeError",
            "DefaultCPUAllocator: can't allocate memory: you tried",
            "out_of_memory",
        ),
        ("RuntimeError", "std::bad_alloc", "out_of_memory"),
        ("MemoryError", "", "out_of_memory"),
        (
            "RuntimeError",
            "input_handles[0]: unmatched dim value at 1, expected: 10",
            "spurious_error",
        ),
        ("RuntimeError", "dim value is too small at 0, expected it to be >= 2, but got: 1", "spurious_error"),
        ("RuntimeError", "index out of bounds: 0 <= tmp3 < 7L", "runtime_error"),
        ("TypeError", "expected a tensor", "runtime_error"),
    ],
)
def test_kinds_of_exceptions(exception, message, kind):
    assert error_kind(exception, message) == kind


def test_severities():
    kinds = ["lost_error", "runtime_error", "wrong_metadata", "wrong_value", "crash"]
    assert [Failure(kind, "run").severity for kind in kinds] == sorted(Severity)


def test_a_signature_reads_as_one_line():
    text = str(failure("compile_error", "lower", "no kernel for buf7").signature)
    assert text == "compile_error · lower · RuntimeError · no kernel for buf#"


def test_only_fail_has_failed():
    assert Verdict("fail", Failure("crash", "run")).failed
    assert not any(Verdict(status).failed for status in ("pass", "invalid", "misuse"))
