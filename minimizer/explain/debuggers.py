"""Backtraces: cuda-gdb's exceptions and focus lines, gdb's and faulthandler's stacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from minimizer.explain.family import SCRIPT, Explanation, Family, following, generated_kernel, pairs


@dataclass(frozen=True)
class DeviceException:
    """What cuda-gdb stopped at. `arguments` as the debugger prints them."""

    exception: str
    kernel: str = ""
    file: str = ""
    line: int = 0
    block: str = ""
    thread: str = ""
    grid: str = ""
    lane: str = ""
    arguments: str = ""
    pc: str = ""


@dataclass(frozen=True)
class HostStack:
    """Where a process stopped on the CPU: the signal, and its first meaningful frame."""

    signal: str
    message: str
    function: str = ""
    file: str = ""
    line: int = 0
    arguments: str = ""


_CUDA = re.compile(
    r"^(?:CUDA Exception: (?P<first>[^\n]{1,200})|[^\n]{0,200}received signal CUDA_EXCEPTION_\d{1,3}, "
    r"(?P<second>[^.\n]{1,200}))",
    re.M,
)
_PC = re.compile(r"^The exception was triggered at PC (?P<pc>0x[0-9a-f]+)[ \t]*(?P<rest>[^\n]{0,800})$", re.M)
_FOCUS = re.compile(
    r"\[(?:Switching focus to|Current focus set to) CUDA kernel \d{1,9}, grid \d{1,12}, block \("
    r"(?P<block>[\d,]{1,40})\), "
    r"thread \((?P<thread>[\d,]{1,40})\)(?:, device \d{1,4}, sm \d{1,4}, warp \d{1,4}, lane "
    r"(?P<lane>\d{1,3}))?"
)
_FRAME = re.compile(
    r"^(?:#\d{1,4}\s+)?0x[0-9a-f]+ in (?P<kernel>[^\n]{1,800}?)\s*<<<\((?P<grid>[\d,]{1,40})\),\("
    r"(?P<threads>[\d,]{1,40})\)>>>"
    r"(?: \((?P<arguments>[^\n)]{0,800})\))?(?: at (?P<file>[^\s:]{1,500}):(?P<line>\d{1,9}))?",
    re.M,
)
_CUDA_LINES = 40


def device_exceptions(text: str) -> Iterator[tuple[int, DeviceException]]:
    """Every exception that cuda-gdb reports, live or from a core dump; the two lines about one count once."""
    last = -1
    for match in _CUDA.finditer(text):
        if match.start() < last:
            continue
        body = following(text, match.start(), _CUDA_LINES)
        exception = (match["first"] or match["second"]).strip()
        focus, frame, pc = _FOCUS.search(body), _FRAME.search(body), _PC.search(body)
        ends = [found.end() for found in (focus, frame, pc) if found]
        last = match.start() + max(ends, default=0)
        place = re.search(r"\((?P<file>[^\s:()]+):(?P<line>\d+)\)", pc["rest"]) if pc else None
        kernel = frame["kernel"] if frame else (pc["rest"].strip() if pc and not place else "")
        at = frame if frame and frame["file"] else place
        yield (
            match.start(),
            DeviceException(
                exception,
                kernel=kernel,
                file=at["file"] if at else "",
                line=int(at["line"]) if at else 0,
                block=focus["block"] if focus else "",
                thread=focus["thread"] if focus else "",
                grid=f"<<<({frame['grid']}),({frame['threads']})>>>" if frame else "",
                lane=(focus["lane"] or "") if focus else "",
                arguments=(frame["arguments"] or "") if frame else "",
                pc=pc["pc"] if pc else "",
            ),
        )


def explain_device_exception(fact: DeviceException) -> Explanation:
    """A cuda-gdb exception in words."""
    kernel = fact.kernel.split("(")[0]
    return Explanation(
        "cuda-gdb",
        fact.exception,
        "The hardware stopped a warp of this kernel. The debugger's focus is one of its threads; the "
        "faulting thread "
        "is in that warp.",
        where=pairs(
            kernel=fact.kernel,
            block=f"({fact.block})" if fact.block else "",
            thread=f"({fact.thread})" if fact.thread else "",
            grid=fact.grid,
            position=f"{fact.file}:{fact.line}" if fact.file else fact.pc,
            arguments=fact.arguments,
        ),
        cause="an index or pointer argument that does not fit the buffer; compare the arguments with the "
        "tensors' sizes",
        next=(
            f"PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer --tool memcheck {SCRIPT}   # the address "
            "and its buffer",
            "aoti-minimize explain THIS_LOG --package YOUR_PACKAGE.pt2   # what the kernel was made from",
            "AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER=2 "
            f"AOT_INDUCTOR_FILTERED_KERNELS_TO_PRINT={kernel or 'KERNEL'} "
            f"{SCRIPT}   # compile again; that kernel's inputs",
        ),
    )


_SIGNAL = re.compile(
    r"^(?:Thread [^\n]{1,100} received signal|Program (?:received|terminated with) signal) "
    r"(?P<signal>SIG[A-Z]{2,8}), (?P<message>[^.\n]{1,200})\."
    r"|^Fatal Python error: (?P<fatal>[^\n]{1,200})",
    re.M,
)
_GDB = re.compile(
    r"^#(?P<number>\d{1,5})\s+(?:0x[0-9a-f]+ in )?(?P<function>[^\n]{1,800}?) \("
    r"(?P<arguments>[^\n]{0,800}?)\)"
    r"(?: at (?P<file>[^\s:]{1,500}):(?P<line>\d{1,9})| from [^\n]{1,500})?$",
    re.M,
)
_PYTHON = re.compile(
    r'^  File "(?P<file>[^"\n]{1,500})", line (?P<line>\d{1,9}) in (?P<function>[^\n]{1,200})$', re.M
)
_LIBRARY = (
    "raise",
    "abort",
    "__pthread_kill",
    "__GI_",
    "__libc",
    "std::",
    "__cxa",
    "c10::detail::torchCheckFail",
    "??",
    "_Z",
)


def host_stacks(text: str) -> Iterator[tuple[int, HostStack]]:
    """Every signal that gdb or Python's faulthandler reports, with the frame that matters."""
    for match in _SIGNAL.finditer(text):
        body = following(text, match.end(), 80)
        again = _SIGNAL.search(body)
        body = body[: again.start()] if again else body
        message = match["message"] or match["fatal"]
        signal = match["signal"] or {"Segmentation fault": "SIGSEGV", "Aborted": "SIGABRT"}.get(
            message, message
        )
        frames = list(_GDB.finditer(body))
        chosen = next((f for f in frames if generated_kernel(f["function"])), None) or next(
            (f for f in frames if not f["function"].startswith(_LIBRARY)), None
        )
        if chosen is None:
            python = _PYTHON.search(body)
            if python is None:
                yield match.start(), HostStack(signal, message)
            else:
                yield (
                    match.start(),
                    HostStack(signal, message, python["function"], python["file"], int(python["line"])),
                )
            continue
        yield (
            match.start(),
            HostStack(
                signal,
                message,
                chosen["function"],
                chosen["file"] or "",
                int(chosen["line"] or 0),
                chosen["arguments"],
            ),
        )


