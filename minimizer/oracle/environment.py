"""What PyTorch's issue form asks for: the lines of ``torch.utils.collect_env``, without what is private."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from importlib import metadata

import torch
from torch.utils import collect_env

_PACKAGES = ("numpy", "onnx", "optree", "torch", "torchao", "torchaudio", "torchvision", "triton")
_CPU = re.compile(r"^(Model name|CPU\(s\)):\s*(.+)$", re.MULTILINE)


def collected() -> str:
    """One fact a line, in the words of collect_env. Runs compilers, ``lscpu`` and ``nvidia-smi`` for it.

    None of the facts says where or whose the machine is.
    """
    return "\n".join(f"{name}: {value}" for name, value in _facts() if value not in (None, ""))


def _facts() -> Iterator[tuple[str, object]]:
    run = collect_env.run
    yield "PyTorch version", torch.__version__
    yield "Is debug build", torch.version.debug
    yield "CUDA used to build PyTorch", torch.version.cuda or "N/A"
    yield "ROCM used to build PyTorch", torch.version.hip or "N/A"
    yield "OS", collect_env.get_os(run)
    yield "GCC version", collect_env.get_gcc_version(run)
    yield "Clang version", collect_env.get_clang_version(run)
    yield "CMake version", collect_env.get_cmake_version(run)
    yield "Libc version", " ".join(platform.libc_ver())
    yield "Python version", f"{platform.python_version()} ({platform.python_implementation()})"
    yield "Is CUDA available", torch.cuda.is_available()
    if torch.cuda.is_available():
        yield "CUDA runtime version", collect_env.get_running_cuda_version(run)
        yield "GPU models and configuration", collect_env.get_gpu_info(run)
        yield "Nvidia driver version", collect_env.get_nvidia_driver_version(run)
        yield "cuDNN version", collect_env.get_cudnn_version(run)
    yield from ((f"CPU {name}", value) for name, value in _CPU.findall(collect_env.get_cpu_info(run) or ""))
    yield "CPU capability", torch.backends.cpu.get_cpu_capability()
    for name in _PACKAGES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
