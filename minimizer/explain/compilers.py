"""Failures before anything runs: export, lowering, the C++ compiler, Triton's compiler."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from minimizer.explain.family import OPCHECK, Explanation, Family, following, generated_kernel, pairs

MINIMIZE = "aoti-minimize model.py   # reduces the model to the calls that it takes"


@dataclass(frozen=True)
class Lowering:
    """An exception of Inductor while it generates code: innermost type and message, the operator it names."""

    exception: str
    message: str
    target: str
    line: str


_LOWERING = re.compile(
    r"(?:LoweringException|InductorError): (?P<exception>[\w.]{1,100}(?:Error|Exception|Stop|Warning)?): ?"
    r"(?P<message>[^\n]{0,800})"
)
_TARGET = re.compile(r"^\s{0,8}target: (?P<target>\S{1,300})", re.M)
_CODE = re.compile(r'File "(?P<file>[^"\n]{1,500})", line (?P<line>\d{1,9}), in (?P<function>\w{1,200})')


def lowerings(text: str) -> Iterator[tuple[int, Lowering]]:
    """Every Inductor exception of a text; the C++ compiler's errors are another family."""
    last = -1
    for match in _LOWERING.finditer(text):
        if match.start() < last or match["exception"] in ("CppCompileError", "InvalidCxxCompiler"):
            continue
        inner = re.match(r"([\w.]{1,100}(?:Error|Exception)): (.*)", match["message"])
        exception, message = (inner[1], inner[2]) if inner else (match["exception"], match["message"])
        last = match.end()
        body = following(text, match.end(), 40)
        target = _TARGET.search(body)
        user = list(_CODE.finditer(body, target.end())) if target else []
        place = f"{user[-1]['file']}:{user[-1]['line']} in {user[-1]['function']}" if user else ""
        yield match.start(), Lowering(exception, message, target["target"] if target else "", place)


def explain_lowering(fact: Lowering) -> Explanation:
    """An Inductor exception in words."""
    causes = {
        "NotImplementedError": "a combination of operator, dtype or device that Inductor has no code for",
        "MissingOperatorWithoutDecomp": "an operator without lowering or decomposition",
        "AssertionError": "an assumption of Inductor that this program breaks: a bug of the compiler",
        "GuardOnDataDependentSymNode": "a size that depends on values, where Inductor needs a number",
    }
    fixes = []
    if fact.target:
        fixes.append(
            f"have eager compute {fact.target}: "
            f"torch._inductor.lowering.make_fallback(torch.ops.{fact.target})"
        )
    fixes.append("write the call differently: another dtype, an explicit cast, contiguous inputs")
    return Explanation(
        "compiler exception",
        f"{fact.exception}: {fact.message}",
        "Inductor raised while it turned the graph into code. The model itself runs in eager.",
        where=pairs(operator=fact.target, position=fact.line),
        cause=causes.get(
            fact.exception.rpartition(".")[2], "a bug of the compiler, or an unsupported program"
        ),
        fixes=tuple(fixes),
        next=(MINIMIZE, 'TORCH_LOGS="+inductor" python your_script.py'),
    )


@dataclass(frozen=True)
class CxxError:
    """An error of the C++ compiler in generated code. `missing` is set for what the machine lacks."""

    message: str
    file: str
    line: int
    column: int
    function: str
    missing: bool


_CXX = re.compile(
    r"^(?P<file>[^\s:][^\n:]{0,500}):(?P<line>\d{1,9}):(?:(?P<column>\d{1,6}):)? (?P<fatal>fatal )?error: "
    r"(?P<message>[^\n]{1,500})",
    re.M,
)
_IN_FUNCTION = re.compile(r"In (?:static )?(?:member )?function ['‘`](?P<function>[^\n]{1,500}?)['’]:?")
_NO_COMPILER = re.compile(
    r"InvalidCxxCompiler: [^\n]{0,300}|No working C\+\+ compiler found[^\n]{0,200}|(?:g\+\+|clang\+\+): "
    r"(?:command )?not found"
    r"|\[Errno 2\] No such file or directory: '(?:\S{0,200}/)?(?:g\+\+|clang\+\+|nvcc|ptxas)'"
)


def cxx_errors(text: str) -> Iterator[tuple[int, CxxError]]:
    """The first C++ error of each file in a text: later ones follow from it."""
    seen: set[str] = set()
    for match in _CXX.finditer(text):
        if match["file"] in seen:
            continue
        seen.add(match["file"])
        before = list(_IN_FUNCTION.finditer(text[max(0, match.start() - 2000) : match.start()]))
        missing = bool(match["fatal"]) and "No such file" in match["message"]
        yield (
            match.start(),
            CxxError(
                match["message"],
                match["file"],
                int(match["line"]),
                int(match["column"] or 0),
                before[-1]["function"] if before else "",
                missing,
            ),
        )