def explain_host_stack(fact: HostStack) -> Explanation:
    """A native stack in words."""
    kernel = generated_kernel(fact.function)
    in_kernel = (
        "The frame is a generated kernel: an index or a size in it is wrong, or an input is not as exported"
    )
    return Explanation(
        "native stack",
        f"{fact.signal}: {fact.message}",
        "The process died in native code.",
        where=pairs(
            kernel=kernel,
            function="" if kernel else fact.function,
            position=f"{fact.file}:{fact.line}" if fact.file else "",
            arguments=fact.arguments[:200],
        ),
        cause=in_kernel
        if kernel
        else "no generated kernel on the stack: an operator that was called with what it does not "
        "expect, or memory that an earlier kernel overwrote",
        next=(
            f"AOTI_RUNTIME_CHECK_INPUTS=1 {SCRIPT}   # are the inputs what was exported?",
            "aoti-minimize model.py   # finds the input, reduces the program",
            "# if it comes and goes:",
            f"LD_PRELOAD=libc_malloc_debug.so.0 MALLOC_CHECK_=3 MALLOC_PERTURB_=165 {SCRIPT}",
        ),
    )


FAMILIES = (
    Family(
        "cuda-gdb", 6, ("CUDA Exception: ", "CUDA_EXCEPTION_"), device_exceptions, explain_device_exception
    ),
    Family(
        "native stack",
        30,
        ("received signal SIG", "terminated with signal SIG", "Fatal Python error: "),
        host_stacks,
        explain_host_stack,
    ),
)
