"""Explanations as text for a terminal, as Markdown for a report, and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from minimizer.explain.router import Found

WIDTH = 110
SHOWN = 3
"""Messages that are explained at length; the others are listed."""


def as_text(found: Sequence[Found], *, everything: bool = False) -> str:
    """For a terminal: the first at length, the others by name, or all of them at length."""
    shown = len(found) if everything else 1
    parts = [_block(f) for f in found[:shown]]
    if found[shown:]:
        rest = [f"  line {f.line}: {f.explanation.name}: {f.explanation.says}{_times(f)}" for f in found[1:]]
        parts.append(
            "\n".join(["also in the log (--all explains them too)", *(line[:WIDTH] for line in rest)])
        )
    return "\n\n".join(parts)


def _times(found: Found) -> str:
    return f" ({found.count} times)" if found.count > 1 else ""


def _block(found: Found) -> str:
    e = found.explanation
    lines = [f"{e.name}: {e.says}{_times(found)}"]
    lines += _labelled("means", e.means)
    for label, text in e.where:
        lines += _labelled(label, text)
    lines += _labelled("likely cause", e.cause) if e.cause else []
    for k, fix in enumerate(e.fixes):
        lines += _labelled("fix" if k == 0 else "or", fix)
    for k, step in enumerate(e.next):
        lines.append(f"  {'next' if k == 0 else 'then':<14}{step}")  # whole, to be copied
    return "\n".join(lines)


def _labelled(label: str, text: str) -> list[str]:
    head = f"  {label:<14}"
    if len(label) > 13:
        head = f"  {label}  "
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * 16,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [head.rstrip()]


def as_markdown(found: Sequence[Found]) -> str:
    """For a report: the first messages, places as a list, commands as code."""
    return "\n\n".join(_markdown(f) for f in found[:SHOWN])


def _markdown(found: Found) -> str:
    e = found.explanation
    parts = [f"**{e.name}**: {e.means}"]
    if e.where:
        parts.append("\n".join(f"- {label}: `{text.replace('`', chr(39))}`" for label, text in e.where))
    if e.cause:
        parts.append(f"Likely cause: {e.cause}.")
    if e.fixes:
        parts.append("Ways to fix it:\n" + "\n".join(f"- {fix}" for fix in e.fixes))
    return "\n\n".join(parts)


def as_json(found: Sequence[Found], source: str) -> dict[str, Any]:
    """Plain data: ``status`` is ``explained`` or ``unknown``; ``explanations`` are cause first."""
    return {
        "status": "explained" if found else "unknown",
        "source": source,
        "explanations": [
            {
                "family": f.family,
                "name": f.explanation.name,
                "says": f.explanation.says,
                "means": f.explanation.means,
                "where": [list(pair) for pair in f.explanation.where],
                "cause": f.explanation.cause,
                "fixes": list(f.explanation.fixes),
                "next": list(f.explanation.next),
                "line": f.line,
                "count": f.count,
            }
            for f in found
        ],
    }