def explain_cxx_error(fact: CxxError) -> Explanation:
    """A C++ error in words."""
    place = f"{fact.file}:{fact.line}" + (f":{fact.column}" if fact.column else "")
    if fact.missing:
        header = fact.message.split(":")[0]
        return Explanation(
            "C++ compiler lacks a file",
            fact.message,
            "The compiler does not find a header. Nothing is wrong with the model.",
            where=pairs(position=place),
            cause="the Python development package, or the C++ standard library's headers, are not installed"
            if "Python.h" in header
            else "headers that are not installed, or a torch that was moved after it was installed",
            fixes=("apt-get install python3-dev g++   # or the like",),
            next=("aoti-minimize doctor",),
        )
    kernel = generated_kernel(fact.function) or (generated_kernel(fact.message))
    return Explanation(
        "generated C++ does not compile",
        fact.message,
        "The C++ compiler refuses code that Inductor generated. The model itself runs in eager.",
        where=pairs(kernel=kernel, function="" if kernel else fact.function, position=place),
        cause="a bug of the compiler's code generation: an operator, dtype or size expression that it "
        "prints wrongly",
        fixes=(
            "compile without vector code: inductor_configs={'cpp.simdlen': 1}",
            "compile without fusion: inductor_configs={'max_fusion_size': 1}",
        ),
        next=(MINIMIZE,),
    )


@dataclass(frozen=True)
class Known:
    """What a fixed message means. `pattern` finds it."""

    name: str
    pattern: re.Pattern[str]
    means: str
    cause: str
    fixes: tuple[str, ...] = ()
    next: tuple[str, ...] = ()


@dataclass(frozen=True)
class Said:
    """A message as printed, and the name of what is known about it."""

    message: str
    name: str


KNOWN = (
    Known(
        "no C++ compiler",
        _NO_COMPILER,
        "AOTInductor needs a compiler that is not on PATH. Nothing is wrong with the model.",
        "g++ (or nvcc, for CUDA) is not installed",
        ("apt-get install g++   # or set CXX",),
        ("aoti-minimize doctor",),
    ),
    Known(
        "machine is full",
        re.compile(
            r"No space left on device[^\n]{0,100}|Disk quota exceeded|virtual memory exhausted[^\n]{0,100}"
        ),
        "The disk or memory ran out while compiling. Nothing is wrong with the model.",
        "a full TMPDIR: Inductor's caches and unpacked packages lie there",
        ("remove $TMPDIR/torchinductor_* and $TMPDIR/aotinductor_*", "set TMPDIR to a larger disk"),
        ("df -h $TMPDIR",),
    ),
    Known(
        "dynamic shapes do not fit the example",
        re.compile(
            r"ConstraintViolationError: [^\n]{1,500}|Constraints violated \([^\n]{1,300}"
            r"|[^\n]{0,200}UserError: [^\n]{0,300}dynamic_shapes[^\n]{0,300}"
        ),
        "torch.export refuses dynamic_shapes: they contradict the example inputs, or what the model does "
        "with sizes.",
        "an example size outside the declared range, or a dim that the model needs equal, fixed or divisible",
        (
            "follow the 'Suggested fixes' that export prints",
            "use Dim.AUTO for that dim and read ep.range_constraints",
        ),
        ('TORCH_LOGS="+dynamic" python your_script.py',),
    ),
    Known(
        "control flow that depends on values",
        re.compile(
            r"(?:GuardOnDataDependentSymNode: )?Could not (?:guard on"
            r"|extract specialized integer from) data-dependent expression[^\n]{0,300}"
        ),
        "The model branches on a tensor's values, which export cannot follow.",
        "an `if`, loop or size that depends on values",
        ("torch.cond or torch.where instead of `if`", "torch._check(...) on the size"),
        ('TORCH_LOGS="+dynamic" python your_script.py',),
    ),
    Known(
        "Triton does not compile the kernel",
        re.compile(
            r"(?:triton\.compiler\.errors\.)?CompilationError: [^\n]{1,300}|PassManager::run failed"
            r"|PTXASError[^\n]{0,300}"
        ),
        "Triton refuses a kernel: Inductor's own, or one that the model brings.",
        "a bug of code generation, or an operation that this GPU does not have",
        next=(MINIMIZE, 'TORCH_LOGS="output_code" python your_script.py'),
    ),
    Known(
        "custom operator without a fake function",
        re.compile(
            r"There was no fake impl registered for [^\n]{1,300}|[^\n]{0,200}does not have a fake (?:impl"
            r"|kernel)[^\n]{0,200}|NotImplementedError: [^\n]{0,200}fake tensor[^\n]{0,200}"
        ),
        "Export must know the shape of the operator's result without running it.",
        "no function was registered for its shape (register_fake)",
        (
            "from torch import library, then @library.register_fake('NAMESPACE::OP')",
            f"then check it: {OPCHECK}",
        ),
    ),
)
_BY_NAME = {known.name: known for known in KNOWN}


def known_messages(text: str) -> Iterator[tuple[int, Said]]:
    """Every message of `KNOWN`."""
    for known in KNOWN:
        for match in known.pattern.finditer(text):
            yield match.start(), Said(match[0].strip(), known.name)


def explain_known(fact: Said) -> Explanation:
    """A fixed message in words."""
    known = _BY_NAME[fact.name]
    return Explanation(known.name, fact.message, known.means, (), known.cause, known.fixes, known.next)


FAMILIES = (
    Family("compiler exception", 25, ("LoweringException", "InductorError"), lowerings, explain_lowering),
    Family("C++ error", 24, (" error: ",), cxx_errors, explain_cxx_error),
    Family(
        "compiling",
        23,
        (
            *(
                "C++ compiler found",
                "InvalidCxxCompiler",
                "not found",
                "[Errno 2]",
                "No space left",
                "quota exceeded",
            ),
            *("memory exhausted", "ConstraintViolationError", "Constraints violated", "UserError: "),
            *("data-dependent expression", "CompilationError: ", "PassManager::run failed", "PTXASError"),
            *("fake impl", "fake kernel", "fake tensor"),
        ),
        known_messages,
        explain_known,
    ),
)
