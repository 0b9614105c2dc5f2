"""What is done with inputs that a person brings; the bench is played."""

import pytest

from minimizer import brought
from minimizer.case import Stored, Value
from minimizer.contract import Misuse
from minimizer.oracle.requests import Brought
from minimizer.oracle.verdict import ASSERTED, Failure, Verdict
from minimizer.program import Input, Program, Symbol, TensorMeta

PROGRAM = Program(
    (Input("x", TensorMeta("float32", ("n", 4), (1, "n"))),), (), (), symbols=(Symbol("n", 2, 64, 8),)
)
ROWS = Value("float32", (5, 4), Stored("given_0"))
COLUMNS = Value("float32", (5, 4), Stored("given_0"), stride=(1, 5))
FITS = Brought((COLUMNS,), ("x",))
PASSES = Verdict("pass")
WRONG = Failure("wrong_value", "run", "output 0 differs")


class Bench:
    """Answers what it is told to."""

    def __init__(self, given=FITS, refused="", verdict=PASSES):
        self.given, self.refused, self.verdict = given, refused, verdict
        self.judged = []

    def person_inputs(self, name):
        return self.given

    def guards_reject(self, values):
        return self.refused

    def judge(self, *calls):
        self.judged.append(calls)
        return self.verdict


def test_what_keeps_every_promise_is_given_back():
    assert brought.read(Bench(), PROGRAM, "inputs.pt") == (COLUMNS,)


@pytest.mark.parametrize("misuse", [Misuse("x", "a tensor", "None", "pass a tensor")])
def test_a_wrong_form_is_misuse(misuse):
    assert brought.read(Bench(given=misuse), PROGRAM, "function") == misuse


def test_a_broken_promise_is_misuse_and_called_as_the_person_calls_it():
    misuse = brought.read(Bench(given=Brought((ROWS,), ("batch['x']",))), PROGRAM, "inputs.pt")
    assert isinstance(misuse, Misuse)
    assert misuse.input == "batch['x']"


def test_a_guard_has_the_last_word():
    misuse = brought.read(Bench(refused="Guard failed: x.size()[0] != 5"), PROGRAM, "function")
    assert isinstance(misuse, Misuse)
    assert misuse.expected == "x.size()[0] != 5 (a guard of the exported program)"


def test_a_file_that_holds_no_strides_breaks_none():
    bench = Bench(given=Brought((ROWS,), ("x",)))
    assert brought.read(bench, PROGRAM, "inputs.safetensors") == (COLUMNS,)


def test_a_failure_is_what_the_run_goes_on_with():
    bench = Bench(verdict=Verdict("fail", WRONG))
    answer = brought.judge(bench, (COLUMNS,))
    assert answer.finding is not None
    assert (answer.finding.values, answer.finding.failure) == ((COLUMNS,), WRONG)
    assert bench.judged == [((COLUMNS,), (COLUMNS,))]


def test_what_passes_is_said_to_pass():
    answer = brought.judge(Bench(), (COLUMNS,))
    assert answer == brought.Answer(said="in contract, and right; the search goes on")


def test_what_eager_refuses_is_no_business_of_the_compiler_s():
    refused = Verdict("invalid", reason="eager raises IndexError: index 7 is out of bounds\nmore")
    misuse = brought.judge(Bench(verdict=refused), (COLUMNS,)).misuse
    assert misuse is not None
    assert misuse.actual == "some on which it raises IndexError: index 7 is out of bounds"


def test_values_that_only_the_exported_program_refuses_are_misuse():
    refused = Verdict("invalid", reason=ASSERTED + "Runtime assertion failed for expression u0 >= 2\nmore")
    misuse = brought.judge(Bench(verdict=refused), (COLUMNS,)).misuse
    assert misuse is not None
    assert misuse.actual == "some on which it says: Runtime assertion failed for expression u0 >= 2"


def test_what_cannot_be_judged_is_said():
    killed = Verdict("invalid", reason="killed from outside")
    answer = brought.judge(Bench(verdict=killed), (COLUMNS,))
    assert answer.said == "cannot be judged: killed from outside; the search goes on without them"
