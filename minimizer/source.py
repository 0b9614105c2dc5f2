"""A program printed as the Python module that a person would write.

The text is not a rendering made at the end: it is what is judged. Every candidate is printed, executed,
exported and compiled from this text, so the repro that is handed over is the program that failed. Sizes are
read off the tensors at hand (``s0 = x.shape[0]``) at the first line that needs them.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from minimizer.layout import INDENT, wrap
from minimizer.program import (
    Arg,
    Device,
    Graph,
    Input,
    Node,
    Program,
    Ref,
    State,
    Sym,
    TensorMeta,
    Torch,
    Tree,
    leaves,
    references,
    sym_symbols,
)
from minimizer.roll import laid_out
from minimizer.symbolic import free_symbols, linear

_PUBLIC_HIGHER_ORDER = {
    "higher_order.cond": "torch.cond",
    "higher_order.while_loop": "torch._higher_order_ops.while_loop",
}
_INFIX = {
    "operator.add": "+",
    "operator.sub": "-",
    "operator.mul": "*",
    "operator.truediv": "/",
    "operator.floordiv": "//",
    "operator.mod": "%",
    "operator.pow": "**",
    "operator.matmul": "@",
    "operator.and_": "&",
    "operator.or_": "|",
    "operator.xor": "^",
    "operator.lshift": "<<",
    "operator.rshift": ">>",
    "operator.eq": "==",
    "operator.ne": "!=",
    "operator.lt": "<",
    "operator.le": "<=",
    "operator.gt": ">",
    "operator.ge": ">=",
}
_PREFIX = {"operator.neg": "-", "operator.invert": "~"}


def is_identifier(text: str) -> bool:
    """Whether every dotted part of `text` can stand in source code."""
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in text.split("."))


def literal(arg: Arg, names: Mapping[str, str] | None = None) -> str:
    """The source text of an argument.

    Raises ValueError for a name that could not stand in source code: cases come from strangers.

    >>> literal((Ref("x"), Torch("float32"), float("inf")))
    '(x, torch.float32, float("inf"))'
    """
    match arg:
        case Ref(name=name) if is_identifier(name):
            text = (names or {}).get(name, name)
            return text
        case Sym(expr=expr):
            return _spaced(expr)
        case Torch(name=name) if is_identifier(name):
            return f"torch.{name}"
        case Device(name=name):
            return _quoted(name)
        case Graph(name=name) if is_identifier(name):
            return name
        case Tree(type="dict", keys=keys, items=items):
            pairs = zip(keys, items, strict=True)
            return "{" + ", ".join(f"{literal(k)}: {literal(v, names)}" for k, v in pairs) + "}"
        case Tree(type=type_name, items=items) if is_identifier(type_name):
            return f"{type_name}({literal(tuple(items), names)})"
        case tuple():
            inside = ", ".join(literal(item, names) for item in arg)
            return f"({inside},)" if len(arg) == 1 else f"({inside})"
        case list():
            return "[" + ", ".join(literal(item, names) for item in arg) + "]"
        case slice():
            return f"slice{literal((arg.start, arg.stop, arg.step), names)}"
        case float() if math.isnan(arg) or math.isinf(arg):
            return f'float("{arg}")'
        case complex():
            return f"complex({literal(arg.real)}, {literal(arg.imag)})"
        case str():
            return _quoted(arg)
        case None | bool() | int() | float():
            return repr(arg)
    raise ValueError(f"cannot be printed: {arg!r}")


def _quoted(text: str) -> str:
    plain = repr(text)
    return '"' + plain[1:-1] + '"' if '"' not in text and plain.startswith("'") else plain


@lru_cache(maxsize=4096)
def _spaced(expression: str) -> str:
    try:
        text = ast.unparse(ast.parse(expression, mode="eval"))
    except SyntaxError as error:
        raise ValueError(f"not a size expression: {expression!r}") from error
    return re.sub(r"(?<![\w.)\]])(\w+) \*\* (-?\w+)(?![\w.(\[])", r"\1**\2", text)


def callee(node: Node) -> str:
    """The source text of the function that a node calls."""
    target = node.target if _loop_operands(node) else _PUBLIC_HIGHER_ORDER.get(node.target, node.target)
    if not is_identifier(target):
        raise ValueError(f"cannot be printed: operator {target!r}")
    return target if target.startswith(("torch.", "operator.", "math.")) else f"torch.ops.{target}"


def _loop_operands(node: Node) -> Arg:
    """What a loop reads and does not carry; the operator takes it, the public function does not."""
    loop = node.target == "higher_order.while_loop" and len(node.args) == 4
    return node.args[3] if loop else ()


def call_text(node: Node, names: Mapping[str, str]) -> str:
    """The source text of a call: a function, a method (``Tensor.view``), an operator or an item."""
    if node.target in _INFIX and len(node.args) == 2 and not node.kwargs:
        sign = _INFIX[node.target]
        left, right = (_operand(arg, names) for arg in node.args)
        if sign != "**":
            return f"{left} {sign} {right}"
        left = f"({left})" if left.startswith("-") else left
        simple = all(re.fullmatch(r"-?[\w.]+", side) for side in (left, right))
        return f"{left}**{right}" if simple else f"{left} ** {right}"
    if node.target in _PREFIX and len(node.args) == 1 and not node.kwargs:
        return f"{_PREFIX[node.target]}{_operand(node.args[0], names)}"
    if node.target == "operator.getitem":
        return f"{literal(node.args[0], names)}[{literal(node.args[1], names)}]"
    if node.target == "Tensor.__getitem__" and len(node.args) == 2:
        index = node.args[1] if isinstance(node.args[1], tuple) and node.args[1] else (node.args[1],)
        return f"{literal(node.args[0], names)}[{', '.join(_index(part, names) for part in index)}]"
    kwargs = [f"{key}={literal(value, names)}" for key, value in node.kwargs if is_identifier(key)]
    args = [literal(arg, names) for arg in node.args]
    if node.target == "higher_order.while_loop" and not _loop_operands(node):
        args = args[:3]
    if node.target.startswith("Tensor."):
        return f"{args[0]}.{node.target.removeprefix('Tensor.')}({', '.join(args[1:] + kwargs)})"
    return f"{callee(node)}({', '.join(args + kwargs)})"


def _operand(arg: Arg, names: Mapping[str, str]) -> str:
    text = literal(arg, names)
    compound = isinstance(arg, Sym) and not re.fullmatch(r"[\w.]+", text)
    return f"({text})" if compound else text


def _index(part: Arg, names: Mapping[str, str]) -> str:
    if not isinstance(part, slice):
        return literal(part, names)
    ends = ["" if end is None else literal(end, names) for end in (part.start, part.stop, part.step)]
    simple = all(re.fullmatch(r"-?\w*", end) for end in ends)
    text = (":" if simple else " : ").join(ends if ends[2] else ends[:2])
    return text.strip() or ":"


class _Sizes:
    """Which expression gives each symbol, at a point of the body."""

    def __init__(self) -> None:
        self.alone: dict[str, str] = {}
        self.solved: dict[str, str] = {}
        self.bound: set[str] = set()

    @property
    def sources(self) -> dict[str, str]:
        """The best source of each symbol: a dim that it is, else one that is a multiple of it."""
        return self.solved | self.alone

    def learn(self, text: str, meta: Any) -> None:
        if isinstance(meta, TensorMeta):
            for dim, size in enumerate(meta.shape):
                form = linear(size) if isinstance(size, str) else None
                if form is None:
                    continue
                name, factor, offset = form
                given = f"{text}.shape[{dim}]"
                if size == name:
                    self.alone.setdefault(name, given)
                    continue
                less = f"{given} - {offset}" if offset > 0 else f"{given} + {-offset}" if offset else given
                whole = f"({less}) // {factor}" if offset else f"{less} // {factor}"
                self.solved.setdefault(name, whole if factor != 1 else less)
        elif isinstance(meta, Sym) and free_symbols(meta.expr) == {meta.expr}:
            self.alone.setdefault(meta.expr, text)

    def lines(self, symbols: frozenset[str]) -> list[str]:
        sources = self.sources
        new = [name for name in sorted(symbols - self.bound) if name in sources]
        self.bound.update(new)
        return [f"{name} = {sources[name]}" for name in new if sources[name] != name]


def missing_symbols(program: Program) -> frozenset[str]:
    """Symbols that the program's calls speak of and that no tensor at hand can give."""
    known: set[str] = set()
    missing: set[str] = set()

    def learn(meta: Any) -> None:
        sizes = _Sizes()
        sizes.learn("_", meta)
        known.update(sizes.sources)

    records: tuple[Input | State, ...] = (*program.inputs, *program.state)
    for record in records:
        learn(record.meta)
    for node in program.nodes:
        missing |= sym_symbols((node.args, tuple(node.kwargs))) - known
        for meta in leaves((node.meta,)):
            learn(meta)
    return frozenset(missing | (sym_symbols(program.output) - known))


