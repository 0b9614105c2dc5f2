"""What it means when the process that judges does not answer."""

import pytest

from minimizer.oracle.bench import loss_verdict
from minimizer.run import _end
from minimizer.sandbox import Died, TimedOut


@pytest.mark.parametrize(
    ("lost", "kind", "stage"),
    [
        (Died(-11, "run", ""), "crash", "run"),
        (Died(-6, "compare", "free(): invalid pointer"), "crash", "run"),
        (Died(1, "lower", ""), "crash", "lower"),
        (TimedOut(15, "run", ""), "hang", "run"),
    ],
)
def test_where_compiled_code_is_at_work_it_is_the_failure(lost, kind, stage):
    verdict = loss_verdict(lost)
    assert verdict.status == "fail"
    assert (verdict.failure.kind, verdict.failure.stage) == (kind, stage)


@pytest.mark.parametrize("lost", [Died(-11, "eager", ""), Died(0, "", ""), TimedOut(9, "import", "")])
def test_elsewhere_it_is_not_the_compiler_s(lost):
    assert loss_verdict(lost).status == "invalid"


@pytest.mark.parametrize("stage", ["run", "cxx", "compare"])
def test_a_kill_comes_from_outside(stage):
    verdict = loss_verdict(Died(-9, stage, ""))
    assert verdict.status == "invalid"
    assert "probably for its memory" in verdict.reason


def test_in_words():
    assert _end(TimedOut(60, "import", "")) == "does not come to an end within 60 s"
    assert _end(Died(-11, "eager", "")) == "ends the process with SIGSEGV"
    assert _end(Died(3, "eager", "")) == "ends the process with exit 3"
