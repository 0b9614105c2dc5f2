"""The script that shows one generated kernel failing alone: its source, its arguments, eager beside it.

It needs torch and a C++ compiler only, and is written to be read: first the kernel, then what it should do as
plain torch code, then the call. Like `repro.py` it exits with 1 while the bug is there.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from minimizer.case import Value, contiguous_stride
from minimizer.handover.repro import TOLERANCES
from minimizer.layout import INDENT, wrap
from minimizer.oracle.kernels import KernelSource
from minimizer.oracle.recorded import KernelArgument, KernelCase
from minimizer.program import TensorMeta
from minimizer.source import function_source, literal

SCRIPT = "kernel_repro.py"
INPUTS = "kernel_repro_inputs.pt"
"""Names of the script, and of the tensors beside it that are too large to be written out."""

WAYS = ("compare", "raise", "die", "hang", "compile", "asan")
"""How a kernel shows its fault: another result than eager, an exception, a dead process, no return, an error
of the C++ compiler, under AddressSanitizer only."""

_LOADS = f'saved = torch.load(Path(__file__).with_name("{INPUTS}"), weights_only=True)'
_FILLER = 85

_GUARDED = '''
def guarded(tensor):
    """A copy that ends where its memory ends: one element further is a fault."""
    if not tensor.numel():
        return tensor
    count = 1 + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
    size = count * tensor.element_size()
    room = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = mmap.mmap(-1, room + mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + room), mmap.PAGESIZE, 0)
    base = torch.frombuffer(pages, dtype=tensor.dtype, count=count, offset=room - size)
    return base.as_strided(tensor.shape, tensor.stride()).copy_(tensor)
'''

_ASAN = '''
def with_asan() -> bool:
    """Run the kernel under AddressSanitizer, and print the line that it stops at."""
    names = [f"-print-file-name=lib{name}.so" for name in ("asan", "stdc++")]
    libraries = [subprocess.check_output(["g++", n], text=True).strip() for n in names]
    env = {**os.environ, "LD_PRELOAD": ":".join(libraries)}
    env["ASAN_OPTIONS"] = "detect_leaks=0:alloc_dealloc_mismatch=0"
    for build in BUILDS:
        command = [sys.executable, __file__, "child", "--asan", build]
        job = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
        report = job.communicate()[1]
        kind = re.search(r"AddressSanitizer: ([\\w-]+)", report)
        at = re.search(r"#\\d+ \\S+ in \\S*kernel\\S*.* (/\\S+):(\\d+)", report)
        seen = kind[1] if kind else "sees nothing"
        print(f"AddressSanitizer, {build[2:]} build: {seen}")
        if kind:
            print(report[report.index("ERROR: AddressSanitizer") :][:4000])
        if kind and at:
            line = linecache.getline(at[1], int(at[2])).strip()
            print(f"line {at[2]} of the {build[2:]} kernel: {line}")
        if kind:
            return False
    return True
'''


@dataclass(frozen=True)
class KernelScript:
    """What a kernel's script is made of.

    `codes` gives for each tensor argument and each extra input, by name, the expression that builds it
    (None: it is read from `INPUTS`); `way` is one of `WAYS`; `wrong` the argument to compare, `guard` whether
    tensors lie at the very end of their memory.
    """

    kernel: KernelCase
    codes: Mapping[str, str | None]
    way: str
    title: str
    version: str
    wrong: str = ""
    guard: bool = False
    environment: tuple[tuple[str, str], ...] = ()
    timeout: int = 30

    def text(self) -> str:
        """The script, formatted as ``ruff format`` leaves it."""
        sections = [self._sources(), *self._eager(), self._check(), *self._more(), self._main()]
        code = "\n\n\n".join(section.strip("\n") for section in sections)
        return f"{self._docstring()}\n\n{self._header(code)}\n\n{code}\n"

    @property
    def _dies(self) -> bool:
        return self.way in ("die", "hang", "asan")

    @property
    def _compares(self) -> bool:
        return self.way == "compare" and self.kernel.program is not None

    def _docstring(self) -> str:
        title = f"{self.title.rstrip('.')} (torch {self.version})." if self.version else self.title
        options = "--O0 builds it unoptimised"
        if self.kernel.scalar is not None:
            options = "--scalar builds it without vector code, --O0 unoptimised"
        options += ", --asan with AddressSanitizer" if self._asan and self.way != "asan" else ""
        return '"""' + "\n".join([*_wrapped(title), "", *_wrapped(f"{options}.")]) + '\n"""'

    @property
    def _asan(self) -> bool:
        return self.way != "compile"

    def _header(self, code: str) -> str:
        modules = ("ctypes", "linecache", "mmap", "os", "re", "signal", "subprocess", "sys")
        early = dict(self.environment)
        wanted = [
            name for name in modules if re.search(rf"(?<![\w.]){name}\.", code) or (name == "os" and early)
        ]
        lines = [f"import {name}" for name in wanted]
        lines += ["from pathlib import Path"] if "Path(__file__)" in code else []
        lines += (
            ["", *(f"os.environ[{literal(k)}] = {literal(v)}" for k, v in early.items())] if early else []
        )
        lines += ["", *(["import torch"] if re.search(r"(?<![\w.])torch\.", code) else [])]
        lines += ["from torch._inductor import config"]
        lines += ["from torch._inductor.codecache import CppPythonBindingsCodeCache"]
        return "\n".join(lines)

    def _sources(self) -> str:
        kernel = self.kernel.source
        types = wrap(f"TYPES = {literal(list(kernel.argtypes))}", "")
        lines = [*types, f'SOURCE = r"""{_source(kernel)}"""']
        if self.kernel.scalar is not None:
            lines.append(f'SCALAR = r"""{_source(self.kernel.scalar)}"""')
        if self._asan:
            builds = ["--scalar", "--vector"] if self.kernel.scalar is not None else ["--vector"]
            lines.append(f"BUILDS = {literal(builds)}")
        return "\n".join(lines)

    def _eager(self) -> list[str]:
        program = self.kernel.program
        if not self._compares or program is None:
            return []
        return [function_source(program, "eager")]

    def _build(self) -> list[str]:
        """The statements that compile the kernel into ``kernel``."""
        lines = ['config.aot_inductor.debug_compile = "--O0" in sys.argv']
        lines += [f"config.{key} = {literal(value)}" for key, value in self.kernel.config]
        source = "SOURCE"
        if self.kernel.scalar is not None:
            lines += [
                "source = SOURCE",
                'if "--scalar" in sys.argv:',
                f"{INDENT}source, config.cpp.simdlen = SCALAR, 1",
            ]
            source = "source"
        if not self._asan:
            return [*lines, f"CppPythonBindingsCodeCache.load_pybinding(TYPES, {source})"]
        return [
            *lines,
            "flags = ()",
            'if "--asan" in sys.argv:',
            f'{INDENT}os.environ.pop("LD_PRELOAD")  # not for the compiler',
            f"{INDENT}config.cpp_cache_precompile_headers = False",
            f'{INDENT}flags = ("-fsanitize=address", "-g")',
            "build = CppPythonBindingsCodeCache.load_pybinding",
            f"kernel = build(TYPES, {source}, extra_flags=flags)",
        ]

    def _arguments(self) -> list[str]:
        """The statements that make the arguments, each a variable of the parameter's name."""
        lines: list[str] = []
        known = (
            {i.name for i in self.kernel.program.inputs} if self._compares and self.kernel.program else set()
        )
        for arg, argtype in zip(self.kernel.args, self.kernel.source.argtypes, strict=True):
            if not isinstance(arg.before, Value):
                continue
            if arg.alias:
                lines.append(f"{arg.name} = {arg.alias}")
            elif argtype.startswith("const ") or arg.name in known or not arg.name.startswith("out_ptr"):
                lines.append(f"{arg.name} = {self._code(arg.name)}")
            else:
                lines.append(f"{arg.name} = {_filled(arg.before)}")
        lines += [f"{name} = {self._code(name)}" for name, _ in self.kernel.extra if name in known]
        if any("saved[" in line for line in lines):
            lines.insert(0, _LOADS)
        return lines

    def _code(self, name: str) -> str:
        return self.codes.get(name) or f'saved["{name}"]'

    def _call(self) -> str:
        def given(arg: KernelArgument) -> str:
            return arg.name if isinstance(arg.before, Value) else literal(arg.before)

        return f"kernel({', '.join(given(arg) for arg in self.kernel.args)})"

    def _check(self) -> str:
        returns = " -> bool" if not self._dies else ""
        lines = [] if self.way == "compile" else self._arguments()
        if self.guard:
            names = dict.fromkeys(
                arg.alias or arg.name for arg in self.kernel.args if isinstance(arg.before, Value)
            )
            lines += [
                'if "--asan" not in sys.argv:',
                *(f"{INDENT}{name} = guarded({name})" for name in names),
                *(f"{INDENT}{arg.name} = {arg.alias}" for arg in self.kernel.args if arg.alias),
            ]
        if self.way == "compile":
            build = [INDENT + line for line in self._build()]
            lines += ["try:", *build]
            lines += ["except Exception as error:  # noqa: BLE001", f"{INDENT}print(str(error)[-2000:])"]
            lines += [f"{INDENT}return False", "return True"]
            return self._function("check", returns, lines)
        lines += self._build()
        if self._compares:
            lines += self._compare()
        elif self.way == "raise":
            lines += ["try:", f"{INDENT}{self._call()}"]
            lines += ["except RuntimeError as error:", f"{INDENT}print(error)", f"{INDENT}return False"]
            lines += ["return True"]
        else:
            lines += [self._call(), *([] if self._dies else ["return True"])]
        return self._function("check", returns, lines)

    def _compare(self) -> list[str]:
        program = self.kernel.program
        assert program is not None
        inputs = [i.name for i in program.inputs]
        written = {arg.alias or arg.name for arg in self.kernel.args if arg.output} | {
            arg.alias or arg.name
            for arg, kind in zip(self.kernel.args, self.kernel.source.argtypes, strict=True)
            if not kind.startswith("const ")
        }
        given = ", ".join(f"{name}.clone()" if name in written else name for name in inputs)
        meta = program.meta_of(program.outputs[0])
        name = self.wrong
        lines = [f"expected = eager({given})", self._call()]
        lines.append(f'print(f"eager  {{expected}}\\nkernel {{{name}}}")')
        return [*lines, f"return {_agree(name, meta)}"]

    def _function(self, name: str, returns: str, lines: Sequence[str]) -> str:
        body: list[str] = []
        for line in lines:
            inner = line[: len(line) - len(line.lstrip())]
            body += wrap(line.strip(), INDENT + inner)
        return "\n".join([f"def {name}(){returns}:", *body])

    def _more(self) -> list[str]:
        found = [_GUARDED] if self.guard else []
        if self.way == "die":
            found.append(
                "def test_kernel() -> bool:\n"
                '    child = [sys.executable, __file__, "child", *sys.argv[1:]]\n'
                "    status = subprocess.run(child, check=False).returncode\n"
                '    print("exit status", status)\n'
                "    return status >= 0  # negative: killed by a signal"
            )
        elif self.way == "hang":
            found.append(
                "def test_kernel() -> bool:\n"
                '    child = [sys.executable, __file__, "child", *sys.argv[1:]]\n'
                "    job = subprocess.Popen(child, start_new_session=True)\n"
                "    try:\n"
                f"        return job.wait(timeout={self.timeout}) == 0\n"
                "    except subprocess.TimeoutExpired:\n"
                "        os.killpg(job.pid, signal.SIGKILL)\n"
                f'        print("still running after {self.timeout} s")\n'
                "        return False"
            )
        return found + ([_ASAN] if self._asan else [])

    def _main(self) -> str:
        test = "test_kernel()" if self._dies else "check()"
        lines = ['if __name__ == "__main__":']
        if self._asan:
            inside = "check()" if self._dies else "not check()"
            lines += ['    if "child" in sys.argv:', f"        raise SystemExit({inside})"]
            if self.way == "asan":
                return "\n".join([*lines, "    raise SystemExit(not with_asan())"])
            lines += [
                f'    good = with_asan() if "--asan" in sys.argv else {test}',
                "    raise SystemExit(not good)",
            ]
        else:
            lines.append(f"    raise SystemExit(not {test})")
        return "\n".join(lines)