def _statements(program: Program, state: Mapping[str, str]) -> list[str]:
    sizes = _Sizes()
    names = dict(state)
    for i in program.inputs:
        sizes.learn(i.name, i.meta)
    for s in program.state:
        sizes.learn(names[s.name], s.meta)
    lines: list[str] = []
    for name, body in program.graphs:
        lines += _function(name, body)
    for node in program.nodes:
        lines += sizes.lines(sym_symbols((node.args, tuple(node.kwargs))))
        text = call_text(node, names)
        unused = not any(node.name in n.inputs for n in program.nodes) and node.name not in program.outputs
        lines.append(text if unused and not isinstance(node.meta, Sym) else f"{node.name} = {text}")
        sizes.learn(node.name, node.meta)
    lines += sizes.lines(sym_symbols(program.output))
    lines.append(f"return {literal(program.output, names)}")
    return laid_out(lines, program)


def _function(name: str, body: Program) -> list[str]:
    parameters = ", ".join(i.name for i in body.inputs)
    state = {s.name: f"self.{s.name}" for s in body.state}
    return [f"def {name}({parameters}):", *(INDENT + line for line in _statements(body, state)), ""]


def parameters(program: Program) -> tuple[list[str], list[str]]:
    """The parameter list of ``forward`` and the lines that unpack nested containers."""
    if program.is_flat:
        return [i.name for i in program.inputs], []
    names: list[str] = []
    unpack: list[str] = []

    def visit(arg: Arg, path: str) -> None:
        if isinstance(arg, Ref):
            if arg.name != path:
                unpack.append(f"{arg.name} = {path}")
        elif isinstance(arg, Tree) and arg.type == "dict":
            for key, item in zip(arg.keys, arg.items, strict=True):
                visit(item, f"{path}[{literal(key)}]")
        elif isinstance(arg, (tuple, list, Tree)):
            for k, item in enumerate(arg.items if isinstance(arg, Tree) else arg):
                visit(item, f"{path}[{k}]")

    for k, arg in enumerate(program.args or ()):
        name = arg.name if isinstance(arg, Ref) else f"arg{k}"
        names.append(name)
        visit(arg, name)
    if program.kwargs:
        names.append("*")
    for key, arg in program.kwargs:
        names.append(key)
        visit(arg, key)
    return names, unpack


