"""Scripts in an interpreter of their own."""

import time
from pathlib import Path

from minimizer.sandbox.interpreter import run_python


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] not in "ZX"
    except OSError:
        return False


def script(folder, text):
    (folder / "script.py").write_text(text)
    return "script.py"


def test_status_and_output_come_back(tmp_path):
    name = script(tmp_path, "import os, sys\nprint(os.getcwd())\nsys.exit(7)\n")
    status, output = run_python(name, tmp_path, 60.0)
    assert status == 7
    assert output.strip() == str(tmp_path.resolve())


def test_a_signal_is_a_negative_status(tmp_path):
    name = script(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    assert run_python(name, tmp_path, 60.0)[0] == -11


def test_what_does_not_end_is_killed_with_all_that_it_started(tmp_path):
    text = "import subprocess, time\np = subprocess.Popen(['sleep', '600'])\nprint(p.pid, flush=True)\n"
    status, output = run_python(script(tmp_path, text + "time.sleep(600)\n"), tmp_path, 3.0)
    assert status is None
    child = int(output.split()[0])
    for _ in range(100):
        if not is_running(child):
            return
        time.sleep(0.05)
    raise AssertionError("the child is still there")


def test_the_environment_is_the_one_given(tmp_path):
    name = script(tmp_path, "import os\nprint(sorted(k for k in os.environ if k.startswith('ONLY_')))\n")
    _, output = run_python(name, tmp_path, 60.0, {"ONLY_THIS": "1"})
    assert output.strip() == "['ONLY_THIS']"
