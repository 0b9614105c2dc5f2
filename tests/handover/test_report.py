"""Reports and summaries: order, honesty about what is unknown, and nothing private."""

from __future__ import annotations

import getpass
import json
from dataclasses import replace

import pytest
from repro_cases import COND, int8_matmul

from minimizer.handover import scrub as scrubbing
from minimizer.handover.evidence import Evidence
from minimizer.handover.page import report_html
from minimizer.handover.record import Certificate, RunRecord, Summary, summary_json
from minimizer.handover.record_file import record_from_text, record_text
from minimizer.handover.report import DRAFT, LIMIT, mermaid, report_markdown, without_noise
from minimizer.handover.scrub import scrub

RECORD = RunRecord(
    status="failure",
    kind="wrong_value",
    stage="run",
    signature="wrong_value · run · values",
    message="",
    target="/home/ann/models/model.py",
    nodes_before=143,
    nodes_after=2,
    candidates=9,
    compiles=11,
    wall_seconds=11.4,
    dynamic_dims_before=2,
    dynamic_dims_after=1,
    failing_input=({"shape": (17, 64), "stride": (64, 1), "dtype": "float32", "device": "cpu"},),
    region={"predicate": "n is not a multiple of 16", "sizes_tried": 63, "sizes_failing": 59},
    determinism={"runs": 5, "failures": 5, "rung": None},
    minimal=True,
    cause="compiler",
    kernel={"name": "cpp_fused_relu_0", "language": "C++", "nodes": ["relu", "sum_1"], "sanitizer": None},
    repro_verified={"runs": 3, "failures": 3},
    versions={"torch": "2.13.0+cpu", "python": "3.11.7"},
    repro=int8_matmul.text(),
    detail="Traceback (most recent call last):\n"
    '  File "/home/ann/venv/lib/python3.11/site-packages/torch/_inductor/graph.py", line 7, in run\n'
    "RuntimeError: boom",
    figures="17 of 1088 elements differ; worst at [0]: eager 1.0, compiled 9.0 (float32)",
    program=COND,
    certificate=(Certificate("node relu", "passes"), Certificate("dim n | fixed", "passes")),
)


def test_a_traceback_without_noise():
    told = """Traceback (most recent call last):
  File "/v/lib/python3.11/site-packages/minimizer/oracle/stages.py", line 175, in compile_package
    torch._inductor.aoti_compile_and_package(
  File "/v/lib/python3.11/site-packages/torch/_inductor/compile_fx.py", line 2537, in compile_fx_forward
    result = inner_compile(
             ^^^^^^^^^^^^^^
  File "/usr/lib/python3.11/contextlib.py", line 81, in inner
    return func(*args, **kwds)
           ^^^^^^~~~~~~~~~~~~~~
  File "/v/lib/python3.11/site-packages/torch/_inductor/ir.py", line 9267, in codegen
    wrapper.generate()
RuntimeError: boom"""
    lines = told.splitlines()
    assert without_noise(told).splitlines() == [lines[0], *lines[3:5], *lines[9:]]


def test_order_of_an_issue():
    text = report_markdown(RECORD)
    assert text.startswith(DRAFT)
    sections = [line for line in text.splitlines() if line.startswith("## ")]
    assert sections == [
        "## What happens",
        "## Repro",
        "## Failing inputs",
        "## Error",
        "## Kernel",
        "## Reduction",
        "## Minimality",
        "## How reliable",
        "## Versions",
    ]


def test_says_what_was_measured():
    text = report_markdown(RECORD)
    assert "143 → 2 nodes · 2 → 1 dynamic dims · 9 candidates judged · 11 compiles · 11 s" in text
    assert "float32[17, 64]\n" in text
    assert "Fails at: n is not a multiple of 16 (59 of 63 sizes tried fail)." in text
    assert "Fails in 5 of 5 fresh processes." in text
    assert "| dim n \\| fixed | passes |" in text
    assert int8_matmul.text().strip() in text


def test_nothing_private_in_the_report():
    text = report_markdown(RECORD)
    assert "/home" not in text and "ann" not in text.replace("annot", "")
    assert ".../torch/_inductor/graph.py" in text


def test_unknown_has_no_section():
    text = report_markdown(RunRecord(status="failure", kind="crash"))
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## What happens"]
    assert "None" not in text


def test_huge_reports_fit_an_issue():
    huge = "x" * 100 + "\n"
    record = RunRecord(kind="crash", detail=huge * 2000, repro=huge * 2000, findings=(huge,) * 2000)
    assert len(report_markdown(record)) < LIMIT


def test_code_fences_cannot_be_closed_from_inside():
    text = report_markdown(RunRecord(kind="crash", detail="```\nnot the end\n```"))
    assert "````\n```\nnot the end\n```\n````" in text


