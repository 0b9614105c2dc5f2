"""From an exported program to a `Program`: the only reader of FX graphs that come from export.

Size arithmetic disappears into expressions, assertions that export put there are left to the next export,
`no_grad` regions are inlined, arguments that equal the operator's defaults are dropped. What cannot be
expressed is named in one line (`Untranslatable`), and the failure is then handed over unreduced.
"""

from __future__ import annotations

import keyword
import re
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from minimizer.build import Store
from minimizer.exported_sizes import meta_of, symbol_names, symbols_of
from minimizer.liveness import prune
from minimizer.program import (
    CHECK,
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
    rename,
)
from minimizer.symbolic import free_symbols

_RESERVED = """
torch self state operator math Dim s Model max min abs int float round complex slice
""".split()
"""Names that the printed source has a use for."""

_TORCH = str(Path(torch.__file__).parent)
_INLINED = ("wrap_with_set_grad_enabled",)
_NAMESPACES = {"builtins": "", "_operator": "operator.", "math": "math.", "operator": "operator."}


class Untranslatable(Exception):
    """The exported program holds something that a `Program` cannot express."""


def _where(node: torch.fx.Node) -> str:
    """The user's line: ``model.py:12 y = torch.relu(x)``."""
    frames = re.findall(
        r'File "([^"]+)", line (\d+), in [^\n]*\n\s*([^\n]*)', node.meta.get("stack_trace") or ""
    )
    if not frames:
        return ""
    own = [frame for frame in frames if not frame[0].startswith((_TORCH, "<"))]
    file, line, code = (own or frames)[-1]
    return f"{Path(file).name}:{line} {code.strip()}"


def _module(node: torch.fx.Node) -> str:
    stack = node.meta.get("nn_module_stack") or {}
    return str(list(stack.values())[-1][0]) if stack else ""


