"""Which judge is taken, whose word counts, and what the result keeps."""

from dataclasses import replace
from random import Random

import pytest
from judges import CASE, CRASH, WRONG, Bench, M, chain

from minimizer.case import Case, Value
from minimizer.narrow import Means, affordable, confirm, narrow
from minimizer.oracle.case_bench import OutOfBudget
from minimizer.oracle.verdict import PASS, Failure, Verdict
from minimizer.program import Graph, Input, Node, Program, Ref, Symbol, TensorMeta
from minimizer.prosecutor import dynamic_flows_into
from minimizer.reduce.dims import Observed
from minimizer.reduce.journal import MemoryJournal
from minimizer.reduce.passes import PASSES, select
from strategies import Fill


def test_confirmation_is_fresh_and_full():
    bench = Bench(full=[PASS, CRASH, WRONG])
    assert confirm(bench, CASE, WRONG, 2) is None
    assert bench.asked == [("full", True)] * 2
    assert confirm(bench, CASE, WRONG, 1) == WRONG


LONG = chain(*(f"aten.{name}.default" for name in ("relu", "sin", "cos", "exp", "neg", "tanh", "abs")))
SEEN = {
    r.name: Observed(M, Value("float32", (4,), Fill("normal")))
    for r in (*LONG.program.inputs, *LONG.program.nodes)
}


class Faulty:
    """A compiler with one wrong operator; `blind` levels do not show it, `lying` ones see it anywhere."""

    def __init__(self, operator, *, blind=(), lying=(), failure=WRONG):
        self.operator, self.blind, self.lying, self.failure = operator, blind, lying, failure
        self.asked = []

    def judge(self, case, level="full", *, fresh=False):
        self.asked.append(level)
        wrong = self.operator in [n.target.split(".")[1] for n in case.program.nodes]
        fails = level not in self.blind and (wrong or level in self.lying)
        return Verdict("fail", self.failure) if fails else PASS


def narrowed(bench, failure=WRONG, *, journal=None, also=None, **means):
    return narrow(bench, LONG, failure, SEEN, Means(**means), journal=journal, also=also)


def operators(case):
    return [n.target.split(".")[1] for n in case.program.nodes]


def test_a_failure_is_narrowed_to_its_operator_by_the_cheap_judge():
    bench = Faulty("neg")
    found = narrowed(bench)
    assert operators(found.case) == ["neg"]
    assert (found.level, found.failure, found.note) == ("jit", WRONG, "")
    assert found.reduction.complete
    assert found.certificate is not None
    assert bench.asked.count("full") == 1


def test_a_blind_proxy_is_passed_over():
    found = narrowed(Faulty("neg", blind=("jit",)))
    assert (operators(found.case), found.level, found.note) == (["neg"], "full", "")


def test_a_lying_proxy_is_found_out():
    found = narrowed(Faulty("neg", lying=("jit",)))
    assert (operators(found.case), found.level) == (["neg"], "full")
    assert found.note == "the jit judge was misled"


def test_what_no_level_shows_is_not_narrowed():
    assert narrowed(Faulty("neg", blind=("jit", "full"))) is None


def test_a_lowering_error_needs_no_kernels():
    failure = Failure("compile_error", "lower", "KeyError", "LoweringException", op="aten.neg.default")
    bench = Faulty("neg", failure=failure)
    assert operators(narrowed(bench, failure).case) == ["neg"]
    assert set(bench.asked) == {"lower", "full"}


def test_verdicts_of_a_proxy_are_not_taken_for_the_full_judge_s():
    journal = MemoryJournal()
    narrowed(Faulty("neg", lying=("jit",)), journal=journal)
    again = Faulty("neg", lying=("jit",))
    found = narrowed(again, journal=journal)
    assert (operators(found.case), found.level) == (["neg"], "full")


def test_what_was_judged_before_is_not_judged_again():
    journal = MemoryJournal()
    first, second = Faulty("neg"), Faulty("neg")
    before = narrowed(first, journal=journal)
    after = narrowed(second, journal=journal)
    assert (after.case, after.level, after.certificate) == (before.case, before.level, before.certificate)
    assert second.asked == ["full"], "the confirmation only"


