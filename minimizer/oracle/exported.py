"""The exported program, run in eager: what was promised, and what compiled code is measured by besides eager.

Its guards refuse sizes and layouts. Its assertions refuse values: export writes ``torch._check`` and
``torch._assert`` into the graph, and what it had to assume of sizes that depend on data (that a number read
from a tensor is not 1, not -1, equal to a size). Eager alone may accept what breaks them: it broadcasts a
size of 1 that the exported program has ruled out. And export bakes in what Python does on the way (counters,
checks that are left out while exporting): there eager and the exported program differ, and no compiler is at
fault.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from minimizer.oracle import stages
from minimizer.oracle.outcome import Outcome, clone_inputs

ASSERTIONS = frozenset(
    {
        torch.ops.aten._assert_async.default,
        torch.ops.aten._assert_async.msg,
        torch.ops.aten._assert_scalar.default,
        torch.ops.aten._assert_tensor_metadata.default,
        torch.ops.aten._functional_assert_async.msg,
        torch.ops.aten.sym_constrain_range.default,
        torch.ops.aten.sym_constrain_range_for_size.default,
    }
)
"""Calls that return nothing and refuse values."""

Flat = Sequence[Any]
"""The flat inputs or outputs of one call."""

Run = Callable[[torch.nn.Module, Flat, Outcome], Outcome]
"""Calls a module on flat inputs, after a call with another outcome."""


class Exported:
    """An exported program; `run` calls a module as eager is called."""

    def __init__(self, ep: torch.export.ExportedProgram, run: Run) -> None:
        self._ep = ep
        self._run = run
        self._guards: Callable[..., Any] | None = None

    def guards_reject(self, flat: Flat) -> str:
        """Why its guards refuse these inputs; empty when they accept."""
        if self._guards is None:
            self._guards = getattr(self._ep.module(), "_guards_fn", None) or (lambda *flat: None)
        try:
            self._guards(*clone_inputs(flat))
        except AssertionError as problem:
            return str(problem)
        except Exception as problem:  # noqa: BLE001 (a guard that cannot be evaluated refuses as well)
            return f"{type(problem).__name__}: {problem}"
        return ""

    def _graph(self) -> torch.fx.GraphModule:
        """A graph with state of its own, without guards."""
        graph = self._ep.module(check_guards=False)
        assert isinstance(graph, torch.fx.GraphModule)
        stages.own_state(graph)
        return graph

    def outcome(self, calls: Sequence[Flat]) -> Outcome:
        """What it does at the last of some calls, or at the first that it refuses."""
        graph, outcome = self._graph(), Outcome([])
        for flat in calls:
            outcome = self._run(graph, clone_inputs(flat), outcome)
            if outcome.problem is not None:
                break
        return outcome

    def broken_assertion(self, calls: Sequence[Flat]) -> str:
        """The assertion that one of some calls breaks, in its own words; empty when none does."""
        graph = self._graph()
        for flat in calls:
            execution = _Noting(graph)
            try:
                with torch.no_grad():
                    execution.run(*clone_inputs(flat), enable_io_processing=False)
            except Exception as problem:  # noqa: BLE001 (whatever an operator says against values)
                asserts = execution.node is not None and execution.node.target in ASSERTIONS
                return str(problem) if asserts else ""
        return ""


class _Noting(torch.fx.Interpreter):
    """Knows which node it is at."""

    node: torch.fx.Node | None = None

    def run_node(self, n: torch.fx.Node) -> Any:
        self.node = n
        return super().run_node(n)
