"""The script that shows the bug: torch only, one screen, exit 1 while the bug is there.

It is written as a person would write it, so each part appears only where the failure needs it: example
inputs only where the failing sizes would be specialised, copies only where something is written to, a child
process only where the failure ends the process. It also answers to PyTorch's own tools: `test_fn` returns
True when there is no bug, and TORCH_COMPILE_BACKEND chooses the compiler (`eager`: none).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from minimizer.case import Case
from minimizer.handover.compiling import compile_statements
from minimizer.handover.examples import example_code, example_sizes
from minimizer.handover.needs import ALLOCATOR, DEATHS, ERRORS, LOCALS, Needs, loses_error
from minimizer.layout import INDENT, WIDTH, wrap
from minimizer.oracle.verdict import Failure
from minimizer.sandbox.asan import FLAGS, OPTIONS
from minimizer.source import literal, module_source

INPUTS_FILE = "repro_inputs.pt"
_LOAD = f'saved = torch.load(Path(__file__).with_name("{INPUTS_FILE}"), weights_only=True)'
_CHILD = '[sys.executable, __file__, "child"]'
_SANITIZED = f'''
def sanitized() -> dict[str, str]:
    """The environment that builds and runs compiled code with AddressSanitizer."""
    names = [f"-print-file-name=lib{{name}}.so" for name in ("asan", "stdc++")]
    found = [subprocess.check_output(["g++", n], text=True).strip() for n in names]
    options = "{":".join(OPTIONS[:2])}"
    options += ":{":".join(OPTIONS[2:])}"
    env = {{**os.environ, "LD_PRELOAD": ":".join(found), "ASAN_OPTIONS": options}}
    env["TORCHINDUCTOR_CPP_MARCH"] = "{FLAGS}"
    return env
'''
TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
"""Relative and absolute: those of `torch.testing.assert_close`."""


def repro_source(
    case: Case,
    failure: Failure,
    value_code: Sequence[str],
    state_code: Mapping[str, str],
    *,
    title: str,
    versions: Mapping[str, str],
    setup: Sequence[str] = (),
    imports: Sequence[str] = (),
    repeat: int = 1,
    timeout: int = 60,
    tolerance: tuple[float, float] | None = None,
    earlier_code: Sequence[Sequence[str]] = (),
) -> str:
    """The repro as the text of a Python file, formatted as ``ruff format`` leaves it.

    `value_code[k]` is the expression that builds input k at its failing value, `state_code` likewise for the
    state tensors; those that speak of ``saved[...]`` (inputs) or ``state[...]`` (state) are read from
    `INPUTS_FILE` beside the script, a dict of tensors. `setup` are statements that must run first, `imports`
    whole import lines. `repeat` is the number of compiled calls in a child process or, for wrong values, the
    number of tries; `timeout` the seconds after which a hang counts as one; `tolerance` the relative and
    absolute one where it is not `torch.testing.assert_close`'s own. `earlier_code` is for each
    call before the failing one what `value_code` is for that one.
    """
    script = _Script(
        case=case,
        failure=failure,
        value_code=tuple(value_code),
        state_code=dict(state_code),
        title=title,
        versions=dict(versions),
        setup=tuple(setup),
        imports=tuple(imports),
        repeat=repeat,
        timeout=timeout,
        tolerance=tolerance,
        earlier_code=tuple(map(tuple, earlier_code)),
    )
    return script.text()


@dataclass(frozen=True)
class _Script(Needs):
    value_code: tuple[str, ...]
    state_code: dict[str, str]
    title: str
    versions: dict[str, str]
    setup: tuple[str, ...]
    imports: tuple[str, ...]
    repeat: int
    timeout: int
    tolerance: tuple[float, float] | None
    earlier_code: tuple[tuple[str, ...], ...]

    def nested(self, codes: Sequence[str]) -> tuple[str, str]:
        """Positional and keyword arguments as source text."""
        names = {i.name: code for i, code in zip(self.program.inputs, codes, strict=True)}
        if self.program.is_flat:
            return f"({', '.join(codes)}{',' if len(codes) == 1 else ''})", ""
        args = literal(tuple(self.program.args or ()), names)
        pairs = ", ".join(f'"{key}": {literal(value, names)}' for key, value in self.program.kwargs)
        return args, "{" + pairs + "}"

    def inputs(self) -> list[str]:
        """The statements that build the inputs, and example inputs where the program needs others."""
        if not self.takes_inputs:
            return []
        names = ("args", "kwargs") if self.has_kwargs else ("inputs",)
        lines = [f"{name} = {text}" for name, text in zip(names, self.nested(self.value_code), strict=False)]
        if self.program.is_flat and len(INDENT + lines[0]) > WIDTH and self.names_are_free:
            given = [i.name for i in self.program.inputs]
            lines = [f"{name} = {code}" for name, code in zip(given, self.value_code, strict=True)]
            lines.append(f"inputs = {self.nested(given)[0]}")
        sizes = example_sizes(self.case)
        if sizes is not None and self.case.settings.path == "aoti":
            codes = self.nested([example_code(i.meta, sizes) for i in self.program.inputs])
            names = ("example_args", "example_kwargs") if self.has_kwargs else ("example",)
            lines += [f"{name} = {text}" for name, text in zip(names, codes, strict=False)]
        if self.varied:
            calls = map(self.nested, self.earlier_code)
            lines.append(f"calls = [{', '.join([*(self.given(*call) for call in calls), self.given()])}]")
        return lines

    def given(self, args: str = "args", kwargs: str = "kwargs") -> str:
        """What one call is given, as one expression or the names of a loop."""
        return f"({args}, {kwargs})" if self.has_kwargs else "inputs" if args == "args" else args

    @property
    def every_call(self) -> str:
        """The head of a loop over the calls."""
        return f"for {self.given().strip('()')} in calls:" if self.varied else self.times(self.calls)

    @staticmethod
    def times(count: int) -> str:
        """The head of a loop that only repeats."""
        return f"for _ in range({count}):"

    @property
    def names_are_free(self) -> bool:
        """Whether inputs may be variables of their own names."""
        taken = set(re.findall(r"\w+", " ".join((*self.setup, *self.value_code, *LOCALS))))
        taken |= {symbol.name for symbol in self.program.symbols}
        return not taken & {i.name for i in self.program.inputs}

    def prepare(self) -> list[str]:
        """Everything up to the model and its inputs."""
        lines = [*self.loads(), *self.setup]
        if self.own_model:
            takes = any("state[" in code for code in self.state_code.values())
            lines.append(f"model = Model({'saved' if takes else ''})")
        return lines + self.inputs()

    def loads(self) -> list[str]:
        codes = (*self.value_code, *self.state_code.values())
        needed = any("saved[" in code or "state[" in code for code in codes)
        return [_LOAD] if needed and not any(line.startswith("saved = ") for line in self.setup) else []

    def eager_model(self) -> str:
        return "copy.deepcopy(model)" if self.copies_model else self.model

    def seeded(self, call: str) -> list[str]:
        return ["torch.manual_seed(0)", call] if self.random else [call]

    # Bodies of test_fn by kind

    def error_body(self) -> list[str]:
        lines = [*self.prepare(), *self.seeded(f'print("eager   ", {self.call(self.eager_model())})'), "try:"]
        lines += [INDENT + line for line in compile_statements(self, 2)]
        if not self.compile_only:
            lines += [f"{INDENT}{line}" for line in self.repeated(self.call("compiled"))]
        lines += [
            "except Exception as error:  # noqa: BLE001",
            INDENT + 'print("compiled", repr(error)[:300])',
        ]
        return [*lines, INDENT + "return False", "return True"]

    def repeated(self, call: str) -> list[str]:
        if self.varied:
            looped = [self.every_call, INDENT + call]
            again = [INDENT + line for line in looped]
            return looped if self.repeat == 1 else [self.times(self.repeat), *again]
        times = max(self.repeat, self.calls)
        return [call] if times == 1 else [self.times(times), INDENT + call]

    def lost_body(self) -> list[str]:
        called = [f"print({self.call('function')})"]
        if self.calls > 1:
            called = [self.every_call, INDENT + called[0]]
        return [
            *self.prepare(),
            *compile_statements(self),
            "raised = []",
            f"for function in ({self.eager_model()}, compiled):",
            f"{INDENT}try:",
            *(INDENT * 2 + line for line in called),
            f"{INDENT * 2}raised.append(False)",
            f"{INDENT}except Exception as error:  # noqa: BLE001",
            f"{INDENT * 2}print(repr(error)[:300])",
            f"{INDENT * 2}raised.append(True)",
            "return raised != [True, False]  # eager raises, compiled does not",
        ]

    def death_body(self) -> list[str]:
        first = ['os.environ.pop("LD_PRELOAD")  # not for the compiler'] if self.asan else []
        return [*first, *self.prepare(), *compile_statements(self), *self.repeated(self.call("compiled"))]

    def thread_body(self) -> list[str]:
        """Ten calls from other threads, compared with eager's answers."""
        source = f"for {self.given().strip('()')} in calls * 5" if self.varied else "for _ in range(10)"
        return [
            *self.prepare(),
            *compile_statements(self),
            f"given = [copy.deepcopy({self.given()}) {source}]",
            f"expected = [{self.call(self.eager_model(), 'one')} for one in copy.deepcopy(given)]",
            f"with ThreadPoolExecutor({self.threads}) as pool:",
            f"{INDENT}actual = list(pool.map(lambda one: {self.call('compiled', 'one')}, given))",
            *self.compare(final=True),
        ]

    def sharing_body(self) -> list[str]:
        """The pairs of tensors, inputs and outputs of all calls, that share memory on either side."""
        head = [self.every_call] if self.calls > 1 else ["for _ in range(1):"]
        return [
            *self.prepare(),
            *compile_statements(self),
            "sides = [], []",
            *head,
            f"{INDENT}for side, function in zip(sides, ({self.eager_model()}, compiled)):",
            f"{INDENT * 2}given = copy.deepcopy({self.given()})",
            f"{INDENT * 2}side += tree_leaves((given, {self.call('function', 'given')}))",
            "shared = []",
            "for side in sides:",
            f"{INDENT}memory = [one.untyped_storage().data_ptr() for one in side]",
            f"{INDENT}shared.append({{(i, memory.index(m)) for i, m in enumerate(memory)}})",
            'print(f"eager    {shared[0]}\\ncompiled {shared[1]}")',
            "return shared[1] <= shared[0]",
        ]

    def second_load(self) -> list[str]:
        """The package called, and loaded once more."""
        if self.case.settings.manner != "reload":
            return []
        again = "compiled = torch._inductor.aoti_load_package(path)"
        return ['if backend == "aoti":', INDENT + self.call("compiled"), INDENT + again]

    def compare_body(self) -> list[str]:
        lines = [*self.prepare(), *compile_statements(self), *self.second_load()]
        eager = self.eager_model()
        if self.calls > 1 and self.copies_model:
            lines.append(f"eager = {eager}")
            eager = "eager"
        block: list[str] = []
        if self.compares_inputs:
            given = "(args, kwargs)" if self.has_kwargs else "inputs"
            block.append(f"mine, theirs = copy.deepcopy({given}), copy.deepcopy({given})")
            pair = f"({self.call(eager, 'mine')}, mine)", f"({self.call('compiled', 'theirs')}, theirs)"
        else:
            pair = self.call(eager), self.call("compiled")
        joined = f"expected, actual = {pair[0]}, {pair[1]}"
        looped = self.calls > 1 or self.repeat > 1
        if self.random or len(joined) > WIDTH - 4 * (1 + looped):
            block += [*self.seeded(f"expected = {pair[0]}"), *self.seeded(f"actual = {pair[1]}")]
        else:
            block.append(joined)
        if self.repeat > 1:
            if self.varied:
                block = [self.every_call, *(INDENT + line for line in block)]
            same = [f"{INDENT}{line}" for line in (*block, *self.compare(final=False))]
            return [*lines, self.times(self.repeat), *same, "return True"]
        if self.calls > 1:
            block = [self.every_call, *(INDENT + line for line in block)]
        return [*lines, *block, *self.compare(final=True)]

    def compare(self, *, final: bool) -> list[str]:
        """The statements that print and compare ``expected`` and ``actual``; `final` when they return."""
        lines = ['print(f"eager    {expected}\\ncompiled {actual}")']
        condition = self.condition()
        if condition:
            return [
                *lines,
                *([f"return {condition}"] if final else [f"if not ({condition}):", f"{INDENT}return False"]),
            ]
        limits = "" if self.tolerance is None else f", rtol={self.tolerance[0]}, atol={self.tolerance[1]}"
        limits += ", check_stride=True" if self.failure.flavour == "stride" else ""
        lines += [
            "try:",
            f"{INDENT}torch.testing.assert_close(actual, expected{limits}, equal_nan=True)",
            "except AssertionError as error:",
            f"{INDENT}print(error)",
            f"{INDENT}return False",
        ]
        return [*lines, "return True"] if final else lines

    def condition(self) -> str:
        """An expression that is true where the outputs agree, or "" where it takes more than that."""
        if self.failure.flavour in ("type", "structure"):
            return "tree_map(type, actual) == tree_map(type, expected)"
        meta = self.single_output
        if meta is None or self.failure.flavour == "stride" or self.threads:
            return ""
        if not meta.dtype.startswith(("float", "bfloat", "complex")):
            return "actual.dtype == expected.dtype and torch.equal(actual, expected)"
        limits = self.tolerance or TOLERANCES.get(meta.dtype)
        if limits is None or not self.failure.flavour.startswith("values"):
            return ""
        return f"torch.allclose(actual, expected, {limits[0]}, {limits[1]}, equal_nan=True)"

    # The whole

    def body(self) -> list[str]:
        kind = self.failure.kind
        if kind in ERRORS:
            return self.error_body()
        if loses_error(self.failure):
            return self.lost_body()
        if kind == "wrong_aliasing":
            return self.sharing_body()
        if self.threads and kind not in DEATHS | {"hang"}:
            return self.thread_body()
        return self.death_body() if kind in DEATHS | {"hang"} else self.compare_body()

    def parent(self) -> list[str]:
        early = {k: v for k, v in self.environment if k.startswith(ALLOCATOR)}
        pairs = ", ".join(f"{literal(k)}: {literal(v)}" for k, v in early.items())
        base = "sanitized()" if self.asan else "os.environ"
        env = f", env={{**{base}, {pairs}}}" if early else ", env=sanitized()" if self.asan else ""
        if self.failure.kind == "hang":
            return [
                f"job = subprocess.Popen({_CHILD}{env}, start_new_session=True)",
                "try:",
                f"{INDENT}job.wait(timeout={self.timeout})",
                "except subprocess.TimeoutExpired:",
                f"{INDENT}os.killpg(job.pid, signal.SIGKILL)",
                f'{INDENT}print("still running after {self.timeout} s")',
                f"{INDENT}return False",
                "return True",
            ]
        died = self.failure.kind in DEATHS
        return [
            f"child = subprocess.run({_CHILD}, check=False{env})",
            'print("exit status", child.returncode)',
            "return child.returncode >= 0  # negative: killed by a signal"
            if died
            else "return child.returncode == 0",
        ]

    def text(self) -> str:
        returns = self.failure.kind not in DEATHS | {"hang"}
        body = _laid_out(self.body(), INDENT)
        before = ["@torch.no_grad()"] if any(s.kind == "parameter" for s in self.program.state) else []
        sections: list[list[str]] = [module_source(self.program, self.state_code).rstrip("\n").split("\n")]
        if self.in_child:
            sections.append([*before, f"def check(){' -> bool' if returns else ''}:", *body])
            sections += [_SANITIZED.strip("\n").split("\n")] if self.asan else []
            sections.append(["def test_fn() -> bool:", *_laid_out(self.parent(), INDENT)])
            child = "not check()" if returns else "check()"
            last = f'raise SystemExit({child} if "child" in sys.argv else not test_fn())'
        else:
            sections.append([*before, "def test_fn() -> bool:", *body])
            last = "raise SystemExit(not test_fn())"
        sections.append(['if __name__ == "__main__":', INDENT + last])
        code = "\n\n\n".join("\n".join(section) for section in sections)
        return f"{self.docstring()}\n\n{self.header(code)}\n\n\n{code}\n"

    def docstring(self) -> str:
        version = self.versions.get("torch", "")
        title = " ".join(self.title.replace("\\", "/").replace('"', "'").split()).rstrip(".")
        version = f" (torch {version})" if version else ""
        if len(title + version) > WIDTH - 7:
            title = re.sub(r"\b(torch\.nn\.functional\.|torch\.|aten\.)|\.default\b", "", title)
        text = f"{title}{version}."
        lines = textwrap.wrap(text, WIDTH - 3)
        return f'"""{text}"""' if len(text) <= WIDTH - 6 else "\n".join(['"""' + lines[0], *lines[1:], '"""'])

    def header(self, code: str) -> str:
        """The import lines that `code` needs, and the environment."""
        late = [(k, v) for k, v in self.environment if not k.startswith(ALLOCATOR)]
        modules = ("copy", "math", "operator", "os", "signal", "subprocess", "sys")
        code = "\n".join([code, *self.imports])
        wanted = [name for name in modules if re.search(rf"(?<![\w.]){name}\.", code)]
        if late and "os" not in wanted:
            wanted = sorted([*wanted, "os"])
        lines = [f"import {name}" for name in wanted]
        pool = "from concurrent.futures import ThreadPoolExecutor"
        lines += [pool] if "ThreadPoolExecutor(" in code else []
        lines += ["from pathlib import Path"] if "Path(__file__)" in code else []
        if late:
            lines += ["", *(f"os.environ[{literal(k)}] = {literal(v)}" for k, v in late)]
        lines += ["", "import torch"] if lines else ["import torch"]
        wanted = [name for name in ("tree_leaves", "tree_map") if f"{name}(" in code]
        lines += [f"from torch.utils._pytree import {', '.join(wanted)}"] if wanted else []
        return "\n".join([*lines, *(line for line in self.imports if not line or line not in lines)])


def _laid_out(statements: Sequence[str], indent: str) -> list[str]:
    lines: list[str] = []
    for statement in statements:
        inner = statement[: len(statement) - len(statement.lstrip())]
        lines += wrap(statement.strip(), indent + inner)
    return lines
