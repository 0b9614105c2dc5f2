"""What fails, as data: a program, its inputs, the settings under which it is compiled and run.

A case is all that a judgement needs and all that a stranger must send. It is stored as JSON that a person
can read, with tensors beside it that `torch.load(weights_only=True)` opens: reading one executes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
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


@dataclass(frozen=True)
class Settings:
    """How the program is compiled and run.

    `path` is ``aoti`` or ``inductor``; `config` holds Inductor options, `environment` variables of the
    judging process; `calls` is how many times the program is called with the same inputs before it counts
    as right; `modules` are the files whose import registers custom operators.
    """

    path: str = "aoti"
    config: tuple[tuple[str, Any], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    calls: int = 1
    modules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """A program, one value for each of its inputs, and settings."""

    program: Program
    values: tuple[Value, ...]
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        if len(self.values) != len(self.program.inputs):
            raise ValueError(f"{len(self.program.inputs)} inputs but {len(self.values)} values")

    @property
    def sizes(self) -> dict[str, int]:
        """The value that the inputs give to each symbol that stands alone in a dim."""
        found: dict[str, int] = {}
        for i, value in zip(self.program.inputs, self.values):
            for size, actual in zip(i.meta.shape, value.shape):
                if isinstance(size, str) and size.isidentifier():
                    found.setdefault(size, actual)
        return found

    @property
    def key(self) -> str:
        """Equal for cases that differ in names only."""
        text = json.dumps(
            [self.program.fingerprint, [value_to_json(v) for v in self.values], asdict(self.settings)],
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


def with_program(case: Case, program: Program, extra: Mapping[str, Value] | None = None) -> Case:
    """The case with another program; values follow their inputs by name, new ones come from `extra`."""
    known = {i.name: v for i, v in zip(case.program.inputs, case.values)} | dict(extra or {})
    return replace(case, program=program, values=tuple(known[i.name] for i in program.inputs))


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
    settings = {
        "path": case.settings.path,
        "config": dict(case.settings.config),
        "environment": dict(case.settings.environment),
        "calls": case.settings.calls,
        "modules": list(case.settings.modules),
    }
    values = [value_to_json(value) for value in case.values]
    return {"program": to_json(case.program), "values": values, "settings": settings}


def case_from_json(plain: Mapping[str, Any]) -> Case:
    """Read back what `case_to_json` wrote. Raises ValueError when it did not."""
    try:
        settings = plain["settings"]
        program = from_json(plain["program"])
        if not isinstance(program, Program):
            raise ValueError("malformed case: no program")
        return Case(
            program=program,
            values=tuple(value_from_json(value) for value in plain["values"]),
            settings=Settings(
                path=settings["path"],
                config=tuple(settings["config"].items()),
                environment=tuple(settings["environment"].items()),
                calls=settings["calls"],
                modules=tuple(settings["modules"]),
            ),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"malformed case: {error!r}") from error
