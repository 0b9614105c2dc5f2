"""A Python file that gives a model and example inputs.

The file belongs to a stranger: it may exit, print, change directory or close stdout. It is imported in a
worker only, with every random generator seeded first, so that all workers see the same model.
"""

from __future__ import annotations

import importlib.util
import inspect
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.nn.parameter import UninitializedTensorMixin
from torch.utils import _pytree as pytree

from minimizer.console import one_line
from minimizer.sandbox.surroundings import put_back
from minimizer.sandbox.worker import words_of
from minimizer.targets import options

MODULE = "aoti_minimize_target"


class Unusable(Exception):
    """The target cannot be judged; the message says in one line what to do."""


@dataclass
class ModelFile:
    """What a target gives, whatever front door it came through.

    `exported` gives a fresh exported program where the target is one already; `calls` is how often a call
    must be repeated to fail, as far as is known; `files` are the target's own Python files where they are
    known; `remark` is said to the person.
    """

    path: Path
    module: ModuleType
    get_model: Callable[[], torch.nn.Module]
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    dynamic_shapes: Any = None
    config: dict[str, Any] = field(default_factory=dict)
    exported: Callable[[], torch.export.ExportedProgram] | None = None
    calls: int = 1
    files: tuple[Path, ...] | None = None
    remark: str = ""


def import_file(path: Path) -> ModuleType:
    """Import a file with its folder on the path, as ``python FILE`` would. Raises Unusable.

    Afterwards the folder comes last on the path: what compilers import later is not to be found in it.
    """
    folder = str(path.parent)
    sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(MODULE, path)
    if spec is None or spec.loader is None:
        raise Unusable(f"{path.name} is not a Python file; give a .py file with get_model() in it")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    seed_everything()
    try:
        with put_back():
            spec.loader.exec_module(module)
    except SystemExit as problem:
        raise Unusable(f"{path.name} calls sys.exit({_code(problem)}) when imported; remove that") from None
    except SyntaxError as problem:
        where = f"{path.name}:{problem.lineno}" if problem.lineno else path.name
        raise Unusable(f"{where}: {problem.msg}; fix the syntax error") from None
    except ModuleNotFoundError as problem:
        raise Unusable(
            f"{path.name} needs the module {problem.name!r}; install it or fix the import"
        ) from None
    except BaseException as problem:
        raise Unusable(f"{path.name} cannot be imported: {said_by(problem)}") from problem
    finally:
        sys.path[:] = [*(entry for entry in sys.path if entry != folder), folder]
        if torch.get_default_device().type == "meta":
            torch.set_default_device(None)  # nothing made from now on would have any data
    return module


def seed_everything() -> None:
    """Seed every generator that a model may draw its weights from."""
    random.seed(0)
    torch.manual_seed(0)


def said_by(problem: BaseException) -> str:
    """An exception's type and the first line of what it says, if it can say anything."""
    lines = [line for line in words_of(problem).splitlines() if line.strip()]
    name = type(problem).__name__
    return f"{name}: {one_line(lines[0], 300)}" if lines else name


def _code(problem: SystemExit) -> str:
    return one_line(words_of(problem), 100)


def load(path: Path, *, model: str = "", inputs: str = "") -> ModelFile:
    """Read a model file. `model` and `inputs` name other functions or attributes than the usual ones.

    Raises Unusable with a one-line reason.
    """
    module = import_file(path)
    get_model = _giver(module, path, "get_model", "model", model, "a torch.nn.Module", "--model NAME")
    get_inputs = _giver(
        module, path, "get_example_inputs", "example_inputs", inputs, "a tuple of inputs", "--inputs NAME"
    )
    seed_everything()
    found = _call(get_model, path)
    if not isinstance(found, torch.nn.Module):
        raise Unusable(
            f"{path.name}: the model is a {type(found).__name__}, not a torch.nn.Module; "
            "return the module from get_model()"
        )
    args = _call(get_inputs, path)
    if isinstance(args, torch.Tensor):
        args = (args,)
    if isinstance(args, list):
        args = tuple(args)
    if not isinstance(args, tuple):
        raise Unusable(
            f"{path.name}: example inputs are a {type(args).__name__}; return a tuple of arguments"
        )
    kwargs = _optional(module, path, "get_example_kwargs", "example_kwargs") or {}
    dynamic = _optional(module, path, "get_dynamic_shapes", "dynamic_shapes")
    config = _optional(module, path, "get_inductor_configs", "inductor_configs") or {}
    for name, value in (("example kwargs", kwargs), ("inductor configs", config)):
        if not isinstance(value, dict):
            raise Unusable(f"{path.name}: {name} are a {type(value).__name__}; return a dict")
    wrong = options.problem_of(config)
    if wrong:
        raise Unusable(f"{path.name}: {wrong}")

    def fresh() -> torch.nn.Module:
        seed_everything()
        made: torch.nn.Module = _call(get_model, path)
        return made

    return ModelFile(path, module, fresh, args, dict(kwargs), dynamic, dict(config))


