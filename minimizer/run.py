"""The pipeline: open → compile → fuzz → capture → region → reduce → pinpoint → hand over.

Each step says in one line what it found; each result is on disk before the next step begins, so that an
interruption keeps the best so far.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from minimizer import contract, fuzz, growth, handing, region
from minimizer.capture import LADDER, Determinism, Rung, capture
from minimizer.case import Case, Settings, Value
from minimizer.console import Console
from minimizer.folder import RunFolder
from minimizer.handover.record import RunRecord, summary_json
from minimizer.handover.report import report_markdown
from minimizer.narrow import LEVELS, Narrowed, narrow
from minimizer.oracle.bench import CaseBench, TargetBench
from minimizer.oracle.requests import TASKS, TargetInfo, TargetRequest
from minimizer.oracle.verdict import Failure, Signature, Verdict
from minimizer.pinpoint import find_kernel
from minimizer.program import Program
from minimizer.reduce.cut import keep, units
from minimizer.reduce.dims import Observed
from minimizer.reduce.journal import FileJournal
from minimizer.reduce.search import Progress
from minimizer.sandbox import Sandbox, TaskError, WorkerLost
from minimizer.source import custom_namespaces

NONE, FAILURE, UNUSABLE, MISUSE, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit statuses."""

FUZZ_SHARE = 0.5
"""Share of the budget after which the search for a failure ends."""

MILD_SHARE = 0.4
"""Share of the budget after which a lost error is taken as the finding."""

REDUCE_SHARE = 0.8
"""Share of the budget after which nothing new is judged; the rest verifies the repro."""

COMPILE_SHARE = 0.3
"""Share of the budget after which a compilation counts as one that does not end."""

REGION_SIZES = 400
REGION_SIZES_FATAL = 24
"""Sizes asked for the region; each failing one costs a worker when the failure kills it."""


class Unusable(Exception):
    """The target or the command cannot be used; the message says in one line what to do."""


@dataclass(frozen=True)
class Options:
    """What the command line asks for. `budget` in seconds."""

    target: Path
    out: Path
    budget: float = 300.0
    seed: int = 0
    most_inputs: int = 2000
    resume: bool = False
    model: str = ""
    inputs: str = ""
    check_inputs: str = ""
    config: tuple[tuple[str, object], ...] = ()
    command: str = ""


@dataclass
class Clock:
    """How much of the budget is spent."""

    budget: float
    start: float = field(default_factory=time.monotonic)

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    def past(self, share: float) -> Callable[[], bool]:
        """Whether a share of the budget is spent, asked later."""
        return lambda: self.spent > share * self.budget


