"""Choices as the one source of what is drawn: random, made again, lowered, and pinned under Hypothesis."""

import subprocess
import sys

import pytest

from strategies import Role, Symbol
from strategies.choices import chance, lowered, replayed
from strategies.inputs import draw_picker

N = Symbol("n", 2, 64, 8)
PICKER = draw_picker([N], [("int8", Role()), ("int8", Role())])


def test_the_same_choices_give_the_same_draw():
    for seed in range(50):
        made = []
        draw = PICKER(chance(f"{seed}", made))
        assert PICKER(replayed(made)) == draw
        again = []
        assert PICKER(chance(f"{seed}", again)) == draw
        assert again == made


def test_no_choices_are_the_simplest_ones():
    draw = PICKER(replayed([]))
    assert draw.size_of == {"n": 2}
    assert [fill.kind for fill in draw.fills] == ["zeros", "zeros"]


def test_lowering_ends_at_the_simplest_draw_that_holds():
    def holds(choices):
        draw = PICKER(replayed(choices))
        return draw.size_of["n"] >= 17 and draw.fills[1].kind == "all_positive"

    def random_choices(seed):
        made = []
        PICKER(chance(f"{seed}", made))
        return made

    found = next(made for made in map(random_choices, range(10_000)) if holds(made))
    draw = PICKER(replayed(lowered(found, holds)))
    assert draw.size_of == {"n": 17}
    assert draw.fills[1].kind == "all_positive"
    assert draw.fills[0].kind in ("zeros", "all_positive")  # alike is as simple
    assert [fill.seed for fill in draw.fills] == [0, 0]


@pytest.mark.parametrize(
    ("choices", "holds", "lowest"),
    [
        ([5, 5], lambda c: True, [0, 0]),
        ([5, 5], lambda c: list(c) == [5, 5], [5, 5]),
        ([5, 900], lambda c: sum(c) >= 100, [0, 100]),
        ([3, 3], lambda c: c[0] == c[1], [3, 3]),
        ([], lambda c: True, []),
    ],
)
def test_lowered(choices, holds, lowest):
    assert lowered(choices, holds) == lowest


SCRIPT = """
import hashlib, sys
{loads}
from minimizer.fuzz import search
from minimizer.input_space import InputSpace
from minimizer.case import Value
from minimizer.oracle.verdict import Verdict
from minimizer.program import Input, Program, Symbol, TensorMeta
from strategies.values import Fill

meta = TensorMeta("float32", ("n",), (1,))
space = InputSpace(Program((Input("x", meta),), (), (), symbols=(Symbol("n", 0, None, 8),)))
seen = []

def judge(batch):
    ((values, *rest),) = batch[:1]
    seen.append(values)
    return [Verdict("pass", error_ratio=0.1 + len(seen) % 7 / 10)]

example = Value("float32", (8,), Fill("normal"))
once = {{"give_up": lambda: False, "settle": lambda: False}}
search(space, judge, (example,), seed=3, stateful=False, most=1500, **once)
print(hashlib.sha256(repr(seen).encode()).hexdigest())
"""


def test_other_modules_that_are_loaded_do_not_change_what_is_tried(repo, tmp_path):
    # Hypothesis takes constants out of local modules; these would be new ones.
    (tmp_path / "other.py").write_text("SIZES = [1234, 2345, 3456, 77, 78, 79]\n" * 3)
    digests = set()
    for loads in ("", "import other", "import tests.exported, other"):
        script = tmp_path / "script.py"
        script.write_text(SCRIPT.format(loads=loads))
        done = subprocess.run(
            [sys.executable, str(script)],
            env={"PYTHONPATH": f"{repo}:{tmp_path}", "PATH": "/usr/bin:/bin"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1
