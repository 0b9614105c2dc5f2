"""Repro scripts: their text, their formatting, and that they run."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from repro_cases import RANDN as RELU_INPUT
from repro_cases import (
    RELU,
    SAMPLES,
    called_twice,
    failing_with,
    int8_matmul,
    meta,
    relu,
    value,
)

from minimizer.case import Case
from minimizer.handover.examples import (
    example_code,
    example_sizes,
    exported_on_failing_inputs,
    zeros_code,
)
from minimizer.handover.needs import LOCALS
from minimizer.program import Input, Node, Symbol, rename

needs_ruff = pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="ruff is not installed")
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


def ruff(folder, *arguments):
    command = [sys.executable, "-m", "ruff", *arguments, "--isolated", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def write_all(folder):
    for name, sample in SAMPLES.items():
        (folder / f"repro_{name}.py").write_text(sample.text())
    (folder / "repro_ops.py").write_text("")


@needs_ruff
def test_formatted_as_ruff_format_leaves_it(tmp_path):
    write_all(tmp_path)
    status, output = ruff(tmp_path, "format", "--diff")
    assert status == 0, output


@needs_ruff
def test_nothing_to_complain_about(tmp_path):
    write_all(tmp_path)
    status, output = ruff(tmp_path, "check")
    assert status == 0, output


@pytest.mark.parametrize("name", ["path", "program", "inputs", "backend", "torch_", "n", "Model"])
@pytest.mark.parametrize("twice", [False, True])
def test_a_dim_of_any_name(tmp_path, name, twice):
    program = rename(RELU, {}, {"n": name})
    values = (value("float32", 17, 3),)
    codes = (RELU_INPUT,)
    if twice:
        program = replace(program, inputs=(*program.inputs, Input("z", meta("float32", name, 3))))
        values, codes = values * 2, codes * 2
    text = replace(relu, case=Case(program, values), values=codes).text()
    assert f'Dim("{name}", min=2, max=64)' in text
    assert f"    {name} = torch.export.Dim" not in text or name not in LOCALS
    assert len(re.findall(rf"{name}(_dim)?}}", text)) == (2 if twice else 0)
    (tmp_path / "repro.py").write_text(text)
    for check in (["check"], ["format", "--diff"]):
        status, output = ruff(tmp_path, *check)
        assert status == 0, output


def test_failing_inputs_serve_as_examples_where_they_can():
    own = exported_on_failing_inputs(relu.case)
    assert own.program.symbols[0].hint == 17
    assert "example" not in replace(relu, case=own).text()
    assert exported_on_failing_inputs(own) is None
    single = Case(RELU, (value("float32", 1, 3),))
    assert exported_on_failing_inputs(single) is None


def test_a_model_without_inputs_names_none():
    program = replace(
        RELU, inputs=(), nodes=(Node("y", "torch.ones", (3,), meta=meta("float32", 3)),), symbols=()
    )
    text = replace(relu, case=Case(program, ()), values=()).text()
    assert "expected, actual = Model()(), compiled()" in text
    assert "torch.export.export(Model(), ())" in text
    assert "inputs" not in text


@pytest.mark.parametrize("kind", ["compile_error", "cxx_error"])
def test_what_cannot_be_compiled_is_not_loaded(kind):
    text = failing_with(relu, kind, "lower").text()
    assert "aoti_load_package" not in text
    assert "torch.compile(Model(), backend=backend, dynamic=True)(*inputs)" in text
    assert len(text.splitlines()) <= 32
    assert "aoti_load_package" in failing_with(relu, "load_error", "load").text()


def test_a_long_title_is_shortened_before_it_is_broken():
    title = "torch.nn.functional.adaptive_avg_pool2d gives wrong values under AOTInductor"
    first = relu.text(title).splitlines()[0]
    assert first == '"""adaptive_avg_pool2d gives wrong values under AOTInductor (torch 2.13.0+cpu)."""'


@pytest.mark.parametrize("name", SAMPLES)
def test_fits_a_screen_and_stands_alone(name):
    text = SAMPLES[name].text()
    assert len(text.splitlines()) <= 65
    assert max(map(len, text.splitlines())) <= 88
    assert "minimizer" not in text
    assert not re.search(r"[\"'(]/\w", text), "an absolute path"
    assert "def test_fn() -> bool:" in text
    compile(text, name, "exec")


def test_half_of_the_scripts_are_short():
    lengths = sorted(len(sample.text().splitlines()) for sample in (relu, int8_matmul))
    assert lengths[-1] < 30


def test_plain_case_reads_as_a_person_would_write_it():
    assert (
        int8_matmul.text("Product of int8 matrices has another dtype")
        == '''"""Product of int8 matrices has another dtype (torch 2.13.0+cpu)."""

import os

import torch


class Model(torch.nn.Module):
    def forward(self, p, q):
        return torch.matmul(p, q)


def test_fn() -> bool:
    p = torch.tensor([[[3, -2]]], dtype=torch.int8)
    q = torch.tensor([[[1, 2], [4, 5]]], dtype=torch.int8)
    inputs = (p, q)
    if (backend := os.environ.get("TORCH_COMPILE_BACKEND", "aoti")) == "aoti":
        program = torch.export.export(Model(), inputs)
        path = torch._inductor.aoti_compile_and_package(program)
        compiled = torch._inductor.aoti_load_package(path)
    else:
        compiled = torch.compile(Model(), backend=backend, disable=backend == "eager")
    expected, actual = Model()(*inputs), compiled(*inputs)
    print(f"eager    {expected}\\ncompiled {actual}")
    return actual.dtype == expected.dtype and torch.equal(actual, expected)


if __name__ == "__main__":
    raise SystemExit(not test_fn())
'''
    )


def test_exported_at_the_hint_when_the_failing_size_differs():
    text = relu.text()
    assert "example = (torch.zeros(8, 3),)" in text
    assert "torch.export.export(Model(), example, dynamic_shapes=dims)" in text
    assert 'dims = {"x": {0: torch.export.Dim("n", min=2, max=64)}}' in text


def test_failing_inputs_are_the_example_when_sizes_agree():
    same = replace(relu, case=Case(RELU, (value("float32", 8, 3),)))
    assert "example" not in same.text()
    assert "torch.export.export(Model(), inputs, dynamic_shapes=dims)" in same.text()


@pytest.mark.parametrize("size", [0, 1])
def test_sizes_that_export_would_specialise_need_an_example(size):
    program = replace(RELU, symbols=(Symbol("n", 0, 64, size),))
    assert example_sizes(Case(program, (value("float32", size, 3),))) == {"n": 2}


def test_inputs_are_copied_only_where_something_writes():
    assert "copy" not in relu.text()
    assert "copy.deepcopy((args, kwargs))" in SAMPLES["nested"].text()
    assert "copy.deepcopy(inputs)" in called_twice(relu).text()


def test_death_is_seen_from_a_parent_process():
    text = SAMPLES["crash"].text()
    assert "def check():" in text
    assert "return child.returncode >= 0" in text
    assert "for _ in range(3):\n        compiled(*inputs)" in text


def test_hang_is_killed_with_all_its_children():
    text = SAMPLES["hang"].text()
    assert "job.wait(timeout=100)" in text
    assert "os.killpg(job.pid, signal.SIGKILL)" in text


def test_environment_is_set_before_torch_is_imported():
    text = SAMPLES["environment"].text()
    assert text.index('os.environ["OMP_NUM_THREADS"] = "1"') < text.index("import torch")


def test_allocator_variables_reach_a_child_process():
    text = SAMPLES["allocator"].text()
    assert '"MALLOC_PERTURB_": "165"' in text
    assert "return child.returncode == 0" in text
    assert "def check() -> bool:" in text


def test_saved_tensors_are_loaded_from_beside_the_script():
    sample = replace(
        SAMPLES["nested"], state={"p": 'state["p"]', "count": "torch.zeros((), dtype=torch.int64)"}
    )
    text = sample.text()
    assert 'torch.load(Path(__file__).with_name("repro_inputs.pt"), weights_only=True)' in text
    assert "from pathlib import Path" in text
    assert "model = Model(saved)" in text


def test_custom_operators_are_imported():
    line = "import repro_model  # noqa: F401"
    text = replace(relu, options={"imports": (line,)}).text()
    assert f"import torch\n{line}\n\n\nclass Model" in text


def test_random_operators_draw_the_same_numbers_on_both_sides():
    program = replace(RELU, nodes=(replace(RELU.nodes[0], target="aten.rand_like.default"),))
    text = replace(relu, case=replace(relu.case, program=program)).text()
    assert text.count("torch.manual_seed(0)") == 2
    assert 'config = {"fallback_random": True}' in text


def test_title_cannot_end_the_docstring():
    text = relu.text('a """ quote \\ and\na line')
    assert text.startswith('"""a \'\'\' quote / and a line (torch 2.13.0+cpu)."""\n')


