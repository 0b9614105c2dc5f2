"""Which findings are the same bug: buckets of minimal programs, and what is known about them.

After reduction two findings are one when their failures are worded alike and their minimal programs differ in
names, sizes and numbers only. Dtypes count by class, since a kernel that is wrong for float16 is as a rule
wrong for float32 for the same reason. `known.toml` ties buckets to public issues or documented behaviour.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minimizer.oracle.verdict import Signature
from minimizer.program import Device, Node, Program, Ref, Sym, TensorMeta, Torch, canonical, map_args, to_json

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

KNOWN_FILE = "known.toml"

_CLASSES = {
    "bool": "bool",
    "int64": "integer",
    "int32": "integer",
    "complex64": "complex",
    "complex128": "complex",
    "complex32": "complex",
}


class KnownFileError(Exception):
    """`known.toml` cannot be used; the message says in one line what is wrong with it."""


@dataclass(frozen=True)
class Known:
    """One entry of `known.toml`: what it matches, and what is known.

    It matches a bucket by name, or failures of a kind whose minimal program makes exactly these calls.
    """

    bucket: str = ""
    kind: str = ""
    calls: tuple[str, ...] = ()
    issue: str = ""
    note: str = ""

    def matches(self, bucket: str, kind: str, calls: Sequence[str]) -> bool:
        """Whether a finding is the one that is known."""
        if self.bucket:
            return self.bucket == bucket
        return self.kind == kind and sorted(self.calls) == sorted(calls)


def dtype_class(dtype: str) -> str:
    """bool, integer (int32, int64), narrow integer (all others), float or complex.

    >>> dtype_class("uint8"), dtype_class("bfloat16")
    ('narrow integer', 'float')
    """
    if dtype in _CLASSES:
        return _CLASSES[dtype]
    return "narrow integer" if dtype.startswith(("int", "uint")) else "float"


def plain_name(target: str) -> str:
    """The name of an operator, however its call is spelled.

    >>> plain_name("aten.amin.default"), plain_name("torch.nn.functional.relu"), plain_name("Tensor.sum")
    ('amin', 'relu', 'sum')
    """
    space, _, rest = target.partition(".")
    if space in ("aten", "prims"):
        return rest.split(".")[0]
    return target.rpartition(".")[2]


def calls_of(program: Program) -> tuple[str, ...]:
    """The names of the operators that a program calls, in order."""
    return tuple(plain_name(node.target) for node in program.operators)


def skeleton(program: Program) -> Any:
    """What is left of a program when names, sizes and numbers are taken away, as JSON data."""
    plain = canonical(program)
    return {
        "inputs": [_meta(i.meta) for i in plain.inputs],
        "state": [_meta(s.meta) for s in plain.state],
        "calls": [_call(node) for node in plain.nodes],
        "output": to_json(map_args((plain.output,), _leaf)),
        "graphs": [skeleton(body) for _, body in plain.graphs],
    }


def _meta(meta: TensorMeta) -> str:
    return f"{dtype_class(meta.dtype)} {len(meta.shape)}d"


def _call(node: Node) -> Any:
    args = map_args(node.args, _leaf)
    kwargs = [[key, to_json(map_args((value,), _leaf))] for key, value in node.kwargs]
    return [plain_name(node.target), to_json(args), kwargs]


def _leaf(leaf: Any) -> Any:
    if isinstance(leaf, Ref):
        return leaf
    if isinstance(leaf, (Sym, int, float, complex)) and not isinstance(leaf, bool):
        return "number"
    if isinstance(leaf, Torch):
        return dtype_class(leaf.name)
    return "device" if isinstance(leaf, Device) else leaf


def bucket_of(program: Program, signature: Signature) -> str:
    """The name of the bucket: 16 hexadecimal digits, equal for findings that are the same bug."""
    said = [signature.kind, signature.stage, signature.exception, signature.text]
    text = json.dumps([said, skeleton(program)], sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Seen:
    """What is needed of a failing program to tell whether another one likely shows the same bug."""

    kind: str
    calls: frozenset[str]
    classes: frozenset[str]

    def explains(self, other: Seen) -> bool:
        """Whether another program holds all calls of this one on such dtypes, and fails in its kind.

        If this one is minimal, the other is counted with its duplicates and not reduced: of hundreds of
        programs that call one wrong operator, one is enough. What is lost is a second bug of that kind in
        such a program; programs without the known operator would show that one as well.
        """
        return self.kind == other.kind and self.calls <= other.calls and self.classes <= other.classes


def seen_of(program: Program, failure_kind: str) -> Seen:
    """What is remembered of a failing program."""
    classes = frozenset(dtype_class(i.meta.dtype) for i in program.inputs)
    return Seen(failure_kind, frozenset(calls_of(program)), classes)


def slug(kind: str, calls: Sequence[str], bucket: str) -> str:
    """A folder name for a finding: ``wrong-value-acosh-1f2e``."""
    words = [re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-") for word in (kind, *calls[:3])]
    return "-".join([*filter(None, words), bucket[:4]])


def read_known(path: Path) -> list[Known]:
    """The entries of `known.toml`; none when there is no such file. Raises KnownFileError."""
    if not path.exists():
        return []
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise KnownFileError(f"{path} is not TOML: {problem}") from problem
    entries = data.get("known", [])
    if not isinstance(entries, list):
        raise KnownFileError(f"{path}: write each entry under [[known]]")
    return [_known(path, k, entry) for k, entry in enumerate(entries, 1)]


def _known(path: Path, number: int, entry: Any) -> Known:
    fields: Mapping[str, Any] = entry if isinstance(entry, dict) else {}
    texts = {key: fields.get(key, "") for key in ("bucket", "kind", "issue", "note")}
    calls = fields.get("calls", [])
    wrong = [key for key, value in texts.items() if not isinstance(value, str)]
    if wrong or not isinstance(calls, list) or not all(isinstance(call, str) for call in calls):
        raise KnownFileError(f"{path}: entry {number}: {wrong[0] if wrong else 'calls'} is not text")
    if not texts["bucket"] and not (texts["kind"] and calls):
        raise KnownFileError(f"{path}: entry {number}: give a bucket, or a kind and calls")
    if not texts["issue"] and not texts["note"]:
        raise KnownFileError(f"{path}: entry {number}: give an issue or a note: what is known?")
    return Known(calls=tuple(calls), **texts)
