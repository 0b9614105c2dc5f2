"""Many programs in one compilation: who is blamed, who is left out, what is tried."""

import pytest

from minimizer.case import Case, Value
from minimizer.nightly.pooling import MEMBER_ELEMENTS, PRELOAD, PoolBench, member_inputs, parts
from minimizer.oracle.verdict import Failure, Verdict
from minimizer.program import Input, Node, Program, Ref, Symbol, TensorMeta
from minimizer.sandbox import Died, Sandbox
from strategies.programs import Call, Plan
from strategies.values import Fill


def case(target, *args, dtype="float32", shape=(2, "s0"), hint=5):
    meta = TensorMeta(dtype, shape, (shape[-1], 1))
    sizes = tuple(hint if isinstance(size, str) else size for size in shape)
    symbols = (Symbol("s0", 2, None, hint),) if "s0" in shape else ()
    node = Node("v", target, (Ref("x"), *args))
    program = Program((Input("x", meta),), (node,), (Ref("v"),), symbols=symbols)
    return Case(program, (Value(dtype, sizes, Fill("ramp")),))


def test_a_failed_pool_is_parted_by_the_operator_that_the_failure_names():
    pool = [case("aten.relu.default"), case("aten.neg.default"), case("aten.abs.default")]
    rest, named = parts(pool, Failure("compile_error", "lower", op="aten.neg.default"))
    assert (rest, named) == ([pool[0], pool[2]], [pool[1]])


def test_a_pool_that_the_compiler_refuses_is_parted_by_the_kernels_that_it_names():
    pool = [
        case("aten.relu.default"),
        case("aten.lerp.Scalar"),
        case("aten.abs.default"),
        case("aten.mul.Tensor"),
    ]
    said = "x.cpp: In function 'void cpp_fused__to_copy_lerp_mul_12(const bool*)':\nx.cpp:9: error: no match"
    rest, named = parts(pool, Failure("cxx_error", "cxx", said))
    assert (rest, named) == ([pool[0], pool[2]], [pool[1], pool[3]])


@pytest.mark.parametrize("op", ["", "aten.other.default"])
def test_else_it_is_halved(op):
    pool = [case("aten.relu.default", shape=(2, k)) for k in range(2, 7)]
    assert parts(pool, Failure("crash", "run", op=op)) == [pool[:2], pool[2:]]


def test_further_inputs_of_a_member_are_small():
    inputs = member_inputs(case("aten.relu.default"), 20)
    assert 10 < len(inputs) <= 20
    assert all(sum(v.numel for v in values) <= MEMBER_ELEMENTS for values in inputs)
    assert len({values[0].shape for values in inputs}) > 3


class Script:
    """A sandbox whose workers die on some members: `on_examples` at once, `on_others` on any other input.

    On other inputs `wrong` members give wrong values; `lax` ones first lose an error, and are wrong later if
    they are among `wrong` too.
    """

    def __init__(self, tmp_path, on_examples=(), on_others=(), wrong=(), lax=()):
        self.scratch = tmp_path
        self.deadly = {"examples": set(on_examples), "others": set(on_others), "wrong": set(wrong)}
        self.lax = set(lax)
        self.asked = []

    def worker(self):
        return ScriptedWorker(self)


class ScriptedWorker:
    def __init__(self, script):
        self.script, self.alive, self.cases = script, True, []

    def close(self):
        self.alive = False

    def call(self, task, *args, **limits):
        name = task.partition(":")[2]
        self.script.asked.append(name)
        if name == "open_pool":
            self.cases = args[1]
            return [""] * len(self.cases)
        if name == "judge_round":
            for k, values in enumerate(args[0]):
                self._run(k, values)
            return [None if values is None else self._verdict(k, values) for k, values in enumerate(args[0])]
        if name == "judge_alone":
            self._run(*args)
            return Verdict("pass")
        return None

    def _verdict(self, k, values):
        if values == self.cases[k].values:
            return Verdict("pass")
        if self._name(k) in self.script.lax and self.script.asked.count("judge_round") < 4:
            return Verdict("fail", Failure("lost_error", "run"))
        wrong = self._name(k) in self.script.deadly["wrong"]
        return Verdict("fail", Failure("wrong_value", "run")) if wrong else Verdict("pass")

    def _name(self, k):
        return self.cases[k].program.nodes[0].target.split(".")[1]

    def _run(self, k, values):
        which = "examples" if values == self.cases[k].values else "others"
        if values is not None and self._name(k) in self.script.deadly[which]:
            self.alive = False
            raise Died(-11, "run", "")


