"""The script of one kernel: its text for every way to fail, formatted and with nothing to complain about."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from minimizer.case import Fill, Value
from minimizer.handover.kernel_repro import WAYS, KernelScript
from minimizer.oracle.kernels import KernelSource
from minimizer.oracle.recorded import KernelArgument, KernelCase
from minimizer.program import Input, Node, Program, Ref, TensorMeta

CODE = """#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0,
                       const int64_t ks0)
{
    for(int64_t x0=0; x0<ks0; x0+=1)
    {
        out_ptr0[static_cast<int64_t>(x0)] = in_ptr0[static_cast<int64_t>(x0)];
    }
}
"""
TYPES = ("const float*", "float*", "const int64_t")
VALUE = Value("float32", (2, 3), Fill("normal"))
META = TensorMeta("float32", (2, 3), (3, 1))
PROGRAM = Program(
    (Input("in_ptr0", META),), (Node("relu", "torch.relu", (Ref("in_ptr0"),), meta=META),), Ref("relu")
)


def script(way="compare", **more):
    source = KernelSource("cpp_fused_relu_0", TYPES, CODE)
    args = (
        KernelArgument("in_ptr0", VALUE, "arg0_1"),
        KernelArgument("out_ptr0", VALUE, "buf0", "relu"),
        KernelArgument("ks0", 6, "s77"),
    )
    scalar = KernelSource(source.name, TYPES, CODE.replace("x0+=1", "x0 += 1"))
    kernel = KernelCase(
        source, ("relu",), () if way == "compile" else args, PROGRAM, scalar=more.pop("scalar", scalar)
    )
    if way == "compile":
        kernel = KernelCase(source, ("relu",), (), None)
    codes = {"in_ptr0": "torch.ones(2, 3)"}
    return KernelScript(
        kernel, more.pop("codes", codes), way, "cpp_fused_relu_0 alone", "2.13.0+cpu", "out_ptr0", **more
    ).text()


SCRIPTS = {way: script(way) for way in WAYS} | {
    "guarded": script("die", guard=True),
    "saved": script(codes={"in_ptr0": None}),
    "no_scalar": script(scalar=None),
    "environment": script(environment=(("OMP_NUM_THREADS", "1"),)),
}


@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="ruff is not installed")
def test_formatted_and_nothing_to_complain_about(tmp_path):
    for name, text in SCRIPTS.items():
        (tmp_path / f"{name}.py").write_text(text)
    for arguments in (["format", "--diff"], ["check"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--isolated", "."]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_stands_alone(name):
    text = SCRIPTS[name]
    compile(text, name, "exec")
    assert "minimizer" not in text
    assert CODE in text


def test_a_comparison_reads_as_plain_torch():
    text = SCRIPTS["compare"]
    assert "def eager(in_ptr0):\n    return torch.relu(in_ptr0)\n" in text
    assert "    expected = eager(in_ptr0)\n    kernel(in_ptr0, out_ptr0, 6)\n" in text
    assert "return torch.allclose(out_ptr0, expected, 1.3e-06, 1e-05, equal_nan=True)" in text


def test_what_the_kernel_writes_starts_as_what_no_kernel_writes():
    assert "out_ptr0 = torch.empty(2, 3).fill_(85)" in SCRIPTS["compare"]


def test_large_inputs_are_read_from_beside_it():
    assert 'in_ptr0 = saved["in_ptr0"]' in SCRIPTS["saved"]
    assert "weights_only=True" in SCRIPTS["saved"]


def test_only_a_kernel_that_has_a_scalar_form_offers_it():
    assert "--scalar" in SCRIPTS["compare"]
    assert "--scalar" not in SCRIPTS["no_scalar"]


def test_guards_stand_aside_for_the_sanitizer():
    assert '    if "--asan" not in sys.argv:\n        in_ptr0 = guarded(in_ptr0)\n' in SCRIPTS["guarded"]
