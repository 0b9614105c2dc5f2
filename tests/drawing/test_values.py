"""The patterns that show bugs are offered early, and shrink to plainer ones."""

import json
from dataclasses import asdict

import pytest
from hypothesis import find, settings

from strategies import KINDS, SEEDED, Fill, Role, assignments, fills, is_out_of_range, telling_fills

FIXED = settings(database=None, derandomize=True, max_examples=2000)
DATA, INDEX = Role(), Role("index", bound=10)


def kinds(dtype, role=DATA):
    return [fill.kind for fill in telling_fills(dtype, role)]


@pytest.mark.parametrize(
    ("dtype", "role", "first"),
    [
        ("float32", DATA, ["normal", "zeros", "decimals"]),
        ("int8", DATA, ["small_integers", "all_positive", "all_negative"]),
        ("uint8", DATA, ["small_integers", "all_positive", "high_bytes"]),
        ("bool", DATA, ["coin", "zeros", "ones"]),
        ("complex64", DATA, ["normal", "zeros", "real_only"]),
        ("float8_e4m3fn", DATA, ["normal", "zeros", "ones"]),
        ("int64", INDEX, ["index_random", "zeros", "index_last"]),
        ("float32", Role("mask"), ["coin", "zeros", "ones"]),
        ("float32", Role("condition"), ["normal", "all_positive", "all_negative"]),
    ],
)
def test_the_most_telling_fills_come_first(dtype, role, first):
    assert kinds(dtype, role)[:3] == first


def test_floats_see_every_special_value():
    special = {
        "negative_zeros",
        "signed_zeros",
        "nan_sprinkled",
        "inf_sprinkled",
        "huge",
        "tiny",
        "denormals",
        "extremes",
        "halves",
        "sorted",
        "reversed",
        "duplicates",
        "one_hot",
    }
    for dtype in ("float32", "bfloat16", "float16", "float64"):
        assert special <= set(kinds(dtype))


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("int8", -128, 127), ("uint8", 0, 255), ("int64", -(2**63), 2**63 - 1)]
)
def test_extremes_are_the_dtypes_own(dtype, low, high):
    (extremes,) = (fill for fill in telling_fills(dtype) if fill.kind == "extremes")
    assert (extremes.low, extremes.high) == (low, high)


def test_high_bytes_are_the_upper_half():
    (high_bytes,) = (fill for fill in telling_fills("uint8") if fill.kind == "high_bytes")
    assert (high_bytes.low, high_bytes.high) == (128, 255)


def test_out_of_range_indices_come_last_and_can_be_told_apart():
    telling = telling_fills("int64", INDEX)
    assert [is_out_of_range(fill) for fill in telling] == [False] * 6 + [True] * 2
    assert "index_negative" not in kinds("uint8", INDEX)


def test_every_fill_survives_json():
    for dtype in ("float32", "int64", "uint64", "bool", "complex64"):
        for fill in telling_fills(dtype):
            assert Fill(**json.loads(json.dumps(asdict(fill)))) == fill


def test_unknown_kinds_and_roles_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="use one of: zeros, ones"):
        Fill("zeroes")
    with pytest.raises(ValueError, match="use one of: data, index"):
        Role("weights")
    with pytest.raises(ValueError, match="bound of 0 or more"):
        Role("index", bound=-1)


def test_seeded_kinds_are_known_kinds():
    assert set(KINDS) > SEEDED


@pytest.mark.parametrize(
    ("dtype", "role", "shows", "simplest"),
    [
        ("float32", DATA, lambda fill: True, Fill("zeros")),
        ("float32", DATA, lambda fill: fill.kind != "zeros", Fill("normal")),
        ("float32", DATA, lambda fill: "sprinkled" in fill.kind, Fill("nan_sprinkled")),
        ("int8", DATA, lambda fill: fill.low > 0, Fill("all_positive", low=1, high=127)),
        ("bool", DATA, lambda fill: fill.kind not in ("zeros", "coin"), Fill("ones")),
        ("int64", INDEX, lambda fill: True, Fill("zeros")),
        ("int64", INDEX, is_out_of_range, Fill("edge_out")),
        ("float32", DATA, lambda fill: fill.seed >= 5, Fill("normal", seed=5)),
    ],
)
def test_fills_shrink_to_the_simplest_that_shows(dtype, role, shows, simplest):
    assert find(fills(dtype, role), shows, settings=FIXED) == simplest


def test_assignments_start_plain_and_repeat_nothing():
    moves = list(assignments([("float32", DATA), ("int64", INDEX)]))
    assert [fill.kind for fill in moves[0]] == ["normal", "index_random"]
    assert len(set(moves)) == len(moves)


def test_assignments_try_each_input_alone_and_all_inputs_alike():
    tried = {tuple(fill.kind for fill in move) for move in assignments([("float32", DATA)] * 2)}
    for kind in kinds("float32"):
        assert {(kind, "normal"), ("normal", kind), (kind, kind)} <= tried


def test_inputs_of_one_kind_get_different_seeds():
    for move in assignments([("float32", DATA)] * 2):
        if move[0].kind == move[1].kind and move[0].kind in SEEDED:
            assert move[0].seed != move[1].seed


def test_out_of_range_assignments_come_last():
    broken = [any(map(is_out_of_range, move)) for move in assignments([("float32", DATA), ("int64", INDEX)])]
    assert broken == sorted(broken)
    assert sum(broken) == 2


def test_no_inputs_have_one_empty_assignment():
    assert list(assignments([])) == [()]
