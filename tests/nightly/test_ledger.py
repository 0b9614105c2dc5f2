"""The ledger: what is known is a fold over lines, and a kill at any byte loses at most the last line."""

import json

import pytest

from minimizer.nightly.ledger import Ledger, read_events
from minimizer.nightly.units import Programs, Replays, Target, unit_from_json, unit_to_json


def finding(name, bucket="b1"):
    about = {"kind": "crash", "calls": ["relu"], "classes": ["float"]}
    return {"did": "finding", "id": name, "bucket": bucket, **about}


EVENTS = [
    {"did": "begin", "at": 0.0, "budget": 60, "first_program": 100},
    {"did": "replayed", "name": "old", "outcome": "fails"},
    {"did": "suspect", "id": "p1", "path": "p1.py", "kind": "crash", "calls": ["relu"], "classes": ["float"]},
    {"did": "suspect", "id": "p2", "path": "p2.py", "kind": "crash", "calls": ["neg"], "classes": ["float"]},
    {"did": "programs", "first": 100, "count": 50, "judged": 40, "compiles": 1},
    finding("p1"),
    finding("p3"),
    {"did": "unconfirmed", "id": "p2", "why": "alone it passes"},
]


def test_what_is_known(tmp_path):
    ledger = Ledger(tmp_path / "night.jsonl")
    ledger.write(EVENTS[:5])
    assert [s["id"] for s in ledger.state.pending] == ["p1", "p2"]
    ledger.write(EVENTS[5:])
    state = ledger.state
    assert state.pending == []
    assert list(state.findings) == ["b1"] and state.duplicates == {"b1": ["p3"]}
    assert state.next_program == 150
    assert state.total("judged") == 40


def test_the_worst_suspect_is_looked_into_first_then_the_simplest(tmp_path):
    ledger = Ledger(tmp_path / "night.jsonl")
    suspects = [("p1", "lost_error", ["amax"]), ("p2", "wrong_value", ["amin", "add"])]
    suspects += [("p3", "wrong_value", ["amin"]), ("p4", "crash", ["pad", "mm", "add"])]
    ledger.write(
        {"did": "suspect", "id": name, "kind": kind, "calls": calls} for name, kind, calls in suspects
    )
    assert [s["id"] for s in ledger.state.pending] == ["p4", "p3", "p2", "p1"]


def test_reading_again_and_writing_twice_changes_nothing(tmp_path):
    path = tmp_path / "night.jsonl"
    Ledger(path).write(EVENTS)
    again = Ledger(path)
    before = again.state.duplicates, list(again.state.findings), again.state.next_program
    again.write(EVENTS)
    assert (again.state.duplicates, list(again.state.findings), again.state.next_program) == before


@pytest.mark.parametrize("cut", range(0, 120, 7))
def test_a_torn_file_can_be_read_and_gone_on_with(tmp_path, cut):
    path = tmp_path / "night.jsonl"
    Ledger(path).write(EVENTS)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - cut])
    left = read_events(path)
    assert left == EVENTS[: len(left)] and len(left) >= len(EVENTS) - 3
    Ledger(path).write([{"did": "end", "at": 1.0}])
    assert read_events(path) == [*left, {"did": "end", "at": 1.0}]


def test_what_is_not_an_event_is_left_out(tmp_path):
    path = tmp_path / "night.jsonl"
    path.write_text('7\n{"a": 1}\n\n{"did": 3}\n{"did": "something new"}\n' + json.dumps(EVENTS[1]) + "\n")
    assert list(Ledger(path).state.replayed) == ["old"]


@pytest.mark.parametrize(
    "unit",
    [
        Replays(("corpus/failures/a", "corpus/failures/b")),
        Target("a", "a.py", "runs/a", 120.0, 3, "failing_inputs"),
        Programs(160, 160, 7, "programs", ("relu",)),
    ],
)
def test_units_survive_storage(unit):
    assert unit_from_json(json.loads(json.dumps(unit_to_json(unit)))) == unit
    assert unit.key and unit.limit > 0


@pytest.mark.parametrize("plain", [{}, {"unit": "other"}, {"unit": "target", "name": "a"}])
def test_what_is_no_unit(plain):
    with pytest.raises(ValueError, match="not a unit"):
        unit_from_json(plain)
