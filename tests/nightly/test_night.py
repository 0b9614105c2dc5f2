"""A night with hands that only answer: what is asked for, in which order, and what is made of it."""

import json
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import pytest
from runs import relu_case, write_run

from minimizer import corpus as corpus_of_failures
from minimizer.buckets import bucket_of
from minimizer.console import Console
from minimizer.nightly import outputs
from minimizer.nightly.history import Past, difference, read_night, read_past
from minimizer.nightly.ledger import read_events
from minimizer.nightly.night import LOOK_INTO, Night, Plan
from minimizer.nightly.units import Programs, Replays, Target
from minimizer.oracle.verdict import Signature


class Actors:
    """Hands that answer at once. `suspects`: operators of the programs that fail in the first batch."""

    def __init__(self, clock, count=1, suspects=(), fail=()):
        self.count, self.clock = count, clock
        self.suspects, self.fail = list(suspects), set(fail)
        self.given, self.done, self.limit = [], [], None

    @property
    def busy(self):
        return len(self.done)

    def give(self, unit):
        if self.limit is not None and len(self.given) >= self.limit:
            raise KeyboardInterrupt
        self.given.append(unit)
        self.done.append(unit)

    def take(self, timeout):
        unit = self.done.pop(0)
        return [(unit, self.act(unit))]

    def act(self, unit):
        if isinstance(unit, Replays):
            self.clock.now += 20
            names = [folder.rpartition("/")[2] for folder in unit.folders]
            return [{"did": "replayed", "name": n, "outcome": "fails", "said": ""} for n in names]
        if isinstance(unit, Target):
            self.clock.now += unit.seconds
            failing = bool(unit.checked) or unit.name in self.fail
            if failing:
                write_run(Path(unit.out), relu_case(self.operator(unit)))
            about = {"key": unit.key, "name": unit.name, "out": unit.out, "seconds": unit.seconds}
            return [{"did": "target", **about, "status": int(failing)}]
        self.clock.now += 300
        events = [
            {
                "did": "suspect", "id": f"p{unit.first}_{k}", "path": f"{o}.py", "checked": "failing_inputs",
                "kind": "wrong_value", "calls": [o], "classes": ["float"], "operators": [o], "message": "",
            }
            for k, o in enumerate(self.suspects)
        ]  # fmt: skip
        self.suspects = []
        figures = {"judged": unit.count, "refused": 0, "inputs": 9, "compiles": 2, "cpu_seconds": 30.0}
        return [*events, {"did": "programs", "first": unit.first, "count": unit.count, **figures}]

    def operator(self, unit):
        return unit.path.rpartition("/")[2].removesuffix(".py") if unit.checked else "relu"

    def stop(self):
        pass


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "corpus/models").mkdir(parents=True)
    for name in ("alpha", "beta"):
        (tmp_path / f"corpus/models/{name}.py").write_text(name)
    return tmp_path / "corpus"


def night(corpus, out, budget, past=None, **actors):
    out.mkdir(parents=True, exist_ok=True)
    clock = Clock()
    hands = Actors(clock, **actors)
    plan = Plan(corpus, out, budget)
    return Night(plan, hands, past or Past(), Console(quiet=True), clock), hands


def summary_of(one, past=None):
    context = outputs.Context(one.plan.out.name, one.recorded, one.known, past or Past(), one.spent)
    return outputs.summarise(one.state, context)


def test_targets_and_programs_share_the_night(corpus, tmp_path):
    one, hands = night(corpus, tmp_path / "n1", 3600.0)
    one.go()
    searched = sum(u.seconds for u in hands.given if isinstance(u, Target))
    assert 0.25 * 3600 < searched < 0.55 * 3600
    firsts = [u.first for u in hands.given if isinstance(u, Programs)]
    assert firsts == [k * hands.given[-1].count for k in range(len(firsts))] or firsts == sorted(set(firsts))
    assert one.spent < 3600 + 300


