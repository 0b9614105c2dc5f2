"""What a machine has, and what a missing thing costs: each missing thing is played."""

import os
import shutil
from types import SimpleNamespace

import pytest

from minimizer import equipment
from minimizer.equipment import (
    compiler,
    debugger,
    gpu,
    headers,
    memory,
    safetensors,
    sanitizer,
    temporary_folder,
    torch_version,
)
from minimizer.sandbox.tool import run_tool


def script(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_the_compiler_here_builds(tmp_path):
    found = compiler("g++", tmp_path)
    assert found.good is True
    assert found.said.endswith("; builds with OpenMP")
    assert list(tmp_path.iterdir()) == []


def test_no_compiler(tmp_path):
    found = compiler("no-such-compiler", tmp_path)
    assert found.good is False
    assert found.said == (
        "no-such-compiler is not on PATH; nothing can be compiled: install it (Debian: apt install g++)"
    )


def test_a_compiler_that_does_not_build(tmp_path):
    name = script(
        tmp_path, "c++", 'test "$1" = --version && echo "c++ 1.0" || { echo "error: no omp.h"; exit 1; }'
    )
    found = compiler(name, tmp_path)
    assert (found.good, found.said) == (
        False,
        "c++ 1.0 does not build and run a program with OpenMP (error: no omp.h); reinstall g++",
    )


def test_headers(tmp_path):
    assert headers(tmp_path).good is False
    assert "apt install python3-dev" in headers(tmp_path).said
    (tmp_path / "Python.h").touch()
    assert headers(tmp_path).good is True


@pytest.mark.parametrize(("free", "good"), [(50e9, True), (1e9, None), (1e8, False)])
def test_room(tmp_path, monkeypatch, free, good):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))
    found = temporary_folder(tmp_path)
    assert found.good is good
    assert f"{free / 1e9:.1f} GB free" in found.said
    assert ("make room" in found.said) is (good is not True)


def test_a_folder_that_runs_nothing(tmp_path, monkeypatch):
    figures = SimpleNamespace(f_flag=os.ST_NOEXEC, f_bavail=9, f_blocks=9, f_bfree=9, f_frsize=1 << 30)
    monkeypatch.setattr(os, "statvfs", lambda folder: figures)
    found = temporary_folder(tmp_path)
    assert found.good is False
    assert "is mounted noexec; no package can be loaded from it: set TMPDIR" in found.said


def test_a_folder_that_is_not_there(tmp_path):
    found = temporary_folder(tmp_path / "gone")
    assert found.good is False
    assert "cannot be written (No such file or directory); set TMPDIR" in found.said


@pytest.mark.parametrize(
    ("text", "good", "said"),
    [
        ("MemTotal: 9 kB\nMemAvailable:   16000000 kB\n", True, "16.0 GB available"),
        ("MemAvailable: 900000 kB\n", None, "0.9 GB available; a compilation may be killed for it"),
        ("MemAvailable: 90000 kB\n", False, "0.1 GB available; "),
        ("MemTotal: 9 kB\n", None, "how much is available cannot be told"),
    ],
)
def test_memory(tmp_path, text, good, said):
    (tmp_path / "meminfo").write_text(text)
    found = memory(tmp_path / "meminfo")
    assert found.good is good
    assert found.said.startswith(said)


def test_no_sanitizer(monkeypatch):
    def missing():
        raise RuntimeError("g++ here has no libasan.so; install the sanitizer libraries of gcc")

    monkeypatch.setattr(equipment, "asan_environment", missing)
    found = sanitizer()
    assert found.good is None
    assert found.said.startswith(
        "g++ here has no libasan.so; install the sanitizer libraries of gcc; without them"
    )


def test_no_debugger(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert debugger().good is None
    assert "without a native stack (Debian: apt install gdb)" in debugger().said


def test_no_safetensors(monkeypatch):
    monkeypatch.setattr(equipment.importlib.util, "find_spec", lambda name: None)
    assert safetensors().good is None
    assert "pip install safetensors" in safetensors().said


@pytest.mark.parametrize(("version", "good"), [("2.13.0+cpu", True), ("2.1.0", None), ("2.130.0", None)])
def test_torch(version, good):
    found = torch_version({"torch": version, "python": "3.11"})
    assert found.good is good
    assert ("tested with torch 2.13 only" in found.said) is (good is None)


def test_a_gpu_is_optional():
    assert (gpu(True).good, gpu(False).good) == (True, None)


def test_tools(tmp_path):
    assert run_tool([script(tmp_path, "says", "echo out; echo err >&2; exit 4")]) == (4, "out\nerr\n")
    assert run_tool(["no-such-tool"])[0] == 127
    assert run_tool([script(tmp_path, "sleeps", "exec sleep 600")], timeout=0.2)[0] == 127