class Run:
    """One run over one target."""

    def __init__(self, options: Options, console: Console, folder: RunFolder, sandbox: Sandbox) -> None:
        self.options = options
        self.console = console
        self.folder = folder
        self.sandbox = sandbox
        self.clock = Clock(options.budget)
        self.record = RunRecord(target=options.target.name, command=options.command)
        request = TargetRequest(
            str(options.target.resolve()),
            str(folder.store.resolve()),
            options.model,
            options.inputs,
            options.config,
        )
        self.bench = TargetBench(sandbox, request, sandbox.scratch / "target.pt2")
        self.cases = CaseBench(sandbox, folder.store.resolve())
        self.compiles = 0
        self.files: tuple[str, ...] = ()
        self._given: Sequence[Value] | None = None
        self._observed: dict[str, Observed] = {}

    # Bookkeeping

    def note(self, **known: Any) -> None:
        """Add to what is known, and write it down."""
        self.record = replace(self.record, **known)
        self.record = replace(
            self.record,
            wall_seconds=self.clock.spent,
            cpu_seconds=self.sandbox.cpu_seconds(),
            compiles=self.compiles + self.cases.compiles,
        )
        self.folder.write("summary.json", json.dumps(summary_json(self.record), indent=1) + "\n")

    # Steps

    def go(self) -> int:
        """Run every step; the exit status."""
        info = self.open()
        if self.options.check_inputs:
            misuse = self.check_inputs(info)
            if misuse is not None:
                return misuse
        resumed = self.folder.load_case() if self.options.resume else None
        finding, failure = None, None
        if resumed is None:
            failure = self.compile(info)
            if failure is None:
                finding = self.search(info)
                if finding is None:
                    return self.nothing()
                failure = finding.failure
            case = self.case_of(info, finding)
        else:
            case, about = resumed
            failure = Failure(**about["failure"])
            self.note(**about["known"])
            self.console.say("resume", f"{failure.message.splitlines()[0]}")
        assert failure is not None
        self.console.say("failure", _headline(failure) + _inputs_text(case.program, case.values))
        self.note(
            status="failure",
            kind=failure.kind,
            stage=failure.stage,
            signature=str(failure.signature),
            message=failure.message[:2000],
            detail=failure.detail,
            figures=failure.figures,
            failing_input=tuple(_described(value) for value in case.values),
            settings=dict(case.settings.config),
        )
        determinism = self.capture(info, finding, failure, case)
        case = self._on_rung(case, determinism)
        failure = determinism.failure if determinism.failures else failure
        if finding is not None and resumed is None:
            self.region(info, finding, failure)
        self._store(case, failure)
        return self.finish(info, case, failure, determinism)

    def open(self) -> TargetInfo:
        """Open the target and say what it is. Raises Unusable."""
        try:
            info = self.bench.open()
        except TaskError as problem:
            if problem.exception == "Unusable":
                raise Unusable(problem.message) from None
            self.folder.write("internal_error.txt", problem.traceback)
            raise Unusable(
                f"{self.options.target.name} cannot be opened: {problem} "
                f"(details in {self.folder.path / 'internal_error.txt'})"
            ) from None
        except WorkerLost as lost:
            what = "does not come to an end" if "no answer" in str(lost) else f"ends the process ({lost})"
            raise Unusable(
                f"{self.options.target.name}: {lost.stage or 'loading'} {what}, without any compiler; "
                "make the model run in eager first"
            ) from None
        self.files = info.files
        program = info.program
        nodes = f"{program.operator_count} ATen nodes" if not info.untranslatable else "graph not translated"
        self.console.say(
            "target",
            f"{self.options.target.name}: {_signature_text(program)}; {nodes}; {' '.join(info.devices)}",
        )
        if info.untranslatable:
            self.console.say("", f"the graph cannot be reduced: {info.untranslatable}")
        self.note(
            nodes_before=program.operator_count if not info.untranslatable else None,
            dynamic_dims_before=program.dynamic_dims,
            versions=dict(info.versions),
        )
        return info

    def check_inputs(self, info: TargetInfo) -> int | None:
        """Judge the person's inputs against the contract; MISUSE, or None when they keep it."""
        try:
            given = self.bench.person_inputs(self.options.check_inputs)
        except TaskError as problem:
            raise Unusable(problem.message if problem.exception == "Unusable" else str(problem)) from None
        broken = given if isinstance(given, str) else None
        if not isinstance(given, str):
            found = contract.check(info.program, given)
            broken = str(found) if found else self.bench.guards_reject(given) or None
            self._given = given
        if broken is None:
            return None
        self.console.say("misuse", broken, always=True)
        self.note(status="misuse", message=broken, cause="misuse")
        return MISUSE

    def compile(self, info: TargetInfo) -> Failure | None:
        """Compile the target; the failure when that fails."""
        started = self.clock.spent
        failure = self.bench.compile(max(60.0, COMPILE_SHARE * self.options.budget))
        self.compiles += 1
        took = self.clock.spent - started
        if failure is None:
            self.console.say("compile", f"ok ({took:.1f} s)")
        else:
            self.console.say("compile", f"failed after {took:.1f} s in stage {failure.stage}")
        return failure

    def search(self, info: TargetInfo) -> fuzz.Finding | None:
        """Search for a failing input."""
        space = fuzz.InputSpace(info.program, fuzz.mine_constants(self.bench.generated_code()))
        examples = self._given or info.examples
        started = self.clock.spent
        with self.console.bar("fuzz", total=self.options.most_inputs, unit=" inputs") as bar:
            report = fuzz.search(
                space,
                self.bench.judge,
                examples,
                seed=self.options.seed,
                calls=info.calls,
                most=self.options.most_inputs,
                give_up=self.clock.past(FUZZ_SHARE),
                settle=self.clock.past(MILD_SHARE),
                progress=bar.at,
            )
        took = max(self.clock.spent - started, 1e-3)
        end = f"failure at input {report.finding.tried}" if report.finding else "no failure"
        self.console.say(
            "fuzz",
            f"{report.tried} inputs · {report.tried / took:.0f}/s · "
            f"{report.invalid} refused by eager or guards · {end}",
        )
        also = tuple(f"{s}: {f.failure.message.splitlines()[0][:200]}" for s, f in report.also.items())
        self.note(inputs_tried=report.tried, findings=also)
        return report.finding

    def nothing(self) -> int:
        """Say that nothing failed."""
        self.console.say("result", "nothing failed within the budget", always=True)
        self.note(status="none")
        self.folder.write("report.md", report_markdown(self.record))
        return NONE

    def case_of(self, info: TargetInfo, finding: fuzz.Finding | None) -> Case:
        """The finding as a case of the translated program."""
        values = finding.values if finding is not None else info.examples
        modules = (info.files[0],) if custom_namespaces(info.program) else ()
        settings = Settings(
            config=info.config, calls=finding.calls if finding else info.calls, modules=modules
        )
        return Case(info.program, tuple(values), settings)

    def capture(
        self, info: TargetInfo, finding: fuzz.Finding | None, failure: Failure, case: Case
    ) -> Determinism:
        """Replay in fresh processes and climb the ladder until it always fails."""

        def replay(rung: Rung) -> Verdict:
            if failure.stage != "run" and failure.stage != "load":
                return self._recompile(failure)
            bench = TargetBench(self.sandbox, self.bench.request, self.bench.package, rung.environment)
            try:
                return bench.judge(case.values, case.settings.calls + rung.extra_calls)
            finally:
                bench.close()

        if failure.kind == "hang" and failure.stage != "run":
            return Determinism(LADDER[0], 1, 1, failure)  # minutes each; the growth curve is the evidence
        runs = 2 if failure.kind == "hang" else 5
        with self.console.bar("capture"):
            found = capture(failure, replay, runs=runs, give_up=self.clock.past(REDUCE_SHARE))
        how = "deterministic" if found.certain else "flaky"
        rung = "" if found.rung.name == "as it is" else f", {found.rung.name}"
        self.console.say("capture", f"fails {found.failures} of {found.runs} fresh runs ({how}{rung})")
        known = {"runs": found.runs, "failures": found.failures, "rung": found.rung.name}
        self.note(determinism=known)
        return found

    def _recompile(self, failure: Failure) -> Verdict:
        """Compile the target again in a fresh worker, no further than the failing stage."""
        bench = TargetBench(self.sandbox, self.bench.request, self.sandbox.scratch / "again.pt2")
        try:
            for level in LEVELS.get(failure.stage, ("full",)):
                again = bench.compile(max(60.0, COMPILE_SHARE * self.options.budget), level)
                self.compiles += level != "lower"
                if again is not None:
                    return Verdict("fail", again)
            return Verdict("pass")
        finally:
            bench.close()

    def _on_rung(self, case: Case, found: Determinism) -> Case:
        if not found.failures:
            return case
        settings = replace(
            case.settings,
            environment=found.rung.environment,
            calls=case.settings.calls + found.rung.extra_calls,
        )
        return replace(case, settings=settings)

    def region(self, info: TargetInfo, finding: fuzz.Finding, failure: Failure) -> None:
        """Ask the artifact for other sizes and say which fail."""
        if not info.program.symbols or failure.stage != "run" or self.clock.past(MILD_SHARE)():
            return
        space = fuzz.InputSpace(info.program)
        failing = Case(info.program, finding.values).sizes
        fatal = failure.kind in ("crash", "hang", "memory_error")
        budget = REGION_SIZES_FATAL if fatal else REGION_SIZES
        if failure.kind == "hang":
            return
        judged: list[tuple[dict[str, int], bool]] = [(failing, True)]
        until = self.clock.spent + 0.08 * self.options.budget
        for sizes in region.probe_sizes(space.symbols, failing, budget, fits=space.fits):
            if self.clock.spent > until:
                break
            if sizes == failing:
                continue
            values = _resized(space, finding.values, sizes)
            if values is None:
                return
            verdict = self.bench.judge(values, finding.calls)
            if verdict.status in ("pass", "fail"):
                same = verdict.failure is not None and verdict.failure.signature == failure.signature
                judged.append((sizes, same))
        found = region.find_region(judged, space.symbols)
        if found is None:
            return
        self.console.say("region", found.in_words())
        self.note(
            region={
                "predicate": found.predicate,
                "sizes_tried": found.sizes_tried,
                "sizes_failing": found.sizes_failing,
            }
        )

    def _store(self, case: Case, failure: Failure) -> None:
        known = {
            name: getattr(self.record, name)
            for name in ("inputs_tried", "region", "determinism", "nodes_before", "dynamic_dims_before")
        }
        about = {"failure": {k: getattr(failure, k) for k in Failure.__dataclass_fields__}, "known": known}
        self.folder.save_case(case, about=about)

    def finish(self, info: TargetInfo, case: Case, failure: Failure, found: Determinism) -> int:
        """Reduce, pinpoint and hand over."""
        narrowed = None
        if not info.untranslatable and failure.kind != "hang":
            narrowed = self.reduce(case, failure, found)
        if failure.kind == "hang" and not info.untranslatable:
            case = self.shorten_hang(case, failure)
        best = narrowed.case if narrowed else case
        final = narrowed.failure if narrowed else failure
        self.note(
            nodes_after=best.program.operator_count if not info.untranslatable else None,
            dynamic_dims_after=best.program.dynamic_dims,
            program=best.program,
            cause=self._cause(best),
        )
        if narrowed is not None:
            kernel = find_kernel(self.sandbox, best, self.folder.store, final)
            if kernel is not None:
                self.console.say("kernel", kernel.text)
                self.note(kernel=kernel.summary)
        return handing.hand_over(self, best, final, narrowed, found)

    def reduce(self, case: Case, failure: Failure, found: Determinism) -> Narrowed | None:
        """Reduce the graph, then the inputs, under the same signature."""
        observed = self.observe(case)
        if observed is None:
            return None
        started, total = self.clock.spent, case.program.operator_count
        also: dict[Signature, tuple[Case, Failure]] = {}

        def shown(progress: Progress) -> None:
            bar.at(progress.judged, f"{progress.nodes_before} → {progress.nodes} nodes, {progress.pass_name}")

        def accepted(best: Case) -> None:
            self.folder.save_case(best, "case/best")

        with self.console.bar("reduce", unit=" judged") as bar:
            narrowed = narrow(
                self.cases,
                case,
                failure,
                observed,
                repeats=found.repeats,
                deadline=self.clock.past(REDUCE_SHARE),
                journal=lambda level: FileJournal(self.folder.path / f"journal-{level}.jsonl"),
                on_progress=shown,
                on_accept=accepted,
                also=also,
            )
        took = self.clock.spent - started
        self.cases.close()
        if self.cases.errors:
            self.folder.write("internal_error.txt", "\n\n".join(self.cases.errors))
            self.console.say(
                "", f"{len(self.cases.errors)} candidates could not be judged: internal_error.txt"
            )
        for k, (other, seen) in enumerate(also.values()):
            self.folder.save_case(other, f"also/{k}-{seen.kind}", {"message": seen.message[:500]})
        if narrowed is None:
            self.console.say(
                "reduce", "the translated graph does not show the failure; it is handed over whole"
            )
            return None
        after = narrowed.case.program.operator_count
        result = narrowed.reduction
        if narrowed.note:
            self.console.say("", narrowed.note)
        proof = narrowed.certificate
        minimal = bool(result.complete and proof is not None and proof.complete and proof.minimal)
        self.console.say(
            "reduce",
            f"{total} → {after} nodes · {self.cases.judged} candidates judged · {took:.1f} s"
            + ("" if minimal else " · not proven minimal (the budget ended)"),
        )
        self.note(candidates=self.cases.judged, minimal=minimal)
        return narrowed

    def observe(self, case: Case) -> dict[str, Observed] | None:
        """What eager computes for every value of the program on the failing inputs."""
        worker = self.sandbox.worker()
        try:
            seen = worker.call(
                TASKS + "observe", case, str(self.folder.store.resolve()), "seen_", timeout=self.bench.timeout
            )
        except (TaskError, WorkerLost) as problem:
            self.console.say("reduce", f"not possible: the graph cannot be run call by call ({problem})")
            return None
        finally:
            worker.close()
        found = {}
        for observation in seen:
            meta = case.program.meta_of(observation.name)
            if hasattr(meta, "shape"):
                found[observation.name] = Observed(meta, observation.value)
        self._observed = found
        return found

    def shorten_hang(self, case: Case, failure: Failure) -> Case:
        """A shorter program whose compilation does not end. Raises Unusable when it is merely slow."""
        observed = self.observe(case)
        if observed is None or failure.stage == "run":
            return case
        names = units(case.program)
        self.cases.timeout = max(10.0, min(30.0, 0.1 * self.options.budget))

        def compile_prefix(nodes: int) -> float | None:
            shorter = keep(case, names[:nodes], observed)
            if shorter is None:
                return 0.0
            started = self.clock.spent
            verdict = self.cases.judge(shorter, "kernel", fresh=True)
            hangs = verdict.failure is not None and verdict.failure.kind == "hang"
            return None if hangs else self.clock.spent - started

        with self.console.bar("growth"):
            curve = growth.measure(len(names), compile_prefix, self.cases.timeout)
        self.console.say("growth", curve.text)
        if not curve.blows_up or curve.shortest is None:
            raise Unusable(
                f"compiling {self.options.target.name} has {failure.message} and seems merely "
                f"slow ({curve.text}); give it more time with --budget"
            )
        self.note(figures=f"compile time: {curve.text}")
        # One step further than the shortest, so that a faster machine hangs as well.
        further = min(len(names), round(1.3 * curve.shortest))
        return keep(case, names[:further], observed) or case

    def _cause(self, case: Case) -> str:
        """Who is to blame, as far as is known."""
        spaces = custom_namespaces(case.program)
        if not spaces:
            return "compiler"
        for node in case.program.nodes:
            if node.target.split(".")[0] in spaces and _fake_disagrees(
                node.name, node.meta, self._observed, case
            ):
                return "custom op"
        return "unknown"


