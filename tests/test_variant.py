"""Which variants are tried, in which order, and how they are named."""

from minimizer.case import Value
from minimizer.program import Input, Program, TensorMeta
from minimizer.variant import Variant, Wanted, variants
from strategies.values import Fill

PROGRAM = Program(
    (
        Input("x", TensorMeta("float32", (4, 4), (4, 1))),
        Input("i", TensorMeta("int64", (3,), (1,))),
    ),
    (),
    (),
)
EXAMPLES = (Value("float32", (4, 4), Fill("normal")), Value("int64", (3,), Fill("zeros")))


def words(examples=EXAMPLES, config=(), **asked):
    found = variants(Wanted(**asked), PROGRAM, examples, ["float32"], config)
    return [variant.in_words(["x", "i"]) for variant in found]


def test_by_default_a_few_layouts():
    assert words() == ["x transposed", "x, i sliced", "x sliced", "i sliced"]


def test_nothing_when_nothing_is_wanted():
    assert words(layouts="none") == []
    assert not Wanted().asks
    assert Wanted(settings="wide").asks


def test_the_other_path_comes_first_and_kinds_take_turns():
    said = words(path="both", dtypes=("float16", "int8"), settings="common", layouts="wide")
    assert said[:7] == [
        "torch.compile",
        "x transposed",
        "float32 as float16",
        "freezing=True",
        "x, i sliced",
        "int64 as int8",
        "max_autotune=True",
    ]


def test_what_was_asked_for_comes_before_what_is_tried_anyway():
    said = words(dtypes=("float16",), settings="common")
    assert said[:2] == ["float32 as float16", "freezing=True"]
    assert said[-4:] == words()


def test_every_variant_is_on_the_path_that_is_asked_for():
    found = variants(Wanted(path="inductor"), PROGRAM, EXAMPLES, [], ())
    assert {variant.path for variant in found} == {"inductor"}
    assert Wanted(path="inductor").base == Variant(path="inductor")
    assert Wanted(path="both").base == Variant()


def test_the_layout_that_is_there_already_is_not_tried():
    transposed = (Value("float32", (4, 4), Fill("normal"), stride=(1, 4)), EXAMPLES[1])
    assert words(transposed)[0] == "x, i sliced"


def test_options_that_are_set_are_not_tried_otherwise():
    assert "freezing=True" not in words(layouts="none", settings="wide", config=(("freezing", False),))


def test_what_exports_anew():
    assert not Variant(config=(("freezing", True),), path="inductor").exports_anew
    assert Variant(dtypes=(("float32", "float16"),)).exports_anew
    assert Variant().in_words(()) == "as written"
