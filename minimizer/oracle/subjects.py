"""What can be judged: the model file that a person brought, or a program of our own."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from minimizer.build import Built, Store, clone_exact
from minimizer.interpret import Watcher, interpret
from minimizer.oracle import stages
from minimizer.program import Program
from minimizer.targets.model_file import ModelFile, export


class FileSubject:
    """A model file. State is taken from the store when another worker has put it there first.

    `get_model()` may draw its weights from anywhere; the worker that compiled the package decides.
    """

    def __init__(self, target: ModelFile, model: torch.nn.Module, store: Store) -> None:
        self.target = target
        self.flat, self.spec = pytree.tree_flatten((target.args, target.kwargs))
        self._model = model
        self._store = store
        self._initial = {
            name: clone_exact(t.detach())
            for name, t in model.state_dict().items()
            if isinstance(t, torch.Tensor)
        }

    def module(self) -> torch.nn.Module:
        """A module with the initial state."""
        try:
            fresh = copy.deepcopy(self._model)
        except Exception:  # noqa: BLE001 (some modules cannot be copied; they can be made again)
            fresh = self.target.get_model()
        fresh.load_state_dict({name: t.clone() for name, t in self._initial.items()}, strict=False)
        return fresh

    def nest(self, flat: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Flat inputs as arguments."""
        args, kwargs = pytree.tree_unflatten(list(flat), self.spec)
        return args, kwargs

    def export(self) -> torch.export.ExportedProgram:
        """Export on the example inputs."""
        return export(self.target, self.module())

    def with_tensors(self, tensors: Sequence[torch.Tensor]) -> list[Any]:
        """The flat example inputs with their tensors replaced, in order."""
        given = iter(tensors)
        return [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.flat]

    def save_state(self) -> None:
        """Put the initial state where other workers find it."""
        self._store.folder.mkdir(parents=True, exist_ok=True)
        torch.save(self._initial, self._store.folder / "initial_state.pt")

    def load_state(self) -> None:
        """Take the initial state that another worker has put there."""
        path = self._store.folder / "initial_state.pt"
        if path.exists():
            self._initial = torch.load(path, weights_only=True)


class ProgramSubject:
    """A program printed as source, executed, and exported at the hints of its symbols."""

    def __init__(self, program: Program, store: Store) -> None:
        self.built = Built(program, store)

    def module(self) -> torch.nn.Module:
        """A fresh module."""
        return self.built.module()

    def nest(self, flat: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Flat inputs as arguments."""
        return self.built.nest(flat)

    def watch(self, flat: Sequence[Any], watch: Watcher, state: Mapping[str, torch.Tensor]) -> None:
        """Run call by call in eager, showing each result as it is made; the state is written to."""
        interpret(self.built.program, flat, state, watch)

    def export(self) -> torch.export.ExportedProgram:
        """Export on zeros of the example sizes."""
        args, kwargs = self.built.nest(self.built.examples())
        return stages.export(self.built.module(), args, kwargs, self.built.dynamic_shapes)
