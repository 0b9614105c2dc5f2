"""Regions of failures as a run maps them: from a judge of inputs to a predicate, checked on every size."""

from dataclasses import replace
from itertools import product

import pytest

from minimizer.case import Stored, Value
from minimizer.fuzz import Finding
from minimizer.mapping import FATAL_BOUNDS, map_region
from minimizer.oracle.verdict import PASS, Failure, Verdict
from minimizer.program import Input, Program, Symbol, TensorMeta
from strategies.inputs import ODD
from strategies.values import Fill

WRONG = Failure("wrong_value", "run", flavour="values")
CRASH = Failure("crash", "run", exception="SIGSEGV")
VECTOR = Program(
    (Input("x", TensorMeta("float32", ("n",), (1,))),), (), (), symbols=(Symbol("n", 0, 300, 8),)
)
MATRIX = Program(
    (Input("x", TensorMeta("float32", ("h", "w"), ("w", 1))),),
    (),
    (),
    symbols=(Symbol("h", 1, 40, 8), Symbol("w", 1, 40, 9)),
)


def mapped(program, shape, fails, failure=WRONG, *, most=10**6, **lying):
    """The region, and how many inputs failed and passed on the way to it."""
    counts = {True: 0, False: 0}

    def judge(*calls):
        failed = fails(calls[-1][0])
        counts[failed] += 1
        return Verdict("fail", failure) if failed else PASS

    value = Value("float32", shape, Fill("ones"), **lying)
    assert fails(value)
    asked = lambda: sum(counts.values()) >= most  # noqa: E731
    return map_region(program, Finding((value,), (), failure, 1), failure, judge, asked), counts


@pytest.mark.parametrize(
    ("shape", "truth", "failure"),
    [
        ((17,), "n % 16 == 1 and n > 1", WRONG),
        *(
            (shape, truth, failure)
            for shape, truth in (
                ((0,), "n == 0"),
                ((300,), "n > 256"),
                ((200,), "n >= 137"),
                ((33,), "n == 33"),
            )
            for failure in (WRONG, CRASH)
        ),
    ],
)
def test_one_size(shape, truth, failure):
    region, _ = mapped(VECTOR, shape, lambda value: eval(truth, {"n": value.shape[0]}), failure)
    wrong = [n for n in range(301) if eval(region.predicate, {"n": n}) != eval(truth, {"n": n})]
    assert not wrong, region.predicate


@pytest.mark.parametrize("truth", ["h > w", "h == w", "h * w > 512", "w % 16 == 1", "h % 4 == 0 and w > 9"])
def test_two_sizes(truth):
    points = [dict(zip("hw", point)) for point in product(range(1, 41), repeat=2)]
    start = next(p for p in reversed(points) if eval(truth, {}, p))
    region, _ = mapped(
        MATRIX, tuple(start.values()), lambda value: eval(truth, {}, dict(zip("hw", value.shape)))
    )
    wrong = [p for p in points if eval(region.predicate, {}, dict(p)) != eval(truth, {}, dict(p))]
    assert not wrong, region.predicate


def test_few_crashes_are_asked_for_and_many_other_sizes():
    _, counts = mapped(VECTOR, (250,), lambda value: value.shape[0] > 100, CRASH)
    assert counts[True] <= FATAL_BOUNDS
    _, counts = mapped(VECTOR, (33,), lambda value: value.shape[0] == 33, CRASH)
    assert counts[False] >= 290


def test_other_sizes_lie_where_the_failing_one_lay():
    region, _ = mapped(VECTOR, (8,), lambda value: value.offset == 1 and value.shape[0] > 4, offset=1)
    assert region.predicate == "n > 4"
    region, _ = mapped(
        MATRIX,
        (1, 9),
        lambda value: value.shape[0] == 1 and (value.stride or value.shape[1:])[0] == ODD,
        stride=(ODD, 1),
    )
    assert region.predicate == "h == 1"


def test_numbers_that_show_the_failure_stand_in_for_stored_ones():
    def judge(values):
        (value,) = values
        shows = isinstance(value.data, Stored) or value.data.kind == "all_negative"
        return Verdict("fail", WRONG) if shows and value.shape[0] > 16 else PASS

    finding = Finding((Value("float32", (40,), Stored("example_0")),), (), WRONG, 1)
    assert map_region(VECTOR, finding, WRONG, judge, lambda: False).predicate == "n > 16"


def test_where_only_the_stored_numbers_fail_no_region_is_claimed():
    stored = (Value("float32", (40,), Stored("example_0")),)

    def judge(values):
        return Verdict("fail", WRONG) if values == stored else PASS

    assert map_region(VECTOR, Finding(stored, (), WRONG, 1), WRONG, judge, lambda: False) is None


def test_out_of_time_there_is_what_was_seen():
    region, counts = mapped(VECTOR, (40,), lambda value: value.shape[0] > 20, most=5)
    assert sum(counts.values()) == 5
    assert region.sizes_tried == 6


def test_no_region_of_what_does_not_run():
    cxx = replace(WRONG, kind="cxx_error", stage="cxx")
    assert mapped(VECTOR, (8,), lambda value: True, cxx)[0] is None
