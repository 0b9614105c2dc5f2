"""Messages about packages: files that are none, loads that fail, old interfaces; how processes end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from minimizer.explain.compilers import Known, Said
from minimizer.explain.family import SCRIPT, Explanation, Family, pairs

LOADING = (
    Known(
        "not a package",
        re.compile(r"Failed to initialize zip archive: [^\n]{1,200}|No files found in zip archive"),
        "The file is missing, cut short, or no zip archive; an AOTI package is one.",
        "a wrong path ('file open failed'), or a file of another kind ('failed finding central directory')",
        ("check the path", "write it again: torch._inductor.aoti_compile_and_package(ep, package_path=...)"),
        ("unzip -l YOUR_PACKAGE.pt2",),
    ),
    Known(
        "exported program, not a package",
        re.compile(r"Failed to find a generated cpp file or so file for model [^\n]{1,200}"),
        "The archive holds no compiled model of that name.",
        "a file of torch.export.save: an exported program has the same ending .pt2 and is not compiled",
        (
            "compile it: torch._inductor.aoti_compile_and_package(torch.export.load(path))",
            "or run it without a compiler: torch.export.load(path).module()",
        ),
        ("unzip -l YOUR_PACKAGE.pt2   # a package holds data/aotinductor/",),
    ),
    Known(
        "package, not an exported program",
        re.compile(r"We ran into an error when deserializing the saved file[^\n]{0,100}"),
        "torch.export.load could not read the file as an exported program.",
        "an AOTI package, which has the same ending .pt2; or a program saved by a much older torch",
        ("load it with torch._inductor.aoti_load_package(path)", "or export again with this torch"),
        ("unzip -l YOUR_FILE.pt2   # a package holds data/aotinductor/",),
    ),
    Known(
        "no such model in the package",
        re.compile(r"Model [^\n]{1,100} not found in package"),
        "The package holds models of other names.",
        "another model_name at load than when it was written",
        ("load with the model_name of package_aoti(...); the default is 'model'",),
        ("unzip -l YOUR_PACKAGE.pt2   # names below data/aotinductor/",),
    ),
    Known(
        "device number for a CPU package",
        re.compile(r"Incorrect device passed to aoti_runner_cpu"),
        "A package for the CPU was loaded with a device number.",
        "misuse: aoti_load_package(path, device_index=N) with N >= 0",
        ("load without device_index", "or compile the model for CUDA"),
    ),
    Known(
        "library cannot be loaded",
        re.compile(
            r"Error in dlopen[^\n]{0,30}: ?[^\n]{0,400}|undefined symbol: [^\n]{1,200}"
            r"|version `GLIBC\S{0,20}' not found[^\n]{0,100}"
        ),
        "The dynamic linker refuses the compiled library of the package. It does not run on this machine "
        "as it is.",
        "another version of torch, CUDA or libc than where it was compiled ('undefined symbol', 'GLIBC'), "
        "or a path that "
        "does not exist ('cannot open shared object file')",
        ("compile the package again with the torch of this machine", "check the path"),
        ("python -m torch.utils.collect_env",),
    ),
    Known(
        "constants do not fit",
        re.compile(
            r"Cannot find constants [^\n]{1,200} in constants_map|Weights data seems corrupt"
            r"|Shared library file is smaller than embedded weights[^\n]{0,60}"
        ),
        "The weights that the package expects are not all there.",
        "weights that were loaded separately and miss a name, or a file that was cut short",
        ("load_constants(...) with every name of get_constant_fqns()", "write the package again"),
    ),
)

APIS = (
    Known(
        "deprecated interface",
        re.compile(
            r"torch\._export\.aot_compile\(\)/torch\._export\.aot_load\(\) is being deprecated"
            r"|torch\._export\.aot_(?:compile|load)\b(?=[^\n]{0,200}deprecat)"
        ),
        "torch._export.aot_compile and aot_load still work and are going away. They write a bare .so; a "
        "wrong shape at "
        "run time may return garbage without a word.",
        "an old interface",
        (
            "compile: path = torch._inductor.aoti_compile_and_package(torch.export.export(model, args))",
            "load: model = torch._inductor.aoti_load_package(path)",
        ),
    ),
    Known(
        "'outdated' warning",
        re.compile(r"Loading outdated pt2 file[^\n]{0,60}"),
        "Printed at any failure to load, whatever its reason; the file need not be old. The error after it "
        "is the real one.",
        "see the error after it; if there is none, the package was written by an older torch and was "
        "loaded all the same",
        ("compile the package again with this torch",),
    ),
)

ENDINGS = (
    Known(
        "memory corruption noticed by malloc",
        re.compile(
            r"(?:free\(\)|malloc\(\)|realloc\(\)|munmap_chunk\(\)|malloc_consolidate\(\)): [^\n]{1,80}"
            r"|double free or corruption[^\n]{0,40}|corrupted (?:size|double)[^\n]{0,60}"
            r"|\*\*\* stack smashing detected \*\*\*"
        ),
        "Something wrote outside its buffer earlier; malloc noticed at its next use.",
        "a kernel that writes past its output; the place of the message says nothing",
        next=(
            "aoti-minimize model.py   # reduces it",
            f"LD_PRELOAD=libc_malloc_debug.so.0 MALLOC_CHECK_=3 MALLOC_PERTURB_=165 {SCRIPT}",
            f"valgrind {SCRIPT}",
        ),
    ),
    Known(
        "illegal instruction",
        re.compile(r"\bSIGILL\b[^\n]{0,60}|^[^\n]{0,80}Illegal instruction[^\n]{0,40}", re.M),
        "The CPU does not know an instruction of the package. It does not run on this machine.",
        "compiled on a CPU with wider vectors (AVX512, AMX) than this one has",
        (
            "compile on this machine",
            "or compile with inductor_configs={'cpp.simdlen': 256} and ATEN_CPU_CAPABILITY=avx2",
        ),
        ("lscpu | grep Flags",),
    ),
    Known(
        "killed",
        re.compile(
            r"^(?:[^\n]{0,80}: +(?:\d+ )?)?Killed(?:\s[^\n]{0,40})?$"
            r"|Out of memory: Killed process [^\n]{1,100}"
            r"|\boom-kill",
            re.M,
        ),
        "Somebody sent SIGKILL: nearly always the kernel, because memory ran out.",
        "the process or its compilers need more memory than there is",
        ("fewer compile threads: TORCHINDUCTOR_COMPILE_THREADS=1", "smaller inputs"),
        ("dmesg | tail",),
    ),
    Known(
        "uncaught exception",
        re.compile(r"terminate called [^\n]{1,100}"),
        "A C++ exception left a parallel region, where nothing can catch it, so the process was aborted.",
        "an index check or an operator's error inside an OpenMP loop; the line 'what():' says which",
        (f"OMP_NUM_THREADS=1 {SCRIPT}   # the exception then reaches Python",),
        ("aoti-minimize model.py",),
    ),
    Known(
        "segmentation fault",
        re.compile(r"^[^\n]{0,120}(?:Segmentation fault|SIGSEGV|Bus error|SIGBUS)[^\n]{0,60}", re.M),
        "The process touched memory that is not mapped.",
        "inputs that the package was not compiled for (meta or fake tensors, smaller sizes), or a wrong "
        "index in a kernel",
        next=(
            f"AOTI_RUNTIME_CHECK_INPUTS=1 {SCRIPT}",
            f"gdb -batch -ex run -ex bt --args {SCRIPT}   # then: aoti-minimize explain LOG",
            "aoti-minimize model.py",
        ),
    ),
    Known(
        "arithmetic exception",
        re.compile(r"^[^\n]{0,80}(?:Floating point exception|SIGFPE)[^\n]{0,40}", re.M),
        "An integer was divided by zero, or the smallest integer by -1, in native code.",
        "a size of 0 in an index expression, or integer data with zeros",
        next=(f"gdb -batch -ex run -ex bt --args {SCRIPT}", "aoti-minimize model.py"),
    ),
)
_BY_NAME = {known.name: known for known in (*LOADING, *APIS, *ENDINGS)}


def _messages(table: tuple[Known, ...], text: str) -> Iterator[tuple[int, Said]]:
    for known in table:
        for match in known.pattern.finditer(text):
            yield match.start(), Said(match[0].strip(), known.name)


def explain_known(fact: Said) -> Explanation:
    """A fixed message in words."""
    known = _BY_NAME[fact.name]
    return Explanation(known.name, fact.message, known.means, (), known.cause, known.fixes, known.next)


@dataclass(frozen=True)
class FailedCall:
    """A call of the wrapper into torch that failed: its name, arguments, and the line of the wrapper."""

    call: str
    arguments: str
    file: str
    line: int


_CALL = re.compile(
    r"(?P<call>aoti_torch_\w{1,200}|\w{1,100}->\w{1,100}|\w{1,200})\("
    r"(?P<arguments>[^\n]{0,2000}?)\) API call failed at (?P<file>[^\n,]{1,500}?), line (?P<line>\d{1,9})"
)


def failed_calls(text: str) -> Iterator[tuple[int, FailedCall]]:
    """Every *API call failed* of a text."""
    for match in _CALL.finditer(text):
        yield match.start(), FailedCall(match["call"], match["arguments"], match["file"], int(match["line"]))


def explain_failed_call(fact: FailedCall) -> Explanation:
    """A failed call in words."""
    op = fact.call.removeprefix("aoti_torch_").removeprefix("cpu_").removeprefix("cuda_").removesuffix("_out")
    return Explanation(
        "operator refused its inputs",
        f"{fact.call}({fact.arguments}) failed",
        "An operator that the package calls in torch raised. The reason is a message beside this one.",
        where=pairs(operator=op, arguments=fact.arguments, position=f"{fact.file}:{fact.line}"),
        cause="an input of another dtype, rank, size or device than at export: the package does not check "
        "them by itself",
        fixes=("make the inputs what the export saw",),
        next=(f"AOTI_RUNTIME_CHECK_INPUTS=1 {SCRIPT}", "aoti-minimize model.py --check-inputs NAME"),
    )


FAMILIES = (
    Family("failed call", 40, (" API call failed at ",), failed_calls, explain_failed_call),
    Family(
        "loading",
        22,
        (
            *(
                "zip archive",
                "generated cpp file or so file",
                "deserializing the saved file",
                "not found in package",
            ),
            *("aoti_runner_cpu", "Error in dlopen", "undefined symbol", "GLIBC", "Cannot find constants"),
            *("Weights data", "embedded weights"),
        ),
        lambda text: _messages(LOADING, text),
        explain_known,
    ),
    Family(
        "interface",
        95,
        ("torch._export.aot_", "Loading outdated pt2"),
        lambda text: _messages(APIS, text),
        explain_known,
    ),
    Family(
        "ending",
        60,
        (
            *("free()", "malloc", "realloc()", "munmap_chunk", "double free", "corrupted ", "stack smashing"),
            *(
                "SIGILL",
                "Illegal instruction",
                "Killed",
                "oom-kill",
                "terminate called",
                "Segmentation fault",
            ),
            *("SIGSEGV", "Bus error", "SIGBUS", "Floating point exception", "SIGFPE"),
        ),
        lambda text: _messages(ENDINGS, text),
        explain_known,
    ),
)
