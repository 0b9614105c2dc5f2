"""The last step: write the repro as plainly as it still fails, prove it alone, and report."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minimizer.capture import Determinism, alike
from minimizer.case import Case, Value
from minimizer.handover.plain import plain_candidates
from minimizer.handover.record import Certificate
from minimizer.handover.report import report_markdown
from minimizer.handover.repro import INPUTS_FILE, repro_source
from minimizer.narrow import LEVELS, Narrowed
from minimizer.oracle.requests import TASKS
from minimizer.oracle.verdict import Failure
from minimizer.sandbox import TaskError, WorkerLost
from minimizer.source import custom_namespaces
from minimizer.verify import verify

if TYPE_CHECKING:
    from minimizer.run import Run

WRITTEN_OUT = 48
"""Elements of a tensor that a repro may write out."""

VERIFY_RUNS = 2
"""Fresh runs of a repro before it is claimed (more when the failure is flaky)."""

HANG_TIMEOUT = 45
"""Seconds after which a repro calls a compilation or a call one that does not end."""

FAILURE = 1


def hand_over(run: Run, case: Case, failure: Failure, narrowed: Narrowed | None, found: Determinism) -> int:
    """Write and verify the repro, then the reports; the exit status."""
    spoken = _plain(run, case, narrowed) if narrowed is not None else case
    attempts = [spoken] if spoken == case else [spoken, case]
    runs = VERIFY_RUNS if found.certain else 5
    runs = 1 if failure.kind == "hang" else runs
    verified = None
    for attempt in attempts:
        text = write_repro(run, attempt, failure, found)
        verified = verify(run.folder.path, run.sandbox, runs)
        if verified.holds:
            case = attempt
            break
    assert verified is not None
    run.folder.save_case(case, "case/reduced", {"signature": str(failure.signature)})
    entries: Sequence[Certificate] = ()
    if narrowed is not None and narrowed.certificate is not None:
        entries = [Certificate(f"{e.part} {e.what} {e.how}", e.verdict) for e in narrowed.certificate.entries]
    run.note(
        repro_verified={"runs": verified.runs, "failures": verified.failures},
        repro=text,
        certificate=tuple(entries),
        title=title_of(case, failure),
    )
    run.folder.write("report.md", report_markdown(run.record))
    files = "repro.py · report.md"
    if verified.holds:
        run.console.say(
            "repro",
            f"{run.folder.path / 'repro.py'} · fails {verified.failures} of {verified.runs} fresh runs",
            always=True,
        )
    else:
        run.console.say(
            "repro",
            f"{run.folder.path / 'repro.py'} fails in {verified.failures} of {verified.runs} fresh runs"
            + ("" if verified.silent_in_eager else ", and fails without a compiler too")
            + "; do not file it as it is",
            always=True,
        )
    run.console.say("", f"in {run.folder.path}: {files}")
    return FAILURE


def title_of(case: Case, failure: Failure) -> str:
    """One line that a maintainer can search for."""
    names = list(dict.fromkeys(n.target for n in case.program.operators))
    shown = ", ".join(names[:3]) + ("..." if len(names) > 3 else "")
    what = {
        "wrong_value": "gives wrong values",
        "wrong_metadata": f"gives another {failure.flavour}",
        "lost_mutation": "loses a mutation of its input",
        "compile_error": "cannot be compiled",
        "cxx_error": "generates C++ that does not compile",
        "crash": "ends the process",
        "hang": "does not come to an end",
        "runtime_error": "raises at run time",
        "lost_error": "loses an error that eager raises",
        "load_error": "cannot be loaded",
    }.get(failure.kind, failure.kind)
    path = "AOTInductor" if case.settings.path == "aoti" else "torch.compile"
    return f"{shown or 'The model'} {what} under {path}"


def _plain(run: Run, case: Case, narrowed: Narrowed) -> Case:
    """The case spelled as a person would write it, as far as it fails alike."""
    level = LEVELS.get(narrowed.failure.stage, ("full",))[0]
    best = case
    candidates = plain_candidates(case.program)
    try:
        candidate = next(candidates)
        while True:
            if run.clock.spent > 0.85 * run.options.budget:
                break
            trial = replace(case, program=candidate)
            shown = run.cases.judge(trial, level).failure
            same = shown is not None and alike(shown.signature, narrowed.failure.signature)
            if not same and shown is not None and shown.kind == narrowed.failure.kind:
                same = level != "full" and shown.stage == narrowed.failure.stage
            if same:
                best = trial
            candidate = candidates.send(same)
    except StopIteration:
        pass
    return best


def write_repro(run: Run, case: Case, failure: Failure, found: Determinism) -> str:
    """Write repro.py and what must lie beside it; the script's text."""
    folder = run.folder
    for old in folder.path.glob("repro_*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    named = [(i.name, value) for i, value in zip(case.program.inputs, case.values)]
    state_values = _stored_values(run, [s.value for s in case.program.state])
    named_state = [(s.name, value) for s, value in zip(case.program.state, state_values)]
    codes = _codes(run, [value for _, value in named + named_state])
    value_code = [code or f'saved["{name}"]' for (name, _), code in zip(named, codes[: len(named)])]
    state_code = {
        name: code or f'state["{name}"]' for (name, _), code in zip(named_state, codes[len(named) :])
    }
    saved = [item for item, code in zip(named + named_state, codes) if code is None]
    if saved:
        _call(
            run,
            "save_tensors",
            saved,
            str(folder.store.resolve()),
            str((folder.path / INPUTS_FILE).resolve()),
        )
    imports = _bring_operators(run, case)
    text = repro_source(
        case,
        failure,
        value_code,
        state_code,
        title=title_of(case, failure),
        versions=dict(run.record.versions or {}),
        imports=imports,
        repeat=1 if found.certain else found.repeats,
        timeout=HANG_TIMEOUT,
    )
    folder.write("repro.py", text)
    return text


def _stored_values(run: Run, names: Sequence[str]) -> list[Value]:
    if not names:
        return []
    values: list[Value] = _call(run, "describe_stored", list(names), str(run.folder.store.resolve()))
    return values


def _codes(run: Run, values: Sequence[Value]) -> list[str | None]:
    if not values:
        return []
    codes: list[str | None] = _call(
        run, "tensors_as_code", list(values), str(run.folder.store.resolve()), WRITTEN_OUT
    )
    return codes


def _call(run: Run, task: str, *args: object) -> Any:
    worker = run.sandbox.worker()
    try:
        return worker.call(TASKS + task, *args, timeout=120.0)
    except (TaskError, WorkerLost) as problem:
        raise RuntimeError(f"{task}: {problem}") from problem
    finally:
        worker.close()


def _bring_operators(run: Run, case: Case) -> list[str]:
    """Copy the files that register custom operators beside the repro; the import lines that it needs."""
    if not case.settings.modules or not custom_namespaces(case.program):
        return []
    main = Path(case.settings.modules[0])
    files = [Path(file) for file in run.files]
    others = [file for file in files if file != main]
    if not others:
        shutil.copy(main, run.folder.path / "repro_ops.py")
        return ["", "import repro_ops  # noqa: F401  (registers the custom operators)"]
    base = run.folder.path / "repro_files"
    for file in others:
        target = base / file.relative_to(main.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    shutil.copy(main, base / "repro_ops.py")
    return [
        "",
        'sys.path.insert(0, str(Path(__file__).with_name("repro_files")))',
        "import repro_ops  # noqa: F401  (registers the custom operators)",
    ]