class _Translation:
    def __init__(self, gm: torch.fx.GraphModule, store: Store, prefix: str, top: bool) -> None:
        self.gm = gm
        self.store = store
        self.prefix = prefix
        self.top = top
        self.names: dict[torch.fx.Node, Any] = {}
        self.inputs: list[Input] = []
        self.state: list[State] = []
        self.nodes: list[Node] = []
        self.graphs: dict[str, Program] = {}
        self.taken: set[str] = set(_RESERVED)
        self.buffers_written: set[str] = set()

    def name(self, text: str) -> str:
        plain = re.sub(r"\W", "_", text)
        plain = plain if not plain[:1].isdigit() else f"v_{plain}"
        unique, k = plain, 1
        while unique in self.taken or keyword.iskeyword(unique):
            unique, k = f"{plain}_{k}", k + 1
        self.taken.add(unique)
        return unique

    def arg(self, value: Any) -> Any:
        match value:
            case torch.fx.Node():
                return self.names[value]
            case tuple():
                return tuple(self.arg(item) for item in value)
            case list():
                return [self.arg(item) for item in value]
            case dict():
                return Tree("dict", tuple(value), tuple(self.arg(item) for item in value.values()))
            case slice():
                return slice(self.arg(value.start), self.arg(value.stop), self.arg(value.step))
            case torch.dtype() | torch.layout() | torch.memory_format():
                return Torch(str(value).removeprefix("torch."))
            case torch.device():
                return Device(str(value))
            case None | bool() | int() | float() | complex() | str():
                return value
            case torch.SymInt() | torch.SymFloat() | torch.SymBool():
                return meta_of(value)
        raise Untranslatable(f"an argument of type {type(value).__name__} cannot be expressed")

    def run(self) -> None:
        for node in self.gm.graph.nodes:
            getattr(self, node.op)(node)

    def placeholder(self, node: torch.fx.Node) -> None:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            name = self.name(node.name)
            self.names[node] = Ref(name)
            self.inputs.append(Input(name, meta_of(value)))
        elif self.top:
            # A scalar or None is baked into the exported program.
            self.names[node] = value if not isinstance(value, torch.SymInt) else meta_of(value)
        else:
            name = self.name(node.name)
            self.names[node] = Ref(name)
            self.inputs.append(Input(name, TensorMeta("int64", (), ())))

    def get_attr(self, node: torch.fx.Node) -> None:
        owner: Any = self.gm
        for part in str(node.target).split("."):
            owner = getattr(owner, part)
        if isinstance(owner, torch.fx.GraphModule):
            self.names[node] = owner
            return
        if not isinstance(owner, torch.Tensor):
            raise Untranslatable(f"an attribute of type {type(owner).__name__} cannot be expressed")
        known = next((n for n in self.names if n.op == "get_attr" and n.target == node.target), None)
        if known is not None:
            self.names[node] = self.names[known]
            return
        name = self.name(node.name)
        parameter = isinstance(owner, torch.nn.Parameter)
        buffers = dict(self.gm.named_buffers(remove_duplicate=False))
        kind = "parameter" if parameter else "buffer" if str(node.target) in buffers else "constant"
        stored = self.store.put(f"{self.prefix}{name}", owner)
        self.state.append(State(name, kind, meta_of(owner.detach()), stored))
        self.names[node] = Ref(name)

    def call_function(self, node: torch.fx.Node) -> None:
        target: Any = node.target
        value = node.meta.get("val")
        if self.top and isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            meta = meta_of(value)
            defines = isinstance(meta, Sym) and re.fullmatch(r"(u|zuf|zf)\d+", meta.expr)
            reads_size = not isinstance(target, torch._ops.OpOverload) or "sym_size" in str(target)
            if reads_size or not defines:
                self.names[node] = _number(value) if meta is None else meta
                return
        if (
            self.top
            and isinstance(value, (bool, int, float))
            and getattr(target, "__module__", "") == "_operator"
        ):
            self.names[node] = value
            return
        text = _target_name(target)
        if text == "operator.getitem" and isinstance(self.arg(node.args[0]), tuple):
            self.names[node] = self.arg(node.args[0])[node.args[1]]
            return
        if (
            text.startswith("aten._assert")
            or "sym_constrain_range" in text
            or text in ("torch._check", "aten._check")
        ):
            self._assertion(node, text)
            return
        if isinstance(target, torch._ops.HigherOrderOperator):
            self._higher_order(node, target)
            return
        args = tuple(self.arg(item) for item in node.args)
        kwargs = tuple((key, self.arg(item)) for key, item in node.kwargs.items())
        mutates: tuple[int, ...] = ()
        if isinstance(target, torch._ops.OpOverload):
            schema = target._schema.arguments
            mutates = tuple(
                k for k, a in enumerate(schema) if a.alias_info is not None and a.alias_info.is_write
            )
            kwargs = _without_defaults(target, kwargs)
            if text == "aten.copy_.default" and self._writes_itself(args):
                self.names[node] = args[0]
                return
        self.add(node, text, args, kwargs, mutates)

    def _writes_itself(self, args: tuple[Any, ...]) -> bool:
        """Whether a copy puts a buffer's new value, computed in place, where it already is."""
        target, source = args[0], args[1]
        while isinstance(source, Ref) and source != target:
            maker = next((n for n in self.nodes if n.name == source.name), None)
            if maker is None or not maker.mutates:
                return False
            source = maker.args[maker.mutates[0]] if maker.mutates[0] < len(maker.args) else None
        return source == target

    def add(
        self, node: torch.fx.Node, text: str, args: Any, kwargs: Any, mutates: tuple[int, ...] = ()
    ) -> None:
        name = self.name(node.name)
        self.names[node] = Ref(name)
        meta = meta_of(node.meta.get("val"))
        self.nodes.append(Node(name, text, args, kwargs, meta, mutates, _where(node), _module(node)))

    def _assertion(self, node: torch.fx.Node, text: str) -> None:
        """Keep what bounds a data-dependent size; every other assertion comes back with the next export."""
        condition = self.arg(node.args[0]) if node.args else None
        if isinstance(condition, Sym) and any(re.match(r"u\d", s) for s in free_symbols(condition.expr)):
            self.nodes.append(Node(self.name(node.name), CHECK, (condition,)))

    def _higher_order(self, node: torch.fx.Node, target: Any) -> None:
        text = target.__name__
        if text in _INLINED:
            body = self.names[node.args[1]]
            self._inline(node, body, node.args[2:])
            return

        def argument(value: Any) -> Any:
            if isinstance(value, torch.fx.Node) and isinstance(self.names[value], torch.fx.GraphModule):
                return self.body(str(value.target), self.names[value])
            if isinstance(value, tuple):
                return tuple(argument(item) for item in value)
            if isinstance(value, list):  # torch.fx has a list type of its own
                return [argument(item) for item in value]
            return self.arg(value)

        args = tuple(argument(item) for item in node.args)
        kwargs = tuple((key, argument(item)) for key, item in node.kwargs.items())
        self.add(node, f"higher_order.{text}", args, kwargs)

    def body(self, name: str, gm: torch.fx.GraphModule) -> Graph:
        plain = self.name(name)
        inner = _Translation(gm, self.store, f"{self.prefix}{plain}_", top=False)
        inner.run()
        output = inner.arg(inner.output_value)
        self.graphs[plain] = Program(
            tuple(inner.inputs),
            tuple(inner.nodes),
            output,
            tuple(inner.state),
            graphs=tuple(inner.graphs.items()),
        )
        return Graph(plain)

    def _inline(self, node: torch.fx.Node, gm: torch.fx.GraphModule, operands: Sequence[Any]) -> None:
        values = iter(operands)
        result: Any = None
        outer = self.gm
        for inner in gm.graph.nodes:
            if inner.op == "placeholder":
                self.names[inner] = self.arg(next(values))
            elif inner.op == "output":
                result = inner.args[0]
            else:
                self.gm = gm
                getattr(self, inner.op)(inner)
                self.gm = outer
        self.names[node] = self.arg(result)

    def output(self, node: torch.fx.Node) -> None:
        self.output_value = node.args[0]


