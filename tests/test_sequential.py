"""Luck is told from failing often, at the promised confidence and for few runs."""

from random import Random

import pytest

from minimizer.sequential import MOST_RUNS, SequentialTest


def outcomes(test, rate, times, seed):
    """How often a case of this failure rate is convicted, and the runs that this takes on average."""
    random, runs, convicted = Random(seed), 0, 0

    def fails():
        nonlocal runs
        runs += 1
        return random.random() < rate

    for _ in range(times):
        convicted += test.decide(fails)
    return convicted / times, runs / times


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
def test_what_fails_as_often_as_the_original_is_convicted(rate):
    test = SequentialTest.like(rate)
    convicted, runs = outcomes(test, rate, 2000, seed=1)
    assert convicted > 0.997
    assert runs < 8 / rate


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
def test_what_fails_by_accident_only_is_not(rate):
    test = SequentialTest.like(rate)
    assert outcomes(test, 0.0, 50, seed=2)[0] == 0
    assert outcomes(test, rate / 10, 2000, seed=3)[0] < 0.003


@pytest.mark.parametrize(("rate", "runs"), [(0.3, 53), (0.5, 30), (0.9, 14)])
def test_a_pass_that_lasts_acquits_after_so_many_runs(rate, runs):
    test = SequentialTest.like(rate)
    assert test.says(0, runs - 1) is None
    assert test.says(0, runs) is False


def test_the_grey_zone_ends_too():
    test = SequentialTest.like(0.06)
    failures = next(n for n in range(MOST_RUNS) if test.says(n, MOST_RUNS - 1) is None)
    assert test.says(failures, MOST_RUNS) is not None
    assert SequentialTest.like(0.001) == SequentialTest.like(0.05)


def test_in_words():
    said = "until it was 99.9 % sure to fail in 20 % of runs or more, not 4 % or fewer"
    assert said in SequentialTest.like(0.4).in_words()
