"""One cut at a time: what becomes an input, what becomes an output, which sizes survive."""

from __future__ import annotations

from dataclasses import replace

from builder import Builder, meta, targets

from minimizer.case import Case, Literal, Stored
from minimizer.program import CHECK, Input, Ref, Sym, Symbol, TensorMeta
from minimizer.reduce.cut import Observed, keep, slice_outputs, units
from minimizer.source import dynamic_shapes_code, module_source

BATCH = Symbol("s0", 2, 64, 4)


def batch() -> Builder:
    return Builder(sizes={"s0": 17}, symbols=(BATCH,))


def shapes(case: Case | None) -> dict[str, tuple[int | str, ...]]:
    assert case is not None
    return {i.name: i.meta.shape for i in case.program.inputs}


def test_what_a_kept_call_reads_becomes_an_input_and_what_others_read_an_output() -> None:
    b = batch()
    x = b.input("x", ("s0", 8))
    a = b.call("relu", x, name="a")
    c = b.call("neg", a, name="c")
    d = b.call("add", c, x, name="d")
    cut = keep(b.case(d), {"c"}, b.observed())
    assert cut is not None
    assert cut.program.inputs == (Input("a", meta(("s0", 8))),)
    assert cut.program.output == Ref("c")
    assert cut.values[0].shape == (17, 8)
    gap = keep(b.case(d), {"a", "d"}, b.observed())
    assert gap is not None
    assert [i.name for i in gap.program.inputs] == ["x", "c"]
    assert gap.program.output == (Ref("a"), Ref("d"))


def test_keeping_everything_changes_nothing() -> None:
    b = batch()
    x, y = b.input("x", ("s0", 8)), b.input("y", ("s0", 8))
    z = b.call("add", x, y)
    case = b.case([(z,), x])
    case = replace(case, program=replace(case.program, args=((x, y),)))
    assert keep(case, units(case.program), b.observed()) == case


def test_a_value_nobody_observed_cannot_be_cut_at() -> None:
    b = batch()
    a = b.call("relu", b.input("x", ("s0", 8)), name="a")
    case = b.case(b.call("neg", a, name="c"))
    assert keep(case, {"c"}, {}) is None


def test_multi_output_calls_are_cut_at_their_items() -> None:
    b = batch()
    x = b.input("x", ("s0", 8))
    pair = b.call("split", x, 4, name="pair", shape=(meta(("s0", 4)), meta(("s0", 4))))
    one = b.call("operator.getitem", pair, 0, name="one", shape=("s0", 4))
    two = b.call("operator.getitem", pair, 1, name="two", shape=("s0", 4))
    total = b.call("add", one, two, name="total")
    case = b.case(total)
    head = keep(case, {"pair"}, b.observed())
    assert head is not None
    assert [n.name for n in head.program.nodes] == ["pair", "one", "two"]
    assert head.program.output == (Ref("one"), Ref("two"))
    assert list(shapes(keep(case, {"total"}, b.observed()))) == ["one", "two"]


def test_a_multi_output_call_returned_whole_is_returned_by_its_first_item() -> None:
    b = batch()
    x = b.input("x", ("s0", 8))
    y = b.call("relu", x, name="y")
    pair = b.call("split", y, 4, name="pair", shape=(meta(("s0", 4)), meta(("s0", 4))))
    assert keep(b.case(pair), {"pair"}, b.observed()) is not None
    cut = keep(b.case((pair, y)), {"pair"}, b.observed())
    assert cut is not None
    assert cut.program.output == Ref("pair_0")


def test_mutation_stays_where_it_was() -> None:
    b = batch()
    x = b.input("x", ("s0", 8))
    copy = b.call("clone", x, name="copy")
    view = b.call("slice", copy, 1, 0, 4, name="view", shape=("s0", 4))
    b.call("fill_", view, 0.0, name="filled", mutates=(0,))
    case = b.case(b.call("relu", copy, name="out"))
    sliced = slice_outputs(case, ["out"], b.observed())
    assert sliced is not None
    assert targets(sliced) == ["clone", "slice", "fill_", "relu"]
    cut = keep(case, {"copy", "view", "filled"}, b.observed())
    assert cut is not None
    assert targets(cut) == ["clone", "slice", "fill_"]
    assert cut.program.output == Ref("copy")
    without = keep(case, {"copy", "view", "out"}, b.observed())
    assert without is not None
    assert "fill_" not in targets(without)


