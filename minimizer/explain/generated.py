"""What Inductor generated, read as text: kernels, their launches, inputs and the checks on them, provenance.

An AOTI package is a zip archive with ``*.wrapper.cpp``, ``*.kernel.cpp`` and, when it was compiled with
``trace.provenance_tracking_level=1``, ``kernel_information.json``. Nothing in it is imported or executed.
A wrapper in Python (what ``TORCH_LOGS=output_code`` prints) is read as well.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

LARGEST = 64 << 20
"""Bytes of one file of a package that are read."""


class Unreadable(Exception):
    """The file is no package and no generated code; the message says what to do."""


@dataclass(frozen=True)
class Kernel:
    """One generated kernel: parameter names in order, and its source text."""

    name: str
    parameters: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Launch:
    """One launch in the wrapper: arguments as written, nodes from the comment above, line of the file."""

    kernel: str
    arguments: tuple[str, ...]
    nodes: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Limits:
    """What the wrapper checks about one dim of an input; None where it checks nothing."""

    low: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class Provenance:
    """What a kernel was made from: graph nodes, and the lines of the model, innermost frame each."""

    nodes: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Generated:
    """The generated code of one model.

    `inputs` are the wrapper's names in the order of the call; `symbols` maps a size symbol to (input, dim);
    `limits` maps (input, dim) to what is checked with AOTI_RUNTIME_CHECK_INPUTS=1.
    """

    kernels: Mapping[str, Kernel] = field(default_factory=dict)
    launches: tuple[Launch, ...] = ()
    inputs: tuple[str, ...] = ()
    symbols: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    limits: Mapping[tuple[str, int], Limits] = field(default_factory=dict)
    provenance: Mapping[str, Provenance] = field(default_factory=dict)
    checks: bool = False


def read_generated(path: Path) -> Generated:
    """Read a package (``.pt2``, or any zip), or a generated ``.cpp`` or ``.py`` file. Raises Unreadable."""
    if not path.is_file():
        raise Unreadable(
            f"{path} is not a file; give an AOTI package (.pt2) or a generated wrapper (.cpp, .py)"
        )
    try:
        if path.suffix in (".cpp", ".py"):
            return parse_generated([path.read_text(errors="replace")], {})
        with zipfile.ZipFile(path) as archive:
            texts = [_member(archive, name) for name in archive.namelist() if name.endswith(".cpp")]
            facts = [n for n in archive.namelist() if n.endswith("kernel_information.json")]
            known = json.loads(_member(archive, facts[0])) if facts else {}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as problem:
        raise Unreadable(f"{path} cannot be read as a package: {problem}") from problem
    except ValueError:
        known = {}
    if not texts:
        raise Unreadable(
            f"{path} holds no generated code: give what aoti_compile_and_package wrote, not torch.export.save"
        )
    return parse_generated(texts, known if isinstance(known, dict) else {})


def _member(archive: zipfile.ZipFile, name: str) -> str:
    with archive.open(name) as stream:
        return stream.read(LARGEST).decode(errors="replace")


_CPP_KERNEL = re.compile(
    r'extern "C"\s+(?:__declspec\(\w+\)\s+)?void\s+(?P<name>\w+)\((?P<parameters>[^)]*)\)\s*(?P<end>[{;])'
)
_TRITON_KERNEL = re.compile(
    r"async_compile\.triton\('(?P<name>\w+)',\s*'''(?P<source>.*?)(?:'''|\Z)", re.DOTALL
)
_TRITON_DEF = re.compile(r"^[ \t]*def \w+\((?P<parameters>[^\n]*)\):", re.M)
_TRITON_CALLER = re.compile(r"\bvoid call_(?P<name>\w+)\((?P<parameters>[^{]*?)\)\s*\{")
_CALL = re.compile(r"^[ \t]*(?:call_)?(?P<name>\w+?)(?:\.run)?\(", re.M)
_NODES = re.compile(r"^[ \t]*(?://|#) Topologically Sorted Source Nodes: \[(?P<nodes>[^\]\n]*)\]", re.M)
_INPUT = re.compile(r'inputs_info_\[(?P<index>\d+)\]\.name = "(?P<name>\w+)"')
_SYMBOL = re.compile(r"^[ \t]*(?:int64_t )?(?P<symbol>[su]\d+) = (?P<input>\w+?)_size\[(?P<dim>\d+)\]", re.M)
_LOW = re.compile(r"if \((?P<input>\w+)_size\[(?P<dim>\d+)\] < (?P<value>\d+)")
_HIGH = re.compile(r"if \((?P<input>\w+)_size\[(?P<dim>\d+)\] > (?P<value>\d+)")
_PYTHON_INPUTS = re.compile(r"^[ \t]*(?P<names>\w+(?:, \w+)*),? = args$", re.M)


def parse_generated(texts: list[str], known: Mapping[str, object]) -> Generated:
    """Read generated texts, and what ``kernel_information.json`` says."""
    kernels: dict[str, Kernel] = {}
    for text in texts:
        for kernel in _kernels(text):
            kernels.setdefault(kernel.name, kernel)
    launches = tuple(launch for text in texts for launch in _launches(text, kernels))
    inputs: tuple[str, ...] = ()
    symbols: dict[str, tuple[str, int]] = {}
    low: dict[tuple[str, int], int] = {}
    high: dict[tuple[str, int], int] = {}
    checks = False
    for text in texts:
        found = {int(m["index"]): m["name"] for m in _INPUT.finditer(text)}
        inputs = inputs or tuple(found[k] for k in sorted(found))
        python = _PYTHON_INPUTS.search(text)
        if not inputs and python:
            inputs = tuple(python["names"].split(", "))
        for m in _SYMBOL.finditer(text):
            symbols.setdefault(m["symbol"], (m["input"], int(m["dim"])))
        low |= {(m["input"], int(m["dim"])): int(m["value"]) for m in _LOW.finditer(text)}
        high |= {(m["input"], int(m["dim"])): int(m["value"]) for m in _HIGH.finditer(text)}
        checks = checks or "__check_inputs_outputs" in text
    limits = {key: Limits(low.get(key), high.get(key)) for key in {*low, *high}}
    return Generated(kernels, launches, inputs, symbols, limits, _provenance(known), checks)


def _names(parameters: str) -> tuple[str, ...]:
    """The names in a C++ or Python parameter list."""
    names = []
    for part in parameters.split(","):
        part = part.partition(":")[0] if "tl.constexpr" in part else part.partition("=")[0]
        words = re.findall(r"\w+", part)
        if words:
            names.append(words[-1])
    return tuple(names)


def _kernels(text: str) -> Iterator[Kernel]:
    callers = {m["name"]: _names(m["parameters"]) for m in _TRITON_CALLER.finditer(text)}
    for match in _CPP_KERNEL.finditer(text):
        if match["end"] == "{":
            end = text.find("#include", match.end())
            source = text[match.start() : end if end >= 0 else len(text)]
            yield Kernel(match["name"], _names(match["parameters"]), source)
    for match in _TRITON_KERNEL.finditer(text):
        name, source = match["name"], match["source"]
        defined = _TRITON_DEF.search(source)
        own = _names(defined["parameters"]) if defined else ()
        # What is launched from C++ takes the parameters of its own caller, without the block sizes.
        yield Kernel(name, callers.get(name, own), source)


def _launches(text: str, kernels: Mapping[str, Kernel]) -> Iterator[Launch]:
    comments = [(m.end(), m["nodes"]) for m in _NODES.finditer(text)]
    position, used = 0, 0
    for match in _CALL.finditer(text):
        if match["name"] not in kernels:
            continue
        end = _closing(text, match.end() - 1)
        arguments = _split(text[match.end() : end])
        while position < len(comments) and comments[position][0] < match.start():
            position += 1
        nodes: tuple[str, ...] = ()
        if position > used:  # a comment belongs to the first launch after it
            nodes = tuple(n.strip() for n in comments[position - 1][1].split(",") if n.strip())
            used = position
        yield Launch(match["name"], arguments, nodes, text.count("\n", 0, match.start()) + 1)


def _closing(text: str, start: int) -> int:
    """Where the bracket that opens at `start` closes; the end of the text when it does not."""
    depth = 0
    for match in re.compile(r"[()]").finditer(text, start):
        depth += 1 if match[0] == "(" else -1
        if depth == 0:
            return match.start()
    return len(text)


def _split(arguments: str) -> tuple[str, ...]:
    """Arguments at commas outside brackets."""
    parts, depth, part = [], 0, ""
    for c in arguments:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return tuple([*parts, part.strip()] if part.strip() else parts)


def _provenance(known: Mapping[str, object]) -> dict[str, Provenance]:
    """Kernel → provenance, keyed without the number of the launch: ``cpp_fused_relu_0:1``."""
    found: dict[str, Provenance] = {}
    for key, entry in known.items():
        if isinstance(entry, Mapping):
            nodes = entry.get("post_grad_nodes") or entry.get("pre_grad_nodes") or ()
            traces = entry.get("stack_traces") or ()
        else:
            nodes, traces = entry, ()
        if isinstance(nodes, (list, tuple)) and isinstance(traces, (list, tuple)):
            lines = tuple(dict.fromkeys(filter(None, (_innermost(t) for t in traces if isinstance(t, str)))))
            provenance = Provenance(tuple(str(n) for n in nodes), lines)
            found.setdefault(str(key).partition(":")[0], provenance)
    return found


_FRAME = re.compile(
    r'File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<function>[^\n]+)(?:\n\s+(?P<code>[^\n]+))?'
)


def _innermost(trace: str) -> str:
    """``FILE:LINE: code`` of a stack trace's last frame."""
    frames = list(_FRAME.finditer(trace))
    if not frames:
        return ""
    last = frames[-1]
    code = f": {last['code'].strip()}" if last["code"] else ""
    return f"{last['file']}:{last['line']}{code}"
