"""Known predicates come back from judged sizes, and nothing is claimed that a size contradicts."""

import random
from itertools import product

import pytest

from minimizer.probing import doubts, probe_sizes
from minimizer.region import Region, find_region, said
from strategies import Symbol, sweep

N = Symbol("n", 0, 300, hint=8)
NARROW = Symbol("n", 2, 64, hint=8)
ANY = Symbol("n", 0, None, hint=8)
H, W = Symbol("h", 0, None, hint=8), Symbol("w", 0, None, hint=9)
SMALL_H, SMALL_W = Symbol("h", 1, 20, hint=8), Symbol("w", 1, 20, hint=9)
C = Symbol("c", 1, 512, hint=3)


def judged(symbols, truth, budget=400):
    failing = next(sizes for sizes in sweep(symbols) if eval(truth, {}, dict(sizes)))
    probes = probe_sizes(symbols, failing, budget)
    return [(sizes, bool(eval(truth, {}, dict(sizes)))) for sizes in probes]


@pytest.mark.parametrize(
    ("symbols", "truth", "predicate"),
    [
        ([N], "True", "True"),
        ([N], "n == 0", "n == 0"),
        ([ANY], "n == 0", "n == 0"),
        ([N], "n >= 17", "n > 16"),
        ([N], "n >= 23", "n >= 23"),
        ([N], "n > 128", "n > 128"),
        ([ANY], "n > 128", "n > 128"),
        ([N], "n < 100", "n < 100"),
        ([ANY], "n != 8", "n != 8"),
        ([N], "n % 2 == 1", "n % 2 == 1"),
        ([NARROW], "n % 16 != 0", "n % 16 != 0"),
        ([N], "n % 7 == 3", "n % 7 == 3"),
        ([ANY], "17 <= n <= 40", "16 < n <= 40"),
        ([ANY], "n > 128 and n % 16 != 0", "n > 128 and n % 16 != 0"),
        ([ANY], "n > 16 and n < 1024 and n % 16 != 0", "16 < n < 1024 and n % 16 != 0"),
        ([ANY], "n == 0 or n % 32 == 31", "n == 0 or n % 32 == 31"),
        ([H, W], "h != 8 or w != 9", "h != 8 or w != 9"),
        ([SMALL_H, SMALL_W], "h != 8 or w != 9", "h != 8 or w != 9"),
        ([H, W], "h != w", "h != w"),
        ([H, W], "h > w", "h > w"),
        ([SMALL_H, SMALL_W], "h > w", "h > w"),
        ([H, W], "h < w", "w > h"),
        ([H, W], "h % 3 != 0", "h % 3 != 0"),
        ([SMALL_H, SMALL_W], "h % w != 0", "h % w != 0"),
        ([H, W], "w != 0 and h % w != 0", "w != 0 and h % w != 0"),
        ([H, W], "h > 16 and w > 16", "h > 16 and w > 16"),
        ([H, W], "h == 0 or w == 0", "h * w == 0"),
        ([H, W], "(h * w) % 16 != 0", "(h * w) % 16 != 0"),
        ([H, W, C], "h > w and c % 32 != 0", "h > w and c % 32 != 0"),
    ],
)
def test_regions_are_recovered(symbols, truth, predicate):
    points = judged(symbols, truth)
    region = find_region(points, symbols)
    assert region == Region(predicate, len(points), sum(fails for _, fails in points))


@pytest.mark.parametrize(
    ("symbols", "truth"),
    [([ANY], "n > 777"), ([ANY], "n % 100 > 50"), ([H, W], "h * w > 1000"), ([H, W], "h > 2 * w")],
)
def test_no_judged_size_contradicts_the_region(symbols, truth):
    points = judged(symbols, truth)
    region = find_region(points, symbols)
    if region is not None:
        assert all(bool(eval(region.predicate, {}, dict(sizes))) == fails for sizes, fails in points)


def test_a_gap_between_tried_sizes_is_not_claimed():
    points = [({"n": size}, size >= 200) for size in (8, 100, 200, 300)]
    assert find_region(points, [N]).predicate == "n >= 200"


def test_without_failures_there_is_no_region():
    assert find_region([({"n": 3}, False)], [N]) is None
    assert find_region([], [N]) is None


def test_what_the_language_cannot_say_is_not_said():
    points = [({"n": size}, size in (3, 17, 90, 91, 200)) for size in range(301)]
    assert find_region(points, [N]) is None


def test_a_size_judged_twice_fails_if_it_ever_did():
    points = [({"n": 3}, False), ({"n": 3}, True), ({"n": 2}, False)]
    assert find_region(points, [N]) == Region("n == 3", sizes_tried=2, sizes_failing=1)


def test_a_static_program_fails_everywhere():
    assert find_region([({}, True)], []) == Region("True", 1, 1)


def test_every_symbol_needs_a_size():
    with pytest.raises(ValueError, match="say nothing about w"):
        find_region([({"h": 3}, True)], [H, W])


