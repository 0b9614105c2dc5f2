"""The other compile path: ``torch.compile`` with Inductor, on the same module and inputs.

It compiles when it is called, and again for inputs that its guards refuse, so a call may end in a compiler's
error. What the compiler itself raised is kept apart from what the compiled code raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch._dynamo
from torch._inductor import compile_fx as compile_fx_module
from torch._inductor import config as inductor_config

from minimizer.oracle.outcome import flat_outputs
from minimizer.oracle.stages import StageError, compile_problem
from minimizer.sandbox.worker import note

RECOMPILES = 256
"""Graphs kept for one function. Past it Dynamo would run eager and say nothing, and everything would pass."""

Nest = Callable[[Sequence[Any]], tuple[tuple[Any, ...], dict[str, Any]]]


def compile_lazily(
    module: torch.nn.Module, nest: Nest, config: Mapping[str, Any], *, dynamic: bool
) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """A call on flat inputs that gives flat outputs, compiled when first made.

    `dynamic`: no size is taken as fixed but 0 and 1; otherwise Dynamo decides. The call raises StageError of
    kind ``compile_error`` or ``cxx_error`` where Inductor or Dynamo does.
    """
    torch._dynamo.reset()
    raised: list[Exception] = []

    def backend(gm: torch.fx.GraphModule, examples: Sequence[Any]) -> Any:
        note("lower")
        try:
            return compile_fx_module.compile_fx(gm, examples, config_patches=dict(config))
        except Exception as problem:
            raised.append(problem)
            raise
        finally:
            note("run")

    compiled = torch.compile(module, backend=backend, dynamic=True if dynamic else None)

    def call(flat: Sequence[Any]) -> Sequence[Any]:
        args, kwargs = nest(flat)
        raised.clear()
        limits = {"recompile_limit": RECOMPILES, "accumulated_recompile_limit": 8 * RECOMPILES}
        try:
            with torch._dynamo.config.patch(**limits), inductor_config.patch(fx_graph_cache=False):
                out = compiled(*args, **kwargs)
        except Exception as problem:
            if raised or isinstance(problem, torch._dynamo.exc.TorchDynamoException):
                cause = raised[0] if raised else problem
                raise StageError(compile_problem(cause)) from problem
            raise
        return flat_outputs(out)

    return call
