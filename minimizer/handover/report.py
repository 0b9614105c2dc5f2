"""The report as a person would file it: what happens, the repro, the evidence, in the order of an issue form.

It is a draft. Whoever files it should have read it, so it is short where it can be and says plainly what was
measured and how often; whatever is not known has no section.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from minimizer.case import contiguous_stride
from minimizer.handover.record import Certificate, RunRecord
from minimizer.handover.scrub import scrub
from minimizer.program import Program, TensorMeta
from minimizer.region import said

LIMIT = 60_000
"""Characters: an issue on GitHub takes 65,536."""
DRAFT = "> **Draft for a person to read, check and file. Nothing has been sent anywhere.**"
_LONGEST_DETAIL = 6_000
_LONGEST_REPRO = 20_000
_LONGEST_OUTPUT = 3_000
_LARGEST_GRAPH = 60
KINDS = {
    "export_error": "torch.export raises on a model that eager runs",
    "compile_error": "compilation raises on a model that eager runs",
    "cxx_error": "the generated C++ code does not compile",
    "load_error": "the compiled package cannot be loaded",
    "runtime_error": "the compiled model raises where eager does not",
    "spurious_error": "the compiled model raises where eager does not",
    "lost_error": "the compiled model returns where eager raises",
    "missing_check": "the compiled model goes on where the program's own assertion fails",
    "wrong_metadata": "the compiled model returns another dtype, shape or layout than eager",
    "wrong_value": "the compiled model returns other values than eager",
    "lost_mutation": "the compiled model does not update what eager updates",
    "nondeterministic": "the compiled model returns different values from call to call",
    "hang": "the compiled model or its compilation does not end",
    "memory_error": "the compiled model accesses memory that is not its own",
    "crash": "the process dies in the compiled model",
}


def report_markdown(record: RunRecord) -> str:
    """The report as Markdown: under `LIMIT` characters, nothing private in it."""
    repro = _code(_cut(record.repro, _LONGEST_REPRO), "python") if record.repro else ""
    before = [_what_happens(record)]
    after = [
        _section("Failing inputs", _inputs(record)),
        _section("Output of repro.py", _output(record)),
        _section("Error", _error(record)),
        _section("What this means", record.explanation),
        _section("Kernel", _kernel(record)),
        _section("Reduction", _reduction(record)),
        _section("Nearest case that passes", _neighbour(record)),
        _section("Minimality", _table(record.certificate, "taken away", "then")),
        _section("With other settings", _ablation(record)),
        _section("Other ways to export and compile it", _variants(record)),
        _section("Calls outside the contract", _outside(record)),
        _section("Devices", _devices(record)),
        _section("Where it dies", _debug_tools(record)),
        _section("How reliable", _determinism(record)),
        _section("Also seen", "\n".join(f"- {finding}" for finding in record.findings)),
        _section("Versions", _versions(record)),
    ]
    title = scrub(f"# {title_line(record)}")
    # The repro is code that was run and has no path in it: it is quoted to the letter.
    parts = [DRAFT, title, *map(scrub, before), _section("Repro", repro), *map(scrub, after)]
    text = "\n\n".join(part for part in parts if part) + "\n"
    return text if len(text) < LIMIT else text[: LIMIT - 40].rsplit("\n", 1)[0] + "\n\n(cut: too long)\n"


def without_warnings(text: str) -> str:
    """What the script itself printed: warnings and their quoted lines of code are left out."""
    kept: list[str] = []
    skip = False
    for line in text.splitlines():
        if re.search(r"\w*Warning: ", line):
            skip = True
        elif skip and line.startswith("  "):
            skip = False
        else:
            skip = False
            kept.append(line)
    return "\n".join(kept).strip()


def _output(record: RunRecord) -> str:
    text = without_warnings(record.output)
    return _code(_cut(text, _LONGEST_OUTPUT)) if text else ""


def _neighbour(record: RunRecord) -> str:
    if not record.neighbour:
        return ""
    return f"{record.neighbour[0].upper()}{record.neighbour[1:]}. See `passing_neighbour.py`."


def title_line(record: RunRecord) -> str:
    """The report's title: what happens, and in which operators."""
    if record.title:
        return _line(record.title)
    what = KINDS.get(record.kind or "", "failure" if record.kind is None else record.kind.replace("_", " "))
    calls = [node.target.removeprefix("aten.") for node in record.program.operators] if record.program else []
    return f"[AOTInductor] {what}" + (f": {', '.join(dict.fromkeys(calls[:3]))}" if calls else "")


