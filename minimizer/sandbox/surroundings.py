"""What a stranger's code may change in its process, and how what everything else needs is put back.

An alarm that goes off while a compiler runs, a recursion limit of fifty, a path without the standard library
or a current folder that is gone would look like a fault of the compiler. So output, timers, signal handlers,
the recursion limit, the import path, built-in functions and a lost folder are put back. What the code may
rightly rely on later, such as the folder it went to, is left as it is.
"""

from __future__ import annotations

import builtins
import contextlib
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator

from minimizer.sandbox.worker import reopen_output

_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_HANDLED = [s for s in signal.valid_signals() if s not in (signal.SIGKILL, signal.SIGSTOP)]


@contextlib.contextmanager
def put_back() -> Iterator[None]:
    """Run a stranger's code, and put back what everything else needs (see the module's docstring)."""
    functions = {name: value for name, value in vars(builtins).items() if callable(value)}
    path, finders = list(sys.path), list(sys.meta_path)
    handlers = {number: signal.getsignal(number) for number in _HANDLED}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    deepest = sys.getrecursionlimit()
    try:
        yield
    finally:
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        for number, handler in handlers.items():
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        sys.setrecursionlimit(max(deepest, sys.getrecursionlimit()))
        if any(action == "error" for action, *_ in warnings.filters):
            warnings.simplefilter("ignore")  # a compiler that warns would be one that raises
        for name, function in functions.items():
            if not callable(getattr(builtins, name, None)):
                setattr(builtins, name, function)
        sys.path += [entry for entry in path if entry not in sys.path]
        sys.meta_path += [finder for finder in finders if finder not in sys.meta_path]
        _leave_lost_folder()
        reopen_output()


def _leave_lost_folder() -> None:
    try:
        os.getcwd()
    except OSError:
        os.chdir(tempfile.gettempdir())
