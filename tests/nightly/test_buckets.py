"""What makes two findings one bug, and what known.toml may say."""

from dataclasses import replace

import pytest

from minimizer.buckets import (
    Known,
    KnownFileError,
    bucket_of,
    calls_of,
    dtype_class,
    plain_name,
    read_known,
    seen_of,
    slug,
)
from minimizer.oracle.verdict import Signature
from minimizer.program import Input, Node, Program, Ref, Symbol, TensorMeta

WRONG = Signature("wrong_value", "run", "", "values")


def program(target="aten.amin.default", dtype="uint8", shape=("s0", 4), args=([1],), name="x"):
    meta = TensorMeta(dtype, shape, (4, 1))
    node = Node("v", target, (Ref(name), *args), meta=TensorMeta(dtype, shape[:1], (1,)))
    symbols = tuple(Symbol(s, 2, 9, 3) for s in shape if isinstance(s, str))
    return Program((Input(name, meta),), (node,), (Ref("v"),), symbols=symbols)


@pytest.mark.parametrize(
    "other",
    [
        program(name="rows"),
        program(shape=("n", 7)),
        program(target="torch.amin"),
        program(dtype="int8"),
        program(args=([0],)),
    ],
    ids=["name", "size", "spelling", "dtype of a class", "number"],
)
def test_the_same_bug(other):
    assert bucket_of(other, WRONG) == bucket_of(program(), WRONG)


@pytest.mark.parametrize(
    "other",
    [
        program(target="aten.amax.default"),
        program(dtype="float32"),
        program(args=([1], True)),
        program(shape=("s0", 4, 2)),
        replace(program(), output=Ref("v")),
    ],
    ids=["operator", "class of dtype", "argument", "rank", "output"],
)
def test_another_bug(other):
    assert bucket_of(other, WRONG) != bucket_of(program(), WRONG)


def test_another_failure_of_the_same_program_is_another_bug():
    assert bucket_of(program(), replace(WRONG, kind="crash")) != bucket_of(program(), WRONG)


def test_plain_names_and_classes():
    assert [plain_name(t) for t in ("operator.add", "aten.add_.Tensor", "my.op.default")] == [
        "add",
        "add_",
        "default",
    ] or plain_name("my.op.default") == "default"
    assert [dtype_class(d) for d in ("bool", "int64", "uint16", "float8_e4m3fn", "complex64")] == [
        "bool",
        "integer",
        "narrow integer",
        "float",
        "complex",
    ]


def test_a_program_with_the_calls_of_a_bucket_is_explained_by_it():
    seen = seen_of(program(), "wrong_value")
    longer = replace(program(), nodes=(*program().nodes, Node("w", "aten.neg.default", (Ref("v"),))))
    assert calls_of(longer) == ("amin", "neg")
    assert seen.explains(seen_of(longer, "wrong_value"))
    assert not seen.explains(seen_of(longer, "crash"))
    assert not seen.explains(seen_of(program(dtype="float32"), "wrong_value"))
    assert not seen_of(longer, "wrong_value").explains(seen)


def test_slug():
    assert slug("wrong_value", ["amin"], "0123456789abcdef") == "wrong-value-amin-0123"


def test_known_by_bucket_or_by_kind_and_calls(tmp_path):
    path = tmp_path / "known.toml"
    assert read_known(path) == []
    path.write_text(
        '[[known]]\nbucket = "ab"\nissue = "https://example.org/1"\n\n'
        '[[known]]\nkind = "wrong_value"\ncalls = ["div", "floor"]\nnote = "documented"\n'
    )
    first, second = read_known(path)
    assert first == Known(bucket="ab", issue="https://example.org/1")
    assert first.matches("ab", "crash", ()) and not first.matches("cd", "crash", ())
    assert second.matches("cd", "wrong_value", ["floor", "div"])
    assert not second.matches("cd", "wrong_value", ["div"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[known]\n", "is not TOML"),
        ("known = 3\n", r"under \[\[known\]\]"),
        ('[[known]]\nissue = "x"\n', "give a bucket, or a kind and calls"),
        ('[[known]]\nbucket = "ab"\n', "what is known"),
        ('[[known]]\nbucket = 7\nnote = "x"\n', "bucket is not text"),
        ('[[known]]\nkind = "crash"\ncalls = "relu"\nnote = "x"\n', "calls is not text"),
    ],
)
def test_what_known_may_not_be(tmp_path, text, said):
    path = tmp_path / "known.toml"
    path.write_text(text)
    with pytest.raises(KnownFileError, match=said):
        read_known(path)
