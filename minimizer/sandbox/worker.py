"""What runs inside a worker: tasks by name, answered over one connection, with notes on how far they are."""

from __future__ import annotations

import contextlib
import importlib
import os
import runpy
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from minimizer.sandbox.board import Board

_connection: Connection | None = None
_board: Board | None = None
_kept: dict[int, int] = {}
"""Duplicates of stdout and stderr, out of reach of code that closes them."""


def note(stage: str) -> None:
    """Let the parent know which stage the current task has entered, of the item that it is at."""
    if _board is not None:
        _board.enter(stage)


def begin(item: int) -> None:
    """Let the parent know that a task of several items has come to this one, counted from 0."""
    if _board is not None:
        _board.begin(item)


def printed() -> int:
    """How much this worker has printed to stderr so far, in bytes; a mark for `printed_since`."""
    try:
        return os.lseek(2, 0, os.SEEK_END)
    except OSError:
        return 0


def printed_since(mark: int) -> str:
    """What has been printed to stderr since a mark: where AOTI's runtime says what went wrong."""
    try:
        with open("/proc/self/fd/2", "rb") as stream:
            stream.seek(mark)
            return stream.read(1 << 20).decode(errors="replace")
    except OSError:
        return ""


def reopen_output() -> None:
    """Give stdout and stderr back after code that may have closed them: compilers print to them."""
    for fd, name in ((1, "stdout"), (2, "stderr")):
        try:
            os.fstat(fd)
        except OSError:
            if fd in _kept:
                os.dup2(_kept[fd], fd)
        stream = getattr(sys, name)
        if not hasattr(stream, "write") or getattr(stream, "closed", False):
            setattr(sys, name, open(fd, "w", closefd=False, errors="replace"))  # noqa: SIM115


def _leave_to_parent() -> None:
    """After a fork in code of the model's own: the child does not speak for the worker."""
    global _connection, _board
    _connection = _board = None


def run_script(path: str, backend: str) -> int:
    """Run a script as ``python PATH`` would; its exit status."""
    os.environ.pop("TORCH_COMPILE_BACKEND", None)
    if backend:
        os.environ["TORCH_COMPILE_BACKEND"] = backend
    sys.path.insert(0, os.getcwd())
    sys.argv = [path]
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        return int(end.code) if isinstance(end.code, (int, bool)) else int(end.code is not None)
    except Exception:  # noqa: BLE001 (an interpreter would print it and exit with 1)
        traceback.print_exc()
        return 1
    return 0


def run_task(task: str, args: tuple[Any, ...]) -> Any:
    """Call ``module:function``."""
    module, _, function = task.partition(":")
    return getattr(importlib.import_module(module), function)(*args)


def serve(fd: int, board: int) -> None:
    """Answer tasks until the parent closes the connection. Both are descriptors; notes go to the board.

    A task's own exception is sent back as text. A task that calls `sys.exit` (a model file may) is an
    error like any other; only `os._exit` and signals end the worker, which the parent sees.
    """
    global _connection, _board
    _connection, _board = Connection(os.dup(fd)), Board(board)
    for number in (fd, board):
        os.close(number)
    _kept.update({number: os.dup(number) for number in (1, 2)})
    worker = os.getpid()
    os.register_at_fork(after_in_child=_leave_to_parent)
    while True:
        try:
            task, args = _connection.recv()
        except (EOFError, OSError):
            return
        _board.start()
        answer: tuple[str, Any]
        try:
            answer = ("done", run_task(task, args))
        except BaseException as error:  # noqa: BLE001 (the parent decides; nothing is swallowed)
            answer = ("error", (type(error).__name__, words_of(error), traceback.format_exc()))
        if os.getpid() != worker:
            os._exit(0)  # forked by the task, which then went on in both processes
        with contextlib.suppress(Exception):  # a model file may have put anything in its place
            sys.stdout.flush()
        try:
            _connection.send(answer)
        except OSError:
            return
        except Exception as error:  # noqa: BLE001 (pickling runs code of the answer's own)
            words = f"answer cannot be sent: {words_of(error)}"
            _connection.send(("error", (type(error).__name__, words, "")))


def words_of(error: BaseException) -> str:
    """What an exception says; one of a model's own may not be able to."""
    try:
        return str(error)
    except Exception as problem:  # noqa: BLE001 (any code may run here)
        return f"its message cannot be read: {type(problem).__name__}"
