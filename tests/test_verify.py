"""A repro is run alone and leaves nothing behind. Here the repros are scripts of two lines."""

import os
import tempfile

import pytest

from minimizer.verify import BACKEND, run_cold


@pytest.fixture
def repro(tmp_path, monkeypatch):
    temporary, folder = tmp_path / "temporary", tmp_path / "run"
    (temporary / "torchinductor_me").mkdir(parents=True)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv(BACKEND, "inductor")

    def run(text, **beside):
        (folder / "repro.py").write_text(text)
        for name, content in beside.items():
            (folder / name).write_text(content)
        status, output = run_cold(folder)
        assert os.listdir(temporary) == ["torchinductor_me"], "something was left behind"
        return status, output.strip(), sorted(os.listdir(temporary / "torchinductor_me"))

    return run


def test_status_and_output(repro):
    assert repro("print('shows')\nraise SystemExit(1)")[:2] == (1, "shows")
    assert repro("import os; os.abort()")[0] == -6


def test_what_is_beside_it_and_nothing_else(repro):
    status, output, _ = repro("import os\nprint(sorted(os.listdir()))", repro_ops="", other="")
    assert (status, output) == (0, "['.temporary', 'repro.py', 'repro_ops']")


def test_no_help_from_the_environment(repro):
    assert repro(f"import os\nprint(os.getenv('PYTHONPATH'), os.getenv('{BACKEND}'))")[1] == "None None"


def test_precompiled_headers_stay_and_all_else_goes(repro):
    text = """
import tempfile, os
from pathlib import Path
tempfile.mkdtemp(prefix="aotinductor_")
inductor = Path(tempfile.gettempdir()) / "torchinductor_me"
print(sorted(os.listdir(inductor)), sorted(os.listdir(inductor / "precompiled_headers")), flush=True)
(inductor / "kernel").write_text("gone")
(inductor / "precompiled_headers" / "header").write_text("kept")
os.abort()
"""
    empty, kept = ["precompiled_headers"], ["header"]
    assert repro(text) == (-6, f"{empty} []", empty)
    assert repro(text) == (-6, f"{empty} {kept}", empty)


def test_no_kernels_from_an_earlier_run(repro, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/elsewhere")
    assert repro("import os\nprint(os.getenv('TORCHINDUCTOR_CACHE_DIR'))")[1] == "None"
