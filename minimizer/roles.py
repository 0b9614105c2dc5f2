"""What the program does with each input: data, or an index into something of known size.

An index drawn as plain data makes eager raise and teaches nothing, so integer inputs that end up indexing
are recognised by what consumes them, looked at through casts and views.
"""

from __future__ import annotations

from dataclasses import dataclass

from minimizer.program import Node, Program, Ref, TensorMeta, references
from minimizer.symbolic import Size

_THROUGH = frozenset(
    """
    to _to_copy view reshape squeeze unsqueeze expand contiguous clone alias flatten permute transpose
    select slice long int detach getitem index_select
    """.split()
)
_BY_DIM = {
    "gather": (0, 1, 2),
    "index_select": (0, 1, 2),
    "index_add": (0, 1, 2),
    "index_add_": (0, 1, 2),
    "index_copy": (0, 1, 2),
    "index_fill": (0, 1, 2),
    "scatter": (0, 1, 2),
    "scatter_": (0, 1, 2),
    "scatter_add": (0, 1, 2),
    "scatter_add_": (0, 1, 2),
    "scatter_reduce": (0, 1, 2),
    "index_reduce": (0, 1, 2),
    "take_along_dim": (0, 2, 1),
}
"""Operators that index along a dim: positions of the indexed tensor, the dim and the index."""

_LISTS = frozenset(["index", "index_put", "index_put_", "_unsafe_index"])
_CLASSES = frozenset(
    ["nll_loss", "nll_loss_nd", "cross_entropy_loss", "nll_loss_forward", "multi_margin_loss"]
)


@dataclass(frozen=True)
class InputRole:
    """``data``, or ``index`` with the size of what is indexed."""

    kind: str = "data"
    bound: Size | None = None


def input_roles(program: Program) -> tuple[InputRole, ...]:
    """The role of each input, in order."""
    sources = {i.name: i.name for i in program.inputs if i.meta.dtype in ("int64", "int32", "uint8", "int16")}
    bounds: dict[str, Size] = {}
    for node in program.nodes:
        name = node.target.split(".")[1] if "." in node.target else node.target
        for index, bound in _indices(program, node, name):
            if index in sources and bound is not None:
                known = bounds.setdefault(sources[index], bound)
                if known != bound:
                    both = isinstance(known, int) and isinstance(bound, int)
                    bounds[sources[index]] = min(known, bound) if both else f"min({known}, {bound})"
        first = references(node.args[:1])
        if name in _THROUGH and first and first[0] in sources:
            sources[node.name] = sources[first[0]]
    return tuple(
        InputRole("index", bounds[i.name]) if i.name in bounds else InputRole() for i in program.inputs
    )


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
    if (
        name in ("embedding", "embedding_bag", "_embedding_bag")
        and len(args) > 1
        and isinstance(args[1], Ref)
    ):
        return [(args[1].name, size(0, 0))]
    if name == "one_hot" and len(args) > 1 and isinstance(args[0], Ref) and isinstance(args[1], int):
        return [(args[0].name, args[1] if args[1] > 0 else None)]
    if name in _CLASSES and len(args) > 1 and isinstance(args[1], Ref):
        return [(args[1].name, size(0, 1 if len(shape(0)) > 1 else 0))]
    return []
