"""What workers are asked to do by the tests of the sandbox."""

import ctypes
import os
import pickle
import resource
import signal
import subprocess
import sys
import time

from minimizer.sandbox import worker
from minimizer.sandbox.worker import begin, note


def add(a, b):
    return a + b


def identity():
    """Who and where the worker is."""
    return {
        "pid": os.getpid(),
        "group": os.getpgid(0),
        "folder": os.getcwd(),
        "files": sorted(os.listdir()),
        "environment": dict(os.environ),
        "memory": resource.getrlimit(resource.RLIMIT_AS)[0],
        "stdin": sys.stdin.read(),
    }


def fail(message):
    raise KeyError(message)


def leave(code):
    sys.exit(code)


def leave_at_once(code):
    note("leaving")
    os._exit(code)


def die(name, stage):
    """End by a signal in a stage, after saying so."""
    print(f"about to {name}", flush=True)
    note("before")
    note(stage)
    os.kill(os.getpid(), signal.Signals[name])
    time.sleep(60)


def read_nowhere():
    note("run")
    ctypes.string_at(0)


def abort():
    note("run")
    os.abort()


def shout(characters):
    """Print a lot, then die."""
    print("first line")
    print("x" * characters)
    print("last line", flush=True)
    print("and stderr", file=sys.stderr, flush=True)
    os.abort()


def hang(stage, children=0):
    """Never answer; the pids of children and of their children are printed first."""
    for _ in range(children):
        shell = subprocess.Popen(["sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
        print(shell.pid, shell.stdout.readline().strip(), flush=True)
    note(stage)
    time.sleep(600)


def leave_a_child():
    """Answer, but leave a process behind."""
    return subprocess.Popen(["sleep", "600"]).pid


def close_stdout(how):
    """Take stdout away in one of the ways in which a model file can."""
    print("unflushed", end="")
    if how == "close":
        sys.stdout.close()
    elif how == "none":
        sys.stdout = None
    elif how == "descriptor":
        os.close(1)
    elif how == "object":
        sys.stdout = object()
    return "still here"


class Stubborn:
    """Cannot be pickled."""

    def __init__(self, error):
        self.error = error

    def __reduce__(self):
        raise self.error("no")


def answer_with(what):
    return {
        "lambda": lambda: None,
        "PicklingError": Stubborn(pickle.PicklingError),
        "RuntimeError": Stubborn(RuntimeError),
        "large": b"x" * 5_000_000,
    }[what]


class Wordless(Exception):
    """An exception that cannot even be printed."""

    def __str__(self):
        raise RuntimeError("no words")


def fail_without_words():
    raise Wordless


def ignore_signals():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    note("deaf")
    time.sleep(600)


def kill_the_zygote():
    note("import")
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


def break_the_worker():
    """Take away what answers are sent through."""
    worker._connection = None


def notes(stages, pauses):
    for stage, pause in zip(stages, pauses):
        note(stage)
        time.sleep(pause)
    return stages


def leave_a_daemon():
    """Answer, but leave a process behind that is in a session of its own; its pid."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(writing, str(os.getpid()).encode())
            time.sleep(600)
        os._exit(0)
    os.waitpid(child, 0)
    return int(os.read(reading, 20))


def fork_and_go_on():
    """Go on in two processes, as a file that forks at import does; both speak of their stage."""
    child = os.fork()
    note("in both")
    if child:
        os.waitpid(child, 0)
    return "once"


def close_all_output(how):
    """Take stdout and stderr away, get them back, and print to them."""
    if how == "descriptor":
        os.close(1)
        os.close(2)
    elif how == "close":
        sys.stdout.close()
        sys.stderr.close()
    elif how == "none":
        sys.stdout = sys.stderr = None
    worker.reopen_output()
    print("from python", flush=True)
    print("from python too", file=sys.stderr, flush=True)
    subprocess.run(["sh", "-c", "echo from a child; echo from a child too >&2"], check=True)


def memory_rank():
    """How readily the kernel ends this process when memory runs out."""
    with open("/proc/self/oom_score_adj") as score:
        return int(score.read())


def burn(seconds):
    """Use CPU time, not wall time."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def items(pauses):
    """Come to one item after the other; a pause below 0 is the end."""
    for k, pause in enumerate(pauses):
        begin(k)
        note("run")
        if pause < 0:
            os.abort()
        time.sleep(pause)
    return len(pauses)