@pytest.mark.parametrize(
    ("shape", "stride", "code"),
    [
        ((8, 3), (3, 1), "torch.zeros(8, 3)"),
        ((), (), "torch.zeros(())"),
        ((8, 3), (1, 8), "torch.zeros(3, 8).t()"),
        ((2, 3, 4, 5), (60, 1, 15, 3), "torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)"),
        ((2, 3, 4), (3, 1, 6), "torch.zeros(4, 2, 3).permute(1, 2, 0)"),
        ((4, 3), (6, 2), "torch.zeros(23).as_strided((4, 3), (6, 2))"),
        ((4, 3), (0, 1), "torch.zeros(3).as_strided((4, 3), (0, 1))"),
    ],
)
@needs_torch
def test_example_has_the_strides_of_the_input(shape, stride, code):
    import torch

    assert zeros_code("float32", shape, stride) == code
    made = eval(code, {"torch": torch})
    assert made.shape == shape
    assert made.stride() == stride


def test_example_sizes_are_evaluated():
    assert example_code(meta("int8", "2*n", 3), {"n": 4}) == "torch.zeros(8, 3, dtype=torch.int8)"


_RUN_ALL = """
import json, runpy, sys
status = {}
for path in sys.argv[1:]:
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        status[path] = int(end.code or 0)
print(json.dumps(status))
"""