def module_source(program: Program, state_code: Mapping[str, str], *, name: str = "Model") -> str:
    """A ``torch.nn.Module`` class as text.

    `state_code` gives, for each state tensor, the expression that builds it; with ``state[...]`` in it the
    constructor takes one argument ``state``, else none. Raises ValueError as `literal` does.
    """
    _check_names(program)
    lines = [f"class {name}(torch.nn.Module):"]
    if program.state:
        takes = any("state[" in code for code in state_code.values())
        lines.append(f"{INDENT}def __init__(self{', state' if takes else ''}):")
        lines.append(f"{INDENT * 2}super().__init__()")
        for s in program.state:
            lines += wrap(_state_line(s.name, s.kind, s.meta.dtype, state_code[s.name]), INDENT * 2)
        lines.append("")
    names, unpack = parameters(program)
    state = {s.name: f"self.{s.name}" for s in program.state}
    statements = _statements(program, state)
    read = set(re.findall(r"\w+", " ".join(statements)))
    unpack = [line for line in unpack if line.partition(" = ")[0] in read]
    if unpack and program.graphs:
        unpack.append("")
    lines += wrap(f"def forward({', '.join(['self', *names])}):", INDENT)
    for statement in [*unpack, *statements]:
        inner = len(statement) - len(statement.lstrip())
        lines += wrap(statement.strip(), INDENT * 2 + " " * inner) if statement else [""]
    return "\n".join(lines) + "\n"


def function_source(program: Program, name: str) -> str:
    """A program without state as the text of a function. Raises ValueError as `literal` does."""
    _check_names(program)
    lines = wrap(f"def {name}({', '.join(parameters(program)[0])}):", "")
    for statement in _statements(program, {}):
        inner = len(statement) - len(statement.lstrip())
        lines += wrap(statement.strip(), INDENT + " " * inner) if statement else [""]
    return "\n".join(lines) + "\n"