def _line(text: str) -> str:
    return " ".join(text.split())


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body.strip() else ""


def _code(text: str, language: str = "") -> str:
    longest = max((len(ticks) for ticks in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.strip()}\n{fence}"


def _cut(text: str, limit: int) -> str:
    """The first and, mostly, the last lines of a long text."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit // 3].rsplit("\n", 1)[0], text[-(2 * limit) // 3 :].split("\n", 1)[-1]
    return f"{head}\n[...]\n{tail}"


def _what_happens(record: RunRecord) -> str:
    lines = []
    if record.kind:
        what = KINDS.get(record.kind, record.kind.replace("_", " "))
        stage = f", stage {record.stage}" if record.stage else ""
        lines.append(f"{what[0].upper()}{what[1:]} (`{record.kind}`{stage}).")
    if record.figures:
        lines.append(f"{record.figures}.")
    if record.cause and record.cause not in ("compiler", "unknown"):
        lines.append(f"Cause: {record.cause}. {record.blame}".strip())
    if record.message and not record.figures:
        lines.append(f"`{gist(record)[:300].replace('`', chr(39))}`")
    if record.target:
        lines.append(f"Found in `{record.target}`.")
    return _section("What happens", "\n\n".join(lines))


def gist(record: RunRecord) -> str:
    """The error in one line: what the C++ compiler complains of, not the command that it was called with."""
    if record.kind == "cxx_error":
        complaint = re.search(r"\berror: [^\n]+", f"{record.message}\n{record.detail}")
        if complaint:
            return _line(complaint[0])
    return _line(record.message or "")


def _inputs(record: RunRecord) -> str:
    lines = [f"- {line}" for line in record.inputs]
    if not lines:
        for k, value in enumerate(record.failing_input or ()):
            lines.append(f"- input {k}: {described_input(value)}")
    lines += [f"- {line}" for line in earlier_calls(record)]
    region = record.region
    if region and region.get("predicate"):
        counted = ""
        if region.get("sizes_tried") is not None:
            counted = f" ({region.get('sizes_failing')} of {region['sizes_tried']} sizes tried fail)"
        lines += ["", f"Fails at: {said(str(region['predicate']))}{counted}."]
    return "\n".join(lines)


def earlier_calls(record: RunRecord) -> list[str]:
    """A line for each call that has to come before the failing one: what it was given."""
    return [
        f"call {k} before it: {', '.join(map(described_input, call)) or 'no tensors'}"
        for k, call in enumerate(record.earlier_inputs or (), 1)
    ]


def described_input(value: Mapping[str, Any]) -> str:
    """An input of the summary in words: ``float32[17, 64]``."""
    shape = ", ".join(map(str, value.get("shape", ())))
    parts = [f"{value.get('dtype', 'tensor')}[{shape}]"]
    if value.get("stride") is not None and not _is_contiguous(value):
        parts.append(f"strides ({', '.join(map(str, value['stride']))})")
    if value.get("device") not in (None, "cpu"):
        parts.append(f"on {value['device']}")
    return " ".join(parts)


def _is_contiguous(value: Mapping[str, Any]) -> bool:
    shape = tuple(value.get("shape", ()))
    return all(isinstance(size, int) for size in shape) and tuple(value["stride"]) == contiguous_stride(shape)


def _error(record: RunRecord) -> str:
    detail = record.detail.strip()
    if not detail:
        return ""
    return _code(_cut(scrub(without_noise(detail)), _LONGEST_DETAIL))


_FRAME = re.compile(r'^  File "(?P<file>[^"]*)", line \d+, in ')
_PLUMBING = re.compile(r"/contextlib\.py$|/minimizer/\w+/\w+\.py$")
"""Files whose frames say nothing of a failure: context managers, and what called the compiler here."""


def without_noise(traceback: str) -> str:
    """A traceback without underlining, and without the frames that only pass a call on."""
    kept: list[str] = []
    plumbing = False
    for line in traceback.splitlines():
        frame = _FRAME.match(line)
        if frame is not None:
            plumbing = _PLUMBING.search(frame["file"]) is not None
        elif not line.startswith("    "):
            plumbing = False
        if not plumbing and not re.fullmatch(r"\s+[~^]+\s*", line):
            kept.append(line)
    return "\n".join(kept)


def _kernel(record: RunRecord) -> str:
    kernel = record.kernel or {}
    if not kernel:
        return ""
    evidence = scrub(_line(str(kernel.get("evidence", ""))))
    if kernel.get("name"):
        made = ", ".join(f"`{node}`" for node in kernel.get("nodes", ()))
        language = f" ({kernel['language']})" if kernel.get("language") else ""
        parts = [f"`{kernel['name']}`{language}" + (f", made from {made}." if made else ".")]
        parts += [f"{evidence[:1].upper()}{evidence[1:]}."] if evidence else []
    else:
        parts = [f"No kernel is at fault, but: {kernel.get('fault', 'unknown')}. {evidence}."]
    if kernel.get("acquitted"):
        parts.append(f"Right on what they were given: {', '.join(f'`{k}`' for k in kernel['acquitted'])}.")
    if kernel.get("line"):
        parts.append(_code(str(kernel["line"]), "cpp"))
    for text in (kernel.get("sanitizer"), record.native_stack):
        parts += [_code(_cut(scrub(str(text)), _LONGEST_DETAIL // 2))] if text else []
    if record.kernel_repro:
        script = _code(_cut(record.kernel_repro, _LONGEST_REPRO // 2), "python")
        parts.append(_details("The kernel alone: kernel_repro.py", script))
    return "\n\n".join(parts)


def _details(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _reduction(record: RunRecord) -> str:
    parts = []
    if record.nodes_before is not None and record.nodes_after is not None:
        parts.append(f"{record.nodes_before} → {record.nodes_after} nodes")
    if record.dynamic_dims_before is not None and record.dynamic_dims_after is not None:
        parts.append(f"{record.dynamic_dims_before} → {record.dynamic_dims_after} dynamic dims")
    counts = (("candidates", "candidates judged"), ("compiles", "compiles"), ("inputs_tried", "inputs tried"))
    parts += [
        f"{getattr(record, name)} {words}" for name, words in counts if getattr(record, name) is not None
    ]
    if record.wall_seconds is not None:
        parts.append(f"{record.wall_seconds:.0f} s")
    text = " · ".join(parts)
    if record.program is not None and 0 < len(record.program.nodes) <= _LARGEST_GRAPH:
        text += "\n\n" + mermaid(record.program)
    return text


def _table(rows: Sequence[Certificate], left: str, right: str) -> str:
    if not rows:
        return ""
    lines = [f"| {left} | {right} |", "|---|---|"]
    shown = rows[:100]
    lines += [f"| {_cell(row.thing)} | {_cell(row.verdict)} |" for row in shown]
    if len(rows) > len(shown):
        lines.append(f"| and {len(rows) - len(shown)} more | |")
    return "\n".join(lines)


def _debug_tools(record: RunRecord) -> str:
    """What each tool of the debug ladder says of repro.py."""
    lines = ["| rung | command | what it says |", "|---|---|---|"]
    for row in record.debug_tools or ():
        lines.append(f"| {row['rung']} | `{_cell(row['command'])}` | {_cell(row['result'])} |")
    return "\n".join(lines) if record.debug_tools else ""


def _ladder(steps: Sequence[Mapping[str, Any]]) -> str:
    """The failure rate on each rung that was tried."""
    lines = ["| rung | fails | command |", "|---|---|---|"]
    for step in steps:
        rate = f"{step['failures']} of {step['runs']}"
        lines.append(f"| {step['rung']} | {rate} | `{_cell(step['command'])}` |")
    return "\n".join(lines)


def _ablation(record: RunRecord) -> str:
    rows = [Certificate(row["setting"], row["result"]) for row in record.ablation or ()]
    return _table(rows, "setting", "result")


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")[:200]


def _devices(record: RunRecord) -> str:
    rows = []
    for row in record.devices or ():
        loaded = "" if row.get("loaded") == -1 else f", loaded with device index {row.get('loaded')}"
        kept = "" if row.get("kept") else "**"
        where = f"{row.get('compiled')} package{loaded}, {row.get('inputs')} inputs"
        rows.append(Certificate(where, f"{kept}{row.get('outcome')}{kept}"))
    return _table(rows, "compiled, loaded, fed", "what it does (bold: neither right nor refused)")


def _variants(record: RunRecord) -> str:
    rows = [
        Certificate(str(row.get("variant")), f"{row.get('outcome')} ({row.get('inputs')} inputs)")
        for row in record.variants or ()
    ]
    return _table(rows, "variant", "result")


def _outside(record: RunRecord) -> str:
    rows = record.out_of_contract or ()
    if not rows:
        return ""
    lines = [
        "Each call breaks the contract by one step. What becomes of it is no failure of the compiler.",
        "",
        "| call | without checks | AOTI_RUNTIME_CHECK_INPUTS=1 | said |",
        "|---|---|---|---|",
    ]
    for row in rows:
        cells = (row.get(name, "") for name in ("violation", "unchecked", "checked", "said"))
        lines.append(f"| {' | '.join(_cell(str(cell)) for cell in cells)} |")
    lines += ["", "A refusal is clear when it names a wrong input and says what was expected and what came."]
    return "\n".join(lines)


def _determinism(record: RunRecord) -> str:
    lines = []
    found = record.determinism
    if found and found.get("runs") is not None:
        plain = found.get("rung") in (None, "", "as it is")
        rung = "" if plain else f" ({found['rung']})"
        lines.append(f"Fails in {found.get('failures')} of {found['runs']} fresh processes{rung}.")
    if found and found.get("confidence") is not None:
        sure, often, seldom = (f"{100 * found[key]:g} %" for key in ("confidence", "often", "seldom"))
        lines.append(
            f"While reducing, each candidate was run until it was {sure} sure that it fails in {often} of "
            f"runs or more, or else in {seldom} or fewer."
        )
    if found and found.get("ladder"):
        lines.append(_ladder(found["ladder"]))
    verified = record.repro_verified
    if verified and verified.get("runs") is not None:
        lines.append(f"`repro.py` fails in {verified.get('failures')} of {verified['runs']} runs of its own.")
    if record.command:
        lines.append(f"Found by `{record.command}`.")
    return "\n\n".join(lines)


def _versions(record: RunRecord) -> str:
    """The lines of collect_env, as the form asks for; what the run itself noted where there are none."""
    noted = "\n".join(f"{name}: {value}" for name, value in (record.versions or {}).items())
    text = record.environment or noted
    return _code(text) if text else ""


def mermaid(program: Program) -> str:
    """The graph as a Mermaid block: inputs, state, calls, outputs, with shapes on the edges.

    GitHub draws it in place.
    """
    ids = {record: f"n{k}" for k, record in enumerate(_names(program))}
    lines = ["```mermaid", "flowchart TD"]
    lines += [f'    {ids[i.name]}(["{_label(i.name)}: {_meta(i.meta)}"])' for i in program.inputs]
    lines += [f'    {ids[s.name]}[("{_label(s.name)}: {_meta(s.meta)}")]' for s in program.state]
    lines += [f'    {ids[n.name]}["{_label(n.target)}"]' for n in program.nodes]
    lines.append('    out(["output"])')
    for node in program.nodes:
        lines += [f"    {_edge(program, name, ids)} {ids[node.name]}" for name in node.inputs if name in ids]
    lines += [f"    {_edge(program, name, ids)} out" for name in program.outputs if name in ids]
    return "\n".join([*lines, "```"])


def _names(program: Program) -> Iterable[str]:
    return (
        *(i.name for i in program.inputs),
        *(s.name for s in program.state),
        *(n.name for n in program.nodes),
    )


def _edge(program: Program, name: str, ids: Mapping[str, str]) -> str:
    meta = program.meta_of(name)
    known = isinstance(meta, TensorMeta) and any(n.name == name for n in program.nodes)
    return f'{ids[name]} -->|"{_meta(meta)}"|' if known else f"{ids[name]} -->"


def _meta(meta: TensorMeta) -> str:
    return f"{meta.dtype}({', '.join(str(size) for size in meta.shape)})"


def _label(text: str) -> str:
    return re.sub(r"[^\w. +*/()-]", "_", text).removesuffix(".default")
