"""What makes it vanish? The reduced case again, under one other setting at a time.

That is the *ablation* which maintainers ask for. A setting under which the failure vanishes points to the
part that makes it: vector code, threads, fusion, a graph pass, a decomposition, buffer reuse, the C++
compiler. A row is judged at the level where the failure shows, so none compiles a package that need not be.
Rows come in order of likelihood, since the time is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from minimizer.capture import alike
from minimizer.case import Case
from minimizer.oracle.case_bench import CaseBench
from minimizer.oracle.losses import loss_verdict
from minimizer.oracle.verdict import RAISED, Failure, Verdict
from minimizer.sandbox import Sandbox, TaskError, WorkerLost

FAILS, VANISHES, NOT_APPLICABLE = "fails", "vanishes", "not applicable"

BACKENDS = "minimizer.oracle.backends:"
"""Prefix of the tasks that need other parts of the compiler."""

ROW_TIMEOUT = 60.0
"""Seconds for one row."""

_UNCACHED = ("cpp_cache_precompile_headers", False)
"""Other compiler flags need other precompiled headers, which cost more than compiling without any."""


@dataclass(frozen=True)
class Setting:
    """One row: Inductor options that differ from the case's; `stages` where they can matter."""

    name: str
    config: tuple[tuple[str, Any], ...]
    stages: tuple[str, ...] = ("run", "cxx", "lower")


SETTINGS = (
    Setting("no pattern matcher", (("pattern_matcher", False),)),
    Setting("no fusion", (("max_fusion_size", 1), ("cpp.max_horizontal_fusion_size", 1))),
    Setting("one thread", (("cpp.threads", 1),), ("run", "cxx")),
    Setting("no buffer reuse", (("allow_buffer_reuse", False), ("inplace_buffers", False)), ("run",)),
    Setting("scalar code", (("cpp.simdlen", 1), _UNCACHED), ("run", "cxx")),
    Setting("every operator from ATen", (("fallback_by_default", True),)),
    Setting("constants folded at compile time (freezing)", (("freezing", True),)),
    Setting("no joint-graph constant folding", (("joint_graph_constant_folding", False),)),
    Setting("no layout optimisation", (("layout_optimization", False),)),
    Setting("C++ without optimisation (-O0)", (("aot_inductor.debug_compile", True), _UNCACHED), ("run",)),
)
"""Settings in order of likelihood, judged one at a time."""


@dataclass(frozen=True)
class Row:
    """One setting and what the case does under it."""

    setting: str
    result: str


