"""The vocabulary of explaining: a family of messages, the facts in one message, an explanation of them.

A family is one kind of text that some tool prints. Its parser turns text into frozen facts and never raises;
its explainer turns facts into words. Neither touches a file, a process or torch, so a log is explained on a
machine that has nothing of what produced it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

OPCHECK = "from torch import library; library.opcheck(torch.ops.NAMESPACE.OPERATOR, example_args)"
"""Checks a custom operator against what it promises."""

SCRIPT = "python your_script.py"
"""Stands for the command that failed: a log does not say what it was."""


@dataclass(frozen=True)
class Explanation:
    """One message explained.

    `name` is the family's word for it, `says` the message in one line, `where` pairs of a label and a place,
    outermost last; `fixes` are alternatives, `next` commands or steps in order.
    """

    name: str
    says: str
    means: str
    where: tuple[tuple[str, str], ...] = ()
    cause: str = ""
    fixes: tuple[str, ...] = ()
    next: tuple[str, ...] = ()


@dataclass(frozen=True)
class Family:
    """One kind of message.

    `words` are literal strings, one of which every such message contains: text without them is not searched.
    `parse` yields (offset, facts) for each message in a text. `rank` says how near to the cause such a
    message is: an assertion in a kernel (low) comes before the CUDA error (high) that it leads to, also where
    the log prints them the other way round.
    """

    name: str
    rank: int
    words: tuple[str, ...]
    parse: Callable[[str], Iterator[tuple[int, Any]]]
    explain: Callable[[Any], Explanation]


def pairs(**where: object) -> tuple[tuple[str, str], ...]:
    """Labels and places, empty ones left out; underscores in labels become spaces.

    >>> pairs(kernel="cpp_fused_0", line=None, file="")
    (('kernel', 'cpp_fused_0'),)
    """
    return tuple(
        (label.replace("_", " "), str(text)) for label, text in where.items() if text not in (None, "")
    )


def line_at(text: str, offset: int) -> str:
    """The line of a text that holds an offset, without its ends' blanks."""
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    return text[start : len(text) if end < 0 else end].strip()


def following(text: str, offset: int, lines: int) -> str:
    """Some lines of a text, from an offset on."""
    end = offset
    for _ in range(lines):
        end = text.find("\n", end + 1)
        if end < 0:
            return text[offset:]
    return text[offset:end]


_GENERATED = re.compile(r"\b((?:cpp|triton|cuda|cutlass|multi_kernel|mps|xpu)_\w+)")


def generated_kernel(text: str) -> str:
    """The first name in a text that Inductor gives to kernels, or an empty string."""
    match = _GENERATED.search(text)
    return match[1] if match else ""
