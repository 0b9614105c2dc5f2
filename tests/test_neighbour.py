"""The nearest passing case."""

from dataclasses import replace

from minimizer.case import Case, Settings, Value
from minimizer.neighbour import difference, nearest
from minimizer.program import Input, Node, Program, Ref, Symbol, TensorMeta
from strategies.values import Fill

META = TensorMeta("float32", ("n",), (1,))


def chain(*targets, size=16, fill="ones", config=()):
    nodes, last = [], "x"
    for k, target in enumerate(targets):
        nodes.append(Node(f"v{k}", target, (Ref(last),), meta=META))
        last = f"v{k}"
    program = Program((Input("x", META),), tuple(nodes), Ref(last), symbols=(Symbol("n", 2, 64, 8),))
    return Case(program, (Value("float32", (size,), Fill(fill)),), Settings(config=config))


RESULT = chain("aten.relu.default")


def test_the_same_program_at_the_nearest_size_comes_first():
    passing = [
        chain("aten.relu.default", size=3),
        chain("aten.relu.default", size=15),
        chain("aten.neg.default", size=16),
    ]
    found = nearest(RESULT, passing)
    assert found == passing[1]
    assert difference(RESULT, found) == "x of shape [15] instead of [16]"


def test_other_values_count_as_nearer_than_other_sizes():
    passing = [chain("aten.relu.default", size=15), chain("aten.relu.default", fill="zeros")]
    assert nearest(RESULT, passing) == passing[1]
    assert difference(RESULT, passing[1]) == "other values in x"


def test_else_the_program_with_most_calls_in_common():
    result = chain("aten.relu.default", "aten.neg.default")
    passing = [chain("aten.exp.default"), chain("aten.relu.default", "aten.exp.default")]
    found = nearest(result, passing)
    assert found == passing[1]
    assert difference(result, found) == "without aten.neg.default; with aten.exp.default"


def test_the_same_calls_on_another_kind_of_input():
    other = replace(META, dtype="int64")
    program = replace(RESULT.program, inputs=(Input("x", other),))
    assert difference(RESULT, replace(RESULT, program=program)) == "x of dtype int64 instead of float32"


def test_settings_are_named():
    result = chain("aten.relu.default", config=(("freezing", True),))
    other = chain("aten.relu.default", "aten.relu.default")
    assert difference(result, replace(other, settings=Settings())) == "with default settings"


def test_nothing_passed():
    assert nearest(RESULT, []) is None
