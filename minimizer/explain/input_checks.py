"""Messages about inputs: AOTI's own checks, guards of exported programs, devices, the number of arguments.

All of them mean misuse: the package was called with what it was not compiled for. Formats: the check
functions in every ``*.wrapper.cpp`` and `assert_size_stride` in ``aoti_runtime/utils.h``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from minimizer.explain.family import OPCHECK, SCRIPT, Explanation, Family, following, pairs
from minimizer.explain.kinds import device_name, dtype_name


@dataclass(frozen=True)
class InputCheck:
    """One refused input. `what` is ``dtype``, ``dim``, ``small``, ``large``, ``stride`` or ``device``."""

    kind: str
    index: int
    what: str
    dim: int | None
    expected: str
    got: int


_CHECK = re.compile(
    r"(?P<kind>input|output)_handles\[(?P<index>\d{1,6})\]: (?P<what>unmatched dtype|unmatched dim value at|"
    r"dim value is too small at|dim value is too large at|unmatched stride value at|unmatched device type)"
    r"(?: (?P<dim>\d{1,4}))?,\s+expected(?: it)?(?: to be)?:? ?(?P<expected>[^\n,]{1,80}?),? ?but got: "
    r"(?P<got>-?\d{1,20})"
)
_WHAT = {
    "unmatched dtype": "dtype",
    "unmatched dim value at": "dim",
    "dim value is too small at": "small",
    "dim value is too large at": "large",
    "unmatched stride value at": "stride",
    "unmatched device type": "device",
}


def input_checks(text: str) -> Iterator[tuple[int, InputCheck]]:
    """Every refusal by AOTI_RUNTIME_CHECK_INPUTS."""
    for match in _CHECK.finditer(text):
        dim = int(match["dim"]) if match["dim"] else None
        what = _WHAT[match["what"]]
        expected = match["expected"].strip()
        yield (
            match.start(),
            InputCheck(match["kind"], int(match["index"]), what, dim, expected, int(match["got"])),
        )


def expected_device(text: str) -> str:
    """The name in ``00(cpu)``: the number is printed twice before it.

    >>> expected_device("00(cpu)")
    'cpu'
    """
    named = re.search(r"\((\w+)\)", text)
    if named:
        return named[1]
    return device_name(int(text)) if text.isdigit() else text


def expected_dtype(text: str) -> str:
    """The dtype in ``6(at::kFloat)``."""
    number = re.match(r"\d+", text)
    return dtype_name(int(number[0])) if number else text


def explain_input_check(fact: InputCheck) -> Explanation:
    """A refused input in words."""
    name, place = f"{fact.kind} {fact.index}", f"dim {fact.dim}"
    expected = fact.expected.removeprefix(">= ").removeprefix("<= ")
    x = f"inputs[{fact.index}]"
    fixes: tuple[str, ...]
    if fact.what == "dtype":
        want, got = expected_dtype(fact.expected), dtype_name(fact.got)
        said, fixes = (
            f"{name} is {got}, the package was compiled for {want}",
            (f"{x} = {x}.to(torch.{want})",),
        )
    elif fact.what == "device":
        want, got = expected_device(fact.expected), device_name(fact.got)
        said = f"{name} is on {got}, the package was compiled for {want}"
        fixes = (f"{x} = {x}.to('{want}')", f"or compile the model on {got}")
    elif fact.what == "stride":
        said = f"{name} has stride {fact.got} in {place}, the package was compiled for {expected}"
        fixes = (f"{x} = {x}.contiguous(), or whatever layout the example had", "or export with that layout")
    elif fact.what == "dim":
        said = f"{place} of {name} is {fact.got}, the package was compiled for {expected} only"
        fixes = (
            f"give {expected}",
            "or export with that dim dynamic: dynamic_shapes={...: Dim(NAME, min=, max=)}",
        )
    else:
        word = "at least" if fact.what == "small" else "at most"
        said = f"{place} of {name} is {fact.got}, the package was compiled for {word} {expected}"
        fixes = (f"give {word} {expected}", "or export with a wider range: Dim(NAME, min=, max=)")
    loose = (
        "Without AOTI_RUNTIME_CHECK_INPUTS=1 the same call may return wrong values or crash without a word."
        if fact.what in ("dtype", "dim", "stride", "device")
        else ""
    )
    if fact.what == "small" and expected == "2":
        loose += (
            " Export treats 0 and 1 as special: a bound of 2 may come from that alone, while smaller sizes "
            "were "
            "declared legal."
        )
    return Explanation(
        "input check (misuse)",
        said,
        f"The compiled package was called outside its contract. {loose}".strip(),
        where=pairs(**{fact.kind: str(fact.index)}, dim=fact.dim),
        cause="misuse: the caller's input, not the compiler",
        fixes=fixes,
        next=(
            "aoti-minimize model.py --check-inputs NAME   # checks all inputs against the exported program",
        ),
    )


@dataclass(frozen=True)
class SizeCheck:
    """A tensor that is not as compiled for; `dims` are (dim, size, wanted size, stride, wanted stride)."""

    dims: tuple[tuple[int, int, int, int, int], ...]
    op: str


_SIZES = re.compile(
    r"expected size (?P<size>\d{1,20})==(?P<want>\d{1,20}), stride (?P<stride>-?\d{1,20})=="
    r"(?P<want_stride>-?\d{1,20}) at dim=(?P<dim>\d{1,4})"
)
_OP = re.compile(r"Error in op: (?P<op>\S{1,200})")


def size_checks(text: str) -> Iterator[tuple[int, SizeCheck]]:
    """Every failed `assert_size_stride`; the dims of one message stand on one line."""
    end = -1
    for match in _SIZES.finditer(text):
        if match.start() < end:
            continue
        line = following(text, match.start(), 1)
        end = match.start() + len(line)
        dims = tuple(
            (int(m["dim"]), int(m["size"]), int(m["want"]), int(m["stride"]), int(m["want_stride"]))
            for m in _SIZES.finditer(line)
        )
        op = _OP.search(following(text, match.start(), 3))
        yield match.start(), SizeCheck(dims, op["op"] if op else "")


def explain_size_check(fact: SizeCheck) -> Explanation:
    """A size assertion in words."""
    wrong = [
        f"dim {dim} has size {size} where {want} is needed"
        if size != want
        else f"dim {dim} has stride {stride}, not {ws}"
        for dim, size, want, stride, ws in fact.dims
        if size != want or stride != ws
    ]
    is_input = fact.op == "input"
    if is_input:
        cause = (
            "misuse: two dims that the export made equal (or one that follows from another) were given "
            "different "
            "sizes. The text below it about fake kernels does not apply to inputs"
        )
        fixes = (
            "give inputs whose sizes agree as at export",
            "or export with different Dim names for these dims",
        )
    else:
        cause = (
            f"the fake (meta) function of {fact.op or 'a custom operator'} promises other sizes or strides "
            "than the "
            "operator returns"
        )
        fixes = (
            "correct the function registered with register_fake",
            "return contiguous tensors from the operator",
        )
    return Explanation(
        "input check (misuse)" if is_input else "shape function disagrees with its operator",
        "; ".join(wrong) or "sizes or strides differ",
        "A tensor is not what the code was generated for.",
        where=pairs(operator=fact.op if not is_input else "", tensor="an input" if is_input else ""),
        cause=cause,
        fixes=fixes,
        next=(
            "aoti-minimize model.py --check-inputs NAME",
            *(() if is_input else (OPCHECK,)),
        ),
    )


@dataclass(frozen=True)
class Mismatch:
    """A message about devices, arguments or guards, as printed, and the entry of `KNOWN` that it matches."""

    message: str
    key: str


@dataclass(frozen=True)
class _Known:
    pattern: re.Pattern[str]
    means: str
    cause: str
    fixes: tuple[str, ...]


KNOWN = {
    "device mismatch": _Known(
        re.compile(
            r"Expected all tensors to be on the same device[^\n]{0,300}"
            r"|Expected out tensor to have device[^\n]{0,200}"
            r"|Unhandled FakeTensor Device Propagation[^\n]{0,300}|Tensor on device \w{1,20}"
            r"(?::\d+)? is not on the expected device[^\n]{0,100}"
        ),
        "Tensors of one call are on different devices.",
        "misuse: an input, or a constant of the model, is on another device than the package was compiled "
        "for",
        (
            "move model and inputs to one device before export: model.to(device), x.to(device)",
            "x = x.to(DEVICE) at call",
        ),
    ),
    "tensor without data": _Known(
        re.compile(
            r"The tensor has a non-zero number of elements, but its data is not allocated yet[^\n]{0,200}"
        ),
        "A tensor without memory (meta, fake, or a subclass) was given where elements are read.",
        "misuse: an input on the meta device, or a FakeTensor",
        ("give real tensors: torch.empty_like(x, device='cpu')",),
    ),
    "kwarg keyword mismatch": _Known(
        re.compile(r"Ran into a kwarg keyword mismatch: [^\n]{0,400}"),
        "The call's keyword arguments are not those of the export. They must be the same names.",
        "misuse: a keyword missing, unknown, or passed by position at export",
        ("pass exactly the keywords that the message expects", "or export with kwargs= as you call"),
    ),
    "number of inputs": _Known(
        re.compile(r"expected (?:inputs|outputs?) vector size to be \d+, but got \d+"),
        "The call has another number of tensors than the package.",
        "misuse: an argument is missing, is None, or was a constant at export",
        ("call with the arguments of the export, in the same structure",),
    ),
    "number of dims": _Known(
        re.compile(r"expected ndim \d+ but got \d+[^\n]{0,100}"),
        "A tensor has another number of dims than the code was generated for.",
        "misuse, or the fake function of a custom operator promises another rank",
        ("give inputs of the exported rank: x.reshape(...)",),
    ),
    "guard": _Known(
        re.compile(r"Guard failed: [^\n]{1,400}"),
        "The exported program checks its inputs and refuses these.",
        "misuse: the condition names the input and the size that it must have",
        ("give inputs within the condition", "or export with a wider range in dynamic_shapes"),
    ),
    "sparse or unallocated": _Known(
        re.compile(r"Cannot access data pointer of Tensor that doesn't have storage"),
        "A tensor without plain storage was given.",
        "misuse: a FakeTensor, sparse tensor or tensor subclass among the inputs",
        ("give plain dense tensors: x.to_dense()",),
    ),
    "unmatched operand dtypes": _Known(
        re.compile(
            r"expected m1 and m2 to have the same dtype, but got: [^\n]{1,100}"
            r"|expected scalar type \w{1,20} but found \w{1,20}"
            r"|Input type \([^\n)]{1,60}\) and (?:weight|bias) type \([^\n)]{1,60}\) should be the same"
        ),
        "An operator got tensors of two dtypes; AOTI did not check its inputs before.",
        "misuse: an input of another dtype than at export, or a model whose weights were converted after it",
        ("x = x.to(the dtype of the example input)",),
    ),
    "sizes that do not fit together": _Known(
        re.compile(
            r"The size of tensor a \(\d+\) must match the size of tensor b \(\d+\)[^\n]{0,80}"
            r"|mat1 and mat2 shapes cannot be multiplied[^\n]{0,60}"
            r"|shape '\[[^\n]{0,80}\]' is invalid for input of size \d+"
        ),
        "An operator got tensors whose sizes do not belong together.",
        "misuse: two inputs whose sizes must agree, or a size that the exported program has as a constant",
        ("give inputs whose sizes agree as at export", "or export with that dim dynamic"),
    ),
    "index outside the tensor": _Known(
        re.compile(
            r"index -?\d+ is out of bounds for dimension \d+ with size \d+|index out of range in self"
        ),
        "An operator that runs outside the generated kernels refuses an index.",
        "misuse: bad values in a tensor of indices, or an empty tensor where none was expected",
        ("check the indices before the call: torch.all((idx >= 0) & (idx < size))",),
    ),
}


def mismatches(text: str) -> Iterator[tuple[int, Mismatch]]:
    """Every message of `KNOWN`."""
    for key, known in KNOWN.items():
        for match in known.pattern.finditer(text):
            yield match.start(), Mismatch(match[0], key)


def explain_mismatch(fact: Mismatch) -> Explanation:
    """A mismatch in words."""
    known = KNOWN[fact.key]
    return Explanation(
        f"{fact.key} (misuse)",
        fact.message,
        known.means,
        cause=known.cause,
        fixes=known.fixes,
        next=(
            f"AOTI_RUNTIME_CHECK_INPUTS=1 {SCRIPT}   # names the input",
            "aoti-minimize model.py --check-inputs NAME",
        ),
    )


FAMILIES = (
    Family("input check", 12, ("_handles[",), input_checks, explain_input_check),
    Family("size check", 13, ("expected size ",), size_checks, explain_size_check),
    Family(
        "mismatch",
        14,
        (
            *(
                "Expected all tensors",
                "Expected out tensor",
                "Unhandled FakeTensor",
                "is not on the expected device",
            ),
            *("its data is not allocated", "kwarg keyword mismatch", "vector size to be", "expected ndim"),
            *("Guard failed: ", "Cannot access data pointer", "expected m1 and m2"),
            *("expected scalar type", "should be the same", "The size of tensor a", "mat1 and mat2"),
            *("is invalid for input of size", "is out of bounds for dimension", "index out of range in self"),
        ),
        mismatches,
        explain_mismatch,
    ),
)
