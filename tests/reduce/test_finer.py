"""Decomposed programs get the case's own sizes back, and count only when there is something to gain."""

from __future__ import annotations

from dataclasses import replace

from builder import Builder

from minimizer.case import Case
from minimizer.program import Program, Symbol, rename
from minimizer.reduce.finer import no_larger, refined

BATCH = Symbol("batch", 2, 64, 8)


def sized(*operators: str) -> Case:
    b = Builder(sizes={"batch": 17}, symbols=(BATCH,))
    return b.case(b.chain(b.input("x", ("batch", 4)), *operators))


def exported(program: Program) -> Program:
    """As an export of its own would name its sizes."""
    renamed = rename(program, {}, {"batch": "s77"})
    return replace(renamed, symbols=(Symbol("s77", 2, None, 8),))


def test_sizes_get_their_names_and_ranges_back() -> None:
    case, parts = sized("hardswish"), sized("add", "clamp", "mul")
    found = refined(case, exported(parts.program))
    assert found is not None
    assert found.program == parts.program
    assert found.values == case.values


def test_what_is_no_finer_is_left_alone() -> None:
    case = sized("gelu")
    assert refined(case, None) is None
    assert refined(case, exported(sized("gelu").program)) is None
    other = sized("add", "mul").program
    assert refined(case, replace(other, inputs=())) is None


def test_fewer_calls_come_first_then_fewer_inputs() -> None:
    assert no_larger(sized("add"), sized("add", "mul"))
    assert not no_larger(sized("add", "mul"), sized("add"))
    b = Builder(sizes={"batch": 17}, symbols=(BATCH,))
    two = b.case(b.call("add", b.input("x", ("batch", 4)), b.input("y", ("batch", 4))))
    assert not no_larger(two, sized("add"))