def test_a_size_that_nobody_carries_any_more_gets_a_carrier() -> None:
    b = batch()
    x = b.input("x", ("s0", 8))
    total = b.call("sum", x, [0], name="total", shape=(8,))
    two = b.call("relu", total, name="two")
    case = b.case(b.call("expand", two, [Sym("s0"), 8], name="back", shape=("s0", 8)))
    cut = keep(case, {"back"}, b.observed())
    assert shapes(cut) == {"two": (8,), "size_of_s0": ("s0",)}
    assert cut is not None
    assert [v.shape for v in cut.values] == [(8,), (17,)]
    assert cut.program.symbols == (BATCH,)
    assert "s0 = size_of_s0.shape[0]" in module_source(cut.program, {})
    again = keep(cut, {"back"}, b.observed())
    assert again == cut


def test_a_multiple_of_a_size_tells_the_size() -> None:
    b = batch()
    x = b.input("x", ("s0", 8))
    flat = b.call("view", x, [Sym("8*s0")], name="flat", shape=("8*s0",))
    case = b.case(b.call("view", flat, [Sym("s0"), 8], name="back", shape=("s0", 8)))
    cut = keep(case, {"back"}, b.observed())
    assert cut is not None
    assert shapes(cut) == {"flat": ("8*s0",)}
    assert "s0 = flat.shape[0] // 8" in module_source(cut.program, {})


def test_multiples_of_a_size_need_no_carrier_and_stay_related() -> None:
    b = batch()
    x = b.input("x", ("s0", 8))
    flat = b.call("view", x, [Sym("4*s0"), 2], name="flat", shape=("4*s0", 2))
    wide = b.call("cat", flat, name="wide", shape=("8*s0", 2))
    case = b.case((b.call("relu", flat, name="one"), b.call("neg", wide, name="two")))
    cut = keep(case, {"one", "two"}, b.observed())
    assert cut is not None
    assert shapes(cut) == {"flat": ("4*s0", 2), "wide": ("8*s0", 2)}
    assert cut.program.symbols == (BATCH,)
    assert [v.shape for v in cut.values] == [(68, 2), (136, 2)]
    lines, spec = dynamic_shapes_code(cut.program)
    assert lines == ['s0 = Dim("s0", min=2, max=64)']
    assert spec == '{"flat": {0: 4*s0}, "wide": {0: 8*s0}}'


def test_a_product_of_sizes_becomes_a_size_of_its_own() -> None:
    b = Builder(sizes={"s0": 17, "s1": 5}, symbols=(BATCH, Symbol("s1", 0, None, 6)))
    x = b.input("x", ("s0", "s1"))
    flat = b.call("view", x, [-1], name="flat", shape=("s0*s1",))
    more = b.call("pad", flat, name="more", shape=("s0*s1 + 1",))
    case = b.case((b.call("relu", more, name="one"), b.call("neg", flat, name="two")))
    cut = keep(case, {"one", "two"}, b.observed())
    assert cut is not None
    assert shapes(cut) == {"more": ("d0 + 1",), "flat": ("d0",)}
    assert cut.program.symbols == (Symbol("d0", 0, None, 24),)
    assert cut.sizes == {"d0": 85}
    assert [v.shape for v in cut.values] == [(86,), (85,)]


def test_strides_speak_of_sizes_at_hand_only() -> None:
    b = batch()
    x = b.input("x", (8, "s0"))
    column = b.call("select", x, 1, 0, name="column", shape=TensorMeta("float32", (8,), ("s0",)))
    seen = dict(b.observed())
    seen["column"] = Observed(seen["column"].meta, replace(seen["column"].value, stride=(17,)))
    cut = keep(b.case(b.call("relu", column, name="out")), {"out"}, seen)
    assert cut is not None
    assert cut.program.inputs[0].meta.stride == (17,)


