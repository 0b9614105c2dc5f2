"""What fails, as data: a program, its inputs, the settings under which it is compiled and run.

A case is all that a judgement needs and all that a stranger must send. It is stored as JSON that a person
can read, with tensors beside it that `torch.load(weights_only=True)` opens: reading one executes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from minimizer.program import Program, from_json, to_json
from strategies.values import Fill

Scalar = bool | int | float | complex


@dataclass(frozen=True)
class Stored:
    """The elements are those of a tensor file of the case's store."""

    file: str


@dataclass(frozen=True)
class Literal:
    """The elements, in row-major order."""

    elements: tuple[Scalar, ...]


@dataclass(frozen=True)
class Value:
    """One concrete tensor: what it looks like and where its elements come from.

    `shape` and `stride` are in elements; a contiguous tensor may leave `stride` None. `take` cuts a stored
    or literal tensor down: for each dim, how many leading elements are kept (None = all). `offset` counts
    the elements of the storage before the first one: with some, the tensor is not aligned.
    """

    dtype: str
    shape: tuple[int, ...]
    data: Fill | Stored | Literal
    stride: tuple[int, ...] | None = None
    device: str = "cpu"
    bound: int | None = None
    take: tuple[int, ...] | None = None
    offset: int = 0

    @property
    def numel(self) -> int:
        """Number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count


def contiguous_stride(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides, in elements.

    >>> contiguous_stride((2, 3, 4))
    (12, 4, 1)
    """
    stride: list[int] = []
    step = 1
    for size in reversed(shape):
        stride.append(step)
        step *= max(size, 1)
    return tuple(reversed(stride))


MANNERS = {
    "": "call after call",
    "again": "again and again",
    "reload": "after a second load",
    "thread": "from another thread",
    "threads": "from two threads at once",
}
"""Ways of calling a loaded program in which it may answer otherwise."""


