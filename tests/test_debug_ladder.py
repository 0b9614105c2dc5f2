"""The ladder's tools on fake programs that print recorded texts: what they are called with, what is read."""

import json
import os
import stat
import sys

import pytest

from minimizer.debug_ladder import LATE, NO_CUDA, NOT_THERE, TOOLS, climb

SANITIZER = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at triton_poi_fused_index_0+0x1c0 in kernel.py:44
=========     by thread (31,0,0) in block (2,0,0)
=========     Access to 0x7f12a0000800 is out of bounds
========= ERROR SUMMARY: 1 error"""
CUDA_GDB = """\
Thread 1 "python" received signal CUDA_EXCEPTION_14, Warp Illegal Address.
[Switching focus to CUDA kernel 0, grid 3, block (4,0,0), thread (9,0,0), device 0, sm 1, warp 2, lane 9]
0x00007fffd0f4 in triton_red_fused_sum_1<<<(16,1,1),(256,1,1)>>> (in_ptr0=0x7f) at kernel.py:19"""
PRINTER = "[ before_launch: {0}_0 ]\n[ after_launch: {0}_0 ]\n[ before_launch: {0}_1 ]"


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Puts programs on PATH that note their arguments and variables, and print a text."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    monkeypatch.setenv("PATH", f"{binaries}:{os.environ['PATH']}")

    def put(name, text):
        noted = tmp_path / f"{name}.json"
        program = binaries / name
        program.write_text(
            f"#!{sys.executable}\nimport json, os, sys\n"
            f"json.dump([sys.argv[1:], dict(os.environ), os.listdir()], open({str(noted)!r}, 'w'))\n"
            f"print({text!r})\nsys.exit(1)\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return noted

    return put


@pytest.fixture
def folder(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "repro.py").write_text(
        "import os\nif os.environ.get('AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER') == '3':\n"
        f"    print({PRINTER.format('triton_poi_fused_relu')!r})\n"
    )
    (run / "report.md").write_text("not a part of the repro")
    return run


def never():
    return False


def test_compute_sanitizer_is_called_without_a_caching_allocator_and_read(fake, folder):
    noted = fake("compute-sanitizer", SANITIZER)
    (folder / "repro.py").write_text("print('no printer here')")
    last = list(climb(folder, ("cuda:0",), never))[-1]
    argv, environment, files = json.loads(noted.read_text())
    assert argv == ["--tool", "memcheck", sys.executable, "repro.py"]
    assert environment["PYTORCH_NO_CUDA_MEMORY_CACHING"] == "1"
    assert "PYTHONPATH" not in environment
    assert "repro.py" in files and "report.md" not in files
    assert last.kernel == "triton_poi_fused_index_0"
    assert last.said.endswith("(triton_poi_fused_index_0, kernel.py:44, (2,0,0), (31,0,0))")


def test_cuda_gdb_is_called_synchronously_when_nothing_else_names_the_kernel(fake, folder):
    fake("compute-sanitizer", "========= ERROR SUMMARY: 0 errors")
    noted = fake("cuda-gdb", CUDA_GDB)
    (folder / "repro.py").write_text("")
    *_, memcheck, stack = climb(folder, ("cuda:0",), never)
    argv, environment, _ = json.loads(noted.read_text())
    assert argv == ["-batch", "-ex", "run", "-ex", "bt", "--args", sys.executable, "repro.py"]
    assert environment["CUDA_LAUNCH_BLOCKING"] == "1"
    assert memcheck.kernel == "" and memcheck.found
    assert stack.kernel == "triton_red_fused_sum_1"


def test_the_ladder_is_climbed_only_as_far_as_needed(fake, folder):
    noted = fake("compute-sanitizer", SANITIZER)
    (only,) = climb(folder, ("cuda:0",), never)
    assert only.kernel == "triton_poi_fused_relu_1" and not noted.exists()


def test_on_the_cpu_the_printer_names_the_last_kernel_and_cuda_is_skipped_with_a_word(folder):
    (only,) = climb(folder, ("cpu",), never)
    assert only.kernel == "triton_poi_fused_relu_1" and only.status == 0
    (folder / "repro.py").write_text("import os\nprint(os.environ['PYTHONUNBUFFERED'])")
    printer, *skipped = climb(folder, ("cpu",), never)
    assert printer.said == "nothing that is known"
    assert [(climbed.tool.program, climbed.skipped) for climbed in skipped] == [
        ("compute-sanitizer", NO_CUDA),
        ("cuda-gdb", NO_CUDA),
    ]


def test_tools_that_are_missing_and_time_that_is_up_are_said(folder, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    skipped = [e.skipped for e in climb(folder, ("cuda:0",), lambda: True)]
    assert skipped == [LATE, NOT_THERE, NOT_THERE]


def test_commands_can_be_typed():
    assert [tool.command for tool in TOOLS if tool.device == "cuda"] == [
        "AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER=3 PYTHONUNBUFFERED=1 CUDA_LAUNCH_BLOCKING=1 "
        "python repro.py",
        "PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer --tool memcheck python repro.py",
        "CUDA_LAUNCH_BLOCKING=1 cuda-gdb -batch -ex run -ex bt --args python repro.py",
    ]
