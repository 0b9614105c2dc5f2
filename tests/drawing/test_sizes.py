"""Telling sizes come early, stay in range, and shrink to the smallest."""

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from strategies import Symbol, interesting_sizes, reclip, sizes, sweep

N = Symbol("n", 2, 256, hint=8)
ANY = Symbol("n", 0, None, hint=8)
H, W = Symbol("h", 0, 64, hint=8), Symbol("w", 1, 64, hint=9)
FIXED = settings(database=None, derandomize=True, max_examples=1000)


def position(fails, symbol):
    return next(place for place, drawn in enumerate(sweep([symbol])) if fails(drawn[symbol.name]))


def test_interesting_sizes_start_with_the_small_ones_and_the_ends():
    assert interesting_sizes(N)[:4] == (2, 256, 9, 7)
    assert interesting_sizes(ANY)[:4] == (0, 1, 2, 4096)


def test_interesting_sizes_leave_out_the_hint_and_stay_in_range():
    assert interesting_sizes(Symbol("n", 3, 9, hint=5)) == (3, 9, 6, 4, 7)
    assert interesting_sizes(Symbol("n", 4, 4, hint=4)) == ()


def test_mined_numbers_come_with_their_neighbours():
    found = interesting_sizes(N, mined=(48,))
    assert {47, 48, 49} <= set(found)
    assert found.index(48) < 8


def test_an_unbounded_range_is_cut_at_the_cap_but_never_below_the_hint():
    assert ANY.ends(cap=100) == (0, 100)
    assert Symbol("n", 0, None, hint=5000).ends() == (0, 5001)
    assert Symbol("n", 0, 2**63 - 1, hint=4).ends() == (0, 4096)


def test_an_empty_range_is_refused():
    with pytest.raises(ValueError, match="the range \\[3, 2\\] is empty"):
        Symbol("n", 3, 2, hint=3)


@pytest.mark.parametrize("symbol", [Symbol("n", 0, 256, 8), N, ANY, Symbol("n", 1, 1024, 16)], ids=str)
@pytest.mark.parametrize(
    "fails",
    [lambda n: n != 8, lambda n: n >= 17, lambda n: n > 128, lambda n: n % 2 == 1, lambda n: n % 16 != 0],
)
def test_common_regions_are_hit_early(symbol, fails):
    assert position(fails, symbol) < 15


def test_size_zero_is_hit_early():
    assert position(lambda n: n == 0, ANY) == 1


def test_a_sweep_starts_with_the_hints_and_repeats_nothing():
    swept = [tuple(drawn.values()) for drawn in sweep([H, W])]
    assert swept[0] == (8, 9)
    assert len(set(swept)) == len(swept)
    assert all(0 <= h <= 64 and 1 <= w <= 64 for h, w in swept)


def test_a_sweep_covers_one_symbol_alone_all_together_and_opposite_ends():
    swept = {tuple(drawn.values()) for drawn in sweep([H, W])}
    assert {(0, 9), (8, 64), (17, 17), (0, 1), (64, 64), (0, 64), (64, 1)} <= swept


def test_a_sweep_without_symbols_has_one_entry():
    assert list(sweep([])) == [{}]


def test_a_sweep_is_the_same_every_time():
    assert list(sweep([H, W], mined=(12,))) == list(sweep([H, W], mined=(12,)))


def test_a_sweep_repairs_what_does_not_fit():
    square = list(sweep([H, W], fits=lambda drawn: drawn["h"] == drawn["w"]))
    assert len(square) > 10
    assert all(drawn["h"] == drawn["w"] for drawn in square)


@pytest.mark.parametrize(
    ("wanted", "fits", "found"),
    [
        ({"h": 5, "w": 6}, lambda drawn: True, {"h": 5, "w": 6}),
        ({"h": 17, "w": 3}, lambda drawn: drawn["h"] % 8 == 0, {"h": 16, "w": 3}),
        ({"h": 5, "w": 40}, lambda drawn: drawn["h"] == drawn["w"], {"h": 40, "w": 40}),
        ({"h": 64, "w": 64}, lambda drawn: drawn["h"] * drawn["w"] <= 600, {"h": 16, "w": 32}),
        ({"h": 64, "w": 1}, lambda drawn: drawn == {"h": 8, "w": 9}, {"h": 8, "w": 9}),
        ({"h": 64, "w": 1}, lambda drawn: False, None),
    ],
)
def test_reclip(wanted, fits, found):
    assert reclip([H, W], wanted, fits) == found


@pytest.mark.parametrize(
    ("fails", "smallest"),
    [
        (lambda n: True, 2),
        (lambda n: n >= 17, 17),
        (lambda n: n >= 20, 20),
        (lambda n: n > 128, 129),
        (lambda n: n % 2 == 1, 3),
        (lambda n: n % 16 == 0, 16),
        (lambda n: n >= 200 and n % 2 == 1, 201),
    ],
)
def test_one_size_shrinks_to_the_smallest_that_fails(fails, smallest):
    assert find(sizes([N]), lambda drawn: fails(drawn["n"]), settings=FIXED) == {"n": smallest}


@pytest.mark.parametrize(
    ("fails", "smallest"),
    [
        (lambda h, w: True, (0, 1)),
        (lambda h, w: h != w, (0, 1)),
        (lambda h, w: h > w, (2, 1)),
        (lambda h, w: h >= 17 and w % 2 == 0, (17, 2)),
    ],
)
def test_two_sizes_shrink_together(fails, smallest):
    found = find(sizes([H, W]), lambda drawn: fails(drawn["h"], drawn["w"]), settings=FIXED)
    assert tuple(found.values()) == smallest


@given(st.data())
@settings(database=None, max_examples=30)
def test_drawn_sizes_fit(data):
    drawn = data.draw(sizes([H, W], mined=(24,), fits=lambda drawn: drawn["h"] * drawn["w"] <= 100))
    assert drawn["h"] * drawn["w"] <= 100
    assert 0 <= drawn["h"] <= 64
    assert 1 <= drawn["w"] <= 64


def test_no_symbols_draw_nothing():
    assert find(sizes([]), lambda drawn: True, settings=FIXED) == {}
    assert find(sizes([], fits=lambda drawn: True), lambda drawn: True, settings=FIXED) == {}
