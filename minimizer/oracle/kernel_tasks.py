"""Tasks about generated kernels: record a run, examine each call, take one kernel out, run it guarded.

Recording may end the process, which is why it writes as it goes; everything after it works from the record,
in whatever process.
"""

from __future__ import annotations

import ctypes
import json
import mmap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch._inductor.codecache import CppPythonBindingsCodeCache

from minimizer.build import Store, clone_exact, describe, make_tensor
from minimizer.case import Case, Stored, Value
from minimizer.oracle import stages
from minimizer.oracle.kernels import KernelSource, aoti_kernels, same_code
from minimizer.oracle.launches import Generated, Lowering, Recorder, attribute, watching
from minimizer.oracle.recorded import (
    LOG,
    Examination,
    Finding,
    KernelArgument,
    KernelCase,
    Recording,
    Step,
    read_recording,
)
from minimizer.oracle.session import Session
from minimizer.oracle.slices import (
    Slice,
    Sources,
    Unjudged,
    disagreement,
    operator_name,
    operators_of,
    slice_of,
)
from minimizer.oracle.subjects import ProgramSubject
from minimizer.oracle.tasks import register_operators, warm_threads
from minimizer.program import Program, leaves, rename
from minimizer.sandbox.worker import note
from minimizer.tracing import Untranslatable, program_from_graph


@dataclass(frozen=True)
class _Open:
    """A case compiled just in time, what was seen of the compilation, and the inputs of its calls."""

    session: Session
    seen: Lowering
    calls: list[list[Any]]
    call: Callable[[Sequence[Any]], Sequence[Any]]


_opened: _Open | None = None


def _open(case: Case, store: str) -> _Open:
    """The case of this worker, compiled when first asked for. Raises stages.StageError."""
    global _opened
    if _opened is None:
        warm_threads()
        register_operators(case.settings.modules)
        session = Session(ProgramSubject(case.program, Store(store)), dict(case.settings.config))
        calls = [[make_tensor(value, Store(store)) for value in values] for values in case.sequence]
        if case.program.may_keep_state:
            session.notice_state(calls[0])
        with watching() as seen:
            compiled = session.compile("jit", "")
        assert compiled.call is not None
        _opened = _Open(session, seen, calls, compiled.call)
    return _opened


def record(case: Case, store: str) -> Recording | str:
    """Run the case through Inductor's Python wrapper and record every call; why that is not possible.

    The answer is read back from the store, where it is also found if this process dies.
    """
    try:
        at = _open(case, store)
    except stages.StageError as problem:
        return problem.failure.message
    recorder = Recorder(at.seen, Store(store))
    at.session.use(lambda given: recorder.run(lambda: at.call(given)))
    verdict = at.session.judge(*at.calls)
    shown = verdict.failure.message if verdict.failure else ""
    recorder.say(json.dumps({"shown": shown[:2000]}))
    return read_recording((Store(store).folder / LOG).read_text().splitlines())


def examine(case: Case, store: str, recording: Recording) -> Examination:
    """Judge every recorded call by the part of the graph that it was made from, and the graphs themselves."""
    at = _open(case, store)
    sources = Sources(at.seen, at.calls)
    findings = tuple(_examined(sources, step, Store(store)) for step in recording.steps)
    graphs = tuple(_graphs(at))
    generated = aoti_kernels(_aoti_code(case, store))
    differing = tuple(
        name
        for name, source in at.seen.kernels.items()
        if name not in generated or not same_code(generated[name], source.code)
    )
    return Examination(findings, graphs, generated, differing)


def _aoti_code(case: Case, store: str) -> str:
    session = Session(ProgramSubject(case.program, Store(store)), dict(case.settings.config))
    try:
        return session.compile("lower", "unused.pt2").kernel_code
    except stages.StageError:
        return ""


def aoti_code(case: Case, store: str) -> dict[str, str]:
    """The kernels that AOTInductor generates for a case, by name; nothing is built."""
    warm_threads()
    register_operators(case.settings.modules)
    return aoti_kernels(_aoti_code(case, store))


