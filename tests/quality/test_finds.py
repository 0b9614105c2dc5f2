"""Bugs of many kinds, each a condition on the tensors of a call: found whatever the seed, in so many inputs.

A compiled program with such a bug is stood in for by the condition: it is wrong exactly where that holds. So
nothing is compiled, and every kind of bug costs milliseconds.
"""

from itertools import pairwise, starmap

import pytest

torch = pytest.importorskip("torch")

from minimizer.build import Store, make_tensor  # noqa: E402
from minimizer.fuzz import search  # noqa: E402
from minimizer.input_space import InputSpace  # noqa: E402
from minimizer.oracle.verdict import PASS, Failure, Verdict  # noqa: E402
from minimizer.program import Input, Node, Program, Ref, Symbol, TensorMeta  # noqa: E402

WRONG = Verdict("fail", Failure("wrong_value", "run", flavour="values"))
SEEDS = 10
WIDE, SMALL = Symbol("n", 0, 4096, 8), Symbol("n", 2, 64, 8)
H, W = Symbol("h", 1, 512, 8), Symbol("w", 1, 512, 9)
ANY_H, ANY_W = Symbol("h", 0, None, 8), Symbol("w", 0, None, 9)


def program(*shapes, symbols, nodes=()):
    """Inputs a, b, ... of a dtype and a shape, contiguous; what reads them decides on their roles."""
    inputs = []
    for name, (dtype, *shape) in zip("abcd", shapes):
        strides, step = [], "1"
        for size in reversed(shape):
            strides.insert(0, step)
            step = f"{step}*{size}"
        inputs.append(Input(name, TensorMeta(dtype, tuple(shape), tuple(strides))))
    return Program(tuple(inputs), nodes, (), symbols=symbols)


VECTOR = program(("float32", "n"), symbols=(WIDE,))
NARROW = program(("float32", "n"), symbols=(SMALL,))
MATRIX = program(("float32", "h", "w"), symbols=(H, W))
IMAGE = program(("float32", "h", "w"), symbols=(ANY_H, ANY_W))
LONGS = program(("int64", "n"), symbols=(SMALL,))
BYTES = program(("uint8", "n"), symbols=(SMALL,))
MASKED = program(("float32", "n"), ("bool", "n"), symbols=(SMALL,))
INDEXED = program(
    ("float32", "h", "4"),
    ("int64", "n"),
    symbols=(Symbol("h", 1, 64, 8), SMALL),
    nodes=(Node("y", "aten.embedding.default", (Ref("a"), Ref("b"))),),
)
PAIR = program(("float32", "n"), ("float32", "n"), symbols=(SMALL,))


def n(a, *_):
    return len(a)


