"""Reads AddressSanitizer's report: what was accessed, where, and which allocation it missed.

Format: https://github.com/google/sanitizers/wiki/AddressSanitizer, as gcc 12 prints it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_KIND = re.compile(r"ERROR: AddressSanitizer: (?P<kind>[\w-]+)")
_ACCESS = re.compile(r"^(?P<access>READ|WRITE) of size (?P<size>\d+)", re.MULTILINE)
_FRAME = re.compile(
    r"^\s*#\d+ 0x[0-9a-f]+ in (?P<function>.+?) (?:(?P<file>/?[^\s:()]+):(?P<line>\d+)(?::\d+)?|\([^)]+\))",
    re.MULTILINE,
)
_REGION = re.compile(
    r"is located (?P<distance>\d+) bytes (?P<side>to the right of|to the left of|inside of|after|before)"
    r" (?P<bytes>\d+)-byte region"
)


@dataclass(frozen=True)
class Access:
    """One illegal access.

    `kind` is ``heap-buffer-overflow`` and the like, `access` ``READ`` or ``WRITE`` of `size` bytes;
    `function`, `file` and `line` are the innermost frame in generated code; `distance` in bytes `side`
    (``after``, ``before``, ``inside``) an allocation of `region` bytes. Zero and empty mean not known.
    """

    kind: str
    access: str = ""
    size: int = 0
    function: str = ""
    file: str = ""
    line: int = 0
    distance: int = 0
    side: str = ""
    region: int = 0

    @property
    def text(self) -> str:
        """``heap-buffer-overflow WRITE of 4 bytes, line 14, 0 bytes after a buffer of 192 bytes``."""
        parts = [f"{self.kind} {self.access} of {self.size} bytes" if self.access else self.kind]
        parts += [f"line {self.line}"] if self.line else []
        parts += [f"{self.distance} bytes {self.side} a buffer of {self.region} bytes"] if self.side else []
        return ", ".join(parts)


_SIDES = {"to the right of": "after", "to the left of": "before", "inside of": "inside"}


def read_report(text: str) -> Access | None:
    """The first illegal access that a text reports, or None. Text before and after is ignored."""
    kind = _KIND.search(text)
    if kind is None:
        return None
    report = text[kind.start() :]
    access = _ACCESS.search(report)
    region = _REGION.search(report)
    stack = report.split("\n\n", 1)[0]
    frames = list(_FRAME.finditer(stack))
    frame = next((f for f in frames if _is_generated(f)), None)
    return Access(
        kind["kind"],
        access["access"] if access else "",
        int(access["size"]) if access else 0,
        frame["function"] if frame else "",
        frame["file"] if frame else "",
        int(frame["line"]) if frame else 0,
        int(region["distance"]) if region else 0,
        _SIDES.get(region["side"], region["side"]) if region else "",
        int(region["bytes"]) if region else 0,
    )


def _is_generated(frame: re.Match[str]) -> bool:
    """Whether a frame lies in a kernel: Inductor's files are named by a hash and end in ``.cpp``."""
    file = frame["file"] or ""
    own = re.search(r"(?:^|/)c[a-z0-9]{20,}[^/]*\.cpp$", file) is not None
    return own or file.endswith((".kernel.cpp", ".main.cpp"))
