"""The other threads of this process, where an exception has left them to themselves.

In an OpenMP region each thread may throw. Where the main thread throws first, its exception leaves the region
and can be caught; a moment later another thread throws, and that ends the process. Whoever does not wait for
the others takes a crash for an exception, now and then.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

LONGEST = 1.0
"""Seconds to wait; who runs longer than that has something else to do."""


def settle(longest: float = LONGEST) -> bool:
    """Wait until no other thread of this process runs or is ready to; whether it came to that in time."""
    until = time.monotonic() + longest
    while _others_run():
        if time.monotonic() > until:
            return False
        time.sleep(0.002)
    return True


def _others_run() -> bool:
    me = str(threading.get_native_id())
    for task in Path("/proc/self/task").iterdir():
        try:
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue  # it has just ended
        if state == "R" and task.name != me:
            return True
    return False
