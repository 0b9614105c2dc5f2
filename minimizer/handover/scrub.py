"""Nothing private leaves the machine in a report: paths become short, names of users and hosts go.

A traceback is evidence only in its tail, file name and line: ``.../torch/_inductor/graph.py``. Everything in
front of the package is the reader's private affair, and so is any folder of the user's own.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Iterable
from functools import lru_cache

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PACKAGE = re.compile(r"(?<![\w.])(?:/[\w.+\-~@ ]+)*/(?:site|dist)-packages/")
_LIBRARY = re.compile(r"(?<![\w.])(?:/[\w.+\-~@]+)*/lib/python3\.\d+/")
_TEMPORARY = re.compile(
    r"(?<![\w.])(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm)(?:/[\w.+\-~@]+)*/([\w.+\-~@]+)"
)
_HOME = re.compile(r"(?<![\w.])/(?:home|Users)/[\w.+\-@]+|(?<![\w.])/root\b")
_ABSOLUTE = re.compile(r"(?<![\w.:/<])/(?:[\w.+\-~@]+/)+([\w.+\-~@]+)")
_ADDRESS = re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.]+\b")
_TOO_COMMON = frozenset(
    {"root", "user", "users", "home", "torch", "python", "localhost", "build", "runner", "test"}
)


def scrub(text: str) -> str:
    """The text without home folders, temporary folders, user, host and mail names.

    >>> scrub('File "/home/ann/lib/python3.11/site-packages/torch/_inductor/graph.py", line 7')
    'File ".../torch/_inductor/graph.py", line 7'
    """
    text = _ANSI.sub("", text)
    text = _PACKAGE.sub(".../", text)
    text = _LIBRARY.sub(".../", text)
    text = _TEMPORARY.sub(r"$TMPDIR/\1", text)
    text = _HOME.sub("~", text)
    text = _ABSOLUTE.sub(r".../\1", text)
    text = _ADDRESS.sub("<mail>", text)
    for name, stand_in in _private_names():
        text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", stand_in, text)
    return text


@lru_cache(maxsize=1)
def _private_names() -> tuple[tuple[str, str], ...]:
    users = {os.environ.get("USER", ""), os.environ.get("LOGNAME", "")}
    try:
        users.add(getpass.getuser())
    except (KeyError, OSError, ImportError):
        users.discard("")
    host = socket.gethostname()
    return (*_named(users, "<user>"), *_named({host, host.split(".")[0]}, "<host>"))


def _named(names: Iterable[str], stand_in: str) -> tuple[tuple[str, str], ...]:
    private = (name for name in names if len(name) > 2 and name.lower() not in _TOO_COMMON)
    return tuple((name, stand_in) for name in sorted(private, key=len, reverse=True))
