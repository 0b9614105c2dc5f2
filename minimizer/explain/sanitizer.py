"""Reports of NVIDIA's compute-sanitizer: memcheck, initcheck, racecheck, synccheck.

The line that names the kernel has had three forms: ``at 0xPC in KERNEL`` (with ``FILE:LINE:`` before the
name when there is line information), and since 2024 ``at KERNEL+0xOFF in FILE:LINE``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from minimizer.explain.family import SCRIPT, Explanation, Family, following, pairs


@dataclass(frozen=True)
class SanitizerReport:
    """One error: what was done where. `size`, `distance` in bytes; `side` is before, after or inside."""

    what: str
    space: str = ""
    operation: str = ""
    size: int = 0
    kernel: str = ""
    offset: str = ""
    file: str = ""
    line: int = 0
    thread: str = ""
    block: str = ""
    address: str = ""
    why: str = ""
    distance: int = 0
    side: str = ""
    allocation: int = 0


@dataclass(frozen=True)
class SanitizerSummary:
    """How many errors a whole run had."""

    errors: int


_HEAD = re.compile(
    r"^=+[ \t]+(?P<what>Invalid __(?P<space>\w{1,20}?)__ (?P<operation>read|write|atomic) of size "
    r"(?P<size>[\d,]{1,20})"
    r" bytes?|Uninitialized [^\n]{1,200}|(?:Error: |Warning: )?[^\n]{0,100}Race reported[^\n]{1,300}"
    r"|Barrier error detected[^\n]{0,200}|Stack overflow[^\n]{0,200}"
    r"|Program hit (?P<api>\w{1,60}) \(error (?P<code>\d{1,6})\)[^\n]{0,300}"
    r"|Leaked [\d,]{1,20} bytes[^\n]{0,200}|Malloc/Free error[^\n]{0,200})",
    re.MULTILINE,
)
_NEW = re.compile(
    r"^=+[ \t]+at (?P<kernel>[^\n]{1,800}?)\+(?P<offset>0x[0-9a-f]+)(?: in (?P<file>[^\n:]{1,500}):"
    r"(?P<line>\d+))?\s*$",
    re.M,
)
_OLD = re.compile(
    r"^=+[ \t]+at (?P<offset>0x[0-9a-f]+) in (?:(?P<file>[^\s:]{1,500}):(?P<line>\d+):)?"
    r"(?P<kernel>[^\n]{1,800}?)\s*$",
    re.M,
)
_THREAD = re.compile(r"by thread \((?P<thread>[\d,]{1,40})\) in block \((?P<block>[\d,]{1,40})\)")
_ADDRESS = re.compile(
    r"(?:Address|Access (?:to|at)) (?P<address>0x[0-9a-f]+) is (?P<why>out of bounds|misaligned|[a-z ]{1,60})"
)
_NEAR = re.compile(
    r"and is (?:(?P<distance>[\d,]{1,20}) bytes? (?P<side>before|after)|"
    r"(?P<inside>inside)) the nearest allocation "
    r"at 0x[0-9a-f]+ of size (?P<allocation>[\d,]{1,20}) bytes"
)
_SUMMARY = re.compile(r"^=+ ERROR SUMMARY: (?P<errors>[\d,]{1,20}) errors?", re.M)
_LINES = 12
"""A report says all that is read here in so many lines; host stacks come after."""


def _number(text: str | None) -> int:
    return int(text.replace(",", "")) if text else 0


def sanitizer_reports(text: str) -> Iterator[tuple[int, SanitizerReport | SanitizerSummary]]:
    """Every error of a compute-sanitizer log, and its summary line."""
    for match in _HEAD.finditer(text):
        body = following(text, match.end(), _LINES)
        again = _HEAD.search(body)
        body = body[: again.start()] if again else body
        at = _OLD.search(body) or _NEW.search(body)
        thread, address, near = _THREAD.search(body), _ADDRESS.search(body), _NEAR.search(body)
        yield (
            match.start(),
            SanitizerReport(
                what=match["what"],
                space=match["space"] or "",
                operation=match["operation"] or "",
                size=_number(match["size"]),
                kernel=at["kernel"] if at else "",
                offset=at["offset"] if at else "",
                file=(at["file"] or "") if at else "",
                line=_number(at["line"]) if at else 0,
                thread=thread["thread"] if thread else "",
                block=thread["block"] if thread else "",
                address=address["address"] if address else "",
                why=address["why"].strip() if address else "",
                distance=_number(near["distance"]) if near else 0,
                side=(near["side"] or near["inside"]) if near else "",
                allocation=_number(near["allocation"]) if near else 0,
            ),
        )
    for match in _SUMMARY.finditer(text):
        yield match.start(), SanitizerSummary(_number(match["errors"]))


def explain_sanitizer(fact: SanitizerReport | SanitizerSummary) -> Explanation:
    """A compute-sanitizer report in words."""
    if isinstance(fact, SanitizerSummary):
        return _summary(fact)
    where = pairs(
        kernel=fact.kernel,
        block=f"({fact.block})" if fact.block else "",
        thread=f"({fact.thread})" if fact.thread else "",
        position=f"{fact.file}:{fact.line}" if fact.file else fact.offset,
        address=fact.address,
    )
    return Explanation(
        "compute-sanitizer",
        fact.what,
        _means(fact),
        where,
        _cause(fact),
        next=(
            "aoti-minimize explain THIS_LOG --package YOUR_PACKAGE.pt2   # what the kernel was made from",
            f"AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER=2 AOT_INDUCTOR_FILTERED_KERNELS_TO_PRINT="
            f"{fact.kernel.split('(')[0] or 'KERNEL'} {SCRIPT}   # compile again; that kernel's inputs",
            f"CUDA_LAUNCH_BLOCKING=1 cuda-gdb -batch -ex run -ex bt --args {SCRIPT}",
        ),
    )


def _means(fact: SanitizerReport) -> str:
    if not fact.operation:
        return "compute-sanitizer watched the run and reports this error of a kernel or an API call."
    where = {
        "after": f", {fact.distance:,} bytes past the end of an allocation of {fact.allocation:,} bytes",
        "before": f", {fact.distance:,} bytes before the start of an allocation of {fact.allocation:,} bytes",
        "inside": f", inside an allocation of {fact.allocation:,} bytes",
    }.get(fact.side, "")
    kind = "a misaligned address" if fact.why == "misaligned" else "memory that is not the kernel's"
    return f"A {fact.operation} of {fact.size} bytes in {fact.space} memory touched {kind}{where}."


def _cause(fact: SanitizerReport) -> str:
    if fact.what.startswith("Uninitialized"):
        return "a buffer that is read before anything is written to it"
    if "Race" in fact.what or "Barrier" in fact.what:
        return "threads of one block that are not synchronised: a bug of the kernel, not of its inputs"
    if fact.what.startswith("Program hit"):
        return (
            "the error of an earlier kernel, or an API call with a wrong argument; look for a report above it"
        )
    if fact.why == "misaligned":
        return "an input or a view whose storage offset the kernel was not compiled for"
    if fact.side == "after" and fact.distance < 4096:
        return (
            "an index a little too large: a tail that is not masked, or a size that is not what was exported"
        )
    if fact.side == "before":
        return "a negative index: no lower bound is checked, or an integer overflowed"
    return (
        "an index far outside: garbage in an index tensor, an integer that overflowed, or a pointer of "
        "the host"
    )


def _summary(fact: SanitizerSummary) -> Explanation:
    if fact.errors:
        return Explanation(
            "compute-sanitizer summary",
            f"{fact.errors} error{'s' if fact.errors != 1 else ''}",
            "The first report above is the one that counts; later ones often follow from it.",
        )
    return Explanation(
        "compute-sanitizer summary",
        "0 errors",
        "No access outside an allocation was seen. With the caching allocator many tensors share one "
        "allocation.",
        cause="nothing wrong, or PYTORCH_NO_CUDA_MEMORY_CACHING=1 was not set",
        next=(f"PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer --tool memcheck {SCRIPT}",),
    )


FAMILIES = (
    Family(
        "compute-sanitizer",
        5,
        (
            *("Invalid __", "Uninitialized ", "Race reported", "Barrier error", "Program hit "),
            *("Stack overflow", "Leaked ", "Malloc/Free error"),
        ),
        lambda text: (
            (at, fact) for at, fact in sanitizer_reports(text) if isinstance(fact, SanitizerReport)
        ),
        explain_sanitizer,
    ),
    Family(
        "compute-sanitizer summary",
        90,
        ("ERROR SUMMARY: ",),
        lambda text: (
            (at, fact) for at, fact in sanitizer_reports(text) if isinstance(fact, SanitizerSummary)
        ),
        explain_sanitizer,
    ),
)
