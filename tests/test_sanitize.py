"""A program built and run with AddressSanitizer: what it reads outside a buffer is a failure."""

import pytest

from minimizer.case import Case, Literal, Settings, Value
from minimizer.oracle.case_bench import CaseBench
from minimizer.oracle.losses import loss_failure
from minimizer.program import Input, Node, Program, Ref, TensorMeta
from minimizer.sandbox import Died
from minimizer.sandbox.asan import asan_environment, is_asan, without_asan
from strategies.values import Fill

TABLE = TensorMeta("float32", (5, 16), (16, 1))
INDEX = TensorMeta("int64", (2,), (1,))
ROWS = TensorMeta("float32", (2, 16), (16, 1))
REPORT = """==41==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x6020 at pc 0x7f bp 0x7f sp 0x7f
READ of size 4 at 0x6020 thread T0
    #0 0x7f1111 in cpp_fused_index_0 /tmp/x/whatever.kernel.cpp:21
"""


def lookup(*rows):
    node = Node("y", "aten.index.Tensor", (Ref("table"), [Ref("index")]), meta=ROWS)
    program = Program((Input("table", TABLE), Input("index", INDEX)), (node,), Ref("y"))
    values = (Value("float32", (5, 16), Fill("normal")), Value("int64", (2,), Literal(rows)))
    config = {
        "assert_indirect_indexing": False,
        "cpp.simdlen": 1,
        "cpp_cache_precompile_headers": False,  # for one compilation they are not worth it
    }
    return Case(program, values, Settings(config=tuple(config.items()), environment=asan_environment()))


def test_a_report_makes_a_death_a_memory_error():
    failure = loss_failure(Died(-6, "run", REPORT))
    assert (failure.kind, failure.stage, failure.op) == ("memory_error", "run", "cpp_fused_index_0")
    assert failure.message == "heap-buffer-overflow READ of 4 bytes, line 21"
    assert failure.signature.text == "memory"


def test_the_environment_can_be_taken_off_again():
    ours = asan_environment()
    assert is_asan(ours)
    assert without_asan((*ours, ("OMP_NUM_THREADS", "1"))) == (("OMP_NUM_THREADS", "1"),)
    assert without_asan((("LD_PRELOAD", "/usr/lib/libjemalloc.so"),)) == (
        ("LD_PRELOAD", "/usr/lib/libjemalloc.so"),
    )


@pytest.mark.compiles
def test_only_what_leaves_the_buffer_fails(sandbox, tmp_path):
    bench = CaseBench(sandbox, tmp_path)
    try:
        assert bench.judge(lookup(1, 4), "jit").status == "pass"
        failure = bench.judge(lookup(1, 5), "jit").failure
    finally:
        bench.close()
    assert failure is not None
    assert failure.kind == "memory_error"
    assert failure.message.startswith("heap-buffer-overflow READ of 4 bytes, line ")
