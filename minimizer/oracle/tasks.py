"""What workers can be asked to do. Each function is one task of `sandbox.Worker.call`.

A worker that judges inputs keeps one session open; a worker that judges a candidate does all of it, from
source to verdict, and is thrown away.
"""

from __future__ import annotations

import os
import platform
import re
import time
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch._inductor.cpp_builder import get_compiler_version_info, get_cpp_compiler
from torch.utils import _pytree as pytree

from minimizer.build import Store, describe, make_tensor, misalignment
from minimizer.case import Case, Stored, Value, Values
from minimizer.contract import Misuse
from minimizer.oracle import stages
from minimizer.oracle.batches import SLICE
from minimizer.oracle.requests import Brought, Observation, Observations, TargetInfo, TargetRequest
from minimizer.oracle.seeds import RNG_SEED
from minimizer.oracle.session import Session
from minimizer.oracle.subjects import FileSubject, ProgramSubject
from minimizer.oracle.verdict import Failure, Verdict
from minimizer.program import Program
from minimizer.sandbox.worker import begin, note
from minimizer.targets import doors, form, given, model_file
from minimizer.targets.options import problem_of
from minimizer.targets.variants import apply_variant
from minimizer.tensor_code import tensor_code
from minimizer.tracing import Untranslatable, program_from_export, skeleton

_session: Session | None = None
_subject: FileSubject | None = None
_candidate: tuple[Session, str] | None = None


def warm_threads() -> None:
    """Undo the zygote's single thread."""
    torch.set_num_threads(len(os.sched_getaffinity(0)))


def open_target(request: TargetRequest) -> TargetInfo:
    """Import the model file, run it in eager, export and translate it; keeps a session open.

    Raises model_file.Unusable with a one-line reason.
    """
    first = not (Path(request.store) / "initial_state.pt").exists()
    target, model = _prepare(request)
    assert _session is not None and _subject is not None
    if first:
        _subject.save_state()
    note("eager")
    model_file.run_eager(target, _subject.module())
    _session.notice_state(_clones(_subject.flat))
    note("export")
    ep = _session.ep
    model_file.check_containers(target, ep)
    model_file.check_outputs(target, ep)
    model_file.check_state(target, ep)
    store = Store(request.store)
    tensors = [leaf for leaf in _subject.flat if isinstance(leaf, torch.Tensor)]
    untranslatable = ""
    try:
        names = model_file.dim_names(target, ep)
        program = program_from_export(ep, store, names, prefix=f"{request.prefix}state_")
    except Untranslatable as problem:
        untranslatable = str(problem)
        program = skeleton(ep)
    examples = tuple(
        describe(t, Stored(_example(store, f"{request.prefix}example_{k}", t)), offset=misalignment(t))
        for k, t in enumerate(tensors)
    )
    devices = sorted(
        {str(t.device) for t in [*tensors, *model.state_dict().values()] if isinstance(t, torch.Tensor)}
    )
    return TargetInfo(
        program=program,
        untranslatable=untranslatable,
        examples=examples,
        config=tuple(_session.config.items()),
        stateful=_session.stateful or target.calls > 1,
        files=model_file.siblings(target),
        devices=tuple(devices),
        versions=versions(),
        remark=target.remark,
    )


def _example(store: Store, name: str, tensor: torch.Tensor) -> str:
    """The name of a stored example; the worker that comes first decides what is in it."""
    return name if (store.folder / f"{name}.pt").exists() else store.put(name, tensor)


def _prepare(request: TargetRequest) -> tuple[model_file.ModelFile, torch.nn.Module]:
    """Import the model file and open a session for it, with the state that other workers use."""
    global _session, _subject
    warm_threads()
    note("import")
    target = doors.load(Path(request.path), model=request.model, inputs=request.inputs)
    model = target.get_model()
    model_file.check_tensors(target, model)
    model_file.initialise(target, model)
    apply_variant(target, model, request.variant)
    _subject = FileSubject(target, model, Store(request.store))
    _subject.load_state()
    wrong = problem_of(dict(request.config))
    if wrong:
        raise model_file.Unusable(f"--config: {wrong}")
    variant = request.variant
    config = {**target.config, **dict(request.config), **dict(variant.config)}
    _session = Session(_subject, config, variant.path)
    return target, model