@needs_torch
def test_every_script_exits_0_when_nothing_is_compiled(tmp_path):
    write_all(tmp_path)
    names = sorted(f"repro_{name}.py" for name in SAMPLES)
    done = subprocess.run(
        [sys.executable, "-c", _RUN_ALL.replace("sys.argv[1:]", repr(names))],
        cwd=tmp_path,
        env={**os.environ, "TORCH_COMPILE_BACKEND": "eager"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == dict.fromkeys(names, 0)


def run_script(folder, text):
    (folder / "repro.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "repro.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@needs_torch
def test_lost_error_is_seen(tmp_path):
    # No compiler needed: the "compiled" side is a function that returns where the model raises.
    text = failing_with(relu, "lost_error").text()
    text = text.replace("return torch.ops.aten.relu.default(x)", "return x[100]")
    start, end = text.index("    if (backend := "), text.index("    raised = []")
    text = text[:start] + "    compiled = torch.relu\n" + text[end:]
    status, output = run_script(tmp_path, text)
    assert status == 1, output
    assert "IndexError" in output


@needs_torch
def test_crash_ends_in_exit_status_1(tmp_path):
    text = failing_with(relu, "crash").text()
    status, output = run_script(tmp_path, text.replace("    compiled(*inputs)", "    os.abort()"))
    assert status == 1, output
    assert "exit status -6" in output


@needs_torch
def test_hang_ends_in_exit_status_1(tmp_path):
    text = failing_with(int8_matmul, "hang", timeout=1).text()
    status, output = run_script(tmp_path, text)
    assert status == 1, output
    assert "still running after 1 s" in output


@needs_torch
@pytest.mark.compiles
@pytest.mark.parametrize(("name", "status"), [("int8_matmul", 1), ("relu", 0), ("config", 1)])
def test_runs_through_aot_inductor(tmp_path, name, status):
    got, output = run_script(tmp_path, SAMPLES[name].text())
    assert got == status, output


def test_what_only_the_sanitizer_sees_runs_under_it():
    text = SAMPLES["sanitized"].text()
    assert "env=sanitized()" in text
    assert "-fsanitize=address" in text
    assert "/usr/lib" not in text
