"""Model files that do to their process what nobody should: the target is opened and lowered all the same.

What none of these may do is to look like a failure of the compiler.
"""

import os
from pathlib import Path

import pytest

from minimizer.oracle.requests import TargetRequest
from minimizer.oracle.target_bench import TargetBench
from minimizer.sandbox import Died, TaskError, TimedOut

MODEL = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        {forward}
        return torch.relu(x) * 2 + torch.ones(3)

def get_model():
    {making}
    return Model()

def get_example_inputs():
    return (torch.ones(4, 3),)
"""

GOES_ON = {
    "prints megabytes": "import os, sys; print('x' * 3_000_000); os.write(2, bytes(range(256)) * 10_000)",
    "closes output": "import os, sys; sys.stdout.close(); sys.stderr = None; os.close(1); os.close(2)",
    "changes folder": "import os; os.chdir('/')",
    "removes the folder": "import os, tempfile; d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)",
    "sets an alarm": "import signal; signal.setitimer(signal.ITIMER_REAL, 0.3)",
    "handles every signal": (
        "import signal, sys; signal.signal(signal.SIGALRM, lambda *_: sys.exit(1)); "
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    ),
    "hangs at exit": "import atexit, time; atexit.register(time.sleep, 600)",
    "starts a thread": "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()",
    "leaves a child": "import subprocess; subprocess.Popen(['sleep', '600'])",
    "forks and goes on": "import os; os.fork()",
    "limits recursion": "import sys; sys.setrecursionlimit(len(__import__('inspect').stack()) + 40)",
    "defaults to doubles": "torch.set_default_dtype(torch.float64)",
    "defaults to meta": "torch.set_default_device('meta')",
    "turns gradients off": "torch.set_grad_enabled(False)",
    "asks for determinism": "torch.use_deterministic_algorithms(True)",
    "seeds": "torch.manual_seed(7); import random; random.seed(7)",
    "leaves files": "import tempfile; tempfile.mkdtemp(); tempfile.mkstemp()",
    "takes functions away": "import builtins; builtins.open = None; del builtins.print",
    "cannot import": "import sys; sys.path.clear(); sys.meta_path.clear()",
    "clears the environment": "import os; os.environ.clear()",
    "warns": "import warnings; warnings.simplefilter('error')",
}


def opened(sandbox, tmp_path, text, name="model.py"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    request = TargetRequest(str(path), str(tmp_path / "store"))
    bench = TargetBench(sandbox, request, tmp_path / "model.pt2")
    bench.open_timeout = 60.0
    try:
        info = bench.open()
        return info, bench.compile(120.0, "lower")
    finally:
        bench.close()


@pytest.mark.compiles
@pytest.mark.parametrize("deed", GOES_ON.values(), ids=GOES_ON.keys())
def test_at_import_it_is_lived_with(sandbox, tmp_path, deed):
    info, failure = opened(sandbox, tmp_path, f"import torch\n{deed}\n" + MODEL.format(forward="", making=""))
    assert [i.name for i in info.program.inputs] == ["x"]
    assert failure is None
    assert Path.cwd().is_dir()


@pytest.mark.compiles
@pytest.mark.parametrize("deed", ["sets an alarm", "closes output", "limits recursion"])
def test_in_get_model_too(sandbox, tmp_path, deed):
    _, failure = opened(sandbox, tmp_path, MODEL.format(forward="", making=GOES_ON[deed]))
    assert failure is None


@pytest.mark.parametrize(
    ("deed", "stage", "how"),
    [
        ("import os; os._exit(3)", "import", "exit 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "import", "SIGSEGV"),
        ("import ctypes; ctypes.string_at(0)", "import", "SIGSEGV"),
    ],
)
def test_a_file_that_ends_the_process(sandbox, tmp_path, deed, stage, how):
    with pytest.raises(Died) as end:
        opened(sandbox, tmp_path, deed)
    assert (end.value.stage, end.value.signal) == (stage, how)


def test_a_forward_that_ends_the_process(sandbox, tmp_path):
    with pytest.raises(Died) as end:
        opened(sandbox, tmp_path, MODEL.format(forward="__import__('os')._exit(5)", making=""))
    assert (end.value.stage, end.value.signal) == ("eager", "exit 5")


def test_a_file_that_hangs_and_cannot_be_asked_to_end(sandbox, tmp_path):
    text = "import signal, time\nfor s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)\ntime.sleep(600)"
    (tmp_path / "model.py").write_text(text)
    bench = TargetBench(sandbox, TargetRequest(str(tmp_path / "model.py"), str(tmp_path)), tmp_path / "p.pt2")
    bench.open_timeout = 1.0
    with pytest.raises(TimedOut) as end:
        bench.open()
    assert end.value.stage == "import"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import torch\nx = 'é'\n".encode("latin-1"), r"model.py:\d+: .*fix the syntax error"),
        (b"\xff\xfei\x00m\x00", "model.py.*fix the syntax error"),
        (b"x = 1\x00\n", "model.py.*"),
        (MODEL.format(forward="raise SystemExit(4)", making=""), r"the model calls sys.exit\(4\)"),
        (MODEL.format(forward="", making="return [0] * 10**13"), "MemoryError|torch.nn.Module"),
        (
            MODEL.replace("torch.ones(4, 3)", "torch.ones(10**14)").format(forward="", making=""),
            "RuntimeError",
        ),
    ],
    ids=["latin-1", "utf-16", "NUL", "exits in forward", "no memory", "huge inputs"],
)
def test_one_line_says_what_is_wrong(sandbox, tmp_path, text, says):
    with pytest.raises(TaskError, match=says) as problem:
        opened(sandbox, tmp_path, text)
    assert problem.value.exception == "Unusable"
    assert "\n" not in problem.value.message


@pytest.mark.compiles
def test_a_byte_order_mark_is_no_matter(sandbox, tmp_path):
    _, failure = opened(sandbox, tmp_path, b"\xef\xbb\xbf" + MODEL.format(forward="", making="").encode())
    assert failure is None


@pytest.mark.compiles
def test_neighbours_named_like_the_library_s_own_modules(sandbox, tmp_path):
    for name in ("profile", "statistics", "queue", "sympy", "setuptools", "types"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not this one')")
    _, failure = opened(sandbox, tmp_path, MODEL.format(forward="", making=""))
    assert failure is None


@pytest.mark.compiles
def test_a_folder_that_cannot_be_written(sandbox, tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "model.py").write_text(MODEL.format(forward="", making=""))
    os.chmod(tmp_path / "deep" / "model.py", 0o444)
    os.chmod(tmp_path / "deep", 0o555)
    try:
        request = TargetRequest(str(tmp_path / "deep" / "model.py"), str(tmp_path / "store"))
        bench = TargetBench(sandbox, request, tmp_path / "model.pt2")
        assert bench.open().program.inputs
        bench.close()
    finally:
        os.chmod(tmp_path / "deep", 0o755)