def _wrapped(text: str, width: int = 84) -> list[str]:
    """Words as lines, without what a docstring could not hold."""
    plain = " ".join(text.replace("\\", "/").replace('"', "'").split())
    return textwrap.wrap(plain, width)


def _source(kernel: KernelSource) -> str:
    return kernel.code.replace('"""', "'''")


def _filled(value: Value) -> str:
    """A buffer to write to, filled with what no kernel would write by chance."""
    shape = ", ".join(map(str, value.shape))
    dtype = "" if value.dtype == "float32" else f", dtype=torch.{value.dtype}"
    if value.stride is None or value.stride == contiguous_stride(value.shape):
        return f"torch.empty({shape or '()'}{dtype}).fill_({_FILLER})"
    stride = ", ".join(map(str, value.stride))
    comma = "," if len(value.shape) == 1 else ""
    return f"torch.empty_strided(({shape}{comma}), ({stride}{comma}){dtype}).fill_({_FILLER})"


def _agree(name: str, meta: object) -> str:
    """An expression that is true where the argument holds what ``expected`` does."""
    dtype = meta.dtype if isinstance(meta, TensorMeta) else ""
    limits = TOLERANCES.get(dtype)
    if limits is None:
        return f"{name}.dtype == expected.dtype and torch.equal({name}, expected)"
    return f"torch.allclose({name}, expected, {limits[0]}, {limits[1]}, equal_nan=True)"
