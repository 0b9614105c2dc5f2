"""Which judge is taken, whose word counts, and what a failure itself points at."""

import pytest

from minimizer.case import Case, Settings, Value
from minimizer.narrow import Prosecutor, confirm, describe_sizes, hints, kernel_words, prosecutors
from minimizer.oracle.verdict import PASS, Failure, Verdict
from minimizer.program import Input, Node, Program, Ref, TensorMeta
from strategies import Fill

M = TensorMeta("float32", (4,), (1,))


def chain(*targets):
    nodes, last = [], "x"
    for k, target in enumerate(targets):
        nodes.append(Node(f"v{k}", target, (Ref(last),), meta=M))
        last = f"v{k}"
    program = Program((Input("x", M),), tuple(nodes), Ref(last))
    return Case(program, (Value("float32", (4,), Fill("normal")),), Settings())


CASE = chain("aten.relu.default", "aten.softmax.int", "aten.sum.dim_IntList", "aten.relu.default")
WRONG = Failure("wrong_value", "run", flavour="values")
NAN = Failure("wrong_value", "run", flavour="values: not finite")
CRASH = Failure("crash", "run", exception="SIGSEGV")


class Bench:
    """Answers by level, one verdict after the other; the last one stays."""

    def __init__(self, **answers):
        self.asked = []
        self._answers = {level: list(a) if isinstance(a, list) else [a] for level, a in answers.items()}

    def judge(self, case, level="full", *, fresh=False):
        self.asked.append((level, fresh))
        answers = self._answers.get(level, [PASS])
        failure = answers.pop(0) if len(answers) > 1 else answers[0]
        return Verdict("fail", failure) if isinstance(failure, Failure) else failure


def levels(bench, failure, repeats=1):
    return [p.level for p in prosecutors(bench, CASE, failure, repeats)]


@pytest.mark.parametrize(
    ("stage", "kind", "expected"),
    [
        ("lower", "compile_error", ["lower", "full"]),
        ("cxx", "cxx_error", ["kernel", "full"]),
        ("run", "wrong_value", ["jit", "full"]),
        ("load", "load_error", ["full"]),
        ("package", "compile_error", ["full"]),
    ],
)
def test_the_cheapest_judge_comes_first(stage, kind, expected):
    failure = Failure(kind, stage, "no", "E", flavour="values")
    assert levels(Bench(lower=failure, kernel=failure, jit=failure, full=failure), failure) == expected


def test_a_judge_that_does_not_see_the_failure_is_left_out():
    assert levels(Bench(jit=PASS, full=WRONG), WRONG) == ["full"]
    assert levels(Bench(jit=CRASH, full=WRONG), WRONG) == ["full"]
    assert levels(Bench(jit=WRONG, full=CRASH), WRONG) == ["jit"]
    assert levels(Bench(jit=Verdict("invalid"), full=PASS), WRONG) == []


def test_a_proxy_judges_by_its_own_words():
    ours = Failure("runtime_error", "run", "index out of bounds", "RuntimeError")
    proxy = Failure("runtime_error", "run", "assert failed in kernel", "RuntimeError")
    found = list(prosecutors(Bench(jit=proxy, full=ours), CASE, ours, 1))
    assert [p.signature for p in found] == [proxy.signature, ours.signature]


def test_the_full_judge_must_see_the_very_same_failure():
    other = Failure("wrong_value", "run", flavour="shape")
    assert levels(Bench(jit=PASS, full=other), WRONG) == []
    assert levels(Bench(jit=PASS, full=WRONG), NAN) == ["full"]


def test_a_flaky_failure_is_asked_for_again():
    assert levels(Bench(jit=[PASS, PASS, WRONG], full=PASS), WRONG, repeats=3) == ["jit"]
    assert levels(Bench(jit=[PASS, PASS, WRONG], full=PASS), WRONG, repeats=2) == []


def test_an_invalid_candidate_is_not_asked_for_again():
    bench = Bench(full=[Verdict("invalid"), WRONG])
    judge = Prosecutor(bench, "full", WRONG.signature, repeats=5)
    assert judge(CASE) is False
    assert (judge.judged, bench.asked) == (1, [("full", False)])


def test_another_failure_is_kept_aside():
    judge = Prosecutor(Bench(full=[WRONG, CRASH, CRASH, PASS]), "full", WRONG.signature)
    assert [judge(CASE) for _ in range(4)] == [True, False, False, False]
    assert judge.also == {CRASH.signature: (CASE, CRASH)}
    assert judge.judged == 4


def test_confirmation_is_fresh_and_full():
    bench = Bench(full=[PASS, CRASH, WRONG])
    assert confirm(bench, CASE, WRONG, 2) is None
    assert bench.asked == [("full", True)] * 2
    assert confirm(bench, CASE, WRONG, 1) == WRONG


def test_the_operator_that_the_error_names_comes_first():
    failure = Failure("compile_error", "lower", "KeyError", op="aten.relu.default")
    assert list(hints(CASE, failure)) == [{"v0"}, {"v3"}]
    assert list(hints(CASE, Failure("compile_error", "lower", "KeyError"))) == []
    assert list(hints(CASE, Failure("compile_error", "lower", "KeyError", op="aten.mm.default"))) == []


def test_the_calls_in_a_kernel_s_name_are_hints():
    failure = Failure("cxx_error", "cxx", "in function 'cpp_fused_softmax_sum_3'")
    assert list(hints(CASE, failure)) == [{"v1"}, {"v2"}, {"v1", "v2"}]


def test_words_of_kernel_names():
    failure = Failure(
        "crash", "run", "triton_poi_fused_add_relu_0 and cpp_fused_mean_2", detail="cpp_fused_0"
    )
    assert {"add", "relu", "mean"} <= kernel_words(failure)
    assert kernel_words(Failure("crash", "run", "no kernel")) == frozenset()


@pytest.mark.parametrize(
    ("kernel", "operator"),
    [
        ("cpp_fused__softmax_add_0", "_softmax"),
        ("cpp_fused_add_native_layer_norm_1", "native_layer_norm"),
        ("triton_per_fused_max_pool2d_with_indices_relu_2", "max_pool2d_with_indices"),
    ],
)
def test_operators_of_several_words_are_found_in_kernel_names(kernel, operator):
    assert operator in kernel_words(Failure("crash", "run", kernel))


def test_sizes_in_words():
    assert describe_sizes([("n", 17), ("h", 3)]) == "n = 17, h = 3"