def opened() -> FileSubject:
    """The target that this worker has open."""
    assert _subject is not None
    return _subject


def reopen_target(request: TargetRequest, stateful: bool) -> None:
    """Open a target that another worker has opened before: nothing is run, exported or translated again."""
    _prepare(request)
    assert _session is not None
    _session.stateful = stateful


def session_and_subject() -> tuple[Session, FileSubject]:
    """The session and subject of the open target."""
    assert _session is not None and _subject is not None
    return _session, _subject


def versions() -> tuple[tuple[str, str], ...]:
    """What everything here ran with. Nothing that names the machine or its user."""
    said = re.search(r"(?:gcc|clang) version [\d.]+", get_compiler_version_info(get_cpp_compiler()))
    return (
        ("torch", str(torch.__version__)),
        ("python", platform.python_version()),
        ("compiler", said[0] if said else "unknown"),
        ("cpu", torch.backends.cpu.get_cpu_capability()),
        ("os", " ".join([platform.system(), platform.machine(), *platform.libc_ver()])),
    )


def cuda_is_available() -> bool:
    """Whether torch sees a CUDA device. Initialises CUDA in this worker."""
    return torch.cuda.is_available()


def _clones(flat: Sequence[Any]) -> list[Any]:
    return [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in flat]


def compile_target(package: str, level: str = "full") -> Failure | None:
    """Compile the open target into `package`; the failure when it cannot be."""
    assert _session is not None
    try:
        _session.compile(level, package)
    except stages.StageError as problem:
        return problem.failure
    return None


def generated_code(package: str) -> str:
    """The C++ text inside a package."""
    with zipfile.ZipFile(package) as archive:
        names = [name for name in archive.namelist() if name.endswith(".cpp")]
        return "\n".join(archive.read(name).decode(errors="replace") for name in names)


def load_target(package: str) -> Failure | None:
    """Load a package for the open target; the failure when it cannot be."""
    assert _session is not None
    try:
        _session.load(package)
    except stages.StageError as problem:
        return problem.failure
    return None


def judge_inputs(
    batch: Sequence[Sequence[Values]], store: str, plainly: bool = False, manner: str = ""
) -> list[Verdict]:
    """Judge inputs of the open target, each set of them given call after call: a `batches.JudgeMany`."""
    verdicts: list[Verdict] = []
    until = time.monotonic() + SLICE
    for k, calls in enumerate(batch):
        begin(k)
        verdicts.append(_judge_calls(calls, Store(store), plainly, manner))
        if verdicts[-1].failed or time.monotonic() > until:
            break
    return verdicts


def _judge_calls(calls: Sequence[Values], store: Store, plainly: bool, manner: str) -> Verdict:
    assert _session is not None and _subject is not None
    try:
        made = [[make_tensor(value, store) for value in values] for values in calls]
    except (RuntimeError, ValueError) as problem:
        return Verdict("invalid", reason=f"inputs cannot be made: {problem}"[:300])
    try:
        return _session.judge(*map(_subject.with_tensors, made), plainly=plainly, manner=manner)
    except (SystemExit, KeyboardInterrupt) as end:  # code of the model's own; compiled code has none
        return Verdict("invalid", reason=f"eager raises {type(end).__name__}")


def bare_loop(inputs: Sequence[Sequence[Value]], store: str) -> float:
    """Seconds for running inputs through eager and compiled and comparing, with nothing else done.

    The yardstick of the search's speed; raises AssertionError where the two differ.
    """
    assert _session is not None and _subject is not None
    made = [[make_tensor(value, Store(store)) for value in values] for values in inputs]
    return _session.bare_loop([_subject.with_tensors(tensors) for tensors in made])


