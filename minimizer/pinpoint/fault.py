"""Convict or acquit: what the evidence says about where a failure is made. Pure functions.

A kernel is convicted by what it does alone with what it was given: a wrong result, an access outside its
buffers, an exception, not coming back. A kernel that is right on what it was given is acquitted, whatever the
program as a whole returns; then the fault lies in what is left, and that is said with the evidence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from minimizer.oracle.kernels import compiler_error, lines_with, named_in
from minimizer.oracle.recorded import Examination, Finding, Recording
from minimizer.oracle.verdict import Failure

_WHERE = {
    "unknown": "",
    "between kernels": "the fault is between the kernels: ",
    "graph pass": "the fault is in a graph pass: ",
    "decomposition": "the fault is in a decomposition: ",
    "operator call": "the fault is in an operator call: ",
    "custom op": "the fault is in a custom operator: ",
    "export": "the fault is in export: ",
    "code generation": "the fault is in code generation: ",
    "packaging": "the fault is in packaging: ",
}


@dataclass(frozen=True)
class Fault:
    """Where a failure is made.

    `place` is ``kernel``, ``operator call``, ``graph pass``, ``decomposition``, ``code generation``,
    ``C++ wrapper``, ``between kernels``, ``packaging``, ``export``, ``custom op`` or ``unknown``. `kernel`
    is the kernel at fault and `way` how that shows: ``compare`` (its result is wrong), ``raise``, ``die``,
    ``hang``, ``leave`` (it leaves its buffers), ``asan`` (AddressSanitizer says so) or ``compile`` (it does
    not); `calls` the operators that it was generated from, `step` its launch in the recording (0 = not
    recorded), `stage` the first stage of the graph that is wrong, `output` the variable that it gives a
    wrong value, `line` the line of its code that the evidence points at, `acquitted` the kernels that are
    right on what they were given.
    """

    place: str
    evidence: str
    kernel: str = ""
    way: str = ""
    calls: tuple[str, ...] = ()
    step: int = 0
    output: str = ""
    line: str = ""
    acquitted: tuple[str, ...] = ()
    sanitizer: str = ""
    stage: str = ""

    @property
    def text(self) -> str:
        """For the terminal."""
        if self.kernel:
            made = f" (from {', '.join(self.calls)})" if self.calls else ""
            seen = f" · {self.sanitizer.splitlines()[0]}" if self.sanitizer else ""
            return f"{self.kernel}{made}: {self.evidence}{seen}" + (f"\n{self.line}" if self.line else "")
        where = _WHERE.get(self.place, f"the fault is in the {self.place}: ")
        return f"{self._acquittal}{where}{self.evidence}"

    @property
    def _acquittal(self) -> str:
        names = self.acquitted
        if not names:
            return ""
        if len(names) == 1:
            return f"{names[0]} is right on its recorded inputs; "
        count = "both" if len(names) == 2 else f"all {len(names)}"
        return f"{count} kernels are right on their recorded inputs; "

    @property
    def summary(self) -> dict[str, Any]:
        """For summary.json; what is not known is left out."""
        known: dict[str, Any] = {
            "name": self.kernel,
            "language": "C++" if self.kernel else "",
            "nodes": list(self.calls) if self.kernel else [],
            "fault": self.place,
            "evidence": self.evidence,
            "line": self.line,
            "acquitted": list(self.acquitted),
            "sanitizer": self.sanitizer,
        }
        return {key: value for key, value in known.items() if value}


def before_any_kernel(failure: Failure) -> Fault | None:
    """The fault of a failure that shows before a kernel exists or runs, without looking any further."""
    operator = f", lowering {failure.op}," if failure.op else ""
    if failure.stage == "export":
        return Fault("export", "torch.export itself fails")
    if failure.kind == "hang" and failure.stage in ("lower", "cxx"):
        return Fault("code generation", "compilation does not come to an end, so no kernel has run")
    if failure.stage == "lower":
        first = failure.message.strip().partition("\n")[0][:120]
        first = first.removeprefix(f"{failure.exception}:").strip()
        said = f"{failure.exception}: {first}" if first else failure.exception
        evidence = f"before any kernel exists{operator} it raises {said}{_raised_at(failure.detail)}"
        return Fault("code generation", evidence)
    if failure.stage in ("package", "load"):
        return Fault("packaging", f"the kernels are built and never run; it fails in stage {failure.stage}")
    return None


def _raised_at(traceback: str) -> str:
    """The innermost frame inside torch's compiler: `` (torch/_inductor/lowering.py:71, in cumsum)``."""
    frames = re.findall(r'File "[^"]*(torch/_\w+/[^"]+)", line (\d+), in (\w+)', traceback)
    return f" ({frames[-1][0]}:{frames[-1][1]}, in {frames[-1][2]})" if frames else ""


