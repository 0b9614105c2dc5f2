"""Runs a program compiled just in time and records what each kernel or operator is given and gives back.

Inductor's Python wrapper makes one call a line. A trace function sees every line before and after it runs, so
nothing is patched, and what is recorded is what the compiled program itself passes on.
"""

from __future__ import annotations

import json
import linecache
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import torch
import torch._inductor.compile_fx as compile_fx_module
from torch._inductor.codecache import PyCodeCache
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.graph import GraphLowering

from minimizer.build import Store, clone_exact, describe
from minimizer.case import Stored, Value
from minimizer.oracle.kernels import KernelSource, Site, call_sites, kernel_definitions, reuses
from minimizer.oracle.recorded import LOG, Argument, Step, end_line, start_line
from minimizer.sandbox.worker import note


@dataclass(frozen=True)
class Written:
    """A buffer that a launch computes. `target` is the variable it is written to, `node` its graph node."""

    buffer: str
    target: str
    node: str


@dataclass
class Lowering:
    """One compilation, as seen from inside: graphs, generated wrapper, and how the two belong together.

    `graph` is the one that code is generated from, `earlier` the ``decomposed`` one and that after the
    ``joint`` passes. `made_by` maps a variable of the wrapper to the graph node whose value it holds;
    `launches` lists, in the order of the wrapper's text, the kernel of each launch, what it computes and
    the nodes it was made from. `state` holds the graph's own tensors as they were before any call.
    """

    graph: torch.fx.GraphModule | None = None
    earlier: dict[str, torch.fx.GraphModule] = field(default_factory=dict)
    state: dict[str, torch.Tensor] = field(default_factory=dict)
    made_by: dict[str, str] = field(default_factory=dict)
    launches: list[tuple[str, tuple[Written, ...], tuple[str, ...]]] = field(default_factory=list)
    wrapper: str = ""
    path: str = ""

    @property
    def kernels(self) -> dict[str, KernelSource]:
        return kernel_definitions(self.wrapper)

    @property
    def sites(self) -> dict[int, Site]:
        return call_sites(self.wrapper, self.kernels)

    @property
    def reuses(self) -> dict[str, str]:
        return reuses(self.wrapper)

    def launch_at(self, line: int) -> tuple[tuple[Written, ...], tuple[str, ...]]:
        """What the launch on a line of the wrapper computes, and the nodes that it was made from."""
        callee = self.sites[line].callee
        same = sorted(n for n, site in self.sites.items() if site.callee == callee)
        known = [entry for entry in self.launches if entry[0] == callee]
        position = same.index(line)
        return known[position][1:] if position < len(known) else ((), ())


class Generated(BaseException):
    """Ends a compilation whose generated text is all that is wanted."""


