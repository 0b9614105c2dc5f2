"""Assertions inside kernels: device-side assertions (CUDA), and the index checks that Inductor generates.

Formats: ``FILE:LINE: FUNCTION: block: [x,y,z], thread: [x,y,z] Assertion `C` failed.`` from the CUDA runtime;
``index out of bounds: LOW <= INDEX < HIGH`` from `CppWrapper` and Triton kernels, where either side may be
missing (`CSEProxy.indirect_assert` in ``torch/_inductor/codegen/common.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from minimizer.explain.family import SCRIPT, Explanation, Family, following, pairs


@dataclass(frozen=True)
class Bound:
    """``low <= index < high``; an empty side is not checked. `index` and `high` are as generated."""

    low: str
    index: str
    high: str

    @property
    def text(self) -> str:
        """As the message spells it."""
        low = f"{self.low} <= " if self.low else ""
        return f"{low}{self.index}" + (f" < {self.high}" if self.high else "")


@dataclass(frozen=True)
class IndexCheck:
    """An index check of a generated kernel that failed. Kernel, file and line where the message has them."""

    bound: Bound
    kernel: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class DeviceAssert:
    """A device-side assertion: which, in which block and thread of the grid."""

    file: str
    line: int
    function: str
    block: str
    thread: str
    condition: str
    bound: Bound | None


_BOUND = re.compile(
    r"index out of bounds: (?:(?P<low>-?\d{1,20}) <= )?(?P<index>[^\n`'\"<]{1,200}?)"
    r"(?: < (?P<high>[\w()*+\-/ .:,]{1,200}?)(?<![ ])L?)?(?=[\s'\"`)]*(?:$|['\"`\n]|failed))",
    re.MULTILINE,
)
_RAISED = re.compile(
    r"Exception raised from (?P<kernel>[\w:~<>]+) at (?P<file>[^\n]{1,500}?):(?P<line>\d{1,9})"
)
_DEVICE = re.compile(
    r"^(?P<file>[^\n]{0,500}?):(?P<line>\d{1,9}): (?P<function>[^\n]{0,800}?): "
    r"block: \[(?P<block>\d+, ?\d+, ?\d+)\], thread: \[(?P<thread>\d+, ?\d+, ?\d+)\] "
    r"Assertion `(?P<condition>[^\n]{0,800}?)` failed",
    re.MULTILINE,
)


def bound_in(text: str) -> Bound | None:
    """The first index bound in a text.

    >>> bound_in("index out of bounds: 0 <= tmp3 < 24L")
    Bound(low='0', index='tmp3', high='24')
    """
    match = _BOUND.search(text)
    if match is None:
        return None
    return Bound(match["low"] or "", match["index"].strip(), (match["high"] or "").strip())


def device_asserts(text: str) -> Iterator[tuple[int, DeviceAssert]]:
    """Every device-side assertion of a text."""
    for match in _DEVICE.finditer(text):
        yield (
            match.start(),
            DeviceAssert(
                file=match["file"],
                line=int(match["line"]),
                function=match["function"],
                block=match["block"].replace(" ", ""),
                thread=match["thread"].replace(" ", ""),
                condition=match["condition"],
                bound=bound_in(match["condition"]),
            ),
        )


def index_checks(text: str) -> Iterator[tuple[int, IndexCheck]]:
    """Every failed index check of a text that is not a device-side assertion's condition."""
    for match in _BOUND.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
        before = text[start : match.start()]
        if "Assertion `" in before or "device_assert" in before or "CHECK(" in before:
            continue  # a device-side assertion, or the line of source that holds the check
        bound = Bound(match["low"] or "", match["index"].strip(), (match["high"] or "").strip())
        raised = _RAISED.search(following(text, match.start(), 3))
        if raised is None:
            yield match.start(), IndexCheck(bound)
        else:
            yield match.start(), IndexCheck(bound, raised["kernel"], raised["file"], int(raised["line"]))


