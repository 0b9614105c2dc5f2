"""What is said while something takes long."""

import pytest

from minimizer.waiting import Waiting


class Played:
    """A console and its bar that remember what they were told."""

    def __init__(self, live=False):
        self.live, self.said, self.shown = live, [], []

    def say(self, label, text):
        self.said.append(f"{label}: {text}")

    def at(self, done, note):
        self.shown.append((done, note))


def waited(stages, *, live=False, evidence=None):
    played = Played(live)
    waiting = Waiting("compile", played, played, evidence)
    for stage, until in stages:
        for half_seconds in range(2 * until + 1):
            waiting(stage, half_seconds / 2)
    return played


def test_half_a_minute_is_not_worth_a_word():
    assert waited([("lower", 29), ("cxx", 29)]).said == []


def test_after_that_a_line_now_and_then():
    assert waited([("cxx", 300)]).said == [
        "compile: compiling C++ for 30 s",
        "compile: compiling C++ for 60 s",
        "compile: compiling C++ for 120 s",
        "compile: compiling C++ for 240 s",
    ]


def test_a_terminal_shows_it_live_instead():
    played = waited([("import", 3), ("lower", 90)], live=True)
    assert played.said == []
    assert played.shown[0] == (0, "s importing the model")
    assert played.shown[-1] == (90, "s lowering and generating code")


@pytest.mark.parametrize("live", [False, True])
def test_evidence_is_asked_for_once(live):
    asked = []

    def evidence():
        asked.append(1)
        return "its first 8 of 161 calls took 0.3 s"

    said = waited([("lower", 110)], live=live, evidence=evidence).said
    assert "compile: lowering and generating code has taken 40 s; its first 8 of 161 calls took 0.3 s" in said
    assert len(asked) == 1


def test_no_evidence_is_no_word():
    said = waited([("lower", 50), ("cxx", 10)], evidence=lambda: "").said
    assert said == ["compile: lowering and generating code for 30 s"]


def test_other_stages_are_not_suspected():
    waited([("cxx", 100), ("export", 100)], evidence=lambda: pytest.fail("only lowering is looked into"))