@contextmanager
def watching(*, text_only: bool = False) -> Iterator[Lowering]:
    """Learn from the compilation inside the block. Only its outermost graph is looked at.

    With `text_only` the block is left by `Generated` before a C++ compiler starts.
    """
    seen = Lowering()
    generate, comment = GraphLowering.codegen, CppScheduling.codegen_comment
    compile_graph = compile_fx_module.compile_fx_inner
    joint_passes = compile_fx_module._recursive_joint_graph_passes
    load = PyCodeCache.load_by_key_path.__func__

    def codegen(graph: Any) -> Any:
        result = generate(graph)
        if type(graph) is GraphLowering and not graph.is_const_graph:
            seen.graph = _copy(graph.module)
            seen.state = _state(graph.module)
            for buffer in graph.buffers:
                node = buffer.get_origin_node()
                if node is not None:
                    seen.made_by[buffer.get_name()] = node.name
        return result

    def codegen_comment(scheduling: Any, nodes: Any, kernel_name: Any = None) -> Any:
        buffers = [n.node for n in nodes if getattr(n, "node", None) is not None]
        seen.launches.append((str(kernel_name), _written(buffers), _origins(buffers)))
        return comment(scheduling, nodes, kernel_name)

    def compile_inner(gm: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        seen.earlier["joint"] = _copy(gm)
        return compile_graph(gm, *args, **kwargs)

    def run_passes(gm: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        seen.earlier["decomposed"] = _copy(gm)
        return joint_passes(gm, *args, **kwargs)

    def load_module(cls: Any, key: str, path: str, *args: Any, **kwargs: Any) -> Any:
        text = Path(path).read_text()
        if "async_compile" in text:
            seen.wrapper, seen.path = text, path
            if text_only:
                raise Generated
        return load(cls, key, path, *args, **kwargs)

    with (
        mock.patch.object(GraphLowering, "codegen", codegen),
        mock.patch.object(CppScheduling, "codegen_comment", codegen_comment),
        mock.patch.object(PyCodeCache, "load_by_key_path", classmethod(load_module)),
        mock.patch.object(compile_fx_module, "compile_fx_inner", compile_inner),
        mock.patch.object(compile_fx_module, "_recursive_joint_graph_passes", run_passes),
    ):
        yield seen


def _copy(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The graph as it is now, with the same nodes' names and the same attributes: passes work in place."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    return torch.fx.GraphModule(gm, graph)


def _state(gm: torch.fx.GraphModule) -> dict[str, torch.Tensor]:
    held = {str(n.target): attribute(gm, str(n.target)) for n in gm.graph.nodes if n.op == "get_attr"}
    return {name: clone_exact(t.detach()) for name, t in held.items() if isinstance(t, torch.Tensor)}


def attribute(gm: torch.fx.GraphModule, path: str) -> Any:
    """What a dotted path of a module holds."""
    owner: Any = gm
    for part in path.split("."):
        owner = getattr(owner, part)
    return owner


def _written(buffers: Sequence[Any]) -> tuple[Written, ...]:
    found = []
    for buffer in buffers:
        mutated = list(buffer.get_mutation_names()) if hasattr(buffer, "get_mutation_names") else []
        node = buffer.get_origin_node()
        if node is None and mutated:
            origins = sorted(buffer.get_origins())  # FX nodes sort by their place in the graph
            node = origins[-1] if origins else None
        target = mutated[0] if mutated else buffer.get_name()
        found.append(Written(buffer.get_name(), target, node.name if node is not None else ""))
    return tuple(found)


def _origins(buffers: Sequence[Any]) -> tuple[str, ...]:
    nodes = {origin for buffer in buffers for origin in buffer.get_origins()}
    return tuple(node.name for node in sorted(nodes))


class Recorder:
    """A trace function for the frame of the wrapper's ``call``; writes what it sees to the store."""

    def __init__(self, lowering: Lowering, store: Store) -> None:
        self.path, self.sites, self.kernels = lowering.path, lowering.sites, lowering.kernels
        self.store = store
        self.count = 0
        self.turn = -1
        self._open: tuple[Step, Site] | None = None
        store.folder.mkdir(parents=True, exist_ok=True)
        self.log = open(store.folder / LOG, "w", buffering=1)  # noqa: SIM115 (closed by the process's end)

    def run(self, call: Callable[[], Any]) -> Any:
        """Make the call with every line of the wrapper watched."""
        self.turn += 1
        before = sys.gettrace()
        sys.settrace(self._frames)
        try:
            return call()
        finally:
            sys.settrace(before)

    def say(self, line: str) -> None:
        self.log.write(line + "\n")
        self.log.flush()

    def _frames(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._lines if frame.f_code.co_filename == self.path else None

    def _lines(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "exception":
            said = f"{type(arg[1]).__name__}: {arg[1]}"[:2000]
            if self._open is None:
                line = linecache.getline(self.path, frame.f_lineno).strip()
                self.say(json.dumps({"raised": f"{line}: {said}"}))
            self._end(frame, said)
        elif event in ("line", "return"):
            self._end(frame, "")
            site = self.sites.get(frame.f_lineno) if event == "line" else None
            if site is not None:
                self._start(frame, site)
        return self._lines

    def _start(self, frame: FrameType, site: Site) -> None:
        self.count += 1
        args = []
        for k, text in enumerate(site.args):
            held = eval(text, frame.f_globals, frame.f_locals)  # what the line itself is about to evaluate
            args.append(Argument(text, self._keep(f"{self.count}_{k}_before", held)))
        step = Step(self.count, site.callee, site.line, site.kernel, tuple(args), turn=self.turn)
        self.say(start_line(step))
        note(f"launch {step.index} {site.callee}")
        self._open = (step, site)

    def _end(self, frame: FrameType, problem: str) -> None:
        if self._open is None:
            return
        step, site = self._open
        self._open = None
        args = []
        for k, arg in enumerate(step.args):
            writes = isinstance(arg.before, Value) and not self._reads_only(site, k)
            held = eval(arg.name, frame.f_globals, frame.f_locals) if writes else None
            after = self._keep(f"{step.index}_{k}_after", held)
            args.append(Argument(arg.name, arg.before, after if isinstance(after, Value) else None))
        results = [
            (name, self._keep(f"{step.index}_{name}", frame.f_locals.get(name))) for name in site.results
        ]
        kept = tuple((name, value) for name, value in results if isinstance(value, Value))
        self.say(end_line(Step(step.index, "", 0, site.kernel, tuple(args), kept, True, problem)))

    def _reads_only(self, site: Site, position: int) -> bool:
        return site.kernel and self.kernels[site.callee].reads_only(position)

    def _keep(self, name: str, held: Any) -> Value | int | float | None:
        if isinstance(held, torch.Tensor) and held.layout == torch.strided:
            return describe(held, Stored(self.store.put(f"launch_{name}", held)))
        if isinstance(held, (bool, int, float)):
            return held
        return None
