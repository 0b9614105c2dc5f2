"""The pipeline: open → compile → fuzz → capture → region → reduce → pinpoint → hand over.

Each step says in one line what it found; each result is on disk before the next step begins, so that an
interruption keeps the best so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import hypothesis.configuration

from minimizer import brought, fuzz, handing, outside, steady
from minimizer.capture import Determinism, Rung
from minimizer.capturing import capture_case, on_rung
from minimizer.case import MANNERS, Case, Settings, Value, Values
from minimizer.console import Console
from minimizer.contract import Misuse
from minimizer.devices import survey
from minimizer.diagnosis import diagnose
from minimizer.exploring import Elsewhere, explore
from minimizer.folder import RunFolder
from minimizer.handover.record import RunRecord
from minimizer.handover.reports import write_record, write_reports
from minimizer.input_space import InputSpace, mine_constants
from minimizer.kernel_alone import hand_over_kernel
from minimizer.mapping import map_region
from minimizer.options import (
    COMPILE_SHARE,
    FAILURE,
    LEAST_SEARCH_SHARE,
    MILD_SHARE,
    MISUSE,
    NONE,
    OPEN_SHARE,
    OUTSIDE_SHARE,
    REDUCE_SHARE,
    REGION_SHARE,
    SANITIZED_COMPILE,
    SIGNS_LIMIT,
    STEADY_SHARE,
    Clock,
    Meter,
    Options,
    Unusable,
)
from minimizer.oracle.case_bench import CaseBench
from minimizer.oracle.requests import TargetInfo, TargetRequest
from minimizer.oracle.target_bench import TargetBench
from minimizer.oracle.verdict import Failure, Verdict
from minimizer.pinpoint.search import pinpoint
from minimizer.reducing import observe, reduce_case, shorten_hang
from minimizer.sandbox import Sandbox, TaskError, WorkerLost
from minimizer.sandbox.asan import is_asan
from minimizer.source import custom_namespaces
from minimizer.stuck import first_signs
from minimizer.waiting import waiting
from minimizer.wording import described, ending, headline, inputs_text, not_opened, signature_text


class Run:
    """One run over one target. `interrupted` is set from outside, by a signal."""

    def __init__(self, options: Options, console: Console, folder: RunFolder, sandbox: Sandbox) -> None:
        self.options = options
        self.console = console
        self.folder = folder
        self.sandbox = sandbox
        self.clock = Clock(options.budget)
        self.meter = Meter(sandbox.cpu_seconds)
        self.record = RunRecord(target=options.target.name, command=options.command)
        self.store = str(folder.store.resolve())
        self.request = TargetRequest(
            str(options.target.resolve()),
            self.store,
            options.model,
            options.inputs,
            options.config,
            options.wanted.base,
        )
        self.package = sandbox.scratch / "target.pt2"
        self.bench = TargetBench(sandbox, self.request, self.package, options.environment)
        self.bench.open_timeout = max(60.0, OPEN_SHARE * options.budget)
        self.cases = CaseBench(sandbox, folder.store.resolve())
        if is_asan(options.environment):
            self.cases.timeout = SANITIZED_COMPILE
        self.compiles = 0
        self.files: tuple[str, ...] = ()
        self.interrupted = False
        self.best: tuple[Case, Failure] | None = None
        self._given: Sequence[Value] | None = None

    def note(self, **known: Any) -> None:
        """Add to what is known, and write it down."""
        self.record = replace(self.record, **known)
        self.record = replace(
            self.record,
            wall_seconds=self.clock.spent,
            cpu_seconds=self.sandbox.cpu_seconds(),
            cpu_seconds_by_step=self.meter.steps,
            compiles=self.compiles + self.cases.compiles,
        )
        write_record(self.folder, self.record)

    def go(self) -> int:
        """Run every step; the exit status. Raises Unusable, and KeyboardInterrupt when interrupted."""
        info = self.open()
        self.meter.mark("open")
        broken = self.breaks_contract(info) if self.options.check_inputs else None
        if broken:
            return self.misused(broken)
        resumed = self.folder.load_case() if self.options.resume else None
        if resumed is not None:
            case, about = resumed
            failure = Failure(**about["failure"])
            self.note(**about["known"])
            found = Determinism(Rung(**about["rung"]), about["runs"], about["failures"], failure)
            self.console.say("resume", headline(failure))
        else:
            finding = None
            failed = self.compile()
            self.meter.mark("compile")
            if failed is None:
                self.look_outside(info)
                answer = self.judge_given(info)
                if answer.misuse:
                    return self.misused(answer.misuse)
                if self.options.devices:
                    survey(self)
                finding = answer.finding or self.search(info)
                failed = finding.failure if finding is not None else None
                self.meter.mark("fuzz")
            if failed is None:
                elsewhere = explore(self, info)
                self.meter.mark("variants")
                if elsewhere is None:
                    return self.nothing()
                info, finding, failed = self.move(elsewhere), elsewhere.finding, elsewhere.failure
            case = self.case_of(info, finding)
            self.describe(failed, case)
            before = finding.before if finding is not None else ()
            found = capture_case(self, failed, case, before)
            self.meter.mark("capture")
            case, failure = on_rung(case, found.rung, before), found.failure
            if finding is not None and not finding.manner:
                self.region(info, replace(finding, earlier=case.earlier), failure)
                self.meter.mark("region")
            self._store(case, failure, found)
            if self.options.fuzz_only:
                return self.stop_at(case)
        self.describe(failure, case, quiet=True)
        self.best = (case, failure)
        return self.finish(info, case, failure, found)

    def ask(self, task: str, *args: Any, timeout: float = 120.0) -> Any:
        """What a worker of its own answers to a task. Raises TaskError and WorkerLost."""
        worker = self.sandbox.worker()
        try:
            return worker.call(task, *args, timeout=timeout)
        finally:
            worker.close()

    def move(self, elsewhere: Elsewhere) -> TargetInfo:
        """Go on with the artifact of a variant; what it tells of the target."""
        self.bench.close()
        self.bench = elsewhere.bench
        self.request, self.package = self.bench.request, self.bench.package
        return elsewhere.info

    def open(self) -> TargetInfo:
        """Open the target and say what it is. Raises Unusable."""
        name = self.options.target.name
        try:
            with waiting(self.bench, "open", self.console):
                info = self.bench.open()
        except TaskError as problem:
            if problem.exception == "Unusable":
                raise Unusable(problem.message) from None
            log = self.folder.write("internal_error.txt", problem.traceback)
            raise Unusable(f"{name} cannot be opened: {problem} (details in {log})") from None
        except WorkerLost as lost:
            raise Unusable(not_opened(name, lost)) from None
        self.files = info.files
        program = info.program
        nodes = f"{program.operator_count} ATen nodes" if not info.untranslatable else "graph not translated"
        self.console.say("target", f"{name}: {signature_text(program)}; {nodes}; {' '.join(info.devices)}")
        if info.remark:
            self.console.say("", info.remark)
        if info.untranslatable:
            self.console.say("", f"the graph cannot be reduced: {info.untranslatable}")
        if is_asan(self.options.environment):
            self.console.say("sanitize", "AddressSanitizer, scalar code: not the code that is generated else")
        self.note(
            nodes_before=None if info.untranslatable else program.operator_count,
            dynamic_dims_before=program.dynamic_dims,
            versions=dict(info.versions),
        )
        return info

    def breaks_contract(self, info: TargetInfo) -> Misuse | None:
        """The promise that the inputs which the person brought break. Raises Unusable."""
        name = self.options.check_inputs
        try:
            given = brought.read(self.bench, info.program, name)
        except TaskError as problem:
            raise Unusable(problem.message if problem.exception == "Unusable" else str(problem)) from None
        except WorkerLost as lost:
            raise Unusable(f"--check-inputs {name} {ending(lost)}") from None
        if isinstance(given, Misuse):
            return given
        self._given = given
        return None

    def misused(self, misuse: Misuse) -> int:
        """Say how the program was used outside its contract."""
        self.console.say("misuse", str(misuse), always=True)
        self.note(status="misuse", message=str(misuse), cause="misuse")
        write_reports(self.folder, self.record)
        return MISUSE

    def judge_given(self, info: TargetInfo) -> brought.Answer:
        """Judge the inputs that the person brought, before any search."""
        if self._given is None:
            return brought.Answer()
        answer = brought.judge(self.bench, self._given)
        if answer.said:
            self.console.say("inputs", f"{self.options.check_inputs}: {answer.said}")
        self.note(inputs_tried=1)
        return answer

    def look_outside(self, info: TargetInfo) -> None:
        """Say what calls outside the contract come to, when asked. No failure comes of it."""
        if not self.options.out_of_contract:
            return
        until = self.clock.spent + OUTSIDE_SHARE * self.options.budget
        with self.console.bar("outside", unit=" calls") as bar:
            found = outside.look(
                lambda: TargetBench(
                    self.sandbox, self.request, self.package, self.options.environment, info=info
                ),
                info.program,
                info.examples,
                over=lambda: self.clock.spent > until,
                progress=bar.at,
            )
        self.console.say("outside", found.text)
        self.note(out_of_contract=tuple(row.as_json() for row in found.rows))

    def compile(self) -> Failure | None:
        """Compile the target; the failure when that fails."""
        started = self.clock.spent
        with waiting(self.bench, "compile", self.console, self.first_signs):
            try:
                failure = self.bench.compile(self.compile_limit)
            except TaskError as problem:
                if problem.exception != "Exhausted":
                    raise
                name = self.options.target.name
                raise Unusable(
                    f"compiling {name} needs more than this machine gives: {problem.message}"
                ) from None
        self.compiles += 1
        took = self.clock.spent - started
        ended = "ok" if failure is None else f"failed in stage {failure.stage}"
        self.console.say("compile", f"{ended} ({took:.1f} s)")
        return failure

    def first_signs(self) -> str:
        """What shorter programs take to lower, while all of it takes long; empty when that is not known."""
        info = self.bench.info
        if info is None or info.untranslatable:
            return ""
        case = self.case_of(info, None)
        observed = observe(self, case)
        return first_signs(self.cases, case, observed, SIGNS_LIMIT) if observed else ""

    @property
    def compile_limit(self) -> float:
        """Seconds after which a compilation counts as one that does not end."""
        least = SANITIZED_COMPILE if is_asan(self.options.environment) else 60.0
        return max(least, COMPILE_SHARE * self.options.budget)

    def search(self, info: TargetInfo) -> fuzz.Finding | None:
        """Search for a failing input."""
        hypothesis.configuration.set_hypothesis_home_dir(self.sandbox.scratch / "hypothesis")
        space = InputSpace(info.program, mine_constants(self.bench.generated_code()))
        started = self.clock.spent
        with self.console.bar("fuzz", total=self.options.most_inputs, unit=" inputs") as bar:
            report = fuzz.search(
                space,
                self.bench.judge_many,
                info.examples,
                seed=self.options.seed,
                stateful=info.stateful,
                most=self.options.most_inputs,
                give_up=self.clock.past(self.options.search_share, least=LEAST_SEARCH_SHARE),
                settle=self.clock.past(MILD_SHARE, least=0.5 * LEAST_SEARCH_SHARE),
                progress=bar.at,
            )
        took = max(self.clock.spent - started, 1e-3)
        end = f"failure at input {report.finding.tried}" if report.finding else "no failure"
        self.console.say(
            "fuzz",
            f"{report.tried} inputs · {report.tried / took:.0f}/s · "
            f"{report.invalid} refused by eager or guards · {end}",
        )
        if report.hollow:
            self.console.say("", report.hollow)
        also = tuple(f"{s}: {f.failure.message.splitlines()[0][:200]}" for s, f in report.also.items())
        self.note(inputs_tried=report.tried, inputs_refused=report.invalid, findings=also)
        return report.finding or self.unsteady(info, report.passed)

    def unsteady(self, info: TargetInfo, passed: Sequence[Values]) -> fuzz.Finding | None:
        """Call what was right in other manners: over and over, after a second load, from threads."""
        ways = steady.manners(info.program, info.stateful, self.request.variant.path)
        give_up = self.clock.past(self.options.search_share + STEADY_SHARE, least=STEADY_SHARE)
        finding, tried = steady.unsteady(self.bench.judge, ways, tuple(info.examples), passed, give_up)
        if tried:
            ended = "right" if finding is None else f"wrong {MANNERS[finding.manner]}"
            self.console.say("again", f"called {', '.join(MANNERS[way] for way in tried)}: {ended}")
        return finding

    def nothing(self) -> int:
        """Say that nothing failed."""
        self.console.say("result", "nothing failed within the budget", always=True)
        self.note(status="none")
        write_reports(self.folder, self.record)
        return NONE

    def case_of(self, info: TargetInfo, finding: fuzz.Finding | None) -> Case:
        """The finding as a case of the translated program."""
        values = finding.values if finding is not None else info.examples
        modules = (info.files[0],) if custom_namespaces(info.program) else ()
        earlier = finding.earlier if finding is not None else ()
        settings = Settings(
            self.request.variant.path,
            config=info.config,
            environment=self.options.environment,
            modules=modules,
            manner=finding.manner if finding is not None else "",
        )
        return Case(info.program, tuple(values), settings, earlier)

    def describe(self, failure: Failure, case: Case, *, quiet: bool = False) -> None:
        """Say and note what fails."""
        if not quiet:
            self.console.say("failure", headline(failure) + inputs_text(case.program, case.values))
        self.note(
            status="failure",
            kind=failure.kind,
            stage=failure.stage,
            signature=str(failure.signature),
            message=failure.message[:2000],
            detail=failure.detail,
            figures=failure.figures,
            failing_input=tuple(map(described, case.values)),
            earlier_inputs=tuple(tuple(map(described, call)) for call in case.earlier) or None,
            settings=dict(case.settings.config),
        )

    def region(self, info: TargetInfo, finding: fuzz.Finding, failure: Failure) -> None:
        """Ask the artifact for other sizes and say which fail."""
        until = self.clock.spent + REGION_SHARE * self.options.budget
        with self.console.bar("region"):
            found = map_region(
                info.program, finding, failure, self._judge_alike, lambda: self.clock.spent > until
            )
        if found is not None:
            self.console.say("region", found.in_words())
            self.note(region=asdict(found))

    def _judge_alike(self, *calls: Values) -> Verdict:
        """Judge inputs that differ from a known failing one in size only."""
        if self.bench.guards_reject(calls[-1]):
            return Verdict("invalid", reason="out of contract")
        return self.bench.judge(*calls, plainly=True)

    def _store(self, case: Case, failure: Failure, found: Determinism) -> None:
        """Write down all that `--resume` needs to go on from here."""
        names = ("inputs_tried", "region", "determinism", "nodes_before", "dynamic_dims_before", "findings")
        about = {
            "failure": asdict(failure),
            "rung": asdict(found.rung),
            "runs": found.runs,
            "failures": found.failures,
            "known": {name: getattr(self.record, name) for name in names},
        }
        self.folder.save_case(case, about=about)

    def stop_at(self, case: Case) -> int:
        """End with the case as it was captured."""
        self.note(program=case.program, title="")
        write_reports(self.folder, self.record)
        where = self.folder.path
        self.console.say("case", f"{where / 'case'} · go on with: aoti-minimize reduce {where}", always=True)
        return FAILURE

    def finish(self, info: TargetInfo, case: Case, failure: Failure, found: Determinism) -> int:
        """Reduce, pinpoint and hand over."""
        narrowed = None
        if not info.untranslatable and failure.kind == "hang" and failure.stage != "run":
            case = shorten_hang(self, case, failure)
        elif not info.untranslatable:
            narrowed = reduce_case(self, case, failure, found)
        self.meter.mark("reduce")
        best = narrowed.case if narrowed else case
        final = narrowed.failure if narrowed else failure
        whole = bool(info.untranslatable)
        self.note(
            nodes_after=None if whole else best.program.operator_count,
            dynamic_dims_after=best.program.dynamic_dims,
            program=None if whole else best.program,
        )
        if narrowed is not None:
            self.note(message=final.message[:2000], detail=final.detail, figures=final.figures)
            self.kernel(best, final)
            self.meter.mark("kernel")
        diagnose(self, failure, best, narrowed, found)
        if narrowed is None and not (final.kind == "hang" and best.program.operators):
            return handing.hand_over_whole(self, best, final, found)
        return handing.hand_over(self, best, final, narrowed, found)

    def kernel(self, case: Case, failure: Failure) -> None:
        """Say which generated kernel is at fault, or what else; hand the kernel over alone."""
        with self.console.bar("kernel"):
            found = pinpoint(self.sandbox, case, self.folder.store, failure, self.record.cause or "")
            versions = dict(self.record.versions or {})
            alone = hand_over_kernel(
                self.sandbox,
                self.folder,
                self.folder.store,
                found,
                case,
                versions.get("torch", ""),
                self.clock.past(REDUCE_SHARE),
            )
        self.console.say("kernel", alone.fault.text + (f"\n{alone.note}" if alone.note else ""))
        self.note(kernel=alone.summary, kernel_repro=alone.text, native_stack=alone.stack)
