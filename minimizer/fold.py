"""Values that are used once, folded into the line that uses them: ``torch.sum(torch.relu(x))``.

A printed program has one call a line; a person nests what is used once. Folding must not change what is
computed when, so a value moves only into the very next line, past nothing but names.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile

from minimizer.layout import INDENT
from minimizer.program import Program

LONGEST_FOLDED = 64
LONGEST_RETURNED = 80
"""Characters of a line into which something was folded, and of one that just returns it."""


def inline(lines: Sequence[str], program: Program) -> list[str]:
    """Fold a value that is used once, by the next line, into that line while it stays short.

    Only where nothing else is computed between the two, so that no call changes its turn.
    """
    values = {node.name for node in program.nodes}
    uses = Counter(name for line in lines for name in re.findall(r"(?<![\w.])[A-Za-z_]\w*", line))
    folded = list(lines)
    k = 0
    while k + 1 < len(folded):
        name, _, text = folded[k].partition(" = ")
        merged = _folded(name, text, folded[k + 1]) if name in values and uses[name] == 2 else None
        most = LONGEST_RETURNED if folded[k + 1] == f"return {name}" else LONGEST_FOLDED
        if merged is not None and len(merged) <= most:
            folded[k : k + 2] = [merged]
            k = max(0, k - 1)
        else:
            k += 1
    return folded


def _folded(name: str, text: str, line: str) -> str | None:
    """`line` with `text` in the place of `name`; None where that would change what is computed when."""
    if line.startswith((INDENT, "def ")) or name not in line:
        return None
    events = _order(*ast.parse(line).body)
    names = takewhile(lambda event: isinstance(event[0], ast.Name), events)
    reads = ((n, p) for n, p in names if isinstance(n, ast.Name) and n.id == name)
    found, parent = next(reads, (None, None))
    if found is None:
        return None
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Pow):
        return None
    value = ast.parse(text, mode="eval").body
    new = f"({text})" if _binds_weaker(value, found, parent) else text
    return line[: found.col_offset] + new + line[found.col_offset + len(name) :]


_OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.Compare)


_LEVELS: tuple[tuple[type[ast.operator], ...], ...] = (
    (ast.BitOr,),
    (ast.BitXor,),
    (ast.BitAnd,),
    (ast.LShift, ast.RShift),
    (ast.Add, ast.Sub),
    (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult),
)


def _level(node: ast.AST | None) -> int:
    if isinstance(node, ast.BinOp):
        return next((k for k, level in enumerate(_LEVELS) if isinstance(node.op, level)), len(_LEVELS))
    return -1 if isinstance(node, ast.Compare) else len(_LEVELS)


def _binds_weaker(value: ast.AST, place: ast.AST, parent: ast.AST | None) -> bool:
    """Whether `value` needs brackets to stand in the place of an operand of `parent`."""
    if not isinstance(value, _OPERATIONS):
        return False
    if isinstance(parent, ast.BinOp):
        return _level(value) < _level(parent) + (parent.right is place)
    if isinstance(parent, ast.Compare):
        return isinstance(value, ast.Compare)
    inside = isinstance(parent, ast.Subscript) and parent.slice is place
    return isinstance(parent, (ast.UnaryOp, ast.Attribute, ast.Subscript)) and not inside


def _order(node: ast.AST, parent: ast.AST | None = None) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """The names that a statement reads and the operations that it does, in the order of evaluation."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load):
            yield node, parent
        return
    for child in ast.iter_child_nodes(node):
        yield from _order(child, node)
    if isinstance(node, (*_OPERATIONS, ast.Call, ast.Subscript)):
        yield node, parent
