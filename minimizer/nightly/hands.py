"""Who does the work of a night: processes of this machine, or those of a Ray cluster.

Both take units and give events, and both do a unit in the same way: a process of its own, its events in a
file that is read when it has ended, however it ended. What is lost with a process is the input it was at.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Protocol

from minimizer.nightly.ledger import read_events
from minimizer.nightly.units import Event, Target, Unit, unit_from_json, unit_to_json
from minimizer.sandbox.interpreter import run_interpreter

LOG = 20_000
"""Characters of what a unit printed that are kept."""


class NoCluster(Exception):
    """The cluster cannot be used; the message says in one line what to do."""


def do_unit(
    plain: dict[str, Any], folder: str, started: Callable[[int], None] = lambda group: None
) -> list[Event]:
    """Do one unit in a process of its own, with its files below `folder`; what came of it.

    `plain` is the unit as JSON data. Runs wherever the folder is seen.
    """
    unit = unit_from_json(plain)
    work = Path(folder)
    work.mkdir(parents=True, exist_ok=True)
    task, events = work / f"{unit.key}.json", work / f"{unit.key}.jsonl"
    task.write_text(json.dumps(plain), encoding="utf-8")
    arguments = ["-m", "minimizer.nightly.hand", str(task.resolve()), str(events.resolve())]
    began = time.monotonic()
    status, output = run_interpreter(arguments, Path.cwd(), unit.limit, started=started)
    (work / f"{unit.key}.log").write_text(output[-LOG:], encoding="utf-8", errors="replace")
    found = read_events(events)
    if isinstance(unit, Target):
        took = round(time.monotonic() - began, 1)
        about = {"key": unit.key, "name": unit.name, "out": unit.out}
        return [{"did": "target", **about, "seconds": took, "status": status}]
    if status != 0:
        how = f"gave up after {unit.limit:.0f} s" if status is None else f"ended with status {status}"
        last = next((line for line in reversed(output.splitlines()) if line.strip()), "no output")
        found.append({"did": "lost", "key": unit.key, "why": f"{how}: {last.strip()[:200]}"})
    return found


class Hands(Protocol):
    """Does units, several at a time."""

    count: int

    def give(self, unit: Unit) -> None:
        """Start a unit."""

    def take(self, timeout: float) -> list[tuple[Unit, list[Event]]]:
        """The units that have ended; waits for one, at most `timeout` seconds."""

    @property
    def busy(self) -> int:
        """How many units are under way."""

    def stop(self) -> None:
        """End all that is under way."""


class LocalHands:
    """Processes of this machine. The threads only wait for them."""

    def __init__(self, count: int, folder: Path) -> None:
        self.count = count
        self._folder = str(folder)
        self._pool = ThreadPoolExecutor(max_workers=count)
        self._running: dict[Future[list[Event]], Unit] = {}
        self._groups: set[int] = set()

    def give(self, unit: Unit) -> None:
        """Start a unit."""
        self._running[self._pool.submit(self._do, unit_to_json(unit))] = unit

    def _do(self, plain: dict[str, Any]) -> list[Event]:
        own: list[int] = []

        def started(group: int) -> None:
            own.append(group)
            self._groups.add(group)

        try:
            return do_unit(plain, self._folder, started)
        finally:
            self._groups.difference_update(own)  # the number may be another process's by the time we stop

    def take(self, timeout: float) -> list[tuple[Unit, list[Event]]]:
        """The units that have ended."""
        done, _ = wait(self._running, timeout=timeout, return_when=FIRST_COMPLETED)
        return [(self._running.pop(future), _events(future)) for future in done]

    @property
    def busy(self) -> int:
        """How many units are under way."""
        return len(self._running)

    def stop(self) -> None:
        """End all that is under way."""
        for group in tuple(self._groups):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        self._pool.shutdown(wait=True, cancel_futures=True)


def _events(future: Future[list[Event]]) -> list[Event]:
    problem = future.exception()
    if problem is not None:
        return [{"did": "lost", "key": "", "why": f"{type(problem).__name__}: {problem}"[:300]}]
    return future.result()


class RayHands:
    """The workers of a Ray cluster that see the same folders as this machine. Raises NoCluster."""

    def __init__(self, address: str, folder: Path) -> None:
        try:
            import ray
        except ModuleNotFoundError:
            raise NoCluster(
                "--ray needs the package ray: pip install 'aoti-minimize[ray]', on every machine"
            ) from None
        self._ray = ray
        try:
            if not ray.is_initialized():
                ray.init(address=address, log_to_driver=False, configure_logging=False)
        except (ConnectionError, ValueError, RuntimeError) as problem:
            first = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
            raise NoCluster(f"no Ray cluster answers at {address!r}: {first}") from problem
        self.count = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._folder = str(folder)
        # A unit whose worker is lost is given out again by the night, which knows what is missing.
        self._task = ray.remote(num_cpus=1, max_retries=0)(do_unit)
        self._running: dict[Any, Unit] = {}

    def give(self, unit: Unit) -> None:
        """Start a unit."""
        self._running[self._task.remote(unit_to_json(unit), self._folder)] = unit

    def take(self, timeout: float) -> list[tuple[Unit, list[Event]]]:
        """The units that have ended."""
        done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=timeout)
        return [(self._running.pop(ref), self._result(ref)) for ref in done]

    def _result(self, ref: Any) -> list[Event]:
        try:
            events: list[Event] = self._ray.get(ref)
            return events
        except self._ray.exceptions.RayError as problem:
            return [{"did": "lost", "key": "", "why": f"{type(problem).__name__}: {problem}"[:300]}]

    @property
    def busy(self) -> int:
        """How many units are under way."""
        return len(self._running)

    def stop(self) -> None:
        """End all that is under way and leave the cluster as it is."""
        for ref in self._running:
            self._ray.cancel(ref, force=True)
        self._ray.shutdown()


def leftovers(folder: Path) -> Iterator[Event]:
    """Events that units wrote and nobody has read, because the night was killed before they ended."""
    for path in sorted(folder.glob("*.jsonl")):
        yield from read_events(path)
