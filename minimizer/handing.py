"""The last step: write the repro as plainly as it still fails, prove it alone, and report."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minimizer.capture import CALLED_AGAIN, CHECKED, LADDER, OVERWRITTEN, Determinism, alike
from minimizer.capturing import on_rung
from minimizer.case import Case, Value
from minimizer.diagnosis import gather
from minimizer.folder import BESIDE, RunFolder
from minimizer.handover.examples import exported_on_failing_inputs, zeros_of
from minimizer.handover.needs import DEATHS
from minimizer.handover.plain import plain_candidates
from minimizer.handover.record import Certificate
from minimizer.handover.reports import write_reports
from minimizer.handover.repro import INPUTS_FILE, repro_source
from minimizer.handover.whole import PROGRAM_FILE, PROGRAM_TARGET, whole_source
from minimizer.kernel_alone import stack_of
from minimizer.narrow import Narrowed
from minimizer.neighbour import difference, nearest
from minimizer.options import FAILURE, TOOLS_UNTIL
from minimizer.oracle.requests import TASKS
from minimizer.oracle.verdict import Failure
from minimizer.sandbox import TaskError, WorkerLost
from minimizer.source import custom_namespaces
from minimizer.targets.recognise import MODEL_FILE, recognise
from minimizer.verify import Verified, verify
from minimizer.wording import title_of
from strategies.values import Fill

if TYPE_CHECKING:
    from minimizer.run import Run

WRITTEN_OUT = 48
"""Elements of a tensor that a repro may write out."""

VERIFY_RUNS = 2
"""Fresh runs of a repro before it is claimed (more when the failure is flaky)."""

PLAIN_SHARE = 0.85
"""Share of the budget after which the repro is no longer made plainer."""

HANG_TIMEOUT = 45
"""Seconds after which a repro calls a compilation or a call one that does not end."""

FILES = "repro_files"
MAIN = "repro_target"
"""Folder and module name of the person's own files beside a repro."""


def hand_over(run: Run, case: Case, failure: Failure, narrowed: Narrowed | None, found: Determinism) -> int:
    """Write and verify the repro, then the reports; the exit status."""
    spoken = _plain(run, case, narrowed)
    run.meter.mark("spell")
    attempts = [spoken] if spoken == case else [spoken, case]
    runs = VERIFY_RUNS if found.certain else 5
    runs = 1 if failure.kind == "hang" else runs
    verified = None
    for attempt in attempts:
        text = write_repro(run, attempt, failure, found)
        verified = verify(run.folder.path, run.sandbox, runs)
        if verified.wavers:
            attempt, text, verified = _steadied(run, attempt, failure, found, verified)
        if verified.holds:
            case = attempt
            break
    assert verified is not None
    run.meter.mark("verify")
    run.folder.save_case(case, "case/reduced", {"signature": str(failure.signature)})
    entries: Sequence[Certificate] = ()
    if narrowed is not None and narrowed.certificate is not None:
        entries = [Certificate(f"{e.part} {e.what} {e.how}", e.verdict) for e in narrowed.certificate.entries]
    run.note(
        repro_verified={"runs": verified.runs, "failures": verified.failures},
        repro=text,
        output=verified.output,
        certificate=tuple(entries),
        title=title_of(case, failure, run.record.blame),
        environment=_environment(run),
    )
    if narrowed is not None and failure.stage == "run":
        _passing_neighbour(run, case, narrowed, found)
    run.meter.mark("report")
    run.note()
    late = run.clock.past(TOOLS_UNTIL)()
    if verified.holds and failure.kind in DEATHS and not run.record.native_stack and not late:
        run.note(native_stack=stack_of(run.folder.path, "repro"))
    gather(run, failure)
    write_reports(run.folder, run.record)
    _say_verified(run, verified)
    return FAILURE


def _steadied(
    run: Run, case: Case, failure: Failure, found: Determinism, verified: Verified
) -> tuple[Case, str, Verified]:
    """The first harder case whose repro fails every time; as it is if there is none."""
    late = run.clock.past(TOOLS_UNTIL)
    for name, harder in _harder(case, failure):
        if late():
            break
        written = write_repro(run, harder, failure, found)
        again = verify(run.folder.path, run.sandbox, verified.runs)
        if again.holds:
            run.console.say("", f"the repro alone fails now and then; {name} it always does")
            return harder, written, again
    return case, write_repro(run, case, failure, found), verified


FLAT = ("zeros", "ones", "full")
"""Fills of one number."""


def _harder(case: Case, failure: Failure) -> Iterator[tuple[str, Case]]:
    """What a case may need to fail every time, and the case with it.

    A heap that is corrupt is noticed sooner or later, in a script of few calls perhaps too late. And a wrong
    answer may be what lay in memory that is not the program's: as luck has it, the right one where all inputs
    are alike.
    """
    died = failure.kind in DEATHS
    varied = tuple(_varied(value) for value in case.values)
    if not died and varied != case.values:
        yield "with other values", replace(case, values=varied)
    for rung in (CALLED_AGAIN, CHECKED) if died else (OVERWRITTEN,):
        yield rung.name, on_rung(case, rung, ())


