"""Failures that no message tells of: what a run itself found, by kind.

A wrong value prints nothing. What it means is said from the kind of failure, the figures and the region.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from minimizer.explain.family import OPCHECK, Explanation, pairs
from minimizer.explain.router import Found

RANK = 70
"""After every message: a message says more than a kind."""


@dataclass(frozen=True)
class Told:
    """A stored failure: kind and stage as in summary.json, texts as they were printed."""

    kind: str
    stage: str = ""
    message: str = ""
    detail: str = ""
    figures: str = ""
    region: str = ""


_MEANS = {
    "wrong_value": (
        "wrong values",
        "The compiled program returns other values than eager, further off than any legal execution would "
        "be.",
        "the generated code: wrong arithmetic, a wrong index, or a buffer that is overwritten too early",
        ("compare settings in report.md: the one that makes it vanish names the part of the compiler",),
    ),
    "wrong_metadata": (
        "wrong kind of output",
        "Dtype, shape or layout of an output differ from eager's.",
        "a size that was taken from the example input, a lowering that promotes dtypes in another way, or "
        "a custom "
        "operator whose fake function promises another result",
        (f"{OPCHECK}   # for each custom operator",),
    ),
    "lost_mutation": (
        "lost mutation",
        "Eager changes an input in place and the compiled program does not, or not in the same way.",
        "the order of copies and writes was lost on the way to functional form",
        (),
    ),
    "lost_error": (
        "lost error",
        "Eager refuses these inputs and the compiled program answers.",
        "a check of the operator that its decomposition or lowering does not have",
        ("validate the inputs before the call until it is fixed",),
    ),
    "missing_check": (
        "missing check",
        "The exported program asserts something of its values that these break, and the compiled program "
        "goes on.",
        "assertions that the compiler takes for proven or was told to leave out",
        ("check the option scalar_asserts, and validate the inputs before the call until it is fixed",),
    ),
    "crash": (
        "crash",
        "The process ended inside the compiled program.",
        "memory that is not its own, or an exception that leaves a parallel loop",
        ("gdb -batch -ex run -ex bt --args python repro.py", "OMP_NUM_THREADS=1 python repro.py"),
    ),
    "memory_error": (
        "memory error",
        "The compiled program touches memory that is not its own.",
        "an index that is wrong for these sizes",
        ("gdb -batch -ex run -ex bt --args python repro.py",),
    ),
    "hang": (
        "hang",
        "Compiling, or the compiled program, does not come to an end.",
        "a graph pass whose time explodes with the size of the graph, or a deadlock",
        ("py-spy dump --pid PID   # where it is",),
    ),
    "nondeterministic": (
        "different from call to call",
        "The same call gives different answers.",
        "memory that is read before it is written, or a race of threads",
        ("OMP_NUM_THREADS=1 python repro.py", "MALLOC_PERTURB_=165 python repro.py"),
    ),
    "compile_error": (
        "compiler exception",
        "The compiler raises on a program that eager runs.",
        "an unsupported operator or a bug of the compiler",
        (),
    ),
    "cxx_error": (
        "generated C++ does not compile",
        "The C++ compiler refuses the generated code.",
        "a bug of code generation",
        (),
    ),
    "runtime_error": (
        "error at run time",
        "The compiled program raises where eager does not.",
        "a check or an operator call of the generated code that is wrong for these inputs",
        (),
    ),
    "load_error": (
        "package does not load",
        "The package was written and cannot be loaded.",
        "a bug of packaging, or another torch than the one that compiled it",
        (),
    ),
    "export_error": (
        "export fails",
        "torch.export refuses a model that eager runs.",
        "an unsupported construct",
        (),
    ),
    "misuse": (
        "misuse",
        "The inputs are outside what the exported program accepts. The compiler is not at fault.",
        "the caller's inputs",
        (),
    ),
}


def explain_outcome(told: Told) -> Explanation | None:
    """A stored failure in words; None for a kind that is not known."""
    known = _MEANS.get(told.kind)
    if known is None:
        return None
    name, means, cause, steps = known
    first = (told.figures or told.message).strip().splitlines()
    return Explanation(
        name,
        first[0][:300] if first else told.kind,
        means,
        where=pairs(stage=told.stage, fails_at=told.region),
        cause=cause,
        next=("python repro.py   # in the run folder: shows it alone", *steps)
        if told.kind != "misuse"
        else (),
    )


def explain_operator(operator: str, words: str) -> Explanation:
    """A custom operator that does not keep its word, in words."""
    return Explanation(
        "custom operator",
        f"{operator}: {words}",
        "The compiler believes a custom operator's fake function and schema. What comes after the operator "
        "was "
        "compiled for what they promise, and the operator does something else on these inputs.",
        where=pairs(operator=operator),
        cause="the operator's registration, not the compiler",
        fixes=(
            "make the function given to register_fake return what the operator returns: shape, dtype, "
            "strides",
            "declare what it writes to (mutates_args) and clone what it returns where that is an "
            "argument's memory",
        ),
        next=(OPCHECK,),
    )


def search(told: Told) -> Iterator[Found]:
    """A stored failure as a found message."""
    explanation = explain_outcome(told)
    if explanation is not None:
        yield Found("outcome", RANK, told, explanation, 0)