@dataclass
class Ablation:
    """Judges one reduced case under other settings.

    `level` is where the failure shows (see `stages.LEVELS`); `repeats` is how many passes count as one, for
    failures that come and go; `left` is how many seconds there still are; `in_torch_compile` is set once
    the failure has been seen there too.
    """

    sandbox: Sandbox
    bench: CaseBench
    case: Case
    failure: Failure
    level: str
    repeats: int = 1
    left: Callable[[], float] = lambda: ROW_TIMEOUT
    in_torch_compile: bool = False

    @property
    def late(self) -> bool:
        """Whether no new row is to be begun."""
        return self.left() <= 0

    def rows(self) -> Iterator[Row]:
        """One row after the other; none when the case does not fail at the level as it is."""
        as_is = self._judge(self.case)
        if not as_is.failed or as_is.failure is None:
            return
        yield from self._other_path()
        yield from self._settings(as_is.failure)
        yield from self._milder_backends()

    def _settings(self, here: Failure) -> Iterator[Row]:
        """The compiler's own settings; `here` is how the case fails at the level."""
        if self.late:
            return
        yield Row("no decomposition of its operators", self._word(self._undecomposed(), here))
        for setting in SETTINGS:
            if self.late:
                return
            changed = {**dict(self.case.settings.config), **dict(setting.config)}
            if self.failure.stage not in setting.stages or changed == dict(self.case.settings.config):
                continue
            case = replace(self.case, settings=replace(self.case.settings, config=tuple(changed.items())))
            yield Row(setting.name, self._word(self._judge(case), here))

    def _other_path(self) -> Iterator[Row]:
        """How torch.compile does what fails under AOTInductor, or the other way round."""
        here = self.case.settings.path
        name, path = (_INDUCTOR, "inductor") if here == "aoti" else (_AOTI, "aoti")
        other = replace(self.case, settings=replace(self.case.settings, path=path))
        result = self._backend_word(self.bench.judge(other, "full", fresh=True))
        self.in_torch_compile = here != "aoti" or result.startswith(FAILS)
        yield Row(name, result)

    def _milder_backends(self) -> Iterator[Row]:
        """Other backends of torch.compile, while the stronger one fails."""
        if not self.in_torch_compile:
            return
        for backend in ("aot_eager", "eager"):
            if self.late:
                return
            result = self._backend_word(self._ask("judge_backend", self.case, str(self.bench.store), backend))
            yield Row(f"torch.compile(backend={backend!r})", result)
            if not result.startswith(FAILS):
                return

    def bisected(self) -> str:
        """What PyTorch's bisector blames, in words; empty when it blames nothing or cannot be asked.

        Only for failures that leave the process alive, since all its runs share one.
        """
        kind = self.failure.kind
        if not self.in_torch_compile or kind in ("crash", "memory_error", "hang") or self.late:
            return ""
        worker = self.sandbox.worker(self.case.settings.environment)
        try:
            found = worker.call(
                f"{BACKENDS}bisect", self.case, str(self.bench.store), kind, timeout=max(5.0, self.left())
            )
        except (TaskError, WorkerLost):
            return ""
        finally:
            worker.close()
        if found is None:
            return ""
        backend, subsystem, number, what = found
        parts = [backend, subsystem, f"number {number}" if number else "", " ".join(what.split())[:200]]
        return " · ".join(dict.fromkeys(part for part in parts if part))

    def _judge(self, case: Case) -> Verdict:
        verdict = Verdict("invalid")
        for _ in range(self.repeats):
            verdict = self.bench.judge(case, self.level, fresh=True)
            if verdict.status != "pass":
                break
        return verdict

    def _undecomposed(self) -> Verdict:
        package = str(self.sandbox.scratch / "undecomposed.pt2")
        verdict = self._ask(
            "judge_without_decompositions", self.case, str(self.bench.store), package, self.level
        )
        Path(package).unlink(missing_ok=True)
        return verdict

    def _ask(self, task: str, *args: object) -> Verdict:
        worker = self.sandbox.worker(self.case.settings.environment)
        try:
            verdict: Verdict = worker.call(BACKENDS + task, *args, timeout=ROW_TIMEOUT)
            return verdict
        except WorkerLost as lost:
            return loss_verdict(lost)
        except TaskError as problem:
            return Verdict("invalid", reason=str(problem)[:300])
        finally:
            worker.close()

    def _word(self, verdict: Verdict, here: Failure) -> str:
        if verdict.status == "pass":
            return VANISHES
        if verdict.failure is None:
            return NOT_APPLICABLE
        if alike(verdict.failure.signature, here.signature):
            return FAILS
        return f"{FAILS} otherwise: {verdict.failure.kind.replace('_', ' ')}"

    def _backend_word(self, verdict: Verdict) -> str:
        """As `_word`; errors may be raised elsewhere there, and Dynamo has refusals of its own."""
        failure = verdict.failure
        if failure is not None and failure.exception in _REFUSALS:
            return NOT_APPLICABLE
        if failure is not None and failure.kind in RAISED and self.failure.kind in RAISED:
            return FAILS
        return self._word(verdict, self.failure)


_BACKEND = "torch.compile("
_INDUCTOR, _AOTI = f"{_BACKEND}backend='inductor')", "AOTInductor"
"""The two compile paths, as rows name them."""
_REFUSALS = ("Unsupported", "UserError", "InternalTorchDynamoError")


def blamed(rows: list[Row]) -> str:
    """The settings under which it vanishes, for one line, and whether torch.compile fails too."""
    backends = [row for row in rows if row.setting.startswith((_BACKEND, _AOTI))]
    settings = [row for row in rows if row not in backends]
    gone = [row.setting for row in settings if row.result == VANISHES]
    stays = [row.setting for row in settings if row.result == FAILS]
    parts = []
    if gone:
        parts.append(f"vanishes with: {', '.join(gone)}")
    if stays:
        parts.append(f"fails all the same with: {', '.join(stays)}")
    parts += [f"{row.setting} {'passes' if row.result == VANISHES else row.result}" for row in backends]
    return "\n".join(parts)