def _number(value: Any) -> Any:
    expr = value.node.expr
    if isinstance(value, torch.SymInt):
        return int(expr)
    return bool(expr) if isinstance(value, torch.SymBool) else float(expr)


def _target_name(target: Any) -> str:
    if isinstance(target, torch._ops.OpOverload):
        namespace, _, name = target._schema.name.partition("::")
        return f"{namespace}.{name}.{target._overloadname}"
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order.{target.__name__}"
    module = getattr(target, "__module__", "") or ""
    name = getattr(target, "__name__", str(target))
    if module in _NAMESPACES:
        return f"{_NAMESPACES[module]}{name}"
    if module.split(".")[0] == "torch":
        for space, prefix in ((torch, "torch."), (torch.nn.functional, "torch.nn.functional.")):
            if getattr(space, name, None) is target:
                return prefix + name
    raise Untranslatable(f"a call of {module}.{name} cannot be expressed")


def _without_defaults(target: Any, kwargs: Sequence[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
    defaults = {a.name: a.default_value for a in target._schema.arguments if a.has_default_value()}
    quiet = {"pin_memory": (None, False), "layout": (None, Torch("strided"))}

    def same(key: str, value: Any) -> bool:
        if value in quiet.get(key, ()):
            return True
        default = defaults.get(key, value if key not in defaults else None)
        return key in defaults and type(default) is type(value) and default == value

    return tuple((key, value) for key, value in kwargs if not same(key, value))


def _tree(spec: pytree.TreeSpec, leaves: Any, plain: Callable[[Any], Any]) -> Any:
    """A nested structure of arguments with the shape of a pytree."""
    if spec.is_leaf():
        return plain(next(leaves))
    items = tuple(_tree(child, leaves, plain) for child in spec.children())
    if spec.type is tuple:
        return items
    if spec.type is list:
        return list(items)
    if spec.type is type(None):
        return None
    if spec.type in (dict, OrderedDict):
        return Tree("dict", tuple(spec.context), items)
    named = spec.context if spec.type is namedtuple else spec.type
    kind = getattr(named, "__name__", str(named))
    if getattr(torch.return_types, kind, None) is spec.type:
        return Tree(f"torch.return_types.{kind}", (), items)
    raise Untranslatable(f"a container of type {kind} cannot be expressed")


_THEIRS = object()


def _nested(spec: pytree.TreeSpec, leaves: Sequence[Any], plain: Callable[[Any], Any]) -> Any:
    """The structure as the person has it, or `_THEIRS` where it holds a container type of their own."""
    try:
        return _tree(spec, iter(leaves), plain)
    except Untranslatable:
        return _THEIRS


def program_from_export(
    ep: torch.export.ExportedProgram,
    store: Store,
    names: Mapping[str, str] | None = None,
    *,
    prefix: str = "state_",
) -> Program:
    """Translate an exported program; its state tensors go to the store, their names beginning with `prefix`.

    `names` renames symbols (to the person's own ``Dim`` names). Raises Untranslatable.
    """
    gm = ep.module(check_guards=False)
    translation = _Translation(gm, store, prefix, top=True)
    translation.run()
    assert ep.call_spec.out_spec is not None and ep.call_spec.in_spec is not None
    flat_out = list(translation.output_value)
    output = _nested(ep.call_spec.out_spec, flat_out, translation.arg)
    output = tuple(map(translation.arg, flat_out)) if output is _THEIRS else output
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    args_spec, kwargs_spec = ep.call_spec.in_spec.children()
    split = args_spec.num_leaves
    args = _nested(args_spec, placeholders[:split], translation.arg)
    kwargs = _nested(kwargs_spec, placeholders[split:], translation.arg)
    plain = tuple(Ref(i.name) for i in translation.inputs)
    flat = _THEIRS in (args, kwargs) or (not kwargs_spec.children() and tuple(args) == plain)
    program = Program(
        inputs=tuple(translation.inputs),
        nodes=tuple(translation.nodes),
        output=output,
        state=tuple(translation.state),
        symbols=symbols_of(translation.inputs, ep),
        args=None if flat else tuple(args),
        kwargs=tuple(zip(kwargs.keys, kwargs.items)) if isinstance(kwargs, Tree) and not flat else (),
        graphs=tuple(translation.graphs.items()),
    )
    fresh = symbol_names(program, names or {}, translation.taken)
    return _drop_dead(rename(program, {}, fresh))


def program_from_graph(gm: torch.fx.GraphModule, store: Store, prefix: str) -> Program:
    """Translate a plain graph of operator calls on tensors of fixed sizes. Raises Untranslatable."""
    translation = _Translation(gm, store, prefix, top=True)
    translation.run()
    output = tuple(map(translation.arg, translation.output_value))
    return Program(
        tuple(translation.inputs),
        tuple(translation.nodes),
        output,
        tuple(translation.state),
        graphs=tuple(translation.graphs.items()),
    )


def skeleton(ep: torch.export.ExportedProgram) -> Program:
    """The inputs and symbols of an exported program whose calls cannot be expressed."""
    names = set(ep.graph_signature.user_inputs)
    tensors = [
        Input(n.name, meta_of(n.meta["val"]))
        for n in ep.graph.nodes
        if n.op == "placeholder" and n.name in names and isinstance(n.meta.get("val"), torch.Tensor)
    ]
    return Program(tuple(tensors), (), (), symbols=symbols_of(tensors, ep))


def _drop_dead(program: Program) -> Program:
    """Drop calls that nothing uses, but keep the inputs as the person passes them."""
    kept = prune(program)
    graphs = kept.graphs
    return replace(program, nodes=kept.nodes, state=kept.state, graphs=graphs)
