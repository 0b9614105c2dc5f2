"""The same case through other parts of the compiler: other backends, no decompositions, bisected.

Which of them still fails tells a maintainer which part to look at. Each function is a task of a worker.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import torch
from torch._functorch import config as functorch_config
from torch._inductor import config as inductor_config
from torch._inductor.compiler_bisector import CompilerBisector
from torch._inductor.decomposition import decompositions

from minimizer.build import Store, make_tensor
from minimizer.case import Case
from minimizer.oracle import tasks
from minimizer.oracle.outcome import flat_outputs
from minimizer.oracle.session import Session
from minimizer.oracle.subjects import ProgramSubject
from minimizer.oracle.verdict import RAISED, Verdict
from minimizer.sandbox.worker import note


def judge_backend(case: Case, store: str, backend: str) -> Verdict:
    """Judge a case compiled with ``torch.compile(backend=..., dynamic=True)`` on its own inputs."""
    with _uncached():
        session, calls = _open(case, store, backend)
        return session.judge(*calls, manner=case.settings.manner)


def judge_without_decompositions(case: Case, store: str, package: str, level: str) -> Verdict:
    """Judge a case while Inductor's decompositions of the program's own operators are taken away."""
    targets = {node.target for node in case.program.operators}
    left = {op: how for op, how in decompositions.items() if str(op) not in targets}
    if len(left) == len(decompositions):
        return Verdict("invalid", reason="no operator of the program is decomposed")
    with mock.patch.dict(decompositions, left, clear=True):
        return tasks.judge_case(case, store, package, level)


def bisect(case: Case, store: str, kind: str) -> tuple[str, str, int, str] | None:
    """Let PyTorch's `CompilerBisector` find the backend, subsystem and pass that make a case fail.

    A run counts as failing when its failure is of that `kind`, or any error where that is one. Returns
    (backend, subsystem, number, what it is); None when the bisector finds nothing to blame.
    """

    def good() -> bool:
        torch._dynamo.reset()
        session, calls = _open(case, store, "inductor")
        failure = session.judge(*calls, manner=case.settings.manner).failure
        return failure is None or (failure.kind != kind and not (kind in RAISED and failure.kind in RAISED))

    with _uncached(), contextlib.redirect_stdout(io.StringIO()):
        result = CompilerBisector.do_bisect(good)
    if result is None:
        return None
    found = (result.subsystem or "", result.bisect_number or 0, result.debug_info or "")
    return (result.backend, *found)


@contextlib.contextmanager
def _uncached() -> Iterator[None]:
    with (
        inductor_config.patch(fx_graph_cache=False, fallback_random=True),
        functorch_config.patch(enable_autograd_cache=False),
    ):
        yield


def _open(case: Case, store: str, backend: str) -> tuple[Session, list[list[torch.Tensor]]]:
    """A session whose compiled layer is torch.compile, and the inputs of the case's calls."""
    tasks.warm_threads()
    tasks.register_operators(case.settings.modules)
    subject = ProgramSubject(case.program, Store(store))
    session = Session(subject, dict(case.settings.config))
    calls = [[make_tensor(value, Store(store)) for value in values] for values in case.sequence]
    if case.program.may_keep_state:
        session.notice_state(calls[0])
    session.answer_with(lambda: _compiled(subject, dict(case.settings.config), backend))
    note("lower")
    return session, calls


def _compiled(
    subject: ProgramSubject, config: dict[str, Any], backend: str
) -> Callable[[Sequence[Any]], Sequence[Any]]:
    options = {"options": config} if backend == "inductor" and config else {}
    compiled = torch.compile(subject.module(), backend=backend, dynamic=True, **options)

    def call(flat: Sequence[Any]) -> Sequence[Any]:
        args, kwargs = subject.nest(flat)
        return flat_outputs(compiled(*args, **kwargs))

    return call
