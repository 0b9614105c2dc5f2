"""Size expressions over symbols, as the Python text that a person would write.

A dynamic dim is kept as text such as ``s0``, ``4*s0`` or ``s0 // 2``. The same text is evaluated here
with integers (which sizes does the contract promise?), printed into the candidate's source with
``x.shape[0]`` in the place of ``s0``, and shown in reports. Only arithmetic is understood; nothing is
ever handed to ``eval``, since cases come from strangers.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

Size = int | str


def _power(base: Any, exponent: Any) -> Any:
    """A small power: a size needs no more, and a stranger's ``9**9**9`` would never end."""
    if abs(exponent) > 64 or abs(base) > 2**32:
        raise ValueError(f"not a size expression: a power of {base} by {exponent}")
    return base**exponent


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_CALLS: dict[str, Callable[..., Any]] = {
    "max": max,
    "min": min,
    "abs": abs,
    "int": int,
    "float": float,
    "round": round,
    "math.floor": math.floor,
    "math.ceil": math.ceil,
    "math.trunc": math.trunc,
    "math.sqrt": math.sqrt,
}


@lru_cache(maxsize=4096)
def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"not a size expression: {text!r}") from error


def _call_name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ast.dump(node)


def _evaluate(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _evaluate(operand, values)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_evaluate(left, values), _evaluate(right, values))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
            return _COMPARE[type(op)](_evaluate(left, values), _evaluate(right, values))
        case ast.BoolOp(op=op, values=parts):
            results = [_evaluate(part, values) for part in parts]
            return all(results) if isinstance(op, ast.And) else any(results)
        case ast.Call(func=func, args=args, keywords=[]) if _call_name(func) in _CALLS:
            return _CALLS[_call_name(func)](*(_evaluate(arg, values) for arg in args))
    raise ValueError(f"not a size expression: {ast.unparse(node)!r}")


def evaluate(size: Size, values: Mapping[str, int]) -> Any:
    """The value of a size at given symbol values.

    Raises ValueError for text outside the arithmetic above, KeyError for an unknown symbol.

    >>> evaluate("4*s0 + 1", {"s0": 3})
    13
    """
    return size if isinstance(size, int) else _evaluate(_parse(size), values)


def free_symbols(size: Size) -> frozenset[str]:
    """The symbols that a size speaks of.

    >>> sorted(free_symbols("max(s0, s1) // 2"))
    ['s0', 's1']
    """
    return frozenset() if isinstance(size, int) else _free_symbols(size)


@lru_cache(maxsize=4096)
def _free_symbols(size: str) -> frozenset[str]:
    tree = _parse(size)
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    modules = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    names = (n for n in ast.walk(tree) if isinstance(n, ast.Name))
    return frozenset(n.id for n in names if id(n) not in called and id(n) not in modules)


def substitute(size: Size, replacements: Mapping[str, Size]) -> Size:
    """The size with symbols replaced by other sizes; an integer when none is left.

    >>> substitute("4*s0", {"s0": 3})
    12
    >>> substitute("4*s0 + s1", {"s0": "n + 1"})
    '4 * (n + 1) + s1'
    """
    if isinstance(size, int) or not free_symbols(size) & replacements.keys():
        return size

    class Replace(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            if node.id not in replacements:
                return node
            new = replacements[node.id]
            return _parse(str(new) if isinstance(new, int) else new)

        def visit_Call(self, node: ast.Call) -> ast.expr:
            return ast.Call(node.func, [self.visit(arg) for arg in node.args], node.keywords)

    text = ast.unparse(Replace().visit(ast.parse(size, mode="eval").body))
    if free_symbols(text):
        return text
    value = evaluate(text, {})
    return int(value) if isinstance(value, (int, bool)) else text


def is_symbol(size: Size) -> bool:
    """Whether the size is one bare symbol."""
    return isinstance(size, str) and isinstance(_parse(size), ast.Name)


@lru_cache(maxsize=4096)
def linear(expr: str) -> tuple[str, int, int] | None:
    """``(symbol, factor, offset)`` when the size is ``factor * symbol + offset``, else None.

    >>> linear("4*s0 + 2")
    ('s0', 4, 2)
    """
    names = free_symbols(expr)
    kinks = (ast.Call, ast.FloorDiv, ast.Mod)
    if len(names) != 1 or any(isinstance(n, kinks) for n in ast.walk(_parse(expr))):
        return None
    (name,) = names
    try:
        at = {x: evaluate(expr, {name: x}) for x in (7, 8, 21, 1000)}
    except (ValueError, ArithmeticError):
        return None
    factor = at[8] - at[7]
    offset = at[7] - 7 * factor
    exact = all(isinstance(y, int) and y == factor * x + offset for x, y in at.items())
    return (name, factor, offset) if exact and factor >= 1 else None
