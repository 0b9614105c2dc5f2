"""The stages between a module and its compiled answer, each of which can fail in its own way.

export → lower (graph passes, code generation) → cxx (the C++ compiler) → package → load → run. A compile can
be stopped after any stage: a lowering exception is judged without a C++ compiler, a kernel that does not
compile without a wrapper, a wrong value without the package, whose wrapper is 85 % of an AOTI compile.
"""

from __future__ import annotations

import contextlib
import errno
import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
import torch._inductor.codecache as codecache
import torch._inductor.compile_fx as compile_fx_module
from torch._inductor import config as inductor_config
from torch._inductor.exc import CppCompileError
from torch._inductor.virtualized import V

from minimizer.oracle.verdict import Failure
from minimizer.sandbox.worker import note

LEVELS = ("lower", "kernel", "jit", "full")
"""How far a candidate is compiled: code generation only; plus the kernels' syntax; just-in-time, run through
Inductor's Python wrapper; the whole AOTI package."""


class _Stop(BaseException):
    """Ends a compilation at the stage that was asked for."""


class StageError(Exception):
    """A stage raised. `failure` says which and how."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Exhausted(Exception):
    """The machine ran out of disk, memory or the like while compiling: nobody's bug."""


_SAID_BY_TOOLS = re.compile(
    r"No space left on device|Disk quota exceeded|File size limit exceeded|Killed signal terminated"
    r"|Cannot allocate memory|virtual memory exhausted|out of memory allocating|Too many open files"
)
_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM, errno.EMFILE, errno.ENFILE)


def exhausted(problem: BaseException) -> str:
    """What the machine lacked, in the words of whoever noticed; empty when an exception tells of no lack."""
    inner = _inner(problem)
    if isinstance(inner, CppCompileError):
        said = _SAID_BY_TOOLS.search(str(inner))
        return f"the C++ compiler says: {said[0]}" if said else ""
    lacks = isinstance(inner, OSError) and inner.errno in _ERRNOS
    return str(inner) if lacks else ""


def _raise_if_exhausted(problem: BaseException) -> None:
    lack = exhausted(problem)
    if lack:
        raise Exhausted(lack) from problem


@dataclass
class Compiled:
    """A compiled program: a call on flat inputs that gives flat outputs. `stopped` = there is no call."""

    call: Callable[[Sequence[Any]], Sequence[Any]] | None
    wrapper_code: str = ""
    kernel_code: str = ""