def test_a_suspect_is_looked_into_before_anything_else_and_twins_are_counted(corpus, tmp_path):
    one, hands = night(corpus, tmp_path / "n1", 3600.0, suspects=["relu", "relu", "neg"])
    one.go()
    looked = [u for u in hands.given if isinstance(u, Target) and u.checked]
    assert [u.name for u in looked] == ["p0_0", "p0_2"]
    assert all(u.seconds == LOOK_INTO for u in looked)
    state = one.state
    assert len(state.findings) == 2 and [len(v) for v in state.duplicates.values()] == [1]
    later = [u for u in hands.given if isinstance(u, Programs)][1:]
    assert later and all(u.without == ("neg", "relu") for u in later)


def test_a_night_cut_anywhere_goes_on_to_the_same_end(corpus, tmp_path):
    whole, hands = night(corpus, tmp_path / "whole", 3600.0, suspects=["relu", "neg"])
    whole.go()
    for limit in range(1, len(hands.given), 2):
        out = tmp_path / f"cut{limit}"
        first, actors = night(corpus, out, 3600.0, suspects=["relu", "neg"])
        actors.limit = limit
        with pytest.raises(KeyboardInterrupt):
            first.go()
        again, _ = night(corpus, out, 3600.0, suspects=[] if first.state.programs else ["relu", "neg"])
        again.go()
        assert set(again.state.findings) == set(whole.state.findings)
        assert not again.state.pending


@pytest.mark.parametrize(("version", "outcome"), [("2.13.0", "fixed"), ("2.14.0", "fails")])
def test_how_a_recording_fares_is_written_down_where_it_is_news(corpus, tmp_path, version, outcome):
    write_run(tmp_path / "run", relu_case())
    recorded = corpus_of_failures.add(corpus, tmp_path / "run", today=date(2026, 12, 1))
    one, _ = night(corpus, tmp_path / "n1", 60.0)
    figures = {"torch": version, "outcome": outcome, "runs": 2, "failures": 2 * (outcome == "fails")}
    event = {"did": "replayed", "name": recorded.name, "said": "", **figures}
    one._learn(Replays((str(recorded.folder),)), [event])
    fared = corpus_of_failures.named(corpus, recorded.name).status["torch"]
    assert fared["2.13.0"]["outcome"] == ("fixed" if version == "2.13.0" else "fails")
    assert fared[version]["outcome"] == outcome


@pytest.mark.parametrize("outcome", ["fails", "unusable"])
def test_what_is_no_news_is_not_written(corpus, tmp_path, outcome):
    write_run(tmp_path / "run", relu_case())
    recorded = corpus_of_failures.add(corpus, tmp_path / "run", today=date(2026, 12, 1))
    one, _ = night(corpus, tmp_path / "n1", 60.0)
    before = (recorded.folder / "status.json").read_text()
    event = {"did": "replayed", "name": recorded.name, "torch": "2.13.0", "outcome": outcome, "said": ""}
    one._learn(Replays((str(recorded.folder),)), [{**event, "runs": 2, "failures": 2}])
    assert (recorded.folder / "status.json").read_text() == before


def test_what_a_killed_unit_had_written_is_not_lost(corpus, tmp_path):
    out = tmp_path / "n1"
    (out / "units").mkdir(parents=True)
    suspect = {
        "did": "suspect", "id": "p0_0", "path": "relu.py", "checked": "failing_inputs", "kind": "wrong_value",
        "calls": ["relu"], "classes": ["float"], "operators": [], "message": "",
    }  # fmt: skip
    (out / "units/programs-0.jsonl").write_text(json.dumps(suspect) + '\n{"did": "prog')
    for _ in range(2):
        one, hands = night(corpus, out, 3600.0)
        one.go()
    assert len(one.state.findings) == 1
    assert [e["did"] for e in read_events(out / "night.jsonl")].count("suspect") == 1


