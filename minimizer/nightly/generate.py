"""From plans to programs: the stream of a night, its fragments, and the cases that come of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from minimizer.case import Case
from minimizer.nightly.joining import Fragment, chained
from minimizer.sandbox import Sandbox, TaskError, WorkerLost
from strategies.programs import Operator, Plan, drawn_plans, singles

CATALOGUE = "minimizer.nightly.catalogue:"

BATCH = 40
"""Fragments asked for at once; a batch in which export takes the worker down is lost."""


class Catalogue:
    """The operator database at the far end of a worker."""

    def __init__(self, sandbox: Sandbox, store: str) -> None:
        self._sandbox = sandbox
        self._store = store
        self._worker = sandbox.worker()
        self.operators: list[Operator] = self._worker.call(CATALOGUE + "list_operators", timeout=120.0)

    def fragments(self, choices: Sequence[tuple[str, str, int]]) -> list[Fragment | str]:
        """The fragments of some choices; those of a batch that takes the worker down are all refused."""
        if not self._worker.alive:
            self._worker = self._sandbox.worker()
        try:
            found: list[Fragment | str] = self._worker.call(
                CATALOGUE + "fragments", choices, self._store, timeout=20.0 * len(choices)
            )
            return found
        except (WorkerLost, TaskError) as lost:
            return [f"export ends badly: {lost}"] * len(choices)


def programs_of(catalogue: Catalogue, plans: Sequence[Plan]) -> tuple[list[tuple[Plan, Case]], int]:
    """The plans that can be turned into programs, each program once, and how many cannot."""
    wanted = dict.fromkeys((c.operator, c.dtype, c.sample) for plan in plans for c in plan.calls)
    known: dict[tuple[str, str, int], Fragment | str] = {}
    rest = iter(wanted)
    while batch := list(islice(rest, BATCH)):
        known.update(zip(batch, catalogue.fragments(batch)))
    cases: dict[str, tuple[Plan, Case]] = {}
    left_out = 0
    for plan in plans:
        parts = [known[call.operator, call.dtype, call.sample] for call in plan.calls]
        whole = [part for part in parts if isinstance(part, Fragment)]
        try:
            case = chained(plan, whole) if len(whole) == len(parts) else None
        except (ValueError, KeyError, ArithmeticError):
            case = None
        if case is None or case.program.fingerprint in cases:
            left_out += 1
        else:
            cases[case.program.fingerprint] = plan, case
    return list(cases.values()), left_out


def stream(
    catalogue: Sequence[Operator], first: int, count: int, seed: int, without: Sequence[str] = ()
) -> Iterator[Plan]:
    """Part of an endless stream of plans: the whole catalogue one by one, then chains.

    `without` leaves operators out of the chains. The same arguments give the same plans.
    """
    alone = list(islice(singles(catalogue), first, first + count))
    yield from alone
    left = [operator for operator in catalogue if operator.name not in without]
    if left and len(alone) < count:
        yield from drawn_plans(left, count - len(alone), seed + first)
