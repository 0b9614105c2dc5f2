"""Workers as seen by the caller: call a task, get its answer, or learn how the process ended.

Death and hanging are answers here, not accidents: `WorkerLost` carries the signal, the stage of the last
note and the last output, and the process group is gone by the time it is raised.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from minimizer.sandbox.asan import is_asan
from minimizer.sandbox.board import Board, Note, memory

TAIL = 20_000
"""Bytes of a lost worker's output that are kept."""

_START = """
import os, sys
sys.path[:] = [entry for entry in sys.path if entry] + [sys.argv[3]]
from minimizer.sandbox.zygote import main
main(int(sys.argv[1]), sys.argv[2], sys.argv[4])
os._exit(0)  # taking torch down in order has no use and takes its time
"""
"""Starts a zygote. The current folder is no place to import from: it may hold a torch.py or a random.py."""

_ROOT = str(Path(__file__).resolve().parents[2])

_FRUGAL = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Unless the person says otherwise: threads that wait for each other sleep. Spinning costs more than the work
where sizes are small and cores shared (a small network at thirty sizes: six CPU seconds in place of one)."""

_GLANCE = 0.5
"""Seconds between two looks at whether a worker is still there, and at what it has noted."""

START_TIMEOUT = 180.0
"""Seconds for importing torch, which is slow from a cold disk."""


class WorkerLost(Exception):
    """The worker did not answer. `stage` is its last note, `output` the end of what it printed.

    `item` is the one that a task of several items was at.
    """

    def __init__(self, message: str, stage: str, output: str, item: int = 0) -> None:
        super().__init__(message)
        self.stage = stage
        self.output = output
        self.item = item


class Died(WorkerLost):
    """The worker's process ended. `signal` is its name (``SIGSEGV``) or ``exit N``."""

    def __init__(self, code: int, stage: str, output: str, item: int = 0) -> None:
        self.code = code
        try:
            self.signal = signal.Signals(-code).name if code < 0 else f"exit {code}"
        except ValueError:
            self.signal = f"signal {-code}"
        super().__init__(f"the process ended with {self.signal} in stage {stage!r}", stage, output, item)


class TimedOut(WorkerLost):
    """The worker was killed after `seconds` without an answer."""

    def __init__(self, seconds: float, stage: str, output: str, item: int = 0) -> None:
        self.seconds = seconds
        super().__init__(f"no answer after {seconds:.0f} s in stage {stage!r}", stage, output, item)


class TaskError(Exception):
    """The task raised. `exception` is the type's name, `traceback` its text."""

    def __init__(self, exception: str, message: str, traceback: str) -> None:
        super().__init__(f"{exception}: {message}")
        self.exception = exception
        self.message = message
        self.traceback = traceback


class _Zygote:
    """The parent's end of one zygote process."""

    def __init__(self, environment: Mapping[str, str], preload: str, log: Path) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs, log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _START, str(theirs.fileno()), preload, _ROOT, str(log.parent)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={
                    **_FRUGAL,
                    **os.environ,
                    "TORCHINDUCTOR_COMPILE_THREADS": "1",
                    "PYTHONWARNINGS": "",
                    **environment,
                },
                start_new_session=True,
            )
        self.channel = ours
        self.lock = threading.Lock()
        self.log = log
        self.ready = False

    def _receive(self, timeout: float) -> Any:
        self.channel.settimeout(timeout)
        try:
            data = self.channel.recv(1 << 16)
        except TimeoutError as error:
            raise RuntimeError(f"the zygote does not answer; its log is {self.log}") from error
        if not data:
            tail = self.log.read_text(errors="replace")[-2000:]
            last = next((line for line in reversed(tail.splitlines()) if line.strip()), "no output")
            raise RuntimeError(f"the zygote ended: {last.strip()}\n{tail}")
        return pickle.loads(data)

    def wait_ready(self) -> None:
        with self.lock:
            if not self.ready:
                self._receive(START_TIMEOUT)
                self.ready = True

    def ask(self, request: dict[str, Any], fds: list[int] | None = None) -> Any:
        self.wait_ready()
        with self.lock:
            socket.send_fds(self.channel, [pickle.dumps(request)], fds or [])
            return self._receive(60.0)

    def fate(self, do: str, pid: int) -> dict[str, Any] | None:
        """What it answers to ``poll`` or ``kill``: how a worker ended, None while it has not.

        A zygote that is gone, killed by the code of a model perhaps, has taken its workers along.
        """
        try:
            ended: dict[str, Any] | None = self.ask({"do": do, "pid": pid})
            return ended
        except (OSError, RuntimeError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5.0)
            if self.process.poll() is None:
                raise
            return {"code": -signal.SIGKILL}

    def close(self) -> None:
        self.channel.close()
        if self.ready:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5.0)  # it ends by itself, after all that it has started
        for pid in _session_of(self.process.pid):  # there are some left if it was killed itself
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()


