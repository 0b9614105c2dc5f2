"""A failure's own words explained for its report, through the package where there is one."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

from generated_code import KERNELS, PROVENANCE, WRAPPER, package

from minimizer.ablation import Row
from minimizer.blame import Charge
from minimizer.diagnosis import diagnose, gather, meaning
from minimizer.doctor import patient
from minimizer.handover.record import RunRecord
from minimizer.oracle.verdict import Failure

CHECK = "index out of bounds: 0 <= tmp5 < ks1"
RAISED = f"Error: {CHECK}\nException raised from cpp_fused_index_mul_1 at /c/k.kernel.cpp:15"


def test_a_message_is_traced_through_the_package(tmp_path):
    pt2 = package(tmp_path / "m.pt2", {"a.wrapper.cpp": WRAPPER, "a.kernel.cpp": KERNELS}, PROVENANCE)
    failure = Failure("crash", "run", "the process ended with SIGABRT", detail=RAISED)
    first = meaning(failure, pt2, ("x", "rows"))[0]
    assert dict(first.explanation.where)["indices from"] == "input 1 (rows)"


def test_without_a_package_the_message_still_tells(tmp_path):
    failure = Failure("runtime_error", "run", CHECK)
    first = meaning(failure, tmp_path / "none.pt2", ())[0]
    assert first.family == "index out of bounds"
    (tmp_path / "junk.pt2").write_text("junk")
    assert meaning(failure, tmp_path / "junk.pt2", ())[0] == first


def test_a_wrong_value_is_explained_by_its_kind(tmp_path):
    failure = Failure("wrong_value", "run", "output 0: 3 of 4 differ", figures="3 of 4 differ")
    (only,) = meaning(failure, tmp_path / "none.pt2", (), region="n >= 16")
    assert only.family == "outcome"
    assert dict(only.explanation.where) == {"stage": "run", "fails at": "n >= 16"}


class Clock:
    spent = 10.0

    def past(self, share):
        return lambda: False


def run_of(tmp_path, said, **known):
    """As much of a run as a diagnosis asks for."""
    run = SimpleNamespace(
        sandbox=None,
        store=str(tmp_path),
        package=tmp_path / "none.pt2",
        record=RunRecord(region={"predicate": "n >= 16"}, **known),
        console=SimpleNamespace(
            say=lambda label, text: said.append((label, text)),
            bar=lambda *_, **__: nullcontext(SimpleNamespace(at=lambda *_: None)),
        ),
        meter=SimpleNamespace(mark=lambda step: None),
        options=SimpleNamespace(budget=100.0),
        clock=Clock(),
        folder=SimpleNamespace(path=tmp_path),
        bench=SimpleNamespace(info=None),
        cases=SimpleNamespace(store=tmp_path),
        compiles=0,
        interrupted=False,
    )

    def note(**more):
        run.record = replace(run.record, **more)

    run.note = note
    return run


def test_a_run_is_told_what_its_failure_means(tmp_path):
    said = []
    run = run_of(tmp_path, said)
    diagnose(run, Failure("runtime_error", "run", CHECK), patient(()), None, None)
    assert run.record.cause == "compiler"
    assert run.record.explanation.startswith("**index out of bounds**")
    assert [label for label, _ in said] == ["hint"]


def test_a_custom_operator_is_the_cause_and_no_setting_is_tried(tmp_path, monkeypatch):
    said = []
    run = run_of(tmp_path, said)
    accused = Charge("custom op", "mine.halve.default", "it returns [4, 3] (shape, on float32[7, 3])")
    monkeypatch.setattr("minimizer.diagnosis.charge", lambda *_: accused)
    diagnose(run, Failure("wrong_value", "run"), patient(()), object(), None)
    assert run.record.cause == "custom op"
    assert run.record.blame.startswith("mine.halve.default does not keep its word")
    assert "register_fake" in run.record.explanation
    assert [label for label, _ in said] == ["cause", "hint"]
    assert run.record.ablation is None


def test_settings_are_tried_on_the_reduced_case(tmp_path, monkeypatch):
    said = []
    run = run_of(tmp_path, said)
    rows = [Row("scalar code", "vanishes"), Row("one thread", "fails")]
    monkeypatch.setattr("minimizer.diagnosis.Ablation.rows", lambda self: iter(rows))
    monkeypatch.setattr("minimizer.diagnosis.Ablation.bisected", lambda self: "inductor · lowerings")
    narrowed = SimpleNamespace(case=patient(()), failure=Failure("wrong_value", "run"), level="jit")
    found = SimpleNamespace(repeats=1)
    diagnose(run, Failure("wrong_value", "run", figures="3 of 4 differ"), patient(()), narrowed, found)
    assert said == [
        (
            "blame",
            "vanishes with: scalar code\nfails all the same with: one thread\n"
            "PyTorch's bisector: inductor · lowerings",
        )
    ]
    assert [row["result"] for row in run.record.ablation] == ["vanishes", "fails", "inductor · lowerings"]


def test_tools_are_run_on_crashes_whose_kernel_nobody_has_named(tmp_path):
    (tmp_path / "repro.py").write_text("print('[ before_launch: cpp_fused_relu_3 ]')")
    crash = Failure("crash", "run", exception="SIGSEGV")
    said = []
    run = run_of(tmp_path, said)
    gather(run, crash)
    (row,) = run.record.debug_tools
    assert row["rung"] == "last kernel launched" and "cpp_fused_relu_3" in row["result"]
    assert said[0][0] == "ladder" and said[0][1].endswith("python repro.py")
    for known in ({"kernel": {"name": "cpp_fused_relu_3"}}, {"native_stack": "#1 in cpp_fused_relu_3 ()"}):
        named = run_of(tmp_path, [], **known)
        gather(named, crash)
        assert named.record.debug_tools is None
    gather(run_of(tmp_path, said := []), Failure("wrong_value", "run"))
    assert said == []