def check_guards(values: Sequence[Value], store: str) -> str:
    """Why the exported program refuses these inputs; empty when it does not. Runs nothing compiled."""
    assert _session is not None and _subject is not None
    tensors = [make_tensor(value, Store(store)) for value in values]
    return _session.guards_reject(_subject.with_tensors(tensors))


def eager_problem(calls: Sequence[Values], store: str) -> str:
    """What eager says against these inputs, given call after call; empty when it runs."""
    assert _session is not None and _subject is not None
    made = [[make_tensor(value, Store(store)) for value in values] for values in calls]
    return _session.eager_problem(*map(_subject.with_tensors, made))


def person_inputs(request: TargetRequest, name: str) -> Brought | Misuse:
    """The inputs that the person saw failing, or how their form differs from the example inputs'.

    `name` is that of a function or attribute of the model file, or of a tensor file. Raises Unusable.
    """
    assert _subject is not None
    target, store = _subject.target, Store(request.store)
    arguments = given.arguments(target, name)
    if isinstance(arguments, Misuse):
        return arguments
    names = form.argument_names(target.get_model(), len(target.args))
    broken = form.misfit(names, (target.args, target.kwargs), arguments)
    if broken:
        return broken
    values: list[Value] = []
    called: list[str] = []
    for where, leaf in form.tensors(names, arguments):
        stored = "" if leaf.device.type == "meta" else store.put(f"given_{len(values)}", leaf)
        values.append(describe(leaf, Stored(stored)))
        called.append(where)
    return Brought(tuple(values), tuple(called))


def save_program(file: str) -> None:
    """Write the open target's exported program to a file, with its example inputs."""
    assert _session is not None and _subject is not None
    ep = _session.ep
    if ep.example_inputs is None:
        ep.example_inputs = _subject.nest(_subject.flat)
    torch.export.save(ep, file)


def read_inputs(name: str) -> list[Value]:
    """The tensors of a file, described. Raises model_file.Unusable."""
    nothing = model_file.ModelFile(Path("the package"), ModuleType("package"), torch.nn.Module, ())
    leaves = pytree.tree_leaves(given.arguments(nothing, name))
    return [describe(leaf, Stored("")) for leaf in leaves if isinstance(leaf, torch.Tensor)]


def register_operators(files: Sequence[str]) -> None:
    """Import the files that register custom operators."""
    for file in files:
        model_file.import_file(Path(file))


def judge_case(case: Case, store: str, package: str, level: str) -> Verdict:
    """Judge a candidate from its source: export, compile up to `level`, and run where that level can.

    At the levels ``lower`` and ``kernel`` nothing runs: a candidate that compiles so far passes.
    """
    global _candidate
    warm_threads()
    try:
        register_operators(case.settings.modules)
        subject = ProgramSubject(case.program, Store(store))
        session = Session(subject, dict(case.settings.config), case.settings.path)
        note("eager")
        calls = [[make_tensor(value, Store(store)) for value in values] for values in case.sequence]
        eager_problem = session.eager_problem(*calls)
    except Exception as problem:  # noqa: BLE001 (a candidate that cannot be built means nothing)
        return Verdict("invalid", reason=f"cannot be built: {type(problem).__name__}: {problem}"[:500])
    if eager_problem and level in ("lower", "kernel"):
        return Verdict("invalid", reason=f"eager raises {eager_problem}"[:500])
    if case.program.may_keep_state:
        session.notice_state(calls[0])
    try:
        session.ep  # noqa: B018 (exports)
    except stages.StageError as problem:
        return Verdict("invalid", reason=f"cannot be exported: {problem.failure.message}"[:500])
    compiles = int(level != "lower")
    try:
        session.compile(level, package)
    except stages.StageError as problem:
        if eager_problem:
            return Verdict("invalid", reason=f"eager raises {eager_problem}"[:500], compiles=compiles)
        return Verdict("fail", problem.failure, compiles=compiles)
    if level in ("lower", "kernel"):
        return Verdict("pass", compiles=compiles)
    _candidate = (session, store)
    return replace(session.judge(*calls, manner=case.settings.manner), compiles=compiles)