def export(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> torch.export.ExportedProgram:
    """Export; raises StageError of kind ``export_error``."""
    note("export")
    try:
        with torch.no_grad():
            return torch.export.export(module, args, kwargs or None, dynamic_shapes=dynamic_shapes)
    except Exception as problem:
        raise StageError(failure_of(problem, "export_error", "export")) from problem


def failure_of(problem: BaseException, kind: str, stage: str) -> Failure:
    """An exception as a failure: innermost type, message, traceback, the operator it names."""
    inner = _inner(problem)
    text = "".join(traceback.format_exception(problem))
    return Failure(
        kind=kind,
        stage=stage,
        message=str(inner) or str(problem),
        exception=type(inner).__name__,
        detail=text[-20_000:],
        op=_named_operator(f"{problem}\n{inner}"),
    )


def _named_operator(message: str) -> str:
    """The operator that a lowering exception names (``target: aten.cumsum.default``)."""
    for line in message.splitlines():
        head, _, rest = line.strip().partition("target: ")
        if not head and rest:
            return rest.strip()
    return ""


def options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Inductor options as they are passed on."""
    # Random operators must draw the same stream as eager, or nothing with dropout can be compared.
    return {"fallback_random": True, **config}


@contextlib.contextmanager
def _watching(level: str, seen: Compiled) -> Iterator[None]:
    """Note when the C++ compiler starts, keep the generated code, and stop where asked."""
    generate = codecache.AotCodeCompiler.compile.__func__
    build = codecache.CppBuilder.build

    def compile_code(
        cls: Any, graph: Any, wrapper_code: str, kernel_code: str, *args: Any, **kwargs: Any
    ) -> Any:
        seen.wrapper_code, seen.kernel_code = wrapper_code, kernel_code
        if level == "lower":
            raise _Stop
        note("cxx")
        result = generate(cls, graph, wrapper_code, kernel_code, *args, **kwargs)
        note("package")
        return result

    waiting: list[Any] = []

    def build_kernels(builder: Any) -> None:
        # Kernels first: when they do not compile, the wrapper, which costs ten times as much, is not needed.
        command = builder.get_command_line()
        if ".wrapper.cpp" in command and " -c " in f"{command} ":
            waiting.append(builder)
            return
        build(builder)
        if ".kernel.cpp" in command:
            if level == "kernel":
                raise _Stop
            for wrapper in waiting:
                build(wrapper)
            waiting.clear()

    with (
        mock.patch.object(codecache.AotCodeCompiler, "compile", classmethod(compile_code)),
        mock.patch.object(codecache.CppBuilder, "build", build_kernels),
    ):
        yield


def compile_package(
    ep: torch.export.ExportedProgram, config: Mapping[str, Any], package: str, level: str = "full"
) -> Compiled:
    """Compile with AOTI up to `level` (``lower``, ``kernel`` or ``full``, which writes `package`).

    Raises StageError of kind ``compile_error`` or ``cxx_error``.
    """
    seen = Compiled(None)
    stage = "lower"
    note("lower")
    try:
        with _watching(level, seen), torch.no_grad():
            torch._inductor.aoti_compile_and_package(
                ep, package_path=package, inductor_configs=options(config)
            )
    except _Stop:
        pass
    except Exception as problem:
        _raise_if_exhausted(problem)
        cxx = isinstance(_inner(problem), CppCompileError)
        stage = "cxx" if cxx else "package" if seen.wrapper_code else "lower"
        kind = "cxx_error" if cxx else "compile_error"
        raise StageError(failure_of(problem, kind, stage)) from problem
    return seen


def compile_problem(problem: BaseException) -> Failure:
    """What the C++ compiler or, before it, Inductor raised. Raises Exhausted when the machine is at fault."""
    _raise_if_exhausted(problem)
    cxx = isinstance(_inner(problem), CppCompileError)
    return failure_of(problem, *(("cxx_error", "cxx") if cxx else ("compile_error", "lower")))


def _inner(problem: BaseException) -> BaseException:
    """The exception that Inductor wrapped."""
    while True:
        wrapped = getattr(problem, "inner_exception", None)
        if not isinstance(wrapped, BaseException):
            return problem
        problem = wrapped


def load_package(package: str) -> Callable[..., Any]:
    """Load a package; raises StageError of kind ``load_error``."""
    note("load")
    try:
        loaded: Callable[..., Any] = torch._inductor.aoti_load_package(package)
        return loaded
    except Exception as problem:
        raise StageError(failure_of(problem, "load_error", "load")) from problem


def own_state(gm: torch.fx.GraphModule) -> None:
    """Give a graph module state of its own: it shares the exported program's, which calls may change."""
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            path, _, name = str(node.target).rpartition(".")
            owner = gm.get_submodule(path)
            value = getattr(owner, name)
            if isinstance(value, torch.nn.Parameter):
                setattr(owner, name, torch.nn.Parameter(value.detach().clone(), value.requires_grad))
            elif isinstance(value, torch.Tensor):
                setattr(owner, name, value.clone())


def compile_jit(ep: torch.export.ExportedProgram, config: Mapping[str, Any]) -> Compiled:
    """Compile the graph that AOTI would generate code for just in time, with Inductor's Python wrapper.

    The graph passes, decompositions and kernels are those of AOTI; the C++ wrapper and the package, which
    cost six times as much as all the rest, are not made. The call takes and gives flat values.
    """
    captured: dict[str, Any] = {}

    def inner(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], **kwargs: Any) -> Any:
        kwargs.pop("extern_node_serializer", None)
        kwargs["cpp_wrapper"] = False
        with V.set_aot_compilation(False), inductor_config.patch(cpp_wrapper=False, fx_graph_cache=False):
            captured["call"] = compile_fx_module.compile_fx_inner(gm, example_inputs, **kwargs)
        raise _Stop

    gm = ep.module(check_guards=False)
    assert isinstance(gm, torch.fx.GraphModule)
    own_state(gm)
    note("lower")
    try:
        flat, patches = compile_fx_module._aoti_flatten_inputs(
            gm, ep.example_inputs[0], ep.example_inputs[1], options=options(config)
        )
        from torch._export.utils import _compiling_state_context

        with _compiling_state_context(), torch.no_grad():
            compile_fx_module.compile_fx_aot(gm, flat, inner_compile=inner, config_patches=patches)
    except _Stop:
        pass
    except Exception as problem:
        raise StageError(compile_problem(problem)) from problem
    call = captured["call"]

    def run(values: Sequence[Any]) -> Sequence[Any]:
        with torch.no_grad():
            out: Sequence[Any] = call([value for value in values if isinstance(value, torch.Tensor)])
        return out

    return Compiled(run)
