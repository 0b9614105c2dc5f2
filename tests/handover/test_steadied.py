"""A repro that fails now and then is taken up the ladder until it always does."""

from types import SimpleNamespace

import pytest

from minimizer import handing
from minimizer.capture import LADDER, Determinism
from minimizer.case import Case, Value
from minimizer.console import Console
from minimizer.oracle.verdict import Failure
from minimizer.program import Input, Node, Program, Ref, TensorMeta
from minimizer.verify import Verified
from strategies.values import Fill

META = TensorMeta("float32", (2,), (1,))
CASE = Case(
    Program((Input("x", META),), (Node("y", "aten.relu.default", (Ref("x"),), meta=META),), Ref("y")),
    (Value("float32", (2,), Fill("zeros")),),
)
CRASH = Failure("crash", "run", "the process ended with SIGABRT: free(): invalid pointer")
FOUND = Determinism(LADDER[0], 5, 5, CRASH)
WAVERING = Verified(2, 1, True, "")


WRONG = Failure("wrong_value", "run", flavour="values")


def steadied(monkeypatch, fails, *, late=False, failure=CRASH):
    """What becomes of the case when its repro always fails where `fails` of it, and what was written."""
    written = []
    monkeypatch.setattr(handing, "write_repro", lambda run, case, failure, found: written.append(case) or "")
    monkeypatch.setattr(
        handing, "verify", lambda *_: Verified(2, 2 if fails(written[-1]) else 1, True, "again")
    )
    run = SimpleNamespace(
        clock=SimpleNamespace(past=lambda share: lambda: late),
        folder=SimpleNamespace(path=None),
        sandbox=None,
        console=Console(quiet=True),
    )
    case, _, verified = handing._steadied(run, CASE, failure, FOUND, WAVERING)
    return case, verified, written


def test_the_first_rung_that_always_fails_is_taken(monkeypatch):
    case, verified, written = steadied(monkeypatch, lambda case: len(case.earlier) == 9)
    assert (len(case.earlier), verified.holds, len(written)) == (9, True, 1)


def test_the_heap_is_checked_at_last(monkeypatch):
    case, verified, _ = steadied(
        monkeypatch, lambda case: ("MALLOC_CHECK_", "3") in case.settings.environment
    )
    assert case.settings.environment[0] == ("LD_PRELOAD", "libc_malloc_debug.so.0")
    assert verified.holds


@pytest.mark.parametrize("late", [False, True])
def test_what_never_always_fails_stays_as_it_was(monkeypatch, late):
    case, verified, written = steadied(monkeypatch, lambda case: False, late=late)
    assert (case, verified, written[-1]) == (CASE, WAVERING, CASE)
    assert len(written) == (1 if late else 3)


def test_a_wrong_value_gets_other_values_before_other_memory(monkeypatch):
    case, verified, written = steadied(
        monkeypatch, lambda case: case.values[0].data == Fill("normal"), failure=WRONG
    )
    assert (case.values[0].data, verified.holds, len(written)) == (Fill("normal"), True, 1)
    perturbed = ("MALLOC_PERTURB_", "165")
    case, verified, written = steadied(
        monkeypatch, lambda case: perturbed in case.settings.environment, failure=WRONG
    )
    assert (case.values, verified.holds, len(written)) == (CASE.values, True, 2)