def _fake_disagrees(name: str, meta: object, observed: dict[str, Observed], case: Case) -> bool:
    """Whether a custom operator's shape function promised something else than the operator gave."""
    from minimizer.program import TensorMeta
    from minimizer.symbolic import evaluate

    seen = observed.get(name)
    if seen is None or not isinstance(meta, TensorMeta):
        return False
    try:
        promised = tuple(evaluate(size, case.sizes) for size in meta.shape)
    except KeyError:
        return False
    return promised != seen.value.shape or meta.dtype != seen.value.dtype


def _headline(failure: Failure) -> str:
    names = {
        "wrong_value": "wrong output",
        "wrong_metadata": "wrong kind of output",
        "compile_error": "the compiler raises",
        "cxx_error": "the generated C++ does not compile",
        "runtime_error": "the compiled program raises",
        "lost_error": "an error is lost",
    }
    first = failure.message.splitlines()[0] if failure.message else ""
    return f"{names.get(failure.kind, failure.kind.replace('_', ' '))}: {first[:200]}"


def _inputs_text(program: Program, values: Sequence[Value]) -> str:
    lines = []
    for i, value in zip(program.inputs, values):
        layout = "contiguous" if value.stride is None else f"strides {list(value.stride)}"
        lines.append(f"\n{i.name}: {value.dtype}{list(value.shape)} {layout}")
    return "".join(lines[:6])


