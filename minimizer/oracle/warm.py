"""Imported once, by the zygote: pays for what every worker would pay for itself.

Lowering one toy program fills Inductor's tables and pattern lists, and the CPU is probed for its vector
width. Only fake tensors are touched, and with one thread, so that no OpenMP pool exists when workers fork.
"""

from __future__ import annotations

import torch
import torch._inductor.codegen.cpp
import torch._inductor.codegen.cpp_wrapper_cpu
from torch._inductor.cpu_vec_isa import pick_vec_isa

import minimizer.oracle.tasks  # noqa: F401  (imported for the workers)
from minimizer.oracle.stages import compile_package

torch.set_num_threads(1)
_SIZE = torch.export.Dim("n", min=2, max=64)
_TOY = torch.export.export(torch.nn.ReLU(), (torch.zeros(4),), dynamic_shapes=({0: _SIZE},))
compile_package(_TOY, {}, "warm-up.pt2", level="lower")
pick_vec_isa()
