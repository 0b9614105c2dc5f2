"""Real processes: every way for a worker to end, and nothing left of it."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from processes import ENVIRONMENT, all_gone, runs

from minimizer.sandbox import Died, Sandbox, TaskError, TimedOut

TASKS = "sandbox_tasks:"
SOON = 60.0
"""Seconds within which anything that answers at all has answered."""


@pytest.fixture
def worker(sandbox):
    worker = sandbox.worker(ENVIRONMENT)
    yield worker
    worker.close()


def call(worker, task, *args, timeout=SOON, **more):
    return worker.call(TASKS + task, *args, timeout=timeout, **more)


def test_a_task_is_answered(worker):
    assert call(worker, "add", 2, 3) == 5
    assert call(worker, "add", [1], ["x"]) == [1, "x"]


def test_a_worker_has_a_folder_and_a_group_of_its_own(sandbox, worker):
    found = call(worker, "identity")
    assert found["group"] == found["pid"] != os.getpid()
    assert Path(found["folder"]).parent == sandbox.scratch
    assert found["files"] == ["output.txt"]
    assert found["environment"]["TMPDIR"] == found["folder"]
    assert found["stdin"] == ""


def test_a_worker_may_start_elsewhere(sandbox, tmp_path):
    worker = sandbox.worker(ENVIRONMENT, directory=tmp_path)
    assert call(worker, "identity")["folder"] == str(tmp_path)
    worker.close()


def test_an_exception_is_reported_and_the_worker_lives_on(worker):
    with pytest.raises(TaskError) as problem:
        call(worker, "fail", "nothing here")
    assert problem.value.exception == "KeyError"
    assert problem.value.message == "'nothing here'"
    assert "raise KeyError(message)" in problem.value.traceback
    assert call(worker, "add", 1, 1) == 2


@pytest.mark.parametrize(
    ("task", "exception"),
    [("sandbox_tasks:nothing", "AttributeError"), ("no_such_module:f", "ModuleNotFoundError")],
)
def test_a_task_that_does_not_exist(worker, task, exception):
    with pytest.raises(TaskError) as problem:
        worker.call(task, timeout=SOON)
    assert problem.value.exception == exception


@pytest.mark.parametrize("code", [0, 3, "words"])
def test_sys_exit_is_an_exception_like_others(worker, code):
    with pytest.raises(TaskError) as problem:
        call(worker, "leave", code)
    assert problem.value.exception == "SystemExit"
    assert call(worker, "add", 1, 1) == 2


@pytest.mark.parametrize("code", [0, 7])
def test_leaving_at_once_is_a_death(worker, code):
    with pytest.raises(Died) as end:
        call(worker, "leave_at_once", code)
    assert (end.value.signal, end.value.code, end.value.stage) == (f"exit {code}", code, "leaving")
    assert not worker.alive


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGFPE", "SIGBUS", "SIGILL", "SIGKILL", "SIGTERM"])
def test_deaths_have_names_and_stages(worker, name):
    with pytest.raises(Died) as end:
        call(worker, "die", name, "run")
    assert (end.value.signal, end.value.stage) == (name, "run")
    assert end.value.code == -signal.Signals[name]
    assert f"about to {name}" in end.value.output
    assert str(end.value) == f"the process ended with {name} in stage 'run'"


@pytest.mark.parametrize(("task", "name"), [("read_nowhere", "SIGSEGV"), ("abort", "SIGABRT")])
def test_real_crashes(worker, task, name):
    with pytest.raises(Died) as end:
        call(worker, task)
    assert (end.value.signal, end.value.stage) == (name, "run")


def test_a_dead_worker_answers_no_more(worker):
    with pytest.raises(Died):
        call(worker, "abort")
    with pytest.raises(RuntimeError, match="the worker is gone"):
        call(worker, "add", 1, 1)


def test_a_worker_that_dies_between_tasks(worker):
    pid = call(worker, "identity")["pid"]
    os.kill(pid, signal.SIGSEGV)
    with pytest.raises(Died) as end:
        call(worker, "add", 1, 1)
    assert (end.value.signal, end.value.stage) == ("SIGSEGV", "")


def test_silence_ends_the_worker_and_all_that_it_started(worker):
    pid = call(worker, "identity")["pid"]
    with pytest.raises(TimedOut) as end:
        call(worker, "hang", "lower", 2, timeout=1.0)
    assert end.value.stage == "lower"
    family = [int(word) for word in end.value.output.split()]
    assert len(family) == 4
    assert all_gone([pid, *family])
    assert not worker.alive


def test_signals_cannot_be_ignored(worker):
    pid = call(worker, "identity")["pid"]
    with pytest.raises(TimedOut, match="in stage 'deaf'"):
        call(worker, "ignore_signals", timeout=0.5)
    assert all_gone([pid])


def test_a_stage_may_have_a_limit_of_its_own(worker):
    with pytest.raises(TimedOut) as end:
        call(worker, "hang", "run", timeout=SOON, stage_timeout={"run": 0.5})
    assert end.value.stage == "run"


def test_the_limit_of_one_stage_is_not_that_of_the_next(worker):
    limits, stages = {"short": 1.0}, ["short", "long", "short"]
    assert call(worker, "notes", stages[:2], [0.0, 1.3], stage_timeout=limits) == stages[:2]
    with pytest.raises(TimedOut) as end:
        call(worker, "notes", stages, [0.0, 0.0, 600.0], stage_timeout=limits)
    assert end.value.stage == "short"


def test_each_item_of_a_task_has_the_time_of_a_task(worker):
    assert call(worker, "items", [0.8, 0.8, 0.8], timeout=1.5) == 3
    with pytest.raises(TimedOut) as end:
        call(worker, "items", [0.0, 0.0, 600.0, 0.0], timeout=1.0)
    assert (end.value.item, end.value.stage) == (2, "run")


def test_a_death_tells_at_which_item(worker):
    with pytest.raises(Died) as end:
        call(worker, "items", [0.0, 0.0, 0.0, -1, 0.0])
    assert (end.value.item, end.value.stage) == (3, "run")


def test_closing_ends_what_a_worker_left_running(sandbox):
    worker = sandbox.worker(ENVIRONMENT)
    child = call(worker, "leave_a_child")
    assert runs(child)
    worker.close()
    assert all_gone([child])
    worker.close()


def test_a_death_ends_what_a_worker_left_running(worker):
    child = call(worker, "leave_a_child")
    with pytest.raises(Died):
        call(worker, "abort")
    assert all_gone([child])


def test_a_task_that_forks_answers_once(worker):
    assert call(worker, "fork_and_go_on") == "once"
    assert worker.stage == "in both"
    assert call(worker, "add", 1, 1) == 2


@pytest.mark.parametrize("how", ["close", "none", "descriptor"])
def test_output_that_was_closed_comes_back(worker, how):
    call(worker, "close_all_output", how)
    assert worker.output.splitlines() == [
        "from python",
        "from python too",
        "from a child",
        "from a child too",
    ]


def test_workers_are_the_first_to_go_when_memory_runs_out(worker):
    assert call(worker, "memory_rank") == 1000


def test_the_end_of_the_output_is_kept(worker):
    with pytest.raises(Died) as end:
        call(worker, "shout", 100_000)
    assert end.value.output.splitlines()[-2:] == ["last line", "and stderr"]
    assert "first line" not in end.value.output
    assert len(end.value.output) == 20_000


@pytest.mark.parametrize("how", ["close", "none", "descriptor", "object"])
def test_a_task_may_take_stdout_away(worker, how):
    assert call(worker, "close_stdout", how) == "still here"
    assert call(worker, "add", 1, 1) == 2


@pytest.mark.parametrize("what", ["lambda", "PicklingError", "RuntimeError"])
def test_an_answer_that_cannot_be_sent_is_an_error(worker, what):
    with pytest.raises(TaskError, match="answer cannot be sent"):
        call(worker, "answer_with", what)
    assert call(worker, "add", 1, 1) == 2


def test_a_large_answer_arrives(worker):
    assert len(call(worker, "answer_with", "large")) == 5_000_000


def test_an_exception_without_words_is_reported(worker):
    with pytest.raises(TaskError) as problem:
        call(worker, "fail_without_words")
    assert problem.value.exception == "Wordless"
    assert call(worker, "add", 1, 1) == 2


@pytest.mark.parametrize("task", ["abort", "break_the_worker"])
def test_one_worker_s_end_is_none_of_another_s(sandbox, worker, task):
    assert call(worker, "add", 1, 1) == 2
    other = sandbox.worker(ENVIRONMENT)
    with pytest.raises(Died):
        call(other, task)
    assert call(worker, "add", 1, 1) == 2


def test_workers_serve_several_threads(sandbox):
    def sums(n):
        with_own = sandbox.worker(ENVIRONMENT)
        try:
            return [call(with_own, "add", k, n) for k in range(20)]
        finally:
            with_own.close()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(sums, range(8))) == [[k + n for k in range(20)] for n in range(8)]


def test_a_worker_can_be_killed_from_another_thread(sandbox):
    worker = sandbox.worker(ENVIRONMENT)
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(call, worker, "hang", "run")
        while worker.stage != "run":
            time.sleep(0.01)
        worker.kill()
        with pytest.raises(Died) as lost:
            job.result()
    assert lost.value.signal == "SIGKILL"
    assert not worker.alive


def test_workers_are_paid_for_once(sandbox, worker):
    before = sandbox.cpu_seconds()
    call(worker, "burn", 0.5)
    working = sandbox.cpu_seconds() - before
    worker.close()
    ended = sandbox.cpu_seconds() - before
    assert 0.4 < working < 0.9
    assert 0.4 < ended < 0.9


def test_the_current_folder_is_no_place_to_import_from(tmp_path, monkeypatch):
    for name in ("random", "types", "signal", "torch"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    with Sandbox() as sandbox:
        worker = sandbox.worker(ENVIRONMENT, directory=tmp_path)
        assert call(worker, "add", 1, 1) == 2


def test_a_zygote_that_cannot_start_says_why():
    with Sandbox("no_such_module") as sandbox, pytest.raises(RuntimeError) as problem:
        sandbox.worker()
    first = str(problem.value).splitlines()[0]
    assert first == "the zygote ended: ModuleNotFoundError: No module named 'no_such_module'"


def test_a_task_that_kills_what_started_it_is_a_death_and_the_next_worker_comes_of_another():
    with Sandbox() as sandbox:
        worker = sandbox.worker(ENVIRONMENT)
        with pytest.raises(Died) as end:
            worker.call(TASKS + "kill_the_zygote", timeout=60.0)
        assert (end.value.signal, end.value.stage) == ("SIGKILL", "import")
        assert sandbox.worker(ENVIRONMENT).call(TASKS + "add", 1, 1, timeout=60.0) == 2


def test_nothing_is_left_of_a_sandbox():
    with Sandbox(memory_limit=1 << 40) as sandbox:
        workers = [sandbox.worker(ENVIRONMENT) for _ in range(2)]
        pids = [call(worker, "identity")["pid"] for worker in workers]
        pids += [zygote.process.pid for zygote in sandbox._zygotes.values()]
        pids.append(call(workers[0], "leave_a_child"))
        pids.append(call(workers[0], "leave_a_daemon"))
        assert call(workers[1], "identity")["memory"] == 1 << 40
        assert all(map(runs, pids))
    assert all_gone(pids)
    assert not sandbox.scratch.exists()
