"""What is said of targets, failures and inputs, on the terminal and in titles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minimizer.case import Case, Value, contiguous_stride
from minimizer.oracle.verdict import Failure
from minimizer.program import Program
from minimizer.sandbox import Died, TimedOut, WorkerLost


def headline(failure: Failure) -> str:
    """The failure in one line."""
    names = {
        "wrong_value": "wrong output",
        "wrong_metadata": "wrong kind of output",
        "wrong_aliasing": "memory is shared",
        "nondeterministic": "other answers from call to call",
        "compile_error": "the compiler raises",
        "cxx_error": "the generated C++ does not compile",
        "runtime_error": "the compiled program raises",
        "lost_error": "an error is lost",
        "missing_check": "an assertion is lost",
    }
    first = failure.message.splitlines()[0] if failure.message else ""
    return f"{names.get(failure.kind, failure.kind.replace('_', ' '))}: {first[:200]}"


def inputs_text(program: Program, values: Sequence[Value]) -> str:
    """One line for each of the first inputs: name, dtype, shape, layout."""
    lines = []
    for i, value in zip(program.inputs, values):
        layout = "contiguous" if value.stride is None else f"strides {list(value.stride)}"
        layout += f", storage offset {value.offset}" if value.offset else ""
        lines.append(f"\n{i.name}: {value.dtype}{list(value.shape)} {layout}")
    return "".join(lines[:6])


def described(value: Value) -> dict[str, Any]:
    """An input for summary.json."""
    stride = value.stride or contiguous_stride(value.shape)
    offset = {"storage_offset": value.offset} if value.offset else {}
    return {
        "shape": list(value.shape),
        "stride": list(stride),
        "dtype": value.dtype,
        "device": value.device,
        **offset,
    }


def signature_text(program: Program) -> str:
    """What the program takes: ``2 inputs, dim 0 of x in [2, 64]``."""
    count = f"{len(program.inputs)} input{'s' if len(program.inputs) != 1 else ''}"
    dims = []
    for symbol in program.symbols:
        high = "∞" if symbol.high is None else symbol.high
        where = next(
            (
                f"dim {dim} of {i.name}"
                for i in program.inputs
                for dim, size in enumerate(i.meta.shape)
                if size == symbol.name
            ),
            symbol.name,
        )
        dims.append(f"{where} in [{symbol.low}, {high}]")
    return ", ".join([count, *dims]) if dims else f"{count}, static"


def title_of(case: Case, failure: Failure, blame: str = "") -> str:
    """One line that a maintainer can search for: `blame`, where a custom operator is the cause."""
    if blame:
        return blame
    names = list(dict.fromkeys(n.target for n in case.program.operators))
    shown = " + ".join(names[:3]) + (" + ..." if len(names) > 3 else "")
    what = {
        "wrong_value": "gives wrong values",
        "wrong_metadata": f"gives another {failure.flavour}",
        "lost_mutation": "loses a mutation of its input",
        "out_of_memory": "needs more memory than eager",
        "spurious_error": "refuses inputs that it promised to accept",
        "wrong_aliasing": "returns memory that something else holds",
        "nondeterministic": "gives other values from call to call",
        "compile_error": "cannot be compiled",
        "cxx_error": "generates C++ that does not compile",
        "crash": "ends the process",
        "hang": "does not come to an end",
        "runtime_error": "raises at run time",
        "lost_error": "loses an error that eager raises",
        "missing_check": "loses an assertion of the program",
        "load_error": "cannot be loaded",
    }.get(failure.kind, failure.kind)
    path = "AOTInductor" if case.settings.path == "aoti" else "torch.compile"
    return f"{shown or 'The model'} {what} under {path}"


def not_opened(name: str, lost: WorkerLost) -> str:
    """A target that was lost before any compiler saw it: in which step, how, and what to do."""
    doing, advice = {
        "import": ("importing it", "make the import and what gives model and inputs come to an end"),
        "eager": ("the model in eager", "make it run without any compiler first"),
        "export": ("torch.export", "make torch.export.export() work on it first"),
    }.get(lost.stage, ("opening it", "make the file importable first"))
    more = ", or give it more time with --budget" if isinstance(lost, TimedOut) else ""
    return f"{name}: {doing} {ending(lost)}; {advice}{more}"


def ending(lost: WorkerLost) -> str:
    """How a worker was lost, after the name of what it did."""
    if isinstance(lost, TimedOut):
        return f"does not come to an end within {lost.seconds:.0f} s"
    return f"ends the process with {lost.signal}" if isinstance(lost, Died) else str(lost)
