"""The statements of a repro that compile the model: export and AOTInductor, or torch.compile.

TORCH_COMPILE_BACKEND chooses: unset, the path on which the failure was found; else torch.compile with that
backend. Its own ``eager`` backend generates no code; where there is room it is not even traced.
"""

from __future__ import annotations

import re

from minimizer.handover.examples import example_sizes
from minimizer.handover.needs import LOCALS, Needs
from minimizer.layout import INDENT, WIDTH
from minimizer.program import Program
from minimizer.source import dynamic_shapes_code, literal


def _shapes(program: Program, room: int) -> tuple[list[str], str]:
    """The statements that define the dims, and the argument that hands them to export."""
    dims, spec = dynamic_shapes_code(program)
    if not spec:
        return [], ""
    lines = []
    for line in dims:
        name, _, code = line.partition(" = ")
        code = f"torch.export.{code}"
        once, count = re.subn(rf"(?<=: ){name}(?=[,}}])", code, spec)
        if count == 1 and len(once) < 70:
            spec = once
            continue
        variable = f"{name}_dim" if name in LOCALS else name
        spec = re.sub(rf"(?<![\w.\"]){name}\b(?!\")", variable, spec)
        lines.append(f"{variable} = {code}")
    spec = re.sub(r"(?<![\w.])Dim\.", "torch.export.Dim.", spec)
    if len(spec) > room:
        return [*lines, f"dims = {spec}"], ", dynamic_shapes=dims"
    return lines, f", dynamic_shapes={spec}"


def compile_statements(needs: Needs, depth: int = 1) -> list[str]:
    """The statements that give ``compiled``, to be indented `depth` times."""
    aoti = needs.case.settings.path == "aoti"
    default = "aoti" if aoti else "inductor"
    chosen = f'os.environ.get("TORCH_COMPILE_BACKEND", "{default}")'
    lines = []
    if needs.config:
        pairs = ", ".join(f"{literal(key)}: {literal(value)}" for key, value in needs.config.items())
        lines.append(f"config = {{{pairs}}}")
    options = ", dynamic=True" if needs.program.dynamic_dims else ""
    options += ", options=config" if needs.config else ""
    room = WIDTH - len(INDENT * (depth + aoti))
    traced = f"torch.compile({needs.model}, backend=backend{options})"
    forms = [f'{traced[:-1]}, disable=backend == "eager")', traced]
    # Where AOTInductor itself raises there is no compiled program to name.
    forms = [needs.call(form, copies=False) if needs.compile_only else f"compiled = {form}" for form in forms]
    otherwise = next((form for form in forms if len(form) <= room), forms[-1])
    if not aoti:
        return [f"backend = {chosen}", *lines, otherwise]
    prefix = "" if example_sizes(needs.case) is None else "example_" if needs.has_kwargs else "example"
    example = f"{prefix}args, {prefix}kwargs" if needs.has_kwargs else prefix or needs.inputs_name
    export = f"program = torch.export.export({needs.model}, {example}"
    dims, shapes = _shapes(needs.program, WIDTH - len(INDENT * (depth + 1) + export + ", dynamic_shapes=)"))
    package = ["path = torch._inductor.aoti_compile_and_package(program)"]
    if needs.config:
        package = [
            "package = torch._inductor.aoti_compile_and_package",
            "path = package(program, inductor_configs=config)",
        ]
    if needs.compile_only:
        package[-1] = package[-1].removeprefix("path = ")
    else:
        package.append("compiled = torch._inductor.aoti_load_package(path)")
    body = [*dims, f"{export}{shapes})", *package]
    choice = f'if (backend := {chosen}) == "aoti":'
    return [*lines, choice, *(INDENT + line for line in body), "else:", INDENT + otherwise]
