"""A generated program as a model file: what a person could have brought, and what the pipeline takes.

So a finding among generated programs goes through the very same run as any model, and its folder holds a
target that can be run, changed and searched again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from minimizer.case import Case, Value
from minimizer.oracle.requests import TASKS
from minimizer.program import Program
from minimizer.sandbox import Sandbox
from minimizer.source import dynamic_shapes_code, module_source

FAILING = "failing_inputs"
"""The function of such a file that gives the inputs on which the program failed."""

_TIMEOUT = 120.0


def program_text(program: Program, title: str) -> str:
    """The model file of a program; its tensors are read from a ``.pt`` file of the same name beside it."""
    state = {s.name: f'SAVED["state {s.name}"]' for s in program.state}
    dims, spec = dynamic_shapes_code(program)
    names = [i.name for i in program.inputs]
    parts = [
        f'"""{title}"""\n',
        "from pathlib import Path\n",
        "import torch\nfrom torch.export import Dim\n",
        'SAVED = torch.load(Path(__file__).with_suffix(".pt"), weights_only=True)\n\n',
        module_source(program, state) + "\n",
        "def get_model():\n    return Model().eval()\n\n",
        _giver("get_example_inputs", "example", names),
        _giver(FAILING, "failing", names),
    ]
    if spec:
        body = "".join(f"    {line}\n" for line in [*dims, f"return {spec}"])
        parts.append(f"def get_dynamic_shapes():\n{body}")
    return "\n".join(parts)


def _giver(function: str, word: str, names: Sequence[str]) -> str:
    tensors = "".join(f'SAVED["{word} {name}"], ' for name in names)
    return f"def {function}():\n    return ({tensors.rstrip()})\n\n"


def write_program(
    sandbox: Sandbox, store: Path, path: Path, case: Case, examples: Sequence[Value], title: str
) -> None:
    """Write the model file of a failing case. Raises TaskError and WorkerLost: its tensors cannot be made."""
    worker = sandbox.worker()
    folder = str(store.resolve())
    try:
        states = case.program.state
        stored = worker.call(TASKS + "describe_stored", [s.value for s in states], folder, timeout=_TIMEOUT)
        named = [(f"state {s.name}", value) for s, value in zip(states, stored)]
        for word, values in (("example", examples), ("failing", case.values)):
            named += [(f"{word} {i.name}", v) for i, v in zip(case.program.inputs, values)]
        path.parent.mkdir(parents=True, exist_ok=True)
        file = str(path.with_suffix(".pt").resolve())
        worker.call(TASKS + "save_tensors", named, folder, file, timeout=_TIMEOUT)
    finally:
        worker.close()
    path.write_text(program_text(case.program, title), encoding="utf-8")
