"""What is made of a worker that died or fell silent over the inputs of a target. The workers are fakes."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from minimizer.case import Value
from minimizer.oracle.requests import TargetRequest
from minimizer.oracle.target_bench import SLOWER, TargetBench
from minimizer.oracle.verdict import PASS
from minimizer.sandbox import Died, TimedOut
from strategies.values import Fill

GIVEN = (Value("float32", (4,), Fill("normal")),)
CRASH = Died(-11, "run", "")
PAUSE = 0.02
"""Seconds that a slow eager takes; the limit for compiled code is as short."""


class Worker:
    """Answers by task: what is an exception is raised, what is a function is asked."""

    def __init__(self, answers):
        self.alive, self.answers = True, answers

    def call(self, task, *args, timeout, stage_timeout=None, watch=None):
        answer = self.answers.get(task.partition(":")[2])
        answer = answer(args, stage_timeout) if callable(answer) else answer
        if isinstance(answer, BaseException):
            self.alive = False
            raise answer
        return answer

    def close(self):
        self.alive = False


class Sandbox:
    def __init__(self, **answers):
        self.answers = {"check_guards": "", "eager_problem": "", **answers}

    def worker(self, environment=(), directory=None):
        return Worker(self.answers)


def bench(**answers):
    request = TargetRequest("m.py", "store")
    made = TargetBench(Sandbox(**answers), request, Path("p.pt2"), info=SimpleNamespace(stateful=False))
    made.run_timeout = PAUSE
    return made


def slow(args, limits):
    time.sleep(PAUSE)
    return ""


def silent_within(seconds):
    """Compiled code that needs so long."""
    return lambda args, limits: [PASS] if limits["run"] >= seconds else TimedOut(limits["run"], "run", "")


@pytest.mark.parametrize(("lost", "kind"), [(CRASH, "crash"), (TimedOut(15, "run", ""), "hang")])
def test_where_eager_alone_comes_back_it_is_the_failure(lost, kind):
    verdict = bench(judge_inputs=lost).judge(GIVEN)
    assert (verdict.status, verdict.failure.kind) == ("fail", kind)


def test_compiled_code_may_take_what_eager_takes():
    made = bench(judge_inputs=silent_within(PAUSE * SLOWER / 2), eager_problem=slow)
    assert made.judge(GIVEN).status == "pass"


def test_but_not_for_ever():
    verdict = bench(judge_inputs=silent_within(1e6), eager_problem=slow).judge(GIVEN, GIVEN)
    assert verdict.failure.kind == "hang"


@pytest.mark.parametrize("lost", [Died(-11, "eager", ""), TimedOut(60, "eager", "")])
def test_what_eager_does_alone_is_not_the_compiler_s(lost):
    verdict = bench(judge_inputs=CRASH, eager_problem=lost).judge(GIVEN, GIVEN)
    assert verdict.status == "invalid"
    assert verdict.reason.startswith("eager: ")


def test_a_heap_found_broken_in_eager_is_the_work_of_an_earlier_call():
    broken = Died(-6, "", "corrupted size vs. prev_size")
    answers = iter([[PASS], broken, [PASS], broken])
    made = bench(judge_inputs=lambda args, limits: next(answers))
    assert made.judge(GIVEN).status == "pass"
    assert made.judge(GIVEN).failure.kind == "crash"
    made._sandbox.answers["eager_problem"] = broken
    assert made.judge(GIVEN).status == "pass"
    assert made.judge(GIVEN).status == "invalid", "eager alone breaks it"


def test_eager_is_asked_for_every_call():
    asked = []
    made = bench(judge_inputs=CRASH, eager_problem=lambda args, limits: asked.append(args[0]) or "")
    made.judge(GIVEN, GIVEN)
    assert asked == [(GIVEN, GIVEN)]


def test_what_the_guards_refuse_was_not_promised():
    verdict = bench(judge_inputs=CRASH, check_guards="Guard failed: x.size(0) <= 3").judge(GIVEN)
    assert (verdict.status, verdict.reason) == ("invalid", "out of contract: Guard failed: x.size(0) <= 3")


def test_what_is_known_to_be_legal_is_not_asked_about_again():
    made = bench(judge_inputs=CRASH, check_guards="no", eager_problem=Died(-11, "eager", ""))
    assert made.judge(GIVEN, plainly=True).failed
