"""What reductions end in and what they cost, judged by lambdas instead of compilers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from builder import Builder, check, in_order, meta, needs, targets
from hypothesis import given, settings
from hypothesis import strategies as st

from minimizer.case import Case
from minimizer.program import Ref, Sym, Symbol
from minimizer.reduce.journal import FileJournal, Journal, MemoryJournal
from minimizer.reduce.minimality import certificate
from minimizer.reduce.search import Hint, Reduction, reduce

BATCH = Symbol("s0", 2, 64, 4)


def chain(length: int, special: dict[int, str]) -> tuple[Builder, Case]:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    x = b.input("x", ("s0", 8))
    for k in range(length):
        x = b.call(special.get(k, f"op{k}"), x)
    return b, b.case(x)


def run(
    b: Builder,
    case: Case,
    judge: Callable[[Case], bool],
    journal: Journal | None = None,
    hints: Iterable[Hint] = (),
) -> Reduction:
    def checked(candidate: Case) -> bool:
        check(candidate)
        return judge(candidate)

    assert judge(case)
    result = reduce(case, b.observed(), checked, journal=journal, hints=hints)
    assert judge(result.case)
    return result


@pytest.mark.parametrize(
    ("length", "special", "at_most"),
    [
        (400, {123: "relu"}, 25),
        (400, {0: "relu"}, 25),
        (400, {399: "relu"}, 25),
        (200, {20: "relu", 150: "exp"}, 45),
        (200, {20: "relu", 21: "exp"}, 45),
        (200, {20: "relu", 90: "neg", 150: "exp"}, 70),
        (400, {5: "a", 6: "b", 7: "c", 300: "d", 301: "e"}, 100),
    ],
)
def test_needed_calls_of_a_chain_cost_a_logarithm_each(
    length: int, special: dict[int, str], at_most: int
) -> None:
    b, case = chain(length, special)
    result = run(b, case, in_order(*special.values()))
    assert targets(result.case) == list(special.values())
    assert result.complete
    assert result.judged <= at_most


def test_dynamic_dims_survive() -> None:
    b, case = chain(40, {20: "relu"})
    result = run(b, case, lambda c: "relu" in targets(c) and c.program.dynamic_dims > 0)
    assert result.case.program.inputs[0].meta.shape == ("s0", 1)
    assert result.case.program.symbols == (Symbol("s0", 2, 64, hint=2),)


def test_a_bypass_joins_what_a_cut_would_part() -> None:
    b, case = chain(5, {0: "relu", 4: "exp"})

    def joined(c: Case) -> bool:
        made = {n.name for n in c.program.nodes if n.target == "aten.relu.default"}
        reach = set(made)
        for n in c.program.nodes:
            if reach & set(n.inputs):
                reach.add(n.name)
        return any(n.target == "aten.exp.default" and n.name in reach for n in c.program.nodes)

    result = run(b, case, joined)
    assert targets(result.case) == ["relu", "exp"]
    relu, exp = result.case.program.nodes
    assert exp.args == (Ref(relu.name),)


def test_a_resumed_search_judges_nothing_again(tmp_path: Path) -> None:
    b, case = chain(100, {20: "relu", 70: "exp"})
    judge = needs("relu", "exp")
    first = run(b, case, judge, journal=FileJournal(tmp_path / "journal.jsonl"))
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write('{"key": "torn')
    second = run(b, case, judge, journal=FileJournal(tmp_path / "journal.jsonl"))
    assert (second.case, second.judged) == (first.case, 0)


def test_a_journal_keeps_notes_beside_verdicts(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal.jsonl")
    journal.record("a", True, nodes=3)
    journal.note("start", {"names": ["a"]})
    again = FileJournal(tmp_path / "journal.jsonl")
    assert (again.known("a"), again.noted("start")) == (True, {"names": ["a"]})
    assert (again.known("start"), again.noted("a")) == (None, None)


def test_an_interrupted_search_goes_on_where_it_stopped() -> None:
    b, case = chain(100, {20: "relu", 70: "exp"})
    journal = MemoryJournal()
    whole = run(b, case, needs("relu", "exp"))

    def interrupted(c: Case) -> bool:
        if len(journal) == 7:
            raise KeyboardInterrupt
        return needs("relu", "exp")(c)

    part = reduce(case, b.observed(), interrupted, journal=journal)
    assert not part.complete
    assert part.case.program.operator_count < 100
    rest = run(b, case, needs("relu", "exp"), journal=journal)
    assert rest.case == whole.case
    assert part.judged + rest.judged == whole.judged


class Bench:
    """Judges side by side; counts what it judged, and how often it was asked."""

    def __init__(self, judge: Callable[[Case], bool]) -> None:
        self.judge = judge
        self.keys: list[str] = []
        self.batches: list[int] = []

    def one(self, case: Case) -> bool:
        return self.many([case])[0]

    def many(self, cases: Sequence[Case]) -> list[bool]:
        self.keys += [case.key for case in cases]
        self.batches.append(len(cases))
        return [self.judge(case) for case in cases]


@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("special", [{20: "relu"}, {20: "relu", 70: "exp"}, dict(enumerate("abcdefgh", 30))])
def test_side_by_side_the_result_is_the_same(width: int, special: dict[int, str]) -> None:
    b, case = chain(100, special)
    serial, wide = (Bench(in_order(*special.values())) for _ in range(2))
    alone = reduce(case, b.observed(), serial.one)
    beside = reduce(case, b.observed(), wide.one, many=wide.many, width=width)
    assert (beside.case, beside.judged, beside.accepted) == (alone.case, alone.judged, alone.accepted)
    assert set(serial.keys) <= set(wide.keys)
    assert len(wide.keys) == len(set(wide.keys)), "nothing is judged twice"
    assert len(wide.keys) <= 1.1 * len(serial.keys)
    assert len(special) < 8 or len(wide.batches) <= 0.9 * len(serial.batches)


def test_side_by_side_a_certificate_takes_half_as_long() -> None:
    b, case = chain(12, {})
    everything = [n.target.split(".")[1] for n in case.program.nodes]
    serial, wide = Bench(needs(*everything)), Bench(needs(*everything))
    alone = certificate(case, b.observed(), serial.one)
    beside = certificate(case, b.observed(), wide.one, many=wide.many, width=2)
    assert beside == alone
    assert sorted(wide.keys) == sorted(serial.keys)
    assert len(wide.batches) == (len(serial.batches) + 1) // 2


def test_a_case_that_is_not_admitted_is_not_judged() -> None:
    b, case = chain(6, {2: "relu"})
    bench = Bench(needs("relu"))
    result = reduce(case, b.observed(), bench.one, admit=lambda c: c.program.operator_count > 2)
    assert result.case.program.operator_count == 3
    assert result.judged == len(bench.keys)


def test_a_deadline_ends_the_search_with_the_best_so_far() -> None:
    b, case = chain(100, {50: "relu"})
    left = iter(range(3))
    result = reduce(case, b.observed(), needs("relu"), deadline=lambda: next(left, None) is None)
    assert not result.complete
    assert result.judged == 3
    assert "relu" in targets(result.case)


def test_a_hint_is_tried_first() -> None:
    b, case = chain(400, {123: "relu"})
    result = run(b, case, needs("relu"), hints=[{"op5_5"}, {"relu_123"}])
    assert targets(result.case) == ["relu"]
    assert result.judged <= 2 + 3, "the hints, the size, the example's size and the static one"


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_nothing_that_could_be_spared_is_left(data: st.DataObject) -> None:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    values = [b.input("x", ("s0", 8)), b.input("y", ("s0", 8)), b.parameter("w", ("s0", 8))]
    count = data.draw(st.integers(1, 30))
    for k in range(count):
        operands = data.draw(st.lists(st.sampled_from(values[-8:]), min_size=1, max_size=3))
        values.append(b.call(f"op{k}", *operands))
    returned = data.draw(st.lists(st.sampled_from(values[3:]), min_size=1, max_size=3, unique=True))
    case = b.case(tuple(returned))
    wanted = data.draw(st.sets(st.sampled_from([f"op{k}" for k in range(count)]), min_size=1, max_size=4))
    result = run(b, case, needs(*wanted))
    assert sorted(targets(result.case)) == sorted(wanted)
    assert result.complete


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_candidates_are_well_formed_whatever_the_shapes(data: st.DataObject) -> None:
    """Views, mutations, several outputs per call, three symbols: every candidate is checked."""
    b = Builder(sizes={"s0": 17, "s1": 5, "u0": 3}, symbols=(BATCH, Symbol("s1", 0, None, 6)))
    values = [b.input("x", ("s0", 8)), b.input("y", ("s0", "s1")), b.input("z", ("s0 + 1", "2*s1"))]
    values.append(b.parameter("w", (8, 8)))
    dims: list[tuple[Any, ...]] = [("s0", 8), ("8*s0",), ("s0*s1", 2), ("4*s0", "s1"), ("u0", "s0"), (3,)]
    count = data.draw(st.integers(1, 20))
    for k in range(count):
        operands = data.draw(st.lists(st.sampled_from(values[-6:]), min_size=1, max_size=2))
        match data.draw(st.sampled_from(["same", "view", "pair", "fill_", "size"])):
            case "same":
                values.append(b.call(f"op{k}", *operands))
            case "view":
                shape = data.draw(st.sampled_from(dims))
                sizes = [Sym(s) if isinstance(s, str) and "u" not in s else s for s in shape if s != "u0"]
                values.append(b.call(f"op{k}", *operands, sizes, shape=shape))
            case "pair":
                shapes = data.draw(st.lists(st.sampled_from(dims), min_size=2, max_size=2))
                pair = b.call(f"op{k}", *operands, shape=tuple(map(meta, shapes)))
                values += [b.call("operator.getitem", pair, n, shape=shapes[n]) for n in (0, 1)]
            case "fill_":
                values.append(b.call(f"op{k}", operands[0], 0.5, mutates=(0,)))
            case "size":
                values.append(
                    b.call(f"op{k}", operands[0], Sym(data.draw(st.sampled_from(["s0", "s1 + 1"]))))
                )
    calls = [v for v in values if v.name not in "xyzw"]
    returned = data.draw(st.lists(st.sampled_from(calls), min_size=1, max_size=3, unique=True))
    case = b.case([tuple(returned)])
    wanted = data.draw(st.sets(st.sampled_from([f"op{k}" for k in range(count)]), min_size=1, max_size=3))
    result = run(b, case, needs(*wanted))
    assert set(targets(result.case)) == wanted
    assert certificate(result.case, b.observed(), needs(*wanted)).minimal


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 25), st.integers(2, 5), st.randoms(use_true_random=False))
def test_an_erratic_judge_still_gets_a_minimal_case(length: int, share: int, random: Random) -> None:
    """Nothing is assumed of the judge but that it answers the same question alike."""
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    values = [b.input("x", ("s0", 8)), b.input("y", ("s0", 8))]
    for k in range(length):
        values.append(b.call(f"op{k}", *random.choices(values[-6:], k=random.choice((1, 2)))))
    case = b.case(tuple(values[-2:]))

    def judge(c: Case) -> bool:
        return c == case or int(c.key, 16) % share == 0

    result = run(b, case, judge)
    proof = certificate(result.case, b.observed(), judge)
    assert result.complete
    assert proof.complete
    assert proof.minimal