BUGS = {
    "one past a multiple of 16": (VECTOR, lambda a: n(a) % 16 == 1 and n(a) > 1, 30),
    "one before a multiple of 32": (VECTOR, lambda a: n(a) % 32 == 31, 60),
    "only some sizes in the middle": (VECTOR, lambda a: 700 <= n(a) < 900, 1500),
    "one size in the middle": (NARROW, lambda a: n(a) == 47, 2500),
    "a kind of height with a kind of width": (
        MATRIX,
        lambda a: a.shape[0] % 4 == 0 and a.shape[1] % 16 == 1,
        60,
    ),
    "two equal sizes": (MATRIX, lambda a: a.shape[0] == a.shape[1] > 1, 30),
    "one size the other and one": (MATRIX, lambda a: a.shape[0] == a.shape[1] + 1, 60),
    "one size twice the other": (MATRIX, lambda a: a.shape[0] == 2 * a.shape[1], 60),
    "both sizes odd and large": (MATRIX, lambda a: min(a.shape) > 64 and a.numel() % 2, 150),
    "enough elements for threads": (IMAGE, lambda a: a.numel() >= 65_536, 60),
    "no columns": (IMAGE, lambda a: a.shape[1] == 0 < a.shape[0], 20),
    "not aligned": (VECTOR, lambda a: a.storage_offset() % 16 != 0 and n(a) >= 8, 60),
    "an odd stride of one row": (MATRIX, lambda a: a.shape[0] == 1 and a.stride(0) != a.shape[1], 60),
    "a negative zero": (NARROW, lambda a: (a.signbit() & (a == 0)).any(), 30),
    "negative zeros only": (NARROW, lambda a: (a.signbit() & (a == 0)).all(), 60),
    "a NaN": (NARROW, lambda a: a.isnan().any(), 30),
    "a NaN at the start": (NARROW, lambda a: a[0].isnan(), 60),
    "a NaN in the tail": (VECTOR, lambda a: n(a) % 16 and a[n(a) // 16 * 16 :].isnan().any(), 60),
    "nothing but NaN": (NARROW, lambda a: a.isnan().all(), 60),
    "a subnormal": (NARROW, lambda a: ((a != 0) & (a.abs() < 1.17549e-38)).any(), 60),
    "finite, and squares that are not": (NARROW, lambda a: (a.abs() > 1e20).any() & a.isfinite().all(), 30),
    "integers that a float cannot tell apart": (NARROW, lambda a: (a.abs() >= 2**24).any(), 30),
    "the smallest integer": (LONGS, lambda a: (a == -(2**63)).any(), 30),
    "just past int32": (LONGS, lambda a: ((a > 2**31 - 1) & (a < 2**33)).any(), 60),
    "all negative": (LONGS, lambda a: (a < 0).all(), 30),
    "all bytes of the upper half": (BYTES, lambda a: (a >= 128).all() and n(a) >= 16, 60),
    "all equal": (NARROW, lambda a: (a == a[0]).all(), 30),
    "ties of the largest": (NARROW, lambda a: (a == a.max()).sum() > 1, 30),
    "long and ascending": (NARROW, lambda a: n(a) >= 16 and (a[1:] > a[:-1]).all(), 400),
    "nothing but halves": (NARROW, lambda a: n(a) > 8 and ((a * 2) % 2 == 1).all(), 250),
    "a mask that is all true": (MASKED, lambda a, m: m.all(), 30),
    "an odd size, all masked": (MASKED, lambda a, m: n(a) % 2 and not m.any(), 60),
    "infinity behind a mask": (MASKED, lambda a, m: (a.isinf() & ~m).any(), 60),
    "the same index twice": (INDEXED, lambda a, i: len(set(i.tolist())) < len(i), 30),
    "all indices different": (INDEXED, lambda a, i: len(set(i.tolist())) == len(i) > 4, 60),
    "all indices the last": (INDEXED, lambda a, i: (i == len(a) - 1).all() and len(a) > 1, 30),
    "a negative index": (INDEXED, lambda a, i: (i < 0).any(), 60),
    "zero by zero": (PAIR, lambda a, b: ((a == 0) & (b == 0)).any(), 30),
    "infinity less infinity": (PAIR, lambda a, b: (a.isinf() & (a == b)).any(), 250),
    "two infinities of opposite signs": (PAIR, lambda a, b: (a.isinf() & (a == -b)).any(), 1500),
    "equal inputs": (PAIR, lambda a, b: (a == b).all(), 30),
    "large beside small": (PAIR, lambda a, b: ((a.abs() > 1e10) & (b.abs() < 1) & (b != 0)).any(), 60),
}
"""The bug: its program, when it shows, and the inputs within which it must be found."""


def after(condition):
    """A bug of a program with state, which is called three times: a condition on two calls in a row."""
    return lambda *calls: any(condition(*one, *two) for one, two in pairwise(calls))


LATER = {
    "a call with another size": (VECTOR, lambda a, b: n(a) != n(b), 10),
    "a smaller call after a larger one": (VECTOR, lambda a, b: n(b) < n(a), 10),
    "a call with an odd size after an even one": (VECTOR, lambda a, b: n(a) % 2 < n(b) % 2, 30),
    "a call after one of nothing": (VECTOR, lambda a, b: n(a) == 0 < n(b), 10),
    "a quieter call after a louder one": (NARROW, lambda a, b: b.abs().max() < a.abs().max() / 100, 60),
    "the same size with other values": (NARROW, lambda a, b: n(a) == n(b) and not a.equal(b), 30),
    "numbers after NaN": (NARROW, lambda a, b: a.isnan().any() and not b.isnan().any(), 60),
}
"""As `BUGS`, on two calls in a row."""


def judging(shows):
    """A judge of the values of calls; `shows` looks at their tensors."""
    store = Store("nowhere")

    def judge(batch):
        verdicts = []
        for calls in batch:
            fails = shows(*([make_tensor(value, store) for value in values] for values in calls))
            verdicts.append(WRONG if fails else PASS)
            if fails:
                break
        return verdicts

    return judge


def found_at(bug, within, shows, *, stateful):
    """For each seed, after how many inputs a search finds it (None: not at all)."""
    space = InputSpace(bug)
    examples = space.values(next(space.opening()))
    opening = 1 + sum(1 for _ in space.opening())
    for seed in range(SEEDS):
        report = search(space, judging(shows), examples, seed=seed, stateful=stateful, most=within)
        yield report.finding and report.finding.tried
        if report.tried <= min(opening, within - 1):
            return  # the opening is the same for every seed


@pytest.mark.parametrize("name", BUGS)
def test_whatever_the_seed(name):
    program_of, condition, within = BUGS[name]
    found = list(found_at(program_of, within, lambda *calls: any(starmap(condition, calls)), stateful=False))
    assert None not in found, found


@pytest.mark.parametrize("name", LATER)
def test_what_only_a_later_call_shows(name):
    program_of, condition, within = LATER[name]
    found = list(found_at(program_of, within, after(condition), stateful=True))
    assert None not in found, found