def judged(tmp_path, **deadly):
    names = ("relu", "neg", "abs", "sin", "cos")
    script = Script(tmp_path, **deadly)
    bench = PoolBench(script, tmp_path)
    bench.judge([case(f"aten.{name}.default") for name in names])
    found = [s.case.program.nodes[0].target.split(".")[1] for s in bench.report.suspects]
    return found, bench.report, script.asked


def test_a_member_that_dies_on_its_own_inputs_is_found_by_parting(tmp_path):
    found, report, _ = judged(tmp_path, on_examples=["abs"])
    assert found == ["abs"] and report.judged == 5
    assert report.suspects[0].failure.kind == "crash" and report.suspects[0].failure.stage == "run"


def test_members_that_die_on_other_inputs_are_found_without_another_compilation(tmp_path):
    found, report, asked = judged(tmp_path, on_others=["neg", "cos"])
    assert sorted(found) == ["cos", "neg"] and report.judged == 5
    assert asked.count("compile_pool") == 1
    assert all(s.case.values != s.examples for s in report.suspects)


def test_a_wrong_output_names_its_program_once(tmp_path):
    found, report, asked = judged(tmp_path, wrong=["abs"])
    assert found == ["abs"] and report.judged == 5
    assert asked.count("compile_pool") == 1
    assert report.suspects[0].case.values != report.suspects[0].examples


def test_a_lost_error_hides_nothing_worse_in_the_same_program(tmp_path):
    found, report, _ = judged(tmp_path, wrong=["abs"], lax=["abs", "sin"])
    assert found == ["abs", "sin"] and report.judged == 5
    assert [s.failure.kind for s in report.suspects] == ["wrong_value", "lost_error"]


@pytest.fixture(scope="module")
def pooled(tmp_path_factory):
    """One pool of four, one of which eager refuses."""
    members = {
        "relu": case("aten.relu.default"),
        "abs": case("aten.abs.default", dtype="int32"),
        "view": case("aten.view.default", [7, 7]),
        "sum": case("aten.sum.dim_IntList", [1]),
    }
    with Sandbox("minimizer.oracle.warm") as sandbox:
        bench = PoolBench(sandbox, tmp_path_factory.mktemp("store"))
        bench.judge(list(members.values()))
    return members, bench.report


@pytest.mark.compiles
def test_the_others_are_judged_in_as_few_compilations_as_can_be(pooled):
    members, report = pooled
    assert report.judged == 3 and list(report.refused) == [members["view"].key]
    assert report.compiles == 1
    assert report.inputs > 40


@pytest.mark.compiles
def test_the_operator_database_gives_programs_with_dynamic_dims(tmp_path):
    pytest.importorskip("numpy")
    pytest.importorskip("expecttest")
    from minimizer.nightly.generate import Catalogue, programs_of

    with Sandbox(PRELOAD) as sandbox:
        catalogue = Catalogue(sandbox, str(tmp_path))
        names = {o.name for o in catalogue.operators}
        assert len(names) > 300
        assert not names & {"empty", "svd", "scatter"}
        wanted = [
            Plan((Call("acosh", "float32"),)),
            Plan((Call("acosh", "float32"), Call("acosh", "float32", 0, (1,)))),
            Plan((Call("bernoulli", "float32"),)),
            Plan((Call("acosh", "float32"),)),
            Plan((Call("nn.functional.max_pool2d", "float32", 1),)),  # lists among its arguments
        ]
        cases, left_out = programs_of(catalogue, wanted)
    assert left_out == 2  # random, and there already
    (_, alone), (_, chain), (_, pooling) = cases
    assert pooling.program.inputs[0].meta.dtype == "float32"
    assert {s.low for s in alone.program.symbols} == {0}  # what is empty is tried too
    assert alone.program.dynamic_dims and alone.program.operator_count == 1
    assert len(chain.program.inputs) == 1 and chain.program.operator_count == 2
