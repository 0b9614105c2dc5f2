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
    assert repro("print('shows')\nraise SystemExit(1)") == (1, "shows", [])
    assert repro("import os; os.abort()")[0] == -6


def test_what_is_beside_it_and_nothing_else(repro):
    status, output, _ = repro("import os\nprint(sorted(os.listdir()))", repro_ops="", other="")
    assert (status, output) == (0, "['.temporary', 'repro.py', 'repro_ops']")


def test_no_help_from_the_environment(repro):
    assert repro(f"import os\nprint(os.getenv('PYTHONPATH'), os.getenv('{BACKEND}'))")[1] == "None None"


def test_temporary_files_go_and_the_cache_stays(repro):
    text = """
import tempfile, os
from pathlib import Path
tempfile.mkdtemp(prefix="aotinductor_")
(Path(tempfile.gettempdir()) / "torchinductor_me" / "header").write_text("kept")
os.abort()
"""
    assert repro(text) == (-6, "", ["header"])
