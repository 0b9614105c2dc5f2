"""PyTorch's own operator database as a source of programs: hundreds of operators, each with legal arguments.

`torch.testing._internal` describes every operator by samples of inputs on which its own tests run. A sample
is turned into a *fragment*, a small `Program` with as many dynamic dims as export allows, by exporting a call
of the operator on it. Left out is what no comparison with eager can judge: random and uninitialised results,
results that are only defined up to a sign or an order, and results that PyTorch documents as undefined.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

from minimizer.build import Store, describe, dtype_name
from minimizer.case import Stored
from minimizer.nightly.joining import Fragment
from minimizer.oracle import stages
from minimizer.oracle.subjects import ProgramSubject
from minimizer.oracle.tasks import warm_threads
from minimizer.program import Program, rename
from minimizer.tracing import Untranslatable, program_from_export
from strategies.programs import Operator

DTYPES = (
    "float32 int64 uint8 bool bfloat16 int32 float16 int8 complex64 float64 int16 complex128 float8_e4m3fn "
    "uint16 uint32 uint64"
).split()
"""Dtypes asked for, in order of how often models use them and how often compilers get them wrong."""

SAMPLES = 12
"""Samples of an operator and dtype that are told apart; they are taken evenly from all that there are."""

MOST_SAMPLES = 400
"""Samples read of one operator and dtype; some give thousands."""

LARGEST = 1 << 16
"""Elements of a tensor in a sample, at most."""

UP_TO_SIGN_OR_ORDER = frozenset(
    """
    svd linalg.svd linalg.svdvals eig linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh symeig qr
    linalg.qr geqrf ormqr linalg.householder_product lstsq linalg.lstsq linalg.lstsq.grad_oriented
    svd_lowrank pca_lowrank linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve linalg.lu
    linalg.lu_factor linalg.lu_factor_ex lu lu_unpack linalg.lu_solve lu_solve argsort mode kthvalue
    linalg.pinv linalg.pinv.singular linalg.pinv.hermitian pinverse linalg.matrix_rank
    linalg.matrix_rank.hermitian matrix_rank linalg.cond
    """.split()
)
"""Results that are defined up to a sign, an order of ties or a threshold on rounded numbers."""

UNDEFINED = frozenset(
    """
    empty empty_like empty_strided empty_permuted new_empty new_empty_strided as_strided_copy
    as_strided.partial_views resize_ resize_as_ scatter index_put index_copy put masked_scatter
    __getitem__ nn.functional.max_unpool1d nn.functional.max_unpool2d nn.functional.max_unpool3d
    nn.functional.max_unpool1d.grad nn.functional.max_unpool2d.grad nn.functional.max_unpool3d.grad
    """.split()
)
"""Uninitialised memory, and writes to one place from several indices, whose winner is not defined."""

RANDOM = torch.Tag.nondeterministic_seeded


def list_operators() -> list[Operator]:
    """The operators that can be drawn, in the order of the database."""
    found: dict[str, list[str]] = {}
    for info in op_db:
        name = _name(info)
        if name in UP_TO_SIGN_OR_ORDER or name in UNDEFINED or info.name.startswith("_"):
            continue
        legal = {dtype_name(dtype) for dtype in info.supported_dtypes("cpu")}
        dtypes = [dtype for dtype in DTYPES if dtype in legal]
        if dtypes:
            found[name] = dtypes
    return [Operator(name, tuple(dtypes), SAMPLES) for name, dtypes in found.items()]


def _name(info: Any) -> str:
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else str(info.name)


_by_name: dict[str, Any] = {}


def _info(name: str) -> Any:
    if not _by_name:
        _by_name.update({_name(info): info for info in op_db})
    return _by_name[name]


def fragments(choices: Sequence[tuple[str, str, int]], store: str) -> list[Fragment | str]:
    """For each (operator, dtype, sample) its fragment, or in one line why there is none."""
    warm_threads()
    torch.set_num_threads(1)
    return [_fragment(*choice, Store(store)) for choice in choices]


def _fragment(name: str, dtype: str, number: int, store: Store) -> Fragment | str:
    try:
        sample = _sample(name, dtype, number)
    except Exception as problem:  # noqa: BLE001 (the database's own generators raise whatever they like)
        return f"no sample: {type(problem).__name__}: {problem}"[:200]
    if sample is None:
        return "no such sample"
    call = _Call(_info(name).op, (sample.input, *sample.args), sample.kwargs)
    if not call.tensors:
        return "no tensor among the inputs"
    if any(not _usable(t) for t in call.tensors):
        return "an input is not a plain, strided, small tensor"
    try:
        ep = _exported(call)
        program = program_from_export(ep, store)
    except Untranslatable as problem:
        return str(problem)
    except Exception as problem:  # noqa: BLE001 (export may refuse in any way)
        return f"cannot be exported: {type(problem).__name__}: {problem}".splitlines()[0][:200]
    refused = _refusal(program, ep)
    if refused:
        return refused
    try:
        program = _settled(program, store)
    except stages.StageError as problem:
        return f"cannot be exported again: {problem.failure.message}".splitlines()[0][:200]
    tag = f"{name}_{dtype}_{number}".replace(".", "_")
    values = [
        describe(t, Stored(store.put(f"{tag}_{k}", t.detach().clone()))) for k, t in enumerate(call.tensors)
    ]
    names = {s.name: f"{tag}_{s.name}" for s in program.state}
    for s in program.state:
        store.put(names[s.name], store.get(s.value))
    state = tuple(replace(s, value=names[s.name]) for s in program.state)
    return Fragment(replace(program, state=state), tuple(values))


def _settled(program: Program, store: Store) -> Program:
    """The program with its inputs passed one by one, and with sizes that export agrees to.

    Automatic dims begin at 2, so empty tensors and single elements would never be tried: where export takes
    a range from 0, the program gets it. Export may also take a size as dynamic when it may choose, and insist
    on the example's when it is asked for a range. Raises stages.StageError when it refuses fixed sizes too.
    """
    plain = replace(program, args=None, kwargs=())
    fixed = rename(plain, {}, {s.name: s.hint for s in plain.symbols})
    from_zero = replace(plain, symbols=tuple(replace(s, low=0) for s in plain.symbols))
    for candidate in (from_zero, plain) if plain.symbols else ():
        try:
            ProgramSubject(candidate, store).export()
            return candidate
        except stages.StageError:
            continue
    ProgramSubject(fixed, store).export()
    return fixed


def _sample(name: str, dtype: str, number: int) -> Any:
    """The sample at `number` of `SAMPLES` even steps through all of them; None past the last."""
    info = _info(name)
    torch.manual_seed(0)
    given: Iterator[Any] = info.sample_inputs("cpu", getattr(torch, dtype), requires_grad=False)
    samples = list(itertools.islice(given, MOST_SAMPLES))
    if len(samples) > SAMPLES:
        return samples[number * len(samples) // SAMPLES]
    return samples[number] if number < len(samples) else None


class _Call(torch.nn.Module):
    """A call of an operator as a module of its tensor arguments; all else is constant."""

    def __init__(self, function: Any, args: Any, kwargs: Any) -> None:
        super().__init__()
        self.function = function
        self.leaves, self.spec = pytree.tree_flatten((args, kwargs))
        self.tensors = [leaf for leaf in self.leaves if isinstance(leaf, torch.Tensor)]

    def forward(self, *tensors: torch.Tensor) -> Any:
        given = iter(tensors)
        leaves = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        out = pytree.tree_leaves(self.function(*args, **kwargs))
        return tuple(leaf for leaf in out if isinstance(leaf, torch.Tensor))


def _usable(tensor: torch.Tensor) -> bool:
    plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout == torch.strided
    return plain and tensor.device.type == "cpu" and tensor.numel() <= LARGEST and not tensor.is_quantized


def _exported(call: _Call) -> torch.export.ExportedProgram:
    """Export with every dim of two or more as dynamic as it may be, else static."""
    auto = torch.export.Dim.AUTO
    shapes = tuple({k: auto for k, size in enumerate(t.shape) if size >= 2} for t in call.tensors)
    args = tuple(t.detach().clone() for t in call.tensors)
    with torch.no_grad():
        try:
            return torch.export.export(call, args, dynamic_shapes=(shapes,))
        except Exception:  # noqa: BLE001 (as with `_fragment`; most such calls are fine with fixed sizes)
            return torch.export.export(call, args)


def _refusal(program: Program, ep: torch.export.ExportedProgram) -> str:
    """Why a fragment cannot be judged by comparing; empty when it can."""
    if not program.operator_count:
        return "nothing is computed"
    if not program.outputs:
        return "no tensor comes out"
    writes = {name for n in program.nodes if n.mutates for name in n.inputs[:1]}
    if writes & {i.name for i in program.inputs}:
        return "it writes to its inputs"
    for node in ep.graph.nodes:
        tags = getattr(node.target, "tags", ())
        if RANDOM in tags:
            return "it is random"
        name = str(node.target).split(".")
        if len(name) > 1 and name[1].startswith(("empty", "new_empty", "rand", "bernoulli")):
            return "it is random or not initialised"
    return ""
