"""The lines of collect_env that a report states."""

import getpass
import re
import socket

import pytest

pytest.importorskip("torch")

import torch

from minimizer.oracle.environment import collected


def test_what_the_form_asks_for_and_nothing_private():
    text = collected()
    facts = dict(line.split(": ", 1) for line in text.splitlines())
    assert facts["PyTorch version"] == torch.__version__
    assert {"OS", "Libc version", "Python version", "Is CUDA available", "torch"} <= facts.keys()
    assert socket.gethostname() not in text
    assert getpass.getuser() not in text.split()
    assert not re.search(r"(?<!\w)/\w", text), "a path"
