"""Repeated steps as loops: what a rolled function computes is what it computed before."""

import random

import pytest

from minimizer.program import Input, Node, Program, Ref, TensorMeta
from minimizer.roll import laid_out, roll


class Term:
    """A value that is known by how it was made."""

    def __init__(self, text):
        self.text = text

    def __add__(self, other):
        return Term(f"({self.text}+{getattr(other, 'text', other)})")

    def __mul__(self, other):
        return Term(f"({self.text}*{getattr(other, 'text', other)})")


def computed(lines, **values):
    """What the function of these lines returns."""
    body = "\n".join(f"    {line}" for line in lines)
    space = {"f": lambda *args, **kw: Term(f"f({','.join(a.text for a in args)}{kw or ''})")}
    exec(f"def function({', '.join(values)}):\n{body}", space)
    result = space["function"](**{name: Term(name) for name in values})
    return [r.text for r in (result if isinstance(result, tuple) else (result,))]


def logistic(turns):
    lines, y = ["y = f(x)"], "y"
    for k in range(turns):
        lines += [f"m{k} = {y} * 3.9", f"s{k} = {y} + 1", f"p{k} = m{k} * s{k}"]
        y = f"p{k}"
    return [*lines, f"return {y}"]


def test_the_lines_of_a_turn_are_written_once():
    assert roll(logistic(40)) == [
        "p39 = f(x)",
        "for _ in range(40):",
        "    m39 = p39 * 3.9",
        "    s39 = p39 + 1",
        "    p39 = m39 * s39",
        "return p39",
    ]


ROLLED = {
    "one line a turn": ["y = f(x)", *(f"y{k} = f(y{k - 1 if k else ''})" for k in range(9)), "return y8"],
    "two lines a turn": logistic(7),
    "what is carried is an input": [*logistic(7)[1:], "return p6"],
    "what is carried is used elsewhere": [*logistic(8)[:-1], "return p7, y"],
    "something that stays": ["w = f(x)", *(f"x{k + 1} = x{k} * w" for k in range(9)), "return x9"],
    "two things carried": [
        *(f"{line}" for k in range(8) for line in (f"a{k + 1} = a{k} + b{k}", f"b{k + 1} = b{k} * 2")),
        "return a8, b8",
    ],
    "two loops": [
        *(f"x{k + 1} = f(x{k})" for k in range(8)),
        *(f"z{k + 1} = z{k} * x8" for k in range(8)),
        "return z8",
    ],
    "keywords": ["y = f(x)", *(f"y{k} = f(y{k - 1 if k else ''}, y=1)" for k in range(9)), "return y8"],
}


@pytest.mark.parametrize("lines", ROLLED.values(), ids=ROLLED.keys())
def test_what_is_computed_stays(lines):
    values = dict.fromkeys(("x", "y", "a0", "b0", "x0", "z0"))
    rolled = roll(lines)
    assert "for _ in range(" in "\n".join(rolled)
    assert len(rolled) < len(lines)
    assert computed(rolled, **values) == computed(lines, **values)


LEFT = {
    "too few turns": logistic(3),
    "a turn in the middle is read later": [*logistic(9)[:-1], "return p8, p4"],
    "something else in the middle": [*logistic(4)[:-1], "q = f(p3)", "r0 = f(q)", "return r0"],
    "another number each time": ["y = f(x)", *(f"y{k + 1} = f(y{k}) * {k}" for k in range(9)), "return y9"],
    "another state each time": [f"y{k + 1} = f(y{k}, self.w{k})" for k in range(9)] + ["return y9"],
    "the one before the one before": ["a0 = f(x)", "a1 = f(a0)"]
    + [f"a{k + 2} = a{k} + a{k + 1}" for k in range(9)]
    + ["return a10"],
    "all of them are read": [*(f"y{k} = f(x)" for k in range(9)), "return y0, y8"],
    "nothing is carried": [*(f"y{k} = f(x)" for k in range(9)), "return y8"],
    "no values are made": ["f(x)"] * 9 + ["return x"],
}


@pytest.mark.parametrize("lines", LEFT.values(), ids=LEFT.keys())
def test_other_lines_are_left(lines):
    assert roll(lines) == lines


def test_what_a_turn_reads_after_it_was_made_anew_is_not_rolled():
    lines = [line for k in range(9) for line in (f"a{k + 1} = f(a{k})", f"b{k + 1} = f(a{k}, b{k})")]
    assert roll([*lines, "return a9, b9"]) == [*lines, "return a9, b9"]


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_compute_the_same(seed):
    draw = random.Random(seed)
    turn, lines, last = draw.randint(1, 4), [], ["x", "y"]
    shapes = [(draw.randrange(2), draw.randrange(3), draw.randrange(3)) for _ in range(turn)]
    for k in range(draw.randint(4, 10)):
        made = []
        for j, (how, a, b) in enumerate(shapes):
            reach = [*last, *made]
            left, right = reach[a % len(reach)], reach[-1 - b % len(reach)]
            lines.append(f"v{k}_{j} = {left} {'+*'[how]} {right}")
            made.append(f"v{k}_{j}")
        last = [*last[-1:], *made][-draw.choice([2, 2, 2, 3]) :]
    lines.append(f"return {last[-1]}, {last[0]}")
    assert computed(roll(lines), x=0, y=0) == computed(lines, x=0, y=0)


def test_the_lines_of_a_turn_are_folded():
    meta = TensorMeta("float32", (4,), (1,))
    names = ["y", *(f"{letter}{k}" for k in range(8) for letter in "msp")]
    nodes = tuple(Node(name, "aten.relu.default", (Ref("x"),), meta=meta) for name in names)
    program = Program((Input("x", meta),), nodes, Ref("p7"))
    laid = laid_out(logistic(8), program)
    assert laid == [
        "p7 = f(x)",
        "for _ in range(8):",
        "    p7 = p7 * 3.9 * (p7 + 1)",
        "return p7",
    ]
    assert computed(laid, x=None) == computed(logistic(8), x=None)


def test_what_is_read_after_a_loop_is_not_folded_away():
    meta = TensorMeta("float32", (4,), (1,))
    lines = [*logistic(8)[:-1], "return p7, m7"]
    names = ["y", *(f"{letter}{k}" for k in range(8) for letter in "msp")]
    nodes = tuple(Node(name, "aten.relu.default", (Ref("x"),), meta=meta) for name in names)
    laid = laid_out(lines, Program((Input("x", meta),), nodes, (Ref("p7"), Ref("m7"))))
    assert "    m7 = p7 * 3.9" in laid
    assert computed(laid, x=None) == computed(lines, x=None)
