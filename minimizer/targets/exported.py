"""A program saved with ``torch.export.save``: graph, state and, mostly, the inputs it was exported with.

``torch.export.load`` may unpickle what is inside (tensor subclasses, script objects), so a file is as much
to be trusted as a script is.
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch._export.serde.schema import SCHEMA_VERSION
from torch.utils import _pytree as pytree

from minimizer.console import one_line
from minimizer.targets.model_file import ModelFile, Unusable, said_by, seed_everything

_SIZE = 4
"""Size of an invented dim, where its range allows it."""


def load(path: Path) -> ModelFile:
    """Open a saved program. Raises Unusable."""
    _check(path)
    return from_program(path, lambda: read(path))


def from_program(path: Path, program: Any, config: dict[str, Any] | None = None) -> ModelFile:
    """A target of a function that gives a fresh exported program each time. Raises what `program` raises."""
    first: torch.export.ExportedProgram = program()
    remark = ""
    if first.example_inputs is None:
        args, kwargs = invented_inputs(first)
        remark = "the program was saved without example inputs; normal random numbers stand in for them"
    else:
        args, kwargs = first.example_inputs
    return ModelFile(
        path=path,
        module=ModuleType("exported_program"),
        get_model=lambda: program().module(check_guards=False),
        args=tuple(args),
        kwargs=dict(kwargs or {}),
        config=dict(config or {}),
        exported=program,
        remark=remark,
    )


def read(path: Path) -> torch.export.ExportedProgram:
    """The program, newly read. Raises Unusable."""
    try:
        return torch.export.load(path)
    except Exception as problem:
        raise Unusable(
            f"{path.name} cannot be loaded by torch {torch.__version__}: {one_line(said_by(problem))}; "
            "save it again with this version of torch"
        ) from problem


def _check(path: Path) -> None:
    """Raise Unusable for a format or an operator that this torch does not know, before it tries."""
    with zipfile.ZipFile(path) as archive:
        names = [n for n in archive.namelist() if "/models/" in n and n.endswith(".json")]
        if len(names) > 1:
            models = ", ".join(Path(name).stem for name in names)
            raise Unusable(f"{path.name} holds several programs ({models}); save the one that fails alone")
        if not names:
            return
        try:
            text = archive.read(names[0]).decode()
            about = json.loads(text)
            schema, saved_by = about["schema_version"], about.get("torch_version", "another version")
            version = int(schema["major"]), int(schema["minor"])
        except (ValueError, KeyError, TypeError, zipfile.BadZipFile) as problem:
            raise Unusable(
                f"{path.name} is cut short or damaged ({type(problem).__name__} in {names[0]}); save it again"
            ) from None
    if version[0] != SCHEMA_VERSION[0] or version[1] > SCHEMA_VERSION[1]:
        raise Unusable(
            f"{path.name} was saved by torch {saved_by} in format {version[0]}.{version[1]}; torch "
            f"{torch.__version__} reads format {SCHEMA_VERSION[0]}.{SCHEMA_VERSION[1]}: use that version of "
            "torch, or export again with this one"
        )
    unknown = [name for name in re.findall(r'"torch\.ops\.([\w.]+)"', text) if not _registered(name)]
    if unknown:
        raise Unusable(
            f"{path.name} calls {unknown[0]}, which is not registered here; give a Python file that "
            "registers it and whose get_model() returns torch.export.load(FILE).module()"
        )


def _registered(name: str) -> bool:
    owner: Any = torch.ops
    try:
        for part in name.split("."):
            owner = getattr(owner, part)
    except (AttributeError, RuntimeError):
        return False
    return True


def invented_inputs(ep: torch.export.ExportedProgram) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Inputs made from what the placeholders say of themselves: normal floats, zeros for anything else."""
    seed_everything()
    users = set(ep.graph_signature.user_inputs)
    leaves = [
        _invented(n.meta.get("val"), ep) for n in ep.graph.nodes if n.op == "placeholder" and n.name in users
    ]
    assert ep.call_spec.in_spec is not None
    args, kwargs = pytree.tree_unflatten(leaves, ep.call_spec.in_spec)
    return args, kwargs


def _invented(value: Any, ep: torch.export.ExportedProgram) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    ranges = ep.range_constraints

    def size(dim: Any) -> int:
        if isinstance(dim, int):
            return dim
        expression = dim.node.expr
        chosen = {}
        for symbol in expression.free_symbols:
            bounds = ranges.get(symbol)
            low = max(2, int(bounds.lower)) if bounds is not None else 2
            fits = bounds is None or not bounds.upper.is_finite or bounds.upper >= _SIZE
            chosen[symbol] = max(low, _SIZE if fits else low)
        return int(expression.subs(chosen))

    shape = [size(dim) for dim in value.shape]
    if value.dtype.is_floating_point or value.dtype.is_complex:
        made = torch.randn(shape, dtype=torch.float32).to(value.dtype)
    else:
        made = torch.zeros(shape, dtype=value.dtype)
    order = sorted(range(len(shape)), key=lambda dim: -int(size(value.stride()[dim])))
    if order == list(range(len(shape))):
        return made
    back = [order.index(dim) for dim in range(len(shape))]
    return made.permute(order).contiguous().permute(back)
