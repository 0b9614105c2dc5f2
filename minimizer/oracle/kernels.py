"""Reads what Inductor generates: which kernels there are, and which calls each was made from."""

from __future__ import annotations

import re

_DEFINITION = re.compile(r'extern "C"\s+(?:__declspec\(\w+\)\s+)?void\s+(\w+)\(')
_SOURCES = re.compile(
    r"//\s*Topologically Sorted Source Nodes: \[([^\]]*)\].*?(?=//\s*Topologically Sorted Source Nodes|\Z)",
    re.DOTALL,
)


def kernel_sources(kernel_code: str, wrapper_code: str) -> list[tuple[str, tuple[str, ...]]]:
    """Kernel names in order of definition, each with the calls named in the comment above its launch."""
    names = list(dict.fromkeys(_DEFINITION.findall(kernel_code)))
    calls: dict[str, tuple[str, ...]] = {}
    for match in _SOURCES.finditer(wrapper_code):
        sources = tuple(part.strip() for part in match[1].split(",") if part.strip())
        for name in names:
            if re.search(rf"\b{name}\(", match[0]):
                calls.setdefault(name, sources)
    return [(name, calls.get(name, _from_name(name))) for name in names]


def _from_name(kernel: str) -> tuple[str, ...]:
    """The operators in a kernel's own name: ``cpp_fused_relu_sum_0``."""
    match = re.search(r"fused_(\w+?)_\d+$", kernel)
    return tuple(match[1].split("_")) if match else ()