def from_compiler(failure: Failure, kernels: Mapping[str, str]) -> Fault:
    """The fault of C++ that does not compile: the kernel that the compiler names or quotes."""
    said = f"{failure.message}\n{failure.detail}"
    error, quoted = compiler_error(said)
    name = named_in(said, kernels)
    if not name:
        place = "C++ wrapper" if ".wrapper.cpp" in said else "code generation"
        return Fault(place, f"the C++ compiler says: {error}", acquitted=())
    line = _numbered(kernels[name], re.escape(quoted)) if quoted else ""
    return Fault("kernel", f"the C++ compiler says: {error}", name, "compile", calls_in(name), line=line)


def calls_in(kernel: str) -> tuple[str, ...]:
    """The operators that a kernel's own name tells of: ``cpp_fused_relu_sum_0``."""
    match = re.search(r"fused_(\w+?)_\d+$", kernel)
    return tuple(part for part in match[1].split("_") if part) if match else ()


def broken_bound(said: str) -> str:
    """The bound that an index has broken, as the generated assertion words it; empty when none is told of."""
    found = re.search(r"index out of bounds: [^\n\"'()]+", said)
    return found[0].strip() if found else ""


def raising_line(code: str, said: str) -> str:
    """The line of a kernel that raises: the one with the assertion that is worded so, or one that throws."""
    bound = broken_bound(said)
    return _numbered(code, re.escape(bound) if bound else r"\bthrow\b")


def _numbered(code: str, pattern: str) -> str:
    found = next(lines_with(code, pattern), None)
    return f"line {found[0]}: {found[1]}" if found else ""


def from_death(recording: Recording, how: str, way: str = "die") -> Fault:
    """The fault of a run that did not report back: the call that was under way."""
    last = recording.last
    if last is None:
        done = [step.callee for step in recording.steps]
        after = f"after {done[-1]} had returned" if done else "before the first call"
        return Fault("between kernels", f"{how}, {after}")
    if not last.kernel:
        return Fault("operator call", f"{how} in {last.callee}, an operator that is not generated")
    evidence = f"{how} in it, the last one launched"
    return Fault("kernel", evidence, last.callee, way, calls_in(last.callee), last.index)


def choose(failure: Failure, recording: Recording, seen: Examination) -> Fault:
    """The fault of a run that reported back, from the judgement on each of its calls and on its graphs."""
    kernels = tuple(dict.fromkeys(f.name for f in seen.findings if f.kernel))
    right = tuple(
        name for name in kernels if all(f.verdict == "right" for f in seen.findings if f.name == name)
    )
    if failure.kind in ("lost_error", "missing_check"):
        return _lost(seen, kernels, right)
    raised = next((f for f in seen.findings if f.verdict == "raised"), None)
    if raised is not None:
        return _raised(raised, right, seen.aoti)
    if recording.raised:
        return _wrapper_raised(recording.raised, right)
    for name, said in seen.graphs:
        place = _PLACES.get(name, "graph pass")
        if said and not said.startswith("not judged"):
            evidence = f"the {name} graph gives the wrong answer in eager already ({said[:120]})"
            return Fault(place, evidence, stage=name, acquitted=right)
    wrong = next((f for f in seen.findings if f.verdict == "wrong"), None)
    if wrong is not None:
        return _wrong(wrong, seen.findings, right)
    return _acquitted(failure, recording, seen, kernels, right)


_PLACES = {"decomposed": "decomposition"}
"""What a wrong graph is charged to by its stage; every later stage is the work of graph passes."""


def _raised(finding: Finding, right: tuple[str, ...], sources: Mapping[str, str]) -> Fault:
    said = finding.figures.splitlines()[0][:200] if finding.figures else "an exception"
    if not finding.kernel:
        return Fault("operator call", f"{finding.name} raises {said}", acquitted=right)
    line = raising_line(sources.get(finding.name, ""), finding.figures)
    return Fault(
        "kernel", f"it raises {said}", finding.name, "raise", finding.calls, finding.step, "", line, right
    )


