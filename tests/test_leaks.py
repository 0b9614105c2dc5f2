"""Nothing is left, and nothing grows: after a thousand answers, after dozens of deaths, after kills."""

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import ENVIRONMENT, TESTS, all_gone, runs

from minimizer.oracle.requests import TargetRequest
from minimizer.oracle.target_bench import TargetBench
from minimizer.sandbox import Died, Sandbox, TimedOut

TASKS = "sandbox_tasks:"

MODEL = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x).sum(1)

model = Model()
example_inputs = (torch.randn(4, 8),)
dynamic_shapes = {"x": {0: torch.export.Dim("n", min=2, max=64)}}
"""


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def resident():
    """Kilobytes of memory that this process has for itself."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Private_Dirty:"):
            return int(line.split()[1])
    raise AssertionError("no such line")


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def family():
    """All processes below this one."""
    found, todo = set(), [os.getpid()]
    while todo:
        pid = todo.pop()
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            continue
        todo += map(int, children)
        found |= set(map(int, children))
    return {pid for pid in found if runs(pid)}


@pytest.mark.compiles
def test_a_thousand_judgements_cost_no_more_than_ten(sandbox, tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    bench = TargetBench(
        sandbox, TargetRequest(str(tmp_path / "model.py"), str(tmp_path / "s")), tmp_path / "p.pt2"
    )
    info = bench.open()
    assert bench.compile(300.0) is None
    for _ in range(10):
        assert bench.judge(info.examples).status == "pass"
    gc.collect()
    before = (descriptors(), family(), files(sandbox.scratch), files(tmp_path))
    memory = resident()
    for _ in range(1000):
        assert bench.judge(info.examples).status == "pass"
    gc.collect()
    assert (descriptors(), family(), files(sandbox.scratch), files(tmp_path)) == before
    assert resident() - memory < 2048
    assert bench.workers == 1
    bench.close()


def test_dozens_of_deaths_leave_nothing():
    with Sandbox() as sandbox:

        def die(number):
            worker = sandbox.worker(ENVIRONMENT)
            with pytest.raises((Died, TimedOut)):
                if number % 3 == 0:
                    worker.call(TASKS + "abort", timeout=60.0)
                elif number % 3 == 1:
                    worker.call(TASKS + "hang", "run", 1, timeout=60.0, stage_timeout={"run": 0.05})
                else:
                    worker.call(TASKS + "leave_at_once", 3, timeout=60.0)

        for number in range(3):
            die(number)
        gc.collect()
        before = (descriptors(), family(), files(sandbox.scratch))
        memory = resident()
        for number in range(48):
            die(number)
        gc.collect()
        assert all_gone(family() - before[1])
        assert (descriptors(), family(), files(sandbox.scratch)) == before
        assert resident() - memory < 1024
    assert not sandbox.scratch.exists()


PROGRAM = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is started without
sys.path.insert(0, {tests!r})
from minimizer.sandbox import Sandbox
with Sandbox() as sandbox:
    workers = [sandbox.worker({environment!r}) for _ in range(2)]
    pids = [w.call("sandbox_tasks:identity", timeout=60.0)["pid"] for w in workers]
    for task in ("leave_a_child", "leave_a_daemon"):
        pids.append(workers[0].call("sandbox_tasks:" + task, timeout=60.0))
    pids += [z.process.pid for z in sandbox._zygotes.values()]
    print(sandbox.scratch, *pids, flush=True)
    {then}
"""


def started(then="time.sleep(600)"):
    """A process with a sandbox in it: itself, its scratch folder, and what it started."""
    text = PROGRAM.format(tests=TESTS, environment=ENVIRONMENT, then=then)
    process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
    scratch, *pids = process.stdout.readline().split()
    return process, Path(scratch), list(map(int, pids))


def gone(folder):
    for _ in range(500):
        if not folder.exists():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGINT], ids=str)
def test_whoever_is_killed_leaves_no_process_and_no_folder(number):
    process, scratch, pids = started()
    assert all(map(runs, pids))
    process.send_signal(number)
    process.wait()
    assert all_gone(pids)
    assert gone(scratch)
    process.stdout.close()


def test_a_killed_zygote_takes_its_workers_along_and_the_folder_goes_at_the_end():
    process, scratch, pids = started("time.sleep(1.5)")
    os.kill(pids[-1], signal.SIGKILL)
    process.wait()
    assert process.returncode == 0
    # What a worker sent into a session of its own had the zygote for a parent, which was to end it.
    assert all_gone([pid for k, pid in enumerate(pids) if k != 3])
    assert gone(scratch)
    os.kill(pids[3], signal.SIGKILL)
    process.stdout.close()


def test_killed_workers_leave_nothing():
    with Sandbox() as sandbox:
        for _ in range(5):
            worker = sandbox.worker(ENVIRONMENT)
            pid = worker.call(TASKS + "identity", timeout=60.0)["pid"]
            child = worker.call(TASKS + "leave_a_child", timeout=60.0)
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(Died):
                worker.call(TASKS + "add", 1, 1, timeout=60.0)
            assert all_gone([pid, child])
        assert [f for f in files(sandbox.scratch) if not f.endswith(".log")] == []
