"""The upper rungs of the debug ladder: tools that run a crashing repro and say where it dies.

Two guides to debugging compiled models on CUDA and on the CPU end with the same steps: name the last kernel
that was launched, run the process under a memory checker, take a native backtrace. They are climbed in order
of cost and only until one names the generated kernel. What a tool prints is read by `minimizer.explain`; the
command that a person would type is kept with it.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from minimizer.explain.family import generated_kernel
from minimizer.explain.router import Found, search_text
from minimizer.verify import run_cold

NO_CUDA, NOT_THERE, LATE = "no CUDA", "not installed", "no time left"
"""Why a rung is skipped."""


@dataclass(frozen=True)
class Tool:
    """One rung: what runs ``python repro.py``, with which variables. `device` is where it applies, or any."""

    name: str
    program: str = ""
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    device: str = ""

    @property
    def under(self) -> list[str]:
        """What runs the interpreter."""
        return [self.program, *self.arguments] if self.program else []

    @property
    def command(self) -> str:
        """The same from a shell."""
        variables = [f"{key}={value}" for key, value in self.environment]
        return " ".join([*variables, shlex.join([*self.under, "python", "repro.py"])])


_PRINTER = (("AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER", "3"), ("PYTHONUNBUFFERED", "1"))
_UNCACHED = ("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")
_BLOCKING = ("CUDA_LAUNCH_BLOCKING", "1")
_BACKTRACE = ("-batch", "-ex", "run", "-ex", "bt", "--args")

TOOLS = (
    # What is buffered is lost with the process, so stdout must not be buffered.
    Tool("last kernel launched", environment=(*_PRINTER, _BLOCKING), device="cuda"),
    Tool("last kernel launched", environment=_PRINTER, device="cpu"),
    Tool("memory checker", "compute-sanitizer", ("--tool", "memcheck"), (_UNCACHED,), device="cuda"),
    Tool("device stack", "cuda-gdb", _BACKTRACE, (_BLOCKING,), device="cuda"),
)
"""In order of cost."""


@dataclass(frozen=True)
class Climbed:
    """What one rung gave: `found` is what its output says, cause first; `skipped` why it was not climbed."""

    tool: Tool
    found: tuple[Found, ...] = ()
    status: int | None = None
    skipped: str = ""

    @property
    def kernel(self) -> str:
        """The generated kernel that it names, if it does."""
        names = (dict(f.explanation.where).get("kernel", "") for f in self.found)
        return next((generated_kernel(name) for name in names if generated_kernel(name)), "")

    @property
    def said(self) -> str:
        """In one line."""
        if self.skipped:
            return f"skipped: {self.skipped}"
        if not self.found:
            return "nothing that is known"
        first = next((f for f in self.found if dict(f.explanation.where).get("kernel")), self.found[0])
        where = dict(first.explanation.where)
        place = ", ".join(where[key] for key in ("kernel", "position", "block", "thread") if key in where)
        return f"{first.explanation.says}" + (f" ({place})" if place else "")


def climb(folder: Path, devices: Sequence[str], late: Callable[[], bool]) -> Iterator[Climbed]:
    """Climb until a generated kernel is named; what each rung gave, skipped ones with a reason.

    `folder` holds ``repro.py``; `devices` are those of the target (``cpu``, ``cuda:0``).
    """
    types = {device.partition(":")[0] for device in devices} or {"cpu"}
    for tool in TOOLS:
        if tool.device not in types:
            if tool.device == "cuda" and tool.program:
                yield Climbed(tool, skipped=NO_CUDA)
            continue
        if tool.program and shutil.which(tool.program) is None:
            yield Climbed(tool, skipped=NOT_THERE)
        elif late():
            yield Climbed(tool, skipped=LATE)
        else:
            status, output = run_cold(folder, under=tool.under, extra=dict(tool.environment))
            climbed = Climbed(tool, tuple(search_text(output)), status)
            yield climbed
            if climbed.kernel:
                return
