"""Descriptions of programs: what is drawn, in which order, and where shrinking ends."""

import pytest
from hypothesis import find

from strategies.programs import FRESH, MOST_CALLS, Call, Operator, Plan, drawn_plans, plans, singles

CATALOGUE = [
    Operator("relu", ("float32", "int8"), 3),
    Operator("sum", ("float32",), 1),
    Operator("where", ("bool", "float32", "int64"), 2),
]


def test_singles_are_each_once_and_first_samples_first():
    found = list(singles(CATALOGUE))
    assert len(found) == len(set(found)) == 2 * 3 + 1 * 1 + 3 * 2
    samples = [plan.calls[0].sample for plan in found]
    assert samples == sorted(samples)
    assert [p.calls[0].operator for p in found[:3]] == ["relu", "sum", "where"]
    assert {p.calls[0].dtype for p in found[:3]} == {"float32", "bool"}


def test_drawn_calls_are_in_the_catalogue():
    legal = {o.name: o for o in CATALOGUE}
    for plan in drawn_plans(CATALOGUE, 40, seed=3):
        assert 2 <= len(plan.calls) <= MOST_CALLS
        for call in plan.calls:
            assert call.dtype in legal[call.operator].dtypes
            assert 0 <= call.sample < legal[call.operator].samples
            assert all(FRESH <= feed <= MOST_CALLS for feed in call.feeds)


def test_a_seed_gives_the_same_chains_and_another_gives_others():
    assert drawn_plans(CATALOGUE, 20, seed=5) == drawn_plans(CATALOGUE, 20, seed=5)
    assert drawn_plans(CATALOGUE, 20, seed=5) != drawn_plans(CATALOGUE, 20, seed=6)


@pytest.mark.parametrize(
    ("wanted", "simplest"),
    [
        (lambda plan: True, Plan((Call("relu", "float32", 0, (1,)),))),
        (
            lambda plan: any(c.operator == "where" for c in plan.calls),
            Plan((Call("where", "bool", 0, (1,)),)),
        ),
        (lambda plan: any(c.sample == 2 for c in plan.calls), Plan((Call("relu", "float32", 2, (1,)),))),
        (
            lambda plan: sum(c.operator == "sum" for c in plan.calls) >= 2,
            Plan((Call("sum", "float32", 0, (1,)), Call("sum", "float32", 0, (1,)))),
        ),
    ],
)
def test_what_it_shrinks_to(wanted, simplest):
    assert find(plans(CATALOGUE), wanted) == simplest


def test_unusable_catalogues_are_refused():
    with pytest.raises(ValueError, match="at least one dtype"):
        Operator("relu", ())
    with pytest.raises(ValueError, match="empty"):
        plans([])
