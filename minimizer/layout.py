"""Long lines of Python broken exactly where ``ruff format`` breaks them.

What is handed over must look formatted although no formatter is there at run time. The code that we print
needs a small part of a formatter's rules: brackets are split from the outside in, the last one first; call
arguments move to one line of their own while they fit, else to one line each; displays always to one line
each; a sum breaks before its operators; a chain of two or more methods before its dots.
"""

from __future__ import annotations

import ast

INDENT = "    "
WIDTH = 88

_SPINE = (ast.Call, ast.Subscript, ast.Attribute)
_LEVELS: tuple[tuple[type[ast.operator], ...], ...] = (
    (ast.Add, ast.Sub),
    (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult),
)
_DISPLAYS = (ast.Tuple, ast.List, ast.Dict, ast.Set)


def wrap(line: str, indent: str) -> list[str]:
    """One flat statement, or the header of a function, as lines of at most `WIDTH` characters.

    A line that cannot be parsed or has no place to break comes back as it is, only indented.

    >>> wrap("x = torch.full((3,), 7)", "    ")
    ['    x = torch.full((3,), 7)']
    """
    if len(indent + line) <= WIDTH or not line.isascii():
        return [indent + line]
    try:
        statement = ast.parse(line + " pass" if line.startswith("def ") else line).body[0]
    except (SyntaxError, IndexError):
        return [indent + line]
    match statement:
        case ast.FunctionDef():
            return _Layout(line).header(indent)
        case ast.Assign(value=value) | ast.Expr(value=value) | ast.Return(value=ast.expr() as value):
            layout = _Layout(line)
            return layout.expression(value, line[: value.col_offset], indent, line[layout.end(value) :], True)
    return [indent + line]


