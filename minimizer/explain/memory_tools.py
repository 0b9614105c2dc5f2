"""Reports of AddressSanitizer and valgrind: memory errors on the CPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from minimizer.explain.family import Explanation, Family, following, generated_kernel, pairs


@dataclass(frozen=True)
class Frame:
    """One frame of a native stack; file and line where they are known."""

    function: str
    file: str = ""
    line: int = 0

    @property
    def place(self) -> str:
        """``FILE:LINE``, or nothing."""
        return f"{self.file}:{self.line}" if self.file else ""


@dataclass(frozen=True)
class MemoryReport:
    """One error that a memory checker saw.

    `size` in bytes; `frame` is the first one in generated code, or else the first; `allocation` says which
    block the address lies next to.
    """

    tool: str
    kind: str
    operation: str = ""
    size: int = 0
    frame: Frame | None = None
    generated: bool = False
    allocation: str = ""


_ASAN = re.compile(
    r"ERROR: AddressSanitizer:? (?P<kind>[\w-]{1,60}|attempting [\w -]{1,60})(?: on (?:unknown )?address "
    r"(?P<address>0x[0-9a-f]+))?"
)
_ASAN_ACCESS = re.compile(r"^(?P<operation>READ|WRITE) of size (?P<size>\d{1,12})", re.M)
_ASAN_FRAME = re.compile(
    r"^\s{0,20}#\d{1,4} 0x[0-9a-f]+ (?:in )?(?P<function>[^\n]{1,500}?)(?: (?P<file>/[^\s:]{1,500}):"
    r"(?P<line>\d{1,9})(?::\d{1,9})?| \([^\n]{1,500}\))?$",
    re.M,
)
_ASAN_NEAR = re.compile(r"^0x[0-9a-f]+ is located (?P<near>[^\n]{1,200}?region[^\n\[(]{0,60})", re.M)
_ASAN_SUMMARY = re.compile(
    r"SUMMARY: AddressSanitizer: (?P<kind>[\w-]{1,60}) (?P<file>[^\s:]{1,500}):(?P<line>\d{1,9})"
    r"(?::\d{1,9})? in (?P<function>\S{1,500})"
)
_VALGRIND = re.compile(
    r"^==\d{1,9}== (?P<kind>Invalid (?:read|write) of size \d{1,9}|Use of uninitialised value of size \d{1,9}"
    r"|Conditional jump or move depends on uninitialised value\(s\)|Invalid free\(\)[^\n]{0,100}"
    r"|Process terminating with default action of signal \d{1,3} \(\w{1,20}\)"
    r"|Jump to the invalid address[^\n]{0,100})",
    re.M,
)
_VALGRIND_FRAME = re.compile(
    r"^==\d{1,9}==    (?:at|by) 0x[0-9A-F]+: (?P<function>[^\n]{1,500}?) \((?:in )?"
    r"(?P<file>[^\n():]{1,500})(?::(?P<line>\d{1,9}))?\)$",
    re.M,
)
_VALGRIND_NEAR = re.compile(r"^==\d{1,9}==  Address 0x[0-9a-fA-F]+ is (?P<near>[^\n]{1,200})", re.M)
_LINES = 60


def _frames(pattern: re.Pattern[str], text: str) -> list[Frame]:
    return [
        Frame(m["function"].strip(), m["file"] or "", int(m["line"] or 0)) for m in pattern.finditer(text)
    ]


def _meaningful(frames: list[Frame]) -> tuple[Frame | None, bool]:
    """The first frame in generated code and True; else the first and False."""
    for frame in frames:
        if generated_kernel(frame.function) or ".kernel.cpp" in frame.file or ".wrapper.cpp" in frame.file:
            return frame, True
    return (frames[0] if frames else None), False


def asan_reports(text: str) -> Iterator[tuple[int, MemoryReport]]:
    """Every AddressSanitizer report of a text."""
    for match in _ASAN.finditer(text):
        body = following(text, match.end(), _LINES)
        again = _ASAN.search(body)
        body = body[: again.start()] if again else body
        access, near, summary = _ASAN_ACCESS.search(body), _ASAN_NEAR.search(body), _ASAN_SUMMARY.search(body)
        stack = body[: near.start()] if near else body
        frame, generated = _meaningful(_frames(_ASAN_FRAME, stack))
        if summary and not generated:
            named = Frame(summary["function"], summary["file"], int(summary["line"]))
            frame, generated = _meaningful([named])
        yield (
            match.start(),
            MemoryReport(
                "AddressSanitizer",
                match["kind"],
                access["operation"].lower() if access else "",
                int(access["size"]) if access else 0,
                frame,
                generated,
                near["near"].strip() if near else "",
            ),
        )


def valgrind_reports(text: str) -> Iterator[tuple[int, MemoryReport]]:
    """Every valgrind memcheck report of a text."""
    for match in _VALGRIND.finditer(text):
        body = following(text, match.end(), _LINES)
        again = _VALGRIND.search(body)
        body = body[: again.start()] if again else body
        near = _VALGRIND_NEAR.search(body)
        frame, generated = _meaningful(_frames(_VALGRIND_FRAME, body[: near.start()] if near else body))
        access = re.match(r"Invalid (read|write) of size (\d+)", match["kind"])
        yield (
            match.start(),
            MemoryReport(
                "valgrind",
                match["kind"],
                access[1] if access else "",
                int(access[2]) if access else 0,
                frame,
                generated,
                near["near"] if near else "",
            ),
        )


def explain_memory_report(fact: MemoryReport) -> Explanation:
    """A memory error on the CPU in words."""
    kernel = generated_kernel(fact.frame.function) if fact.frame else ""
    access = f"A {fact.operation} of {fact.size} bytes" if fact.operation else "The program"
    near = f" The address is {fact.allocation}." if fact.allocation else ""
    if fact.generated:
        cause = (
            "the index expression on that line of generated code, or an input that is smaller than it "
            "was exported for"
        )
        more: tuple[str, ...] = (
            "aoti-minimize explain THIS_LOG --package YOUR_PACKAGE.pt2   # what the kernel was made from",
        )
    else:
        cause = "no frame of the stack is generated code: a library, or memory that was overwritten earlier"
        more = ("look at the first report of the log whose stack names a cpp_... kernel",)
    if "uninitialised" in fact.kind:
        cause = (
            "memory that nothing has written. Vectorised code reads past the end on purpose and discards it: "
            + cause
        )
    return Explanation(
        fact.tool,
        fact.kind,
        f"{access} touched memory that is not its own.{near}"
        if "uninitialised" not in fact.kind
        else f"A result depends on memory that was never written.{near}",
        where=pairs(
            kernel=kernel,
            function="" if kernel or fact.frame is None else fact.frame.function,
            position=fact.frame.place if fact.frame else "",
        ),
        cause=cause,
        next=(
            *more,
            "AOTI_RUNTIME_CHECK_INPUTS=1 python your_script.py   # are the inputs what was exported?",
        ),
    )


FAMILIES = (
    Family("AddressSanitizer", 6, ("AddressSanitizer",), asan_reports, explain_memory_report),
    Family(
        "valgrind",
        7,
        ("== Invalid ", "uninitialised", "== Process terminating", "== Jump to"),
        valgrind_reports,
        explain_memory_report,
    ),
)
