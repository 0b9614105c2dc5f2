"""Lines go out whatever is in them and whoever listens."""

import os
import subprocess
import sys

import pytest

from minimizer.console import Console, one_line

TALK = """
import sys
from minimizer.console import Console, open_streams
open_streams()
console = Console()
for k in range(20000):
    console.say("reduce", f"{k} → {k} nodes · done")
print("still alive", file=sys.stderr)
raise SystemExit(7)
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one\ntwo\r\n\ttwo", "one two two"),
        ("\x1b[31mred\x00", r"\x1b[31mred\x00"),
        ("bad \udcff", r"bad \udcff"),
        ("größe → ∞", "größe → ∞"),
        ("x" * 2000, "x" * 997 + "..."),
        ("", ""),
    ],
)
def test_one_line(text, line):
    assert one_line(text) == line
    line.encode()


def talk(shell, **environment):
    command = f'"$0" -c "$1" {shell}'
    return subprocess.run(
        ["bash", "-c", command, sys.executable, TALK],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("shell", ["| head -1; exit ${PIPESTATUS[0]}", "> /dev/full", ">&-"])
def test_nobody_listens(shell):
    done = talk(shell)
    assert done.returncode == 7
    assert done.stderr == "still alive\n"


def test_nobody_listens_at_all():
    assert talk(">&- 2>&- <&-").returncode == 7


def test_a_terminal_that_knows_few_characters():
    done = talk("", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 7
    assert done.stdout.splitlines()[0] == r"reduce      0 \u2192 0 nodes \xb7 done"


def test_quiet(capsys):
    console = Console(quiet=True)
    console.say("target", "not said")
    console.say("result", "first\nsecond", always=True)
    assert capsys.readouterr().out == "result      first\n            second\n"
