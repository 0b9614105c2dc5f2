"""Errors of the CUDA runtime, of Triton's launcher and of memory allocators."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from minimizer.explain.family import SCRIPT, Explanation, Family, pairs

LADDER = (
    f"AOTI_RUNTIME_CHECK_INPUTS=1 {SCRIPT}   # are the inputs what the package was compiled for?",
    f"PYTORCH_NO_CUDA_MEMORY_CACHING=1 CUDA_LAUNCH_BLOCKING=1 {SCRIPT}   # deterministic, synchronous",
    f"AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER=3 {SCRIPT}   # compile again; the last 'before_launch' "
    "without its 'after_launch' is the kernel",
    f"PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer --tool memcheck {SCRIPT}   # address, thread, line",
    f"CUDA_LAUNCH_BLOCKING=1 cuda-gdb -batch -ex run -ex bt --args {SCRIPT}   # the kernel's own stack",
)
"""From the CUDA debugging guides: climb until the kernel is named."""


@dataclass(frozen=True)
class CudaError:
    """An error of the runtime or driver: its text, and the entry of `KNOWN` that it matches."""

    message: str
    key: str


@dataclass(frozen=True)
class Known:
    """What one CUDA error means. `pattern` is a part of its message."""

    pattern: str
    means: str
    cause: str
    fixes: tuple[str, ...] = ()
    next: tuple[str, ...] = ()


_SYNC = f"CUDA_LAUNCH_BLOCKING=1 {SCRIPT}"
KNOWN = {
    "device-side assertion": Known(
        "device-side assert triggered",
        "An assertion inside a kernel failed earlier. This error is only where the host noticed.",
        "the assertion's own line, printed on stderr before this one, says what (index, block, thread)",
        next=(f"{_SYNC} 2>&1 | tee log.txt   # then: aoti-minimize explain log.txt",),
    ),
    "illegal memory access": Known(
        "an illegal memory access was encountered",
        "A kernel touched an address that belongs to no allocation. CUDA reports it at a later, unrelated "
        "call, and "
        "the caching allocator hides many such accesses.",
        "inputs that the package was not compiled for (size, stride, dtype, host memory), or a wrong index "
        "in a kernel",
        next=LADDER,
    ),
    "misaligned address": Known(
        "misaligned address",
        "A kernel loaded several elements at once from an address that is not a multiple of their size.",
        "an input that is a view with a storage offset, where the package was compiled for aligned inputs",
        ("give the call x.clone(), or copy the input into aligned memory",),
        LADDER[3:],
    ),
    "host pointer": Known(
        "The specified pointer resides on host memory and is not registered with any CUDA device",
        "A kernel on the GPU was given the address of memory of the host.",
        "a CPU tensor was handed to a package that was compiled for CUDA. Nothing checks that by default",
        ("move every input first: x = x.to('cuda')", "or compile the package for the CPU"),
        (f"AOTI_RUNTIME_CHECK_INPUTS=1 {SCRIPT}   # names the input",),
    ),
    "host pointer (Triton)": Known(
        "cannot be accessed from Triton (cpu tensor?)",
        "A Triton kernel was given a tensor that lies in the host's memory.",
        "a CPU tensor among inputs or constants of a model compiled for CUDA",
        ("move every input first: x = x.to('cuda')",),
        (f"AOTI_RUNTIME_CHECK_INPUTS=1 {SCRIPT}",),
    ),
    "out of memory": Known(
        "out of memory",
        "There was not enough memory on the device. This says nothing about the compiler.",
        "the model, its inputs and the allocator's cache need more than there is",
        (
            "smaller inputs, or fewer processes on the device",
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        ),
        ("nvidia-smi   # who holds the memory",),
    ),
    "out of resources": Known(
        "out of resource: ",
        "A Triton kernel needs more shared memory or registers than this device gives to one block.",
        "block sizes that were tuned for another device, or a kernel that fuses too much",
        ("compile on the device that runs it", "torch._inductor.config.max_fusion_size = 8"),
    ),
    "launch refused": Known(
        "too many resources requested for launch",
        "A kernel asks for more registers or threads than one block may have on this device.",
        "a package that was compiled for another device",
        ("compile on the device that runs it",),
    ),
    "launch refused (configuration)": Known(
        "invalid configuration argument",
        "A kernel was launched with an impossible grid or block: a size of 0, or too large.",
        "an empty tensor, or a size far above the range that was declared at export",
        ("check sizes against the exported range", "export with Dim(NAME, min=..., max=...)"),
        (f"AOTI_RUNTIME_CHECK_INPUTS=1 {SCRIPT}",),
    ),
    "launch refused (argument)": Known(
        "invalid argument",
        "The CUDA runtime or driver was called with an argument that it does not accept.",
        "a freed or foreign pointer, or a size that does not fit",
        next=(_SYNC, LADDER[3]),
    ),
    "wrong architecture": Known(
        "no kernel image is available",
        "The package or torch itself holds no code for this GPU's architecture. It does not run on this "
        "machine.",
        "compiled on a machine with another GPU, or torch built without this compute capability",
        (
            "compile the package on a machine with this GPU",
            "or compile with the inductor option aot_inductor.emit_multi_arch_kernel=True",
        ),
        ("python -c 'import torch; print(torch.cuda.get_device_capability(), torch.cuda.get_arch_list())'",),
    ),
    "wrong architecture (image)": Known(
        "device kernel image is invalid",
        "The driver refuses the machine code in the package. It does not run on this machine.",
        "compiled for another GPU or with a newer CUDA than this driver knows",
        ("compile the package on this machine", "update the driver"),
        ("nvidia-smi   # driver and CUDA version",),
    ),
    "wrong architecture (function)": Known(
        "invalid device function",
        "A kernel does not exist for this GPU. It does not run on this machine.",
        "torch or the package was built for other compute capabilities",
        ("compile the package on a machine with this GPU",),
        ("python -c 'import torch; print(torch.cuda.get_device_capability(), torch.cuda.get_arch_list())'",),
    ),
    "driver too old": Known(
        "driver version is insufficient",
        "The NVIDIA driver is older than the CUDA that torch was built with. It does not run on this "
        "machine.",
        "an old driver",
        ("update the driver, or install a torch built for an older CUDA",),
        ("nvidia-smi",),
    ),
    "no device": Known(
        "no CUDA-capable device is detected",
        "There is no GPU that this process may use. It does not run on this machine.",
        "no GPU, CUDA_VISIBLE_DEVICES is empty, or the container was started without it",
        ("unset CUDA_VISIBLE_DEVICES", "start the container with the GPU"),
        ("nvidia-smi",),
    ),
    "no such device": Known(
        "invalid device ordinal",
        "A device number was asked for that this process does not have. It does not run on this machine as "
        "it is.",
        "the package or script names cuda:N with fewer than N+1 devices visible",
        ("load with aoti_load_package(path, device_index=0)", "check CUDA_VISIBLE_DEVICES"),
    ),
    "fork": Known(
        "initialization error",
        "CUDA could not be started in this process.",
        "a process that was forked after its parent had used CUDA",
        ("multiprocessing.set_start_method('spawn')",),
    ),
    "launch failure": Known(
        "unspecified launch failure",
        "A kernel died of a memory fault that the hardware could not attribute.",
        "an illegal access, often through a pointer to shared or local memory",
        next=LADDER,
    ),
    "timeout": Known(
        "the launch timed out",
        "A kernel ran longer than the display's watchdog allows.",
        "a GPU that also drives a display, or a kernel that does not end",
        next=(f"CUDA_LAUNCH_BLOCKING=1 {SCRIPT}",),
    ),
    "hardware": Known(
        "uncorrectable ECC error",
        "The GPU's memory is defective. Nothing in the software is at fault.",
        "hardware",
        next=("nvidia-smi -q -d ECC",),
    ),
    "stream capture": Known(
        "operation not permitted when stream is capturing",
        "An operation that cannot be part of a CUDA graph was called while one is captured.",
        "a synchronisation, or an allocation outside the graph's pool, inside the captured region",
        ("compile without CUDA graphs: triton.cudagraphs=False",),
    ),
    "file not found": Known(
        "file not found",
        "The driver did not find the file with a kernel's machine code.",
        "a package that was taken apart, or moved without its .cubin files",
        ("load the .pt2 as it was written, or compile again with aot_inductor.embed_kernel_binary=True",),
    ),
}

_ERROR = re.compile(
    r"(?:CUDA error: |Triton Error \[CUDA\]: |CUDA driver error: |AcceleratorError: |"
    r"RuntimeError: CUDA (?=out of memory)|OutOfMemoryError: (?=CUDA))(?P<message>[^\n]{1,500})"
)
_BARE = re.compile(
    r"The specified pointer resides on host memory and is not registered with any CUDA device"
    r"|[^\n]{0,100}cannot be accessed from Triton \(cpu tensor\?\)"
    r"|out of resource: [^\n]{1,200}|no CUDA-capable device is detected"
)


def cuda_errors(text: str) -> Iterator[tuple[int, CudaError]]:
    """Every CUDA error of a text that is known; unknown ones under the key ``other``."""
    taken: list[tuple[int, int]] = []
    for match in _ERROR.finditer(text):
        message = match["message"].removeprefix("CUDA error: ").strip()
        taken.append(match.span())
        yield match.start(), CudaError(message, _key(message))
    for match in _BARE.finditer(text):
        if not any(start <= match.start() < end for start, end in taken):
            yield match.start(), CudaError(match[0].strip(), _key(match[0]))


def _key(message: str) -> str:
    return next((key for key, known in KNOWN.items() if known.pattern in message), "other")


def explain_cuda_error(fact: CudaError) -> Explanation:
    """A CUDA error in words."""
    known = KNOWN.get(fact.key)
    if known is None:
        return Explanation(
            "CUDA error",
            fact.message,
            "The CUDA runtime reports an error. It may belong to an earlier kernel: launches are "
            "asynchronous.",
            next=(_SYNC, *LADDER[2:]),
        )
    return Explanation(
        f"CUDA: {fact.key}", fact.message, known.means, (), known.cause, known.fixes, known.next
    )


@dataclass(frozen=True)
class NoMemory:
    """An allocation on the host that failed; `size` in bytes as printed."""

    size: str


_HOST = re.compile(
    r"DefaultCPUAllocator: (?:can't allocate memory|not enough memory): you tried to allocate (\d+)"
)


def host_memory(text: str) -> Iterator[tuple[int, NoMemory]]:
    """Failed allocations on the host."""
    for match in _HOST.finditer(text):
        yield match.start(), NoMemory(match[1])


def explain_no_memory(fact: NoMemory) -> Explanation:
    """A failed allocation on the host in words."""
    return Explanation(
        "out of memory",
        f"{int(fact.size):,} bytes could not be allocated on the host",
        "The machine does not have that much memory. An absurd number means that a size was computed "
        "wrongly: from "
        "inputs outside the exported range, or overflow.",
        where=pairs(bytes=f"{int(fact.size):,}"),
        cause="inputs larger than this machine takes, or a size computed from garbage",
        next=("free -h", f"AOTI_RUNTIME_CHECK_INPUTS=1 {SCRIPT}"),
    )


@dataclass(frozen=True)
class NoCuda:
    """CUDA was asked for and is not there."""

    message: str


_NO_CUDA = re.compile(
    r"Torch not compiled with CUDA enabled|Found no NVIDIA driver on your system"
    r"|has no attribute 'AOTIModelContainerRunnerCuda'|Invalid device: cuda"
    r"|Unsupported device key found: cuda"
)


def no_cuda(text: str) -> Iterator[tuple[int, NoCuda]]:
    """Messages of a torch without CUDA."""
    for match in _NO_CUDA.finditer(text):
        yield match.start(), NoCuda(match[0])


def explain_no_cuda(fact: NoCuda) -> Explanation:
    """A torch without CUDA in words."""
    return Explanation(
        "does not run on this machine",
        fact.message,
        "The package or script wants CUDA, and this torch or this machine has none.",
        cause="a CPU build of torch, or no NVIDIA driver",
        fixes=(
            "run it on a machine with a GPU and a CUDA build of torch",
            "or compile the model for the CPU",
        ),
        next=("python -m torch.utils.collect_env",),
    )


FAMILIES = (
    Family(
        "CUDA error",
        50,
        (
            *("CUDA error: ", "Triton Error [CUDA]", "CUDA driver error", "AcceleratorError: "),
            *("CUDA out of memory", "The specified pointer resides", "(cpu tensor?)", "out of resource: "),
            "no CUDA-capable device",
        ),
        cuda_errors,
        explain_cuda_error,
    ),
    Family("out of memory", 20, ("DefaultCPUAllocator",), host_memory, explain_no_memory),
    Family(
        "no CUDA",
        21,
        (
            *("not compiled with CUDA", "no NVIDIA driver", "AOTIModelContainerRunnerCuda"),
            *("Invalid device: cuda", "Unsupported device key"),
        ),
        no_cuda,
        explain_no_cuda,
    ),
)