def _session_of(leader: int) -> list[int]:
    """The processes of a session, from /proc."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            if int(entry.read_text().rpartition(")")[2].split()[3]) == leader:
                found.append(int(entry.parent.name))
    return found


class Worker:
    """One forked process that answers tasks until it dies or is closed."""

    def __init__(self, zygote: _Zygote, pid: int, connection: Connection, board: Board, output: Path) -> None:
        """`output` is a file in the worker's own folder, which goes with it."""
        self._zygote = zygote
        self.pid = pid
        self._connection = connection
        self._board = board
        self._asked = 0
        self._output = output
        self._last_words = ""
        self.alive = True

    @property
    def stage(self) -> str:
        """The stage that the task has entered; empty when it has not said."""
        return self._noted().stage

    def _noted(self) -> Note:
        """The last note of the current task, or of the last one."""
        note = self._board.read()
        return note if note.number > self._asked else Note()

    def call(
        self,
        task: str,
        *args: Any,
        timeout: float,
        stage_timeout: Mapping[str, float] | None = None,
        watch: Callable[[str, float], None] = lambda stage, seconds: None,
    ) -> Any:
        """Run ``module:function`` with `args` in the worker and return its answer.

        `timeout` is for the whole task, or for each item of one that counts them (`worker.begin`);
        `stage_timeout` for single stages of it. `watch` is told now and then which stage it is in and for how
        many seconds. Raises TaskError when the task raised (the worker lives on), Died and TimedOut (it does
        not).
        """
        if not self.alive:
            raise RuntimeError("the worker is gone")
        self._asked = self._board.read().number
        started = time.monotonic()
        try:
            self._connection.send((task, args))
        except OSError:
            raise self._died() from None
        while True:
            last, since = self._limits(started, timeout, stage_timeout or {})
            try:
                if self._connection.poll(min(_GLANCE, max(0.0, last - time.monotonic()))):
                    tag, body = self._connection.recv()
                    if tag == "done":
                        return body
                    raise TaskError(*body)
            except (EOFError, OSError):
                raise self._died() from None
            ended = self._zygote.fate("poll", self.pid)
            if ended is not None:
                raise self._died(ended)
            last, since = self._limits(started, timeout, stage_timeout or {})
            watch(self.stage, time.monotonic() - since)
            if time.monotonic() >= last:
                self._end()
                note = self._noted()
                raise TimedOut(time.monotonic() - since, note.stage, self.output, note.item)

    def _limits(
        self, started: float, timeout: float, stage_timeout: Mapping[str, float]
    ) -> tuple[float, float]:
        """Until when the worker may go on as it does, and since when it does."""
        note = self._noted()
        since = note.since or started
        limit = stage_timeout.get(note.stage)
        last = (note.begun or started) + timeout
        return last if limit is None else min(last, since + limit), since

    @property
    def output(self) -> str:
        """The end of what the worker printed."""
        with contextlib.suppress(FileNotFoundError), self._output.open("rb") as stream:
            stream.seek(max(0, self._output.stat().st_size - TAIL))
            return stream.read().decode(errors="replace")
        return self._last_words

    def _died(self, ended: dict[str, Any] | None = None) -> Died:
        if ended is None:
            for _ in range(100):
                ended = self._zygote.fate("poll", self.pid)
                if ended is not None:
                    break
                time.sleep(0.02)
        code = self._end(ended)
        note = self._noted()
        return Died(code, note.stage, self.output, note.item)

    def _end(self, ended: dict[str, Any] | None = None) -> int:
        self.alive = False
        self._connection.close()
        if ended is None:
            ended = self._zygote.fate("kill", self.pid)
            assert ended is not None
        self._last_words = self.output
        shutil.rmtree(self._output.parent, ignore_errors=True)
        return int(ended["code"])

    def kill(self) -> None:
        """Make the process die, from any thread: whoever is in `call` learns of it there."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process and everything that it started."""
        if self.alive:
            self._end()


