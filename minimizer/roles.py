"""What the program does with each input: data, an index into something of known size, a mask, a condition.

An index drawn as plain data makes eager raise and teaches nothing, so inputs that end up indexing are
recognised by what consumes them, looked at through casts, views, stacking and simple arithmetic: where
``x + 1`` indexes a table of ten rows, `x` goes up to eight. Additive masks, predicates of branches and sorted
boundaries are told in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from minimizer.program import Node, Program, Ref, TensorMeta, references
from minimizer.symbolic import Size

_THROUGH = frozenset(
    """
    to _to_copy view reshape squeeze unsqueeze expand contiguous clone alias flatten permute transpose t mT
    select slice long int short detach getitem index_select cat stack concat hstack vstack unbind split
    split_with_sizes chunk repeat flip roll tile unflatten movedim swapaxes broadcast_to expand_as type_as
    view_as lift_fresh_copy _unsafe_view repeat_interleave
    """.split()
)
_BY_DIM = {
    "gather": (0, 1, 2),
    "index_select": (0, 1, 2),
    "index_add": (0, 1, 2),
    "index_add_": (0, 1, 2),
    "index_copy": (0, 1, 2),
    "index_copy_": (0, 1, 2),
    "index_fill": (0, 1, 2),
    "index_fill_": (0, 1, 2),
    "scatter": (0, 1, 2),
    "scatter_": (0, 1, 2),
    "scatter_add": (0, 1, 2),
    "scatter_add_": (0, 1, 2),
    "scatter_reduce": (0, 1, 2),
    "scatter_reduce_": (0, 1, 2),
    "index_reduce": (0, 1, 2),
    "index_reduce_": (0, 1, 2),
    "take_along_dim": (0, 2, 1),
}
"""Operators that index along a dim: positions of the indexed tensor, the dim and the index."""

_LISTS = frozenset(
    ["index", "index_put", "index_put_", "_unsafe_index", "_unsafe_index_put", "_index_put_impl_"]
)
_FLAT = {"take": 1, "put": 1, "put_": 1}
"""Operators that index all elements of their first argument in a row: position of the index."""
_TABLES = frozenset(["embedding", "embedding_bag", "_embedding_bag", "_embedding_bag_forward_only"])
_CLASSES = frozenset(
    """
    nll_loss nll_loss_nd cross_entropy_loss nll_loss_forward nll_loss2d nll_loss2d_forward multi_margin_loss
    """.split()
)
_BOUNDARIES = {"bucketize": 1, "searchsorted": 0}
_ATTENTION = frozenset(["scaled_dot_product_attention", "_scaled_dot_product_attention_math"])
_SOFTMAX = frozenset(["softmax", "_softmax", "log_softmax", "_log_softmax", "_safe_softmax"])
_COMPARED = frozenset(
    """
    gt ge lt le eq ne logical_not logical_and logical_or any all sum mean amax amin max min bitwise_not
    """.split()
)
_BRANCHES = frozenset(["cond", "while_loop"])


@dataclass(frozen=True)
class InputRole:
    """A kind of `strategies.ROLES`; an ``index`` has the size of what is indexed."""

    kind: str = "data"
    bound: Size | None = None


@dataclass(frozen=True)
class _Source:
    """An input, and how what is made of it relates to it: element = input * times // over + plus."""

    name: str
    plus: int = 0
    times: int = 1
    over: int = 1

    def bound(self, size: Size) -> Size | None:
        """Past the last value of the input for which the element is below a size."""
        if isinstance(size, int):
            found = -(-(size - self.plus) * self.over // self.times)
            return found if found > 0 else None
        text = f"({size}) - {self.plus}" if self.plus else str(size)
        text = f"({text}) * {self.over}" if self.over != 1 else text
        return f"(({text}) + {self.times - 1}) // {self.times}" if self.times != 1 else text


def input_roles(program: Program) -> tuple[InputRole, ...]:
    """The role of each input, in order."""
    sources = {i.name: _Source(i.name) for i in program.inputs if i.meta.dtype != "bool"}
    roles: dict[str, InputRole] = {}
    for node in program.nodes:
        name = operator_of(node)
        for index, bound in _indices(program, node, name):
            source = sources.get(index)
            size = source.bound(bound) if source is not None and bound is not None else None
            if source is not None and size is not None:
                known = roles.get(source.name, InputRole())
                roles[source.name] = InputRole("index", _least(known.bound, size))
        for kind, used in _uses(program, node, name):
            if used in sources:
                roles.setdefault(sources[used].name, InputRole(kind))
        made = _made_from(node, name, sources)
        if made is not None:
            sources[node.name] = made
    return tuple(roles.get(i.name, InputRole()) for i in program.inputs)


def operator_of(node: Node) -> str:
    """The name of the operator that a node calls, without namespace and overload."""
    return node.target.split(".")[1] if "." in node.target else node.target


def _least(known: Size | None, bound: Size) -> Size:
    if known is None or known == bound:
        return bound
    both = isinstance(known, int) and isinstance(bound, int)
    return min(known, bound) if both else f"min({known}, {bound})"


def _made_from(node: Node, name: str, sources: dict[str, _Source]) -> _Source | None:
    """How a call's result relates to an input, when it is no more than moved, cast, shifted or scaled."""
    given = [sources[n] for n in references(node.args[:1]) if n in sources]
    if not given:
        return None
    source = given[0]
    if name in _THROUGH:
        return source
    constant = node.args[1] if len(node.args) > 1 else None
    if not isinstance(constant, int) or isinstance(constant, bool):
        return source if name in _COMPARED else None
    simple = source.times == source.over == 1
    if name in ("add", "add_", "sub", "sub_") and not dict(node.kwargs).get("alpha"):
        return replace(source, plus=source.plus + (constant if name.startswith("add") else -constant))
    if constant > 0 and simple and source.plus == 0:
        if name in ("mul", "mul_"):
            return replace(source, times=constant)
        if name in ("floor_divide", "div", "floordiv"):
            return replace(source, over=constant)
    return source if name in _COMPARED else None


def _uses(program: Program, node: Node, name: str) -> Iterator[tuple[str, str]]:
    """Names that a call uses as other things than data or indices, with the kind of use."""
    if name in _BOUNDARIES and len(node.args) > _BOUNDARIES[name]:
        yield from (("ascending", used) for used in references(node.args[_BOUNDARIES[name]]))
    if name in _ATTENTION:
        masks = (*node.args[3:4], dict(node.kwargs).get("attn_mask"))
        yield from (("mask", used) for used in references(masks))
    if name in _SOFTMAX and node.args and isinstance(node.args[0], Ref):
        added = next((n for n in program.nodes if n.name == node.args[0].name), None)
        if added is not None and operator_of(added) in ("add", "add_"):
            names = references(added.args)
            inputs = {i.name: i.meta for i in program.inputs}
            # The mask is what is broadcast: of fewer dims, or with a dim of size 1.
            whole = program.meta_of(added.name)
            for used in names[1:]:
                if used in inputs and isinstance(whole, TensorMeta) and inputs[used].shape != whole.shape:
                    yield "mask", used
    if name in _BRANCHES:
        yield from (("condition", used) for used in references(node.args[:1]))


def _indices(program: Program, node: Node, name: str) -> list[tuple[str, Size | None]]:
    """Names that a call uses as indices, with the size of what they index."""
    args = node.args

    def shape(position: int) -> tuple[Size, ...]:
        if position < len(args) and isinstance(args[position], Ref):
            meta = program.meta_of(args[position].name)
            return meta.shape if isinstance(meta, TensorMeta) else ()
        return ()

    def size(position: int, dim: int) -> Size | None:
        sizes = shape(position)
        return sizes[dim] if -len(sizes) <= dim < len(sizes) else None

    if name in _BY_DIM and len(args) > max(_BY_DIM[name]):
        tensor, dim, index = _BY_DIM[name]
        if isinstance(args[index], Ref) and isinstance(args[dim], int):
            return [(args[index].name, size(tensor, args[dim]))]
    if name in _LISTS and len(args) > 1 and isinstance(args[1], (list, tuple)):
        return [(item.name, size(0, k)) for k, item in enumerate(args[1]) if isinstance(item, Ref)]
    if name in _FLAT and len(args) > _FLAT[name] and isinstance(args[_FLAT[name]], Ref):
        return [(args[_FLAT[name]].name, _product(shape(0)))]
    if name in _TABLES and len(args) > 1 and isinstance(args[1], Ref):
        return [(args[1].name, size(0, 0))]
    if name == "one_hot" and len(args) > 1 and isinstance(args[0], Ref) and isinstance(args[1], int):
        return [(args[0].name, args[1] if args[1] > 0 else None)]
    if name in _CLASSES and len(args) > 1 and isinstance(args[1], Ref):
        return [(args[1].name, size(0, 1 if len(shape(0)) > 1 else 0))]
    return []


def _product(sizes: tuple[Size, ...]) -> Size | None:
    if not sizes:
        return None
    return " * ".join(f"({size})" if isinstance(size, str) else str(size) for size in sizes)