def test_regions_speak():
    assert Region("True", 63, 63).in_words() == "every size (63 of 63 sizes tried fail)"
    assert (said("True"), said("n > 8")) == ("every size", "n > 8")


def test_a_small_grid_is_probed_whole():
    probes = list(probe_sizes([SMALL_H, SMALL_W], {"h": 3, "w": 5}, budget=400))
    assert {tuple(sizes.values()) for sizes in probes} == {(h, w) for h in range(1, 21) for w in range(1, 21)}
    assert len(probes) == 400


def test_a_large_grid_is_probed_within_the_budget():
    probes = list(probe_sizes([H, W], {"h": 100, "w": 200}, budget=300))
    points = {tuple(sizes.values()) for sizes in probes}
    assert len(probes) == len(points) == 300
    assert probes[0] == {"h": 100, "w": 200}
    assert {(8, 9), (0, 9), (8, 0), (101, 200), (100, 201), (0, 200), (100, 0)} <= points
    assert all(0 <= size <= 4096 for point in points for size in point)


def test_probes_are_the_same_every_time_and_keep_to_what_fits():
    def ask():
        return list(
            probe_sizes([H, W], {"h": 10, "w": 20}, 100, fits=lambda sizes: sizes["h"] * sizes["w"] < 999)
        )

    assert ask() == ask()
    assert all(sizes["h"] * sizes["w"] < 999 for sizes in ask())


def test_a_static_program_has_one_size_to_probe():
    assert list(probe_sizes([], {}, budget=10)) == [{}]


LONG, SHORT = Symbol("n", 0, 600, 8), Symbol("n", 2, 64, 8)
PAIR = (Symbol("h", 0, 40, 8), Symbol("w", 0, 40, 9))
TRUTHS = [
    (symbols, truth)
    for symbols, truths in (
        (
            (LONG,),
            """n == 0|n < 2|n != 8|n > 128|n >= 17|n % 16 != 0|n % 2 == 1|n % 4 == 3|n > 8 and n % 8 != 0
            n == 0 or n > 64|16 <= n < 32|n == 1 or n == 7|n % 3 == 0 and n > 9|n * n > 1000|n == 17|n == 100
            n >= 16 and n % 16 >= 8|n % 64 == 1|n > 32 and n % 32 != 0""",
        ),
        ((SHORT,), "n != 8|n >= 17|n % 16 != 0|n % 4 == 3|16 <= n < 32|n == 17|n % 16 >= 8"),
        (
            PAIR,
            """h != w|h == w|h > w|h * w > 512|h * w % 16 != 0|h * w == 0|h == 0 or w == 0|h + w > 40
            h % 2 == 1 and w % 2 == 1|h != 8 or w != 9|h >= 16|w == 1|h == 0 and w > 3|h < 4 and w >= 16
            h % 16 != 0 and w > 2|h * w >= 1000|h == 2 * w|w > 2 * h|h == w + 1|h + w == 17
            w % 2 == 1 and h * w > 128""",
        ),
    )
    for truth in (part.strip() for line in truths.splitlines() for part in line.split("|"))
]


@pytest.mark.parametrize(("symbols", "truth"), TRUTHS, ids=[f"{t} of {len(s)}" for s, t in TRUTHS])
def test_regions_are_exact_on_the_whole_grid(symbols, truth):
    """Found from the sizes that a run would judge, checked on every size that there is."""
    names = [symbol.name for symbol in symbols]
    grid = [
        dict(zip(names, point, strict=True))
        for point in product(*(range(s.low, s.high + 1) for s in symbols))
    ]
    fails = {tuple(sizes.values()): eval(truth, {}, dict(sizes)) for sizes in grid}
    failing = random.Random(1).choice([sizes for sizes in grid if fails[tuple(sizes.values())]])
    judged = [(sizes, fails[tuple(sizes.values())]) for sizes in probe_sizes(symbols, failing, 400)]
    region = find_region(judged, symbols)
    for _ in range(4):
        judged += [(s, fails[tuple(s.values())]) for s in doubts(judged, symbols, region)]
        region = find_region(judged, symbols)
    wrong = [s for s in grid if eval(region.predicate, {}, dict(s)) != fails[tuple(s.values())]]
    assert not wrong, region.predicate


def test_doubts_are_what_lies_in_the_gap():
    judged = [({"h": h, "w": 4}, h * 4 > 50) for h in (2, 8, 20, 40)]
    region = find_region(judged, PAIR)
    asked = doubts(judged, PAIR, region)
    assert asked
    assert all(sizes not in [s for s, _ in judged] for sizes in asked)


def test_a_settled_bound_leaves_no_doubts():
    judged = [({"n": n}, n >= 40) for n in range(2, 65)]
    assert doubts(judged, [SHORT], find_region(judged, [SHORT])) == []


def test_a_region_can_be_drawn():
    region = find_region([({"h": 2, "w": 3}, True), ({"h": 4, "w": 5}, False)], PAIR)
    assert (region.symbols, region.fails, region.passes) == (("h", "w"), "2,3", "4,5")