def calls_by_kernel(case: Case, store: str) -> dict[str, tuple[str, ...]]:
    """The operators that each kernel of a case is generated from; nothing is built."""
    warm_threads()
    register_operators(case.settings.modules)
    session = Session(ProgramSubject(case.program, Store(store)), dict(case.settings.config))
    seen = _generated(session)
    nodes = {} if seen.graph is None else {node.name: node for node in seen.graph.graph.nodes}
    return {
        name: operators_of(nodes[origin] for origin in origins if origin in nodes)
        for name, _, origins in seen.launches
    }


def _generated(session: Session) -> Lowering:
    """What compiling just in time generates, as far as code generation comes."""
    seen = Lowering()
    try:
        with watching(text_only=True) as seen:
            session.compile("jit", "")
    except (Generated, stages.StageError):
        pass  # ends here by design, or where the compiler itself fails
    return seen


def _examined(sources: Sources, step: Step, store: Store) -> Finding:
    known = Finding(step.index, step.callee, step.kernel, "unjudged", sources.calls(step))
    if step.problem:
        return replace(known, verdict="raised", figures=step.problem)
    if not step.finished:
        return replace(known, reason="it did not return")
    try:
        part = slice_of(sources, step, store)
    except Unjudged as problem:
        return replace(known, reason=str(problem))
    held = [make_tensor(value, store) for _, value in sources.results(step).values()]
    worst = disagreement(part, held)
    via = tuple(dict.fromkeys(operator_name(sources.nodes[name].target) for name in part.via))
    if worst is None:
        return replace(known, verdict="right", via=via)
    return replace(known, verdict="wrong", output=worst[0], figures=worst[1].figures, via=via)


class _Eager(torch.fx.Interpreter):
    """A graph in eager, with state of its own that persists from call to call."""

    def __init__(self, gm: torch.fx.GraphModule, state: Mapping[str, torch.Tensor]) -> None:
        super().__init__(gm)
        self.state = {name: clone_exact(tensor) for name, tensor in state.items()}

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target not in self.state:
            value = attribute(self.module, target)
            if not isinstance(value, torch.Tensor):
                return value
            self.state[target] = clone_exact(value.detach())
        return self.state[target]


def _graphs(at: _Open) -> Sequence[tuple[str, str]]:
    """What the graph answers in eager at each stage of the compilation; empty where it is right."""
    answers = []
    for name, gm in _stages(at.seen).items():
        at.session.use(_in_eager(gm, at.seen.state))
        verdict = at.session.judge(*at.calls, plainly=True)
        said = verdict.failure.message if verdict.failure else ""
        answers.append((name, said if verdict.status != "invalid" else f"not judged: {verdict.reason}"))
    return answers


def _in_eager(
    gm: torch.fx.GraphModule, state: Mapping[str, torch.Tensor]
) -> Callable[[Sequence[Any]], Sequence[Any]]:
    eager = _Eager(gm, state)

    def call(given: Sequence[Any]) -> Sequence[Any]:
        tensors = [value for value in given if isinstance(value, torch.Tensor)]
        with torch.no_grad():
            return list(eager.run(*tensors, enable_io_processing=False))

    return call


def _stages(seen: Lowering) -> dict[str, torch.fx.GraphModule]:
    """The graph at each stage of the compilation, in order."""
    return {**seen.earlier, **({"post-grad": seen.graph} if seen.graph is not None else {})}


def operators_by_stage(case: Case, store: str) -> list[tuple[str, tuple[str, ...]]]:
    """The operators of the graph as exported and at each later stage, in order, each once."""
    at = _open(case, store)
    graphs = {"exported": at.session.ep.graph_module, **_stages(at.seen)}
    return [
        (name, tuple(dict.fromkeys(str(n.target) for n in gm.graph.nodes if n.op == "call_function")))
        for name, gm in graphs.items()
    ]


def isolate(case: Case, store: str, recording: Recording, index: int) -> KernelCase:
    """One launch as a case of its own: the kernel's source, its arguments, and a program to compare with."""
    at = _open(case, store)
    step = next(step for step in recording.steps if step.index == index)
    source = at.seen.kernels[step.callee]
    names: dict[str, str] = {}
    for arg, parameter in zip(step.args, source.parameters, strict=True):
        names.setdefault(arg.name, parameter)
    sources = Sources(at.seen, at.calls)
    try:
        part = slice_of(sources, step, Store(store))
        reference = _reference(part, names, Store(store), f"kernel{index}_")
    except (Unjudged, Untranslatable):
        reference = _Reference()  # without a plain reference the kernel is judged by whether it survives
    args = []
    for k, (arg, name) in enumerate(zip(step.args, source.parameters, strict=True)):
        assert arg.before is not None
        output = "" if source.reads_only(k) else reference.outputs.get(arg.name, "")
        alias = names[arg.name] if names[arg.name] != name and isinstance(arg.before, Value) else ""
        args.append(KernelArgument(name, arg.before, arg.name, output, alias))
    config = tuple((k, v) for k, v in case.settings.config if k.startswith("cpp.") and "TESTING" not in k)
    scalar = _scalar(case, store, source)
    return KernelCase(
        source, sources.calls(step), tuple(args), reference.program, reference.extra, scalar, config
    )


