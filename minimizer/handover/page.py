"""The report as one HTML page that needs nothing else: pictures inline, light and dark, readable on a phone.

Everything that is shown came out of somebody's model, so the template escapes all of it (jinja2's
autoescape); only the drawings are markup, and they escape what they are given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from minimizer.handover.charts import Tried, reduction_svg, region_svg
from minimizer.handover.evidence import Evidence
from minimizer.handover.graph_picture import graph_svg
from minimizer.handover.record import RunRecord
from minimizer.handover.report import (
    KINDS,
    described_input,
    earlier_calls,
    gist,
    title_line,
    without_noise,
    without_warnings,
)
from minimizer.handover.scrub import scrub
from minimizer.program import Program
from minimizer.region import said

if TYPE_CHECKING:
    import jinja2

_LONGEST = 20_000
"""Characters of a log or a traceback that are shown."""
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\binf\b|\bnan\b|\bTrue\b|\bFalse\b)|dtype=[\w.]+")


@dataclass(frozen=True)
class Piece:
    """A run of text, and whether it is where the two sides differ."""

    text: str
    differs: bool = False


@dataclass(frozen=True)
class Table:
    """A table of the page: its heading, the names of its columns, its rows."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


_TABLES = (
    ("With other settings", "ablation"),
    ("Other ways to export and compile it", "variants"),
    ("Calls outside the contract", "out_of_contract"),
    ("Devices", "devices"),
    ("Where it dies", "debug_tools"),
)
"""Headings and fields of the record that are lists of rows, each with its columns by name."""

_MOST_ROWS = 200


def report_html(evidence: Evidence) -> str:
    """The whole page."""
    record = evidence.record
    program = record.program
    marked = fault_in(evidence.before, program)
    values = sides(without_warnings(record.output))
    return _template().render(
        record=record,
        gist=gist(record),
        title=scrub(title_line(record)),
        what=KINDS.get(record.kind or "", ""),
        facts=list(_facts(record)),
        inputs=[*map(_earlier, earlier_calls(record)), *map(_input, count(), record.failing_input or ())],
        values=values,
        output="" if values else scrub(without_warnings(record.output)[:_LONGEST]),
        where=said(str((record.region or {}).get("predicate") or "")),
        region=region_svg(_tried(record)),
        before=graph_svg(evidence.before, marked) if evidence.before is not None and marked else "",
        after=graph_svg(program) if program is not None and program.nodes else "",
        reduction=reduction_svg(evidence.steps, record.nodes_before),
        judged=len(evidence.steps),
        kernel=dict(record.kernel or {}),
        kernel_lines=list(_kernel_lines(record)),
        detail=scrub(without_noise(record.detail.strip())[-_LONGEST:]),
        commands=list(_commands(record)),
        tables=list(_tables(record)),
        scrub=scrub,
    )


