"""A stored case: its program as the model, its inputs as the ones that were seen failing."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

from minimizer.build import Built, Store, make_tensor
from minimizer.case import Case, case_from_json
from minimizer.targets.model_file import ModelFile, Unusable, import_file

FAILING_INPUTS = "failing_inputs"
"""The name under which the inputs of a stored case are given, as if it were a function of a model file."""


def read(path: Path) -> tuple[Case, Path]:
    """The case and the folder of its tensors. Executes nothing. Raises Unusable."""
    try:
        case = case_from_json(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError) as problem:
        raise Unusable(f"{path} is not a stored case: {problem}") from None
    store = next((p / "tensors" for p in path.parents if (p / "tensors").is_dir()), path.parent)
    return case, store


def load(path: Path) -> ModelFile:
    """Open a stored case: registers its custom operators and builds its model. Raises Unusable."""
    case, store = read(path)
    if not case.program.operators:
        raise Unusable(
            f"{path} holds inputs only, since the graph of its model cannot be expressed; give the model file"
        )
    for file in case.settings.modules:
        if not Path(file).exists():
            raise Unusable(f"the case needs {file}, which registers its custom operators; bring that file")
        import_file(Path(file))
    tensors = Store(store)
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
        calls=case.settings.calls,
        files=tuple(Path(file) for file in case.settings.modules),
    )