def judge_again(calls: Sequence[Values], manner: str) -> Verdict:
    """Judge other inputs of the candidate that this worker has compiled."""
    assert _candidate is not None
    session, store = _candidate
    try:
        made = [[make_tensor(value, Store(store)) for value in values] for values in calls]
    except (RuntimeError, ValueError) as problem:
        return Verdict("invalid", reason=f"inputs cannot be made: {problem}"[:300])
    return session.judge(*made, manner=manner)


def observe(case: Case, store: str, prefix: str) -> Observations:
    """Run the program in eager and store every tensor that it makes, as it was at that moment.

    Where eager itself raises (and the compiled program dies), what it computed until then is what there is.
    """
    warm_threads()
    register_operators(case.settings.modules)
    tensors = Store(store)
    subject = ProgramSubject(case.program, tensors)
    state = subject.built.state()
    seen: list[dict[str, Value]] = []
    problem = ""
    for k, values in enumerate(case.sequence):
        own = prefix if k == len(case.earlier) else f"{prefix}{k}_"
        found: dict[str, Value] = {}

        def watch(name: str, value: Any, own: str = own, found: dict[str, Value] = found) -> None:
            if isinstance(value, torch.Tensor) and value.layout == torch.strided:
                found[name] = describe(value, Stored(tensors.put(f"{own}{name}", value)))

        torch.manual_seed(RNG_SEED)
        seen.append(found)
        try:
            subject.watch([make_tensor(value, tensors) for value in values], watch, state)
        except Exception as raised:  # noqa: BLE001 (the caller says so)
            problem = f"{type(raised).__name__}: {raised}".splitlines()[0]
            break
    *earlier, last = seen
    observations = (
        Observation(name, value, tuple(_same_or_own(call[name], value, tensors) for call in earlier))
        for name, value in last.items()
        if all(name in call for call in earlier)
    )
    return Observations(tuple(observations), problem)


def decomposed(case: Case, store: str) -> Program | None:
    """The case's program in the operators of core ATen; None where that cannot be expressed."""
    warm_threads()
    register_operators(case.settings.modules)
    tensors = Store(store)
    try:
        finer = ProgramSubject(case.program, tensors).export().run_decompositions()
        return program_from_export(finer, tensors, prefix=f"finer_{case.key}_")
    except Exception:  # noqa: BLE001 (a decomposition runs any code; without one the program stays as it is)
        return None


def exported_graph(case: Case, store: str) -> str:
    """The fingerprint of the graph that a program exports to; empty where it cannot be exported.

    Programs with the same one are the same to whatever compiles exported programs.
    """
    warm_threads()
    register_operators(case.settings.modules)
    tensors = Store(store)
    try:
        exported = ProgramSubject(case.program, tensors).export()
        return program_from_export(exported, tensors, prefix="spelling_").fingerprint
    except Exception:  # noqa: BLE001 (export runs any code; what cannot be exported is like nothing else)
        return ""


def _same_or_own(value: Value, last: Value, store: Store) -> Value:
    """The last call's value where an earlier one has the same bits, so that nothing is told twice."""
    assert isinstance(value.data, Stored) and isinstance(last.data, Stored)
    alike = replace(value, data=last.data) == last
    return (
        last
        if alike and torch.equal(*map(_bits, (store.get(value.data.file), store.get(last.data.file))))
        else value
    )


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().flatten().view(torch.uint8)


def tensors_as_code(values: Sequence[Value], store: str, budget: int) -> list[str | None]:
    """For each value, a short expression that builds exactly its tensor; None when there is none.

    `budget` is the largest number of elements that may be written out.
    """
    return [tensor_code(value, Store(store), budget) for value in values]


def save_tensors(values: Sequence[tuple[str, Value]], store: str, file: str) -> None:
    """Write named tensors to one file that ``torch.load(weights_only=True)`` opens."""
    torch.save({name: make_tensor(value, Store(store)) for name, value in values}, file)


def describe_stored(names: Sequence[str], store: str) -> list[Value]:
    """The values of stored tensors."""
    return [describe(Store(store).get(name), Stored(name)) for name in names]
