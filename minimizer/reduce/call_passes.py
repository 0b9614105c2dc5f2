"""Passes over the calls that come before the failing one.

A reader asks of each: is it needed, must it be given other inputs than the last call, and how plain can these
be? Candidates share one compiled program, so the answers are cheap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from minimizer.case import Case, Values
from minimizer.reduce.cut import Observations
from minimizer.reduce.input_passes import plain_elements, plain_values, smaller_sizes
from minimizer.reduce.proposals import Proposals, fewest


def fewer_calls(case: Case, observed: Observations) -> Proposals:
    """No call before the failing one, else the fewest, else the same inputs in one after the other."""
    if not case.earlier:
        return
    if (yield replace(case, earlier=())):
        return
    places = range(len(case.earlier))

    def only(kept: tuple[int, ...]) -> Case | None:
        return replace(case, earlier=tuple(case.earlier[k] for k in kept)) if kept else None

    kept = yield from fewest(places, only)
    current = only(tuple(kept)) or case
    for k, call in enumerate(current.earlier):
        candidate = _with_call(current, k, current.values)
        if call != current.values and (yield candidate):
            current = candidate


def plain_earlier(case: Case, observed: Observations) -> Proposals:
    """Smaller sizes and plainer values for the calls before the failing one."""
    current = case
    for k in range(len(case.earlier)):
        for run in (smaller_sizes, plain_values, plain_elements):
            if current.earlier[k] == current.values:
                break
            inner = run(current.turn(k), observed)
            answer = None
            while True:
                try:
                    proposed = next(inner) if answer is None else inner.send(answer)
                except StopIteration:
                    break
                candidate = _with_call(current, k, proposed.values)
                answer = candidate != current and (yield candidate)
                if answer:
                    current = candidate


def without_each_call(case: Case) -> Iterator[tuple[str, Case]]:
    """Each call before the failing one, in words, with the case that leaves it out."""
    for k in range(len(case.earlier)):
        yield (
            f"call {k + 1} of {len(case.earlier) + 1}",
            replace(case, earlier=case.earlier[:k] + case.earlier[k + 1 :]),
        )


def _with_call(case: Case, k: int, values: Values) -> Case:
    return replace(case, earlier=(*case.earlier[:k], values, *case.earlier[k + 1 :]))