def _varied(value: Value) -> Value:
    """Random numbers in the place of equal ones."""
    flat = isinstance(value.data, Fill) and value.data.kind in FLAT and value.dtype.startswith("float")
    return replace(value, data=Fill("normal")) if flat else value


def _environment(run: Run) -> str:
    """The lines of collect_env; empty where one of the programs that it asks does not answer."""
    try:
        lines: str = run.ask("minimizer.oracle.environment:collected")
    except (TaskError, WorkerLost):
        return ""
    return lines


def _say_verified(run: Run, verified: Verified) -> None:
    path = run.folder.path / "repro.py"
    if verified.holds:
        said = f"{path} · fails {verified.failures} of {verified.runs} fresh runs"
    else:
        said = f"{path} fails in {verified.failures} of {verified.runs} fresh runs"
        said += "" if verified.silent_in_eager else ", and without a compiler too"
        said += "; do not file it as it is"
    run.console.say("repro", said, always=True)
    run.console.say("report", f"{run.folder.path / 'report.md'} · {run.folder.path / 'report.html'}")


def _clear(folder: RunFolder) -> None:
    for name in BESIDE:
        folder.remove(name)


def keep_best(run: Run) -> None:
    """After an interruption: the best so far as a repro, unverified, and how to go on."""
    run.note(status="interrupted")
    again = f"go on with: {run.options.command} --resume"
    if run.best is None or not run.best[0].program.operators:
        run.console.say("interrupted", f"nothing was captured yet; {again}", always=True)
        return
    case, failure = run.best
    text = write_repro(run, case, failure, Determinism(LADDER[0], 1, 1, failure))
    run.note(
        status="interrupted",
        nodes_after=case.program.operator_count,
        dynamic_dims_after=case.program.dynamic_dims,
        repro=text,
        title=title_of(case, failure, run.record.blame),
    )
    write_reports(run.folder, run.record)
    run.console.say(
        "interrupted",
        f"{case.program.operator_count} nodes so far: {run.folder.path / 'repro.py'} (not verified); {again}",
        always=True,
    )


def hand_over_whole(run: Run, case: Case, failure: Failure, found: Determinism) -> int:
    """Hand over the person's own model with the failing inputs, where its graph could not be reduced."""
    folder = run.folder
    _clear(folder)
    exported = recognise(run.options.target).kind != MODEL_FILE
    if exported:
        folder.write(f"{FILES}/{MAIN}.py", PROGRAM_TARGET)
        run.bench.save_program(str((folder.path / FILES / PROGRAM_FILE).resolve()))
    else:
        _copy_files(run, folder.path / FILES)
    variant = run.request.variant
    named = [(f"call {c} {k}", v) for c, values in enumerate(case.sequence) for k, v in enumerate(values)]
    if variant.exports_anew and run.bench.info is not None:
        named += [(f"example {k}", value) for k, value in enumerate(run.bench.info.examples)]
    _call(run, "save_tensors", named, run.store, str((folder.path / INPUTS_FILE).resolve()))
    title = title_of(case, failure, run.record.blame)
    versions = dict(run.record.versions or {})
    text = whole_source(
        failure, case, title, versions, run.options, HANG_TIMEOUT, exported=exported, variant=variant
    )
    folder.write("repro.py", text)
    verified = verify(folder.path, run.sandbox, VERIFY_RUNS if found.certain else 5)
    run.note(
        repro_verified={"runs": verified.runs, "failures": verified.failures},
        repro=text,
        minimal=False,
        title=title,
        environment=_environment(run),
    )
    write_reports(folder, run.record)
    _say_verified(run, verified)
    return FAILURE


def _plain(run: Run, case: Case, narrowed: Narrowed | None) -> Case:
    """The case spelled as a person would write it, as far as that exports to the same graph or fails alike.

    Without `narrowed` nothing is judged.
    """
    late = run.clock.past(PLAIN_SHARE)
    best, graph = case, _exported_graph(run, case)
    candidates = plain_candidates(case.program)
    try:
        candidate = next(candidates)
        while not late():
            trial = replace(case, program=candidate)
            other = _exported_graph(run, trial)
            same = bool(other and other == graph) or _fails_alike(run, trial, narrowed)
            if same:
                best, graph = trial, other
            candidate = candidates.send(same)
    except StopIteration:
        pass
    own = exported_on_failing_inputs(best)
    return own if own is not None and not late() and _fails_alike(run, own, narrowed) else best


def _exported_graph(run: Run, case: Case) -> str:
    """What tells the graph that a case exports to from others; empty where that says nothing.

    So it is for torch.compile, which sees more than the exported graph.
    """
    if case.settings.path != "aoti":
        return ""
    try:
        graph: str = run.ask(TASKS + "exported_graph", case, run.store)
    except (TaskError, WorkerLost):
        return ""
    return graph


