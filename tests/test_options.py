"""How the budget of a run is shared out."""

import time

import pytest

from minimizer.options import Clock


@pytest.mark.parametrize(
    ("spent", "share", "least", "over"),
    [
        (20.0, 0.25, 0.0, False),
        (30.0, 0.25, 0.0, True),
        (30.0, 0.25, 0.15, False),
        (20.0, 0.25, 0.15, False),
    ],
)
def test_a_step_ends_at_its_share_but_gets_at_least_some_time(spent, share, least, over):
    clock = Clock(100.0, start=time.monotonic() - spent)
    assert clock.past(share, least=least)() == over


def test_the_least_time_counts_from_when_the_step_begins():
    clock = Clock(100.0, start=time.monotonic() - 30.0)
    late = clock.past(0.25, least=0.15)
    clock.start -= 14.0
    assert not late()
    clock.start -= 2.0
    assert late()
