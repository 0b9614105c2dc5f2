"""Passes one at a time: which bug shrinks to which case."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builder import Builder, check, meta, needs, targets

from minimizer.case import Case, Literal, Settings, Stored, Value
from minimizer.program import Graph, Input, Node, Program, Ref, Symbol, TensorMeta, Tree
from minimizer.reduce.cut import Observations
from minimizer.reduce.minimality import certificate
from minimizer.reduce.passes import PASSES, UnknownPass, select
from minimizer.reduce.search import Judge, reduce
from minimizer.reduce.size import size_key
from strategies.values import Fill

BATCH = Symbol("s0", 2, 64, 4)


def one_pass(name: str, case: Case, observed: Observations, judge: Judge) -> Case:
    """The case after a single pass, with every step checked to be a smaller one."""
    sizes = [size_key(case)]

    def accept(better: Case) -> None:
        check(better)
        sizes.append(size_key(better))
        assert sizes[-1] < sizes[-2]

    chosen = [p for p in PASSES if p.name == name]
    assert chosen
    return reduce(case, observed, judge, passes=chosen, on_accept=accept).case


def relu(*, settings: Settings | None = None, symbols: tuple[str, ...] = ("s0",)) -> tuple[Builder, Case]:
    b = Builder(sizes=dict.fromkeys(symbols, 17), symbols=tuple(replace(BATCH, name=n) for n in symbols))
    x = b.input("x", (*symbols, 8))
    return b, b.case(b.call("relu", x), settings)


def test_pass_names_are_unique_and_summaries_short() -> None:
    assert len({p.name for p in PASSES}) == len(PASSES)
    assert all(0 < len(p.summary) <= 60 for p in PASSES)


def test_passes_are_chosen_by_name_and_keep_their_order() -> None:
    everything = [p.name for p in PASSES]
    assert [p.name for p in select()] == everything
    assert [p.name for p in select(["values", "window"])] == ["window", "values"]
    assert [p.name for p in select(skip=["window"])] == [name for name in everything if name != "window"]
    with pytest.raises(UnknownPass, match="do you mean bypass"):
        select(["bypas"])
    with pytest.raises(ValueError, match="no pass is left"):
        select(["values"], ["values"])


def test_slicing_outputs_keeps_the_mutation_that_reaches_them() -> None:
    b = Builder()
    x = b.input("x", (4,))
    copy = b.call("clone", x)
    b.call("fill_", copy, 0.0, mutates=(0,))
    case = b.case((b.call("exp", x), b.call("neg", copy), b.call("sin", x)))
    result = one_pass("slice-outputs", case, b.observed(), needs("neg"))
    assert targets(result) == ["clone", "fill_", "neg"]


def test_modules_are_cut_by_their_paths() -> None:
    b = Builder()
    x = b.input("x", (4,))
    for layer in range(12):
        for part in ("attn", "mlp"):
            x = b.call(f"l{layer}{part}", x, module=f"layers.{layer}.{part}")
            x = b.call(f"m{layer}{part}", x, module=f"layers.{layer}.{part}")
    wanted = ("l3attn", "m3attn", "l3mlp", "m3mlp", "l7mlp", "m7mlp")
    result = one_pass("modules", b.case(x), b.observed(), needs(*wanted))
    assert targets(result) == ["l3attn", "m3attn", "l3mlp", "m3mlp", "l7attn", "m7attn", "l7mlp", "m7mlp"]


def test_containers_become_plain() -> None:
    b = Builder()
    x, y = b.input("x", (4,)), b.input("y", (4,))
    made = b.call("add", x, y)
    case = b.case(Tree("dict", ("out", "same"), (made, [made, None])))
    case = replace(case, program=replace(case.program, args=((x, y),)))
    result = reduce(case, b.observed(), needs("add")).case
    assert result.program.output == made
    assert result.program.is_flat


def test_inputs_of_a_kind_become_one() -> None:
    b = Builder()
    x, y = b.input("x", (4,)), b.input("y", (4,))
    case = b.case(b.call("add", x, y))
    case = replace(case, values=(case.values[0], Value("float32", (4,), Stored("y.pt"))))

    def needs_y(c: Case) -> bool:
        return Value("float32", (4,), Stored("y.pt")) in c.values

    result = one_pass("merge-inputs", case, b.observed(), needs_y)
    assert result.program.nodes[0].args == (x, x)


def test_the_last_dynamic_size_stays() -> None:
    b, case = relu(symbols=("s0", "s1", "s2"))
    result = one_pass("static-dims", case, b.observed(), lambda c: True)
    assert result.program.inputs[0].meta.shape == (17, 17, "s2", 8)
    needed = one_pass("static-dims", case, b.observed(), lambda c: "s1" in c.sizes)
    assert needed.program.inputs[0].meta.shape == (17, "s1", 17, 8)


def test_two_equal_sizes_become_one_where_neither_may_be_fixed() -> None:
    b, case = relu(symbols=("s0", "s1"))
    result = one_pass("static-dims", case, b.observed(), lambda c: c.program.dynamic_dims == 2)
    assert len(result.program.symbols) == 1


@pytest.mark.parametrize(("smallest", "expected"), [(2, 2), (3, 3), (7, 7), (17, 17)])
def test_sizes_shrink_as_far_as_the_failure_allows(smallest: int, expected: int) -> None:
    b, case = relu()
    result = one_pass("sizes", case, b.observed(), lambda c: c.sizes["s0"] >= smallest)
    assert result.values[0].shape == (expected, 8)
    assert result.program.symbols[0].hint == 2


def test_a_lone_multiple_of_a_size_becomes_a_size_if_it_may() -> None:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    case = b.case(b.call("relu", b.input("x", ("4*s0", 8))))
    result = one_pass("plain-dims", case, b.observed(), lambda c: True)
    assert result.program.inputs[0].meta.shape == ("d0", 8)
    assert result.program.symbols == (Symbol("d0", 8, 256, 16),)
    assert result.values == case.values
    smaller = one_pass("sizes", case, b.observed(), lambda c: "4*s0" in c.program.inputs[0].meta.shape)
    assert smaller.values[0].shape == (8, 8)


def test_stored_and_listed_values_shrink_with_their_size() -> None:
    b, case = relu()
    whole = Value("float32", (17, 8), Stored("x.pt"), stride=(1, 17))
    case = replace(case, values=(whole,))
    result = one_pass("sizes", case, b.observed(), lambda c: True)
    assert (result.values[0].shape, result.values[0].take) == ((2, 8), (2, 8))


def test_strides_become_plain_in_value_and_promise_alike() -> None:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    odd = TensorMeta("float32", (8, "s0"), (1, 8))
    case = b.case(b.call("relu", Ref("x"), shape=odd))
    program = replace(case.program, inputs=(Input("x", odd),))
    case = Case(program, (Value("float32", (8, 17), Stored("x.pt"), stride=(1, 8)),))
    result = one_pass("strides", case, b.observed(), lambda c: True)
    assert result.program.inputs[0].meta.stride == ("s0", 1)
    assert result.values[0].stride is None


def test_values_become_the_plainest_that_still_fail() -> None:
    b, case = relu()
    case = replace(case, values=(replace(case.values[0], data=Fill("nan_sprinkled", seed=3)),))
    assert one_pass("values", case, b.observed(), lambda c: True).values[0].data == Fill("zeros")

    def nonzero(c: Case) -> bool:
        return c.values[0].data not in (Fill("zeros"), Fill("ones"))

    assert one_pass("values", case, b.observed(), nonzero).values[0].data == Fill("normal")


def test_listed_elements_become_zero_and_one() -> None:
    b = Builder()
    case = b.case(b.call("relu", b.input("x", (16,))))
    listed = tuple(float(k + 2) for k in range(16))
    case = replace(case, values=(Value("float32", (16,), Literal(listed)),))

    def judge(c: Case) -> bool:
        elements = c.values[0].data.elements if isinstance(c.values[0].data, Literal) else ()
        return len(elements) == 16 and elements[3] != 0 and elements[9] == 11.0

    data = one_pass("elements", case, b.observed(), judge).values[0].data
    assert data == Literal(tuple({3: 1.0, 9: 11.0}.get(k, 0.0) for k in range(16)))


def test_settings_go_one_by_one() -> None:
    given = Settings(
        config=(("max_autotune", True), ("cpp.simdlen", 1)), environment=(("OMP_NUM_THREADS", "1"),)
    )
    b, case = relu(settings=given)
    assert one_pass("settings", case, b.observed(), lambda c: True).settings == Settings()
    result = one_pass("settings", case, b.observed(), lambda c: ("cpp.simdlen", 1) in c.settings.config)
    assert result.settings == Settings(config=(("cpp.simdlen", 1),))


def test_what_a_sanitizer_needs_goes_together_or_stays() -> None:
    needed = (("ASAN_OPTIONS", "detect_leaks=0"), ("LD_PRELOAD", "/lib/libasan.so"))
    b, case = relu(settings=Settings(environment=(*needed, ("OMP_NUM_THREADS", "1"))))
    tried: list[tuple[tuple[str, str], ...]] = []

    def judge(candidate: Case) -> bool:
        tried.append(candidate.settings.environment)
        return ("LD_PRELOAD", "/lib/libasan.so") in candidate.settings.environment

    assert one_pass("settings", case, b.observed(), judge).settings.environment == needed
    assert all(set(needed) <= set(left) or not set(needed) & set(left) for left in tried)


def test_arguments_become_few_and_plain() -> None:
    b = Builder()
    x = b.input("x", (4,))
    call = b.call("foo", x, 0.3535, 7, True, None, kwargs={"dtype": None, "alpha": 3}, name="y")
    result = one_pass(
        "drop-arguments", b.case(call), b.observed(), lambda c: len(c.program.nodes[0].args) == 5
    )
    assert result.program.nodes[0].args == (x, 1.0, 0, False, None)
    assert result.program.nodes[0].kwargs == ()
    kept = one_pass(
        "drop-arguments",
        b.case(call),
        b.observed(),
        lambda c: len(c.program.nodes[0].args) >= 3 and 7 in c.program.nodes[0].args,
    )
    assert kept.program.nodes[0].args == (x, 1.0, 7)


def branches() -> tuple[Builder, Case]:
    m = meta((4,))
    body = [
        Node("r", "aten.relu.default", (Ref("a"),), meta=m),
        Node("out", "aten.exp.default", (Ref("r"),), meta=m),
    ]
    true = Program((Input("a", m),), tuple(body), (Ref("out"),))
    false = Program((Input("a", m),), (Node("n", "aten.neg.default", (Ref("a"),), meta=m),), (Ref("n"),))
    b = Builder(graphs=(("true_graph", true), ("false_graph", false)))
    x, p = b.input("x", (4,)), b.input("p", (), "bool")
    made = b.call(
        "higher_order.cond", p, Graph("true_graph"), Graph("false_graph"), (x,), shape=(m,), name="cond"
    )
    item = b.call("operator.getitem", made, 0, shape=(4,), name="item")
    return b, b.case(b.call("sin", item, name="last"))


def test_a_branch_is_hoisted_and_cut() -> None:
    b, case = branches()
    result = reduce(case, b.observed(), needs("exp", "sin")).case
    assert targets(result) == ["exp", "sin"]
    assert result.program.graphs == ()
    check(result)
    other = reduce(case, b.observed(), needs("neg")).case
    assert targets(other) == ["neg"]


def test_a_branch_shrinks_where_the_operator_is_needed() -> None:
    b, case = branches()
    judge = needs("cond")
    result = reduce(case, b.observed(), judge).case
    assert targets(result) == ["cond"]
    assert result.program.operator_count == 1
    check(result)


def test_the_certificate_names_everything_that_is_left() -> None:
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    x = b.input("x", ("s0", 8))
    case = b.case(b.call("exp", b.call("relu", x), name="y"), Settings(config=(("freezing", True),)))

    def judge(c: Case) -> bool:
        return {"exp", "relu"} <= set(targets(c)) and bool(c.settings.config) and c.program.dynamic_dims > 0

    result = reduce(case, b.observed(), judge)
    proof = certificate(result.case, b.observed(), judge)
    assert proof.complete
    assert proof.minimal
    assert {(e.part, e.verdict) for e in proof.entries} == {
        ("node", "passes"),
        ("output", "not expressible"),
        ("symbol", "passes"),
        ("setting", "passes"),
    }
    spare = certificate(result.case, b.observed(), needs("exp"))
    assert not spare.minimal
    late = certificate(result.case, b.observed(), judge, deadline=lambda: True)
    assert not late.complete
    assert not late.minimal
