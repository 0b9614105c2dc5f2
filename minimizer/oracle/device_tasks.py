"""Tasks for workers: one program compiled, loaded and fed on devices that need not agree.

Each answers with what happened (``right``, ``refused``, ``wrong``) and what was said; a death is the
caller's to see.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from torch.utils import _pytree as pytree

from minimizer.oracle import stages, tasks
from minimizer.oracle.compare import compare
from minimizer.oracle.requests import TargetRequest
from minimizer.sandbox.worker import note, printed, printed_since
from minimizer.targets import model_file

Answer = tuple[str, str]


def devices() -> list[str]:
    """The devices of this machine, as torch names them; ``meta`` is one everywhere."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return ["cpu", "meta", *(f"cuda:{k}" for k in range(count))]


def _moved(values: Any, device: str) -> Any:
    return pytree.tree_map_only(torch.Tensor, lambda t: t.to(device), values)


def compile_on(request: TargetRequest, device: str, package: str) -> Answer:
    """Export and compile the target with its state and example inputs on a device."""
    tasks.reopen_target(request, False)
    session, subject = tasks.session_and_subject()
    target = subject.target
    if target.exported is not None:
        return "refused", "the target is exported already; bring its model to compile it elsewhere"
    target.args, target.kwargs = _moved((target.args, target.kwargs), device)
    try:
        program = model_file.export(target, subject.module().to(device))
        stages.compile_package(program, session.config, package)
    except model_file.Unusable as problem:
        return "refused", str(problem)
    except stages.StageError as problem:
        return "refused", problem.failure.message
    return "right", ""


def run_on(request: TargetRequest, package: str, index: int, device: str) -> Answer:
    """Load a package with a device index (-1: none), and call it on the example inputs on a device."""
    tasks.reopen_target(request, False)
    _, subject = tasks.session_and_subject()
    args, kwargs = subject.nest(subject.flat)
    torch.manual_seed(0)
    with torch.no_grad():
        expected = pytree.tree_leaves(subject.module()(*args, **kwargs))
    note("load")
    mark = printed()
    try:
        loaded = torch._inductor.aoti_load_package(package, device_index=index)
        args, kwargs = _moved((args, kwargs), device)
        note("run")
        torch.manual_seed(0)
        with torch.no_grad():
            actual = pytree.tree_leaves(loaded(*args, **kwargs))
    except Exception as problem:  # noqa: BLE001 (to refuse is what it should do)
        reasons = re.findall(r"^(?:Error|Exception): (.*)", printed_since(mark), re.MULTILINE)
        said = [line for line in reasons if "API call failed" not in line]
        return "refused", said[0] if said else str(problem).splitlines()[0]
    placed = {t.device.type for t in actual if isinstance(t, torch.Tensor)}
    if "meta" in placed:
        return "wrong", "the results are on meta and hold nothing"
    mismatches, _ = compare(_moved(actual, "cpu"), expected)
    return ("wrong", mismatches[0].figures) if mismatches else ("right", "")
