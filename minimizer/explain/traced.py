"""Explanations with what the generated code adds: which input, which dim, which line of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from minimizer.explain.bounds import Bound, DeviceAssert, IndexCheck
from minimizer.explain.family import SCRIPT, Explanation, generated_kernel
from minimizer.explain.generated import Generated
from minimizer.explain.input_checks import InputCheck
from minimizer.explain.origin import Origin, Size, shown, trace
from minimizer.explain.packages import FailedCall
from minimizer.explain.router import Found


def with_code(found: Found, generated: Generated, names: Sequence[str] = ()) -> Found:
    """A message with what the generated code tells about it; `names` are the model's names of its inputs."""
    fact, explanation = found.fact, found.explanation
    if isinstance(fact, IndexCheck | DeviceAssert):
        bound = fact.bound
        if bound is not None:
            kernel = fact.kernel if isinstance(fact, IndexCheck) else generated_kernel(fact.function)
            origin = trace(generated, bound, kernel)
            if origin is None:
                note = ("package", "no kernel of it has this check: the log is from another package")
                return replace(found, explanation=replace(explanation, where=(*explanation.where, note)))
            return replace(found, explanation=_bounded(explanation, origin, bound, generated, names))
    if isinstance(fact, InputCheck) and fact.kind == "input" and fact.index < len(generated.inputs):
        given = shown(generated.inputs[fact.index], generated.inputs, names)
        where = tuple(
            ("input", given) if label == "input" else (label, at) for label, at in explanation.where
        )
        return replace(found, explanation=replace(explanation, where=where))
    if isinstance(fact, FailedCall):
        return replace(found, explanation=_call(explanation, fact, generated, names))
    kernel = dict(explanation.where).get("kernel", "").split("(")[0]
    return replace(found, explanation=_sources(explanation, kernel, generated))


def _sources(explanation: Explanation, kernel: str, generated: Generated) -> Explanation:
    """The nodes and lines that a kernel was made from."""
    known = generated.provenance.get(kernel)
    launch = next((found for found in generated.launches if found.kernel == kernel), None)
    nodes = known.nodes if known else (launch.nodes if launch else ())
    where = list(explanation.where)
    if launch:
        where.append(("launched", f"{kernel}({', '.join(launch.arguments)})"))
    if nodes:
        where.append(("made from", ", ".join(nodes)))
    if known:
        where += [("your line", line) for line in known.lines]
    return replace(explanation, where=tuple(where), next=_without_hint(explanation.next))


def _without_hint(steps: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(step for step in steps if "--package YOUR_PACKAGE" not in step)


def _dims(sizes: Sequence[Size], generated: Generated, names: Sequence[str]) -> list[tuple[str, str]]:
    rows = []
    for size in sizes:
        rows.append((size.symbol, f"dim {size.dim} of {shown(size.input, generated.inputs, names)}"))
        limits = size.limits
        low = f">= {limits.low}" if limits and limits.low is not None else "no lower bound"
        high = f"<= {limits.high}" if limits and limits.high is not None else "no upper bound"
        rows.append(
            (f"guard on {size.symbol}", f"{low}, {high}; checked only with AOTI_RUNTIME_CHECK_INPUTS=1")
        )
    return rows


def _bounded(
    explanation: Explanation, origin: Origin, bound: Bound, generated: Generated, names: Sequence[str]
) -> Explanation:
    where = [pair for pair in explanation.where if pair[0] != "kernel"]
    where.insert(0, ("kernel", origin.kernel))
    if origin.others:
        where.append(("or kernel", ", ".join(origin.others)))
    if origin.call:
        where.append(("launched", f"{origin.call}, line {origin.line} of the wrapper"))
    if bound.high:
        constant = origin.bound == bound.high and not origin.sizes
        where.append(
            (bound.high, "a constant" if constant and bound.high.isdigit() else f"is {origin.bound}")
        )
    where += _dims(origin.sizes, generated, names)
    held = [shown(name, generated.inputs, names) for name in origin.indices]
    if held:
        where.append(("indices from", ", ".join(held)))
    indexed = shown(origin.indexed, generated.inputs, names) if origin.indexed else ""
    if indexed:
        where.append(("used on", indexed))
    if origin.nodes:
        where.append(("made from", ", ".join(origin.nodes)))
    where += [("your line", line) for line in origin.lines]
    cause, fixes = _cause(origin, bound, held, generated, names)
    next_ = [step for step in _without_hint(explanation.next) if "AOTI_RUNTIME_CHECK_INPUTS" not in step]
    if generated.checks:
        next_.insert(0, f"AOTI_RUNTIME_CHECK_INPUTS=1 {SCRIPT}   # refuses sizes outside the guards, by name")
    if not origin.lines:
        next_.append(
            "compile with inductor_configs={'trace.provenance_tracking_level': 1}   # the package then "
            "knows your lines"
        )
    return replace(explanation, where=tuple(where), cause=cause, fixes=fixes, next=tuple(next_))


def _cause(
    origin: Origin, bound: Bound, held: Sequence[str], generated: Generated, names: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """The likely cause in words, and three ways to fix it."""
    index = held[0] if held else "the tensor with the indices"
    low = bound.low or "0"
    parts = []
    fixes = [f"check or clamp the values of {index}: torch.all((idx >= 0) & (idx < size))"]
    if not bound.low and bound.high:
        parts.append("the check has no lower end, so a negative index passes it: look for those too")
    for size in origin.sizes:
        dim = f"dim {size.dim} of {shown(size.input, generated.inputs, names)}"
        if size.limits is None or size.limits.low is None:
            parts.append(
                f"{dim} has no lower bound: where it is 0 (an empty tensor) every index is out of bounds; "
                "else a value of "
                f"{index} is outside [{low}, {origin.bound})"
            )
            fixes.append(f"export with a lower bound for {dim}: Dim(NAME, min=2, max=...)")
        else:
            parts.append(
                f"a value of {index} is outside [{low}, {origin.bound}), or {dim} is smaller than its "
                "lower bound "
                f"{size.limits.low}, which nothing checks by default"
            )
            fixes.append(
                f"keep {dim} at {size.limits.low} or more: run with AOTI_RUNTIME_CHECK_INPUTS=1 to be told"
            )
    if not origin.sizes:
        parts.append(f"a value of {index} is outside [{low}, {origin.bound or '...'})")
        fixes.append("give the table as many rows as the indices need, and export again")
    fixes.append(
        "if it is an input, keep its dtype as exported: another integer width is read as garbage"
        if any(name in generated.inputs for name in origin.indices)
        else "handle the empty or out-of-range case in the model before the lookup"
    )
    return "; ".join(parts), tuple(fixes[:3])


def _call(
    explanation: Explanation, fact: FailedCall, generated: Generated, names: Sequence[str]
) -> Explanation:
    """A failed call: which of its arguments are inputs, and the node."""
    given = [shown(a.strip(), generated.inputs, names) for a in fact.arguments.split(",")]
    inputs = [text for text in given if text.startswith("input ")]
    known = generated.provenance.get(fact.call)
    where = list(explanation.where)
    if inputs:
        where.append(("inputs among its arguments", ", ".join(inputs)))
    if known:
        where += [("made from", ", ".join(known.nodes)), *(("your line", line) for line in known.lines)]
    return replace(explanation, where=tuple(where))
