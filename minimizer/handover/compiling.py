"""The statements of a repro that compile the model: export and AOTInductor, or torch.compile.

TORCH_COMPILE_BACKEND chooses: unset, the path on which the failure was found; ``eager``, nothing is compiled;
anything else, torch.compile with that backend.
"""

from __future__ import annotations

import re

from minimizer.handover.examples import example_sizes
from minimizer.handover.needs import Needs
from minimizer.layout import INDENT, WIDTH
from minimizer.program import Program
from minimizer.source import dynamic_shapes_code, literal


def _shapes(program: Program, room: int) -> tuple[list[str], str]:
    """The statements that define the dims, and the argument that hands them to export."""
    dims, spec = dynamic_shapes_code(program)
    if not spec:
        return [], ""
    for line in list(dims):
        name, _, code = line.partition(" = ")
        once, count = re.subn(rf"(?<=: ){name}(?=[,}}])", code, spec)
        if count == 1 and len(once) < 70:
            dims, spec = [d for d in dims if d != line], once
    if not dims and spec.count("Dim") == 1 and len(spec) < 60:
        spec = spec.replace("Dim", "torch.export.Dim")
    if len(spec) > room:
        return [*dims, f"dims = {spec}"], ", dynamic_shapes=dims"
    return dims, f", dynamic_shapes={spec}"


def compile_statements(needs: Needs, depth: int = 1) -> list[str]:
    """The statements that give ``compiled``, to be indented `depth` times."""
    aoti = needs.case.settings.path == "aoti"
    default = "aoti" if aoti else "inductor"
    lines = [f'backend = os.environ.get("TORCH_COMPILE_BACKEND", "{default}")']
    if needs.config:
        pairs = ", ".join(f"{literal(key)}: {literal(value)}" for key, value in needs.config.items())
        lines.append(f"config = {{{pairs}}}")
    options = ", dynamic=True" if needs.program.dynamic_dims else ""
    options += ", options=config" if needs.config else ""
    other = f'compiled = torch.compile({needs.model}, backend=backend{options}, disable=backend == "eager")'
    otherwise = ["else:", INDENT + other]
    if len(INDENT * (depth + aoti) + other) > WIDTH:
        lines.append(f"compiled = {needs.model}")
        other = f"compiled = torch.compile(compiled, backend=backend{options})"
        otherwise = ['elif backend != "eager":' if aoti else 'if backend != "eager":', INDENT + other]
    elif not aoti:
        otherwise = [other]
    if not aoti:
        return [*lines, *otherwise]
    prefix = "" if example_sizes(needs.case) is None else "example_" if needs.has_kwargs else "example"
    example = f"{prefix}args, {prefix}kwargs" if needs.has_kwargs else prefix or "inputs"
    export = f"program = torch.export.export({needs.model}, {example}"
    dims, shapes = _shapes(needs.program, WIDTH - len(INDENT * (depth + 1) + export + ", dynamic_shapes=)"))
    package = ["path = torch._inductor.aoti_compile_and_package(program)"]
    if needs.config:
        package = [
            "package = torch._inductor.aoti_compile_and_package",
            "path = package(program, inductor_configs=config)",
        ]
    body = [*dims, f"{export}{shapes})", *package, "compiled = torch._inductor.aoti_load_package(path)"]
    return [*lines, 'if backend == "aoti":', *(INDENT + line for line in body), *otherwise]