def _cpu_of(pid: int) -> float:
    """CPU seconds of a process and of the children it has waited for, from /proc; 0 where there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def machine_memory() -> int | None:
    """Bytes of memory that the machine has, or None where programs reserve more addresses than that.

    A program that asks for more is told no, before the machine comes to a halt. CUDA reserves addresses for
    the memory of all devices.
    """
    if Path("/dev/nvidiactl").exists():
        return None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class Sandbox:
    """Owns the scratch folder and the zygotes; everything ends and is removed with it.

    `preload` is the module that a zygote imports before it forks: what all workers need. `memory_limit` is
    in bytes of address space per worker; left out, it is `machine_memory`.

    >>> with Sandbox("minimizer.oracle.warm") as sandbox, sandbox.worker() as worker:     # doctest: +SKIP
    ...     worker.call("minimizer.oracle.tasks:open_target", request, timeout=60.0)
    """

    def __init__(self, preload: str = "", memory_limit: int | None = None) -> None:
        self.scratch = Path(tempfile.mkdtemp(prefix="aoti-minimize-"))
        self._preload = preload
        self._memory_limit = machine_memory() if memory_limit is None else memory_limit
        self._zygotes: dict[tuple[tuple[str, str], ...], _Zygote] = {}
        self._workers: list[Worker] = []
        self._count = itertools.count(1)
        self._lock = threading.Lock()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def cpu_seconds(self) -> float:
        """CPU seconds of this process, of its children and of all workers so far.

        What an ended worker used is its zygote's: the kernel adds it there when the zygote waits for it.
        """
        own = time.process_time()
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        zygotes = sum(_cpu_of(zygote.process.pid) for zygote in self._zygotes.values())
        zygotes += sum(_cpu_of(worker.pid) for worker in self._workers if worker.alive)
        return own + children.ru_utime + children.ru_stime + zygotes

    def warm(self) -> None:
        """Start importing torch now; the first worker will wait for less."""
        self._zygote(())

    def _zygote(self, environment: tuple[tuple[str, str], ...]) -> _Zygote:
        with self._lock:
            known = self._zygotes.get(environment)
            if known is not None and known.process.poll() is not None:
                known.close()
            if known is None or known.process.poll() is not None:
                log = self.scratch / f"zygote-{len(self._zygotes)}.log"
                self._zygotes[environment] = _Zygote(dict(environment), self._preload, log)
            return self._zygotes[environment]

    def worker(
        self,
        environment: tuple[tuple[str, str], ...] = (),
        directory: Path | None = None,
        *,
        own_cache: bool = False,
    ) -> Worker:
        """Fork a worker, by default in an empty folder of its own.

        `environment` is set before torch is imported, at the price of a zygote for each distinct one. With
        `own_cache` nothing that was compiled before is found; else workers share Inductor's cache. Workers
        may be made and used in several threads, each worker in one.
        """
        zygote = self._zygote(environment)
        zygote.wait_ready()
        own = self.scratch / f"w{next(self._count)}"
        own.mkdir()
        cache = (own if own_cache else self.scratch) / "inductor"
        output = own / "output.txt"
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        shared = memory()
        board = Board(shared)
        request = {
            "do": "fork",
            "directory": str(directory if directory and directory.is_dir() else own),
            "environment": {"TMPDIR": str(own), "TORCHINDUCTOR_CACHE_DIR": str(cache)},
            "memory_limit": None if is_asan(environment) else self._memory_limit,
        }
        try:
            with theirs, output.open("wb") as stream:
                pid = zygote.ask(request, [theirs.fileno(), shared, stream.fileno(), stream.fileno()])
        finally:
            os.close(shared)
        worker = Worker(zygote, pid, Connection(ours.detach()), board, output)
        with self._lock:
            self._workers = [w for w in self._workers if w.alive]
            self._workers.append(worker)
        return worker

    def close(self) -> None:
        """Kill every worker and zygote and remove the scratch folder."""
        for worker in self._workers:
            with contextlib.suppress(RuntimeError, OSError):
                worker.close()
        for zygote in self._zygotes.values():
            zygote.close()
        shutil.rmtree(self.scratch, ignore_errors=True)
