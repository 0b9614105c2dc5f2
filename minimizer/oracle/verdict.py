"""The vocabulary of judging: kinds of failure, and the signature that must not change while reducing.

Two failures are the same bug when what a maintainer would file under one title agrees: kind, stage, the
type and wording of the error with everything incidental taken out (addresses, paths, sizes, numbered names).
Exact digits, the signal that heap corruption happens to end in, or which of two outputs is wrong, are
accidents of one run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum


class Severity(IntEnum):
    """How much a failure matters; a search that found a milder one may go on for a worse one."""

    LOST_ERROR = 1
    SPURIOUS_ERROR = 2
    WRONG_METADATA = 3
    WRONG_VALUE = 4
    CRASH = 5


SEVERITY = {
    "export_error": Severity.SPURIOUS_ERROR,
    "compile_error": Severity.SPURIOUS_ERROR,
    "cxx_error": Severity.SPURIOUS_ERROR,
    "load_error": Severity.SPURIOUS_ERROR,
    "runtime_error": Severity.SPURIOUS_ERROR,
    "spurious_error": Severity.SPURIOUS_ERROR,
    "out_of_memory": Severity.SPURIOUS_ERROR,
    "missing_check": Severity.LOST_ERROR,
    "lost_error": Severity.LOST_ERROR,
    "wrong_metadata": Severity.WRONG_METADATA,
    "wrong_aliasing": Severity.WRONG_METADATA,
    "nondeterministic": Severity.WRONG_VALUE,
    "lost_mutation": Severity.WRONG_VALUE,
    "wrong_value": Severity.WRONG_VALUE,
    "hang": Severity.CRASH,
    "memory_error": Severity.CRASH,
    "crash": Severity.CRASH,
}

BY_FLAVOUR = frozenset(
    {"wrong_value", "wrong_metadata", "wrong_aliasing", "lost_mutation", "nondeterministic"}
)
"""Kinds without a wording of their own: their flavour tells them apart."""

RAISED = ("compile_error", "cxx_error", "runtime_error", "load_error", "spurious_error")
"""Kinds that are exceptions: what raises while compiling ahead of time raises at the first call elsewhere."""

_CHECKS = re.compile(
    r"unmatched (?:dtype|dim value|stride value|device type)|dim value is too (?:small|large)"
)
_NO_MEMORY = re.compile(r"can't allocate memory|not enough memory|std::bad_alloc|CUDA out of memory")


def error_kind(exception: str, message: str) -> str:
    """What kind an exception of a compiled program is, on inputs that eager and the guards accept.

    ``spurious_error``: AOTInductor's own check of inputs refuses what was promised; ``out_of_memory``: it
    asks for more memory than the machine has, where eager did not; else ``runtime_error``.
    """
    if exception == "MemoryError" or _NO_MEMORY.search(message):
        return "out_of_memory"
    return "spurious_error" if _CHECKS.search(message) else "runtime_error"


EAGER_AGAIN = "eager again"
"""What a worker is at when eager is called after compiled code has run in the same process."""

STAGES = ("export", "lower", "cxx", "package", "load", "run")


@dataclass(frozen=True)
class Failure:
    """One observed failure.

    `kind` is a key of `SEVERITY`, `stage` one of `STAGES`; `exception` is the type's name and `message`
    the error as it was printed; `detail` is the traceback or the dead process's last output; `op` names the
    operator or kernel that the error itself names; `outputs` are the positions of wrong outputs; `figures`
    is the worst disagreement in words; `flavour` sorts wrong values (``gross``, ``ulps``, ``dtype``...).
    """

    kind: str
    stage: str
    message: str = ""
    exception: str = ""
    detail: str = ""
    op: str = ""
    outputs: tuple[int, ...] = ()
    figures: str = ""
    flavour: str = ""

    @property
    def severity(self) -> Severity:
        """See `Severity`."""
        return SEVERITY[self.kind]

    @property
    def signature(self) -> Signature:
        """What must stay the same for another failure to count as this one."""
        return signature(self)


@dataclass(frozen=True)
class Signature:
    """The part of a failure that identifies the bug."""

    kind: str
    stage: str
    exception: str
    text: str

    def __str__(self) -> str:
        parts = (self.kind, self.stage, self.exception, self.text)
        return " · ".join(part for part in parts if part)


@dataclass(frozen=True)
class Verdict:
    """The oracle's answer.

    `status` is ``pass``, ``fail``, ``invalid`` or ``misuse``; `reason` says why a case is invalid or which
    promise was broken; `error_ratio` is the worst error over the allowed one (1.0 = at the limit); `special`
    tells that the inputs themselves hold NaN, infinity or numbers too large to be squared. `turn` is the call
    that failed, of several (1 = the first); 0 where that is not known.
    """

    status: str
    failure: Failure | None = None
    reason: str = ""
    error_ratio: float = 0.0
    special: bool = False
    compiles: int = 0
    turn: int = 0

    @property
    def failed(self) -> bool:
        """Whether this is a failure."""
        return self.status == "fail"


PASS = Verdict("pass")

ASSERTED = "the exported program refuses these values: "
"""How the reason of an invalid case begins that breaks an assertion of the exported program."""

_DTYPE = r"(?:u?int|b?float|complex)(?:8|16|32|64|128)"

_NORMALISATIONS = [
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"0x[0-9a-fA-F]+"), "ADDR"),
    (re.compile(r"(?:/[\w.+\-~]+)+/?"), "PATH"),
    (re.compile(r"\bc[a-z0-9]{50}\b"), "HASH"),
    (re.compile(r"\b(?:cpp|triton)_(?:\w+_)?fused\w*"), "KERNEL"),
    # How index and bound are computed changes while reducing; whether there is a lower end does not.
    (re.compile(r"(index out of bounds: (?:-?\d+ <= )?)[^\n<'\"`]+ < [^\n'\"`]*"), r"\1tmp# < #"),
    (re.compile(r"\b(tmp|buf|arg|s|u|ks|x|r|z|primals_|getitem_|op)\d+(?:_\d+)*\b"), r"\1#"),
    (re.compile(rf"\b(?!{_DTYPE}\b)([A-Za-z_]+?)_?\d+\b"), r"\1#"),
    (re.compile(r"-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?:L|LL|UL|U|f)?\b"), "#"),
    (re.compile(r"\[(?:#|[\w#]+)(?:, ?(?:#|[\w#]+))*\]"), "[#]"),
    (re.compile(r"\([a-z]*#(?:, ?[a-z]*#)*,?\)"), "(#)"),
    (re.compile(r"\s+"), " "),
]


def normalise(message: str) -> str:
    """A message without what differs between runs of the same bug.

    >>> normalise("index out of bounds: 0 <= tmp7 < 32L")
    'index out of bounds: # <= tmp# < #'
    """
    for pattern, replacement in _NORMALISATIONS:
        message = pattern.sub(replacement, message)
    return message.strip()[:300]


_HEAP = re.compile(
    r"free\(\): |malloc\(\)|malloc_consolidate\(\)|corrupted|double free|munmap_chunk|realloc\(\): "
    r"|stack smashing|invalid pointer|invalid next size|invalid size|unaligned .*chunk|sysmalloc"
    r"|heap-buffer-overflow|guard page",
)


def crash_class(signal: str, output: str) -> str:
    """What kind of death a signal and the last output tell of.

    Writing past a buffer ends in SIGSEGV, SIGBUS or one of glibc's heap messages as luck has it: one class.
    An uncaught C++ exception ends in SIGABRT and is known by its message.
    """
    if signal in ("SIGSEGV", "SIGBUS") or _HEAP.search(output):
        return "memory"
    said = re.search(r"what\(\):\s*([^\n]+)", output)
    if said:
        return normalise(re.sub(r"\(Exception raised from.*", "", said[1]))
    # Several threads may throw at once and print over each other: the type is not to be relied on.
    return UNSAID if "terminate called" in output else signal


UNSAID = "uncaught exception"
"""The class of an exception that ended the process before it could say what it was."""


def thrown(text: str) -> bool:
    """Whether a class of crashes is that of an exception which nobody caught, whatever it said."""
    return text != "memory" and not re.fullmatch(r"SIG[A-Z]+", text)


def _first_line(message: str) -> str:
    lines = [line for line in message.splitlines() if line.strip()]
    return lines[0] if lines else ""


def _cxx_error(message: str) -> str:
    error = re.search(r"error:\s*([^\n]+)", message)
    return error[1] if error else _first_line(message)


def signature(failure: Failure) -> Signature:
    """The signature of a failure (see the module's docstring)."""
    text = ""
    if failure.kind in ("crash", "memory_error"):
        text = crash_class(failure.exception, f"{failure.detail}\n{failure.message}")
        return Signature("crash", failure.stage, "", text)
    if failure.kind in BY_FLAVOUR:
        text = failure.flavour
    elif failure.kind == "cxx_error":
        text = normalise(_cxx_error(failure.message))
    elif failure.kind == "hang":
        text = ""
    else:
        text = normalise(_first_line(failure.message))
    return Signature(failure.kind, failure.stage, failure.exception, text)