def test_a_size_computed_from_data_becomes_an_ordinary_one() -> None:
    b = Builder(sizes={"u0": 5})
    x = b.input("x", (8,))
    found = b.call("nonzero", x, name="found", shape=("u0", 1))
    picked = b.call("expand", found, [Sym("u0"), 4], name="picked", shape=("u0", 4))
    case = b.case(picked)
    cut = keep(case, {"picked"}, b.observed())
    assert cut is not None
    assert cut.program.symbols == (Symbol("u0", 2, None, 5),)
    assert shapes(cut) == {"found": ("u0", 1)}


def test_a_number_read_from_a_tensor_is_read_off_a_size_instead() -> None:
    b = Builder(sizes={"u0": 5})
    x = b.input("x", (8,), "int64")
    count = b.call("item", x, name="count", shape=Sym("u0"))
    ones = b.call("full", [Sym("u0")], 1.0, name="ones", shape=("u0",))
    case = b.case(b.call("mul.Scalar", ones, count, name="out", shape=("u0",)))
    whole = keep(case, units(case.program), b.observed())
    assert whole == case
    cut = keep(case, {"out"}, b.observed())
    assert cut is not None
    assert cut.program.nodes[0].args == (Ref("ones"), Sym("u0"))
    assert keep(case, {"out"}, {"ones": b.observed()["ones"]}) is not None


def test_checks_of_a_size_stay_with_what_makes_it() -> None:
    b = Builder(sizes={"u0": 5})
    x = b.input("x", (8,))
    found = b.call("nonzero", x, name="found", shape=("u0", 1))
    b.call(CHECK, Sym("u0 >= 2"), name="check", shape=())
    case = b.case(b.call("neg", found, name="out"))
    near = keep(case, {"found"}, b.observed())
    assert near is not None
    assert [n.name for n in near.program.nodes] == ["found", "check"]
    far = keep(case, {"out"}, b.observed())
    assert far is not None
    assert [n.name for n in far.program.nodes] == ["out"]


def test_state_stays_state_and_unread_state_goes() -> None:
    b = batch()
    x = b.input("x", ("s0", 8))
    w, v = b.parameter("w", (8, 8)), b.parameter("v", (8, 8))
    a = b.call("mm", x, w, name="a", shape=("s0", 8))
    case = b.case(b.call("mm", a, v, name="c", shape=("s0", 8)))
    cut = keep(case, {"c"}, b.observed())
    assert cut is not None
    assert [s.name for s in cut.program.state] == ["v"]
    assert list(shapes(cut)) == ["a"]


def test_a_cut_after_sizes_shrank_takes_the_leading_part_of_what_was_observed() -> None:
    b = batch()
    x = b.input("x", ("s0", 8))
    a = b.call("relu", x, name="a")
    case = b.case(b.call("neg", a, name="c"))
    seen = dict(b.observed())
    seen["a"] = Observed(seen["a"].meta, replace(seen["a"].value, data=Stored("a.pt")))
    small = replace(case, values=(replace(case.values[0], shape=(3, 8)),))
    cut = keep(small, {"c"}, seen)
    assert cut is not None
    assert (cut.values[0].shape, cut.values[0].take) == ((3, 8), (3, 8))
    listed = tuple(range(17 * 8))
    seen["a"] = Observed(seen["a"].meta, replace(seen["a"].value, data=Literal(listed)))
    cut = keep(small, {"c"}, seen)
    assert cut is not None
    assert cut.values[0].data == Literal(listed[:24])


def test_strided_values_stay_strided() -> None:
    b = batch()
    x = b.input("x", ("s0", 8))
    a = b.call("transpose", x, 0, 1, name="a", shape=TensorMeta("float32", (8, "s0"), (1, 8)))
    case = b.case(b.call("neg", a, name="c"))
    seen = dict(b.observed())
    seen["a"] = Observed(seen["a"].meta, replace(seen["a"].value, stride=(1, 8)))
    cut = keep(case, {"c"}, seen)
    assert cut is not None
    assert cut.program.inputs[0].meta.stride == (1, 8)
    assert cut.values[0].stride == (1, 8)