def _check_names(program: Program) -> None:
    names = [i.name for i in program.inputs] + [s.name for s in program.state]
    names += [n.name for n in program.nodes] + [s.name for s in program.symbols]
    names += [key for key, _ in program.kwargs] + [name for name, _ in program.graphs]
    for name in names:
        if not is_identifier(name) or "." in name:
            raise ValueError(f"cannot be printed: the name {name!r}")
    for _, body in program.graphs:
        _check_names(body)


def _state_line(name: str, kind: str, dtype: str, code: str) -> str:
    if kind == "parameter":
        trainable = dtype.startswith(("float", "bfloat", "complex"))
        return f"self.{name} = torch.nn.Parameter({code}{'' if trainable else ', requires_grad=False'})"
    if kind == "buffer":
        return f"self.register_buffer({_quoted(name)}, {code})"
    return f"self.{name} = {code}"


def dynamic_shapes_code(program: Program) -> tuple[list[str], str]:
    """The lines that define dims and the ``dynamic_shapes`` literal, or ([], "") for a static program."""
    if not program.dynamic_dims:
        return [], ""
    ranges = {s.name: s for s in program.symbols}
    used: list[str] = []

    def dim(size: str) -> str:
        form = linear(size)
        if form is None or form[0] not in ranges:
            return "Dim.AUTO"
        # A Dim may not be related to an AUTO: a multiple of a size is written as one.
        name, factor, offset = form
        used.append(name)
        times = f"{factor}*{name}" if factor != 1 else name
        return f"{times} + {offset}" if offset > 0 else f"{times} - {-offset}" if offset else times

    def spec(i: Input) -> str:
        dims = [f"{k}: {dim(size)}" for k, size in enumerate(i.meta.shape) if isinstance(size, str)]
        return "{" + ", ".join(dims) + "}" if dims else "None"

    specs = {i.name: spec(i) for i in program.inputs}
    if program.is_flat:
        text = "{" + ", ".join(f"{_quoted(name)}: {code}" for name, code in specs.items()) + "}"
    else:
        named = [
            (a.name if isinstance(a, Ref) else f"arg{k}", a) for k, a in enumerate(program.args or ())
        ] + list(program.kwargs)
        text = "{" + ", ".join(f"{_quoted(key)}: {_spec_tree(arg, specs)}" for key, arg in named) + "}"
    lines = []
    for name in dict.fromkeys(used):
        symbol = ranges[name]
        bounds = f", min={symbol.low}" + (f", max={symbol.high}" if symbol.high is not None else "")
        lines.append(f'{name} = Dim("{name}"{bounds})')
    return lines, text


def _spec_tree(arg: Arg, specs: Mapping[str, str]) -> str:
    if isinstance(arg, Ref):
        return specs[arg.name]
    if isinstance(arg, Tree) and arg.type == "dict":
        pairs = zip(arg.keys, arg.items, strict=True)
        return "{" + ", ".join(f"{literal(k)}: {_spec_tree(v, specs)}" for k, v in pairs) + "}"
    if isinstance(arg, (tuple, list, Tree)):
        items = [_spec_tree(v, specs) for v in (arg.items if isinstance(arg, Tree) else arg)]
        if isinstance(arg, tuple):
            return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"
        return "[" + ", ".join(items) + "]"
    return "None"


_OWN = """
aten prims torch operator higher_order math Tensor prim inductor quantized quantized_decomposed _quantized
mkldnn profiler rngprims streams c10d_functional
"""
_OWN_NAMESPACES = frozenset(_OWN.split())


def custom_namespaces(program: Program) -> frozenset[str]:
    """Namespaces of operators that do not come with torch."""
    spaces = {node.target.split(".")[0] for node in program.nodes} - _OWN_NAMESPACES
    return frozenset(spaces).union(*(custom_namespaces(body) for _, body in program.graphs))


def unresolved_references(program: Program) -> tuple[str, ...]:
    """Names that are read before anything defines them: an ill-formed program."""
    known = {i.name for i in program.inputs} | {s.name for s in program.state}
    bad: list[str] = []
    for node in program.nodes:
        bad += [name for name in node.inputs if name not in known]
        known.add(node.name)
    return (*bad, *(name for name in references(program.output) if name not in known))
