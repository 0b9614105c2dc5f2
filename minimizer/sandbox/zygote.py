"""A process that has imported torch and does nothing else, so that a worker costs a fork.

Forking after any OpenMP region or compilation hangs the child, so the zygote only ever imports and forks.
It is single-threaded and answers one request at a time over a Unix socket; workers get their own process
group, so that killing one takes its compilers along. When the far end goes away, so does everything here.

Importing one module is all the preparation there is.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import pickle
import resource
import shutil
import signal
import socket
import tempfile
import traceback
from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_FDS_PER_FORK = 4


def die_with_parent(*, wanted: bool = True) -> None:
    """Ask the kernel to kill this process when its parent ends (Linux; elsewhere nothing happens).

    Strictly, when the thread ends that started it. With `wanted` False this is taken back.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL if wanted else 0, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of what workers leave behind, even of what left their process groups (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _bury_orphans(alive: set[int]) -> None:
    """Wait for adopted children that have ended, and end the others once no worker may need them."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as children:
            orphans = set(map(int, children.read().split())) - alive
    except OSError:
        return
    for pid in orphans:
        with contextlib.suppress(ProcessLookupError, PermissionError, ChildProcessError):
            if not alive:
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0 if not alive else os.WNOHANG)


def _worker(request: dict[str, Any], fds: list[int]) -> NoReturn:
    from minimizer.sandbox.worker import serve

    connection, board, out, err = fds
    os.setpgid(0, 0)
    die_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    for fd in (null, out, err):
        os.close(fd)
    os.environ.update(request["environment"])
    os.chdir(request["directory"])
    limit = request["memory_limit"]
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")  # when memory runs out, the kernel shall take a worker and nobody else's process
    # Whatever happens, a worker never goes on as the zygote, which would end all other workers.
    status = 1
    try:
        serve(connection, board)
        status = 0
    except BaseException:  # noqa: BLE001 (printed, and told by the exit status)
        traceback.print_exc()
    finally:
        os._exit(status)


def _reap(pid: int, block: bool) -> dict[str, Any] | None:
    """How a worker ended; None while it runs. Its CPU seconds become this process's."""
    if block:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    done, status = os.waitpid(pid, 0 if block else os.WNOHANG)
    if not done:
        return None
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)  # what the worker left running
    return {"code": os.waitstatus_to_exitcode(status)}


def main(fd: int, preload: str, scratch: str = "") -> None:
    """Serve fork and reap requests until the far end closes.

    When it closes because the caller was killed, `scratch` is removed as well: nobody else will.
    """
    caller = os.getppid()
    die_with_parent()
    adopt_orphans()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = socket.socket(fileno=fd)
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        del os.environ["LD_PRELOAD"]  # loaded by now; compilers that are started need not be checked
    tempfile.gettempdir()  # fixed now: precompiled headers stay where every run finds them
    if preload:
        importlib.import_module(preload)
    gc.collect()
    gc.freeze()
    # From here on the end of the channel tells of the caller's end, and there is time to clean up.
    die_with_parent(wanted=False)
    if os.getppid() != caller:
        return
    channel.sendall(pickle.dumps({"ready": os.getpid()}))
    alive: set[int] = set()
    try:
        while True:
            message, fds, _, _ = socket.recv_fds(channel, 1 << 16, _FDS_PER_FORK)
            if not message:
                return
            request = pickle.loads(message)
            answer: Any
            if request["do"] == "fork":
                pid = os.fork()
                if pid == 0:
                    channel.close()
                    _worker(request, list(fds))
                with contextlib.suppress(PermissionError, ProcessLookupError):
                    os.setpgid(pid, pid)
                alive.add(pid)
                for received in fds:
                    os.close(received)
                answer = pid
            else:
                answer = _reap(request["pid"], request["do"] == "kill")
                if answer is not None:
                    alive.discard(request["pid"])
                    _bury_orphans(alive)
            channel.sendall(pickle.dumps(answer))
    finally:
        for pid in alive:
            _reap(pid, True)
        _bury_orphans(set())
        if scratch and os.getppid() != caller:
            shutil.rmtree(scratch, ignore_errors=True)
