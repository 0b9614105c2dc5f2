"""Worker tasks for many small programs compiled as one: each is judged by a session of its own.

A member's session runs eager, the guards and the envelope on the member alone; only its compiled call is a
part of the common one. So wrong outputs are blamed on their program without another compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from minimizer.build import Store, make_tensor
from minimizer.case import Case, Value
from minimizer.nightly.joining import ALONE, Pool
from minimizer.oracle import stages
from minimizer.oracle.outcome import clone_inputs
from minimizer.oracle.seeds import RNG_SEED
from minimizer.oracle.session import Session
from minimizer.oracle.subjects import ProgramSubject
from minimizer.oracle.tasks import warm_threads
from minimizer.oracle.verdict import Failure, Verdict
from minimizer.sandbox.worker import note


class _Member:
    """One program of the pool: its session, its example inputs, and the answer that waits for it."""

    def __init__(self, case: Case, store: Store) -> None:
        self.session = Session(ProgramSubject(case.program, store), {})
        self.examples = [make_tensor(value, store) for value in case.values]
        self.answer: Sequence[Any] | None = None


class _Pool:
    def __init__(self, pool: Pool, cases: Sequence[Case], store: Store) -> None:
        self.layout = pool
        self.store = store
        self.members = [_Member(case, store) for case in cases]
        self.whole = Session(ProgramSubject(pool.program, store), {})
        self.compiled: Callable[..., Any] | None = None
        for k, member in enumerate(self.members):
            member.session.use(self._call_of(k))

    def _call_of(self, k: int) -> Callable[[Sequence[Any]], Sequence[Any]]:
        member = self.members[k]

        def call(flat: Sequence[Any]) -> Sequence[Any]:
            waiting, member.answer = member.answer, None
            if waiting is not None:
                return waiting
            note(f"{ALONE}{k}")
            return self.run({k: flat})[k]

        return call

    def run(self, given: Mapping[int, Sequence[Any]]) -> list[Sequence[Any]]:
        """One compiled call: the members in `given` with those inputs, the others with their examples."""
        assert self.compiled is not None
        flat: list[Any] = []
        for k, member in enumerate(self.members):
            flat += clone_inputs(given.get(k, member.examples))
        torch.manual_seed(RNG_SEED)
        with torch.no_grad():
            out = list(self.compiled(*flat))
        return [out[share] for share in self.layout.outputs]


_pool: _Pool | None = None


def open_pool(pool: Pool, cases: Sequence[Case], store: str) -> list[str]:
    """Build a pool; for each member why it cannot be judged (empty: it can)."""
    global _pool
    warm_threads()
    note("eager")
    _pool = _Pool(pool, cases, Store(store))
    return [member.session.eager_problem(member.examples) for member in _pool.members]


def export_alone() -> list[str]:
    """For each member of the open pool why it cannot be exported (empty: it can)."""
    assert _pool is not None
    said = []
    for member in _pool.members:
        try:
            member.session.ep  # noqa: B018 (exports)
            said.append("")
        except stages.StageError as problem:
            said.append(problem.failure.message.splitlines()[0][:200] or "cannot be exported")
    return said


def lower_alone() -> list[Failure | None]:
    """For each member of the open pool how code generation fails on it alone (None: it does not)."""
    assert _pool is not None
    found: list[Failure | None] = []
    for member in _pool.members:
        try:
            stages.compile_package(member.session.spend_ep(), {}, "unused.pt2", "lower")
            found.append(None)
        except stages.StageError as problem:
            found.append(problem.failure)
    return found


def compile_pool(package: str) -> Failure | None:
    """Export and compile the open pool; the failure of kind ``export_error`` and so on when it cannot be."""
    assert _pool is not None
    try:
        _pool.whole.compile("full", package)
    except stages.StageError as problem:
        return problem.failure
    return None


def load_pool(package: str) -> Failure | None:
    """Load the package of the open pool."""
    assert _pool is not None
    try:
        _pool.compiled = stages.load_package(package)
    except stages.StageError as problem:
        return problem.failure
    return None


def judge_round(given: Sequence[Sequence[Value] | None]) -> list[Verdict | None]:
    """Judge one set of inputs for each member, in one compiled call; None where none was given.

    Inputs that eager refuses are tried in a call of their own afterwards: the compiled program must refuse
    them too. An exception of the compiled program is raised; it says nothing about which member made it.
    """
    assert _pool is not None
    note("eager")
    flats: dict[int, list[Any]] = {}
    verdicts: list[Verdict | None] = [None] * len(given)
    for k, values in enumerate(given):
        if values is not None:
            try:
                flats[k] = [make_tensor(value, _pool.store) for value in values]
            except (RuntimeError, ValueError) as problem:
                verdicts[k] = Verdict("invalid", reason=f"inputs cannot be made: {problem}"[:300])
    legal = {k: flat for k, flat in flats.items() if not _pool.members[k].session.eager_problem(flat)}
    note("run")
    answers = _pool.run(legal)
    note("compare")
    for k, flat in flats.items():
        member = _pool.members[k]
        member.answer = answers[k] if k in legal else None
        verdicts[k] = _judged(member.session, flat)
        member.answer = None
    return verdicts


def _judged(session: Session, flat: Sequence[Any]) -> Verdict:
    """The verdict on a member; what cannot be compared (it needs more memory than there is) means nothing."""
    try:
        return session.judge(flat)
    except (RuntimeError, MemoryError) as problem:
        return Verdict("invalid", reason=f"cannot be judged: {problem}"[:300])


def judge_alone(k: int, values: Sequence[Value]) -> Verdict:
    """Judge inputs of one member in a call of its own."""
    assert _pool is not None
    flat = [make_tensor(value, _pool.store) for value in values]
    return _judged(_pool.members[k].session, flat)