def _template() -> jinja2.Template:
    import jinja2  # late: most commands draw no page

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("minimizer.handover", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja")


def fault_in(before: Program | None, after: Program | None) -> frozenset[str]:
    """Names of the calls of the program before that are left in the reduced one.

    Reduction keeps names, so a name is the same call; where none is left, the operator tells.
    """
    if before is None or after is None:
        return frozenset()
    left = {node.name for node in after.nodes}
    named = frozenset(node.name for node in before.nodes if node.name in left)
    if named:
        return named
    operators = {_operator(node.target) for node in after.operators}
    return frozenset(node.name for node in before.nodes if _operator(node.target) in operators)


def _operator(target: str) -> str:
    """``relu`` for ``aten.relu.default`` and ``torch.relu``."""
    parts = target.split(".")
    return parts[1] if parts[0] == "aten" and len(parts) > 1 else parts[-1]


def sides(output: str) -> tuple[list[Piece], list[Piece]] | None:
    """What a repro printed for eager and for the compiled model, with differing numbers marked.

    None when it printed something else.

    >>> left, right = sides("eager    tensor([1, 2])\\ncompiled tensor([1, 3])")
    >>> [p.text for p in right if p.differs]
    ['3']
    """
    found = re.search(r"^eager +(.*?)^compiled +(.*)\Z", output, re.MULTILINE | re.DOTALL)
    if found is None:
        return None
    left, right = found[1].rstrip()[:_LONGEST], found[2].rstrip()[:_LONGEST]
    theirs, ours = _NUMBER.findall(left), _NUMBER.findall(right)
    if len(theirs) != len(ours):
        return [Piece(scrub(left))], [Piece(scrub(right))]
    differ = [a != b for a, b in zip(theirs, ours)]
    return list(_pieces(left, differ)), list(_pieces(right, differ))


def _pieces(text: str, differ: list[bool]) -> Iterator[Piece]:
    end = 0
    for k, found in enumerate(_NUMBER.finditer(text)):
        if differ[k]:
            yield Piece(scrub(text[end : found.start()]))
            yield Piece(found[0], True)
            end = found.end()
    yield Piece(scrub(text[end:]))


def _facts(record: RunRecord) -> Iterator[tuple[str, str]]:
    """What stands at the top: a label and a value each."""
    if record.kind:
        yield "kind", record.kind.replace("_", " ") + (f", stage {record.stage}" if record.stage else "")
    if record.cause and record.cause != "unknown":
        yield "cause", record.cause
    if record.nodes_before is not None and record.nodes_after is not None:
        yield "reduced", f"{record.nodes_before} → {record.nodes_after} calls"
    elif record.nodes_after is not None:
        yield "program", f"{record.nodes_after} calls"
    found = record.determinism
    if found and found.get("runs") is not None:
        yield "fails", f"{found.get('failures')} of {found['runs']} fresh processes"
    verified = record.repro_verified
    if verified and verified.get("runs") is not None:
        yield "repro.py", f"fails {verified.get('failures')} of {verified['runs']} runs"
    if record.minimal is not None:
        yield "minimal", "yes" if record.minimal else "not proven"
    if record.versions and record.versions.get("torch"):
        yield "torch", record.versions["torch"]


def _earlier(line: str) -> tuple[str, str]:
    what, _, given = line.partition(": ")
    return what, given


def _input(k: int, value: Any) -> tuple[str, str]:
    return f"input {k}", described_input(value)


def _tried(record: RunRecord) -> list[Tried]:
    """The sizes that the region was drawn from (`region.Region` says how they are written)."""
    region = record.region or {}
    symbols = [str(symbol) for symbol in region.get("symbols", ())]
    points = [(point, fails) for fails in (True, False) for point in _points(region, fails)]
    return [(dict(zip(symbols, sizes)), fails) for sizes, fails in points if len(sizes) == len(symbols)]


def _tables(record: RunRecord) -> Iterator[Table]:
    if record.certificate:
        rows = tuple((entry.thing, entry.verdict) for entry in record.certificate)
        yield Table("Minimality", ("taken away", "then"), rows[:_MOST_ROWS])
    for heading, name in _TABLES:
        found = [row for row in getattr(record, name) or () if isinstance(row, Mapping)]
        columns = tuple(dict.fromkeys(column for row in found for column in row))
        if columns:
            cells = tuple(tuple(str(row.get(column, "")) for column in columns) for row in found)
            yield Table(heading, tuple(column.replace("_", " ") for column in columns), cells[:_MOST_ROWS])


def _points(region: Mapping[str, Any], fails: bool) -> Iterator[list[int]]:
    for point in str(region.get("fails" if fails else "passes") or "").split():
        if re.fullmatch(r"\d+(,\d+)*", point):
            yield [int(size) for size in point.split(",")]


def _kernel_lines(record: RunRecord) -> Iterator[tuple[str, bool]]:
    """The lines of the kernel's own script, and whether each is the one at fault."""
    said = str((record.kernel or {}).get("line", ""))
    lit = {re.sub(r"^line \d+: ", "", line).strip() for line in said.splitlines()} - {""}
    for line in record.kernel_repro.splitlines():
        yield line, line.strip() in lit


def _commands(record: RunRecord) -> Iterator[tuple[str, str]]:
    if record.repro:
        yield "python repro.py", "exits 1 while the bug is there"
        yield "TORCH_COMPILE_BACKEND=inductor python repro.py", "the same through torch.compile"
        bisector = "python -m torch._inductor.compiler_bisector run python repro.py"
        yield bisector, "which pass or lowering of Inductor brings it"
    if record.kernel_repro:
        yield "python kernel_repro.py", "the kernel alone"
    if record.neighbour:
        yield "python passing_neighbour.py", f"passes: {scrub(record.neighbour)}"
    if record.command:
        yield scrub(record.command), "how it was found"