def _fails_alike(run: Run, trial: Case, narrowed: Narrowed | None) -> bool:
    if narrowed is None:
        return False
    shown = run.cases.judge(trial, narrowed.level).failure
    if shown is None:
        return False
    if alike(shown.signature, narrowed.failure.signature):
        return True
    same_place = shown.kind == narrowed.failure.kind and shown.stage == narrowed.failure.stage
    return narrowed.level != "full" and same_place


def write_repro(run: Run, case: Case, failure: Failure, found: Determinism) -> str:
    """Write repro.py and what must lie beside it; the script's text."""
    _clear(run.folder)
    text, saved = _script(run, case, failure, found, title_of(case, failure, run.record.blame))
    if saved:
        _call(run, "save_tensors", saved, run.store, str((run.folder.path / INPUTS_FILE).resolve()))
    run.folder.write("repro.py", text)
    return text


def _script(
    run: Run, case: Case, failure: Failure, found: Determinism, title: str
) -> tuple[str, list[tuple[str, Value]]]:
    """The text of a repro, and the tensors that it reads from a file."""
    names = [i.name for i in case.program.inputs]
    calls = [[f"call{k}_{name}" for name in names] for k in range(len(case.earlier))] + [names]
    named = [pair for call, values in zip(calls, case.sequence) for pair in zip(call, values)]
    state_values = _stored_values(run, [s.value for s in case.program.state])
    named_state = [(s.name, value) for s, value in zip(case.program.state, state_values)]
    codes = _codes(run, [value for _, value in named + named_state])
    if failure.stage in ("lower", "cxx", "package"):  # nothing runs: any values will do
        codes[: len(named)] = [code or zeros_of(value) for code, (_, value) in zip(codes, named)]
    code_of = {name: code or f'saved["{name}"]' for (name, _), code in zip(named, codes)}
    state_code = {
        name: code or f'state["{name}"]' for (name, _), code in zip(named_state, codes[len(named) :])
    }
    saved = [item for item, code in zip(named + named_state, codes) if code is None]
    text = repro_source(
        case,
        failure,
        [code_of[name] for name in names],
        state_code,
        earlier_code=[[code_of[name] for name in call] for call in calls[:-1]],
        title=title,
        versions=dict(run.record.versions or {}),
        imports=_bring_operators(run, case),
        repeat=max(found.repeats, 11 if case.settings.manner == "again" else 1),
        timeout=HANG_TIMEOUT,
    )
    return text, saved


def _passing_neighbour(run: Run, spoken: Case, narrowed: Narrowed, found: Determinism) -> None:
    """Write the nearest case that passes, where it can be written without files beside it."""
    other = nearest(narrowed.case, run.cases.passed)
    if other is None:
        return
    said = difference(narrowed.case, other)
    if other.program.fingerprint == narrowed.case.program.fingerprint:
        other = replace(spoken, values=other.values, earlier=other.earlier)
    else:
        other = _plain(run, other, None)
    text, saved = _script(run, other, narrowed.failure, found, f"Passes: {said}")
    if not saved:
        run.folder.write("passing_neighbour.py", text)
        run.note(neighbour=said)


def _stored_values(run: Run, names: Sequence[str]) -> list[Value]:
    if not names:
        return []
    values: list[Value] = _call(run, "describe_stored", list(names), run.store)
    return values


def _codes(run: Run, values: Sequence[Value]) -> list[str | None]:
    if not values:
        return []
    codes: list[str | None] = _call(run, "tensors_as_code", list(values), run.store, WRITTEN_OUT)
    return codes


def _call(run: Run, task: str, *args: object) -> Any:
    try:
        return run.ask(TASKS + task, *args)
    except (TaskError, WorkerLost) as problem:
        raise RuntimeError(f"{task}: {problem}") from problem


def _bring_operators(run: Run, case: Case) -> list[str]:
    """Copy the files that register custom operators beside the repro; the import lines that it needs."""
    if not case.settings.modules or not custom_namespaces(case.program):
        return []
    if len(run.files) == 1:
        shutil.copy(run.files[0], run.folder.path / "repro_ops.py")
        return ["", "import repro_ops  # noqa: F401  (registers the custom operators)"]
    _copy_files(run, run.folder.path / FILES)
    return [
        "",
        f'sys.path.insert(0, str(Path(__file__).with_name("{FILES}")))',
        f"import {MAIN}  # noqa: F401  (registers the custom operators)",
    ]


def _copy_files(run: Run, base: Path) -> None:
    """The target's own files: itself as `MAIN`, what it imports from its folder under the same names."""
    main = Path(run.files[0])
    base.mkdir(parents=True, exist_ok=True)
    shutil.copy(main, base / f"{MAIN}.py")
    for file in map(Path, run.files[1:]):
        target = base / file.relative_to(main.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
