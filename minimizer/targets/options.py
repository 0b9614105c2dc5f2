"""Inductor options that a person gives, checked before anything is compiled.

Inductor raises on an unknown option, and on a value of the wrong type wherever it is first used, which would
look like a compiler bug.
"""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Mapping
from typing import Any

from torch._inductor import config as inductor_config


def problem_of(options: Mapping[Any, Any]) -> str:
    """What is wrong with the options, in one line; empty when nothing is.

    >>> problem_of({"cpp.simdlen": "wide"})
    "Inductor option 'cpp.simdlen' is 'wide', and takes int | None"
    """
    known: Mapping[str, Any] = inductor_config._config
    for key, value in options.items():
        if not isinstance(key, str):
            return f"Inductor option {key!r} is a {type(key).__name__}; options are named by strings"
        if key not in known:
            near = difflib.get_close_matches(key.replace("-", "_"), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "see torch/_inductor/config.py"
            return f"there is no Inductor option {key!r}; {hint}"
        wanted = inductor_config.get_type(key)
        untyped = wanted is types.NoneType  # nothing but a default of None is known of it
        if not untyped and not _fits(value, wanted):
            return f"Inductor option {key!r} is {value!r}, and takes {_shown(wanted)}"
    return ""


def _fits(value: Any, wanted: Any) -> bool:
    """Whether a value is of a type, as far as a type can be checked: containers are not looked into."""
    origin = typing.get_origin(wanted)
    if origin is typing.Literal:
        return value in typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in typing.get_args(wanted))
    if wanted is types.NoneType:
        return value is None
    if wanted is float:
        return isinstance(value, (int, float))
    if wanted is bool:
        return value in (0, 1)
    return not isinstance(wanted, type) or origin is not None or isinstance(value, wanted)


def _shown(wanted: Any) -> str:
    return wanted.__name__ if isinstance(wanted, type) else str(wanted).replace("typing.", "")