def test_only_what_was_never_met_is_new(corpus, tmp_path):
    one, _ = night(corpus, tmp_path / "nights/n1", 3600.0, suspects=["relu", "neg"])
    one.go()
    first = summary_of(one)
    assert first["counts"] == {"new": 2}
    outputs.write_all(one.plan.out, first, Past())
    past = read_past(tmp_path / "nights/n2")
    assert past.nights == 1 and past.next_program == one.state.next_program
    signature = Signature("wrong_value", "run", "", "values")
    bucket = bucket_of(relu_case("neg").program, signature)
    (corpus / "known.toml").write_text(f'[[known]]\nbucket = "{bucket}"\nissue = "https://example.org/7"\n')
    two, _ = night(corpus, tmp_path / "nights/n2", 3600.0, past, suspects=["relu", "neg", "abs"])
    two.go()
    second = summary_of(two, past)
    assert second["counts"] == {"new": 1, "seen": 1, "known": 1}
    assert second["findings"][0]["calls"] == ["abs"]
    outputs.write_all(two.plan.out, second, past)
    changed = difference(read_night(tmp_path / "nights/n1"), read_night(tmp_path / "nights/n2"))
    assert len(changed["only in the second"]) == 1 and "abs" in changed["only in the second"][0]
    assert len(changed["in both"]) == 2 and not changed["only in the first"]


def test_outputs_hold_what_was_found_and_nothing_runs_when_they_are_opened(corpus, tmp_path):
    one, _ = night(corpus, tmp_path / "n1", 3600.0, suspects=["relu"], fail=["alpha"])
    one.go()
    summary = summary_of(one)
    outputs.write_all(one.plan.out, summary, Past())
    page = (one.plan.out / "night.html").read_text()
    assert "<script>" not in page and "&lt;script&gt;" in page and "relu" in page
    suite = ElementTree.parse(one.plan.out / "junit.xml").getroot()[0]
    assert suite.get("failures") == "1"
    assert "<script>" in suite.find(".//failure").text
    assert (one.plan.out / "night.md").read_text().startswith("**Night n1**: 1 new, 0 known")
    assert summary["targets"]["alpha"]["found"] and not summary["targets"]["beta"]["found"]
    assert summary["programs"]["judged_per_cpu_minute"] == pytest.approx(320.0)


def test_a_target_with_a_repro_that_does_not_hold_is_no_finding(corpus, tmp_path):
    one, hands = night(corpus, tmp_path / "n1", 3600.0, suspects=["relu"])
    act = hands.act

    def unproven(unit):
        events = act(unit)
        if isinstance(unit, Target) and unit.checked:
            summary = Path(unit.out) / "summary.json"
            plain = json.loads(summary.read_text())
            summary.write_text(json.dumps({**plain, "repro_verified": {"runs": 2, "failures": 0}}))
        return events

    hands.act = unproven
    one.go()
    assert not one.state.findings and "does not fail" in one.state.unconfirmed["p0_0"]["why"]


def test_a_unit_that_is_lost_is_given_out_again_in_halves(corpus, tmp_path):
    one, hands = night(corpus, tmp_path / "n1", 3600.0)
    act, lost = hands.act, []

    def fragile(unit):
        if isinstance(unit, Programs) and unit.first <= 30 < unit.first + unit.count:
            lost.append(unit)
            return [{"did": "lost", "key": unit.key, "why": "ended with status -9"}]
        return act(unit)

    hands.act = fragile
    one.go()
    counts = [unit.count for unit in lost]
    assert counts == sorted(counts, reverse=True) and counts[-1] <= 20 and len(counts) > 2
    done = sorted((first, int(event["count"])) for first, event in one.state.programs.items())
    covered = {k for first, count in done for k in range(first, first + count)}
    gone = set(range(max(covered))) - covered
    assert gone == set(range(lost[-1].first, lost[-1].first + lost[-1].count))


def test_programs_between_two_that_were_done_are_not_left_out(corpus, tmp_path):
    out = tmp_path / "n1"
    out.mkdir()
    events = [
        {"did": "begin", "at": 0.0, "budget": 3600.0, "first_program": 0, "files": {}},
        {"did": "programs", "first": 160, "count": 160, "judged": 150},
    ]
    (out / "night.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    one, hands = night(corpus, out, 3600.0)
    one.go()
    firsts = [unit.first for unit in hands.given if isinstance(unit, Programs)]
    assert firsts[:3] == [0, 320, 480]


def test_a_single_target_is_searched_whatever_the_number_of_hands(corpus, tmp_path):
    (corpus / "models/beta.py").unlink()
    one, hands = night(corpus, tmp_path / "n1", 180.0, count=4)
    one.plan = Plan(corpus, tmp_path / "n1", 180.0, programs=False)
    one.go()
    (unit,) = hands.given
    assert unit.name == "alpha" and 60 <= unit.seconds <= 180
