"""What was right is called again: in which manners, on which inputs, and what comes of it."""

import pytest

from minimizer.case import Value
from minimizer.oracle.verdict import PASS, Failure, Verdict
from minimizer.program import Input, Node, Program, Ref, TensorMeta
from minimizer.steady import INPUTS, manners, unsteady
from strategies.values import Fill

META = TensorMeta("float32", (4,), (1,))
WRONG = Verdict("fail", Failure("wrong_value", "run", flavour="values, after a second load"))


def inputs(kind):
    return (Value("float32", (4,), Fill(kind)),)


def program(*targets):
    nodes = tuple(Node(f"n{k}", target, (Ref("x"),), meta=META) for k, target in enumerate(targets))
    return Program((Input("x", META),), nodes, Ref("x"))


@pytest.mark.parametrize(
    ("targets", "stateful", "path", "ways"),
    [
        (["aten.relu.default"], False, "aoti", ["again", "reload", "thread", "threads"]),
        (["aten.relu.default"], True, "aoti", ["again", "reload"]),
        (["aten.relu.default", "aten.rand_like.default"], False, "aoti", ["again", "reload", "thread"]),
        (["aten.relu.default"], False, "inductor", ["again", "thread", "threads"]),
        ([], False, "aoti", ["again", "reload", "thread"]),
    ],
    ids=["plain", "with state", "random", "torch.compile", "not translated"],
)
def test_manners_that_must_agree(targets, stateful, path, ways):
    assert list(manners(program(*targets), stateful, path)) == ways


def never():
    return False


def test_the_examples_come_first_then_two_different_inputs():
    seen = []

    def judge(*calls, manner):
        seen.append((calls, manner))
        return PASS

    passed = [inputs("ones"), inputs("zeros"), inputs("ramp"), inputs("zeros")]
    assert unsteady(judge, ("again", "reload"), inputs("ones"), passed, never) == (
        None,
        ("again", "reload"),
    )
    assert [manner for _, manner in seen] == ["again", "reload"] * INPUTS
    assert seen[0][0] == (inputs("ones"),)
    assert seen[2][0] == (inputs("ones"), inputs("ramp"))


def test_the_first_wrong_answer_is_the_finding():
    def judge(*calls, manner):
        return WRONG if manner == "reload" and len(calls) == 2 else PASS

    found, tried = unsteady(judge, ("again", "reload"), inputs("ones"), [inputs("zeros")], never)
    assert (found.manner, found.earlier, found.values) == ("reload", (inputs("ones"),), inputs("zeros"))
    assert found.failure == WRONG.failure
    assert tried == ("again", "reload")


def test_nothing_is_called_when_time_is_up():
    answer = unsteady(lambda *calls, manner: WRONG, ("again",), inputs("ones"), [], lambda: True)
    assert answer == (None, ())
