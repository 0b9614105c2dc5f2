"""Inductor options worth compiling with, one at a time.

A legal option may change speed, never an answer, so each of these asks the same question of other code: the
scalar loop instead of the vector one, every buffer of its own instead of reused ones, no fusion, other
patterns. They are curated: options that legally change numbers (fast math, float contraction), need other
hardware, only time things or are for testing are left out. `torch._inductor.fuzzer` tries every option of
every type instead; what it keeps its hands off is not in this table either.

Most telling first; `common` are those that people set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Config = tuple[tuple[str, Any], ...]
"""Inductor options and their values, as a `Settings` holds them."""


@dataclass(frozen=True)
class Option:
    """One option of Inductor: its key, the values to try other than the default, and what they change."""

    key: str
    values: tuple[Any, ...]
    changes: str
    common: bool = False


OPTIONS: tuple[Option, ...] = (
    Option("freezing", (True,), "weights become constants: folding, prepacking, binary folding", True),
    Option("max_autotune", (True,), "generated GEMM templates instead of library calls", True),
    Option("cpp.simdlen", (1, 256), "scalar loops (1), or half-width vectors and their tails (256)", True),
    Option("cpp.threads", (1,), "no parallel loops, so other loop nests", True),
    Option("aot_inductor.use_runtime_constant_folding", (True,), "constants folded when loaded", True),
    Option("aot_inductor.allow_stack_allocation", (True,), "small buffers on the stack"),
    Option("memory_planning", (True,), "buffers share one pool at computed offsets", True),
    Option("epilogue_fusion", (False,), "pointwise calls after a GEMM stay on their own", True),
    Option("pattern_matcher", (False,), "no attention, padding, cat-split and GEMM patterns"),
    Option("layout_optimization", (False,), "convolutions keep the layout of their inputs"),
    Option("force_layout_optimization", (True,), "every convolution becomes channels last"),
    Option("inplace_buffers", (False,), "no kernel writes over its own input"),
    Option("allow_buffer_reuse", (False,), "no buffer is used twice"),
    Option("split_reductions", (False,), "reductions in one step"),
    Option("unroll_reductions_threshold", (1, 64), "short reductions as loops, or long ones unrolled"),
    Option("max_fusion_size", (1,), "next to no fusion: each call is a kernel"),
    Option("aggressive_fusion", (True,), "fusion without shared reads"),
    Option("loop_ordering_after_fusion", (False,), "loops stay as lowered"),
    Option("pick_loop_orders", (False,), "loops are not ordered by stride"),
    Option("realize_reads_threshold", (1,), "more intermediate buffers"),
    Option("realize_opcount_threshold", (1, 1000), "a buffer for each call, or hardly any"),
    Option("constant_and_index_propagation", (False,), "index arithmetic is left to run time"),
    Option("joint_graph_constant_folding", (False,), "constants are computed at run time"),
    Option("cpp.enable_loop_tail_vec", (False,), "scalar instead of masked vector tails"),
    Option("cpp.enable_tiling_heuristics", (False,), "tiles wherever they are possible"),
    Option("cpp.min_chunk_size", (1,), "parallel loops from one element per thread on"),
    Option("cpp.no_redundant_loops", (False,), "loops of one turn are kept"),
    Option("cpp.dynamic_threads", (True,), "the number of threads is asked at run time"),
    Option("cpp.max_horizontal_fusion_size", (1,), "kernels side by side are not joined"),
    Option("cpp.fallback_scatter_reduce_sum", (False,), "scatter-add as generated atomics"),
    Option("cpp.weight_prepack", (False,), "no packed weights"),
    Option("comprehensive_padding", (False,), "no padded strides"),
    Option("shape_padding", (False,), "no padded GEMMs"),
    Option("conv_1x1_as_mm", (True,), "pointwise convolutions as GEMMs"),
    Option("permute_fusion", (True,), "permutes move into GEMMs"),
    Option("batch_fusion", (False,), "no grouped linear layers"),
    Option("group_fusion", (True,), "grouped linear layers"),
    Option("b2b_gemm_pass", (True,), "two GEMMs in a row as one kernel"),
    Option("decompose_mem_bound_mm", (True,), "thin GEMMs as sums of products"),
    Option("use_dce", (False,), "dead calls are compiled too"),
    Option("online_softmax", (False,), "softmax in two passes"),
    Option("size_asserts", (False,), "no checks of intermediate sizes"),
    Option("deterministic", (True,), "no choice by timing"),
)
"""The table, most telling first."""

LEVELS = ("default", "common", "wide")


def settings(level: str, *, taken: Config = ()) -> Iterator[Config]:
    """Sets of options to compile with, one option each, most telling first; none for the default level.

    `taken` are options that are set already: they are not tried with another value. Raises ValueError for an
    unknown level.

    >>> next(settings("common"))
    (('freezing', True),)
    """
    if level not in LEVELS:
        raise ValueError(f"unknown level of settings {level!r}; use one of: {', '.join(LEVELS)}")
    known = {key for key, _ in taken}
    for option in OPTIONS:
        if level == "wide" or (level == "common" and option.common):
            if option.key in known:
                continue
            for value in option.values:
                yield ((option.key, value),)
