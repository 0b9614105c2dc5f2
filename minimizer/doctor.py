"""Does everything that the tool needs work here? Looked up, and then proven on a bug that is there for sure.

Inductor can be told to compile ReLU wrongly. A program with one ReLU among other calls must then be found
wrong, be reduced to the ReLU, and pass again without the bug: if that holds, a result on this machine means
something.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from minimizer import equipment
from minimizer.case import Case, Settings, Value
from minimizer.equipment import Finding
from minimizer.narrow import narrow
from minimizer.oracle.case_bench import CaseBench
from minimizer.oracle.requests import TASKS
from minimizer.program import Input, Node, Program, Ref, Symbol, TensorMeta
from minimizer.reduce.dims import Observed
from minimizer.sandbox import Sandbox, TaskError, WorkerLost
from strategies.values import Fill

BUG = ("cpp.inject_relu_bug_TESTING_ONLY", "accuracy")
"""Inductor's own injected bug."""


def examine(sandbox: Sandbox) -> Iterator[Finding]:
    """Look at everything, cheapest first; the proof only when what it needs is there."""
    well = True
    for finding in equipment.look_around():
        well = well and finding.good is not False
        yield finding
    try:
        versions, cuda = _torch(sandbox)
    except (TaskError, WorkerLost, RuntimeError) as problem:
        yield Finding("torch", str(problem).splitlines()[0], False)
        return
    yield equipment.torch_version(versions)
    yield equipment.gpu(cuda)
    if well:
        yield from _prove(sandbox)


def _torch(sandbox: Sandbox) -> tuple[dict[str, str], bool]:
    worker = sandbox.worker()
    try:
        known = dict(worker.call(TASKS + "versions", timeout=60.0))
        return known, bool(worker.call(TASKS + "cuda_is_available", timeout=60.0))
    finally:
        worker.close()


def patient(bug: tuple[tuple[str, str], ...]) -> Case:
    """A program of three calls, one of them a ReLU, with a dynamic size; `bug` are its Inductor options."""
    meta = TensorMeta("float32", ("n",), (1,))
    calls = tuple(
        Node(name, f"aten.{operator}.default", (Ref(source),), meta=meta)
        for name, operator, source in (("a", "cos", "x"), ("b", "relu", "a"), ("c", "sin", "b"))
    )
    program = Program((Input("x", meta),), calls, Ref("c"), symbols=(Symbol("n", 2, 64, 8),))
    return Case(program, (Value("float32", (8,), Fill("normal")),), Settings(config=bug))


def _prove(sandbox: Sandbox) -> Iterator[Finding]:
    with tempfile.TemporaryDirectory(prefix="aoti-minimize-doctor-") as folder:
        bench = CaseBench(sandbox, Path(folder))
        healthy = bench.judge(patient(()), "full", fresh=True)
        yield Finding("healthy twin", healthy.status, healthy.status == "pass")
        sick = patient((BUG,))
        failure = bench.judge(sick, "full", fresh=True).failure
        yield Finding("injected bug", failure.message if failure else "not noticed", failure is not None)
        if failure is None:
            return
        worker = sandbox.worker()
        try:
            seen = worker.call(TASKS + "observe", sick, folder, "seen_", timeout=60.0)
        finally:
            worker.close()
        observed = {o.name: Observed(sick.program.meta_of(o.name), o.value) for o in seen.seen}
        narrowed = narrow(bench, sick, failure, observed)
        bench.close()
    left = [] if narrowed is None else [n.target for n in narrowed.case.program.operators]
    yield Finding("reduction", f"3 calls → {', '.join(left) or 'none'}", left == ["aten.relu.default"])
    if narrowed is not None:
        cured = replace(narrowed.case, settings=replace(narrowed.case.settings, config=()))
        again = bench.judge(cured, "full", fresh=True)
        yield Finding("without the bug", again.status, again.status == "pass")
