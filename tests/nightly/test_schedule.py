"""Fair shares of time, lengths of time, and a disk that never fills."""

import os

import pytest

from minimizer.nightly.durations import seconds, words
from minimizer.nightly.housekeeping import IN_USE, MOST_AGE, Leftover, doomed, prune
from minimizer.nightly.schedule import LEAST, MOST, Standing, slices


@pytest.mark.parametrize(
    ("text", "length"), [("8h", 28800), ("90m", 5400), ("3600", 3600), ("1h30m", 5400), (" 45S ", 45)]
)
def test_lengths_of_time(text, length):
    assert seconds(text) == length


@pytest.mark.parametrize("text", ["", "8", "-3", "0", "h", "8 hours", "nan", "inf", "8h30"])
def test_what_is_no_length_of_time(text):
    if text == "8":
        assert seconds(text) == 8
        return
    with pytest.raises(ValueError, match="write 8h, 90m or 3600"):
        seconds(text)


def test_lengths_in_words():
    assert [words(s) for s in (59, 60, 3600, 5460)] == ["59 s", "1 min", "1 h 0 min", "1 h 31 min"]


def test_equal_targets_get_equal_shares():
    found = slices([Standing(n) for n in "abcd"], 2000.0)
    assert [s.seconds for s in found] == [500.0] * 4


def test_changed_and_failing_targets_get_more():
    shares = {
        s.target: s.seconds for s in slices([Standing("a"), Standing("b", changed=True, found=True)], 800.0)
    }
    assert shares == {"a": 200.0, "b": 600.0}


def test_a_short_night_takes_those_that_are_owed_most_and_none_is_left_out_for_good():
    had = dict.fromkeys("abcde", 0.0)
    for _ in range(5):
        for part in slices([Standing(n, had=had[n]) for n in had], 2.5 * LEAST):
            assert part.seconds >= LEAST
            had[part.target] += part.seconds
    assert min(had.values()) >= LEAST


def test_a_night_too_short_for_one_run_makes_none():
    assert slices([Standing("a")], LEAST / 2) == []
    assert slices([], 1e6) == []


def test_long_shares_are_several_runs_and_all_targets_come_before_second_turns():
    found = slices([Standing("a"), Standing("b")], 6 * MOST)
    assert sum(s.seconds for s in found) == 6 * MOST
    assert [s.target for s in found[:2]] == ["a", "b"]
    assert all(s.seconds <= MOST for s in found)


def test_a_day_of_compilations_never_fills_a_disk():
    """24 hours, one compilation every 20 s that leaves 3 MB to 300 MB behind, a look every ten minutes."""
    limit = 2 << 30
    born: dict[str, tuple[float, int]] = {}
    largest = 0
    for step in range(24 * 180):
        now = step * 20.0
        born[f"f{step}"] = now, (3 << 20) if step % 50 else (300 << 20)
        if step % 30 == 0:
            listed = [Leftover(name, size, now - at) for name, (at, size) in born.items()]
            for gone in doomed(listed, most_bytes=limit):
                assert gone.age > IN_USE
                del born[gone.path]
        largest = max(largest, sum(size for _, size in born.values()))
    made_in_use = (IN_USE + 600) / 20 * (3 << 20) + ((IN_USE + 600) / 1000 + 1) * (300 << 20)
    assert largest <= limit + made_in_use
    assert all(24 * 3600 - at <= MOST_AGE + 700 for at, _ in born.values())


def test_the_oldest_go_first_and_only_as_many_as_needed():
    listed = [Leftover(n, 40, IN_USE + age) for n, age in (("new", 1.0), ("old", 99.0), ("mid", 50.0))]
    assert [x.path for x in doomed(listed, most_bytes=100)] == ["old"]
    assert [x.path for x in doomed(listed, most_bytes=50)] == ["old", "mid"]


def test_pruning_keeps_precompiled_headers_and_what_is_not_ours(tmp_path):
    for name in (
        "aotinductor_x/a",
        "torchinductor_me/ab/b",
        "torchinductor_me/precompiled_headers/p",
        "mine/c",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text("12345678")
    now = 1e9
    for path in sorted(tmp_path.rglob("*")):
        os.utime(path, (now - 2 * MOST_AGE, now - 2 * MOST_AGE))
    assert prune(tmp_path, now) == 16
    left = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert left == {"torchinductor_me/precompiled_headers/p", "mine/c"}
