"""Calls that break the contract by one step, and what a compiled artifact makes of each.

AOTInductor checks next to nothing by default and, with ``AOTI_RUNTIME_CHECK_INPUTS=1``, not everything and
not always in words that help. Whoever ships an artifact wants to know which wrong calls it refuses. None of
what is found here is a compiler's failure: the contract was broken on purpose.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from minimizer.case import Value, contiguous_stride
from minimizer.input_space import MEMORY
from minimizer.oracle.requests import OutsideAnswer
from minimizer.oracle.target_bench import TargetBench
from minimizer.program import Program, TensorMeta
from minimizer.sandbox import TimedOut, WorkerLost
from minimizer.symbolic import evaluate, free_symbols

TASKS = "minimizer.oracle.outside:"

OUTCOMES = ("refused clearly", "refused misleadingly", "accepted, right", "accepted, wrong", "crash", "hang")
"""What may become of a call outside the contract."""

SWITCHES = (False, True)
"""Without and with ``AOTI_RUNTIME_CHECK_INPUTS=1``."""

_OTHER_DTYPES = {
    "float64": ("float32",),
    "float32": ("float64", "float16"),
    "float16": ("float32",),
    "bfloat16": ("float32",),
    "int64": ("int32", "float32"),
    "int32": ("int64", "float32"),
    "int16": ("int64",),
    "int8": ("int64",),
    "uint8": ("int64",),
    "bool": ("uint8",),
    "complex64": ("complex128",),
    "complex128": ("complex64",),
}
"""For each dtype the ones that are passed in its place: wider ones, where a kernel reads past the end."""


@dataclass(frozen=True)
class Violation:
    """One way of breaking the contract.

    `text` says which promise is broken and how; `at` are the positions of the inputs that are wrong. `values`
    describe all tensors: the stored examples, changed to dtype, shape and stride. `form` is a form in which
    the tensor at ``at[0]`` is handed over that no description has: see `FORMS`; or it speaks of the call:
    ``missing`` and ``constant``, where `at` is the position among the constants.
    """

    text: str
    at: tuple[int, ...]
    values: tuple[Value, ...]
    form: str = ""


FORMS: Mapping[str, Callable[[TensorMeta], bool]] = {
    "FakeTensor": lambda meta: True,
    "tensor subclass": lambda meta: True,
    "negative view": lambda meta: meta.dtype.startswith(("float", "bfloat", "int")),
    "conjugate view": lambda meta: meta.dtype.startswith("complex"),
    "mkldnn": lambda meta: meta.dtype == "float32" and bool(meta.shape),
    "quantized": lambda meta: meta.dtype == "float32",
    "sparse": lambda meta: bool(meta.shape),
    "None": lambda meta: True,
}
"""Forms other than a plain tensor, and to which inputs each can be given."""


@dataclass(frozen=True)
class Row:
    """A violation and its outcomes without and with the run-time checks (None: not tried)."""

    violation: str
    unchecked: str | None
    checked: str | None
    said: str = ""

    def as_json(self) -> dict[str, str]:
        """For summary.json."""
        fields = {"violation": self.violation, "unchecked": self.unchecked, "checked": self.checked}
        known = {name: text for name, text in fields.items() if text is not None}
        return {**known, "said": self.said} if self.said else known


def violations(
    program: Program, values: Sequence[Value], constants: Sequence[Any] = ()
) -> Iterator[Violation]:
    """Every one-step violation that applies to a program; `values` are its stored examples.

    `constants` are the numbers among its inputs, which were baked in when it was exported.
    """
    values = tuple(values)
    for k, (i, value) in enumerate(zip(program.inputs, values)):
        for text, changed in _of_one(i.name, i.meta, value):
            yield Violation(text, (k,), (*values[:k], changed, *values[k + 1 :]))
    yield from _sizes_out_of_range(program, values)
    yield from _unrelated_sizes(program, values)
    for k, i in enumerate(program.inputs):
        for form, applies in FORMS.items():
            if applies(i.meta):
                yield Violation(f"{i.name}: {form}", (k,), values, form)
    if len(values):
        yield Violation("the last input missing", (len(values) - 1,), values, "missing")
    for k, constant in enumerate(constants):
        if isinstance(constant, (bool, int, float)):
            yield Violation(f"{constant!r} (baked in): another number", (k,), values, "constant")


def _of_one(name: str, meta: TensorMeta, value: Value) -> Iterator[tuple[str, Value]]:
    """What breaks a promise about one input alone."""
    for dtype in _OTHER_DTYPES.get(value.dtype, ()):
        yield f"{name}: {dtype} for {value.dtype}", replace(value, dtype=dtype)
    shape, plain = value.shape, contiguous_stride(value.shape)
    yield f"{name}: a dim more", replace(value, shape=(1, *shape), stride=None)
    if shape:
        yield f"{name}: a dim less", replace(value, shape=shape[1:], stride=None)
    static = [dim for dim, size in enumerate(meta.shape) if isinstance(size, int)]
    for dim in static[-1:]:
        larger = (*shape[:dim], shape[dim] + 1, *shape[dim + 1 :])
        yield f"{name}: static dim {dim} larger by one", replace(value, shape=larger, stride=None)
    long = [dim for dim, size in enumerate(shape) if size > 1]
    if len(long) > 1:
        a, b = long[0], long[-1]
        order = [b if d == a else a if d == b else d for d in range(len(shape))]
        swapped = contiguous_stride(tuple(shape[d] for d in order))
        yield (
            f"{name}: transposed",
            replace(value, stride=tuple(swapped[order.index(d)] for d in range(len(shape)))),
        )
    if long:
        gaps = tuple(2 * step for step in plain)
        yield f"{name}: sliced", replace(value, stride=gaps)
        yield f"{name}: expanded", replace(value, stride=_without(plain, long[0]))
    yield f"{name}: on meta", replace(value, device="meta")


def _without(stride: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return tuple(0 if d == dim else step for d, step in enumerate(stride))


def _sizes_out_of_range(program: Program, values: tuple[Value, ...]) -> Iterator[Violation]:
    """Each dynamic size just beyond either end of its range, everywhere it stands."""
    hints = {symbol.name: symbol.hint for symbol in program.symbols}
    for symbol in program.symbols:
        beyond = [] if symbol.high is None else [symbol.high + 1]
        beyond += sorted({size for size in (0, 1, symbol.low - 1) if 0 <= size < symbol.low})
        for size in beyond:
            sizes = {**hints, symbol.name: size}
            changed = [_resized(i.meta, value, sizes) for i, value in zip(program.inputs, values)]
            at = tuple(k for k, i in enumerate(program.inputs) if symbol.name in i.meta.symbols)
            if None in changed or sum(8 * v.numel for v in changed if v) > MEMORY:
                continue
            high = "∞" if symbol.high is None else symbol.high
            text = f"{symbol.name} = {size}, outside [{symbol.low}, {high}]"
            yield Violation(text, at, tuple(v for v in changed if v))


def _resized(meta: TensorMeta, value: Value, sizes: Mapping[str, int]) -> Value | None:
    """The value at other sizes, in the exported layout; None where its sizes cannot be told."""
    try:
        shape = tuple(int(evaluate(size, sizes)) for size in meta.shape)
        stride = tuple(int(evaluate(step, sizes)) for step in meta.stride)
    except (KeyError, ValueError, ZeroDivisionError):
        return None
    if min(shape, default=0) < 0:
        return None
    return replace(value, shape=shape, stride=stride)


def _unrelated_sizes(program: Program, values: tuple[Value, ...]) -> Iterator[Violation]:
    """One input alone larger in a dim whose size the others share or determine."""
    seen: set[str] = set()
    for k, (i, value) in enumerate(zip(program.inputs, values)):
        for dim, size in enumerate(i.meta.shape):
            if isinstance(size, int):
                continue
            symbols = free_symbols(size)
            if symbols <= seen or size not in symbols:
                shape = (*value.shape[:dim], value.shape[dim] + 1, *value.shape[dim + 1 :])
                others = tuple(o for o, other in enumerate(program.inputs) if symbols & other.meta.symbols)
                changed = (*values[:k], replace(value, shape=shape, stride=None), *values[k + 1 :])
                yield Violation(
                    f"{i.name}: dim {dim} not {size}", (k, *(o for o in others if o != k)), changed
                )
            seen |= symbols


def outcome(
    answer: OutsideAnswer | WorkerLost, at: Sequence[int], names: Sequence[str], *, of_call: bool = False
) -> str:
    """Which of `OUTCOMES` an answer is. `of_call`: not one input but their number is wrong."""
    if isinstance(answer, WorkerLost):
        return "hang" if isinstance(answer, TimedOut) else "crash"
    if not answer.raised:
        return "accepted, right" if answer.right else "accepted, wrong"
    return (
        "refused clearly" if is_clear(answer.raised, at, names, of_call=of_call) else "refused misleadingly"
    )


def is_clear(message: str, at: Sequence[int], names: Sequence[str], *, of_call: bool = False) -> bool:
    """Whether a refusal helps: it names a wrong input and says what was expected and what came.

    An input is named by its position or its name; where their number is wrong, the inputs as a whole are.

    >>> is_clear("input_handles[1]: unmatched dtype, expected: 6, but got: 7", [1], ["x", "y"])
    True
    >>> is_clear("expected size 5==4, stride 1==1 at dim=1; Error in op: input", [1], ["x", "y"])
    False
    """
    return any(_helps(line, at, names, of_call) for line in message.splitlines())


def _helps(line: str, at: Sequence[int], names: Sequence[str], of_call: bool) -> bool:
    if not ("expected" in line.lower() and re.search(r"\bgot\b|\bgiven\b", line)):
        return False
    if of_call and re.search(r"\binputs?\b|\barguments?\b|\bkeywords?\b", line):
        return True
    return any(_names(line, k, names[k]) for k in at if k < len(names))


def _names(line: str, position: int, name: str) -> bool:
    """Whether a line speaks of an input by position or by name; a bare letter may stand for anything."""
    word = re.escape(name)
    by_name = rf"['\"`]{word}['\"`]|\b(?:[Ii]nput|[Aa]rgument) {word}\b|^{word}: "
    by_position = rf"input_handles\[{position}\]|\b[Ii]nput {position}\b"
    return re.search(f"{by_name}|{by_position}", line) is not None


@dataclass(frozen=True)
class Outside:
    """All calls that were tried, of `total` that there are."""

    rows: tuple[Row, ...]
    total: int

    @property
    def text(self) -> str:
        """How many calls ended in which way, without and with the run-time checks, a line each.

        >>> print(Outside((Row("x: transposed", "accepted, wrong", "refused clearly"),), 1).text)
        1 call outside the contract, without and with AOTI_RUNTIME_CHECK_INPUTS=1:
        refused clearly        0    1
        accepted, wrong        1    0
        """
        without, with_ = Counter(r.unchecked for r in self.rows), Counter(r.checked for r in self.rows)
        left = self.total - len(self.rows)
        count = f"{len(self.rows)} call{'' if len(self.rows) == 1 else 's'}"
        late = f" ({left} more for which no time was left)" if left else ""
        lines = [f"{count} outside the contract{late}, without and with AOTI_RUNTIME_CHECK_INPUTS=1:"]
        lines += [f"{o:<20}{without[o]:>4}{with_[o]:>5}" for o in OUTCOMES if without[o] or with_[o]]
        return "\n".join(lines)


def look(
    bench: Callable[[], TargetBench],
    program: Program,
    values: Sequence[Value],
    *,
    over: Callable[[], bool],
    progress: Callable[[int], None],
) -> Outside:
    """Try every violation on a compiled package, without and with the run-time checks.

    `bench()` gives a bench with its own workers. Calls for which no time is left (`over()`) are left out.
    Raises TaskError when the package cannot be called at all.
    """
    names = [i.name for i in program.inputs]
    benches = {checked: bench() for checked in SWITCHES}
    rows: list[Row] = []
    try:
        constants = benches[False].call_open(TASKS + "constants")
        found = list(violations(program, values, constants))
        for violation in found:
            if over():
                break
            ends: dict[bool, str] = {}
            said = ""
            for checked, one in benches.items():
                answer = _answer(one, violation, checked)
                of_call = violation.form in ("missing", "None", "constant")
                ends[checked] = outcome(answer, violation.at, names, of_call=of_call)
                said = (str(answer) if isinstance(answer, WorkerLost) else answer.said) or said
            rows.append(Row(violation.text, ends[False], ends[True], said))
            progress(len(rows))
    finally:
        for one in benches.values():
            one.close()
    return Outside(tuple(rows), len(found))


def _answer(bench: TargetBench, violation: Violation, checked: bool) -> OutsideAnswer | WorkerLost:
    """One call's answer. A death is confirmed in a fresh worker: an earlier call may have prepared it."""
    lost: WorkerLost | None = None
    for _ in range(2):
        try:
            package, store = str(bench.package), bench.request.store
            answer: OutsideAnswer = bench.call_open(
                TASKS + "answer", package, store, violation.values, violation.at, violation.form, checked
            )
            return answer
        except WorkerLost as problem:
            lost = problem
            if isinstance(problem, TimedOut):
                break
    assert lost is not None
    return lost
