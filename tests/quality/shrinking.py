"""What a bug shrinks to, as text: the forward method, then one line for each input and setting."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from minimizer.case import Case, Literal
from minimizer.program import rename
from minimizer.reduce.cut import Observations
from minimizer.reduce.minimality import certificate
from minimizer.reduce.search import reduce
from minimizer.source import module_source
from strategies.values import Fill

Bug = Callable[[Case], bool]


def shown(case: Case) -> str:
    """A case as the table writes it, values named by position.

    A dynamic dim is written as its symbol with the failing size: ``x: float32[s0=2, 1] zeros``.
    """
    names = {i.name: "xyz"[k] for k, i in enumerate(case.program.inputs)}
    names |= {s.name: f"w{k}" for k, s in enumerate(case.program.state)}
    names |= {n.name: f"t{k}" for k, n in enumerate(case.program.nodes)}
    program = rename(case.program, names, {})
    state = {s.name: f"<{s.kind}>" for s in program.state}
    lines = module_source(program, state).splitlines()
    start = next(k for k, line in enumerate(lines) if "def forward" in line)
    text = [textwrap.dedent("\n".join(lines[start:])).rstrip()]
    for s in program.state:
        text.append(f"self.{s.name}: {s.kind} {s.meta.dtype}{list(s.meta.shape)}")
    for i, value in zip(program.inputs, case.values, strict=True):
        pairs = zip(i.meta.shape, value.shape, strict=True)
        dims = ", ".join(f"{size}={n}" if isinstance(size, str) else str(n) for size, n in pairs)
        data = value.data
        listed = list(data.elements) if isinstance(data, Literal) else "as stored"
        fill = data.kind if isinstance(data, Fill) else listed
        text.append(f"{i.name}: {value.dtype}[{dims}] {fill}")
    text += [f"{key} = {value}" for key, value in case.settings.config]
    text += [f"after {len(case.earlier)} other calls"] if case.earlier else []
    return "\n".join(text)


def shrunk(case: Case, observed: Observations, bug: Bug) -> str:
    """What the bug shrinks to; checks that it is a bug of the whole case, and that nothing can be spared."""
    assert bug(case)
    result = reduce(case, observed, bug)
    assert bug(result.case)
    assert result.complete
    assert certificate(result.case, observed, bug).minimal
    return shown(result.case)
