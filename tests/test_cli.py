"""What is wrong with a command is said in one line, with exit status 2 and no traceback."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from minimizer.cli import main
from minimizer.reduce.passes import PASSES
from minimizer.verbs import minimize
from minimizer.verbs.table import VERBS


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(here):
    path = here / "model.py"
    path.write_text("")
    return path


@pytest.fixture(autouse=True)
def no_run(monkeypatch):
    """Whatever goes wrong must do so before a process is started."""

    def refuse(*args, **kwargs):
        pytest.fail("a process was started")

    monkeypatch.setattr(minimize, "Sandbox", refuse)


def complaint(capsys, *argv):
    """The one line that a bad command is answered with."""
    try:
        status = main(argv)
    except SystemExit as exit_:
        status = exit_.code
    out, err = capsys.readouterr()
    assert status == 2
    assert out == ""
    assert err.startswith("aoti-minimize: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["missing.py"], "missing.py does not exist; give the path of a Python file with get_model()"),
        (["folder"], "folder is a folder without a stored case; give the path of a model file in it"),
        (["model.txt"], "model.txt is empty; give a Python file with get_model()"),
        (["model.py", "--config", "freezing"], "--config 'freezing' is not KEY=VALUE"),
        (["model.py", "--config", "=1"], "--config '=1' is not KEY=VALUE"),
        (["model.py", "--budget", "soon"], "--budget: 'soon' is not a number of seconds"),
        (["model.py", "--budget", "0"], "--budget: must be more than 0 seconds"),
        (["model.py", "--budget", "-5"], "--budget: must be more than 0 seconds"),
        (["model.py", "--budget", "nan"], "--budget: must be more than 0 seconds"),
        (["model.py", "--seed", "x"], "--seed: invalid int value: 'x'"),
        (["model.py", "--most-inputs", "0"], "--most-inputs: must be 1 or more"),
        (["model.py", "--most-inputs", "many"], "--most-inputs: 'many' is not a number"),
        (["model.py", "--budge"], "--budge"),
        (["model.py", "--wat"], "unrecognized arguments: --wat"),
        ([], "TARGET"),
        (["doctor", "now"], "unrecognized arguments: now; see aoti-minimize doctor --help"),
        (["replay"], "the following arguments are required: RUN|CASE"),
        (["replay", "nowhere"], "nowhere holds no stored case; give a run folder or a case.json"),
        (["reduce", "model.py"], "model.py is not a stored case; give a run folder or a case.json"),
        (["fuzz", "missing.py"], "missing.py does not exist"),
        (["completion", "csh"], "argument shell: invalid choice: 'csh'"),
        (["corpus", "list", "--corpus", "nowhere"], "nowhere is not a folder"),
        (["corpus", "prune", "--corpus", "nowhere"], "nowhere is not a folder"),
        (["nightly", "diff"], "nightly diff takes two nights"),
        (["model.py", "other.py"], "unrecognized arguments: other.py"),
        (["model.py", "--resume"], "there is no run in model-repro to resume"),
        (["model.py", "--out", "model.txt"], "model.txt is a file; choose another folder with --out"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_bad_commands(capsys, here, model, argv, says):
    (here / "folder").mkdir()
    (here / "model.txt").write_text("")
    assert says in complaint(capsys, *argv)


def test_a_bad_setting_leaves_no_folder_behind(capsys, here, model):
    complaint(capsys, "model.py", "--config", "freezing")
    assert os.listdir(here) == ["model.py"]


def test_a_missing_compiler(capsys, model, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    says = complaint(capsys, "model.py")
    assert "no C++ compiler on PATH; AOTInductor needs one: install g++" in says
    assert os.listdir(tmp_path) == ["model.py"]


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("freezing=True", ("freezing", True)),
        ("cpp.simdlen=1", ("cpp.simdlen", 1)),
        ("a=b=c", ("a", "b=c")),
        ("name=triton", ("name", "triton")),
        ("list=[1, 'x']", ("list", [1, "x"])),
        ("empty=", ("empty", "")),
    ],
)
def test_settings(text, setting):
    assert minimize.setting(text) == setting


def test_passes_are_listed(capsys):
    assert main(["passes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [p.name for p in PASSES]
    assert all(p.summary in line for p, line in zip(PASSES, lines))


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version(capsys, option):
    with pytest.raises(SystemExit) as ended:
        main([option])
    assert ended.value.code == 0
    assert "aoti-minimize" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_fits_a_screen_and_has_an_example(capsys, verb):
    with pytest.raises(SystemExit):
        main([verb, "--help"] if verb else ["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert any(f"aoti-minimize {verb or 'model.py'}" in line for line in lines if "usage" not in line)


def test_a_verb_is_not_a_file(capsys, here):
    (here / "passes").write_text("")
    assert main(["passes"]) == 0
    assert capsys.readouterr().out
    assert "passes is empty" in complaint(capsys, "./passes")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_verbs_and_options(capsys, shell):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in (*VERBS, "budget"):
        assert word in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["rep"], {"replay"}),
        (["mod"], {"model.py"}),
        (["--bud"], {"--budget"}),
        (["replay", "mod"], {"model.py"}),
    ],
)
def test_bash_offers(capsys, model, words, offered):
    main(["completion", "bash"])
    script = capsys.readouterr().out
    line = f"COMP_WORDS=(aoti-minimize {' '.join(words)}); COMP_CWORD={len(words)}"
    shown = f'{script}\n{line}; _shtab_aoti_minimize 2>/dev/null; echo "${{COMPREPLY[@]}}"'
    out = subprocess.run(["bash", "-c", shown], capture_output=True, text=True, check=True).stdout
    assert offered <= set(out.split())


@pytest.mark.parametrize("option", ["--passes", "--skip-passes"])
def test_passes_that_do_not_exist(capsys, model, option):
    assert "no pass 'windows'; do you mean window" in complaint(capsys, "model.py", option, "sizes,windows")
    assert "aoti-minimize passes lists them" in complaint(capsys, "model.py", option, "qqqq")


def test_no_pass_left(capsys, model):
    assert "no pass is left" in complaint(capsys, "model.py", "--passes", "sizes", "--skip-passes", "sizes")


class Nobody:
    """Stands in for the sandbox: nothing is started."""

    scratch = Path("scratch")

    def __init__(self, preload):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def warm(self):
        pass

    def cpu_seconds(self):
        return 0.0


def test_a_fault_of_our_own_is_one_line_too(capsys, here, model, monkeypatch):
    def go(run):
        raise KeyError("first\nsecond")

    monkeypatch.setattr(minimize, "Sandbox", Nobody)
    monkeypatch.setattr(minimize.Run, "go", go)
    says = complaint(capsys, "model.py")
    assert "internal error: KeyError: 'first" in says
    assert "its traceback is in model-repro/internal_error.txt" in says
    assert "in go" in (here / "model-repro/internal_error.txt").read_text()


def test_a_fault_that_cannot_even_be_written_down(capsys, here, model, monkeypatch):
    def go(run):
        run.folder.write = full
        raise OSError(28, "No space left on device")

    def full(name, text):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(minimize, "Sandbox", Nobody)
    monkeypatch.setattr(minimize.Run, "go", go)
    says = complaint(capsys, "model.py")
    assert "model-repro cannot be written any more: No space left on device" in says


def test_a_current_folder_that_is_gone(tmp_path):
    """The interpreter starts there, so it is told before anything is imported that asks for the folder."""
    place = tmp_path / "gone"
    place.mkdir()
    code = (
        "import os, sys; os.rmdir(os.getcwd()); from minimizer.cli import main; sys.exit(main(['model.py']))"
    )
    command = [sys.executable, "-c", code]
    root = str(Path(__file__).parent.parent)
    done = subprocess.run(
        command,
        cwd=place,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "aoti-minimize: the current folder is gone (No such file or directory); change to one that exists\n"
    )


def test_a_disk_that_is_full_before_the_run_begins(capsys, here, model, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", "scratch")

    monkeypatch.setattr(minimize, "Sandbox", full)
    assert "No space left on device" in complaint(capsys, "model.py")


def test_a_disk_that_is_full_when_the_run_folder_is_made(capsys, here, model, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(minimize.RunFolder, "write", full)
    says = complaint(capsys, "model.py")
    assert "model-repro cannot be written: No space left on device; choose another with --out" in says


@pytest.fixture
def signals_as_they_were():
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    known = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, known):
        signal.signal(number, handler)


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("second", [None, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_an_interruption_keeps_the_best(here, model, monkeypatch, signals_as_they_were, first, second):
    kept = []

    def go(run):
        signal.raise_signal(first)
        pytest.fail("the signal was ignored")

    def keep(run):
        if second is not None:
            signal.raise_signal(second)
        kept.append(run.interrupted)

    monkeypatch.setattr(minimize, "Sandbox", Nobody)
    monkeypatch.setattr(minimize.Run, "go", go)
    monkeypatch.setattr(minimize, "keep_best", keep)
    assert main(["model.py"]) == 130
    assert kept == ([True] if second != signal.SIGINT else [])


def test_an_interruption_before_anything_has_begun(here, model, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(minimize, "Sandbox", interrupted)
    assert main(["model.py"]) == 130


@pytest.mark.parametrize(("argv", "fuzz_only"), [(["model.py"], False), (["fuzz", "model.py"], True)])
def test_fuzz_is_a_run_that_stops(here, model, monkeypatch, argv, fuzz_only):
    seen = []
    monkeypatch.setattr(minimize, "Sandbox", Nobody)
    monkeypatch.setattr(minimize.Run, "go", lambda run: seen.append(run.options.fuzz_only) or 0)
    assert main(argv) == 0
    assert seen == [fuzz_only]


def test_reduce_starts_from_the_inputs_of_the_case(here, monkeypatch):
    (here / "model-repro" / "case").mkdir(parents=True)
    text = json.dumps({"program": {}, "values": [], "settings": {}})
    (here / "model-repro" / "case" / "case.json").write_text(text)
    seen = []
    monkeypatch.setattr(minimize, "Sandbox", Nobody)
    monkeypatch.setattr(minimize.Run, "go", lambda run: seen.append(run.options) or 0)
    assert main(["reduce", "model-repro"]) == 0
    assert (seen[0].check_inputs, str(seen[0].out)) == ("failing_inputs", "model-reduced")


def test_json_goes_to_stdout_and_the_rest_to_stderr(capsys, here, model, monkeypatch):
    def go(run):
        run.console.say("fuzz", "some words")
        run.note(status="none")
        return 0

    monkeypatch.setattr(minimize, "Sandbox", Nobody)
    monkeypatch.setattr(minimize.Run, "go", go)
    assert main(["model.py", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["status"] == "none"
    assert "some words" in err
