"""The opening meets common failures within a few dozen inputs."""

import pytest
from hypothesis import find, settings

from strategies import OPENING, Draw, Fill, Role, Symbol, draws, is_out_of_range, opening
from strategies.inputs import ODD

N = Symbol("n", 2, 256, hint=8)
ANY = Symbol("n", 0, None, hint=8)
DATA = Role()
FIXED = settings(database=None, derandomize=True, max_examples=2000)


def size(draw):
    return draw.size_of["n"]


def are_all(kind):
    return lambda draw: all(fill.kind == kind for fill in draw.fills)


@pytest.mark.parametrize(
    ("symbol", "dtypes", "fails", "within"),
    [
        (N, ["int8"], lambda draw: size(draw) >= 16 and are_all("all_positive")(draw), 60),
        (N, ["int8"], lambda draw: size(draw) >= 16 and are_all("all_negative")(draw), 60),
        (N, ["float32"], lambda draw: size(draw) > 128, 12),
        (ANY, ["float32"], lambda draw: size(draw) > 128, 12),
        (ANY, ["float32"], lambda draw: size(draw) == 0, 4),
        (N, ["float32", "float32"], lambda draw: size(draw) > 128, 12),
        (N, ["float32", "float32"], are_all("decimals"), 25),
        (N, ["float32", "float32"], are_all("zeros"), 4),
        (N, ["float32"], lambda draw: size(draw) % 16 != 0 and are_all("nan_sprinkled")(draw), 60),
    ],
)
def test_common_failures_come_early(symbol, dtypes, fails, within):
    moves = opening([symbol], [(dtype, DATA) for dtype in dtypes])
    assert next(place for place, draw in enumerate(moves) if fails(draw)) < within


def test_the_opening_starts_at_the_hints_with_plain_values():
    assert next(opening([N], [("float32", DATA)])) == Draw((("n", 8),), (Fill("normal"),))


def test_the_opening_is_finite_deterministic_and_repeats_nothing():
    symbols = [Symbol("h", 1, 64, 8), Symbol("w", 1, 64, 9)]
    moves = list(opening(symbols, [("float32", DATA)] * 3, mined=(48,)))
    assert moves == list(opening(symbols, [("float32", DATA)] * 3, mined=(48,)))
    assert len(set(moves)) == len(moves) == OPENING


def test_the_opening_keeps_to_what_fits():
    moves = opening([ANY], [("float32", DATA)], fits=lambda sizes: sizes["n"] <= 100)
    assert max(map(size, moves)) <= 100


def test_nothing_fits_nothing_opens():
    assert list(opening([N], [("float32", DATA)], fits=lambda sizes: False)) == []


def test_a_static_program_gets_every_fill():
    *moves, last = opening([], [("bool", DATA)])
    assert [draw.fills[0].kind for draw in moves] == ["coin", "zeros", "ones", "alternating", "one_hot"]
    assert (last.fills[0].kind, last.offset, last.ones) == ("coin", 1, ODD)
    assert list(opening([], [])) == [Draw((), ())]


def test_products_leave_out_empty_sizes_and_broken_indices():
    specs = [("int64", Role("index", bound=10))]
    broken = [draw for draw in opening([ANY], specs) if is_out_of_range(draw.fills[0])]
    assert {size(draw) for draw in broken} == {8}
    assert {draw.fills[0].kind for draw in opening([ANY], specs) if size(draw) == 0} == {"index_random"}


@pytest.mark.parametrize(
    ("fails", "simplest"),
    [
        (lambda draw: True, (2, "zeros", "zeros")),
        (lambda draw: size(draw) >= 16, (16, "zeros", "zeros")),
        (lambda draw: draw.fills[0].kind == "ones", (2, "ones", "zeros")),
        (are_all("decimals"), (2, "decimals", "decimals")),
        (lambda draw: size(draw) % 2 == 1 and are_all("halves")(draw), (3, "halves", "halves")),
    ],
)
def test_draws_shrink_to_the_simplest_that_fails(fails, simplest):
    found = find(draws([N], [("float32", DATA)] * 2), fails, settings=FIXED)
    assert (size(found), *(fill.kind for fill in found.fills)) == simplest