@dataclass(frozen=True)
class Settings:
    """How the program is compiled and run.

    `path` is ``aoti`` or ``inductor``; `config` holds Inductor options, `environment` variables of the
    judging process; `modules` are the files whose import registers custom operators; `manner` is one of
    `MANNERS`.
    """

    path: str = "aoti"
    config: tuple[tuple[str, Any], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    modules: tuple[str, ...] = ()
    manner: str = ""


Values = tuple[Value, ...]
"""One value for each input: what one call is given."""


@dataclass(frozen=True)
class Case:
    """A program, one value for each of its inputs, and settings.

    `earlier` are the inputs of the calls that come before, oldest first, on the same loaded program: a
    program with state, or one that keeps its buffers, may go wrong only then. Every call is judged.
    """

    program: Program
    values: Values
    settings: Settings = field(default_factory=Settings)
    earlier: tuple[Values, ...] = ()

    def __post_init__(self) -> None:
        for values in self.sequence:
            if len(values) != len(self.program.inputs):
                raise ValueError(f"{len(self.program.inputs)} inputs but {len(values)} values")

    @property
    def sequence(self) -> tuple[Values, ...]:
        """The inputs of all calls in order."""
        return (*self.earlier, self.values)

    def turn(self, k: int) -> Case:
        """Call `k` (0 = the first) by itself."""
        return replace(self, values=self.sequence[k], earlier=())

    @property
    def sizes(self) -> dict[str, int]:
        """The value that the inputs give to each symbol that stands alone in a dim."""
        found: dict[str, int] = {}
        for i, value in zip(self.program.inputs, self.values):
            for size, actual in zip(i.meta.shape, value.shape):
                if isinstance(size, str) and size.isidentifier():
                    found.setdefault(size, actual)
        return found

    @cached_property
    def key(self) -> str:
        """Equal for cases that differ in names only."""
        text = json.dumps(
            [
                self.program.fingerprint,
                [[value_to_json(v) for v in values] for values in self.sequence],
                asdict(self.settings),
            ],
            sort_keys=True,
            default=repr,
        )
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def value_of(self, name: str) -> Value:
        """The value of a named input. Raises KeyError."""
        for i, value in zip(self.program.inputs, self.values):
            if i.name == name:
                return value
        raise KeyError(name)


def with_program(
    case: Case,
    program: Program,
    extra: Mapping[str, Value] | None = None,
    earlier_extra: Sequence[Mapping[str, Value]] = (),
) -> Case:
    """The case with another program; values follow their inputs by name, new ones come from `extra`.

    `earlier_extra` does for each earlier call what `extra` does for the last one; left out, it is `extra`.
    """
    names = [i.name for i in case.program.inputs]
    given = [*(earlier_extra or [extra or {}] * len(case.earlier)), extra or {}]
    calls = []
    for values, more in zip(case.sequence, given, strict=True):
        known = dict(zip(names, values)) | dict(more)
        calls.append(tuple(known[i.name] for i in program.inputs))
    return replace(case, program=program, values=calls[-1], earlier=tuple(calls[:-1]))


def with_values(case: Case, values: Values) -> Case:
    """The case with other inputs. What an earlier call had in common with the last one, it keeps in common.

    A call like the last one follows it whole; otherwise a value follows as long as its shape stays.
    """

    def follow(call: Values) -> Values:
        if call == case.values:
            return values
        return tuple(
            new if mine == old and new.shape == old.shape else mine
            for mine, old, new in zip(call, case.values, values, strict=True)
        )

    return replace(case, values=values, earlier=tuple(map(follow, case.earlier)))


def value_to_json(value: Value) -> dict[str, Any]:
    """Plain JSON data for one value."""
    data = value.data
    kind = {Fill: "fill", Stored: "stored", Literal: "literal"}[type(data)]
    body: Any = to_json(data.elements) if isinstance(data, Literal) else asdict(data)
    plain = {
        "dtype": value.dtype,
        "shape": list(value.shape),
        "stride": None if value.stride is None else list(value.stride),
        "device": value.device,
        "bound": value.bound,
        "take": None if value.take is None else list(value.take),
        "offset": value.offset or None,
        kind: body,
    }
    return {key: item for key, item in plain.items() if item is not None}


def _sizes(plain: Any) -> tuple[int, ...]:
    if not isinstance(plain, list) or not all(type(size) is int and size >= 0 for size in plain):
        raise ValueError(f"malformed value: {plain!r} are not sizes")
    return tuple(plain)


def value_from_json(plain: Mapping[str, Any]) -> Value:
    """Read back what `value_to_json` wrote. Raises ValueError when it did not."""
    try:
        data: Fill | Stored | Literal
        if "fill" in plain:
            data = Fill(**plain["fill"])
        elif "stored" in plain:
            data = Stored(**plain["stored"])
        else:
            data = Literal(tuple(from_json(item) for item in plain["literal"]))
        stride, take, dtype = plain.get("stride"), plain.get("take"), plain["dtype"]
        if not isinstance(dtype, str):
            raise ValueError(f"malformed value: {dtype!r} is not a dtype")
        return Value(
            dtype=dtype,
            shape=_sizes(plain["shape"]),
            data=data,
            stride=None if stride is None else _sizes(stride),
            device=plain.get("device", "cpu"),
            bound=plain.get("bound"),
            take=None if take is None else _sizes(take),
            offset=_sizes([plain.get("offset", 0)])[0],
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"malformed value: {error}") from error


def case_to_json(case: Case) -> dict[str, Any]:
    """Plain JSON data for a case."""
    settings: dict[str, Any] = {
        "path": case.settings.path,
        "config": dict(case.settings.config),
        "environment": dict(case.settings.environment),
        "modules": list(case.settings.modules),
    }
    if case.settings.manner:
        settings["manner"] = case.settings.manner
    values = [value_to_json(value) for value in case.values]
    earlier = [[value_to_json(value) for value in call] for call in case.earlier]
    plain = {"program": to_json(case.program), "values": values, "settings": settings}
    return {**plain, "earlier": earlier} if earlier else plain


def _manner(plain: Any) -> str:
    if plain not in MANNERS:
        raise ValueError(f"malformed case: there is no manner {plain!r}")
    return str(plain)


def case_from_json(plain: Mapping[str, Any]) -> Case:
    """Read back what `case_to_json` wrote. Raises ValueError when it did not."""
    try:
        settings = plain["settings"]
        program = from_json(plain["program"])
        if not isinstance(program, Program):
            raise ValueError("malformed case: no program")
        values = tuple(value_from_json(value) for value in plain["values"])
        calls = settings.get("calls", 1)  # how often the same inputs were given: an older form
        if not 1 <= calls <= 1000:
            raise ValueError(f"malformed case: {calls} calls")
        before = (values,) * (calls - 1)
        before += tuple(tuple(value_from_json(value) for value in call) for call in plain.get("earlier", ()))
        return Case(
            program=program,
            values=values,
            settings=Settings(
                path=settings["path"],
                config=tuple(settings["config"].items()),
                environment=tuple(settings["environment"].items()),
                modules=tuple(settings["modules"]),
                manner=_manner(settings.get("manner", "")),
            ),
            earlier=before,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"malformed case: {error!r}") from error