def _giver(
    module: ModuleType, path: Path, function: str, attribute: str, named: str, what: str, option: str
) -> Callable[[], Any]:
    for name in [named] if named else [function, attribute]:
        found = getattr(module, name, None)
        if callable(found) and not isinstance(found, torch.nn.Module):
            return found
        if found is not None:
            return lambda: found
    if named:
        raise Unusable(
            f"{path.name} has no {named!r}; {option} must name a function or attribute of the file"
        )
    raise Unusable(f"{path.name} has no {function}(); define it to return {what}, or use {option}")


def _optional(module: ModuleType, path: Path, function: str, attribute: str) -> Any:
    found = getattr(module, function, None)
    if callable(found):
        return _call(found, path)
    return getattr(module, attribute, None)


def called(function: Callable[[], Any], what: str) -> Any:
    """The answer of a function of the file. Raises Unusable, in the name of `what`, when there is none."""
    try:
        with put_back():
            return function()
    except SystemExit as problem:
        raise Unusable(f"{what} calls sys.exit({_code(problem)}); remove that") from None
    except BaseException as problem:
        raise Unusable(f"{what} raises {said_by(problem)}") from problem


def _call(function: Callable[[], Any], path: Path) -> Any:
    return called(function, f"{path.name}: {getattr(function, '__name__', 'the model')}()")


def check_tensors(target: ModelFile, model: torch.nn.Module) -> None:
    """Raise Unusable when an example input or a parameter holds no data that could be judged."""
    flat = pytree.tree_leaves((target.args, target.kwargs))
    named = [(f"example input {k}", leaf) for k, leaf in enumerate(flat)]
    named += [(f"parameter {name!r}", p) for name, p in model.named_parameters()]
    named += [(f"buffer {name!r}", b) for name, b in model.named_buffers()]
    for what, tensor in named:
        if isinstance(tensor, UninitializedTensorMixin) or not isinstance(tensor, torch.Tensor):
            continue
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            kind = type(tensor).__name__
            raise Unusable(f"{target.path.name}: {what} is a {kind}; only plain tensors can be judged")
        if tensor.device.type == "meta":
            raise Unusable(f"{target.path.name}: {what} is a meta tensor and has no data; give it real data")
        if tensor.layout != torch.strided and what.startswith("example"):
            layout = str(tensor.layout).removeprefix("torch.")
            raise Unusable(f"{target.path.name}: {what} is {layout}; only strided tensors can be judged")


def initialise(target: ModelFile, model: torch.nn.Module) -> None:
    """Let a model that has lazy modules see its example inputs once. Raises Unusable as `run_eager` does."""
    if any(isinstance(p, UninitializedTensorMixin) for p in [*model.parameters(), *model.buffers()]):
        seed_everything()
        run_eager(target, model)


def run_eager(target: ModelFile, model: torch.nn.Module) -> Any:
    """Call the model on copies of its example inputs. Raises Unusable when eager itself raises."""
    args, kwargs = pytree.tree_map_only(torch.Tensor, lambda t: t.clone(), (target.args, target.kwargs))
    try:
        with torch.no_grad(), put_back():
            return model(*args, **kwargs)
    except SystemExit as problem:
        code = _code(problem)
        raise Unusable(f"{target.path.name}: the model calls sys.exit({code}); remove that") from None
    except BaseException as problem:
        raise Unusable(
            f"{target.path.name}: the model raises on its own example inputs, without any compiler: "
            f"{said_by(problem)}"
        ) from problem


def export(target: ModelFile, model: torch.nn.Module) -> torch.export.ExportedProgram:
    """Export the model, unless it is exported already. Raises Unusable when it cannot be exported."""
    if target.exported is not None:
        return target.exported()
    try:
        with torch.no_grad():
            return torch.export.export(
                model, target.args, target.kwargs or None, dynamic_shapes=target.dynamic_shapes
            )
    except Exception as problem:
        raise Unusable(
            f"{target.path.name} cannot be exported: {said_by(problem)}; make torch.export.export() work "
            "on the model, its example inputs and its dynamic shapes first"
        ) from problem


