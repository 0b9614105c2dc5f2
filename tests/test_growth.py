"""Stuck or slow, told from made-up compile times."""

import pytest

from minimizer.growth import Growth, Point, measure


def timed(seconds, limit=30.0):
    return lambda nodes: None if seconds(nodes) > limit else seconds(nodes)


@pytest.mark.parametrize(
    ("name", "seconds", "blows_up"),
    [
        ("exponential", lambda n: 2.0**n / 1000, True),
        ("a sudden hang", lambda n: 0.3 if n < 40 else 1e9, True),
        ("linear and slow", lambda n: float(n), False),
        ("quadratic", lambda n: n * n / 50, False),
        ("nearly cubic", lambda n: n**2.8 / 500, False),
    ],
)
def test_growth(name, seconds, blows_up):
    assert measure(100, timed(seconds), 30.0).blows_up is blows_up


def test_prefixes_grow_until_one_does_not_end():
    asked = []

    def compile_prefix(nodes):
        asked.append(nodes)
        return 0.1 if nodes < 25 else None

    growth = measure(100, compile_prefix, 30.0)
    assert asked == [5, 10, 20, 30]
    assert growth.shortest == 30
    assert growth.text == ("5 nodes 0.1 s · 10 nodes 0.1 s · 20 nodes 0.1 s · 30 nodes more than 30 s")


def test_what_always_ends_is_not_stuck():
    growth = measure(100, lambda nodes: 0.1, 30.0)
    assert growth.points[-1] == Point(100, 0.1)
    assert growth.shortest is None
    assert not growth.blows_up


def test_the_first_prefix_alone_proves_nothing():
    assert measure(100, lambda nodes: None, 30.0) == Growth((Point(5, None),), 30.0, False)


@pytest.mark.parametrize("total", [1, 2, 3, 7])
def test_short_programs_are_not_asked_twice(total):
    asked = []
    measure(total, lambda nodes: asked.append(nodes) or 0.1, 30.0)
    assert asked == sorted(set(asked))
    assert asked[0] >= 1
    assert asked[-1] == total
