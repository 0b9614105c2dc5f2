"""The same unit by processes of this machine and by a Ray cluster, and what becomes of one that is killed."""

import os
import signal
import threading
import time

import pytest

from minimizer.nightly.hands import LocalHands, RayHands, do_unit, leftovers
from minimizer.nightly.units import Replays, unit_to_json


def broken(tmp_path, name):
    """A recording that cannot be read: a replay of it says so and judges nothing."""
    folder = tmp_path / "failures" / name
    folder.mkdir(parents=True)
    (folder / "status.json").write_text("{")
    return Replays((str(folder),))


def outcomes(hands, count):
    found = []
    while len(found) < count:
        found += hands.take(60.0)
    return {unit.key: [e["outcome"] for e in events if e["did"] == "replayed"] for unit, events in found}


@pytest.mark.compiles
def test_units_are_done_side_by_side_and_each_once(tmp_path):
    hands = LocalHands(2, tmp_path / "units")
    units = [broken(tmp_path, name) for name in ("a", "b")]
    for unit in units:
        hands.give(unit)
    assert hands.busy == 2
    assert outcomes(hands, 2) == {unit.key: ["unusable"] for unit in units}
    hands.stop()
    assert len(list(leftovers(tmp_path / "units"))) == 2


def test_a_unit_whose_process_is_killed_is_told_as_lost(tmp_path):
    def kill(group):
        threading.Timer(0.3, lambda: os.killpg(group, signal.SIGKILL)).start()

    unit = broken(tmp_path, "a")
    events = do_unit(unit_to_json(unit), str(tmp_path / "units"), kill)
    assert [e["did"] for e in events] == ["lost"] and "status -9" in events[0]["why"]


def test_stopping_ends_what_is_under_way(tmp_path):
    hands = LocalHands(1, tmp_path / "units")
    hands.give(broken(tmp_path, "a"))
    while not (tmp_path / "units").exists():
        time.sleep(0.01)
    time.sleep(0.2)
    hands.stop()
    assert hands.take(5.0)[0][1][0]["did"] in ("lost", "replayed")


@pytest.mark.compiles
def test_a_local_ray_does_the_same_and_a_lost_worker_is_told(tmp_path):
    ray = pytest.importorskip("ray")
    hands = RayHands("local", tmp_path / "units")
    try:
        units = [broken(tmp_path, name) for name in ("a", "b")]
        for unit in units:
            hands.give(unit)
        assert outcomes(hands, 2) == {unit.key: ["unusable"] for unit in units}
        hands.give(broken(tmp_path, "c"))
        ray.cancel(next(iter(hands._running)), force=True)
        ((_, events),) = hands.take(60.0)
        assert [e["did"] for e in events] == ["lost"]
    finally:
        hands.stop()
    assert not ray.is_initialized()
