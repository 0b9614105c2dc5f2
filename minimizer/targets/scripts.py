"""The scripts that PyTorch itself writes: ``minifier_launcher.py`` and ``repro.py`` of its AOTI minifier,
``repro.py`` and ``fx_graph_runnable.py`` of Inductor (TORCH_TRACE, tlparse, TORCH_COMPILE_DEBUG).

They keep their work behind ``__main__``, so importing one gives its program. Importing executes the script.
What a script does to the environment and to Inductor's configuration is undone, and the configuration becomes
settings of the target, so that every later step sees it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch._dynamo.debug_utils import InputReader
from torch._inductor import config as inductor_config

from minimizer.targets import exported
from minimizer.targets.model_file import ModelFile, Unusable, import_file, said_by, seed_everything

_NOT_SETTINGS = (
    "aot_inductor.package",
    "aot_inductor.output_path",
    "aot_inductor.serialized_",
    "aot_inductor.dump_aoti_minifier",
    "aot_inductor.repro_level",
    "trace.",
    "cpp_wrapper",
    "generate_intermediate_hooks",
    "worker_start_method",
    "compile_threads",
)
"""Options that say how a script's own compilation was run or traced, and nothing of the program."""


@contextlib.contextmanager
def _undone() -> Iterator[dict[str, Any]]:
    """A scope whose changes to the environment and to Inductor's options are undone; gives the latter."""
    environment, changed = dict(os.environ), dict[str, Any]()
    before = inductor_config.get_config_copy()
    try:
        yield changed
    finally:
        after = inductor_config.get_config_copy()
        changed.update({key: value for key, value in after.items() if value != before.get(key, value)})
        inductor_config.load_config({key: before[key] for key in changed})
        os.environ.clear()
        os.environ.update(environment)


def _settings(*sources: dict[str, Any] | None) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for source in sources:
        merged |= source or {}
    return {key: value for key, value in merged.items() if not key.startswith(_NOT_SETTINGS)}


@contextlib.contextmanager
def _programs_beside(path: Path) -> Iterator[list[Path]]:
    """Let ``torch.export.load`` find a program that has moved together with its script.

    Gives the files that were loaded. A launcher names its program by the absolute path of the machine that
    wrote it.
    """
    load, loaded = torch.export.load, list[Path]()

    def moved(file: Any, **options: Any) -> Any:
        name = Path(str(file))
        places = (name, path.parent / name, path.parent / name.name, path.parent / "checkpoints" / name.name)
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise FileNotFoundError(
                f"{name.name}, which the script loads; bring it and lay it beside the script"
            )
        loaded.append(found.resolve())
        return load(found, **options)

    torch.export.load = moved
    try:
        yield loaded
    finally:
        torch.export.load = load


def load_launcher(path: Path) -> ModelFile:
    """A script of the AOTI minifier: it loads an exported program and names options. Raises Unusable."""
    with _undone() as changed, _programs_beside(path) as loaded:
        module = import_file(path)
    if not isinstance(getattr(module, "exported_program", None), torch.export.ExportedProgram) or not loaded:
        raise Unusable(f"{path.name} loads no exported program; give the script as PyTorch wrote it")
    config = _settings(changed, getattr(module, "config_patches", None))
    source = loaded[-1]
    target = exported.from_program(path, lambda: exported.read(source), config)
    target.files = (path.resolve(),)
    return target


