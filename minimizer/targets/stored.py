"""A stored case: its program as the model, its inputs as the ones that were seen failing."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from minimizer import options
from minimizer.build import Built, Store, make_tensor
from minimizer.stored import operator_files, read_case
from minimizer.targets.model_file import ModelFile, Unusable, import_file

FAILING_INPUTS = "failing_inputs"
"""The name under which the inputs of a stored case are given, as if it were a function of a model file."""


def load(path: Path) -> ModelFile:
    """Open a stored case: registers its custom operators and builds its model. Raises Unusable."""
    try:
        found = read_case(path)
        files = operator_files(found.case)
    except options.Unusable as problem:
        raise Unusable(str(problem)) from None
    case = found.case
    if not case.program.operators:
        raise Unusable(
            f"{path} holds inputs only, since the graph of its model cannot be expressed; give the model file"
        )
    for file in files:
        import_file(Path(file))
    tensors = Store(found.store)
    try:
        built = Built(case.program, tensors)
        args, kwargs = built.nest(built.examples())
        failing = built.nest([make_tensor(value, tensors) for value in case.values])
    except (OSError, ValueError, AttributeError, RuntimeError) as problem:
        raise Unusable(f"{path} cannot be built: {type(problem).__name__}: {problem}") from problem
    module = ModuleType("stored_case")

    def failing_inputs() -> Any:
        return failing

    module.failing_inputs = failing_inputs  # type: ignore[attr-defined]
    return ModelFile(
        path=path,
        module=module,
        get_model=built.module,
        args=args,
        kwargs=kwargs,
        dynamic_shapes=built.dynamic_shapes,
        config=dict(case.settings.config),
        calls=len(case.sequence),
        files=tuple(Path(file) for file in files),
    )