def _first_dims(mismatch: str, shown: int = 2) -> str:
    """The first few dims of a complaint that names every dim that differs.

    >>> _first_dims("expected size 3==4, stride 8==8 at dim=0; expected size 2==5, stride 1==1 at dim=1", 1)
    'expected size 3==4, stride 8==8 at dim=0; and 1 more dim'
    """
    dims = mismatch.split("; ")
    more = len(dims) - shown
    return "; ".join(dims[:shown] + ([f"and {more} more dim{'s' * (more > 1)}"] if more > 0 else []))


def _wrapper_raised(said: str, right: tuple[str, ...]) -> Fault:
    """The fault when a line of the wrapper between two calls raises: mostly a check of sizes and strides."""
    check = re.match(r"assert_size_stride\((\w+), .*, '([\w.]+)'\): \w+: ([^\n]*)", said)
    if check is None:
        return Fault(
            "between kernels", f"the wrapper raises at `{said.splitlines()[0][:200]}`", acquitted=right
        )
    what, mismatch = check[2], _first_dims(check[3])
    if what == "input":
        evidence = f"sizes or strides that may vary were fixed at those of the example inputs ({mismatch})"
        return Fault("code generation", evidence, acquitted=right)
    place = "operator call" if what.startswith("torch.ops.aten.") else "custom op"
    evidence = f"{what} returns another shape or layout than its shape function promised ({mismatch})"
    return Fault(place, evidence, acquitted=right)


def _wrong(finding: Finding, findings: Sequence[Finding], right: tuple[str, ...]) -> Fault:
    if not finding.kernel:
        evidence = f"{finding.name} gives another result than eager on the same inputs: {finding.figures}"
        return Fault("operator call", evidence, acquitted=right)
    unsure = [f for f in findings if f.kernel and f.step < finding.step and f.verdict == "unjudged"]
    if finding.via and unsure:
        names = ", ".join(f.name for f in unsure)
        evidence = f"together with {names} (whose results are no values of the graph): {finding.figures}"
    else:
        count = sum(f.kernel for f in findings)
        first = "its result" if count == 1 else "the first kernel whose result"
        evidence = f"{first} differs from eager on the same inputs: {finding.figures}"
    return Fault(
        "kernel",
        evidence,
        finding.name,
        "compare",
        finding.calls,
        finding.step,
        finding.output,
        acquitted=right,
    )


def _lost(seen: Examination, kernels: tuple[str, ...], right: tuple[str, ...]) -> Fault:
    """An error that eager raises and the compiled program does not: where was the check lost?"""
    for name, said in seen.graphs:
        if "returns" in said:
            place = _PLACES.get(name, "graph pass")
            return Fault(place, f"the {name} graph does not raise in eager either", acquitted=right)
    blind = next((f for f in seen.findings if f.kernel and "raises" in f.reason), None)
    if blind is not None:
        evidence = f"{blind.name} is generated without the check that raises there ({blind.reason[:160]})"
        return Fault("code generation", evidence, acquitted=right)
    if not kernels:
        return Fault("code generation", "no kernel is generated, and no operator called raises")
    return Fault("code generation", "the check is not generated into any kernel or call", acquitted=right)


def _acquitted(
    failure: Failure,
    recording: Recording,
    seen: Examination,
    kernels: tuple[str, ...],
    right: tuple[str, ...],
) -> Fault:
    """No call has done wrong: what is left."""
    open_question = [f for f in seen.findings if f.kernel and f.verdict == "unjudged"]
    if open_question:
        names = ", ".join(dict.fromkeys(f"{f.name} ({f.reason})" for f in open_question))
        if len(kernels) == 1 and recording.shown:
            only = open_question[0]
            return Fault(
                "kernel",
                "the only kernel of the reduced program",
                only.name,
                "compare",
                only.calls,
                only.step,
            )
        return Fault("unknown", f"not judged: {names}", acquitted=right)
    if recording.shown:
        what = "what is returned, its layout, or the order and reuse of buffers"
        return Fault("between kernels", f"every call is right by itself, so it is {what}", acquitted=right)
    if seen.differing:
        names = ", ".join(seen.differing)
        return Fault("unknown", f"AOTInductor generates other code for {names}", acquitted=right)
    how = "the same kernels give the right answer from Inductor's Python wrapper"
    if not kernels:
        how = "no kernel is generated, and the same calls are right from Inductor's Python wrapper"
    return Fault("C++ wrapper", how, acquitted=right)
