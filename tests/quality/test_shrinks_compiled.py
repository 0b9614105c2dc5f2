"""Rows of the table with the real compiler, told to compile ReLU wrongly: one for each cheap judge."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reduce"))
from builder import Builder
from shrinking import shown

from minimizer.case import Case, Settings
from minimizer.narrow import Means, narrow
from minimizer.oracle.case_bench import CaseBench
from minimizer.oracle.requests import TASKS
from minimizer.program import Symbol
from minimizer.reduce.dims import Observed
from strategies.values import Fill

pytestmark = pytest.mark.compiles

BUG = "cpp.inject_relu_bug_TESTING_ONLY"


def network(kind: str) -> Case:
    """Nine calls on two inputs with a dynamic batch; the fourth is a ReLU."""
    b = Builder(sizes={"batch": 9}, symbols=(Symbol("batch", 2, 64, 4),))
    x, y = b.input("x", ("batch", 6)), b.input("y", (6,))
    h = b.chain(b.call("aten.mul.Tensor", x, y), "tanh", "cos", "relu", "sigmoid", "sin")
    total = b.call("aten.sum.dim_IntList", h, [1], True, shape=("batch", 1))
    case = b.case((b.call("aten.div.Tensor", h, total), b.call("aten.add.Tensor", x, 1.5)))
    values = tuple(replace(value, data=Fill("normal")) for value in case.values)
    return replace(case, values=values, settings=Settings(config=((BUG, kind),)))


@pytest.mark.parametrize(("kind", "level"), [("compile_error", "kernel"), ("accuracy", "jit")])
def test_a_relu_that_is_compiled_wrongly(sandbox, tmp_path, kind, level):
    case, bench = network(kind), CaseBench(sandbox, tmp_path)
    failure = bench.judge(case, level).failure
    assert failure is not None
    worker = sandbox.worker()
    answer = worker.call(TASKS + "observe", case, str(tmp_path), "seen_", timeout=60.0)
    worker.close()
    observed = {o.name: Observed(case.program.meta_of(o.name), o.value) for o in answer.seen}
    found = narrow(bench, case, failure, observed, Means(width=2))
    bench.close()
    assert bench.errors == []
    assert found is not None
    assert (found.level, found.certificate.minimal) == (level, True)
    expected = """
def forward(self, x):
    return torch.ops.aten.relu.default(x)
x: float32[batch=2, 1] zeros
cpp.inject_relu_bug_TESTING_ONLY = """
    assert shown(found.case) == expected.strip() + f" {kind}"
    assert bench.judged <= 15