@dataclass(frozen=True)
class _Reference:
    """What a kernel should compute, as a program; `outputs` names its value for each variable."""

    program: Program | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)
    extra: tuple[tuple[str, Value], ...] = ()


def _reference(part: Slice, names: Mapping[str, str], store: Store, prefix: str) -> _Reference:
    """A slice as a program whose inputs are named after the kernel's parameters."""
    program = program_from_graph(part.graph, store, prefix)
    given = dict(zip((i.name for i in program.inputs), part.inputs))
    fresh = {mine: names[variable] for mine, variable in given.items() if variable in names}
    extra = tuple(
        (mine, describe(tensor, Stored(store.put(f"{prefix}{mine}", tensor))))
        for (mine, variable), tensor in zip(given.items(), part.given)
        if variable not in names
    )
    program = rename(program, fresh, {})
    outputs = dict(zip(part.outputs, (leaf.name for leaf in leaves(program.output))))
    return _Reference(program, outputs, extra)


def _scalar(case: Case, store: str, source: KernelSource) -> KernelSource | None:
    """The same kernel generated without vector instructions, where its text is another one."""
    config = {**dict(case.settings.config), "cpp.simdlen": 1}
    session = Session(ProgramSubject(case.program, Store(store)), config)
    found = _generated(session).kernels.get(source.name)
    if found is None or found.argtypes != source.argtypes or same_code(found.code, source.code):
        return None
    return found


def run_guarded(kernel: KernelCase, store: str) -> None:
    """Run a kernel with every tensor at the very end of its memory: one element too far ends the process."""
    warm_threads()
    with torch._inductor.config.patch(dict(kernel.config)):
        function = CppPythonBindingsCodeCache.load_pybinding(kernel.source.argtypes, kernel.source.code)
    args: list[Any] = []
    named: dict[str, Any] = {}
    for arg in kernel.args:
        held = arg.before
        if arg.alias:
            args.append(named[arg.alias])
            continue
        args.append(_guarded(make_tensor(held, Store(store))) if isinstance(held, Value) else held)
        named[arg.name] = args[-1]
    note(f"guarded {kernel.source.name}")
    function(*args)
    note("done")


_pages: list[mmap.mmap] = []


def _guarded(tensor: torch.Tensor) -> torch.Tensor:
    """A copy that ends where memory ends."""
    span = (
        1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))
        if tensor.numel()
        else 0
    )
    size = span * tensor.element_size()
    room = -(-max(size, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = mmap.mmap(-1, room + mmap.PAGESIZE)
    _pages.append(pages)  # stays mapped as long as the process
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(start + room), mmap.PAGESIZE, 0) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
    if not size:
        return tensor
    base = torch.frombuffer(pages, dtype=tensor.dtype, count=span, offset=room - size)
    return base.as_strided(tensor.shape, tensor.stride()).copy_(tensor)


def same_answer(one: Program, other: Program, values: Sequence[Value], store: str) -> bool:
    """Whether two programs give the very same on the same inputs, and eager runs both."""
    answers = []
    for program in (one, other):
        subject = ProgramSubject(program, Store(store))
        flat = [make_tensor(value, Store(store)) for value in values]
        try:
            with torch.no_grad():
                out = subject.module()(*flat)
        except Exception:  # noqa: BLE001 (any operator may refuse)
            return False
        answers.append(out if isinstance(out, (tuple, list)) else (out,))
    pairs = list(zip(*answers, strict=True))
    return all(a.dtype == b.dtype and a.shape == b.shape and _equal(a, b) for a, b in pairs)


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(((a == b) | ((a != a) & (b != b))).all())