def test_what_a_pass_puts_in_is_observed_and_cut_too():
    """A step of a map is hoisted with a call that picks its row; then that call is cut off again."""
    rows = TensorMeta("float32", (3, 4), (4, 1))
    body = Program((Input("p", M),), (Node("e", "aten.erf.default", (Ref("p"),), meta=M),), (Ref("e"),))
    steps = Node("steps", "higher_order.map_impl", (Graph("body"), [Ref("x")], []), meta=(rows,))
    item = Node("item", "operator.getitem", (Ref("steps"), 0), meta=rows)
    program = Program((Input("x", rows),), (steps, item), Ref("item"), graphs=(("body", body),))
    case = Case(program, (Value("float32", (3, 4), Fill("normal")),))
    looked = []

    def observe(changed):
        looked.append(changed)
        value = Value("float32", (4,), Fill("normal"))
        return {n.name: Observed(M, value) for n in changed.program.nodes}

    seen = {"x": Observed(rows, case.values[0])}
    inside = Faulty("erf")
    inside.judge = lambda c, level="full", fresh=False: Faulty.judge(
        inside, replace(c, program=replace(c.program, nodes=_all_nodes(c.program)))
    )
    found = narrow(inside, case, WRONG, seen, Means(observe=observe))
    assert operators(found.case) == ["erf"]
    assert [operators(c) for c in looked] == [["select", "erf"]]


def decomposing(operator, *, parts=("add", "clamp", "mul")):
    """Narrow a lone hardswish that fails because of an operator of its parts."""
    whole = chain("aten.hardswish.default")
    finer = chain(*(f"aten.{part}.default" for part in parts)).program

    class Inside(Faulty):
        def judge(self, case, level="full", *, fresh=False):
            if operators(case) == ["hardswish"]:
                return Verdict("fail", WRONG)
            return super().judge(case, level, fresh=fresh)

    def observe(case):
        names = [r.name for r in (*case.program.inputs, *case.program.nodes)]
        return {name: Observed(M, Value("float32", (4,), Fill("normal"))) for name in names}

    means = Means(observe=observe, decompose=lambda case: finer)
    return operators(narrow(Inside(operator), whole, WRONG, observe(whole), means).case)


def test_a_composite_operator_is_narrowed_to_its_part():
    assert decomposing("clamp") == ["clamp"]


def test_a_composite_operator_stays_where_its_parts_pass_or_are_no_fewer():
    assert decomposing("nothing") == ["hardswish"]
    assert decomposing("add", parts=("add",)) == ["hardswish"]


def _all_nodes(program):
    return program.nodes + tuple(n for _, body in program.graphs for n in body.nodes)


def test_an_interruption_is_passed_on():
    with pytest.raises(KeyboardInterrupt):
        narrowed(Faulty("neg"), interrupted=lambda: True)


class Slow(Faulty):
    """Its time is up at the judgement of that number."""

    def __init__(self, operator, last):
        super().__init__(operator)
        self.last = last

    def judge(self, case, level="full", *, fresh=False):
        if level != "full" and len(self.asked) == self.last:
            raise OutOfBudget
        return super().judge(case, level, fresh=fresh)


def test_a_judgement_that_runs_out_of_time_ends_the_search_and_is_not_remembered():
    journal = MemoryJournal()
    found = narrowed(Slow("neg", 6), journal=journal)
    assert "neg" in operators(found.case)
    assert not found.reduction.complete
    whole = narrowed(Faulty("neg"), journal=journal)
    assert (operators(whole.case), whole.reduction.complete) == (["neg"], True)


def test_without_time_for_a_first_guess_nothing_is_narrowed():
    assert narrowed(Slow("neg", 2)) is None


def test_when_time_is_up_the_best_so_far_stands():
    found = narrowed(Faulty("neg"), deadline=lambda: True)
    assert "neg" in operators(found.case)
    assert not found.reduction.complete
    assert found.certificate is None


def dynamic_chain():
    """A dynamic call, then two static ones on an input of their own."""
    size = TensorMeta("float32", ("n",), (1,))
    nodes = (
        Node("a", "aten.cos.default", (Ref("x"),), meta=size),
        Node("b", "aten.sum.default", (Ref("a"),), meta=TensorMeta("float32", (), ())),
        Node("c", "aten.add.Tensor", (Ref("y"), Ref("b")), meta=M),
        Node("d", "aten.relu.default", (Ref("c"),), meta=M),
        Node("e", "aten.neg.default", (Ref("d"),), meta=M),
    )
    program = Program((Input("x", size), Input("y", M)), nodes, Ref("e"), symbols=(Symbol("n", 2, 64, 8),))
    values = (Value("float32", (8,), Fill("normal")), Value("float32", (4,), Fill("normal")))
    case = Case(program, values)
    seen = {i.name: Observed(i.meta, v) for i, v in zip(program.inputs, values, strict=True)}
    seen |= {
        n.name: Observed(n.meta, Value("float32", (8,) if n.name == "a" else n.meta.shape, Fill("ones")))
        for n in nodes
    }
    return case, seen