class _Layout:
    """Lays out the expressions of one flat line; texts are cut out of the line, never printed anew."""

    def __init__(self, line: str) -> None:
        self.line = line

    def start(self, node: ast.expr) -> int:
        return node.col_offset

    def end(self, node: ast.expr) -> int:
        return node.end_col_offset or len(self.line)

    def text(self, node: ast.expr) -> str:
        return self.line[self.start(node) : self.end(node)]

    def header(self, indent: str) -> list[str]:
        opening, closing = self.line.index("("), self.line.rindex(")")
        inside = self.line[opening + 1 : closing]
        head, tail = indent + self.line[: opening + 1], indent + self.line[closing:]
        if len(indent + INDENT + inside) <= WIDTH:
            return [head, indent + INDENT + inside, tail]
        return [head, *(f"{indent}{INDENT}{name}," for name in inside.split(", ")), tail]

    def expression(self, node: ast.expr, prefix: str, indent: str, suffix: str, top: bool) -> list[str]:
        """`prefix`, the expression and `suffix`; `top` when no bracket surrounds the expression yet."""
        flat = indent + prefix + self.text(node) + suffix
        if len(flat) <= WIDTH:
            return [flat]
        if isinstance(node, _SPINE):
            if len(links := self.links(node)) > 2:
                return self.enclosed(links, prefix, indent, suffix, top)
            return self.brackets(node, prefix, indent, suffix) or [flat]
        if isinstance(node, _DISPLAYS):
            return self.display(node, prefix, indent, suffix)
        if isinstance(node, (ast.BinOp, ast.Compare, ast.BoolOp)):
            operands = self.operands(node)
            if top and len(operands) == 2:
                last = node.right if isinstance(node, ast.BinOp) else None
                before = "" if last is None else self.line[self.start(node) : self.start(last)]
                if isinstance(last, (*_SPINE, *_DISPLAYS)) and not before.endswith("("):
                    broken = self.brackets(last, prefix + before, indent, suffix)
                    if broken:
                        return broken
            return self.enclosed(operands, prefix, indent, suffix, top)
        return [flat]

    def enclosed(self, parts: list[str], prefix: str, indent: str, suffix: str, top: bool) -> list[str]:
        """Parts on lines of their own (or one line when it fits), in brackets where none surround them."""
        if not top:
            whole = [prefix + parts[0], *parts[1:]]
            lines = [line for part in whole for line in wrap_part(part, indent)]
            return [*lines[:-1], lines[-1] + suffix]
        flat = "".join(part if part.startswith(".") else " " + part for part in parts).strip()
        inner = indent + INDENT
        chained = any(part.startswith(".") for part in parts)
        fits = len(inner + flat) <= WIDTH and not chained
        body = [inner + flat] if fits else [line for part in parts for line in wrap_part(part, inner)]
        return [f"{indent}{prefix}(", *body, f"{indent}){suffix}"]

    def links(self, node: ast.expr) -> list[str]:
        """A chain of calls cut before each dot that follows a bracket."""
        cuts: list[int] = []
        end = self.end(node)
        while isinstance(node, _SPINE):
            inner = node.func if isinstance(node, ast.Call) else node.value
            if isinstance(node, ast.Attribute) and self.line[self.end(inner) - 1] in ")]":
                cuts.append(self.end(inner))
            elif isinstance(node, ast.Attribute) and self.line[self.end(inner)] == ")":
                cuts.append(self.line.index(".", self.end(inner)))
            begin = self.start(node)
            node = inner
        edges = [begin, *reversed(cuts), end] if cuts else []
        return [self.line[a:b] for a, b in zip(edges, edges[1:], strict=False)]

    def operands(self, node: ast.expr) -> list[str]:
        """A sum, product or comparison cut before its operators of the weakest binding."""
        cuts: list[int] = []
        begin, end = self.start(node), self.end(node)
        if isinstance(node, ast.BinOp):
            weak = next((level for level in _LEVELS if isinstance(node.op, level)), (type(node.op),))
            inner: ast.expr = node
            while isinstance(inner, ast.BinOp) and isinstance(inner.op, weak):
                position = self.end(inner.left)
                while self.line[position] in ") ":
                    position += 1
                cuts.append(position)
                if self.line[self.end(inner.left)] == ")":
                    break
                inner = inner.left
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            position = self.end(node.left)
            while self.line[position] in ") ":
                position += 1
            cuts.append(position)
        edges = [begin, *reversed(cuts), end]
        return [self.line[a:b].strip() for a, b in zip(edges, edges[1:], strict=False)]

    def brackets(self, node: ast.expr, prefix: str, indent: str, suffix: str) -> list[str]:
        """Split at the last bracket pair of a call or subscript whose line up to it fits; [] if none does."""
        if isinstance(node, _DISPLAYS):
            return self.display(node, prefix, indent, suffix)
        begin, end = self.start(node), self.end(node)
        inner = node
        while isinstance(inner, _SPINE):
            below = inner.func if isinstance(inner, ast.Call) else inner.value
            if not isinstance(inner, ast.Attribute):
                opening = self.line.index("(" if isinstance(inner, ast.Call) else "[", self.end(below))
                closing = self.end(inner) - 1
                head = indent + prefix + self.line[begin : opening + 1]
                tail = indent + self.line[closing:end] + suffix
                if len(head) <= WIDTH and len(tail) <= WIDTH and closing > opening + 1:
                    return [head, *self.contents(inner, opening, closing, indent + INDENT), tail]
            inner = below
        if self.line[self.start(inner) - 1] == "(" and self.start(inner) > begin:
            head, tail = indent + prefix + "(", indent + self.line[self.end(inner) : end] + suffix
            flat = indent + INDENT + self.text(inner)
            if len(flat) <= WIDTH and len(tail) <= WIDTH:
                return [head, flat, tail]
        return []

    def contents(self, node: ast.expr, opening: int, closing: int, indent: str) -> list[str]:
        flat = indent + self.line[opening + 1 : closing]
        if len(flat) <= WIDTH:
            return [flat]
        if not isinstance(node, ast.Call):
            return [flat]
        comma = "" if len(node.args) + len(node.keywords) == 1 else ","
        lines: list[str] = []
        for arg in node.args:
            lines += self.expression(arg, "", indent, comma, False)
        for keyword in node.keywords:
            name = f"{keyword.arg}=" if keyword.arg else "**"
            lines += self.expression(keyword.value, name, indent, comma, False)
        return lines

    def display(self, node: ast.expr, prefix: str, indent: str, suffix: str) -> list[str]:
        text = self.text(node)
        bare = isinstance(node, ast.Tuple) and not text.startswith("(")
        opening, closing = ("(", ")") if bare else (text[0], text[-1])
        lines = [indent + prefix + opening]
        items = node.values if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        comma = "" if len(items) == 1 and not isinstance(node, ast.Tuple) else ","
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                name = f"{self.text(key)}: " if key is not None else "**"
                lines += self.expression(value, name, indent + INDENT, comma, False)
        else:
            for item in items:
                lines += self.expression(item, "", indent + INDENT, comma, False)
        return [*lines, indent + closing + suffix]


def wrap_part(part: str, indent: str) -> list[str]:
    """One link of a chain or operand of a sum, broken at its own last bracket when it is too long."""
    if len(indent + part) <= WIDTH:
        return [indent + part]
    operator = ""
    if part.startswith("."):
        body = wrap("_" + part, indent)
        return [body[0].replace(indent + "_", indent, 1), *body[1:]]
    head, _, rest = part.partition(" ")
    if head and not head[0].isalnum() and head[0] not in "_([{\"'-~":
        operator, part = head + " ", rest
    body = wrap(part, indent)
    if body[0] == indent + "(" and body[-1] == indent + ")":
        body = [line.removeprefix(INDENT) for line in body[1:-1]]
    return [indent + operator + body[0].removeprefix(indent), *body[1:]]
