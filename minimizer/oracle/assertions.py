"""What a program asserts of values at run time: the part of its contract that no guard on its inputs tells.

Export writes ``torch._check`` and ``torch._assert`` into the graph, and what it had to assume of sizes that
depend on data (that a number read from a tensor is not 1, not -1, equal to a size). Inputs that break such an
assertion are outside of what was promised, whatever eager makes of them: eager broadcasts a size of 1 that
the exported program has ruled out. A compiled program must refuse them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

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


def asserts(graph: torch.fx.GraphModule) -> bool:
    """Whether a graph asserts anything, itself or in what it calls by name."""
    modules = (m for m in graph.modules() if isinstance(m, torch.fx.GraphModule))
    return any(node.target in ASSERTIONS for m in modules for node in m.graph.nodes)


class _Noting(torch.fx.Interpreter):
    """Knows which node it is at."""

    node: torch.fx.Node | None = None

    def run_node(self, n: torch.fx.Node) -> Any:
        self.node = n
        return super().run_node(n)


def broken_assertion(graph: torch.fx.GraphModule, calls: Sequence[Sequence[Any]]) -> str:
    """The assertion that one of some calls breaks, in its own words; empty when none does.

    The calls' flat inputs and the graph's state are written to, as a call does.
    """
    for flat in calls:
        execution = _Noting(graph)
        try:
            with torch.no_grad():
                execution.run(*flat, enable_io_processing=False)
        except Exception as problem:  # noqa: BLE001 (whatever an operator says against values)
            return str(problem) if execution.node is not None and execution.node.target in ASSERTIONS else ""
    return ""