class Needs:
    """Fails while all the operators are there, with results like `meta` if that is given."""

    def __init__(self, *operators, meta=None):
        self.operators = {f"aten.{name}" for name in operators}
        self.meta = meta
        self.judged = 0

    def judge(self, case, level="full", *, fresh=False):
        self.judged += 1
        there = {
            n.target.rpartition(".")[0] for n in case.program.nodes if not self.meta or n.meta == self.meta
        }
        return Verdict("fail", WRONG) if self.operators <= there else PASS


def reduced(*operators, case=None, meta=None):
    case, seen = case or dynamic_chain()
    result = narrow(Needs(*operators, meta=meta), case, WRONG, seen)
    assert result is not None
    assert result.certificate is not None
    assert result.certificate.minimal
    return [n.target.split(".")[1] for n in result.case.program.operators], result.case.program.dynamic_dims


def test_a_dynamic_dim_is_kept_when_it_costs_one_call():
    calls, dims = reduced("sum", "add")
    assert calls == ["sum", "add"]
    assert dims == 1


def test_a_dynamic_dim_downstream_of_what_fails_is_not_worth_a_call():
    case, seen = dynamic_chain()
    after = Node("f", "aten.mul.Tensor", (Ref("x"), Ref("d")), meta=case.program.inputs[0].meta)
    kept = tuple(n for n in case.program.nodes if n.name in ("c", "d"))
    kept = (replace(kept[0], args=(Ref("y"), Ref("y"))), kept[1], after)
    case = replace(case, program=replace(case.program, nodes=kept, output=Ref("f")))
    assert not dynamic_flows_into(case.program, ["c", "d"])
    assert dynamic_flows_into(case.program, ["c", "f"])
    seen["f"] = Observed(after.meta, Value("float32", (8,), Fill("ones")))
    calls, dims = reduced("add", "relu", case=(case, seen), meta=M)
    assert calls == ["add", "relu"]
    assert dims == 0


def test_a_dynamic_dim_goes_when_it_costs_more():
    calls, dims = reduced("neg")
    assert calls == ["neg"]
    assert dims == 0


class Moody(Faulty):
    """A wrong operator that shows now and then, and others that look wrong by rare accident."""

    def __init__(self, operator, rate, seed):
        super().__init__(operator)
        self.rate, self.random = rate, Random(seed)

    def judge(self, case, level="full", *, fresh=False):
        verdict = super().judge(case, level, fresh=fresh)
        rate = self.rate if verdict.failed else self.rate / 40
        return Verdict("fail", WRONG) if self.random.random() < rate else PASS


@pytest.mark.parametrize("rate", [0.3, 0.5, 0.7, 0.9])
def test_luck_is_not_mistaken_for_progress(rate):
    for seed in range(25):
        bench = Moody("neg", rate, seed)
        found = narrowed(bench, repeats=14)
        assert found is not None
        assert operators(found.case) == ["neg"]
        assert found.test is not None
        assert found.test.often <= rate
        assert found.certificate.minimal


def test_what_fails_less_and_less_is_not_followed():
    """Each further call makes the failure more likely: the last one alone hardly ever fails."""

    class Fading(Moody):
        def judge(self, case, level="full", *, fresh=False):
            rate = 0.9 if len(case.program.nodes) >= 5 else 0.05
            return Verdict("fail", WRONG) if self.random.random() < rate else PASS

    found = narrowed(Fading("neg", 0.9, 7), repeats=3)
    assert len(found.case.program.nodes) == 5


def test_looks_are_not_worth_a_package_each():
    assert {p.name for p in PASSES} - {p.name for p in affordable(PASSES, "full")} == {
        "plain-operators",
        "static-sizes",
        "dtypes",
    }
    assert affordable(PASSES, "jit") == PASSES
    asked = select(["dtypes"])
    assert affordable(asked, "full") == asked
