"""What the answers of eager, of the exported and of the compiled program mean: the verdict on one call.

Eager says what is right; a program that eager refuses proves nothing unless the compiled one goes on. The
exported program with its guards says what was promised. Where both accept and the compiled program answers
otherwise, and no legal execution would (`envelope`), the compiler is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch

from minimizer.oracle.compare import Mismatch, compare, compare_leaf
from minimizer.oracle.envelope import PLAIN, Envelope
from minimizer.oracle.exported import Exported, Flat, Run
from minimizer.oracle.free import Free
from minimizer.oracle.outcome import (
    Outcome,
    clone_inputs,
    has_special_values,
    mismatch_failure,
    missing_check,
    runtime_failure,
)
from minimizer.oracle.seeds import reseed
from minimizer.oracle.verdict import ASSERTED, SEVERITY, Failure, Verdict, error_kind


class Jury:
    """Judges answers of one program; `run` calls a module as eager is called.

    What is right is seen without the exported program, so `export` is called once something is not.
    """

    def __init__(self, export: Callable[[], torch.export.ExportedProgram], run: Run) -> None:
        self._export = export
        self._run = run

    @cached_property
    def exported(self) -> Exported:
        """The exported program as a judge."""
        return Exported(self._export(), self._run)

    @cached_property
    def _graph(self) -> torch.fx.GraphModule:
        """The graph of free executions: each keeps its state to itself, so that all of them can share it."""
        graph = self._export().module(check_guards=False)
        assert isinstance(graph, torch.fx.GraphModule)
        return graph

    def compared(self, calls: Sequence[Flat], eager: Outcome, compiled: Outcome, plainly: bool) -> Verdict:
        """The verdict on the last of some calls, which eager answers; `plainly` as in `Session.judge`."""
        failure: Failure | None = None
        if compiled.problem is not None:
            refusal = self.exported.outcome(calls).problem
            if refusal is not None:
                return Verdict("invalid", reason=f"{ASSERTED}{refusal}"[:500])
            failure = runtime_failure(compiled)
        if failure is None:
            mismatches, ratio = compare(compiled.values, eager.values)
            if mismatches:
                verdict = self._judge_mismatches(mismatches, calls, eager, compiled, plainly)
                if verdict is not None:
                    return verdict
            failure = self._misplaced(calls, eager, compiled)
            if failure is None:
                return Verdict("pass", error_ratio=ratio)
        rejected = "" if plainly else self.exported.guards_reject(calls[-1])
        if rejected:
            return Verdict("invalid", reason=f"out of contract: {rejected}")
        return Verdict("fail", failure)

    def _misplaced(self, calls: Sequence[Flat], eager: Outcome, compiled: Outcome) -> Failure | None:
        """Memory that the compiled program's results share, and neither eager's nor the exported one's do."""
        extra = compiled.shared - eager.shared
        if extra:
            extra -= self.exported.outcome(calls).shared
        if not extra:
            return None
        first = min(extra)
        return Failure(
            kind="wrong_aliasing",
            stage="run",
            message=f"{first} in the compiled program, and not in eager",
            outputs=tuple(sorted({pair.output for pair in extra})),
            flavour=f"output shares memory with {first.kind}",
        )

    def refused(self, calls: Sequence[Flat], problem: Exception, compiled: Callable[[], Outcome]) -> Verdict:
        """The verdict on the last of some calls, which eager refuses; `compiled` makes it."""
        reason = f"eager raises {type(problem).__name__}: {problem}"[:500]
        if error_kind(type(problem).__name__, str(problem)) == "out_of_memory":
            return Verdict("invalid", reason=reason)  # a compiled program that does with less is no worse
        if self.exported.guards_reject(calls[-1]):
            return Verdict("invalid", reason=f"out of contract; {reason}")
        if compiled().problem is not None:
            return Verdict("invalid", reason=reason)
        if self.exported.outcome(calls).problem is None:
            return Verdict("invalid", reason=f"{reason}; the exported program does not")
        broken = self.exported.broken_assertion(calls)
        if broken:
            return Verdict("fail", missing_check(broken))
        message = f"eager raises, the compiled program returns: {problem}"[:2000]
        return Verdict("fail", Failure("lost_error", "run", message, type(problem).__name__))

    def _judge_mismatches(
        self,
        mismatches: Sequence[Mismatch],
        calls: Sequence[Sequence[Any]],
        eager: Outcome,
        compiled: Outcome,
        plainly: bool,
    ) -> Verdict | None:
        rejected = "" if plainly else self.exported.guards_reject(calls[-1])
        if rejected:
            return Verdict("invalid", reason=f"out of contract: {rejected}")
        verdict = None if plainly else self._by_export(mismatches, calls, compiled)
        if verdict is not None:
            return verdict
        envelope = Envelope(lambda seed, noise, promote: self._free(calls, seed, noise, promote))
        left: list[Mismatch] = []
        for mismatch in mismatches:
            k = mismatch.index
            if mismatch.flavour == "structure" or (plainly and mismatch.ratio >= PLAIN):
                left.append(mismatch)
                continue
            judged = envelope.judge(mismatch, compiled.values[k], eager.values[k])
            if judged is not None:
                left.append(judged)
        if not left:
            return None
        failures = [mismatch_failure(mismatch, eager.outputs, len(calls)) for mismatch in left]
        failure = max(failures, key=lambda f: SEVERITY[f.kind])
        outputs = tuple(m.index for m in left if m.index < eager.outputs)
        ratio = max(m.ratio for m in left)
        special = any(map(has_special_values, calls))
        return Verdict("fail", replace(failure, outputs=outputs), error_ratio=ratio, special=special)

    def _by_export(
        self, mismatches: Sequence[Mismatch], calls: Sequence[Flat], compiled: Outcome
    ) -> Verdict | None:
        """The verdict where it is the exported program that differs from eager; None where it does not.

        Values are left to the envelope, whose baseline is the exported program.
        """
        exported = self.exported.outcome(calls)
        if exported.problem is not None:
            broken = self.exported.broken_assertion(calls)
            if broken:
                return Verdict("fail", missing_check(broken, values=True))
            return Verdict("invalid", reason=f"{ASSERTED}{exported.problem}"[:500])
        for mismatch in mismatches:
            if mismatch.flavour != "values" and _as_exported(mismatch, compiled, exported):
                return Verdict("invalid", reason=f"by export, not the compiler: {mismatch.figures}")
        return None

    def _free(self, calls: Sequence[Flat], seed: int, noise: float, promote: bool) -> list[Any]:
        execution = Free(self._graph, seed, noise, promote=promote)
        values: list[Any] = []
        with torch.no_grad():
            for flat in calls:
                reseed()
                values = execution.call(clone_inputs(flat))
        return values


def _as_exported(mismatch: Mismatch, compiled: Outcome, exported: Outcome) -> bool:
    """Whether the compiled program is what the exported one is, in a way in which eager is otherwise."""
    if mismatch.flavour == "structure":
        return len(compiled.values) == len(exported.values)
    if mismatch.index >= len(exported.values):
        return False
    found, _ = compare_leaf(mismatch.index, compiled.values[mismatch.index], exported.values[mismatch.index])
    return found is None or found.flavour == "values"
