"""What an AOTI package says of itself without being loaded: device, inputs, kernels. Executes nothing.

A package holds machine code and the C++ it was built from, and no graph: there is nothing to compare with
and nothing to reduce. But the C++ states what the program was promised about its inputs, in the checks that
``AOTI_RUNTIME_CHECK_INPUTS=1`` turns on and in its ``assert_size_stride`` calls, so inputs can be judged.
"""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from minimizer.options import Unusable
from minimizer.program import Input, Program, Symbol, TensorMeta
from minimizer.symbolic import Size

_NAME = re.compile(r'inputs_info_\[(\d+)\]\.name = "(\w+)";')
_DTYPE = re.compile(r"(\w+)_expected_dtype = aoti_torch_dtype_(\w+)\(\)")
_ASSERTED = re.compile(r'assert_size_stride\((\w+), \{([^}]*)\}, \{([^}]*)\}, "input"\)')
_STATIC = re.compile(r"\((-?\d+) != (\w+)_size\[(\d+)\]\)")
_LEAST = re.compile(r"\((\w+)_size\[(\d+)\] < (\d+)\)")
_MOST = re.compile(r"\((\w+)_size\[(\d+)\] > (\d+)\)")
_SYMBOL = re.compile(r"int64_t (\w+) = (\w+)_size\[(\d+)\];")
_KERNEL = re.compile(r'extern "C"\s+void (\w+)\(')


@dataclass(frozen=True)
class Package:
    """A package as far as it can be read.

    `inputs` are the names of its inputs, in order; `program` has them with what is promised of each, and no
    calls; it is None where the C++ does not say.
    """

    device: str
    isa: str
    inputs: tuple[str, ...]
    kernels: tuple[str, ...]
    program: Program | None

    def __str__(self) -> str:
        parts = [f"compiled for {self.device}" + (f" ({self.isa})" if self.isa else "")]
        if self.program is not None:
            shown = ", ".join(f"{i.name} {_shown(i.meta, self.program)}" for i in self.program.inputs)
            parts.append(f"{len(self.inputs)} inputs: {shown}" if len(self.inputs) != 1 else f"input {shown}")
        elif self.inputs:
            parts.append(f"inputs {', '.join(self.inputs)}")
        if self.kernels:
            parts.append(f"{len(self.kernels)} kernels" if len(self.kernels) > 1 else "1 kernel")
        return "; ".join(parts)


def read_package(path: Path) -> Package:
    """Read a package or a bare library. Raises Unusable when it is damaged."""
    if not zipfile.is_zipfile(path):
        return Package("an unknown device", "", (), (), None)
    try:
        with zipfile.ZipFile(path) as archive:
            texts = {
                name: archive.read(name).decode(errors="replace")
                for name in archive.namelist()
                if name.endswith((".cpp", "_metadata.json"))
            }
    except (zipfile.BadZipFile, OSError, EOFError) as problem:
        raise Unusable(f"{path.name} is damaged ({problem}); copy it again") from None
    about: dict[str, str] = {}
    for name, text in texts.items():
        if name.endswith("_metadata.json"):
            try:
                about |= {str(key): str(value) for key, value in json.loads(text).items()}
            except (ValueError, AttributeError):
                continue
    code = "\n".join(text for name, text in texts.items() if name.endswith(".cpp"))
    names = tuple(name for _, name in sorted({(int(k), name) for k, name in _NAME.findall(code)}))
    return Package(
        device=about.get("AOTI_DEVICE_KEY", "an unknown device"),
        isa=about.get("AOTI_CPU_ISA", ""),
        inputs=names,
        kernels=tuple(dict.fromkeys(_KERNEL.findall(code))),
        program=promised(code, names, about.get("AOTI_DEVICE_KEY", "cpu")),
    )


def promised(code: str, names: tuple[str, ...], device: str) -> Program | None:
    """What the wrapper's C++ promises to accept, as a program without calls; None where it does not say."""
    dtypes = dict(_DTYPE.findall(code))
    if not names or any(name not in dtypes for name in names):
        return None
    asserted = {name: (_sizes(shape), _sizes(stride)) for name, shape, stride in _ASSERTED.findall(code)}
    owners = {(owner, int(dim)): symbol for symbol, owner, dim in _SYMBOL.findall(code)}
    ranges: dict[str, list[int | None]] = {symbol: [0, None] for symbol in owners.values()}
    for k, pattern in enumerate((_LEAST, _MOST)):
        for owner, dim, bound in pattern.findall(code):
            symbol = owners.get((owner, int(dim)))
            if symbol is not None:
                ranges[symbol][k] = int(bound)
    inputs = []
    for name in names:
        shape, stride = asserted.get(name) or _unasserted(code, name, owners)
        inputs.append(Input(name, TensorMeta(dtypes[name], shape, stride, device)))
    symbols = tuple(
        Symbol(name, low or 0, high, hint=max(low or 0, 2)) for name, (low, high) in ranges.items()
    )
    return Program(tuple(inputs), (), (), symbols=symbols)


def _sizes(text: str) -> tuple[Size, ...]:
    sizes = [re.sub(r"(?<=\d)L+\b", "", part).strip() for part in text.split(",") if part.strip()]
    return tuple(int(size) if re.fullmatch(r"-?\d+", size) else size for size in sizes)


def _unasserted(
    code: str, name: str, owners: dict[tuple[str, int], str]
) -> tuple[tuple[Size, ...], tuple[Size, ...]]:
    """Shape and strides of an input that nothing asserts whole: from the checks of its single dims."""
    static = {int(dim): int(size) for size, owner, dim in _STATIC.findall(code) if owner == name}
    symbols = {dim: symbol for (owner, dim), symbol in owners.items() if owner == name}
    rank = max([*static, *symbols], default=-1) + 1
    shape = tuple(symbols.get(dim, static.get(dim, f"{name}_size{dim}")) for dim in range(rank))
    return shape, tuple(f"{name}_stride{dim}" for dim in range(rank))


def _shown(meta: TensorMeta, program: Program) -> str:
    ranges = {s.name: f"{s.low}..{'' if s.high is None else s.high}" for s in program.symbols}
    sizes = ", ".join(ranges.get(size, size) if isinstance(size, str) else str(size) for size in meta.shape)
    return f"{meta.dtype}[{sizes}]"
