"""Opens whatever was recognised, and gives a model with example inputs. Runs in workers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from minimizer import options
from minimizer.targets import exported, model_file, scripts, stored
from minimizer.targets.model_file import ModelFile, Unusable
from minimizer.targets.recognise import CASE, EXPORTED, GRAPH_SCRIPT, LAUNCHER, recognise

_OPEN: dict[str, Callable[[Path], ModelFile]] = {
    EXPORTED: exported.load,
    LAUNCHER: scripts.load_launcher,
    GRAPH_SCRIPT: scripts.load_graph,
    CASE: stored.load,
}


def load(path: Path, *, model: str = "", inputs: str = "") -> ModelFile:
    """Open a target. `model` and `inputs` name other givers of a model file. Raises Unusable."""
    try:
        door = recognise(path)
    except options.Unusable as problem:
        raise Unusable(str(problem)) from None
    opener = _OPEN.get(door.kind)
    if opener is None:
        return model_file.load(path, model=model, inputs=inputs)
    if model or inputs:
        raise Unusable(f"{path.name} is not a Python model file; --model and --inputs do not apply to it")
    return opener(door.path)