def _cause(bound: Bound | None) -> str:
    if bound is None:
        return ""
    if bound.high and not bound.low:
        return (
            f"an index of {bound.high} or more. The check has no lower end: a negative index passes it and "
            "reads "
            "before the buffer, so look for those too"
        )
    if bound.high.isdigit():
        return (
            f"a value outside [{bound.low}, {bound.high}) in the tensor that holds the indices"
            " (after negative ones were wrapped around), or garbage in it because it has another dtype "
            "than at export"
        )
    if bound.high:
        return (
            f"a value outside [{bound.low}, {bound.high}) in the tensor that holds the indices, or "
            f"{bound.high} is "
            f"smaller than you think: where it is 0 (an empty tensor) every index is out of bounds"
        )
    return f"an index below {bound.low} in the tensor that holds the indices"


_SYNCHRONOUS = (
    f"CUDA_LAUNCH_BLOCKING=1 {SCRIPT}   # the Python stack is then that of the launch",
    f"PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer --tool memcheck {SCRIPT}",
    f"CUDA_LAUNCH_BLOCKING=1 cuda-gdb -batch -ex run -ex bt --args {SCRIPT}",
)


def explain_device_assert(fact: DeviceAssert) -> Explanation:
    """A device-side assertion in words."""
    generated = fact.file in ("unknown", "") or "triton" in fact.function or "inductor" in fact.file
    known = fact.function not in ("unknown", "")
    means = (
        "A thread on the GPU found a condition false that the kernel relies on. The CUDA context is lost: "
        "every later "
        "CUDA call of the process fails too, so later errors mean nothing."
    )
    if fact.bound is not None:
        means += " The condition is the index check that Inductor puts before an indirect load or store."
    next_: tuple[str, ...] = _SYNCHRONOUS
    if fact.bound is not None and generated:
        next_ = (
            "aoti-minimize explain THIS_LOG --package YOUR_PACKAGE.pt2   # kernel, input and dim",
            *next_,
        )
    return Explanation(
        "device-side assertion",
        f"`{fact.condition}` failed",
        means,
        where=pairs(
            kernel=fact.function if known else "",
            block=f"({fact.block})",
            thread=f"({fact.thread})",
            position="" if fact.file in ("unknown", "") else f"{fact.file}:{fact.line}",
        ),
        cause=_cause(fact.bound) or "values that the operation does not accept; the condition names which",
        fixes=bound_fixes(fact.bound),
        next=next_,
    )


def bound_fixes(bound: Bound | None) -> tuple[str, ...]:
    """Three ways out of a failed index check."""
    if bound is None:
        return ()
    high = bound.high or "the size"
    return (
        f"check or clamp the indices before the call: torch.all((idx >= 0) & (idx < {high}))",
        "if an empty tensor is not meant to be legal, export with a lower bound: Dim(NAME, min=2), and run "
        "with "
        "AOTI_RUNTIME_CHECK_INPUTS=1 so that it is refused by name",
        "if it is legal, handle it before the lookup in the model (torch.cond, or return early outside it)",
    )


def explain_index_check(fact: IndexCheck) -> Explanation:
    """A failed index check in words."""
    package = (
        "aoti-minimize explain THIS_LOG --package YOUR_PACKAGE.pt2   # which input, which dim, which line"
    )
    return Explanation(
        "index out of bounds",
        f"{fact.bound.text} does not hold",
        "A generated kernel was about to read or write with an index outside the tensor, and its check "
        "stopped it.",
        where=pairs(kernel=fact.kernel, position=f"{fact.file}:{fact.line}" if fact.file else ""),
        cause=_cause(fact.bound),
        fixes=bound_fixes(fact.bound),
        next=(package, f"AOTI_RUNTIME_CHECK_INPUTS=1 {SCRIPT}"),
    )


FAMILIES = (
    Family("device-side assertion", 10, ("Assertion `",), device_asserts, explain_device_assert),
    Family("index out of bounds", 11, ("index out of bounds: ",), index_checks, explain_index_check),
)