def check_containers(target: ModelFile, ep: torch.export.ExportedProgram) -> None:
    """Raise Unusable when a container type of the person's own has no name under which it can be stored."""
    for spec in (ep.call_spec.in_spec, ep.call_spec.out_spec):
        try:
            pytree.treespec_dumps(spec)
        except NotImplementedError as problem:
            if "torch.return_types" not in str(problem):  # those are torch's own to store
                raise Unusable(
                    f"{target.path.name}: the model takes or returns a container that no package can store: "
                    f"{one_line(str(problem))}"
                ) from None


def check_outputs(target: ModelFile, ep: torch.export.ExportedProgram) -> None:
    """Raise Unusable when the model returns text: a package returns tensors, numbers and None."""
    for spec in ep.graph_signature.output_specs:
        value = getattr(spec.arg, "value", None)
        if isinstance(value, str):
            raise Unusable(
                f"{target.path.name}: the model returns the text {one_line(repr(value), 60)}, which no "
                "package can hold; return tensors only"
            )


def check_state(target: ModelFile, ep: torch.export.ExportedProgram) -> None:
    """Raise Unusable when the model writes to a buffer that it has under two names.

    Export takes the two for independent tensors, so what is written to one is not seen in the other, or it
    refuses at the next step.
    """
    names = dict(ep.graph_signature.inputs_to_buffers)
    places: dict[int, list[str]] = {}
    for name in names.values():
        buffer = ep.state_dict.get(name)
        if isinstance(buffer, torch.Tensor) and buffer.numel():
            places.setdefault(buffer.untyped_storage().data_ptr(), []).append(name)
    twice = {name: group for group in places.values() if len(group) > 1 for name in group}
    for node in ep.graph.nodes:
        for written in _written(node):
            group = twice.get(names.get(written.name, ""))
            if group:
                listed = " and ".join(map(repr, group[:2]))
                raise Unusable(
                    f"{target.path.name}: the buffers {listed} are one tensor, and the model writes to it, "
                    "which torch.export cannot express; register it once, or give each a tensor of its own"
                )


def _written(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The values that a call writes to."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return []
    pairs = zip(schema.arguments, node.args)
    return [v for a, v in pairs if a.alias_info and a.alias_info.is_write and isinstance(v, torch.fx.Node)]


def siblings(target: ModelFile) -> tuple[str, ...]:
    """The target's own Python files: itself and what it imports from its folder."""
    if target.files is not None:
        return tuple(str(path) for path in target.files)
    folder = target.path.parent.resolve()
    found = [target.path.resolve()]
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        # Some of torch's modules carry a bare name here, which would resolve into the current folder.
        if not file or not Path(file).is_absolute() or "site-packages" in file:
            continue
        if Path(file).resolve().is_relative_to(folder) and Path(file).suffix == ".py":
            found.append(Path(file).resolve())
    return tuple(str(path) for path in dict.fromkeys(found))


def dim_names(target: ModelFile, ep: torch.export.ExportedProgram) -> dict[str, str]:
    """The person's own ``Dim`` names for the symbols of the exported program."""
    names: dict[str, str] = {}
    shapes = [
        n.meta["val"].shape
        for n in ep.graph.nodes
        if n.name in ep.graph_signature.user_inputs and isinstance(n.meta.get("val"), torch.Tensor)
    ]
    specs = _specs_of_tensors(target)
    if len(specs) != len(shapes):
        return names
    for shape, spec in zip(shapes, specs):
        items = spec.items() if isinstance(spec, dict) else enumerate(spec or ())
        for dim, entry in items:
            name = getattr(entry, "__name__", None)
            if name is None or not isinstance(dim, int) or dim >= len(shape):
                continue
            symbol = str(shape[dim])
            if symbol.isidentifier() and str(name).isidentifier():
                names.setdefault(symbol, str(name))
    return names


def _specs_of_tensors(target: ModelFile) -> list[Any]:
    """The dynamic shape of each tensor among the flat inputs; [] when the structures do not match."""
    spec = target.dynamic_shapes
    if spec is None:
        return []
    try:
        signature = inspect.signature(target.get_model().forward)
        bound = signature.bind(*target.args, **target.kwargs).arguments
    except (TypeError, ValueError):
        return []
    if isinstance(spec, dict):
        pairs = [(bound[key], spec.get(key)) for key in bound]
    else:
        pairs = list(zip([*target.args, *target.kwargs.values()], spec))
    found: list[Any] = []

    def visit(value: Any, entry: Any) -> None:
        if isinstance(value, torch.Tensor):
            found.append(entry)
        elif isinstance(value, dict):
            for key, item in value.items():
                visit(item, entry.get(key) if isinstance(entry, dict) else None)
        elif isinstance(value, (list, tuple)):
            for k, item in enumerate(value):
                visit(item, entry[k] if isinstance(entry, (list, tuple)) and k < len(entry) else None)

    for value, entry in pairs:
        visit(value, entry)
    return found
