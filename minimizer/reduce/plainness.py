"""What is ordinary: operators and dtypes that say nothing by being there."""

from __future__ import annotations

from dataclasses import replace

from minimizer.program import Node, Ref

PLAIN_DTYPE = {
    "float64": "float32",
    "float16": "float32",
    "bfloat16": "float32",
    "complex128": "complex64",
    "int8": "int64",
    "int16": "int64",
    "int32": "int64",
    "uint8": "int64",
}
"""The dtype that a person would take without thinking, for each other one of its sort."""

_UNARY = """
abs acos acosh asin asinh atan atanh ceil clone cos cosh elu erf erfc erfinv exp exp2 expm1 floor gelu
hardsigmoid hardswish hardtanh leaky_relu log log10 log1p log2 log_sigmoid logit mish positive reciprocal relu
relu6 round rsqrt selu sigmoid sgn sign silu sin sinc sinh softplus sqrt square tan tanh trunc
"""
_BINARY = """
atan2 copysign div floor_divide fmax fmin fmod hypot logaddexp maximum minimum mul pow remainder rsub sub
"""
_REDUCTIONS = "amax amin mean prod nansum logsumexp"

NEGATION, ADDITION, SUM = "aten.neg.default", "aten.add.Tensor", "aten.sum.dim_IntList"

_TWINS = (
    {f"aten.{name}.default": NEGATION for name in _UNARY.split()}
    | {f"aten.{name}.{kind}": ADDITION for name in _BINARY.split() for kind in ("Tensor", "Tensor_Tensor")}
    | {f"aten.{name}.default": ADDITION for name in _BINARY.split()}
    | {f"aten.{name}.{kind}": SUM for name in _REDUCTIONS.split() for kind in ("dim", "default", "dim_int")}
)


_WITH_NUMBERS = frozenset({ADDITION} | {f"aten.{name}.Tensor" for name in _BINARY.split()})


def strangeness(node: Node) -> int:
    """0 for the plainest operators and for those that nothing plainer could stand for."""
    return int(node.target in _TWINS)


def takes_number(node: Node, name: str) -> bool:
    """Whether a call accepts a number in the place of a named operand."""
    return node.target in _WITH_NUMBERS and Ref(name) in node.args and len(set(node.inputs)) > 1


def plain_twin(node: Node) -> Node | None:
    """The call with the plainest operator of its form; None when it has that or there is none."""
    target = _TWINS.get(node.target)
    if target is None or node.mutates:
        return None
    operands = [arg for arg in node.args if isinstance(arg, Ref)]
    if target == NEGATION:
        return replace(node, target=target, args=node.args[:1], kwargs=())
    if target == ADDITION:
        return replace(node, target=target, args=node.args[:2], kwargs=()) if operands else None
    dims = node.args[1] if len(node.args) > 1 else None
    if not isinstance(dims, (list, int)):
        return None
    dims = dims if isinstance(dims, list) else [dims]
    return replace(node, target=target, args=(node.args[0], dims, *node.args[2:]))
