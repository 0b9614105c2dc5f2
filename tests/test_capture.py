"""The ladder climbed with replays that fail on purpose."""

from dataclasses import replace
from itertools import cycle, repeat

import pytest

from minimizer.capture import NOT_FINITE, RUNS, Determinism, alike, capture, ladder
from minimizer.oracle.verdict import PASS, Failure, Signature, Verdict

WRONG = Failure("wrong_value", "run", flavour="values")
FAIL = Verdict("fail", WRONG)
OTHER = Verdict("fail", Failure("crash", "run", exception="SIGSEGV"))
LADDER = ladder(("cpu",))
PLAIN = LADDER[0].name


class Replays:
    """Answers by rung: a list that starts over, or one verdict for ever; rungs that are not named pass."""

    def __init__(self, **answers):
        self.asked = []
        self._answers = {
            name.replace("_", " "): cycle(a) if isinstance(a, list) else repeat(a)
            for name, a in answers.items()
        }

    def __call__(self, rung):
        self.asked.append(rung.name)
        return next(self._answers.get(rung.name, repeat(PASS)))


def test_what_always_fails_is_settled_at_once():
    replays = Replays(as_it_is=FAIL)
    found = capture(WRONG, replays)
    assert (found.rung, found.runs, found.failures) == (LADDER[0], RUNS, RUNS)
    assert found.certain
    assert found.repeats == 1
    assert replays.asked == [PLAIN] * RUNS


def test_what_comes_and_goes_climbs_to_the_rung_where_it_always_shows():
    replays = Replays(as_it_is=[FAIL, PASS], one_thread=FAIL)
    found = capture(WRONG, replays)
    assert (found.rung.name, found.certain) == ("one thread", True)
    assert replays.asked[-1] == "one thread"


def test_the_best_rung_stands_when_none_is_certain():
    replays = Replays(as_it_is=[FAIL, PASS, PASS, PASS, PASS], called_10_times=[FAIL, FAIL, PASS, FAIL, FAIL])
    found = capture(WRONG, replays)
    assert (found.rung.name, found.runs, found.failures) == ("called 10 times", 5, 4)
    assert set(replays.asked) == {rung.name for rung in LADDER}


def test_a_rung_that_shows_nothing_is_left_after_two_runs():
    replays = Replays(freed_memory_overwritten=FAIL)
    found = capture(WRONG, replays)
    assert found.rung.name == "freed memory overwritten"
    assert [replays.asked.count(rung.name) for rung in LADDER[:4]] == [2, 2, 2, RUNS]


def test_what_never_shows_again_has_no_failures():
    found = capture(WRONG, Replays())
    assert (found.rung, found.failures, found.failure) == (LADDER[0], 0, WRONG)
    assert not found.certain


def test_another_failure_does_not_count():
    found = capture(WRONG, Replays(as_it_is=[OTHER, PASS], one_thread=FAIL))
    assert (found.rung.name, found.failure) == ("one thread", WRONG)
    found = capture(WRONG, Replays(as_it_is=OTHER))
    assert found.failures == 0


def test_giving_up_keeps_the_best_so_far():
    replays = Replays(as_it_is=[FAIL, PASS])
    found = capture(WRONG, replays, give_up=lambda: True)
    assert (found.rung, found.failures) == (LADDER[0], 3)
    assert set(replays.asked) == {PLAIN}


def test_runs_can_be_chosen():
    assert capture(WRONG, Replays(as_it_is=FAIL), runs=2).runs == 2


@pytest.mark.parametrize(
    ("failures", "runs", "repeats"), [(5, 5, 1), (4, 5, 3), (1, 2, 7), (1, 5, 20), (0, 5, 1)]
)
def test_repeats_are_confident(failures, runs, repeats):
    found = Determinism(LADDER[0], runs, failures, WRONG)
    assert found.repeats == repeats
    if 0 < failures < runs and repeats < 20:
        miss = 1 - failures / runs
        assert miss**repeats <= 0.01 < miss ** (repeats - 1)


def test_a_rung_is_a_command():
    assert LADDER[0].command == ""
    assert LADDER[4].command == "MALLOC_PERTURB_=165 OMP_NUM_THREADS=1"


def test_not_finite_may_become_ordinary_but_not_the_other_way():
    finite, nan = (Signature("wrong_value", "run", "", text) for text in ("values", NOT_FINITE))
    assert alike(finite, nan)
    assert not alike(nan, finite)
    assert alike(nan, nan)
    assert not alike(Signature("crash", "run", "", "values"), nan)


def test_an_exception_that_could_not_say_what_it_was_counts_as_any():
    def crash(text):
        return Signature("crash", "run", "", text)

    said, unsaid = crash("index out of bounds: # <= tmp# < #"), crash("uncaught exception")
    assert alike(said, unsaid)
    assert alike(unsaid, said)
    assert not alike(said, crash("expected # sizes"))
    assert not alike(crash("memory"), unsaid)
    assert not alike(unsaid, crash("SIGFPE"))


def test_of_what_died_the_one_that_said_why_is_kept():
    dies = "the process ended with SIGABRT: terminate called"
    silent = Failure("crash", "run", dies, "SIGABRT", detail="terminate called recursively")
    telling = replace(silent, detail="terminate called\n  what():  index out of bounds: 0 <= tmp7 < 3")
    runs = cycle([Verdict("fail", silent), Verdict("fail", telling)])
    found = capture(silent, lambda rung: next(runs))
    assert (found.certain, found.failure) == (True, telling)


def test_what_fails_only_after_other_inputs_is_given_them_first():
    replays = Replays(after_4_other_inputs=FAIL, one_thread=FAIL)
    found = capture(WRONG, replays, before=6)
    assert (found.rung.before, found.certain) == (4, True)
    assert replays.asked == [PLAIN] * 2 + ["after 1 other inputs"] * 2 + ["after 4 other inputs"] * RUNS


def test_no_more_inputs_are_asked_for_than_were_given():
    replays = Replays()
    capture(WRONG, replays, before=2)
    assert "after 4 other inputs" in replays.asked
    assert "after 16 other inputs" not in replays.asked
    capture(WRONG, other := Replays())
    assert not [name for name in other.asked if name.startswith("after")]


def test_rungs_of_cuda_are_for_targets_on_cuda():
    replays = Replays(allocations_not_cached=FAIL)
    found = capture(WRONG, replays, devices=("cuda:0",))
    assert found.rung.command == "PYTORCH_NO_CUDA_MEMORY_CACHING=1"
    assert not {rung.name for rung in LADDER} & {"allocations not cached", "launches synchronous"}
    assert ladder(("cpu", "cuda:1"))[2].environment == (("CUDA_LAUNCH_BLOCKING", "1"),)


def test_each_rung_is_recorded_with_its_rate_and_command():
    found = capture(WRONG, Replays(as_it_is=[FAIL, PASS], one_thread=FAIL))
    assert [(s.rung.name, s.failures, s.runs) for s in found.steps] == [
        (PLAIN, 3, 5),
        ("called 10 times", 0, 2),
        ("one thread", 5, 5),
    ]
    assert found.summary["ladder"][2] == {
        "rung": "one thread",
        "runs": 5,
        "failures": 5,
        "command": "OMP_NUM_THREADS=1 python repro.py",
    }
    assert "ladder" not in capture(WRONG, Replays(as_it_is=FAIL)).summary