def _described(value: Value) -> dict[str, object]:
    from minimizer.case import contiguous_stride

    stride = value.stride or contiguous_stride(value.shape)
    return {"shape": list(value.shape), "stride": list(stride), "dtype": value.dtype, "device": value.device}


def _signature_text(program: Program) -> str:
    count = f"{len(program.inputs)} input{'s' if len(program.inputs) != 1 else ''}"
    dims = []
    for symbol in program.symbols:
        high = "∞" if symbol.high is None else symbol.high
        where = next(
            (
                f"dim {dim} of {i.name}"
                for i in program.inputs
                for dim, size in enumerate(i.meta.shape)
                if size == symbol.name
            ),
            symbol.name,
        )
        dims.append(f"{where} in [{symbol.low}, {high}]")
    return ", ".join([count, *dims]) if dims else f"{count}, static"


def _resized(
    space: fuzz.InputSpace, values: Sequence[Value], sizes: dict[str, int]
) -> tuple[Value, ...] | None:
    """The same kinds of values at other sizes; stored examples become ordinary numbers."""
    from strategies import Draw, telling_fills
    from strategies.values import Fill

    fills = []
    for value, spec in zip(values, space.specs):
        fills.append(value.data if isinstance(value.data, Fill) else telling_fills(*spec)[0])
    return space.values(Draw(tuple(sizes.items()), tuple(fills)))
