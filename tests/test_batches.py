"""Batches: the same verdicts and findings as of single judgements, whoever answers how much of one."""

from itertools import count

import pytest

from minimizer.case import Value
from minimizer.fuzz import search
from minimizer.input_space import InputSpace
from minimizer.oracle import target_bench as benches
from minimizer.oracle.batches import judged
from minimizer.oracle.requests import TargetRequest
from minimizer.oracle.target_bench import TargetBench
from minimizer.oracle.verdict import PASS, Failure, Verdict
from minimizer.program import Input, Program, Symbol, TensorMeta
from minimizer.sandbox import Died
from strategies.values import Fill

WRONG = Verdict("fail", Failure("wrong_value", "run", flavour="values"))
LOST = Verdict("fail", Failure("lost_error", "run", exception="IndexError"))


def answering(most, fails=frozenset()):
    """A judge that answers at most so many at a time, and ends after what fails."""

    def judge(batch):
        found = []
        for calls in batch[:most]:
            found.append(WRONG if calls in fails else PASS)
            if found[-1].failed:
                break
        return found

    return judge


@pytest.mark.parametrize("most", [1, 3, 64])
@pytest.mark.parametrize("batch", [1, 5, 64])
def test_everything_is_judged_once_and_in_order(most, batch):
    fails = {4, 5, 17}
    seen = list(judged(answering(most, fails), zip(count(100), range(20)), batch))
    assert [(tag, calls) for tag, calls, _ in seen] == list(zip(range(100, 120), range(20)))
    assert {calls for _, calls, verdict in seen if verdict.failed} == fails


def test_no_more_than_a_batch_is_drawn_ahead():
    drawn = []

    def coming():
        for k in range(100):
            drawn.append(k)
            yield None, k

    found = judged(answering(3), coming(), 8)
    next(found)
    assert len(drawn) == 8
    for _ in range(3):
        next(found)
    assert len(drawn) == 11


def test_nothing_to_judge_is_no_question():
    assert list(judged(lambda batch: 1 / 0, [])) == []


META = TensorMeta("float32", ("n",), (1,))
SPACE = InputSpace(Program((Input("x", META),), (), (), symbols=(Symbol("n", 0, 600, 8),)))
EXAMPLES = (Value("float32", (8,), Fill("normal")),)


def found_by(judge_one, most_at_once, seed):
    def judge(batch):
        verdicts = []
        for calls in batch[:most_at_once]:
            verdicts.append(judge_one(calls[-1][0]))
            if verdicts[-1].failed:
                break
        return verdicts

    report = search(SPACE, judge, EXAMPLES, seed=seed, stateful=False, most=1500)
    return report.finding, report.also, report.tried, report.passed


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "judge_one",
    [
        lambda value: WRONG if value.shape[0] == 33 else PASS,
        lambda value: LOST if value.shape[0] % 3 == 0 else WRONG if value.shape[0] == 601 else PASS,
        lambda value: WRONG if value.shape[0] > 300 and value.shape[0] % 16 == 5 else PASS,
        lambda value: Verdict("invalid") if value.shape[0] % 2 else PASS,
    ],
    ids=["opening", "mild", "random", "invalid"],
)
def test_batches_find_what_single_judgements_find(judge_one, seed):
    assert found_by(judge_one, 1, seed) == found_by(judge_one, 7, seed) == found_by(judge_one, 64, seed)


class FragileWorker:
    """A process that dies of `deadly` inputs; what it had judged until then is lost with it."""

    alive = True

    def __init__(self, deadly, log):
        self.deadly, self.log = deadly, log

    def call(self, task, *args, **limits):
        if task.endswith("judge_inputs"):
            verdicts = []
            for k, (values,) in enumerate(args[0]):
                self.log.append(values)
                if values in self.deadly:
                    self.alive = False
                    raise Died(-8, self.deadly[values], "", k)
                verdicts.append(Verdict("pass", error_ratio=values[0]))
            return verdicts
        return "" if task.endswith(("check_guards", "eager_problem")) else None

    def close(self):
        self.alive = False


@pytest.fixture
def fragile(monkeypatch, tmp_path):
    log = []

    def start(deadly):
        bench = TargetBench(None, TargetRequest("m.py", str(tmp_path)), tmp_path / "p.pt2")
        monkeypatch.setattr(bench, "_ready", lambda load=True: FragileWorker(deadly, log))
        return bench, log

    return start


def test_a_death_in_a_batch_is_that_of_one_input(fragile):
    bench, log = fragile({(3,): "run"})
    verdicts = bench.judge_many([((k,),) for k in range(6)])
    assert [v.status for v in verdicts] == ["pass", "pass", "pass", "fail"]
    assert verdicts[3].failure.kind == "crash"
    assert [v.error_ratio for v in verdicts[:3]] == [0, 1, 2]
    assert log == [(0,), (1,), (2,), (3,), (0,), (1,), (2,)]


def test_a_death_in_eager_does_not_end_the_batch(fragile):
    bench, _ = fragile({(0,): "eager", (2,): "eager"})
    verdicts = [v for _, _, v in judged(bench.judge_many, ((k, ((k,),)) for k in range(5)))]
    assert [v.status for v in verdicts] == ["invalid", "pass", "invalid", "pass", "pass"]


def test_single_judgements_are_batches_of_one(fragile):
    bench, _ = fragile({(7,): "compare"})
    assert bench.judge((7,)).failure.kind == "crash"
    assert bench.judge((6,)).status == "pass"


def test_slow_inputs_are_given_more_time(fragile, monkeypatch):
    bench, _ = fragile({})
    ticks = iter([0.0, 30.0])
    monkeypatch.setattr(benches.time, "monotonic", lambda: next(ticks))
    bench.judge_many([((k,),) for k in range(10)])
    assert (bench.timeout, bench.run_timeout) == (60.0, 60.0)