class _Size(int):
    """A size that was a symbol when the script was written; stays one through arithmetic."""

    symbol: str

    def __new__(cls, value: int, symbol: str) -> _Size:
        made = super().__new__(cls, value)
        made.symbol = symbol
        return made

    def _with(self, value: int, sign: str, other: int) -> _Size:
        return _Size(value, f"({self.symbol} {sign} {getattr(other, 'symbol', other)})")

    def __add__(self, other: int) -> _Size:
        return self._with(int(self) + int(other), "+", other)

    def __sub__(self, other: int) -> _Size:
        return self._with(int(self) - int(other), "-", other)

    def __mul__(self, other: int) -> _Size:
        return self._with(int(self) * int(other), "*", other)

    def __floordiv__(self, other: int) -> _Size:
        return self._with(int(self) // int(other), "//", other)

    __radd__, __rmul__ = __add__, __mul__


class _Reader(InputReader):
    """Reads the inputs of a script, and remembers which sizes are symbols."""

    def __init__(self, save_dir: str | None) -> None:
        super().__init__(save_dir)
        self.dims: dict[int, dict[int, str]] = {}
        self.ints: dict[int, str] = {}

    def tensor(self, storage: Any, shape: Any, *rest: Any, **options: Any) -> torch.Tensor:
        symbols = {k: size.symbol for k, size in enumerate(shape) if isinstance(size, _Size)}
        self.dims[len(self.args)] = symbols
        return super().tensor(storage, shape, *rest, **options)

    def symint(self, val: Any, *, expr: str | None = None) -> Any:
        self.ints[len(self.args)] = expr or str(getattr(val, "symbol", ""))
        return super().symint(int(val), expr=expr)


class _Graph(torch.nn.Module):
    """The script's module with the sizes that it takes as integers read off its tensors again."""

    def __init__(self, inner: torch.nn.Module, given: list[Any], sizes: dict[int, tuple[int, int]]) -> None:
        super().__init__()
        self.inner = inner
        self.given = [None if isinstance(value, torch.Tensor) else value for value in given]
        self.tensors = [k for k, value in enumerate(given) if isinstance(value, torch.Tensor)]
        self.sizes = sizes

    def forward(self, *tensors: torch.Tensor) -> Any:
        values: list[Any] = list(self.given)
        for k, tensor in zip(self.tensors, tensors, strict=True):
            values[k] = tensor
        for k, (owner, dim) in self.sizes.items():
            values[k] = values[owner].shape[dim]
        return self.inner(*values)


def load_graph(path: Path) -> ModelFile:
    """A script with a graph of its own and a recipe for its inputs. Raises Unusable."""
    with _undone() as changed:
        module = import_file(path)
    graph, recipe = getattr(module, "mod", None), getattr(module, "load_args", None)
    if not isinstance(graph, torch.nn.Module) or not callable(recipe):
        raise Unusable(f"{path.name} defines no `mod` and `load_args`; give the script as PyTorch wrote it")
    reader = _read_inputs(path, module, recipe)
    given = [value.detach() if isinstance(value, torch.Tensor) else value for value in reader.args]
    owners = {symbol: (k, dim) for k, dims in reversed(reader.dims.items()) for dim, symbol in dims.items()}
    sizes = {k: owners[symbol] for k, symbol in reader.ints.items() if symbol in owners}
    model = _Graph(graph.eval(), given, sizes)
    auto = torch.export.Dim.AUTO
    shapes = tuple(dict.fromkeys(reader.dims.get(k, {}), auto) or None for k in model.tensors)
    invented = not (_folder_of_inputs(path) or Path("-")).is_dir()
    return ModelFile(
        path=path,
        module=module,
        get_model=lambda: model,
        args=tuple(given[k] for k in model.tensors),
        dynamic_shapes={"tensors": shapes} if any(shapes) else None,
        config=_settings(changed),
        remark="the script holds no input values; random numbers stand in for them" if invented else "",
    )


def _folder_of_inputs(path: Path) -> Path | None:
    """The folder that the script names as `save_dir`, or one of that name beside it."""
    words = path.read_text(encoding="utf-8", errors="replace").rpartition("save_dir=")[2]
    name = words.partition(",")[0].strip().strip("'\"")
    if not words or name == "None":
        return None
    places = (Path(name), path.parent / Path(name).name, path.parent)
    return next((place for place in places if (place / "storages").is_dir()), None)


def _read_inputs(path: Path, module: ModuleType, recipe: Any) -> _Reader:
    for name, value in list(vars(module).items()):
        if type(value) is int and name.startswith(("s", "u", "z")) and name[-1:].isdigit():
            setattr(module, name, _Size(value, name))
    folder = _folder_of_inputs(path)
    reader = _Reader(str(folder) if folder else None)
    seed_everything()
    try:
        recipe(reader)
    except Exception as problem:
        raise Unusable(f"{path.name}: load_args() raises {said_by(problem)}") from problem
    return reader
