"""How much there is to judge as programs grow: a logarithm of their length, whatever their shape."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from random import Random

import pytest
from builder import Builder, check, needs, targets

from minimizer.case import Case
from minimizer.program import Ref, Symbol
from minimizer.reduce.search import reduce

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import bench_growth

BATCH = Symbol("s0", 2, 64, 4)


@pytest.mark.parametrize("needed", [1, 2])
def test_growth_is_logarithmic(needed: int) -> None:
    counts = {}
    for length in (50, 800):
        counts[length], exact = bench_growth.judged(length, needed)
        assert exact
    per_doubling = (counts[800] - counts[50]) / math.log2(800 / 50)
    assert per_doubling <= 3 * needed
    assert counts[50] <= 15 * needed


def tangle(length: int, special: dict[int, str], seed: int) -> tuple[Builder, Case]:
    """A random graph: calls with one or two operands among the last few values, several outputs."""
    random = Random(seed)
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    values: list[Ref] = [b.input("x", ("s0", 8)), b.input("y", ("s0", 8)), b.parameter("w", ("s0", 8))]
    for k in range(length):
        values.append(b.call(special.get(k, f"op{k}"), *random.choices(values[-7:], k=random.choice((1, 2)))))
    return b, b.case(tuple(values[-3:]))


@pytest.mark.parametrize("idle", [20, 60, 200])
@pytest.mark.parametrize("needed", [2, 3])
def test_calls_far_apart_are_found_exactly(idle: int, needed: int) -> None:
    for seed in range(3 if idle < 200 else 1):
        places = Random(seed).sample(range(idle), needed)
        special = {place: f"needed{k}" for k, place in enumerate(sorted(places))}
        b, case = tangle(idle + needed, special, seed)
        wanted = list(special.values())
        result = reduce(case, b.observed(), needs(*wanted))
        check(result.case)
        assert targets(result.case) == wanted
        assert result.complete
        assert result.judged <= needed * (12 + 5 * math.log2(idle))


@pytest.mark.parametrize("length", [50, 400, 2000])
def test_a_hint_makes_the_length_irrelevant(length: int) -> None:
    case, wanted, seen = bench_growth.chain(length, 1)
    (name,) = (n.name for n in case.program.nodes if n.target == wanted[0])

    def judge(c: Case) -> bool:
        return any(n.target == wanted[0] for n in c.program.nodes)

    result = reduce(case, seen, judge, hints=[{name}])
    assert [n.target for n in result.case.program.nodes] == wanted
    assert result.judged <= 5
