"""CPU seconds of a reduction, beside PyTorch's own AOTI minifier on the same model files.

Both sides start from the model file and end with a repro; CPU seconds are those of all processes. The bug
is Inductor's own injected one (ReLU), as a compile error, a run-time error and a wrong value, in four
networks of 9 to 400 calls; or give a folder of model files of your own. Each side is ended after `--cap`
CPU seconds: a ratio with `>` is then a lower bound, and the calls left are those it had reached. Of our CPU
seconds, `reduced` are those up to the confirmed minimal program, where PyTorch's minifier ends; the whole
command then finds the kernel, tries settings, and proves and writes the repro and the reports.
"""

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUG = "cpp.inject_relu_bug_TESTING_ONLY"
KINDS = ("compile_error", "runtime_error", "accuracy")


@dataclass(frozen=True)
class Measured:
    """What one command cost, all its processes together, and what it printed."""

    cpu: float
    capped: bool
    output: str


@dataclass(frozen=True)
class Side:
    """How far one side came: operator calls left (None = nothing), oracle calls, dynamic dims kept.

    `reduced` are the CPU seconds up to the confirmed minimal program, `cpu` those of the whole command.
    """

    calls: int | None
    oracle: int
    cpu: float
    capped: bool
    dynamic: int | None = None
    reduced: float = 0.0


@dataclass(frozen=True)
class Task:
    """A model file, further Inductor options, and whether the failure is a wrong value (``accuracy``)."""

    name: str
    model: Path
    config: tuple[tuple[str, str], ...]
    kind: str


def arguments(parser):
    parser.add_argument(
        "cases", nargs="*", help="words that names of cases hold (mlp, accuracy), or a folder of model files"
    )
    parser.add_argument(
        "--cap", type=float, default=480.0, metavar="SECONDS", help="CPU seconds a side (480)"
    )
    parser.add_argument("--ours-only", action="store_true", help="leave PyTorch's minifier out")


def tasks(words):
    """The cases that the words choose: each word must be in the name; folders bring their own files."""
    folders = [Path(word) for word in words if Path(word).is_dir()]
    if folders:
        files = [path for folder in folders for path in sorted(folder.glob("*.py"))]
        found = [Task(path.stem, path, (), _kind(path.stem)) for path in files]
    else:
        found = [
            Task(f"{path.stem}_{kind}", path, ((BUG, kind),), _kind(kind))
            for path in sorted((HERE / "networks").glob("*.py"))
            for kind in KINDS
        ]
    rest = [word for word in words if not Path(word).is_dir()]
    return [task for task in found if all(word in task.name for word in rest)]


def _kind(name):
    return "error" if name.endswith("error") else "accuracy"


def measure(command, folder, cap, environment=None):
    """Run a command in a folder; end it and all that it started after `cap` CPU seconds."""
    log = Path(folder) / "output.txt"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open("w") as stream:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
        capped = False
        try:
            while process.poll() is None and not capped:
                time.sleep(0.2)
                capped = sum(processes(process.pid).values()) > cap
        finally:
            if process.poll() is None:
                left = processes(process.pid)
                used = sum(left.values())
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                process.wait()
            else:
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(used, capped, log.read_text(errors="replace"))


def processes(root):
    """A process and all below it: pid → CPU seconds, with those of the children that it waited for."""
    parents, used = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        pid = int(path.parent.name)
        parents[pid] = int(fields[1])
        used[pid] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    tree = {root}
    while grown := {pid for pid, parent in parents.items() if parent in tree} - tree:
        tree |= grown
    return {pid: used.get(pid, 0.0) for pid in tree}


def theirs(measured):
    """What PyTorch's minifier came to, from the lines that `incumbent.py` prints."""
    asked = re.findall(r"^ORACLE calls=(\d+) fails=([01])$", measured.output, re.MULTILINE)
    failing = [int(calls) for calls, fails in asked if fails == "1"]
    return Side(min(failing, default=None), len(asked), measured.cpu, measured.capped)


def ours(measured, summary):
    """What this tool came to, from its summary.json ({} when there is none)."""
    found = summary.get("nodes_after") if summary.get("status") == "failure" else None
    dims = summary.get("dynamic_dims_after")
    steps = summary.get("cpu_seconds_by_step") or {}
    after = sum(cpu for step, cpu in steps.items() if step not in UP_TO_THE_PROGRAM)
    reduced = measured.cpu - after
    return Side(found, summary.get("candidates", 0), measured.cpu, measured.capped, dims, reduced)


UP_TO_THE_PROGRAM = ("open", "compile", "fuzz", "variants", "capture", "region", "reduce")
"""Steps of ours that lead to what theirs ends in: a minimal program, confirmed."""


def row(name, mine, other):
    """One line of the table."""
    cells = [f"{name:<26}", _side(mine), f"{mine.reduced:>7.0f}"]
    if other is not None:
        more = ">" if other.capped else " "
        ratios = (other.cpu / cpu if cpu else 0.0 for cpu in (mine.cpu, mine.reduced))
        cells += [_side(other), *(f"{more}{ratio:5.1f}" for ratio in ratios)]
    return " ".join(cells)


HEAD = f"{'case':<26} {'ours: calls':>12} {'judged':>6} {'CPU s':>7} {'reduced':>7}"
HEAD_OTHER = f" {'theirs: calls':>12} {'judged':>6} {'CPU s':>7}  ratio  ratio to reduced"


def _side(side):
    left = "-" if side.calls is None else str(side.calls)
    left += "" if side.dynamic is None else f" ({side.dynamic} dyn)"
    return f"{left:>12} {side.oracle:>6} {side.cpu:>7.0f}" + ("*" if side.capped else "")


def main(given):
    chosen = tasks(given.cases)
    if not chosen:
        print(f"no case has {' and '.join(given.cases)} in its name")
        return 2
    print(HEAD + ("" if given.ours_only else HEAD_OTHER), flush=True)
    won = True
    for task in chosen:
        mine, other = _run_ours(task, given.cap), None if given.ours_only else _run_theirs(task, given.cap)
        print(row(task.name, mine, other), flush=True)
        won = won and mine.calls is not None and (other is None or mine.calls <= (other.calls or mine.calls))
    print(
        f"* ended after {given.cap:.0f} CPU seconds; `dyn`: dynamic dims of the result (theirs are dropped)"
    )
    return 0 if won else 1


def _run_ours(task, cap):
    with tempfile.TemporaryDirectory(prefix="bench-reduce-") as folder:
        options = [part for key, value in task.config for part in ("--config", f"{key}={value}")]
        command = [sys.executable, "-m", "minimizer.cli", str(task.model), "--out", "out", *options]
        measured = measure(command, folder, cap, {"PYTHONPATH": str(HERE.parent)})
        path = Path(folder) / "out" / "summary.json"
        return ours(measured, json.loads(path.read_text()) if path.exists() else {})


def _run_theirs(task, cap):
    with tempfile.TemporaryDirectory(prefix="bench-reduce-") as folder:
        config = json.dumps(dict(task.config))
        command = [sys.executable, str(HERE / "incumbent.py"), str(task.model), config, task.kind]
        # A folder of their own for what they dump and for kernels; precompiled headers stay where they are.
        environment = {"TORCH_COMPILE_DEBUG_DIR": folder, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}
        return theirs(measure(command, folder, cap, environment))
