"""Reads what Inductor generates: which kernels there are, where each is launched, and with what.

Inductor's Python wrapper is parsed as Python, so its call sites and argument names are exact; C++ is read by
pattern, only where Inductor itself wrote it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class KernelSource:
    """One generated C++ kernel. `code` defines a function named ``kernel`` that takes `argtypes` in order."""

    name: str
    argtypes: tuple[str, ...]
    code: str

    @classmethod
    def of_code(cls, name: str, code: str) -> KernelSource:
        """A kernel whose argument types are read off its signature."""
        found = _SIGNATURE.search(code)
        parts = [part.strip() for part in found[1].split(",")] if found and found[1].strip() else []
        return cls(name, tuple(re.sub(r"\s*\w+$", "", " ".join(part.split())) for part in parts), code)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the C++ parameters.

        >>> KernelSource("k", ("const float*",), 'extern "C" void kernel(const float* in_ptr0)').parameters
        ('in_ptr0',)
        """
        found = _SIGNATURE.search(self.code)
        parts = found[1].split(",") if found and found[1].strip() else []
        return tuple(re.split(r"[\s*&]+", part.strip())[-1] for part in parts)

    def reads_only(self, position: int) -> bool:
        """Whether an argument is a number, or a tensor that the kernel may not write to."""
        return self.argtypes[position].startswith("const ") or "*" not in self.argtypes[position]


@dataclass(frozen=True)
class Site:
    """One call in the wrapper: what is called, with what, and the variables that hold its results.

    `args` are the source of a kernel's arguments in order; of another call, the variables that it reads.
    """

    line: int
    callee: str
    args: tuple[str, ...]
    results: tuple[str, ...]
    kernel: bool


_SIGNATURE = re.compile(r'extern "C"\s+void\s+\w+\s*\(([^)]*)\)')
_EXTERN = ("extern_kernels.", "torch.ops.", "aten.", "inductor_ops.", "_quantized.")
_NO_CALL = ("torch.ops.inductor._reinterpret_tensor", "torch.ops.inductor._alloc_from_pool")


def kernel_definitions(wrapper: str) -> dict[str, KernelSource]:
    """The C++ kernels that a Python wrapper defines, by name."""
    found: dict[str, KernelSource] = {}
    for node in ast.parse(wrapper).body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=ast.Attribute(attr="cpp_pybinding"), args=[types, ast.Constant(value=code)]
                ),
            ) if isinstance(code, str):
                argtypes = tuple(str(item) for item in ast.literal_eval(types))
                found[name] = KernelSource(name, argtypes, code.strip("\n") + "\n")
    return found


def call_sites(wrapper: str, kernels: Mapping[str, KernelSource]) -> dict[int, Site]:
    """The calls of kernels and of ready-made operators, by the line of their statement."""
    sites: dict[int, Site] = {}
    for node in ast.walk(ast.parse(wrapper)):
        if not isinstance(node, (ast.Expr, ast.Assign)) or not isinstance(node.value, ast.Call):
            continue
        callee = ast.unparse(node.value.func)
        kernel = callee in kernels
        if not kernel and (not callee.startswith(_EXTERN) or callee in _NO_CALL):
            continue
        call = node.value
        out = [keyword.value for keyword in call.keywords if keyword.arg == "out"]
        results = _variables([*(node.targets if isinstance(node, ast.Assign) else []), *out])
        given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg != "out")]
        args = tuple(ast.unparse(arg) for arg in given) if kernel else _variables(given)
        sites[node.lineno] = Site(node.lineno, callee, args, results, kernel)
    return sites


def _variables(trees: Sequence[ast.AST]) -> tuple[str, ...]:
    names = (leaf.id for tree in trees for leaf in ast.walk(tree) if isinstance(leaf, ast.Name))
    return tuple(dict.fromkeys(names))


def reuses(wrapper: str) -> dict[str, str]:
    """Which variable's memory another one takes over: ``buf1 = buf0; del buf0  # reuse``."""
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(wrapper)):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=source)):
                found[name] = source
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Name(id="reinterpret_tensor"), args=[ast.Name(id=source), *_]),
            ):
                found[name] = source
    return found


_DEFINITION = re.compile(r'extern "C"\s+(?:__declspec\(\w+\)\s+)?void\s+(\w+)\(')


def aoti_kernels(kernel_code: str) -> dict[str, str]:
    """The kernels in the ``.kernel.cpp`` of an AOTI package by name, each under the name ``kernel``."""
    found: dict[str, str] = {}
    for part in re.split(r"(?m)^(?=#include .*cpp_prefix\.h)", kernel_code):
        name = _DEFINITION.search(part)
        if name:
            body = re.sub(rf"\b{name[1]}\(", "kernel(", part, count=1)
            found[name[1]] = body.split("// Compile cmd")[0].strip("\n") + "\n"
    return found


def same_code(one: str, other: str) -> bool:
    """Whether two kernels are the same but for white space and comments."""
    plain = [re.sub(r"\s+", "", re.sub(r"//[^\n]*", "", code)) for code in (one, other)]
    return plain[0] == plain[1]


def lines_with(code: str, pattern: str) -> Iterator[tuple[int, str]]:
    """The lines of a kernel that match, with their numbers from 1."""
    for number, line in enumerate(code.splitlines(), 1):
        if re.search(pattern, line):
            yield number, line.strip()


def store_lines(code: str, parameter: str) -> tuple[tuple[int, str], ...]:
    """The lines of a kernel that write through a pointer parameter, or through an alias of it."""
    names = [parameter, *re.findall(rf"auto (\w+) = {re.escape(parameter)};", code)]
    name = "|".join(map(re.escape, names))
    wanted = rf"\b(?:{name})\[.*\] [-+*|&]?= |\.store\((?:{name})\b|atomic_add\w*\(&?(?:{name})\b"
    return tuple(lines_with(code, wanted))


def named_in(message: str, kernels: Mapping[str, str]) -> str:
    """The kernel that a C++ compiler's error names, or whose code it quotes; empty when none is."""
    for name in re.findall(r"In function ['‘](?:void )?(\w+)\(", message):
        if name in kernels:
            return str(name)
    quoted = [line.strip() for line in re.findall(r"(?m)^\s*\d+ \|\s?(.*)$", message)]
    for name, code in kernels.items():
        if any(line and line in code for line in quoted):
            return name
    return ""


def compiler_error(message: str) -> tuple[str, str]:
    """The first error of a C++ compiler and the line of code that it quotes."""
    error = re.search(r"error: ([^\n]+)(?:\n\s*\d+ \|\s?([^\n]*))?", message)
    return (error[1].strip(), (error[2] or "").strip()) if error else ("", "")
