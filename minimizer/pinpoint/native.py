"""The native stack of a process that died, as gdb prints it, without what says nothing."""

from __future__ import annotations

import re

_FRAME = re.compile(r"^#\d+\s+.*", re.MULTILINE)
_DULL = re.compile(
    r"^#\d+\s+(?:0x[0-9a-f]+ in )?(?:_?Py|cfunction_|method_|slot_|object_|type_call|vectorcall|func_"
    r"|partial_|builtin_|run_mod|pymain|__libc_start|main\b|_start|\?\? \(\)$|__pthread_kill|start_thread"
    r"|clone3?\b|raise|abort|__GI_|do_call|call_function)"
)

MOST = 12
"""Frames that are kept."""

_LIBRARIES = ("inductor", "libc10", "libgomp", "libgcc", "libstdc")
_STEPS = ("set pagination off", "run", *(f"sharedlibrary {name}" for name in _LIBRARIES), "bt 60")
COMMAND = (
    *("gdb", "-nx", "-batch", "-iex", "set auto-solib-add off"),
    *(word for step in _STEPS for word in ("-ex", step)),
    "--args",
)
"""What runs a program and prints where it died; the program's own command follows. Symbols are read of what
was generated and of the C library only: those of torch are large and slow to read."""


def native_stack(output: str) -> str:
    """The signal and the telling frames of the innermost stack in gdb's output; empty when it has none.

    Frames of the Python interpreter and of process start-up are left out, arguments that are long are cut.
    """
    signal = re.search(r"received signal (\w+), ([^\n]+)", output)
    if signal is None:
        return ""
    frames = [line for line in _FRAME.findall(output[signal.end() :]) if not _DULL.search(line)]
    short = [re.sub(r"0x[0-9a-f]{6,} in ", "", frame)[:200] for frame in frames[:MOST]]
    return "\n".join([f"{signal[1]}, {signal[2].strip().rstrip('.')}", *short])