def test_mermaid_draws_every_call():
    text = mermaid(COND)
    assert text.startswith("```mermaid\nflowchart TD\n") and text.endswith("```")
    for node in COND.nodes:
        assert f'["{node.target.removesuffix(".default")}"]' in text
    assert '-->|"float32(n, 3)"|' in text


def test_summary_has_the_promised_fields_only():
    plain = summary_json(RECORD)
    assert list(plain) == [f for f in Summary.__dataclass_fields__ if getattr(RECORD, f) is not None]
    assert plain["failing_input"] == [
        {"shape": [17, 64], "stride": [64, 1], "dtype": "float32", "device": "cpu"}
    ]
    assert plain["determinism"] == {"runs": 5, "failures": 5}
    assert plain["minimal"] is True
    json.dumps(plain)


def test_what_the_calls_before_were_given_is_told():
    before = ({"shape": (3, 64), "stride": (64, 1), "dtype": "float32", "device": "cpu"},)
    record = replace(RECORD, earlier_inputs=(before, ()))
    assert summary_json(record)["earlier_inputs"] == [
        [{"shape": [3, 64], "stride": [64, 1], "dtype": "float32", "device": "cpu"}],
        [],
    ]
    text = report_markdown(record)
    assert "- call 1 before it: float32[3, 64]\n- call 2 before it: no tensors" in text
    assert summary_json(record_from_text(record_text(record))) == summary_json(record)
    page = report_html(Evidence(record))
    assert "<td>call 1 before it</td><td><code>float32[3, 64]</code></td>" in page


def test_summary_leaves_out_what_is_not_known():
    assert summary_json(RunRecord(status="none", inputs_tried=412)) == {"status": "none", "inputs_tried": 412}


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("/tmp/torchinductor_ann/ab/cabc.main.cpp:14", "$TMPDIR/cabc.main.cpp:14"),
        ('File "/home/ann/x/lib/python3.11/site-packages/torch/nn/a.py"', 'File ".../torch/nn/a.py"'),
        ('File "/usr/lib/python3.11/copy.py", line 3', 'File ".../copy.py", line 3'),
        ("/Users/Ann/model.py", "~/model.py"),
        ("/data/project/model.py:3", ".../model.py:3"),
        ("write to ann@example.org", "write to <mail>"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("index out of bounds: 0 <= tmp7 < 32L", "index out of bounds: 0 <= tmp7 < 32L"),
        ("https://github.com/pytorch/pytorch/issues/1", "https://github.com/pytorch/pytorch/issues/1"),
        ("a / b / c", "a / b / c"),
        ("n//2 and n/2", "n//2 and n/2"),
    ],
)
def test_scrub(text, clean):
    assert scrub(text) == clean


def test_names_of_user_and_host_go(monkeypatch):
    scrubbing._private_names.cache_clear()
    monkeypatch.setenv("USER", "ann.b")
    monkeypatch.setattr(getpass, "getuser", lambda: "ann.b")
    monkeypatch.setattr(scrubbing.socket, "gethostname", lambda: "box7.lab.example")
    assert scrub("ann.b at box7.lab.example, box7") == "<user> at <host>, <host>"
    scrubbing._private_names.cache_clear()


def test_of_a_cxx_error_the_complaint_is_quoted():
    message = (
        "C++ compile error\n\nCommand: g++ -O3 "
        + "-D X " * 200
        + "\nOutput:\nk.cpp:7:3: error: 'tmp1' was not"
    )
    text = report_markdown(RunRecord(kind="cxx_error", stage="cxx", message=message))
    assert "`error: 'tmp1' was not`" in text
    assert "Command" not in text


def test_what_was_learned_beside_the_reduction():
    text = report_markdown(
        replace(
            RECORD,
            cause="custom op",
            blame="mine.halve.default does not keep its word: it returns [4, 3]",
            explanation="**crash**: The process ended.",
            ablation=({"setting": "scalar code", "result": "vanishes"},),
            debug_tools=({"rung": "native stack", "command": "gdb -ex bt", "result": "SIGSEGV | here"},),
            determinism={
                "runs": 5,
                "failures": 5,
                "rung": "one thread",
                "ladder": [
                    {"rung": "as it is", "runs": 5, "failures": 2, "command": "python repro.py"},
                    {
                        "rung": "one thread",
                        "runs": 5,
                        "failures": 5,
                        "command": "OMP_NUM_THREADS=1 python repro.py",
                    },
                ],
            },
        )
    )
    assert "Cause: custom op. mine.halve.default does not keep its word: it returns [4, 3]" in text
    assert "## What this means\n\n**crash**: The process ended." in text
    assert "| scalar code | vanishes |" in text
    assert "| native stack | `gdb -ex bt` | SIGSEGV \\| here |" in text
    assert "| one thread | 5 of 5 | `OMP_NUM_THREADS=1 python repro.py` |" in text
