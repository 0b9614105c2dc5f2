"""What it means when the process that judges does not answer."""

import pytest

torch = pytest.importorskip("torch")

from torch._inductor.exc import CppCompileError  # noqa: E402

from minimizer.oracle.losses import loss_verdict  # noqa: E402
from minimizer.oracle.stages import exhausted  # noqa: E402
from minimizer.oracle.verdict import EAGER_AGAIN  # noqa: E402
from minimizer.sandbox import Died, TimedOut  # noqa: E402
from minimizer.wording import ending, not_opened  # noqa: E402


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


@pytest.mark.parametrize(
    ("lost", "kind"),
    [
        (Died(-11, "", ""), "crash"),
        (Died(-6, "eager", "free(): invalid next size (fast)"), "crash"),
        (Died(-6, "", "terminate called without an active exception"), None),
        (Died(3, "", ""), None),
        (TimedOut(9, "eager", ""), None),
    ],
)
def test_a_heap_that_compiled_code_may_have_broken_before(lost, kind):
    verdict = loss_verdict(lost, used=True)
    assert (verdict.failure.kind if verdict.failure else None) == kind
    assert verdict.failure is None or verdict.failure.stage == "run"
    assert loss_verdict(lost).status == "invalid"


@pytest.mark.parametrize(
    ("lost", "kind"),
    [
        (Died(-11, EAGER_AGAIN, ""), "crash"),
        (Died(-6, EAGER_AGAIN, "malloc(): corrupted top size"), "crash"),
        (Died(7, EAGER_AGAIN, ""), None),
        (TimedOut(60, EAGER_AGAIN, ""), None),
    ],
)
def test_eager_after_compiled_code_may_stumble_over_it_and_may_end_by_itself(lost, kind):
    verdict = loss_verdict(lost)
    assert (verdict.failure.kind if verdict.failure else None) == kind


def test_comparing_for_long_is_no_hang():
    verdict = loss_verdict(TimedOut(60, "compare", ""))
    assert verdict.status == "invalid"
    assert "comparing takes too long" in verdict.reason


@pytest.mark.parametrize("stage", ["run", "cxx", "compare"])
def test_a_kill_comes_from_outside(stage):
    verdict = loss_verdict(Died(-9, stage, ""))
    assert verdict.status == "invalid"
    assert "probably for its memory" in verdict.reason


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (
            TimedOut(60, "import", ""),
            "m.py: importing it does not come to an end within 60 s; make the import and what gives model "
            "and inputs come to an end, or give it more time with --budget",
        ),
        (
            Died(-11, "eager", ""),
            "m.py: the model in eager ends the process with SIGSEGV; make it run without any compiler first",
        ),
        (
            TimedOut(60, "export", ""),
            "m.py: torch.export does not come to an end within 60 s; make torch.export.export() work on it "
            "first, or give it more time with --budget",
        ),
        (
            Died(3, "", ""),
            "m.py: opening it ends the process with exit 3; make the file importable first",
        ),
    ],
)
def test_what_is_lost_before_any_compiler_is_told_by_its_step(lost, said):
    assert not_opened("m.py", lost) == said


def test_in_words():
    assert ending(TimedOut(60, "import", "")) == "does not come to an end within 60 s"
    assert ending(Died(-11, "eager", "")) == "ends the process with SIGSEGV"
    assert ending(Died(3, "eager", "")) == "ends the process with exit 3"


class Wrapped(Exception):
    def __init__(self, inner):
        super().__init__(str(inner))
        self.inner_exception = inner


CXX = ["g++", "kernel.cpp"]


@pytest.mark.parametrize(
    ("problem", "says"),
    [
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
        (Wrapped(MemoryError()), ""),
        (Wrapped(OSError(24, "Too many open files")), "[Errno 24] Too many open files"),
        (FileNotFoundError(2, "No such file"), ""),
        (CppCompileError(CXX, "error: 'tmp3' was not declared in this scope"), ""),
        (
            Wrapped(CppCompileError(CXX, "g++: fatal error: Killed signal terminated program cc1plus")),
            "the C++ compiler says: Killed signal terminated",
        ),
        (
            CppCompileError(CXX, "/tmp/x.s: fatal error: error writing to /tmp/x.s: No space left on device"),
            "the C++ compiler says: No space left on device",
        ),
    ],
)
def test_what_the_machine_lacks_is_nobody_s_bug(problem, says):
    assert exhausted(problem) == says
