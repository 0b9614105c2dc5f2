"""Which process judges what: one for each program, kept while it is of use. The workers are fakes."""

import threading
import time
from pathlib import Path

import pytest

from minimizer.case import Case, Value
from minimizer.oracle.case_bench import CaseBench, OutOfBudget
from minimizer.oracle.verdict import Failure, Verdict
from minimizer.program import Input, Node, Program, Ref, TensorMeta
from minimizer.sandbox import Died, TimedOut
from strategies.values import Fill

META = TensorMeta("float32", (4,), (1,))


def case(*operators, fill="zeros"):
    nodes = tuple(
        Node(f"v{k}", f"aten.{name}.default", (Ref(f"v{k - 1}" if k else "x"),), meta=META)
        for k, name in enumerate(operators)
    )
    return Case(
        Program((Input("x", META),), nodes, Ref(nodes[-1].name)), (Value("float32", (4,), Fill(fill)),)
    )


class Worker:
    """Fails what has a relu and dies on a sin.

    A tanh takes too long, a cos does not end until it is killed, an exp is interrupted.
    """

    def __init__(self, own_cache, together):
        self.alive, self.tasks, self.own_cache = True, [], own_cache
        self.together = together
        self.program = None
        self.killed = threading.Event()

    def call(self, task, *args, timeout, stage_timeout):
        self.tasks.append(task.partition(":")[2])
        if self.tasks[-1] == "judge_case":
            self.program = args[0].program
        names = {n.target.split(".")[1] for n in self.program.nodes}
        if "tanh" in names:
            time.sleep(timeout if timeout < 1.0 else 0.0)
            self.alive = False
            raise TimedOut(timeout, "run", "")
        if "exp" in names:
            while len(self.together) < 3 or not all(worker.tasks for worker in self.together):
                time.sleep(0.01)
            raise KeyboardInterrupt
        if "cos" in names:
            self.killed.wait(20.0)
        if names & {"sin", "cos"}:
            self.alive = False
            raise Died(-9 if self.killed.is_set() else -11, "run", "")
        return Verdict("fail", Failure("wrong_value", "run")) if "relu" in names else Verdict("pass")

    def kill(self):
        self.killed.set()

    def close(self):
        self.alive = False


class Sandbox:
    scratch = Path("scratch")

    def __init__(self):
        self.workers = []

    def worker(self, environment=(), directory=None, *, own_cache=False):
        self.workers.append(Worker(own_cache, self.workers))
        return self.workers[-1]

    @property
    def tasks(self):
        return sorted(worker.tasks for worker in self.workers)

    @property
    def alive(self):
        return [worker for worker in self.workers if worker.alive]


@pytest.fixture
def sandbox():
    return Sandbox()


@pytest.fixture
def bench(sandbox):
    return CaseBench(sandbox, Path("store"))


def test_inputs_of_one_program_share_a_process(bench, sandbox):
    statuses = [bench.judge(case("relu", fill=fill), "jit").status for fill in ("zeros", "ones")]
    assert statuses == ["fail", "fail"]
    assert sandbox.tasks == [["judge_case", "judge_again"]]
    assert (bench.judged, bench.compiles) == (2, 1)
    bench.judge(case("neg"), "jit")
    assert len(sandbox.alive) == 1, "the process of another program ends"


def test_a_fresh_judgement_shares_nothing(bench, sandbox):
    bench.judge(case("relu"), "full")
    bench.judge(case("relu"), "full", fresh=True)
    assert sandbox.tasks == [["judge_case"], ["judge_case"]]
    assert [worker.own_cache for worker in sandbox.workers] == [False, True]
    assert sandbox.alive == []


def test_programs_are_judged_side_by_side_and_answered_in_order(bench, sandbox):
    cases = [case("relu"), case("neg"), case("relu", fill="ones"), case("sin")]
    verdicts = bench.judge_many(cases, "jit")
    assert [v.status for v in verdicts] == ["fail", "pass", "fail", "fail"]
    assert [v.failure.kind for v in verdicts if v.failure] == ["wrong_value", "wrong_value", "crash"]
    assert sandbox.tasks == [["judge_case"], ["judge_case"], ["judge_case", "judge_again"]]
    assert (bench.judged, bench.compiles) == (4, 3)
    assert list(bench.passed) == [cases[1]]
    assert len(sandbox.alive) == 1, "that of the first case"
    bench.judge(case("relu", fill="normal"), "jit")
    assert len(sandbox.workers) == 3


def test_a_process_that_has_the_first_program_goes_on(bench, sandbox):
    bench.judge(case("relu"), "jit")
    bench.judge_many([case("relu", fill="ones"), case("neg")], "jit")
    assert sandbox.tasks == [["judge_case"], ["judge_case", "judge_again"]]


def test_an_interruption_ends_the_processes_at_work(bench, sandbox):
    with pytest.raises(KeyboardInterrupt):
        bench.judge_many([case("exp"), case("cos"), case("cos", "cos")], "jit")
    assert all(worker.killed.is_set() for worker in sandbox.workers[1:])
    assert bench.judge(case("relu"), "jit").failed


def test_what_is_ended_for_want_of_time_is_no_hang(bench, sandbox):
    assert bench.judge(case("tanh"), "jit").failure.kind == "hang"
    bench.until = time.monotonic() + 0.2
    with pytest.raises(OutOfBudget):
        bench.judge(case("tanh"), "jit")
    with pytest.raises(OutOfBudget):
        bench.judge_many([case("tanh"), case("relu")], "jit")
    bench.until = time.monotonic() + 60.0
    assert bench.judge(case("relu"), "jit").failed
