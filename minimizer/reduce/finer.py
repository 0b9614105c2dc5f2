"""From composite operators to their parts, and back where the parts are no shorter.

A ``hardswish`` that fails is four calls that fail, of which perhaps one is at fault: a better thing to
report. Whether the parts reduce to no more calls than there were is for the search to find out; otherwise
the composite operator stays.
"""

from __future__ import annotations

from dataclasses import replace

from minimizer.case import Case
from minimizer.program import Program, rename
from minimizer.symbolic import Size


def refined(case: Case, program: Program | None) -> Case | None:
    """The case with a decomposed program, on the same inputs; None when it has no more calls than before.

    The decomposed program comes from an export of its own, which names sizes anew: they get the case's names
    and ranges back.
    """
    before = case.program
    if program is None or program.operator_count <= before.operator_count:
        return None
    if [i.name for i in program.inputs] != [i.name for i in before.inputs]:
        return None
    names: dict[str, Size] = {}
    for new, old in zip(program.inputs, before.inputs, strict=True):
        for theirs, ours in zip(new.meta.shape, old.meta.shape, strict=True):
            if isinstance(theirs, str) and theirs.isidentifier():
                names.setdefault(theirs, ours)
    spoken = {symbol.name: symbol for symbol in before.symbols}
    renamed = rename(program, {}, names)
    symbols = tuple(spoken.get(symbol.name, symbol) for symbol in renamed.symbols)
    return replace(case, program=replace(renamed, symbols=symbols))


def no_larger(case: Case, other: Case) -> bool:
    """Whether a case has no more calls than another, nor as many with more to put in."""

    def size(c: Case) -> tuple[int, int]:
        return c.program.operator_count, len(c.program.inputs) + len(c.program.state)

    return size(case) <= size(other)
